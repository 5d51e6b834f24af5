"""``infoknife train domain-adaptation`` as a user meets it."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from infoknife.cli import app
from infoknife.paper.applications.domain_adaptation import load_model
from infoknife.paper.engine import read_records
from tests.paper.applications.domain_adaptation.images import images

SMALL = {"steps": 4, "every": 2, "channels": 4, "size": 8, "batch-size": 8, "preset": "quick", "threads": 1}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for name, background in (("dark", 0), ("light", 80)):
        train, test = images(60, background, 0), images(30, background, 1)
        x_train, x_test = (part.x.permute(0, 2, 3, 1).numpy() for part in (train, test))
        y_train, y_test = train.y.numpy(), test.y.numpy()
        np.savez(folder / f"{name}.npz", x_train=x_train, x_test=x_test, y_train=y_train, y_test=y_test)
    return folder


def train(data: Path, *more: object, **changes: object) -> Result:
    options = {"source": "dark", "target": "light", "data": data, "out": data.parent / "out", **SMALL, **changes}
    flags = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    return CliRunner().invoke(app, ["train", "domain-adaptation", *flags, *map(str, more)])


def complaint(result: Result) -> str:
    assert result.exit_code == 2
    assert result.stdout == ""
    return result.stderr.splitlines()[-1]


def test_a_run_ends_with_numbers_a_record_and_a_model(data: Path) -> None:
    result = train(data, method="knife")
    assert result.exit_code == 0, result.output
    (record,) = read_records(data.parent / "out")
    assert f"{record['results']['accuracy']:.4f}  best target validation, step" in result.stdout
    assert f"{record['results']['last_accuracy']:.4f}  the last model" in result.stdout
    assert "I(class features; domain features) = " in result.stdout
    assert f"infoknife report {data.parent / 'out'}" in result.stdout
    assert record["experiment"] == "table3"
    (folder,) = (data.parent / "out").glob("table3-knife-*")
    assert load_model(folder).head.out_features == 2


def test_the_bar_tells_accuracies_and_information(data: Path) -> None:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, _flags(data))
    assert "knife dark-light #0" in result.stderr
    for word in ("src 0.", "tgt 0.", "MI "):
        assert word in result.stderr


def _flags(data: Path) -> list[str]:
    options = {"source": "dark", "target": "light", "data": data, "out": data.parent / "out", **SMALL}
    return ["train", "domain-adaptation", *(text for name, v in options.items() for text in (f"--{name}", str(v)))]


def test_the_same_command_again_reads_the_record(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = train(data, method="source-only")

    def never(*_: object, **__: object) -> None:
        raise AssertionError("this must not run")

    monkeypatch.setattr("infoknife.paper.applications.domain_adaptation.adapt", never)
    second = train(data, method="source-only")
    assert second.exit_code == 0
    assert second.stdout == first.stdout
    assert "this run is on record" in second.stderr


def test_an_interrupted_run_goes_on(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = train(data, method="doe", out=data.parent / "whole")
    from infoknife.paper.applications.domain_adaptation import train as training

    look, looks = training.Adapting.look, []

    def interrupted(self: training.Adapting) -> object:
        looks.append(self.step)
        if len(looks) == 2:
            raise KeyboardInterrupt
        return look(self)

    monkeypatch.setattr(training.Adapting, "look", interrupted)
    stopped = train(data, method="doe")
    assert stopped.exit_code == 130
    assert "stopped; the same command goes on from the last checkpoint" in stopped.stderr
    again = train(data, method="doe")
    assert looks == [2, 4, 4]
    assert again.stdout == whole.stdout.replace("whole", "out")


def test_tensorboard_gets_curves_and_health(data: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert train(data, "--tensorboard").exit_code == 0
    (folder,) = (data.parent / "out").glob("table3-knife-*/tensorboard")
    events = EventAccumulator(str(folder)).Reload()
    assert [event.step for event in events.Scalars("target_accuracy")] == [2, 4]
    assert "regularizer/lag" in events.Tags()["scalars"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method": "foo"}, ("method is 'foo'", "'source-only'", "'dann'")),
        ({"preset": "gpu"}, ("preset is 'gpu'", "'cpu'")),
        ({"source": "grey"}, ("there is no grey.npz", "dark.npz, light.npz")),
        ({"source": "light"}, ("source and target are both 'light'",)),
        ({"device": "gpu"}, ("device is 'gpu'; expected cpu, or cuda where there is one",)),
        ({"lr": 0}, ("lr is 0.0", "above 0")),
    ],
)
def test_bad_input_is_one_line(data: Path, changes: dict[str, object], words: tuple[str, ...]) -> None:
    line = complaint(train(data, **changes))
    assert all(word in line for word in words)
    assert not (data.parent / "out").exists()


def test_a_damaged_file_is_named(data: Path) -> None:
    (data / "light.npz").write_bytes((data / "light.npz").read_bytes()[:100])
    assert "light.npz: is truncated or no NPZ file" in complaint(train(data))


def test_a_folder_that_cannot_be_written_is_named(data: Path) -> None:
    (data.parent / "file").write_text("")
    assert "cannot write to" in complaint(train(data, out=data.parent / "file"))
