"""The one table of methods agrees with what there is."""

from collections.abc import Iterable
from typing import Any

import pytest

from infoknife import mi
from infoknife.estimators.catalogue import CLASSES, CONTINUOUS
from infoknife.paper.applications import domain_adaptation, fair_text, ib_text
from infoknife.paper.engine import methods
from infoknife.paper.experiments import bench


@pytest.mark.parametrize(
    ("where", "known"),
    [
        (methods.ENTROPY, bench.DENSITIES),
        (methods.MI, CONTINUOUS),
        (methods.CLASSES, CLASSES),
        (methods.DOMAINS, domain_adaptation.METHODS),
        (methods.FAIR, fair_text.METHODS),
        (methods.BOTTLENECK, ib_text.METHODS),
    ],
)
def test_methods_apply_where_they_are_known(where: str, known: Iterable[str]) -> None:
    assert {*methods.names(where)} <= {*known}  # a new one may come without a title and a colour of its own


def test_names_titles_and_colours_are_each_ones_own() -> None:
    for field in ("name", "title", "colour"):
        assert len({getattr(method, field) for method in methods.METHODS}) == len(methods.METHODS)
    assert all(method.help for method in methods.METHODS)


def test_where_knife_is_the_autoregressive_density_its_title_says_so() -> None:
    """What titles say is what estimators are made of."""
    choices: list[dict[str, Any]] = [{}, {"preset": "paper"}, {"density": "knife"}]
    for options in choices:
        kinds = {type(module).__name__ for module in mi("knife", 2, 2, **options).modules()}
        assert ("ColumnKernels" in kinds) == ("autoregressive" in methods.estimator_title("knife", options))
    assert "ColumnKernels" not in {type(module).__name__ for module in mi("knife", 2, y_classes=2).modules()}
    assert methods.estimator_title("mine", {}) == "MINE"
