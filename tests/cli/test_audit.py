import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infoknife import leakage
from infoknife.leakage import Audit, Label
from tests.cli.conftest import Run
from tests.leakage.conftest import made, made_quantity

FOUND = made(0.75, 0.25, 0.01, name="s", notes=("One thing.",))
LABEL: dict[str, Any] = {"name": "y", "entropy": 0.69, "shared": 0.01, "majority": 0.5, "chance": 0.5}


class Fake:
    """An audit that answers at once, and keeps its arguments."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.error: Exception | None = None

    def __call__(self, **arguments: Any) -> Audit:
        self.calls.append(arguments)
        if self.error is not None:
            raise self.error
        arguments["progress"](0.5, "linear, fold 1 of 3")
        label = Label(**LABEL, probes=FOUND.probes) if "y" in arguments else None
        features = tuple(arguments["z"])
        return replace(FOUND, name=arguments["s"].name, label=label, features=features)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Fake:
    fake = Fake()
    monkeypatch.setattr(leakage, "audit", fake)
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    z, s = generator.normal(size=(40, 2)), np.tile(["a", "b"], 20)
    np.savez("features.npz", z=z, s=s, y=np.tile([0, 1], 20), other=z[:, 0])
    lines = [f"{a},{b},{c},text" for (a, b), c in zip(z, s, strict=True)]
    Path("table.csv").write_text("\n".join(["one,two,s,words", *lines]))
    return fake


def test_a_table_a_verdict_and_a_page(run: Run, fake: Fake) -> None:
    result = run("audit", "features.npz", "--private", "s", "--label", "y", "--folds", 4, "--seed", 7)
    assert result.exit_code == 0
    assert result.stdout.startswith("Probes of s")
    said = " ".join(result.stdout.split())
    assert "linear 75.0 % 75.0 % 1.0 % 0.250" in said
    assert "without features 50.0 % 50.0 % 0.000" in said
    assert "Fano, if no more leaks" in said
    assert "Probes of y" in said
    assert "y: the best probe is linear. The labels alone tell 0.010 nats about s." in said
    assert "A clear leak. An attacker who sees the features guesses s right 75 times out of 100" in said
    assert said.endswith("Note: One thing. Page: features-audit.html")
    assert Path("features-audit.html").read_text().startswith("<!DOCTYPE html>")
    (call,) = fake.calls
    assert len(call["z"]) == 2
    assert call["s"].data.tolist() == ["a", "b"] * 20
    assert call["y"].data.tolist() == [0, 1] * 20
    assert (call["folds"], call["seed"], call["discrete"], call["missing"]) == (4, 7, None, "error")


def test_a_page_that_is_there_stays(run: Run, fake: Fake) -> None:
    page = Path("features-audit.html")
    page.write_text("mine")
    result = run("audit", "features.npz", "--private", "s")
    assert result.exit_code == 2
    assert "features-audit.html exists already; to replace it say --out features-audit.html" in result.stderr
    assert fake.calls == []
    assert page.read_text() == "mine"
    assert run("audit", "features.npz", "--private", "s", "--out", page).exit_code == 0
    assert page.read_text() != "mine"


def test_json_and_nothing_else(run: Run, fake: Fake) -> None:
    content = json.loads(run("audit", "features.npz", "--private", "s", "--json").stdout)
    assert (content["private"], content["strongest"], content["file"]) == ("s", "linear", "features.npz")
    assert content["label"] is None
    assert not Path("features-audit.html").exists()
    content = json.loads(run("audit", "features.npz", "--private", "s", "--json", "--out", "a.html").stdout)
    assert Path("a.html").exists()


def test_all_other_columns_of_a_table(run: Run, fake: Fake) -> None:
    assert run("audit", "table.csv", "--private", "s", "--out", "a.html").exit_code == 0
    assert list(fake.calls[0]["z"]) == ["one", "two", "words"]
    assert "y" not in fake.calls[0]
    assert run("audit", "table.csv", "--private", "s", "--features", "two", "--out", "a.html").exit_code == 0
    assert list(fake.calls[1]["z"]) == ["two"]


@pytest.fixture
def people(fake: Fake) -> Fake:
    """A table with an identifier, a counter, a name, a gap and an age."""
    lines = [f"{7 * i},{i},person {i},{i % 23 + 20},{'' if i == 3 else i % 5},{'ab'[i % 2]}" for i in range(40)]
    Path("people.csv").write_text("\n".join(["key,row,name,age,group,s", *lines]))
    return fake


def test_identifiers_are_left_out_and_named(run: Run, people: Fake) -> None:
    result = run("audit", "people.csv", "--private", "s", "--missing", "drop")
    assert list(people.calls[0]["z"]) == ["age", "group"]
    said = " ".join(result.stdout.split())
    assert "2 features: age, group." in said
    assert (
        "Left out: key (looks like an identifier: its name says so, and nearly all its values are different)." in said
    )
    assert "Left out: name (looks like an identifier: all its values are different)." in said
    assert "Left out: row (looks like an identifier: it counts the rows)." in said
    assert "To include a column that looks like an identifier, name it in --features." in said
    assert "Left out: row (looks like an identifier" in Path("people-audit.html").read_text()
    content = json.loads(run("audit", "people.csv", "--private", "s", "--missing", "drop", "--json").stdout)
    assert content["features"] == ["age", "group"]
    assert content["left_out"]["row"] == "looks like an identifier: it counts the rows"
    run("audit", "people.csv", "--private", "s", "--features", "row,age", "--out", "a.html")
    assert list(people.calls[-1]["z"]) == ["row", "age"]


def test_kinds_and_missing_cells(run: Run, people: Fake) -> None:
    run("audit", "people.csv", "--private", "age", "--discrete", "age,group", "--missing", "category", "--json")
    call = people.calls[-1]
    assert (call["discrete"], call["missing"]) == (True, "category")
    assert call["z"]["group"].missing.tolist() == [i == 3 for i in range(40)]
    assert call["z"]["group"].data[4] == "4"
    run("audit", "people.csv", "--private", "age", "--continuous", "age", "--json")
    assert people.calls[-1]["discrete"] is False


def test_a_quantity(run: Run, people: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    found = made_quantity(0.36, 0.25, 0.01)
    label = Label(name="pay", entropy=math.nan, shared=0.2, probes=found.probes, majority=math.nan, chance=0.0)
    monkeypatch.setattr(leakage, "audit", lambda **_: replace(found, label=label))
    said = " ".join(run("audit", "people.csv", "--private", "age").stdout.split())
    assert "linear 36.0 % 1.0 % 1.00" in said
    assert "without features 0.0 % 1.25" in said
    assert "pay: the best probe is linear. The labels alone tell 0.200 nats about age." in said
    assert "An attacker who sees the features explains 36 % of the variance of age." in said


def test_names_are_safe(run: Run, fake: Fake) -> None:
    Path("odd.csv").write_text(
        "\n".join(["\x1b]0;pwned\x07,\x1b[31ms", *(f"{i / 7},{'ab'[i % 2]}" for i in range(40))])
    )
    result = run("audit", "odd.csv", "--private", "\x1b[31ms")
    assert result.exit_code == 0
    assert "\x1b" not in result.output + Path("odd-audit.html").read_text()


def test_the_page_is_never_the_input(run: Run, fake: Fake) -> None:
    before = Path("table.csv").read_bytes()
    result = run("audit", "table.csv", "--private", "s", "--out", "table.csv")
    assert result.exit_code == 2
    assert "--out is table.csv, the file that is read" in result.stderr
    assert Path("table.csv").read_bytes() == before


def test_progress_is_on_stderr(run: Run, fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "FORCE_COLOR", "1")
    result = run("audit", "features.npz", "--private", "s")
    assert "linear, fold 1 of 3" in result.stderr
    assert "fold" not in result.stdout
