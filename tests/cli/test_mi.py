import csv
import json
import os
import shlex
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.cli.conftest import Run
from tests.cli.fake_engine import Engine

USED = "length,width,species"


def test_a_table(run: Run, flowers: Path, engine: Engine) -> None:
    result = run("mi", flowers, "--x", "length,width", "--y", "species", "--given", "bees", "--unit", "bits")
    assert result.exit_code == 0
    assert result.stdout.startswith("I(length, width; species | bees) of flowers.csv")
    assert " bits" in result.stdout
    assert "independence" not in result.stdout
    (call,) = engine.calls
    assert [[*call[side]] for side in ("x", "y", "given")] == [["length", "width"], ["species"], ["bees"]]
    assert call["discrete"] == {}
    assert call["effort"] == "standard"


def test_permutations(run: Run, flowers: Path, engine: Engine) -> None:
    arguments = ("mi", flowers, "--x", "length", "--y", "species", "--permutations", 99, "--seed", 4, "--blocks", 9)
    assert "p = 0.002 by 99 permutations" in run(*arguments).stdout
    assert (engine.calls[1]["permutations"], engine.calls[1]["seed"]) == (99, 4)
    assert engine.calls[0]["blocks"] == engine.calls[1]["blocks"] == 9
    test = json.loads(run(*arguments, "--json").stdout)["permutation_test"]
    assert test == {"p_value": 0.002, "statistic": 0.5, "permutations": 99}


@pytest.mark.parametrize("sides", [("length", "width"), ("species", "length"), ("species", "bees")])
def test_a_picture(run: Run, flowers: Path, engine: Engine, sides: tuple[str, str]) -> None:
    path = flowers.parent / "picture.png"
    assert run("mi", flowers, "--x", sides[0], "--y", sides[1], "--plot", path).exit_code == 0
    assert path.stat().st_size > 5000


# all pairs


def test_a_matrix(run: Run, flowers: Path, engine: Engine) -> None:
    out, plot = flowers.parent / "pairs.csv", flowers.parent / "heat.png"
    result = run("mi", flowers, "--all", "--columns", USED, "--out", out, "--plot", plot)
    assert result.exit_code == 0
    assert result.stderr == ""
    lines = [line.split() for line in result.stdout.splitlines()]
    assert result.stdout.startswith("Mutual information of columns of flowers.csv, in nats\n")
    assert lines[2] == ["length", "width", "species"]
    assert [line[0] for line in lines[3:6]] == ["length", "width", "species"]
    assert lines[3][1] == lines[4][1]  # symmetric
    assert len(engine.calls) == 3
    assert {call["effort"] for call in engine.calls} == {"quick"}
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [(row["column_a"], row["column_b"]) for row in rows] == [
        ("length", "width"),
        ("length", "species"),
        ("width", "species"),
    ]
    assert float(rows[0]["value"]) == pytest.approx(float(lines[3][1]), abs=5e-4)
    assert float(rows[0]["stderr"]) == pytest.approx(float(lines[3][2].removeprefix("±")), abs=5e-4)
    assert (rows[0]["p_value"], rows[0]["rows"], rows[0]["note"]) == ("", "300", "")
    assert plot.stat().st_size > 5000


def test_a_matrix_as_json(run: Run, flowers: Path, engine: Engine) -> None:
    options = ("--json", "--unit", "bits", "--effort", "thorough", "--jobs", 1)
    content = json.loads(run("mi", flowers, "--all", "--columns", USED, *options).stdout)
    assert content["columns"] == ["length", "width", "species"]
    assert (content["unit"], content["effort"], content["failed"]) == ("bits", "thorough", [])
    assert content["value"][0][0] is None
    assert content["value"][0][1] == content["value"][1][0] > 0
    assert content["stderr"][0][1] > 0


