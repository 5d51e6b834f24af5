"""``infoknife train ib-text`` as a user meets it."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from infoknife.cli import app
from infoknife.paper.applications import ib_text, pretrained
from infoknife.paper.applications.ib_text import Settings
from infoknife.paper.applications.ib_text.train import Tuned
from infoknife.paper.engine import read_records
from infoknife.paper.experiments import table2
from tests.paper.applications.ib_text.sentences import SECRET, pairs, write

RESULTS: dict[str, Any] = {
    **{"f1": 0.8912, "accuracy": 0.8456, "score": 0.8684, "calibration_error": 0.0321},
    **{"relevance": 0.345, "information": 12.345, "information_vub": 13.5, "gap_mean": -0.4, "gap_most": 0.01},
    **{
        "best_epoch": 3.0,
        "epochs": 6,
        "test": {"f1": 0.88, "accuracy": 0.83, "score": 0.855, "calibration_error": 0.04},
    },
    **{"encoder_name": "all-MiniLM-L6-v2", "notes": ["cut 3 of 16 pairs to 128 tokens"], "messages": ["a message"]},
}


class Engine:
    """A `tune` that answers at once."""

    def __init__(self) -> None:
        self.settings: list[Settings] = []
        self.where: dict[str, Any] = {}
        self.results = dict(RESULTS)
        self.error: BaseException | None = None

    def tune(self, settings: Settings, **where: Any) -> Tuned:
        self.settings.append(settings)
        self.where = where
        if self.error is not None:
            raise self.error
        where["tell"](100 * settings.epochs, {"score": 0.868, "information": 12.3, "relevance": 0.3})
        (where["folder"] / "plane.png").touch()
        return Tuned(None, self.results, {"epoch": [1.0], "information": [float("nan")]})  # type: ignore[arg-type]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    fake = Engine()
    monkeypatch.setattr(ib_text, "tune", fake.tune)
    monkeypatch.setattr(pretrained, "tokenizer_of", lambda name: None)
    for check in (table2._check_pairs, table2._check_encoder):
        check.cache_clear()
    return fake


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write(tmp_path / "pairs.csv", pairs())


def train(out: Path, *options: object) -> Result:
    flags = ["train", "ib-text", "--out", str(out), "--threads", "1", *map(str, options)]
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, flags)


def complaint(result: Result) -> str:
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    return result.stderr.splitlines()[-1]


def test_a_task_of_glue(engine: Engine, tmp_path: Path, table: Path) -> None:
    result = train(tmp_path / "out", "--task", "mrpc", "--data", table)
    assert result.exit_code == 0, result.output
    assert engine.settings == [Settings.preset("cpu", "mrpc", "knife")]
    folder = next((tmp_path / "out").glob("table2-knife-*"))
    assert engine.where["folder"] == folder
    assert result.stdout.splitlines() == [
        "knife mrpc #0: per cent on validation pairs, with z at its mean, after epoch 3 of 6, the best",
        "   89.12  F1",
        "   84.56  accuracy",
        "    3.21  calibration error",
        "I(Z; X) is at most 12.345 nats (variational bound: 13.500); I(Z; Y) is at least 0.345 nats",
        f"Model:  {folder / 'model'}",
        f"Plane:  {folder / 'plane.png'}",
        f"Report: infoknife report {tmp_path / 'out'}",
    ]
    assert (
        "infoknife train ib-text: cut 3 of 16 pairs to 128 tokens\ninfoknife train ib-text: a message" in result.stderr
    )
    assert "score 0.868  MI 12.30  label 0.30" in result.stderr
    (record,) = read_records(tmp_path / "out")
    assert (record["experiment"], record["curves"]) == ("table2", {"epoch": [1.0]})  # no curve where there is none


def test_test_pairs_are_told_if_asked(engine: Engine, tmp_path: Path, table: Path) -> None:
    own = ("--task", "mrpc", "--data", table, "--test")
    assert "On test pairs: F1 88.00, accuracy 83.00, calibration error 4.00\n" in train(tmp_path / "out", *own).stdout
    assert engine.settings == [Settings.preset("cpu", "mrpc", "knife", test=True)]
    engine.results["test"] = None
    result = train(tmp_path / "other", *own)
    assert "On test pairs" not in result.stdout
    assert "infoknife train ib-text: there are no labelled test pairs" in result.stderr


def test_without_a_bottleneck_and_for_values(engine: Engine, tmp_path: Path) -> None:
    path = write(tmp_path / "values.csv", pairs(("1.5", "4.0")))
    engine.results = {"pearson": 0.9, "spearman": 0.8, "relevance": 0.5, "best_epoch": 1, "epochs": 2}
    result = train(tmp_path / "out", "--task", "STS-B", "--data", path, "--method", "none")
    assert result.exit_code == 0, result.output
    assert engine.settings[0].task == "stsb"
    assert result.stdout.splitlines()[1:4] == [
        "   90.00  Pearson correlation",
        "   80.00  Spearman correlation",
        "I(Z; Y) is at least 0.500 nats",
    ]


def test_options_become_settings(engine: Engine, tmp_path: Path, table: Path) -> None:
    flags = "--task rte --method doe --lambda 0.5 --train-size 8 --encoder some/folder --layers 3 --bottleneck 16"
    rest = (
        "--epochs 2 --patience 1 --batch-size 4 --accumulate 2 --lr 0.01 --head-lr 0.02 --precision bfloat16 "
        "--length 32 --seed 4 --preset paper"
    )
    result = train(tmp_path / "out", "--data", table, *flags.split(), *rest.split())
    assert result.exit_code == 0, result.output
    changes: dict[str, Any] = {"weight": 0.5, "train_size": 8, "encoder": "some/folder", "layers": 3, "bottleneck": 16}
    changes |= {"epochs": 2, "patience": 1, "batch_size": 4, "accumulate": 2, "lr": 0.01, "head_lr": 0.02}
    changes |= {"precision": "bfloat16", "length": 32}
    assert engine.settings == [Settings.preset("paper", "rte", "doe", 4, **changes)]
    assert engine.where["data"] == table
    assert result.stdout.startswith("doe rte n=8 #4: ")


def test_a_preset_is_undone_by_all(engine: Engine, tmp_path: Path, table: Path) -> None:
    flags = ("--data", table, "--task", "mrpc", "--preset", "quick", "--layers", "all", "--train-size", "all")
    assert train(tmp_path / "out", *flags).exit_code == 0
    assert engine.settings == [replace(Settings.preset("quick", "mrpc", "knife"), layers=None, train_size=None)]


def test_a_table_of_ones_own(engine: Engine, tmp_path: Path) -> None:
    cells = pairs(("good", "bad"))
    cells = {"mood": cells["label"], "one": cells["sentence1"], "two": cells["sentence2"], "part": cells["split"]}
    path = write(tmp_path / "posts.csv", cells)
    own = ("--data", path, "--label", "mood", "--first", "one", "--split", "part")
    for second in (("--second", "two"), ("--no-second",)):
        result = train(tmp_path / "out", *own, *second)
        assert result.exit_code == 0, result.output
    found = [settings.columns for settings in engine.settings]
    assert [(each.label, each.first, each.second, each.split) for each in found if each is not None] == [
        ("mood", "one", "two", "part"),
        ("mood", "one", None, "part"),
    ]
    assert {record["arguments"]["file"] for record in read_records(tmp_path / "out")} == {"posts.csv"}
    write(path, cells | {"mood": cells["mood"][::-1]})
    train(tmp_path / "out", *own, "--no-second")
    assert len(engine.settings) == 3  # another table is another run


def test_values_of_ones_own(engine: Engine, tmp_path: Path) -> None:
    path = write(tmp_path / "values.csv", pairs(("1.5", "40")))
    result = train(tmp_path / "out", "--data", path, "--label", "label", "--regression")
    assert result.exit_code == 0, result.output
    assert engine.settings[0].regression


def test_the_same_command_again_reads_the_record(engine: Engine, tmp_path: Path, table: Path) -> None:
    own = ("--task", "mrpc", "--data", table)
    first, second = train(tmp_path / "out", *own), train(tmp_path / "out", *own)
    assert second.stdout == first.stdout
    assert "this run is on record" in second.stderr
    assert len(engine.settings) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("", ("it is not said what to learn", "--task with one of mrpc, stsb, rte, or --label COLUMN")),
        ("--data TABLE", ("it is not said what to learn",)),
        ("--data TABLE --first one", ("it is not said what to learn",)),
        ("--task cola --data TABLE", ("--task is 'cola'; expected one of mrpc, stsb, rte; or give --label",)),
        ("--task own --label label --data TABLE", ("--task is 'own'",)),
        ("--task mrpc --label label --no-second", ("has its own columns; leave out --label, --no-second, or --task",)),
        ("--label label", ("--label: of which table? Give --data PATH or --hub NAME",)),
        ("--label label --second a --no-second --data TABLE", ("--second and --no-second are both given",)),
        ("--task mrpc --data TABLE --hub some/pairs", ("--data and --hub are both given",)),
        ("--task stsb --data TABLE --train-size 100", ("train_size is 100", "at most 8")),
        (
            "--task mrpc --data TABLE --train-size few",
            ("--train-size is 'few'; expected a whole number above 0, or all",),
        ),
        ("--task mrpc --data TABLE --layers 0", ("--layers is '0'; expected a whole number above 0, or all",)),
        ("--task mrpc --data nowhere.csv", ("nowhere.csv does not exist",)),
        ("--label mood --data TABLE", ("there is no column 'mood'", "'label'")),
        ("--label sentence1 --data TABLE", ("label and first are both the column 'sentence1'",)),
        ("--task mrpc --data TABLE --method dann", ("method is 'dann'", "'knife'")),
        ("--task mrpc --data TABLE --preset gpu", ("preset is 'gpu'", "'cpu'")),
        ("--task mrpc --data TABLE --lr 0", ("lr is 0.0", "above 0")),
        ("--task mrpc --data TABLE --lambda -1", ("weight is -1.0", "at least 0")),
        ("--task mrpc --data TABLE --precision half", ("precision is 'half'", "bfloat16")),
        ("--task mrpc --data TABLE --device gpu", ("device is 'gpu'; expected cpu, or cuda where there is one",)),
    ],
)
def test_bad_input_is_one_line(
    engine: Engine, tmp_path: Path, table: Path, options: str, words: tuple[str, ...]
) -> None:
    line = complaint(train(tmp_path / "out", *(table if flag == "TABLE" else flag for flag in options.split())))
    assert all(word in line for word in words), line
    assert SECRET not in line
    assert not (tmp_path / "out").exists()
    assert not engine.settings


def test_a_missing_encoder_is_told_before_anything_runs(
    engine: Engine, tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pretrained, "tokenizer_of", pretrained.located)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    line = complaint(train(tmp_path / "out", "--task", "mrpc", "--data", table))
    assert "the encoder minilm needs a package that is not installed; get it with: pip install" in line
    assert not engine.settings


def test_a_missing_library_is_told_with_the_way_out(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    line = complaint(train(tmp_path / "out", "--task", "mrpc"))  # from the hub
    assert "install it with: pip install datasets; or give another file or folder (--data PATH)" in line
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert "pip install 'infoknife[transformers]'" in complaint(train(tmp_path / "out", "--task", "rte"))


def test_a_failure_is_told(engine: Engine, tmp_path: Path, table: Path) -> None:
    engine.error = FloatingPointError("the loss of step 3 is nan; a smaller lr may help")
    assert complaint(train(tmp_path / "out", "--task", "mrpc", "--data", table)) == (
        "infoknife train ib-text: the loss of step 3 is nan; a smaller lr may help"
    )


def test_an_interrupted_run_says_how_to_go_on(engine: Engine, tmp_path: Path, table: Path) -> None:
    engine.error = KeyboardInterrupt()
    own = ("--task", "mrpc", "--data", table)
    stopped = train(tmp_path / "out", *own)
    assert stopped.exit_code == 130
    assert "stopped; the same command goes on from the last checkpoint" in stopped.stderr
    engine.error = None
    assert train(tmp_path / "out", *own).exit_code == 0


def reproduce(out: Path, data: Path, *options: str) -> Result:
    flags = ["reproduce", "table2", "--out", str(out), "--data", str(data), "--jobs", "1", *options]
    return CliRunner(env={"COLUMNS": "250"}).invoke(app, flags)


def test_table_2_is_run_in_parts_and_printed(engine: Engine, tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.csv", pairs(sizes={"train": 600, "dev": 4}))
    part = ("--preset", "cpu", "--tasks", "mrpc,rte", "--methods", "none,knife", "--train-sizes", "500")
    result = reproduce(tmp_path / "out", path, *part, "--seeds", "0")
    assert result.exit_code == 0, result.output
    assert [(s.task, s.method, s.train_size) for s in engine.settings] == [
        *(("mrpc", "none", 500), ("mrpc", "knife", 500), ("rte", "none", 500), ("rte", "knife", 500)),
    ]
    (row,) = [line for line in result.stdout.splitlines() if "KNIFE" in line]
    assert row.split() == ["KNIFE", "1", "seed", "89.1", "84.6", "84.6", "86.8"]
    reproduce(tmp_path / "out", path, "--preset", "cpu", "--tasks", "mrpc", "--train-sizes", "500,all", "--seeds", "0")
    assert [settings.train_size for settings in engine.settings[4:]] == [None] * 8 + [500] * 6  # two are on record


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--tasks", "cola"), "task is 'cola'; expected one of mrpc, stsb, rte"),
        (("--train-sizes", "few"), "train_sizes is 'few'; expected numbers, or all, as in 500,all"),
        (("--train-sizes", "200"), "train_size is 200; expected one of all, 500"),
    ],
)
def test_parts_that_do_not_exist(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    assert words in complaint(reproduce(tmp_path / "out", tmp_path, "--preset", "cpu", *options))
