"""What all tests share: one thread, repeatable examples, seeded generators."""

import os
from collections.abc import Callable, Iterator

# A processor may have tile instructions that a sandbox does not allow; oneDNN would die of them in bfloat16.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import pytest
import torch
from hypothesis import settings

settings.register_profile("infoknife", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("infoknife")

Seeded = Callable[[int], torch.Generator]


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """One thread for the session: the tensors are small, and the figures repeat from machine to machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def seeded() -> Seeded:
    """Generators by seed."""
    return lambda seed: torch.Generator().manual_seed(seed)


@pytest.fixture
def generator() -> torch.Generator:
    """A generator that starts the same in every test."""
    return torch.Generator().manual_seed(0)
