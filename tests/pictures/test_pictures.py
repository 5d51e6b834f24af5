"""Charts, tables and the page shell: what is in them, and what cannot get out of them."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from infoknife.pictures import (
    Badge,
    Badges,
    Chart,
    Colour,
    Confusion,
    Fold,
    Heading,
    Panel,
    Section,
    Series,
    Table,
    page,
)
from infoknife.pictures.charts import STYLES, settled_range
from infoknife.pictures.page import drawn
from infoknife.pictures.style import markup, save, styled, svg
from infoknife.pictures.tables import markdown

RED, BLUE = Colour("#ff0000", "#ff8888"), Colour("#0000ff", "#8888ff")
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)> $x$ | `code`"


def chart(*series: Series, name: str = "chart", panels: int = 1, **panel: object) -> Chart:
    return Chart(name, "A chart", "step", "nats", (Panel("one", series, **panel),) * panels, panels)  # type: ignore[arg-type]


LINE = Series("red", RED, "line", [1.0, 2.0, None, 4.0], [1.0, 3.0, None, 2.0])


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("log", [False, True])
def test_every_style_can_be_drawn(style: str, log: bool) -> None:
    text = drawn(chart(LINE._replace(style=style), log_x=log, log_y=log))
    assert "var(--ff0000, #ff0000)" in text


def test_a_drawing_has_nothing_that_a_strict_policy_refuses() -> None:
    text = drawn(chart(LINE, LINE._replace(label=HOSTILE, colour=BLUE, style="points"), panels=2))
    root = ElementTree.fromstring(text)
    assert all("style" not in element.attrib and element.tag not in {"style", "script"} for element in root.iter())
    assert not re.search(r"https?:|url\((?!#)", text)
    references = {*re.findall(r'(?:url\(|href=")#(\w+)', text)}
    assert references == {element.get("id") for element in root.iter() if element.get("id")}


def test_two_drawings_share_no_name() -> None:
    ids = [{*re.findall(r' id="(\w+)"', drawn(chart(LINE, name=name)))} for name in ("one", "two")]
    assert ids[0]
    assert not ids[0] & ids[1]


def test_the_same_chart_is_the_same_file(tmp_path: Path) -> None:
    found = []
    for name in ("one", "two"):
        with styled("chart"):
            figure = chart(LINE).draw()
            found.append([path.read_bytes() for path in save(figure, svg(figure), tmp_path / name)])
    assert found[0] == found[1]
    assert found[0][0].startswith(b"\x89PNG")


def test_a_legend_has_every_label_once_and_references_last() -> None:
    truth = Series("truth", BLUE, "truth", [1.0], [1.0])
    with styled("a"):
        figure = chart(truth, LINE, LINE._replace(label="ours", strong=True), panels=2).draw()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["ours", "red", "truth"]


def test_a_confusion_shows_every_count() -> None:
    text = drawn(Confusion("c", "Confusion", ("cat", HOSTILE), (("A", ((31, 1), (0, 0))), ("B", ((5, 6), (7, 8))))))
    assert [number for number in (31, 1, 0, 5, 6, 7, 8) if f">{number}<" not in text] == []


def test_the_range_is_that_of_settled_curves() -> None:
    line = LINE._replace(x=range(120), y=[1000.0] * 10 + [0.0, 1.0] * 55)
    assert settled_range([line]) == pytest.approx((-0.06, 1.06))
    assert settled_range([]) == pytest.approx((-0.06, 1.06))


def test_markdown_is_one_line_per_row_whatever_is_in_it() -> None:
    text = markdown(Table("A | caption", ("a", "b"), (("x\ny", HOSTILE),), best=((0, 1),)))
    assert len(text.splitlines()) == 5
    assert "\\|" in text.splitlines()[-1]
    assert "<script>" not in text.replace("\\<", "")


def whole_page() -> str:
    table = Table(HOSTILE, ("method", HOSTILE), ((HOSTILE, "1"), ("KNIFE", "2")), best=((1, 1),), strong=(1,))
    blocks = (
        Heading(HOSTILE),
        Badges(HOSTILE, (Badge("good", HOSTILE, HOSTILE, HOSTILE),)),
        Fold(HOSTILE, (table, chart(LINE._replace(label=HOSTILE)))),
    )
    return page(HOSTILE, HOSTILE, [Section(HOSTILE, HOSTILE, HOSTILE, HOSTILE, blocks)], links=[("a", "b.md")])


def test_all_text_is_escaped_and_nothing_may_run_or_load() -> None:
    text = whole_page()
    assert "<script" not in text
    assert "<img" not in text
    assert "default-src 'none'" in text
    assert "unsafe" not in text
    assert "style=" not in text
    assert text.count("&lt;script&gt;") > 10
    assert "<strong>2</strong>" in text
    assert 'class="strong"' in text


def test_the_policy_allows_the_one_style_sheet() -> None:
    import base64
    import hashlib

    text = whole_page()
    (sheet,) = re.findall(r"<style>(.*?)</style>", text, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in text
    assert "--ff0000: #ff8888" in sheet  # the dark one
    assert "@media print" in sheet


def test_markup_keeps_shapes() -> None:
    with styled("a"):
        drawing = svg(chart(LINE).draw())
    before, after = (ElementTree.fromstring(text) for text in (drawing, markup(drawing, "label")))
    paths = [[e.get("d") for e in root.iter() if e.tag.endswith("path")] for root in (before, after)]
    assert paths[0] == paths[1]
    assert after.get("aria-label") == "label"
