import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from infoknife.cli.matrix import Failure, Matrix


def matrix(count: int, name: str = "column_{:02d}") -> Matrix:
    values = np.full((count, count), 0.25)
    np.fill_diagonal(values, np.nan)
    return Matrix(tuple(name.format(i) for i in range(count)), values, values / 10, "nats")


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
    assert len(found[1].split()) == 30  # the name, and all but one number


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_terminal_has_one(width: int) -> None:
    found = lines(matrix(30), width)
    assert max(map(len, found)) <= width
    heads = [line.split() for line in found if not line.strip().split()[1].startswith("column")]
    assert [head for line in heads for head in line] == [str(i) for i in range(1, 31)]
    assert sum(line.count("0.250") for line in found) == 30 * 29
    assert found[1].split()[:2] == ["1", "column_00"]


def test_names_are_used_where_they_fit() -> None:
    assert lines(matrix(3), 80)[0].split() == ["column_00", "column_01", "column_02"]


def test_long_names_lose_their_middle() -> None:
    found = lines(matrix(2, "a_very_long_name_of_a_coumn_number_{}"), 80)
    assert found[0].split() == ["a_very_long…umn_number_0", "a_very_long…umn_number_1"]


def test_infinity_and_what_is_not_there(tmp_path: Path) -> None:
    shown = matrix(2)
    shown.values[0, 1], shown.values[1, 0] = np.inf, np.nan
    content = json.loads(json.dumps(shown.as_dict(), allow_nan=False))
    assert content["value"] == [[None, "inf"], [None, None]]
    shown.write_csv(tmp_path / "matrix.csv")
    assert (tmp_path / "matrix.csv").read_text().split() == [",column_00,column_01", "column_00,,inf", "column_01,,"]


def test_failures_say_where() -> None:
    assert str(Failure(("a", "b"), "no luck")) == "a – b: no luck"
