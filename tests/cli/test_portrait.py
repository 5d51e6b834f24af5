import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infoknife.cli.heat import heat
from infoknife.cli.matrix import Matrix, Pair
from infoknife.cli.measured import Answer
from infoknife.cli.paint import save
from infoknife.cli.portrait import portrait
from infoknife.measure.estimate import Candidate, Diagnostics, Estimate

pytest.importorskip("matplotlib")

ROWS = 200
SETTINGS = {"effort": "quick", "seed": 0}


def numbers(name: str = "a", seed: int = 0) -> dict[str, Any]:
    return {name: np.random.default_rng(seed).normal(size=ROWS)}


def labels(name: str = "b", count: int = 3) -> dict[str, Any]:
    return {name: [f"label {i % count}" for i in range(ROWS)]}


def estimate(*candidates: Candidate) -> Estimate:
    pointwise = np.random.default_rng(0).normal(size=ROWS)
    told = Diagnostics("stack", ROWS, candidates)
    return Estimate(float(pointwise.mean()), 0.07, "bits", "mutual information", pointwise, told)


def panels(answer: Answer) -> dict[str, Any]:
    """The panels of a picture by their titles."""
    return {axes.get_title().partition("\n")[0]: axes for axes in portrait(answer).axes}


TRIED = Candidate("mixture", 1.5, 0.8), Candidate("flow", 1.6, 0.2), Candidate("gaussian", 2.5, 0.0)


def test_panels_of_a_pair(tmp_path: Path) -> None:
    found = panels(Answer(tmp_path, {"x": numbers(), "y": labels()}, SETTINGS, estimate(*TRIED)))
    assert found.keys() == {
        "pointwise mutual information",
        "rows by pointwise value",
        "densities that were tried",
        "a",
        "b",
        "",
    }
    assert found["pointwise mutual information"].get_xlabel() == "value of a row, bits"
    tried = found["densities that were tried"]
    assert [text.get_text() for text in tried.get_yticklabels()] == ["mixture", "flow", "gaussian"]
    assert [text.get_text() for text in tried.texts] == ["1.5, weight 0.80", "1.6, weight 0.20", "2.5"]
    assert [bar.get_width() for bar in tried.patches] == pytest.approx([0, 0.1, 1.0])
    assert sum(bar.get_height() for bar in found["a"].patches) == ROWS
    assert [bar.get_width() for bar in found["b"].patches] == [67, 67, 66]
    assert [text.get_text() for text in found["rows by pointwise value"].get_yticklabels()] == [
        "label 0",
        "label 1",
        "label 2",
    ]


def test_labels_stand_on_the_left_on_either_side(tmp_path: Path) -> None:
    found = panels(Answer(tmp_path, {"x": labels(), "y": numbers()}, SETTINGS, estimate()))
    assert found["rows by pointwise value"].get_ylabel() == "b"
    assert "densities that were tried" not in found


def test_two_discrete_columns_are_bubbles(tmp_path: Path) -> None:
    sides = {"x": labels("a", 2), "y": labels("b", 5)}
    found = panels(Answer(tmp_path, sides, SETTINGS, estimate()))
    (bubbles,) = found["rows by pointwise value"].collections
    assert len(bubbles.get_offsets()) == 10


def test_an_entropy_has_a_surprise(tmp_path: Path) -> None:
    one = panels(Answer(tmp_path, {"x": numbers()}, SETTINGS, estimate()))
    assert one.keys() == {"pointwise surprise", "a"}
    two = panels(Answer(tmp_path, {"x": numbers() | numbers("b", 1)}, SETTINGS, estimate()))
    assert "rows by pointwise value" in two
    given = panels(Answer(tmp_path, {"x": numbers(), "given": labels()}, SETTINGS, estimate()))
    assert given.keys() == {"pointwise surprise", "a", "b"}


def test_many_columns_and_many_labels(tmp_path: Path) -> None:
    columns = labels("b", 40)
    for i in range(29):
        columns |= numbers(f"a rather long name of column {i}", i)
    found = panels(Answer(tmp_path, {"x": columns}, SETTINGS, estimate()))
    assert len(found) == 7
    ticks = [text.get_text() for text in found["b"].get_yticklabels()]
    assert len(ticks) == 10
    assert ticks[-1] == "31 others"
    assert sum(bar.get_width() for bar in found["b"].patches) == ROWS


def test_infinity(tmp_path: Path) -> None:
    told = Diagnostics("none", ROWS, messages=("b costs $5 and $6",))
    answer = Answer(
        tmp_path,
        {"x": numbers(), "y": numbers("b", 1)},
        SETTINGS,
        Estimate.infinite(math.inf, "nats", "mutual information", told),
    )
    found = panels(answer)
    assert found["pointwise mutual information"].texts[0].get_text() == "infinite\n\nb costs \\$5 and \\$6"
    assert len(found["rows by pointwise value"].collections[0].get_offsets()) == ROWS


def test_bars_of_rounded_values_are_whole_steps(tmp_path: Path) -> None:
    ages = {"age": np.random.default_rng(0).integers(20, 66, ROWS)}
    bars = panels(Answer(tmp_path, {"x": ages}, SETTINGS, estimate()))["age"].patches
    assert {round(bar.get_width(), 6) % 1 for bar in bars} == {0.0}
    assert sum(bar.get_height() for bar in bars) == ROWS


def test_letters_that_the_font_does_not_have(tmp_path: Path) -> None:
    save(portrait(Answer(tmp_path, {"x": numbers("長さ")}, SETTINGS, estimate())), tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 5000


# heat maps


def matrix(count: int, value: float | None = None) -> Matrix:
    names = tuple(f"a rather long name of column {i}" for i in range(count))
    drawn = np.random.default_rng(0).uniform(0.2, 2, size=count**2).tolist()
    values = [one if value is None else value for one in drawn]
    pairs = [
        Pair(pair, one, 0.01 if math.isfinite(one) else math.nan)
        for pair, one in zip(combinations(names, 2), values, strict=False)
    ]
    return Matrix(names, tuple(pairs), "nats")


@pytest.mark.parametrize(("count", "written"), [(2, True), (15, True), (30, False)])
def test_numbers_stand_in_the_cells_of_small_maps(count: int, written: bool) -> None:
    figure = heat(matrix(count), "title")
    axes, bar = figure.axes
    assert len(axes.texts) == 2 * written * count * (count - 1)  # with standard errors
    assert len(axes.get_xticklabels()) == len(axes.get_yticklabels()) == count
    assert bar.get_ylabel() == "nats"


def test_noise_is_dark() -> None:
    assert heat(matrix(2, 1e-4), "title").axes[0].images[0].get_clim() == (0.0, 0.1)


def test_infinite_cells() -> None:
    assert [text.get_text() for text in heat(matrix(2, math.inf), "title").axes[0].texts] == ["∞", "∞"]
