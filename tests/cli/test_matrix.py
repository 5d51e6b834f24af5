import csv
import json
import math
from itertools import combinations
from pathlib import Path

import pytest
from rich.console import Console

from infoknife.cli.matrix import Failure, Matrix, Pair


def matrix(count: int, name: str = "column_{:02d}", p_value: float = math.nan) -> Matrix:
    names = tuple(name.format(i) for i in range(count))
    pairs = tuple(Pair(pair, 0.25, 0.025, p_value, rows=40) for pair in combinations(names, 2))
    return Matrix(names, pairs, "nats", permutations=0 if math.isnan(p_value) else 99)


def lines(shown: Matrix, width: int | None) -> list[str]:
    console = Console(width=width or 1 << 16)
    with console.capture() as capture:
        for table in shown.tables(width):
            console.print(table)
    return capture.get().splitlines()


def test_a_file_has_no_width() -> None:
    found = lines(matrix(30), None)
    assert len(found) == 31
    assert found[0].split() == [f"column_{i:02d}" for i in range(30)]
    assert found[1].split()[:5] == ["column_00", "0.250", "±0.025", "0.250", "±0.025"]
    assert len(found[1].split()) == 1 + 29 * 2


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_terminal_has_one(width: int) -> None:
    found = lines(matrix(30), width)
    assert max(map(len, found)) <= width
    assert sum(line.count("0.250") for line in found) == sum(line.count("0.025") for line in found) == 30 * 29
    assert not any("±" in line for line in found)
    at = next(i for i, line in enumerate(found) if "standard errors" in line)
    heads = [line.split() for line in found[:at] if line.strip() and "column" not in line]
    assert [head for line in heads for head in line] == [str(i) for i in range(1, 31)]
    assert found[1].split()[:2] == ["1", "column_00"]


@pytest.mark.parametrize(("p_value", "marks"), [(0.2, 6), (0.01, 0), (math.nan, 0)])
def test_what_could_be_chance_is_marked(p_value: float, marks: int) -> None:
    for width in (None, 40):
        found = lines(matrix(3, p_value=p_value), width)
        assert sum(line.count("0.250 ±0.025 ·") + line.count("0.250 ·") for line in found) == marks


def test_long_names_lose_their_middle() -> None:
    found = lines(matrix(2, "a_very_long_name_of_a_coumn_number_{}"), 80)
    assert found[0].split() == ["a_very_long…umn_number_0", "a_very_long…umn_number_1"]


def rows(shown: Matrix, path: Path) -> list[list[str]]:
    shown.write_csv(path)
    return list(csv.reader(path.read_text().splitlines()))


def test_infinity_and_what_is_not_there(tmp_path: Path) -> None:
    pairs = (
        Pair(("a", "b"), math.inf, rows=40, messages=("b rises with a", "3 rows left out")),
        Pair(("a", "c"), messages=("odd",)),
    )
    failures = Failure(("a", "c"), "odd"), Failure(("d",), "d is constant")
    shown = Matrix(("a", "b", "c", "d"), pairs, "nats", failures=failures)
    content = json.loads(json.dumps(shown.as_dict(), allow_nan=False))
    assert content["value"][0] == [None, "inf", None, None]
    assert content["rows"][0] == [None, 40, 0, None]
    assert "p_value" not in content
    assert content["notes"][0] == {"columns": ["a", "b"], "messages": ["b rises with a", "3 rows left out"]}
    found = rows(shown, tmp_path / "pairs.csv")
    assert found[0] == ["column_a", "column_b", "value", "stderr", "p_value", "rows", "note"]
    assert found[1] == ["a", "b", "inf", "", "", "40", "b rises with a. 3 rows left out"]
    assert found[2] == ["a", "c", "", "", "", "", "odd"]
    assert found[3] == ["a", "d", "", "", "", "", "d is constant"]
    assert len(found) == 7


def test_no_name_is_a_formula(tmp_path: Path) -> None:
    found = rows(matrix(2, "={}+1", p_value=0.5), tmp_path / "pairs.csv")
    assert found[1] == ["'=0+1", "'=1+1", "0.25", "0.025", "0.5", "40", ""]
