"""The examples of the README and of the guide run, and give what they promise."""

import contextlib
import io
import json
import math
import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from infoknife import mi, mutual_information
from infoknife.cli import app
from infoknife.leakage import probes

ROOT = Path(__file__).parents[1]
README, GUIDE = ROOT / "README.md", ROOT / "docs" / "guide"


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def run(code: str, page: Path, names: dict[str, Any]) -> dict[str, Any]:
    """Execute a block as the next cell of its page, from a fixed seed that leaves the global state alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        exec(compile(code, page.name, "exec"), names)
    return names


def run_all(page: Path) -> dict[str, Any]:
    names: dict[str, Any] = {}
    for code in blocks(page):
        run(code, page, names)
    return names


def test_readme_measures(capsys: pytest.CaptureFixture[str]) -> None:
    run(blocks(README)[0], README, {})
    measured = [float(line.split()[0]) for line in capsys.readouterr().out.splitlines()]
    assert measured == pytest.approx([math.log(3) / 2, math.log(2 * math.pi * math.e)], abs=0.05)
    assert "log(3) / 2 = 0.549" in blocks(README)[0]
    assert "log(2 pi e) = 2.838" in blocks(README)[0]
    shown = re.findall(r"^(\S+) ± \S+ nats", README.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert measured == pytest.approx([float(value) for value in shown], abs=0.005)


def test_readme_trains() -> None:
    names = run(blocks(README)[1], README, {})
    generator = torch.Generator().manual_seed(1)
    x, noise = torch.randn(3000, 8, generator=generator), torch.randn(3000, 4, generator=generator)
    y, s = (x[:, 0] > 0).long(), (x[:, 0] + x[:, 1] > 0).long()
    with torch.no_grad():
        z = names["encoder"](x) + 0.1 * noise
        right = (names["head"](z).argmax(1) == y).float().mean()
    assert float(right) > 0.94
    assert (
        float(mutual_information(z, s, effort="quick", seed=0)) < 0.22
    )  # 0.25 without the term, 0.13 by the label; 0.16 on average
    assert all(parameter.grad is None for parameter in names["regularizer"].parameters())


def test_readme_measures_mutual_information(capsys: pytest.CaptureFixture[str]) -> None:
    run(blocks(README)[2], README, {})
    assert float(capsys.readouterr().out.split()[2]) == pytest.approx(math.log(2), abs=0.07)


def test_five_minutes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # the guide writes a CSV
    names = run_all(GUIDE / "start.md")
    shown = (GUIDE / "start.md").read_text(encoding="utf-8").split("```text\n")[1].split("```")[0]
    assert capsys.readouterr().out == shown
    assert names["encoder"].weight.grad is not None
    for correlation, nats in ((0.5, 0.14), (0.8, 0.51), (0.95, 1.16)):
        assert -math.log(1 - correlation**2) / 2 == pytest.approx(nats, abs=0.005)
    answer = CliRunner().invoke(app, ["mi", "homes.csv", "--x", "area", "--y", "price", "--effort", "quick", "--json"])
    assert json.loads(answer.stdout)["value"] == pytest.approx(names["answer"].value, abs=1e-6)


def test_guide_of_short_answers() -> None:
    names = run_all(GUIDE / "how-to.md")
    assert 0 < names["kept"][-1] < 10
    assert float(names["term"].detach()) < 0  # minus the entropy
    assert names["value"] < 10


def test_table_of_options() -> None:
    """Every option of the table is taken by the estimators in whose row it is."""
    page = GUIDE / "estimators.md"
    assert len(run_all(page)["estimators"]) == 6
    values: dict[str, Any] = {
        "preset": "paper",
        "hidden": 8,
        "given": "y",
        "ranks": False,
        "marginal_rate": 2.0,
        "density": "doe",
    }
    values |= {"components": 3, "critic": "separable", "layers": 2, "pairs": "batch", "momentum": 0.5, "tau": 1.0}
    values |= {"gradient": "nwj"}
    rows = re.findall(
        r"^\| ([^|]*) \| `(\w+)` \|", page.read_text(encoding="utf-8").split("## Options")[1], re.MULTILINE
    )
    named: list[str] = []
    for names, option in rows:
        named = re.findall(r"`([a-z-]+)`", names) or named
        for name in named if option in values and not names.startswith("all") else []:
            mi(name, 3, 2, **{option: values[option]})
    with pytest.raises(TypeError, match="colour is not an option of mi"):
        mi("knife", 3, 2, colour="blue")


def test_guide_to_the_mathematics() -> None:
    names = run_all(GUIDE / "mathematics.md")
    assert names["line"] == pytest.approx(0.668, abs=0.0005)
    assert names["plane"] == math.inf
    assert names["goes"]


@pytest.mark.slow
def test_guide_to_mutual_information() -> None:
    names = run_all(GUIDE / "information.md")
    assert names["value"] == pytest.approx(1.45, abs=0.1)
    assert 0.0 < names["stderr"] < 0.05
    assert names["h_class"] == pytest.approx(1.09, abs=0.03)
    assert names["curve"][-1] < 0.1
    z = names["code"](names["inputs"]).detach()
    both = torch.cat([z, names["secret"]], 1)
    assert float(torch.corrcoef(both.T)[2, :2].abs().max()) < 0.2
    assert float((names["task"](z) - names["wanted"]).square().mean().detach()) < 0.1
    assert names["i_z"] == pytest.approx(1.5 * math.log(2), abs=0.1)
    assert names["prior"] == pytest.approx(1.5, abs=0.1)


def test_guide_to_training(capsys: pytest.CaptureFixture[str]) -> None:
    curve = run_all(GUIDE / "train.md")["curve"]
    assert curve[0] < -1.0
    assert curve[-1] == pytest.approx(0.0, abs=0.2)  # uniform on the unit square


def test_guide_to_measuring() -> None:
    names = run_all(GUIDE / "measure.md")
    assert -0.02 < names["value"] < 0.2
    assert 0.0 < names["stderr"] < 0.02
    assert -0.02 < names["h"] < 0.2
    assert names["one"] == pytest.approx(0.67, abs=0.01)
    assert names["two"] == math.inf


def test_guide_to_conditions(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_all(GUIDE / "conditional.md")
    assert names["h_given"] == pytest.approx(0.726, abs=0.1)
    assert names["h_by_class"] == pytest.approx(1.419, abs=0.1)
    assert names["ones"].mean().item() == pytest.approx(4.0, abs=0.2)
    assert 0.7 < names["gain"].mean().item() < math.log(3)


def test_guide_to_starts(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_all(GUIDE / "starts.md")
    printed = float(capsys.readouterr().out.split()[-2])
    assert printed == pytest.approx(math.log(3) + math.log(2 * math.pi * math.e), abs=0.15)
    assert names["shift"] == pytest.approx(2 * math.log(1000), abs=1e-3)
    assert torch.allclose(names["back"], names["x"], atol=1e-4)


@pytest.fixture(scope="module")
def data() -> tuple[dict[str, Any], list[str]]:
    """The names and the printed lines of the guide to data, which is run once."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        names = run_all(GUIDE / "data.md")
    return names, printed.getvalue().splitlines()


