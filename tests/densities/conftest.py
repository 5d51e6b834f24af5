"""Every test with a ``case`` runs for every density in the table."""

from typing import cast

import pytest

from tests.densities.conformance import CASES, Case


@pytest.fixture(params=CASES, ids=str)
def case(request: pytest.FixtureRequest) -> Case:
    """A density's class, options and condition."""
    return cast(Case, request.param)
