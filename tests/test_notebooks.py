"""The notebooks run, and print what is stored in them."""

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

matplotlib = pytest.importorskip("matplotlib")

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
NAMES = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))
LONG = {"table", "fair_features", "bottleneck", "mode_collapse"}
TOLERANCE = 0.06  # nats, or parts of a whole: what another version of torch or scikit-learn may change
NUMBER = re.compile(r"-?\d+\.\d+")


def code_cells(name: str) -> list[dict[str, Any]]:
    cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def printed_by(cell: dict[str, Any]) -> str:
    return "".join("".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream")


CASES = [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in NAMES]


@pytest.mark.parametrize("name", CASES)
def test_notebook_prints_what_it_shows(name: str) -> None:
    matplotlib.use("agg")
    names: dict[str, Any] = {"__name__": name}
    with torch.random.fork_rng(devices=[]):
        for cell in code_cells(name):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile("".join(cell["source"]), name, "exec"), names)
            stored, new = printed_by(cell), printed.getvalue()
            assert NUMBER.sub("#", new) == NUMBER.sub("#", stored)
            numbers = [float(number) for number in NUMBER.findall(stored)]
            assert [float(number) for number in NUMBER.findall(new)] == pytest.approx(numbers, abs=TOLERANCE)
    matplotlib.pyplot.close("all")


def test_all_notebooks_are_named_in_the_guide_and_print() -> None:
    assert len(NAMES) == 5
    guide = (NOTEBOOKS.parent / "docs" / "guide" / "how-to.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if f"`{name}.ipynb`" in guide] == NAMES
    assert all(any(printed_by(cell) for cell in code_cells(name)) for name in NAMES)
