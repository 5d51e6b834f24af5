"""Pictures of measurements: what is drawn, and where."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infoknife.measure.estimate import CandidateScore, Diagnostics, Estimate
from infoknife.measure.table import read_table
from infoknife.pictures.measure import heat_map, measurement_figure, save

pytest.importorskip("matplotlib")

ROWS = 200


def numbers(name: str = "a", seed: int = 0) -> dict[str, Any]:
    return {name: np.random.default_rng(seed).normal(size=ROWS)}


def labels(name: str = "b", count: int = 3) -> dict[str, Any]:
    return {name: [f"label {i % count}" for i in range(ROWS)]}


def estimate(*candidates: CandidateScore) -> Estimate:
    pointwise = np.random.default_rng(0).normal(size=ROWS)
    told = Diagnostics("stack", ROWS, candidates)
    return Estimate(float(pointwise.mean()), 0.07, "bits", "mutual information", pointwise, told)


def panels(answer: Estimate, **sides: Any) -> dict[str, Any]:
    """The panels of a picture by their titles."""
    figure = measurement_figure("title", answer, read_table(sides, main="x").columns)
    return {axes.get_title().partition("\n")[0]: axes for axes in figure.axes}


TRIED = CandidateScore("mixture", 1.5, 0.8), CandidateScore("flow", 1.6, 0.2), CandidateScore("gaussian", 2.5, 0.0)


def test_panels_of_a_pair() -> None:
    found = panels(estimate(*TRIED), x=numbers(), y=labels())
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


def test_labels_stand_on_the_left_on_either_side() -> None:
    found = panels(estimate(), x=labels(), y=numbers())
    assert found["rows by pointwise value"].get_ylabel() == "b"
    assert "densities that were tried" not in found


def test_two_discrete_columns_are_bubbles() -> None:
    found = panels(estimate(), x=labels("a", 2), y=labels("b", 5))
    (bubbles,) = found["rows by pointwise value"].collections
    assert len(bubbles.get_offsets()) == 10


def test_an_entropy_has_a_surprise() -> None:
    one = panels(estimate(), x=numbers())
    assert one.keys() == {"pointwise surprise", "a"}
    two = panels(estimate(), x=numbers() | numbers("b", 1))
    assert "rows by pointwise value" in two
    given = panels(estimate(), x=numbers(), given=labels())
    assert given.keys() == {"pointwise surprise", "a", "b"}


def test_many_columns_and_many_labels() -> None:
    columns = labels("b", 40)
    for i in range(29):
        columns |= numbers(f"a rather long name of column {i}", i)
    found = panels(estimate(), x=columns)
    assert len(found) == 7
    ticks = [text.get_text() for text in found["b"].get_yticklabels()]
    assert len(ticks) == 10
    assert ticks[-1] == "31 others"
    assert sum(bar.get_width() for bar in found["b"].patches) == ROWS


def test_infinity() -> None:
    told = Diagnostics("none", ROWS, messages=("b costs $5 and $6",))
    answer = Estimate(math.inf, math.nan, "nats", "mutual information", np.full(ROWS, math.inf), told)
    found = panels(answer, x=numbers(), y=numbers("b", 1))
    assert found["pointwise mutual information"].texts[0].get_text() == "infinite\n\nb costs \\$5 and \\$6"
    assert len(found["rows by pointwise value"].collections[0].get_offsets()) == ROWS


def test_bars_of_rounded_values_are_whole_steps() -> None:
    ages = {"age": np.random.default_rng(0).integers(20, 66, ROWS)}
    bars = panels(estimate(), x=ages)["age"].patches
    assert {round(bar.get_width(), 6) % 1 for bar in bars} == {0.0}
    assert sum(bar.get_height() for bar in bars) == ROWS


def test_letters_that_the_font_does_not_have(tmp_path: Path) -> None:
    columns = read_table({"x": numbers("長さ")}, main="x").columns
    save(measurement_figure("長さ", estimate(), columns), tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 5000


# heat maps


def heated(count: int, value: float | None = None) -> Any:
    values = np.random.default_rng(0).uniform(0.2, 2, size=(count, count)) if value is None else np.full((2, 2), value)
    np.fill_diagonal(values, np.nan)
    errors = np.where(np.isfinite(values), 0.01, np.nan)
    return heat_map("title", [f"a rather long name of column {i}" for i in range(count)], values, errors, "nats")


@pytest.mark.parametrize(("count", "written"), [(2, True), (15, True), (30, False)])
def test_numbers_stand_in_the_cells_of_small_maps(count: int, written: bool) -> None:
    axes, bar = heated(count).axes
    assert len(axes.texts) == 2 * written * count * (count - 1)  # with standard errors
    assert len(axes.get_xticklabels()) == len(axes.get_yticklabels()) == count
    assert bar.get_ylabel() == "nats"


def test_noise_is_dark_and_infinity_a_sign() -> None:
    assert heated(2, 1e-4).axes[0].images[0].get_clim() == (0.0, 0.1)
    assert [text.get_text() for text in heated(2, math.inf).axes[0].texts] == ["∞", "∞"]
