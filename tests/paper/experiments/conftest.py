"""The records that are kept with the documents."""

from pathlib import Path

import pytest

from infoknife.paper.engine import read_records
from infoknife.paper.engine.records import Record


@pytest.fixture(scope="session")
def records() -> list[Record]:
    return list(read_records(Path(__file__).parents[3] / "docs" / "results"))