def test_a_pair_that_fails_is_named_and_the_others_go_on(run: Run, flowers: Path, engine: Engine) -> None:
    def error(arguments: dict[str, Any]) -> Exception | None:
        return RuntimeError("no\nluck") if [*arguments["x"], *arguments["y"]] == ["length", "species"] else None

    engine.error = error
    result = run("mi", flowers, "--all", "--columns", USED)
    assert result.exit_code == 1
    assert result.stderr == "infoknife mi: no answer: length – species: no luck\n"
    assert len(engine.calls) == 3
    lines = [line.split() for line in result.stdout.splitlines()]
    assert [len(line) for line in lines[3:6]] == [3, 5, 3]


def test_columns_that_cannot_be_measured_are_left_out(run: Run, flowers: Path, engine: Engine) -> None:
    result = run("mi", flowers, "--all", "--json")
    assert result.exit_code == 1
    assert "infoknife mi: left out: same is constant" in result.stderr
    assert "infoknife mi: bees is taken as discrete. If it is a quantity, say --continuous bees" in result.stderr
    assert result.stderr.count("bees") == 2
    content = json.loads(result.stdout)
    assert content["columns"][-1] == "same"
    assert content["value"][-1] == [None] * 5
    assert content["failed"] == [{"columns": ["same"], "reason": content["failed"][0]["reason"]}]
    assert len(engine.calls) == 6


def test_a_matrix_with_permutations(run: Run, flowers: Path, engine: Engine) -> None:
    arguments = ("mi", flowers, "--all", "--columns", USED, "--permutations", 9)
    assert "· could be chance: p > 0.05 by 9 permutations" in run(*arguments).stdout
    content = json.loads(run(*arguments, "--json").stdout)
    assert content["p_value"][0] == [None, 0.002, 0.002]
    assert {call["permutations"] for call in engine.calls if "permutations" in call} == {9}


def test_a_pair_without_an_answer(run: Run, flowers: Path, engine: Engine) -> None:
    engine.value, engine.messages = float("nan"), ("odd",)
    result = run("mi", flowers, "--all", "--columns", "length,width")
    assert result.exit_code == 1
    assert "infoknife mi: no answer: length – width: odd\n" in result.stderr


def test_progress_names_the_pair(run: Run, flowers: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "FORCE_COLOR", "1")
    result = run("mi", flowers, "--all", "--columns", USED)
    assert "width – species" in result.stderr
    assert "–" not in result.stdout


# what is wrong


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "expected both --x and --y, or --all for every pair of columns"),
        (("--x", "length"), "expected both --x and --y"),
        (("--all", "--x", "length"), "--x does not go with --all; leave one of them out"),
        (("--all", "--given", "length"), "--given does not go with --all"),
        (("--all", "--json", "--pointwise"), "--pointwise does not go with --all"),
        (("--all", "--columns", "length"), "--all has length alone; expected two columns or more"),
        (("--all", "--columns", "length,q"), "--columns: flowers.csv has no column 'q'"),
        (
            ("--all", "--out", "no/pairs.csv"),
            "cannot write to no/pairs.csv: no such file or directory; choose another --out",
        ),
        (("--x", "length", "--y", "width", "--columns", "bees"), "--columns is for --all alone"),
        (("--x", "length", "--y", "width", "--out", "pairs.csv"), "--out is for --all alone"),
        (("--x", "length", "--y", "width", "--jobs", "2"), "--jobs is for --all alone"),
        (("--x", "length", "--y", "width", "--pointwise"), "--pointwise is for --json alone"),
        (("--x", "length", "--y", "width", "--given", "bees", "--permutations", "9"), "leave out --given"),
        (("--x", "length", "--y", "q"), "--y: flowers.csv has no column 'q'"),
    ],
)
def test_wrong_input(
    run: Run, flowers: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], expected: str
) -> None:
    monkeypatch.chdir(flowers.parent)
    result = run("mi", "flowers.csv", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert expected in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert engine.calls == []


# files as people have them


def test_semicolons_decimal_commas_and_notes(run: Run, tmp_path: Path, engine: Engine) -> None:
    rows = "".join(f"{i},5;{i}.{i % 10}00,25 €;2024-03-{1 + i % 28:02d}\n" for i in range(1, 41))
    (tmp_path / "pay.csv").write_text("age;pay;joined\n" + rows)
    result = run("mi", tmp_path / "pay.csv", "--x", "age,joined", "--y", "pay")
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        "infoknife mi: pay.csv: read as semicolon-separated with decimal commas",
        "infoknife mi: age: numbers with decimal commas",
        "infoknife mi: joined: dates, as days since 2024-03-01",
        "infoknife mi: pay: numbers with thousands separators, decimal commas and the currency €",
        "infoknife mi: joined is taken as rounded. If it has labels, say --discrete joined",
    ]
    assert engine.calls[0]["y"]["pay"][0] == 1100.25


