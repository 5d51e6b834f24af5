"""``infoknife entropy`` and ``infoknife mi`` with an engine that answers at once: what reaches it, what is said."""

import csv
import json
import math
import os
import shlex
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.cli.conftest import Run
from tests.cli.fake_engine import Engine

USED = "length,width,species"


# one measurement


def test_entropy_as_a_table(run: Run, flowers: Path, engine: Engine) -> None:
    result = run("entropy", flowers, "--columns", "length,width")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("h(length, width) of flowers.csv")
    for words in ("entropy", "95 % interval", "300 in 4 folds", "nats", "candidate mixture"):
        assert words in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "continuous: 300 different values in 300 rows" in " ".join(result.stdout.split())
    (call,) = engine.calls
    assert ([*call["x"]], call["discrete"], call["given"]) == (["length", "width"], {}, None)
    usual = {"method": "auto", "unit": "nats", "effort": "standard", "seed": 0, "missing": "error", "blocks": None}
    assert {key: call[key] for key in usual} == usual


def test_mutual_information_as_a_table(run: Run, flowers: Path, engine: Engine) -> None:
    result = run("mi", flowers, "--x", "length,width", "--y", "species", "--given", "bees", "--unit", "bits")
    assert result.exit_code == 0
    assert result.stdout.startswith("I(length, width; species | bees) of flowers.csv")
    assert " bits" in result.stdout
    assert "independence" not in result.stdout
    (call,) = engine.calls
    assert [[*call[side]] for side in ("x", "y", "given")] == [["length", "width"], ["species"], ["bees"]]


def test_options_reach_the_engine(run: Run, flowers: Path, engine: Engine) -> None:
    options = ("--unit", "bits", "--effort", "quick", "--method", "gaussian", "--seed", 5, "--blocks", 20)
    result = run("entropy", flowers, "--columns", "length,species", "--given", "width,bees", *options)
    assert result.stdout.startswith("h(length, species | width, bees) of flowers.csv")
    (call,) = engine.calls
    assert ([*call["x"]], [*call["given"]]) == (["length", "species"], ["width", "bees"])
    assert [call[key] for key in ("unit", "effort", "method", "seed", "blocks")] == ["bits", "quick", "gaussian", 5, 20]


def test_all_columns_that_are_not_given(run: Run, flowers: Path, engine: Engine) -> None:
    flowers.write_text("\n".join(line.rpartition(",")[0] for line in flowers.read_text().splitlines()))
    result = run("entropy", flowers, "--given", "species", "--continuous", "bees")
    assert result.stdout.startswith("h(length, width, bees | species)")
    assert engine.calls[0]["discrete"] == {"bees": False}
    result = run("entropy", flowers, "--groups", "bees", "--given", "width")
    assert result.stdout.startswith("h(length, species | width) of flowers.csv")
    assert len(set(engine.calls[-1]["groups"].data)) == 4


def test_discrete_entropies_have_a_capital(run: Run, flowers: Path, engine: Engine) -> None:
    result = run("entropy", flowers, "--columns", "species,bees")
    assert result.stdout.startswith("H(species, bees)")
    assert result.stderr == (
        "infoknife entropy: bees is taken as discrete. If it is a quantity, say --continuous bees\n"
    )
    assert run("--quiet", "entropy", flowers, "--columns", "species,bees").stderr == ""


def test_json(run: Run, flowers: Path, engine: Engine) -> None:
    asked = ("entropy", flowers, "--columns", "length,species", "--given", "width", "--json", "--seed", 3)
    content = json.loads(run(*asked).stdout)
    assert content["file"] == str(flowers)
    assert content["columns"] == {"x": ["length", "species"], "given": ["width"]}
    assert (content["discrete"], content["seed"], content["effort"]) == (["species"], 3, "standard")
    assert content["interval"][0] < content["value"] < content["interval"][1]
    assert content["diagnostics"]["candidates"][0]["name"] == "gaussian"
    assert "pointwise" not in content
    content = json.loads(run(*asked, "--pointwise").stdout)
    assert sum(content["pointwise"]) / 300 == pytest.approx(content["value"])
    assert content["pointwise_rows"] == list(range(300))


