"""Networks start the same in every test."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def _same_start() -> Iterator[None]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield
