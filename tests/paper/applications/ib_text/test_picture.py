"""The picture of the information plane."""

import math
from pathlib import Path
from typing import Any

import pytest

from infoknife.paper.applications.ib_text import picture
from infoknife.paper.applications.ib_text.picture import draw

CURVES = {"epoch": [1.0, 2.0, 3.0], "information": [9.0, 7.5, 6.0], "relevance": [0.1, 0.3, 0.5]}


def test_there_is_a_picture(tmp_path: Path) -> None:
    path = tmp_path / "plane.png"
    assert draw(CURVES, path)
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("information", [[math.nan] * 3, [math.inf, math.nan, math.inf]])
def test_without_points_there_is_none(information: list[float], tmp_path: Path) -> None:
    assert not draw(CURVES | {"information": information}, tmp_path / "plane.png")
    assert list(tmp_path.iterdir()) == []


def test_an_epoch_without_a_point_is_left_out(tmp_path: Path) -> None:
    assert draw(CURVES | {"information": [math.nan, 7.5, math.nan]}, tmp_path / "plane.png")


def test_without_matplotlib_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str, extra: str | None = None) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(picture, "library", missing)
    assert not draw(CURVES, tmp_path / "plane.png")
    assert list(tmp_path.iterdir()) == []


def test_points_and_axes_say_what_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    drawn: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    assert draw(CURVES, tmp_path / "plane.png")
    axes: Any = drawn[0].axes[0]
    assert axes.get_xlabel() == "I(Z; X), upper bound (nats)"
    assert axes.get_ylabel() == "I(Z; Y), lower bound (nats)"
    assert axes.collections[0].get_offsets().tolist() == [[9.0, 0.1], [7.5, 0.3], [6.0, 0.5]]
    assert [text.get_text() for text in axes.texts] == ["1", "2", "3"]
