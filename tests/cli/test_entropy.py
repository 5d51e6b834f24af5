import json
import math
import os
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.fake_engine import Engine


def test_a_table(run: Run, flowers: Path, engine: Engine) -> None:
    result = run("entropy", flowers, "--columns", "length,width")
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout.startswith("h(length, width) of flowers.csv")
    for words in ("entropy", "95 % interval", "300 in 4 folds", "nats", "candidate mixture"):
        assert words in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    (call,) = engine.calls
    assert [*call["x"]] == ["length", "width"]
    assert call["discrete"] == {}
    assert call["given"] is None
    assert "discrete" not in result.stdout
    assert "continuous: 300 different values in 300 rows" in " ".join(result.stdout.split())
    assert {key: call[key] for key in ("method", "unit", "effort", "seed")} == {
        "method": "auto",
        "unit": "nats",
        "effort": "standard",
        "seed": 0,
    }


def test_options_reach_the_engine(run: Run, flowers: Path, engine: Engine) -> None:
    options = ("--unit", "bits", "--effort", "quick", "--method", "gaussian", "--seed", 5)
    result = run("entropy", flowers, "--columns", "length,species", "--given", "width,bees", *options)
    assert result.exit_code == 0
    assert result.stdout.startswith("h(length, species | width, bees) of flowers.csv")
    assert " bits" in result.stdout
    (call,) = engine.calls
    assert ([*call["x"]], [*call["given"]]) == (["length", "species"], ["width", "bees"])
    assert [call[key] for key in ("unit", "effort", "method", "seed")] == ["bits", "quick", "gaussian", 5]


def test_all_columns_that_are_not_given(run: Run, flowers: Path, engine: Engine) -> None:
    flowers.write_text("\n".join(line.rpartition(",")[0] for line in flowers.read_text().splitlines()))
    result = run("entropy", flowers, "--given", "species", "--continuous", "bees")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("h(length, width, bees | species)")
    assert engine.calls[0]["discrete"] == {"bees": False}


def test_discrete_entropies_have_a_capital(run: Run, flowers: Path, engine: Engine) -> None:
    result = run("entropy", flowers, "--columns", "species,bees")
    assert result.stdout.startswith("H(species, bees)")
    assert result.stderr == (
        "infoknife entropy: bees is taken as discrete. If it is a quantity, say --continuous bees\n"
    )


def test_json(run: Run, flowers: Path, engine: Engine) -> None:
    result = run("entropy", flowers, "--columns", "length,species", "--given", "width", "--json", "--seed", 3)
    content = json.loads(result.stdout)
    assert content["file"] == str(flowers)
    assert content["columns"] == {"x": ["length", "species"], "given": ["width"]}
    assert content["discrete"] == ["species"]
    assert (content["seed"], content["effort"]) == (3, "standard")
    assert content["interval"][0] < content["value"] < content["interval"][1]
    assert content["diagnostics"]["candidates"][0]["name"] == "gaussian"
    assert "pointwise" not in content


def test_json_with_pointwise_values(run: Run, flowers: Path, engine: Engine) -> None:
    result = run("entropy", flowers, "--columns", "length", "--json", "--pointwise")
    content = json.loads(result.stdout)
    assert len(content["pointwise"]) == 300
    assert sum(content["pointwise"]) / 300 == pytest.approx(content["value"])
    assert content["pointwise_rows"] == list(range(300))


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


def test_blocks_and_groups(run: Run, flowers: Path, engine: Engine) -> None:
    assert run("entropy", flowers, "--columns", "length", "--blocks", 20).exit_code == 0
    assert engine.calls[-1]["blocks"] == 20
    flowers.write_text(flowers.read_text().replace(",7", "").replace(",same", ""))
    result = run("entropy", flowers, "--groups", "bees", "--given", "width")
    assert result.stdout.startswith("h(length, species | width) of flowers.csv")
    assert len(set(engine.calls[-1]["groups"])) == 4


def test_progress_is_on_stderr_of_a_terminal(
    run: Run, flowers: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "FORCE_COLOR", "1")
    result = run("entropy", flowers, "--columns", "length")
    assert "half of it" in result.stderr
    assert "half of it" not in result.stdout


@pytest.mark.parametrize("name", ["picture.png", "picture.svg", "picture.PDF"])
def test_a_picture(run: Run, flowers: Path, engine: Engine, name: str) -> None:
    path = flowers.parent / name
    result = run("entropy", flowers, "--columns", "length", "--plot", path)
    assert result.exit_code == 0, result.stderr
    assert path.stat().st_size > 5000


# what is wrong


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("nothing.csv",), "nothing.csv does not exist"),
        (("flowers.csv", "--columns", "lenght"), "has no column 'lenght'; did you mean 'length'?"),
        (("flowers.csv", "--columns", "same"), "same is constant, 7 in every row"),
        (
            ("flowers.csv", "--columns", "species", "--continuous", "species"),
            "species has strings or categories but is declared continuous",
        ),
        (("flowers.csv", "--given", "length,width,species,bees,same"), "--given names all columns"),
        (("flowers.csv", "--method", "magic"), "--method is 'magic'; expected one of 'auto', 'independent'"),
        (("flowers.csv", "--pointwise"), "--pointwise is for --json alone; add --json"),
        (
            ("flowers.csv", "--plot", "picture.jpg"),
            "--plot is picture.jpg; expected a name that ends with .png, .svg or",
        ),
        (
            ("flowers.csv", "--plot", "no/picture.png"),
            "cannot write to no/picture.png: no such file or directory; choose",
        ),
    ],
)
def test_wrong_input(
    run: Run, flowers: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], expected: str
) -> None:
    monkeypatch.chdir(flowers.parent)
    result = run("entropy", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("infoknife entropy: ")
    assert expected in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("error", "code", "expected"),
    [
        (ValueError("method is 'q';\nexpected another"), 2, "method is 'q'; expected another"),
        (TypeError("width is odd"), 2, "width is odd"),
        (KeyboardInterrupt(), 130, "stopped"),
        (OSError(28, "No space left on device", "out.png"), 2, "out.png: no space left on device"),
        (OSError("odd"), 2, "a file: odd"),
        (RuntimeError("no memory"), 1, "measuring failed: RuntimeError: no memory"),
        (ZeroDivisionError("by zero"), 1, "measuring failed: ZeroDivisionError: by zero"),
        (MemoryError(), 1, "measuring failed: MemoryError"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_the_engine_fails(
    run: Run, flowers: Path, engine: Engine, error: BaseException, code: int, expected: str
) -> None:
    engine.error = lambda arguments: error
    result = run("entropy", flowers, "--columns", "length,width")
    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr.strip().rstrip(":") == f"infoknife entropy: {expected}"


def test_without_matplotlib(run: Run, flowers: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("entropy", flowers, "--plot", flowers.parent / "picture.png")
    assert result.exit_code == 2
    assert 'pip install "infoknife[plot]"' in result.stderr
