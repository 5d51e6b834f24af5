"""A run: a kill changes nothing, the best model is kept, and a folder says what it is of."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

from infoknife.paper.applications import run as module
from infoknife.paper.applications.run import (
    Facts,
    Run,
    RunResult,
    SelectionRule,
    random_states,
    read_model,
    read_results,
    run_folder,
    seeded,
    set_random_states,
    write_state,
)
from infoknife.paper.applications.settings import RunSettings
from tests.paper.applications.runs import KilledError, comparable, killer, same


@dataclass(frozen=True, kw_only=True)
class ToySettings(RunSettings):
    """A line through noise."""

    APPLICATION: ClassVar[str] = "toy"
    CHOICES: ClassVar[dict[str, tuple[str, ...]]] = {"method": ("knife", "none"), "select": ("best", "last", "never")}
    select: str = "best"
    steps: int = 10
    patience: int = 0

    @property
    def progress(self) -> int:
        return self.steps


class ToyRun(Run):
    """Adam on a line, with dropout, so that all random states matter."""

    MODULES = ("model", "optimizer")
    STATE = ("seen",)
    CURVES = ("step", "score", "never")
    RULES = (
        SelectionRule("best", "score", 1, "labels"),
        SelectionRule("last", "step", 1, "nothing"),
        SelectionRule("never", "never", -1, "what is never said"),
    )

    def __init__(self, settings: ToySettings, data: str = "data", scores: Any = None) -> None:
        super().__init__(settings, data, steps=settings.steps, every=3, device="cpu")
        self.settings, self.scores = settings, scores
        self.model = nn.Sequential(nn.Linear(2, 4), nn.Dropout(0.5), nn.Linear(4, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=settings.lr)
        self.rates = [settings.lr]
        self.seen = 0.0

    def loss(self) -> Tensor:
        x = torch.randn(8, 2, generator=self.generator)
        self.seen += x.sum().item()
        loss: Tensor = (self.model(x) - x.sum(1, keepdim=True)).square().mean()
        return loss

    def evaluate(self) -> Facts:
        self.model.eval()
        score = -self.model(torch.ones(1, 2)).square().sum().item()
        return {"score": score if self.scores is None else self.scores[self.step]}

    def should_stop(self) -> bool:
        return self.settings.patience > 0 and self.step - self.best["step"] >= self.settings.patience

    def finish(self) -> dict[str, Any]:
        self.restore()
        return {"best_step": self.best["step"], "seen": self.seen, "note": "<so>", "stopped": self.stopped}

    def test(self, rule: SelectionRule) -> dict[str, Any]:
        self.restore(rule)
        return {"weight": self.model.state_dict()["0.weight"].sum().item()}

    def save_model(self, folder: Path) -> None:
        write_state(folder / "model.pt", {"model": self.model.state_dict()})


def run(folder: Path | None = None, on_progress: Any = None, data: str = "data", **changes: Any) -> RunResult:
    settings = ToySettings(**changes)
    with seeded(settings.seed, "cpu"):
        return ToyRun(settings, data).run(folder, on_progress)


@pytest.mark.parametrize("at", [1, 3, 5, 9, 10])
def test_a_killed_run_ends_with_the_same_numbers(tmp_path: Path, at: int) -> None:
    state = torch.get_rng_state()
    with pytest.raises(KilledError):
        run(tmp_path, killer(at))
    steps: list[int] = []
    resumed = run(tmp_path, lambda step, facts: steps.append(step))
    assert steps == list(range(10 if at == 10 else at - at % 3, 10 + 1))[1:]
    whole, other = run(), run(seed=1)
    assert same(resumed.model, whole.model)
    assert comparable(resumed) == comparable(whole)
    assert not same(resumed.model, other.model)
    assert torch.equal(state, torch.get_rng_state())
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "index.html",
        "metrics.json",
        "model.pt",
        "settings.json",
    ]


def test_a_run_of_other_settings_or_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KilledError):
        run(tmp_path, killer(5))
    with pytest.raises(ValueError, match="other settings"):
        run(tmp_path, seed=1)
    with pytest.raises(ValueError, match="other data"):
        run(tmp_path, data="changed")
    assert same(run(tmp_path).model, run().model)


def test_a_checkpoint_of_another_version_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(module, "__version__", "0.0.1")
        with pytest.raises(KilledError):
            run(tmp_path, killer(5))
    with pytest.warns(UserWarning, match="0.0.1"):
        found = run(tmp_path)
    assert same(found.model, run().model)
    assert (tmp_path / "set-aside" / "checkpoint-0.0.1.pt").exists()


def test_results_are_read_again_and_those_of_another_version_are_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_results(tmp_path) is None
    results = run(tmp_path).results
    assert read_results(tmp_path) == results
    monkeypatch.setattr(module, "__version__", "9.9")
    with pytest.warns(UserWarning, match="set aside"):
        assert read_results(tmp_path) is None
    assert read_results(tmp_path) is None
    assert [path.name for path in (tmp_path / "set-aside").iterdir()] == [f"metrics-{module_version()}.json"]


def module_version() -> str:
    from infoknife._version import __version__

    return __version__


def test_the_folder_tells_all(tmp_path: Path) -> None:
    result = run(tmp_path, seed=3)
    assert json.loads((tmp_path / "settings.json").read_text())["seed"] == 3
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert (metrics["results"], metrics["curves"]) == (result.results, result.curves)
    assert metrics["identity"] == {"application": "toy", "settings": {"seed": 3}, "data": "data"}
    assert result.curves.keys() == {"step", "score"}, "a curve without numbers is left out"
    page = (tmp_path / "index.html").read_text()
    assert "&lt;so&gt;" in page
    assert "<so>" not in page
    assert "<svg" in page
    assert read_model(tmp_path)["model"].keys() == result.model.state_dict().keys()


def test_folders_have_names_for_people() -> None:
    one, other = (run_folder(Path("out"), ToySettings(), data) for data in ("a", "b"))
    assert one.name.startswith("toy-knife-")
    assert one != other
    assert one == run_folder(Path("out"), ToySettings(lr=1e-3), "a")


@pytest.mark.parametrize(
    ("patience", "scores", "best", "stopped"),
    [
        (0, {3: 0.5, 6: 0.9, 9: 0.1, 10: 0.3}, 6, 0),
        (0, {3: 0.5, 6: 0.5, 9: 0.5, 10: 0.5}, 3, 0),
        (3, {3: 0.5, 6: 0.4}, 3, 6),
        (6, {3: 0.5, 6: 0.4, 9: 0.3}, 3, 9),
    ],
)
def test_the_best_model_is_kept_and_patience_ends(
    patience: int, scores: dict[int, float], best: int, stopped: int
) -> None:
    toy = ToyRun(ToySettings(patience=patience), scores=scores)
    kept: dict[int, Tensor] = {}

    def remember(step: int, facts: Facts) -> None:
        kept[toy.stopped or step] = toy.model.state_dict()["0.weight"].clone()

    result = toy.run(None, remember)
    assert (result.results["best_step"], result.results["stopped"]) == (best, stopped)
    assert torch.equal(result.model.state_dict()["0.weight"], kept[best])
    assert result.curves["score"] == list(scores.values())


@pytest.mark.parametrize(("select", "best"), [("best", 6), ("last", 10), ("never", 10)])
def test_a_rule_says_which_model_is_kept(select: str, best: int) -> None:
    """Where the rule's fact is never known that is the last one; other rules keep their own."""
    toy = ToyRun(ToySettings(select=select), scores={3: 0.5, 6: 0.9, 9: 0.1, 10: 0.3})
    assert toy.run().results["best_step"] == best
    both = ToyRun(ToySettings(), scores={3: 0.5, 6: 0.9, 9: 0.1, 10: 0.3})
    both.rules = ToyRun.RULES
    both.train()
    assert {name: kept["step"] for name, kept in both.kept_models.items()} == {"best": 6, "last": 10, "never": 10}


def test_a_number_that_is_not_finite_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(FloatingPointError, match="loss of step"):
        run(lr=1e30)
    with pytest.raises(FloatingPointError, match="finite"):
        module.write_run_folder(tmp_path, {"application": "toy"}, {}, {"score": math.nan}, {"step": []})


@pytest.mark.parametrize("keep", [0, 200])
def test_a_damaged_checkpoint_is_named(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "checkpoint.pt"
    write_state(path, {"weight": torch.zeros(100)})
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"checkpoint\.pt"):
        run(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"model\.pt"):
        read_model(tmp_path)


def test_a_graphics_card_has_a_state_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a run that began without one can go on with one."""
    device, kept = torch.device("cuda"), torch.arange(3, dtype=torch.uint8)
    given: list[torch.Tensor] = []
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: kept)
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: given.append(state))
    states = random_states(device)
    assert len(states) == 2
    set_random_states(states, device)
    set_random_states(states[:1], device)
    set_random_states(states, torch.device("cpu"))
    assert [torch.equal(state, kept) for state in given] == [True]
