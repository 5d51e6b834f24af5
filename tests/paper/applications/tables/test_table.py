import pytest

from infoknife.paper.applications.tables import Request, Table, check_names, shown
from infoknife.paper.applications.tables.table import chosen, listed, strings
from tests.paper.applications.fair_text.tables import SECRET

REQUEST = Request({"text": "tweet", "label": "mood", "split": "part"}, "the text and the label", ("text",), ("split",))


def test_a_request() -> None:
    assert REQUEST.needed == {"text": "tweet", "label": "mood"}
    assert REQUEST.options == "--text, --label"


def test_columns_by_role() -> None:
    assert chosen(["mood", "age", "tweet"], REQUEST, "a.csv") == {"text": "tweet", "label": "mood"}
    assert chosen(["part", "mood", "tweet"], REQUEST, "a.csv") == dict(REQUEST.columns)


def test_a_missing_column() -> None:
    with pytest.raises(
        ValueError, match=r"^a\.csv: there is no column 'tweet', 'mood'; found: 'part'. Name .*"
    ) as caught:
        chosen(["part"], REQUEST, "a.csv")
    assert str(caught.value).endswith("Name the columns that are the text and the label (--text, --label)")


def test_an_optional_column_twice() -> None:
    with pytest.raises(ValueError, match="the column 'part' is there twice; expected each once"):
        chosen(["part", "mood", "tweet", "part"], REQUEST, "a.csv")


def test_a_column_with_two_roles() -> None:
    assert chosen(["a"], Request({"x": "a", "y": "a"}, "x and y"), "a.csv") == {"x": "a", "y": "a"}


def test_strings() -> None:
    assert strings([1, 2.5, None, float("nan"), True], "label", REQUEST, "a") == ["1", "2.5", "", "", "True"]
    assert strings(["so", None], "text", REQUEST, "a") == ["so", ""]
    with pytest.raises(ValueError, match=r"^a: the column 'tweet' has values of type list; expected strings") as caught:
        strings([[SECRET]], "text", REQUEST, "a")
    assert SECRET not in str(caught.value)


def test_part_of_a_table() -> None:
    table = Table("a", {"x": list("abcd"), "y": list("efgh")}, lambda row: f"line {row + 2}", ("one",))
    part = table.only([3, 1], "two").only([0])
    assert (part.cells, len(part)) == ({"x": ["d"], "y": ["h"]}, 1)
    assert (part.where(0), part.notes) == ("line 5", ("one", "two"))
    assert len(Table("a", {}, str)) == 0
    assert SECRET not in repr(Table("a", {"x": [SECRET]}, str))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"x": "a", "y": ""}, "y is ''; expected the name of a column"),
        ({"x": "a", "y": "b", "z": "a"}, "x and z are both the column 'a'; expected two different columns"),
    ],
)
def test_names_that_cannot_be(names: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_names(names)


def test_only_single_words_are_shown() -> None:
    assert [shown(cell) for cell in ("gender_male", "two words", "a" * 31, "")] == [
        "'gender_male'",
        "(a cell of 9 characters)",
        "(a cell of 31 characters)",
        "(a cell of 0 characters)",
    ]


def test_lists_end() -> None:
    assert listed([]) == "none"
    assert listed([str(i) for i in range(21)]).endswith("'18', '19', ...")
