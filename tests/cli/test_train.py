"""``infoknife train`` as a user meets it: settings from options, a folder of its own, one line for what is wrong."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock
from typer.testing import CliRunner, Result

from infoknife.cli import app
from infoknife.paper.applications import fair_text, ib_text
from infoknife.paper.applications.domain_adaptation import load_model
from infoknife.paper.applications.domain_adaptation.train import AdaptationTrainer
from infoknife.paper.applications.fair_text import FairTextSettings
from infoknife.paper.applications.ib_text import BottleneckSettings
from infoknife.paper.applications.run import RunResult, write_run_folder
from tests.paper.applications.domain_adaptation.images import images
from tests.paper.applications.ib_text.sentences import pairs
from tests.paper.applications.tables_of_texts import SECRET, cells, write

FAIR = {
    **{"main_accuracy": 0.8312, "majority": 0.5, "private_accuracy": 0.5123, "private_chance": 0.5, "probe": "linear"},
    **{"leak": 0.012, "leak_interval": [0.0, 0.025], "truth": 0.27, "notes": ["a note"], "messages": ["a message"]},
}
BOTTLENECK = {
    **{"f1": 0.875, "accuracy": 0.8125, "score": 0.84, "calibration_error": 0.1, "best_epoch": 1, "epochs": 2},
    **{"information": 6.5, "information_vub": 9.0, "relevance": 0.3, "test": None, "notes": ["a note"]},
}


class Engine:
    """In place of ``learn`` or ``tune``: answers at once, and leaves what a run leaves."""

    def __init__(self, results: dict[str, Any]) -> None:
        self.settings: list[Any] = []
        self.results = dict(results)
        self.error: BaseException | None = None

    def __call__(self, settings: Any, *, folder: Path, on_progress: Any, device: str, **data: Any) -> RunResult:
        self.settings.append(settings)
        if self.error is not None:
            raise self.error
        on_progress(settings.progress, {"main_accuracy": 0.83, "information": 0.01})
        (found,) = data.values()
        write_run_folder(folder, settings.identity(found.digest), settings.arguments(), self.results, {"step": [1.0]})
        return RunResult(None, self.results, {})


@pytest.fixture
def learn(monkeypatch: pytest.MonkeyPatch) -> Engine:
    engine = Engine(FAIR)
    monkeypatch.setattr(fair_text, "learn", engine)
    return engine


@pytest.fixture
def tune(monkeypatch: pytest.MonkeyPatch) -> Engine:
    engine = Engine(BOTTLENECK)
    monkeypatch.setattr(ib_text, "tune", engine, raising=False)
    return engine


@pytest.fixture
def posts(tmp_path: Path) -> Path:
    return write(tmp_path / "posts.csv", cells())


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write(tmp_path / "mrpc.csv", pairs())


def train(application: str, out: Path, *options: object) -> Result:
    flags = ["train", application, "--out", str(out), "--threads", "1", *map(str, options)]
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, flags)


def complaint(result: Result) -> str:
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert SECRET not in result.output
    return result.stderr.splitlines()[-1]


# domain adaptation, for real


@pytest.fixture
def domains(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for name, background in (("dark", 0), ("light", 80)):
        first, second = images(60, background, 0), images(30, background, 1)
        x_train, x_test = (part.x.permute(0, 2, 3, 1).numpy() for part in (first, second))
        y_train, y_test = first.y.numpy(), second.y.numpy()
        np.savez(folder / f"{name}.npz", x_train=x_train, x_test=x_test, y_train=y_train, y_test=y_test)
    return folder


def adapt(domains: Path, *more: object, out: str = "out") -> Result:
    small = "--source dark --target light --preset quick --steps 4 --batch-size 8 --set every=2 --set channels=4"
    options = [*small.split(), "--set", "size=8", "--data", domains, *more]
    return train("domain-adaptation", domains.parent / out, *options)


def test_a_run_has_a_folder_of_its_own(domains: Path) -> None:
    result = adapt(domains)
    assert result.exit_code == 0, result.output
    (folder,) = (domains.parent / "out").iterdir()
    assert folder.name.startswith("domain-adaptation-knife-")
    settings, metrics = (json.loads((folder / name).read_text()) for name in ("settings.json", "metrics.json"))
    assert (settings["steps"], settings["channels"], settings["every"]) == (4, 4, 2)
    assert f"{metrics['results']['accuracy']:.4f}  best target validation" in result.stdout
    assert load_model(folder).head.out_features == 2
    assert str(folder / "index.html") in result.stdout
    assert "<svg" in (folder / "index.html").read_text()
    for word in ("knife, dark -> light", "src 0.", "tgt 0.", "MI "):
        assert word in result.stderr
    again = adapt(domains)
    assert again.stdout == result.stdout
    assert "has ended" in again.stderr


def test_changed_data_are_another_run(domains: Path) -> None:
    first = adapt(domains, "--method", "source-only")
    with np.load(domains / "light.npz") as file:
        arrays = dict(file)
    np.savez(domains / "light.npz", **arrays | {"x_train": arrays["x_train"][::-1]})
    second = adapt(domains, "--method", "source-only")
    assert first.exit_code == second.exit_code == 0
    assert "has ended" not in second.stderr
    assert len(list((domains.parent / "out").iterdir())) == 2


def test_an_interrupted_run_goes_on(domains: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = adapt(domains, "--method", "doe", out="whole")
    evaluate, looks = AdaptationTrainer.evaluate, []

    def interrupted(self: AdaptationTrainer) -> Any:
        looks.append(self.step)
        if len(looks) == 2:
            raise KeyboardInterrupt
        return evaluate(self)

    monkeypatch.setattr(AdaptationTrainer, "evaluate", interrupted)
    stopped = adapt(domains, "--method", "doe")
    assert stopped.exit_code == 130
    assert "goes on" in stopped.stderr
    assert adapt(domains, "--method", "doe").stdout == whole.stdout.replace("whole", "out")
    assert looks == [2, 4, 4]


def test_a_run_of_another_process(domains: Path) -> None:
    adapt(domains)
    (folder,) = (domains.parent / "out").iterdir()
    (folder / "metrics.json").unlink()
    with FileLock(folder / "lock"):
        assert "another process" in complaint(adapt(domains))


def test_tensorboard_gets_curves_and_health(domains: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert adapt(domains, "--tensorboard").exit_code == 0
    (folder,) = (domains.parent / "out").glob("*/tensorboard")
    events = EventAccumulator(str(folder)).Reload()
    assert [event.step for event in events.Scalars("target_accuracy")] == [2, 4]
    assert "regularizer/lag" in events.Tags()["scalars"]


def test_a_folder_that_cannot_be_written_is_named(domains: Path) -> None:
    (domains.parent / "file").write_text("")
    assert "cannot write to" in complaint(adapt(domains, out="file"))


# fair text


def test_without_options_texts_are_made_up(learn: Engine, tmp_path: Path) -> None:
    result = train("fair-text", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert learn.settings == [FairTextSettings.preset("cpu", "knife")]
    for word in ("0.8312  of the label", "0.5123  of the private", "0.012 nats, 95 % from 0.000 to 0.025", "0.270"):
        assert word in result.stdout
    assert "a note\ninfoknife train fair-text: a message" in result.stderr
    assert "main 0.83  MI 0.01" in result.stderr
    assert "has ended" in train("fair-text", tmp_path / "out").stderr
    assert "fair-text" in CliRunner().invoke(app, ["train", "--help"]).output
    assert len(learn.settings) == 1


def test_options_become_settings(learn: Engine, tmp_path: Path, posts: Path) -> None:
    columns = "--label mood --private age --text text --split split --strip word0 --strip word1 --balance"
    rest = "--method doe --at-most 0.05 --encoder gru --steps 7 --batch-size 8 --lr 0.01 --seed 4 --set features=6"
    more = ("--set", "estimator.preset=paper", "--set", "clean=true")
    result = train("fair-text", tmp_path / "out", "--data", posts, *columns.split(), *rest.split(), *more)
    assert result.exit_code == 0, result.output
    changes: dict[str, Any] = {"label": "mood", "private": "age", "strip": ("word0", "word1"), "balance": True}
    changes |= {"at_most": 0.05, "encoder": "gru", "steps": 7, "batch_size": 8, "lr": 0.01, "features": 6}
    changes |= {"estimator": {"preset": "paper"}, "clean": True}
    assert learn.settings == [FairTextSettings.preset("cpu", "doe", corpus="own", seed=4, **changes)]
    assert "doe, own, ≤0.05, seed 4" in result.stdout


def test_a_known_corpus_needs_no_columns(learn: Engine, tmp_path: Path) -> None:
    path = write(tmp_path / "pan.csv", {**cells(), "mention": cells()["mood"], "gender_male": cells()["age"]})
    result = train("fair-text", tmp_path / "out", "--data", path, "--corpus", "pan16-mention", "--lambda", 0.1)
    assert result.exit_code == 0, result.output
    assert (learn.settings[0].corpus, learn.settings[0].weight) == ("pan16-mention", 0.1)


def test_a_run_that_fails_says_why_and_runs_again(learn: Engine, tmp_path: Path) -> None:
    learn.error = FloatingPointError("the loss of step 3 is nan; a smaller lr may help")
    assert "the loss of step 3 is nan" in complaint(train("fair-text", tmp_path / "out"))
    learn.error = None
    assert train("fair-text", tmp_path / "out").exit_code == 0


# information bottleneck


def test_a_task_of_glue(tune: Engine, tmp_path: Path, table: Path) -> None:
    options = "--task MRPC --train-size 4 --layers all --epochs 3 --set head_lr=0.01 --set patience=2 --test"
    result = train("ib-text", tmp_path / "out", "--data", table, *options.split())
    assert result.exit_code == 0, result.output
    changes: dict[str, Any] = {"train_size": 4, "layers": None, "epochs": 3, "head_lr": 0.01, "patience": 2}
    assert tune.settings == [BottleneckSettings.preset("cpu", "knife", test=True, **changes)]
    for word in ("87.50  F1", "81.25  accuracy", "epoch 1 of 2", "I(Z; X) is at most 6.500 nats", "at least 0.300"):
        assert word in result.stdout
    assert "no labelled test pairs" in result.stderr


def test_columns_of_ones_own(tune: Engine, tmp_path: Path, table: Path) -> None:
    tune.results |= {"test": {"accuracy": 0.5}}
    options = "--label label --first sentence2 --no-second --regression --method vub --preset quick --train-size all"
    result = train("ib-text", tmp_path / "out", "--data", table, *options.split(), "--seed", 3)
    assert result.exit_code == 0, result.output
    (settings,) = tune.settings
    assert settings.columns == ib_text.PairColumns("label", "sentence2", None, "split", True)
    assert (settings.method, settings.train_size, settings.seed) == ("vub", None, 3)
    assert "On test pairs: accuracy 50.00" in result.stdout
