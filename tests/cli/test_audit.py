import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infoknife import leakage
from infoknife.leakage import Audit, ClassLeak, Label, Probe
from infoknife.measure import Diagnostics, Estimate
from tests.cli.conftest import Run

PROBES = (
    Probe("linear", 0.8, 0.75, 0.01, 0.2, (0.7, 0.8), ({"C": 1.0},)),
    Probe("network", 0.7, 0.65, 0.01, -0.1, (0.6, 0.7), ({"alpha": 1.0},)),
)
ESTIMATE = Estimate(0.25, 0.01, "nats", "mutual information", np.ones(40), Diagnostics("densities", rows=40))
CLASSES = (ClassLeak("a", 20, 0.2, 0.7), ClassLeak("b", 20, 0.3, 0.8))
FOUND = Audit("s", 40, 2, ESTIMATE, 0.693, PROBES, 0.5, 0.5, CLASSES, notes=("One thing.",))


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
        label = Label("y", 0.69, 0.01, PROBES, 0.5, 0.5) if "y" in arguments else None
        return replace(FOUND, name=arguments["names"][0], label=label)


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
    assert result.stdout.startswith("s from the features of features.npz")
    said = " ".join(result.stdout.split())
    assert "linear 0.800 0.750 0.010 0.200" in said
    assert "without features 0.500 0.500 0.000" in said
    assert "y: linear reaches 0.750 (balanced; chance 0.500). Labels alone tell 0.010 nats about s." in said
    assert "A clear leak. An attacker who sees the features guesses s right 75 times in 100" in said
    assert said.endswith("Note: One thing. Page: features-audit.html")
    assert Path("features-audit.html").read_text().startswith("<!DOCTYPE html>")
    (call,) = fake.calls
    assert call["z"].shape == (40, 2)
    assert call["s"].tolist() == ["a", "b"] * 20
    assert call["y"].tolist() == [0, 1] * 20
    assert (call["folds"], call["seed"], call["names"]) == (4, 7, ("s", "y"))


def test_a_page_that_is_there_stays(run: Run, fake: Fake) -> None:
    page = Path("features-audit.html")
    page.write_text("mine")
    result = run("audit", "features.npz", "--private", "s")
    assert result.exit_code == 2
    assert "features-audit.html is there already; to replace it say --out features-audit.html" in result.stderr
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


def test_all_other_numbers_of_a_table(run: Run, fake: Fake) -> None:
    assert run("audit", "table.csv", "--private", "s", "--out", "a.html").exit_code == 0
    assert fake.calls[0]["z"].shape == (40, 2)
    assert "y" not in fake.calls[0]
    assert run("audit", "table.csv", "--private", "s", "--features", "two", "--out", "a.html").exit_code == 0
    assert fake.calls[1]["z"].shape == (40, 1)


def test_progress_is_on_stderr(run: Run, fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "FORCE_COLOR", "1")
    result = run("audit", "features.npz", "--private", "s")
    assert "linear, fold 1 of 3" in result.stderr
    assert "fold" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("table.csv", "--private", "q"), "--private: table.csv has no column 'q'"),
        (("table.csv", "--private", "one,two"), "--private names 2 columns; expected one"),
        (
            ("table.csv", "--private", "s", "--features", "one,s"),
            "--features has s, which is what they are audited for",
        ),
        (("table.csv", "--private", "s", "--features", "words"), "--features: words has no numbers"),
        (("nothing.npz", "--private", "s"), "nothing.npz does not exist"),
        (("table.csv", "--private", "s", "--out", "no/a.html"), "cannot write to no/a.html"),
    ],
)
def test_wrong_input(run: Run, fake: Fake, arguments: tuple[str, ...], expected: str) -> None:
    result = run("audit", *arguments)
    assert result.exit_code == 2
    assert expected in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert fake.calls == []


def test_a_file_without_features(run: Run, fake: Fake) -> None:
    Path("words.csv").write_text("s,t\n" + "a,b\n" * 12)
    result = run("audit", "words.csv", "--private", "s")
    assert result.exit_code == 2
    assert "words.csv has no numbers beside the classes; expected features. Name them by --features" in result.stderr


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("s has 2 rows of class 'b'"), "infoknife audit: --private s has 2 rows of class 'b'"),
        (TypeError("z has dtype object"), "infoknife audit: --features has dtype object"),
        (ImportError("an audit needs scikit-learn"), "infoknife audit: an audit needs scikit-learn"),
    ],
)
def test_what_an_audit_refuses(run: Run, fake: Fake, error: Exception, expected: str) -> None:
    fake.error = error
    result = run("audit", "features.npz", "--private", "s")
    assert result.exit_code == 2
    assert result.stderr.strip() == expected
    assert not Path("features-audit.html").exists()


def test_help_says_which_rows(run: Run) -> None:
    text = " ".join(run("audit", "--help").stdout.split())
    assert "Give rows that the encoder was not trained on" in text
    assert "infoknife audit features.npz --private sex" in text