def test_options_of_text(run: Run, tmp_path: Path, engine: Engine) -> None:
    (tmp_path / "a.csv").write_bytes("é:b\n".encode("cp437") + b"".join(b"%d,125:%d\n" % (i, i * i) for i in range(40)))
    options = ("--sep", ":", "--decimal", ",", "--encoding", "cp437", "--continuous", "b")
    assert run("mi", tmp_path / "a.csv", "--x", "é", "--y", "b", *options).exit_code == 0
    assert engine.calls[0]["x"]["é"][1] == 1.125
    assert engine.calls[0]["discrete"] == {"b": False}


@pytest.fixture
def gaps(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    rows = [
        f"{'' if i in (15, 20, 21) else a},{'NA' if i == 20 else b},{c}"
        for i, (a, b, c) in enumerate(generator.normal(size=(60, 3)))
    ]
    (tmp_path / "gaps.csv").write_text("\n".join(["age,pay,height", *rows]))
    return tmp_path / "gaps.csv"


def test_missing_values_are_counted(run: Run, gaps: Path, engine: Engine) -> None:
    result = run("mi", gaps, "--x", "age", "--y", "height")
    assert result.exit_code == 2
    assert result.stderr.startswith(
        "infoknife mi: age has missing values in 3 of 60 rows, the first in line 17. Say --missing drop to leave out"
    )
    assert engine.calls == []


def test_missing_values_are_left_out(run: Run, gaps: Path, engine: Engine) -> None:
    arguments = ("mi", gaps, "--x", "age", "--y", "height", "--missing", "drop")
    assert "3 of 60 rows left out: age has no value there" in " ".join(run(*arguments).stdout.split())
    assert run(*arguments, "--plot", gaps.parent / "picture.png").exit_code == 0
    content = json.loads(run(*arguments, "--json", "--pointwise").stdout)
    assert content["diagnostics"]["rows"] == len(content["pointwise"]) == len(content["pointwise_rows"]) == 57
    assert 20 not in content["pointwise_rows"]


def test_every_pair_leaves_out_its_own_rows(run: Run, gaps: Path, engine: Engine) -> None:
    out = gaps.parent / "pairs.csv"
    result = run("mi", gaps, "--all", "--missing", "drop", "--out", out)
    assert result.exit_code == 0
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [(row["rows"], row["note"].partition(" left out")[0]) for row in rows] == [
        ("57", "3 of 60 rows"),
        ("57", "3 of 60 rows"),
        ("59", "1 of 60 rows"),
    ]
    assert "infoknife mi: age has missing values in 3 of 60 rows, left out of its pairs" in result.stderr
    assert "infoknife mi: 3 pairs have notes, which are in --out and --json" in result.stderr
    result = run("mi", gaps, "--all")
    assert result.exit_code == 1
    assert "infoknife mi: left out: pay has missing values in 1 of 60 rows, the first in line 22" in result.stderr


def test_advice_can_be_obeyed(run: Run, tmp_path: Path, engine: Engine) -> None:
    """What notes say to add is added, word for word, and then there is nothing more to say."""
    names = ['"rooms, all"', "it's", "\x1b]0;x\x07", "size"]
    rows = [f"{i % 5},{i % 4},{i * i},{i / 7 + i % 3}" for i in range(60)]
    (tmp_path / "a.csv").write_text("\n".join([",".join(names), *rows]))
    for side in ("rooms, all", "it's", '"rooms, all",it\'s,\x1b]0;x\x07'):
        result = run("mi", tmp_path / "a.csv", "--x", side, "--y", "size")
        notes = [line for line in result.stderr.splitlines() if "taken as" in line]
        assert notes
        added = [word for line in notes for word in shlex.split(line.partition(", say ")[2])]
        again = run("mi", tmp_path / "a.csv", "--x", side, "--y", "size", *added)
        assert again.exit_code == 0
        assert again.stderr == ""
        assert engine.calls[-1]["discrete"].keys() == engine.calls[-1]["x"].keys()


def test_groups(run: Run, flowers: Path, engine: Engine) -> None:
    result = run("mi", flowers, "--x", "length", "--y", "width", "--groups", "species", "--permutations", 9)
    assert result.exit_code == 0
    assert all(set(call["groups"]) == {"rose", "lily", "iris"} for call in engine.calls)
    content = json.loads(run("mi", flowers, "--all", "--groups", "species", "--json").stdout)
    assert content["columns"] == ["length", "width", "bees", "same"]


def test_names_do_not_reach_the_terminal_raw(run: Run, flowers: Path, engine: Engine) -> None:
    flowers.write_text(flowers.read_text().replace("length", "\x1b]0;x\x07", 1).replace("width", "\u202ew", 1))
    for arguments in (
        ("--all", "--columns", "\x1b]0;x\x07,\u202ew,species"),
        ("--x", r"\x1b]0;x\x07", "--y", "\u202ew"),
        ("--x", "\x1b", "--y", "species"),
        ("--x", "x\ny", "--y", "species"),
        ("--x", "\x1b]0;x\x07", "--y", "species", "--json"),
    ):
        result = run("mi", flowers, *arguments)
        assert not set("\x1b\x07\u202e") & set(result.output)
        assert result.exit_code in (0, 2)
        assert result.exit_code == 0 or len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("ask", [("--all", "--columns"), ("--y", "species", "--x")])
def test_names_in_pictures_are_valid(run: Run, flowers: Path, engine: Engine, ask: tuple[str, ...]) -> None:
    flowers.write_text(flowers.read_text().replace("length", "a\x1b]0;x\x07", 1).replace("width", "b<&>", 1))
    plot = flowers.parent / "picture.svg"
    assert run("mi", flowers, *ask, "a\x1b]0;x\x07,b<&>", "--plot", plot).exit_code == 0
    ElementTree.parse(plot)
    assert not set("\x1b\x07") & set(plot.read_text())
    assert "<!-- b&lt;&amp;&gt; -->" in plot.read_text() or "b&lt;&amp;&gt;" in plot.read_text()


@pytest.mark.parametrize("option", ["--out", "--plot"])
def test_the_input_is_not_overwritten(run: Run, flowers: Path, engine: Engine, option: str) -> None:
    before, link = flowers.read_bytes(), flowers.parent / ("link.png" if option == "--plot" else "link.csv")
    os.link(flowers, link)
    result = run("mi", flowers, "--all", option, link)
    assert result.exit_code == 2
    assert f"{option} is {link}, the file that is read; choose another {option}" in result.stderr
    assert flowers.read_bytes() == before
    assert engine.calls == []


def test_outputs_are_whole_or_not_there(
    run: Run, flowers: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    out = flowers.parent / "matrix.csv"
    out.write_text("old")
    monkeypatch.setattr("os.fsync", full)
    for option, path in (("--out", out), ("--plot", flowers.parent / "heat.png")):
        result = run("mi", flowers, "--all", "--columns", USED, option, path)
        assert result.exit_code == 2
        assert "no space left on device" in result.stderr
    assert out.read_text() == "old"
    assert sorted(path.name for path in flowers.parent.iterdir()) == ["flowers.csv", "matrix.csv"]