def test_guide_to_data_reads_an_answer(data: tuple[dict[str, Any], list[str]]) -> None:
    names, _ = data
    shown = re.findall(r"^(\S+) ± (\S+) nats", (GUIDE / "data.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert (names["answer"].value, names["answer"].stderr) == pytest.approx(tuple(map(float, shown[0])), abs=0.005)
    assert (names["low"], names["high"]) == pytest.approx((0.31, 0.38), abs=0.01)
    assert names["low"] < math.log(2) / 2 < names["high"]
    assert names["gap"] / 2 <= names["correction"] * (1 + 1e-9)
    assert names["rows"].shape == (2000,)
    assert names["rows"].mean() == pytest.approx(float(names["answer"]))
    assert float(names["classes"]) == pytest.approx(1.585, abs=0.005)
    assert float(names["both"]) == pytest.approx(2.518, abs=0.05)
    assert float(names["told"]) == pytest.approx(0.28, abs=0.01)


def test_guide_to_data_shows_what_misfit_does(data: tuple[dict[str, Any], list[str]]) -> None:
    wavy = data[0]["wavy"]
    low, high = wavy.interval()
    assert float(wavy) < 1.9  # the truth is 2.118
    assert low < wavy < high == math.inf
    assert wavy.diagnostics.gap > 9 * wavy.stderr
    assert "too few samples for this dimension" in wavy.diagnostics.messages[0]


def test_guide_to_data_asks_more(data: tuple[dict[str, Any], list[str]]) -> None:
    names, printed = data
    assert float(names["alone"]) == pytest.approx(0.16, abs=0.01)
    assert float(names["beyond"]) == pytest.approx(0.0, abs=0.003)
    assert names["beyond"].stderr < 0.002
    assert float(names["like_correlation"]) == pytest.approx(0.707, abs=0.03)
    assert float(names["part"]) == pytest.approx(0.18, abs=0.01)
    assert names["dependent"].p_value == 0.01
    assert names["nothing"].p_value > 0.1
    assert float(names["bounded"]) == pytest.approx(-0.67, abs=0.01)
    assert names["most"] == pytest.approx(-0.48, abs=0.02)
    assert printed[0].startswith("inf the answer is probably inf: y is a smooth function of x")


def test_guide_to_scikit_learn() -> None:
    names = run_all(GUIDE / "scikit-learn.md")
    assert names["kept"].tolist() == [False, False, True]
    assert names["scores"][2] == pytest.approx(0.73, abs=0.05)
    assert names["right"] == pytest.approx(0.88, abs=0.02)
    assert names["both"] == pytest.approx([0.02, 0.65], abs=0.04)
    assert names["h"] == pytest.approx(2.838, abs=0.1)
    assert float(names["whole"]) == names["h"]


def test_guide_to_relations() -> None:
    names = run_all(GUIDE / "relations.md")
    assert names["late"] == 2
    assert float(names["forth"]) == pytest.approx(math.log(5) / 2, abs=0.1)
    assert float(names["back"]) == pytest.approx(0, abs=0.02)
    assert names["alone"].p_value == 0.01
    assert names["explained"].p_value > 0.05
    assert names["low"] < math.log(2) + 0.01
    assert names["nats"] == pytest.approx(math.log(2), abs=0.02)


@pytest.mark.filterwarnings("ignore:at least")
def test_guide_to_comparing() -> None:
    names = run_all(GUIDE / "compare.md")
    assert names["best"] == ("large", "small", "random")
    assert 0 < names["low"] < names["nats"] < names["high"]


def test_guide_to_infinity(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_all(GUIDE / "infinite.md")
    printed = capsys.readouterr().out.splitlines()
    assert "y is a smooth function of x" in printed[0]
    assert "1 follows from the others" in printed[1]
    assert names["h"] == pytest.approx(math.log(6), abs=0.1)
    assert names["h_x"] == pytest.approx(2.112, abs=0.15)


def test_guide_to_experiments(capsys: pytest.CaptureFixture[str]) -> None:
    run_all(GUIDE / "experiments.md")
    assert capsys.readouterr().out.split("\n") == ["[10, 64]", "3", ""]


@pytest.mark.slow
def test_guide_to_the_regularizer() -> None:
    names = run_all(GUIDE / "regularizer.md")
    assert abs(names["left"]) < 0.03
    assert abs(float(names["fresh"])) < 0.03
    assert names["error"] < 0.15
    assert abs(names["start"]) < 0.05
    assert names["told"][0]


@pytest.mark.slow
def test_guide_to_hiding_a_class() -> None:
    names = run_all(GUIDE / "hide-a-class.md")
    assert float(names["after"]) < 0.5 * float(names["before"])
    assert names["hidden_label"] > names["plain_label"] - 0.05
    assert names["seen"] < 0.52  # the larger class
    assert names["raw"] > 0.85
    assert names["left"] > 0.85  # nothing is promised of what is not linear
    assert float(names["rest"]) < 0.5 * float(names["before"])
    assert names["both_label"] > names["plain_label"] - 0.05


@pytest.mark.filterwarnings("ignore:The 'train_dataloader' does not have many workers")
@pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec.. is deprecated")
@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true but no accelerator")
def test_guide_to_the_integrations() -> None:
    names = run_all(GUIDE / "integrations.md")
    assert names["rounds"] == names["calls"] == 8


def test_guide_to_domain_adaptation(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_all(GUIDE / "domain-adaptation.md")
    assert capsys.readouterr().out == "['information', 'source_accuracy', 'step', 'target_accuracy']\n"
    assert names["adapted"].model(names["target"].test.x[:2]).shape == (2, 10)


@pytest.mark.slow
def test_guide_to_the_audit(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_all(GUIDE / "audit.md")
    shown = (GUIDE / "audit.md").read_text(encoding="utf-8").split("```text\n")[1].split("```")[0]
    assert capsys.readouterr().out.split() == shown.split()
    assert names["nats"] == pytest.approx(0.334, abs=0.01)
    assert names["low"] < names["nats"] < names["high"]
    assert names["reached"] == pytest.approx(0.84, abs=0.01)
    assert names["useful"] == pytest.approx(0.855, abs=0.01)
    assert names["reached"] < names["most"]
    assert names["least"] < 0.01
    assert set(names["by_class"]) == {"f", "m"}
    assert names["explained"] == pytest.approx(0.43, abs=0.03)
    assert names["missed"] == pytest.approx(13.6, abs=0.5)
    assert "<script" not in names["page"]


@pytest.mark.slow
def test_guide_to_fair_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "KINDS", probes.KINDS[:1])  # the audit has tests of its own
    names = run_all(GUIDE / "fair-text.md")
    assert names["right"] == pytest.approx(0.9, abs=0.02)
    assert names["leak"] == pytest.approx(0.01, abs=0.03)
    assert names["logits"].shape == (2, 2)
    assert float(names["left"]) < 0.1  # a few hundredths, from 0.24
    assert names["found"] == pytest.approx(0.95, abs=0.03)


@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true but no accelerator")
def test_guide_to_the_information_bottleneck() -> None:
    names = run_all(GUIDE / "information-bottleneck.md")
    assert names["right"] == 1.0
    assert 0.0 < names["compressed"] < 100.0
    assert names["logits"].argmax(1).tolist() == [0]  # bad
    assert names["found"].tolist() == [1, 0, 1, 0, 1, 0, 1, 0]
    codes = names["tokenizer"](["the tea"], ["was good"], return_tensors="pt")
    left, right = (names[name].eval()(**codes).logits for name in ("fresh", "again"))
    torch.testing.assert_close(left, right)
    assert names["mean"].grad.abs().sum() > 0


def test_guide_to_bringing_your_own(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("bring_your_own")  # a module, so that its classes can be pickled
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for code in blocks(GUIDE / "bring-your-own.md"):
        run(code, GUIDE / "bring-your-own.md", module.__dict__)
    assert capsys.readouterr().out.startswith(
        "check_density, mean: forward in eval mode differs from -log_prob(x).mean()"
    )


def test_every_guide_is_tried() -> None:
    tried = {"data.md", "scikit-learn.md", "measure.md", "train.md", "conditional.md", "starts.md", "infinite.md"}
    tried |= {"information.md", "experiments.md", "regularizer.md", "integrations.md", "domain-adaptation.md"}
    tried |= {"audit.md", "hide-a-class.md", "fair-text.md", "information-bottleneck.md", "bring-your-own.md"}
    tried |= {"relations.md", "compare.md", "start.md", "how-to.md", "mathematics.md", "estimators.md"}
    assert {page.name for page in GUIDE.glob("*.md") if blocks(page)} == tried


def test_readme_has_its_examples_and_the_commands() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(blocks(README)) == 3
    assert "make demo" in text
    assert "make test" in text


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (ROOT / link).exists()] == []
