import re
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from xml.etree import ElementTree

from infoknife.leakage.page import Mark, bars, number
from tests.leakage.conftest import Leaky

VOID = {"meta"}


class Balance(HTMLParser):
    """Every tag is closed, in the order in which it was opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_is_whole_and_stands_alone(leaky: Leaky) -> None:
    page, text = Balance(), leaky.found.to_html()
    page.feed(text)
    assert page.open == []
    assert page.seen >= {"svg", "table", "style"}
    assert not page.seen & {"script", "link", "img", "iframe"}
    assert not re.search(r"https?://|url\(", text)
    assert "prefers-color-scheme: dark" in text


def test_page_says_what_was_found(leaky: Leaky) -> None:
    text = leaky.found.to_html()
    assert leaky.found.verdict.replace("'", "&#x27;") in text
    assert "rows that the encoder was not trained on" in text
    assert f"{leaky.found.information.value:.3f}" in text
    assert "What the features are good for" in text
    for note in leaky.found.notes:
        assert escape(note) in text
    assert "if no more than this leaks (Fano)" in text
    assert "What the features are good for" not in replace(leaky.found, label=None).to_html()


def test_names_are_escaped(leaky: Leaky) -> None:
    odd = replace(leaky.found, name="<b>&", classes=(leaky.found.classes[0]._replace(name="<i>"),) * 3)
    text = odd.to_html()
    assert "<b>" not in text
    assert "<i>" not in text
    assert "&lt;b&gt;&amp;" in text


def test_control_characters_are_shown_and_pictures_are_valid_xml(leaky: Leaky) -> None:
    odd = replace(leaky.found, name="\x1b[31m", features=("\x00\u202e",), left_out={"\x07": "constant"})
    text = odd.to_html()
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", text)
    assert "\\x1b[31m" in text
    for picture in re.findall(r"<svg.*?</svg>", text + bars([("\x1b<&", 0.5, 0.1)], [Mark("mark", "\x07", 2.0)])):
        ElementTree.fromstring(picture)


def test_features_are_listed(leaky: Leaky) -> None:
    text = replace(leaky.found, features=("age", "pay"), left_out={"id": "an identifier"}).to_html()
    assert "2 features: age, pay." in text
    assert "Left out: id (an identifier)." in text


def test_numbers() -> None:
    assert [number(value) for value in (0.01234, 9.637, 12345.6)] == ["0.0123", "9.64", "12,346"]


def test_bars_are_as_long_as_their_values() -> None:
    picture = bars([("a", 0.5, 0.0), ("b", 1.0, 0.01)], [Mark("limit", "most", 0.25)])
    rail, half, _, whole = (float(width) for width in re.findall(r'width="([\d.]+)"', picture))
    assert half == rail / 2
    assert whole == rail
    assert picture.count('class="ends"') == 1
    assert 'aria-label="a 50.0 %; b 100.0 %; most 25.0 %"' in picture
