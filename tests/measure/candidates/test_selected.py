"""A few columns out of many: found where they tell something, in whatever way."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from infoknife.measure import MeasurementWarning, mutual_information
from infoknife.measure.candidates.selected import Selected
from infoknife.measure.question import Part, Question
from tests.measure.samples import sample

Array = NDArray[np.float64]


def question(columns: int) -> Question:
    return Question("mutual information", Part((columns,)), Part(tuple(range(columns))), Part())


RELATIONS: dict[str, tuple[Callable[[Array], Array], set[int]]] = {
    "wave": (lambda x: np.sin(4 * x[:, 2]), {2}),
    "square": (lambda x: x[:, 2] ** 2, {2}),
    "steps": (lambda x: np.floor(2 * x[:, 2]), {2}),
    "sum": (lambda x: x[:, 2] + np.abs(x[:, 5]), {2, 5}),
    "product": (lambda x: x[:, 2] * x[:, 5], {2, 5}),
    "sign": (lambda x: np.sign(x[:, 2] * x[:, 5]), {2, 5}),
}


@pytest.mark.parametrize(
    ("relation", "telling"),
    [pytest.param(*RELATIONS[name], marks=[pytest.mark.slow] * (name in ("square", "sum"))) for name in RELATIONS],
    ids=RELATIONS,
)
def test_columns_that_tell_are_found(
    relation: Callable[[Array], Array], telling: set[int], generator: torch.Generator
) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 8))
    rows = sample(np.c_[x, relation(x) + 0.3 * rng.normal(size=600)])
    found = Selected().fit(rows, question(8), generator).fixed
    assert isinstance(found, Selected)
    assert found.columns is not None
    assert telling <= set(found.columns[0].continuous)
    assert len(found.columns[0].continuous) <= 5
    assert found.fit(rows, question(8), generator).fixed == found


def test_labels_that_tell_are_found(generator: torch.Generator) -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, (500, 3))
    y = 2.0 * (codes[:, 1] == 2) + rng.normal(size=500)
    rows = sample(np.c_[rng.normal(size=(500, 5)), y], *codes.T)
    asked = Question("mutual information", Part((5,)), Part((0, 1, 2, 3, 4), (0, 1, 2)), Part())
    found = Selected().fit(rows, asked, generator).fixed
    assert isinstance(found, Selected)
    assert found.columns is not None
    assert 1 in found.columns[0].discrete


def test_it_is_for_many_columns_without_a_condition() -> None:
    rows = sample(np.random.default_rng(0).normal(size=(200, 4)))
    assert Selected().supports(rows, question(3))
    assert not Selected().supports(rows, Question("mutual information", Part((3,)), Part((0,)), Part()))
    assert not Selected().supports(rows, Question("entropy", Part((3,)), Part((0, 1, 2))))
    assert not Selected().supports(
        rows, Question("conditional mutual information", Part((3,)), Part((0, 1, 2)), Part((2,)))
    )
    assert not Selected().supports(rows.rows(slice(0, 90)), question(3))


def test_one_column_of_ten() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(1001, 10))
    y = np.cos(3 * x[:, 7]) + 0.3 * rng.normal(size=1001)
    alone = mutual_information(x[:, 7], y, effort="quick")
    with pytest.warns(MeasurementWarning, match="at least"):
        found = mutual_information(x, y, effort="quick")
    assert found > alone - 3 * alone.stderr
    assert found.diagnostics.method == "selected"