def test_permutations(run: Run, flowers: Path, engine: Engine) -> None:
    arguments = ("mi", flowers, "--x", "length", "--y", "species", "--permutations", 99, "--seed", 4, "--blocks", 9)
    assert "p = 0.002 by 99 permutations" in run(*arguments).stdout
    assert [engine.calls[1][key] for key in ("permutations", "seed", "blocks")] == [99, 4, 9]
    test = json.loads(run(*arguments, "--json").stdout)["permutation_test"]
    assert test == {"p_value": 0.002, "statistic": 0.5, "permutations": 99}


def test_no_answer_is_told(run: Run, flowers: Path, engine: Engine) -> None:
    engine.value, engine.messages = math.nan, ("length has odd values",)
    path = flowers.parent / "picture.png"
    result = run("entropy", flowers, "--columns", "length", "--plot", path)
    assert result.exit_code == 1
    assert "no answer" in result.stdout
    assert "length has odd values" in result.stdout
    assert path.stat().st_size > 5000
    result = run("entropy", flowers, "--columns", "length", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["value"] is None


@pytest.mark.parametrize("name", ["picture.png", "picture.svg", "picture.PDF"])
@pytest.mark.parametrize("sides", [("length", "width"), ("species", "length"), ("species", "bees")])
def test_a_picture(run: Run, flowers: Path, engine: Engine, sides: tuple[str, str], name: str) -> None:
    path = flowers.parent / name
    assert run("mi", flowers, "--x", sides[0], "--y", sides[1], "--plot", path).exit_code == 0
    assert path.stat().st_size > 5000


# all pairs


def test_all_pairs(run: Run, flowers: Path, engine: Engine) -> None:
    out, plot = flowers.parent / "pairs.csv", flowers.parent / "heat.png"
    result = run("mi", flowers, "--all", "--columns", USED, "--out", out, "--plot", plot)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("Mutual information of columns of flowers.csv, in nats\n")
    _, head, *lines = [line.split() for line in result.stdout.splitlines()]
    assert head == ["column", "column", "nats", "±", "rows"]
    assert {call["effort"] for call in engine.calls} == {"quick"}
    rows = list(csv.DictReader(out.read_text().splitlines()))
    names = [("length", "width"), ("length", "species"), ("width", "species")]
    assert [(row["column_a"], row["column_b"]) for row in rows] == names
    assert sorted(tuple(line[:2]) for line in lines) == sorted(names)
    ranked = [float(line[2]) for line in lines]
    assert (
        ranked == sorted(ranked, reverse=True) == pytest.approx(sorted(float(r["value"]) for r in rows)[::-1], abs=5e-4)
    )
    assert (rows[0]["p_value"], rows[0]["rows"], rows[0]["note"]) == ("", "300", "")
    assert plot.stat().st_size > 5000


def test_all_pairs_go_on_where_they_stopped(run: Run, flowers: Path, engine: Engine) -> None:
    out = flowers.parent / "pairs.csv"
    asked = ("mi", flowers, "--all", "--columns", USED, "--out", out)
    run(*asked)
    whole = out.read_text()
    out.write_text("\n".join(whole.splitlines()[:2]) + "\n")
    engine.calls.clear()
    result = run(*asked)
    assert f"1 of 3 pairs are in {out} already" in result.stderr
    assert len(engine.calls) == 2
    assert out.read_text() == whole
    flowers.write_text(flowers.read_text().replace("rose", "tulip", 1))
    assert "already" not in run(*asked).stderr
    assert len(engine.calls) == 5


def test_all_pairs_show_what_they_have(
    run: Run, flowers: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CSV and the heat map of a run that was stopped before its last pair."""

    def stop(arguments: dict[str, Any]) -> Exception | None:
        if arguments["x"].name == "width":
            raise KeyboardInterrupt
        return None

    monkeypatch.setattr(sys.modules["infoknife.cli.mi"], "REDRAW", 0)
    engine.error = stop
    out, plot = flowers.parent / "pairs.csv", flowers.parent / "heat.png"
    assert run("mi", flowers, "--all", "--columns", USED, "--out", out, "--plot", plot).exit_code == 130
    assert len(out.read_text().splitlines()) == 1 + 2
    assert plot.stat().st_size > 5000


def test_pairs_are_screened(run: Run, flowers: Path, engine: Engine) -> None:
    result = run("mi", flowers, "--all", "--columns", "length,width,bees", "--screen", 0.01, "--json")
    assert "2 of 3 pairs show no dependence in bins and ranks; only the others are measured" in result.stderr
    assert len(engine.calls) == 1
    assert json.loads(result.stdout)["value"][0][2] == pytest.approx(0, abs=0.1)


def test_all_pairs_as_json(run: Run, flowers: Path, engine: Engine) -> None:
    options = ("--json", "--unit", "bits", "--effort", "thorough", "--jobs", 1, "--permutations", 9)
    content = json.loads(run("mi", flowers, "--all", "--columns", USED, *options).stdout)
    assert content["columns"] == ["length", "width", "species"]
    assert (content["unit"], content["effort"], content["failed"]) == ("bits", "thorough", [])
    assert content["value"][0][0] is None
    assert content["value"][0][1] == content["value"][1][0] > 0
    assert content["stderr"][0][1] > 0
    assert content["p_value"][0] == [None, 0.002, 0.002]
    assert {call["permutations"] for call in engine.calls if "permutations" in call} == {9}


def test_a_pair_that_fails_is_named_and_the_others_go_on(run: Run, flowers: Path, engine: Engine) -> None:
    def error(arguments: dict[str, Any]) -> Exception | None:
        is_it = [arguments["x"].name, arguments["y"].name] == ["length", "species"]
        return RuntimeError("no\nluck") if is_it else None

    engine.error = error
    result = run("mi", flowers, "--all", "--columns", USED)
    assert result.exit_code == 1
    assert result.stderr == "infoknife mi: no answer: length – species: no luck\n"
    assert len(engine.calls) == 3
    assert len(result.stdout.splitlines()) == 2 + 2


def test_columns_that_cannot_be_measured_are_left_out(run: Run, flowers: Path, engine: Engine) -> None:
    result = run("mi", flowers, "--all", "--json")
    assert result.exit_code == 1
    assert "infoknife mi: left out: same is constant" in result.stderr
    assert "infoknife mi: bees is taken as discrete. If it is a quantity, say --continuous bees" in result.stderr
    assert result.stderr.count("bees") == 2
    content = json.loads(result.stdout)
    assert content["columns"][-1] == "same"
    assert content["value"][-1] == [None] * 5
    assert [one["columns"] for one in content["failed"]] == [["same"]]
    assert len(engine.calls) == 6


def test_progress_is_on_stderr_of_a_terminal(
    run: Run, flowers: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "FORCE_COLOR", "1")
    for arguments, words in ((("entropy", flowers), "half of it"), (("mi", flowers, "--all"), "width – species")):
        result = run(*arguments, "--columns", USED)
        assert words in result.stderr
        assert words not in result.stdout
        assert words not in run("--quiet", *arguments, "--columns", USED).stderr


# what is wrong


@pytest.mark.parametrize(
    ("error", "code", "expected"),
    [
        (ValueError("method is 'q';\nexpected another"), 2, "method is 'q'; expected another"),
        (TypeError("width is odd"), 2, "width is odd"),
        (ImportError("it needs scikit-learn"), 2, "it needs scikit-learn"),
        (KeyboardInterrupt(), 130, "stopped"),
        (OSError(28, "No space left on device", "out.png"), 2, "out.png: no space left on device"),
        (OSError("odd"), 2, "odd"),
        (RuntimeError("no memory"), 1, "failed: RuntimeError: no memory"),
        (ZeroDivisionError("by zero"), 1, "failed: ZeroDivisionError: by zero"),
        (MemoryError(), 1, "failed: MemoryError"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_the_engine_fails(
    run: Run, flowers: Path, engine: Engine, error: BaseException, code: int, expected: str
) -> None:
    engine.error = lambda arguments: error
    result = run("entropy", flowers, "--columns", "length,width")
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.strip().rstrip(":") == f"infoknife entropy: {expected}"


def test_without_matplotlib(run: Run, flowers: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("entropy", flowers, "--plot", flowers.parent / "picture.png")
    assert result.exit_code == 2
    assert 'pip install "infoknife[plot]"' in result.stderr


# files as people have them


def test_columns_with_commas_and_arrays(run: Run, tmp_path: Path, engine: Engine) -> None:
    rows = "".join(f"{i / 7},{i * i}\n" for i in range(40))
    (tmp_path / "a.csv").write_text(f'size,"weight, kg"\n{rows}')
    assert run("mi", tmp_path / "a.csv", "--x", "weight, kg", "--y", "size").exit_code == 0
    assert run("entropy", tmp_path / "a.csv", "--columns", 'size,"weight, kg"').exit_code == 0
    assert [*engine.calls[-1]["x"]] == ["size", "weight, kg"]
    np.savez(tmp_path / "a.npz", x=np.random.default_rng(0).normal(size=(40, 3)), y=np.arange(5), z=np.arange(40))
    assert run("mi", tmp_path / "a.npz", "--x", "x", "--y", "z").exit_code == 0
    assert [*engine.calls[-1]["x"]] == ["x[0]", "x[1]", "x[2]"]
    result = run("mi", tmp_path / "a.npz", "--x", "x[1]", "--y", "y")
    assert "y has 5 rows; expected 40, as many as x" in result.stderr


def test_semicolons_decimal_commas_and_notes(run: Run, tmp_path: Path, engine: Engine) -> None:
    rows = "".join(f"{i},5;{i}.{i % 10}00,25 €;2024-03-{1 + i % 28:02d}\n" for i in range(1, 41))
    (tmp_path / "pay.csv").write_text("age;pay;joined\n" + rows)
    result = run("mi", tmp_path / "pay.csv", "--x", "age,joined", "--y", "pay")
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        "infoknife mi: pay.csv: read as semicolon-separated with decimal commas",
        "infoknife mi: age: numbers with decimal commas",
        "infoknife mi: pay: numbers with thousands separators, decimal commas and the currency €",
        "infoknife mi: joined is taken as rounded. If it has labels, say --discrete joined",
    ]
    assert "joined has dates: taken as days since 2024-03-01" in " ".join(result.stdout.split())
    assert engine.calls[0]["y"]["pay"].data[0] == 1100.25


def test_options_of_text(run: Run, tmp_path: Path, engine: Engine) -> None:
    (tmp_path / "a.csv").write_bytes("é:b\n".encode("cp437") + b"".join(b"%d,125:%d\n" % (i, i * i) for i in range(40)))
    options = ("--sep", ":", "--decimal", ",", "--encoding", "cp437", "--continuous", "b")
    assert run("mi", tmp_path / "a.csv", "--x", "é", "--y", "b", *options).exit_code == 0
    assert engine.calls[0]["x"]["é"].data[1] == 1.125
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


def test_missing_values(run: Run, gaps: Path, engine: Engine) -> None:
    arguments: tuple[object, ...] = ("mi", gaps, "--x", "age", "--y", "height")
    result = run(*arguments)
    assert result.exit_code == 2
    expected = (
        "infoknife mi: age has missing values in 3 of 60 rows, the first in line 17; expected none. missing='drop'"
    )
    assert result.stderr.startswith(expected)
    arguments = (*arguments, "--missing", "drop")
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
        assert (again.exit_code, again.stderr) == (0, "")
        assert engine.calls[-1]["discrete"].keys() == engine.calls[-1]["x"].keys()


def test_groups(run: Run, flowers: Path, engine: Engine) -> None:
    result = run("mi", flowers, "--x", "length", "--y", "width", "--groups", "species", "--permutations", 9)
    assert result.exit_code == 0
    assert all(set(call["groups"].data) == {"rose", "lily", "iris"} for call in engine.calls)
    content = json.loads(run("mi", flowers, "--all", "--groups", "species", "--json").stdout)
    assert content["columns"] == ["length", "width", "bees", "same"]


# hostile names and outputs


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
