from pathlib import Path

import pytest

from infoknife.paper.experiments.report import figures
from infoknife.paper.experiments.report.charts import Chart, Panel, Series
from infoknife.paper.experiments.report.confusion import Confusion, Matrix
from infoknife.paper.experiments.report.palette import COLOURS, colour_name
from infoknife.paper.experiments.report.tables import Table


def chart(*panels: Panel, columns: int = 1) -> Chart:
    return Chart("name", "Costs $5 and $6", "step", "nats", panels, columns)


def line(colour: str = "knife", style: str = "line", y: tuple[float | None, ...] = (1.0, None, 3.0)) -> Series:
    return Series("KNIFE $", colour, style, (0.0, 1.0, 2.0), y)


@pytest.mark.parametrize(
    "style", ["line", "raw", "points", "dots", "marks", "whisker", "dashed", "faint", "truth", "published"]
)
def test_every_style_is_drawn_with_gaps(style: str, tmp_path: Path) -> None:
    paths = figures.write(tmp_path, [chart(Panel("KNIFE", (line(style=style),)))])
    assert [path.name for path in paths] == ["name.png", "name.svg"]
    assert all(path.stat().st_size > 1000 for path in paths)


@pytest.mark.parametrize("top", [2.5, 40.0, 1e6])
def test_logarithmic_axes(top: float, tmp_path: Path) -> None:
    panel = Panel("", (line(style="points", y=(1.0, 2.0, top)),), log_y=True)
    assert len(figures.write(tmp_path, [chart(panel)])) == 2


def test_panels_that_do_not_fill_their_grid(tmp_path: Path) -> None:
    panels = [Panel(str(i), (line(),), (0.0, 4.0)) for i in range(5)]
    assert len(figures.write(tmp_path, [chart(*panels, columns=3)])) == 2


def test_tables_are_drawn(tmp_path: Path) -> None:
    table = Table("Errors, $", ("method", "error"), (("KNIFE", "0.1 ± 0.2"), ("DoE $a$", "0.3")))
    figures.write(tmp_path, [], [("table", table)])
    assert (tmp_path / "table.png").exists()


def test_long_captions_of_tables_fit(tmp_path: Path) -> None:
    table = Table(
        "a caption that is much longer than its table " * 3, ("method", "a"), (("KNIFE", "1"),), best=((0, 1),)
    )
    assert len(figures.write(tmp_path, [], [("table", table)])) == 2


@pytest.mark.parametrize("names", [("0", "1"), ("air $plane$", "bird")])
def test_confusions_are_drawn(names: tuple[str, ...], tmp_path: Path) -> None:
    confusion = Confusion("name", "Costs $5", names, (Matrix("KNIFE", ((9, 1), (0, 0))), Matrix("$", ((1, 2), (3, 4)))))
    paths = figures.write(tmp_path, [], (), [confusion])
    assert [path.name for path in paths] == ["name.png", "name.svg"]
    assert all(path.stat().st_size > 1000 for path in paths)


def test_colours_are_distinct_and_known() -> None:
    assert len({colour.light for colour in COLOURS.values()}) == len(COLOURS)
    assert len({colour.dark for colour in COLOURS.values()}) == len(COLOURS)
    assert all(colour_name(name) in COLOURS for name in ("knife", "ksg", "something-new", ""))


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("name", COLOURS)
def test_colours_stand_out_from_their_ground(name: str) -> None:
    """Graphics need a contrast of 3 (WCAG 2.1, 1.4.11)."""
    light, dark = COLOURS[name]
    assert (luminance("#ffffff") + 0.05) / (luminance(light) + 0.05) > 2.7
    assert (luminance(dark) + 0.05) / (luminance("#1c222a") + 0.05) > 3
