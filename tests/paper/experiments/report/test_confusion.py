import pytest

from infoknife.paper.experiments.report import confusion
from infoknife.paper.experiments.report.confusion import Confusion, Matrix

TWO = Confusion(
    "name", "Confusion", ("<cat>", "dog"), (Matrix("A & B", ((3, 1), (0, 2))), Matrix("C", ((0, 0), (1, 1))))
)


def test_shares_are_parts_of_the_true_class() -> None:
    assert confusion.shares(TWO.matrices[0].counts) == [[0.75, 0.25], [0.0, 1.0]]
    assert confusion.shares(TWO.matrices[1].counts)[0] == [0.0, 0.0]  # a class without images


def test_tables_are_shaded_and_escaped() -> None:
    text = confusion.html(TWO)
    assert '<td style="--share: 0.75">3</td><td style="--share: 0.25">1</td>' in text
    assert '<td style="--share: 0" class="none">0</td>' in text
    assert "<cat" not in text
    assert "A &amp; B" in text
    assert text.count("<table>") == 2


@pytest.mark.parametrize(("names", "tall"), [(("0", "1"), False), (("airplane", "bird"), True)])
def test_long_names_stand_upright(names: tuple[str, ...], tall: bool) -> None:
    assert ('class="tall"' in confusion.html(TWO._replace(classes=names))) == tall


def test_markdown_has_the_counts() -> None:
    text = confusion.markdown(TWO)
    assert "**Confusion: A & B**" in text
    assert text.splitlines()[-1] == "| dog | 1 | 1 |"
