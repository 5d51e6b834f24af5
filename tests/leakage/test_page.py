import re
from dataclasses import replace
from html import escape
from xml.etree import ElementTree

from tests.leakage.conftest import Leaky


def test_page_says_what_was_found(leaky: Leaky) -> None:
    text = leaky.found.to_html()
    assert leaky.found.verdict.replace("'", "&#39;") in text
    assert "rows that the encoder was not trained on" in text
    assert f"{leaky.found.information.value:.3f}" in text
    assert text.count("<svg") == 4
    for note in leaky.found.notes:
        assert escape(note) in text
    assert "if no more than this leaks (Fano)" in text
    assert "What the features are good for" in text
    assert "What the features are good for" not in replace(leaky.found, label=None).to_html()
    text = replace(leaky.found, features=("age", "pay"), left_out={"id": "an identifier"}).to_html()
    assert "2 features: age, pay." in text
    assert "Left out: id (an identifier)." in text


def test_names_are_escaped_and_pictures_are_valid_xml(leaky: Leaky) -> None:
    classes = (leaky.found.classes[0]._replace(name="<i>"),) * 3
    text = replace(leaky.found, name="<b>&\x1b[31m", classes=classes, features=("\x00\u202e",)).to_html()
    assert not re.search("<b>|<i>|<script|[\x00-\x08\x0b-\x1f\u202e]", text)
    assert "&lt;b&gt;&amp;\\x1b[31m" in text
    for picture in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL):
        ElementTree.fromstring(picture)
