"""``infoknife train fair-text`` as a user meets it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from infoknife.cli import app
from infoknife.paper.applications import fair_text
from infoknife.paper.applications.fair_text import Learned, Settings
from infoknife.paper.engine import read_records
from tests.paper.applications.fair_text.tables import SECRET, cells, write

RESULTS = {
    **{"main_accuracy": 0.8312, "majority": 0.5, "private_accuracy": 0.5123, "private_chance": 0.5, "probe": "linear"},
    **{"leak": 0.012, "leak_interval": [0.0, 0.025], "truth": 0.27, "notes": ["a note"], "messages": ["a message"]},
}


class Engine:
    """A `learn` that answers at once."""

    def __init__(self) -> None:
        self.settings: list[Settings] = []
        self.where: dict[str, Any] = {}
        self.results: dict[str, Any] = dict(RESULTS)
        self.error: BaseException | None = None

    def learn(self, settings: Settings, **where: Any) -> Learned:
        self.settings.append(settings)
        self.where = where
        if self.error is not None:
            raise self.error
        where["tell"](settings.steps, {"main_accuracy": 0.83, "information": 0.01})
        return Learned(None, self.results, {"step": [1.0]})  # type: ignore[arg-type]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    fake = Engine()
    monkeypatch.setattr(fair_text, "learn", fake.learn)
    return fake


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write(tmp_path / "posts.csv", cells())


def train(out: Path, *options: object) -> Result:
    flags = ["train", "fair-text", "--out", str(out), "--threads", "1", *map(str, options)]
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, flags)


def complaint(result: Result) -> str:
    assert result.exit_code == 2
    assert result.stdout == ""
    return result.stderr.splitlines()[-1]


def test_without_options_texts_are_made_up(engine: Engine, tmp_path: Path) -> None:
    result = train(tmp_path / "out")
    assert result.exit_code == 0, result.output
    (settings,) = engine.settings
    assert settings == Settings.preset("cpu", "synthetic", "knife")
    (record,) = read_records(tmp_path / "out")
    folder = next((tmp_path / "out").glob("fig4-knife-*"))
    assert record["experiment"] == "fig4"
    assert result.stdout.splitlines() == [
        f"knife synthetic λ={settings.weight:g} #0: accuracies on texts that were not trained on",
        "  0.8312  of the label (the most frequent one: 0.5000)",
        "  0.5123  of the private attribute, balanced, by the strongest probe: linear (chance: 0.5000)",
        "I(features; private attribute) = 0.012 nats, 95 % from 0.000 to 0.025; a text itself tells 0.270",
        f"Model:    {folder / 'model.pt'}",
        f"Features: {folder / 'features.npz'}",
        f"Audit:    {folder / 'audit.html'}",
        f"Report:   infoknife report {tmp_path / 'out'}",
    ]
    assert "infoknife train fair-text: a note\ninfoknife train fair-text: a message\n" in result.stderr
    assert "main 0.83  MI 0.01" in result.stderr


def test_options_become_settings(engine: Engine, tmp_path: Path, table: Path) -> None:
    engine.results["truth"] = None
    columns = "--label mood --private age --text text --split split --strip word0 --strip word1 --balance"
    rest = (
        "--method doe --at-most 0.05 --encoder gru --steps 7 --batch-size 8 --lr 0.01 --features 5 --every 3 --seed 4"
    )
    result = train(tmp_path / "out", "--data", table, *columns.split(), *rest.split())
    assert result.exit_code == 0, result.output
    changes = {"label": "mood", "private": "age", "strip": ("word0", "word1"), "balance": True, "at_most": 0.05}
    numbers = {"encoder": "gru", "steps": 7, "batch_size": 8, "lr": 0.01, "features": 5, "every": 3}
    assert engine.settings == [Settings.preset("cpu", "own", "doe", 4, **changes, **numbers)]
    assert engine.where["data"] == table
    assert "doe own ≤0.05 #4" in result.stdout
    assert "a text itself" not in result.stdout


def test_a_known_corpus_needs_no_columns(engine: Engine, tmp_path: Path) -> None:
    columns = {"mention": cells()["mood"], "gender_male": cells()["age"]}
    path = write(tmp_path / "pan.csv", {**cells(), **columns})
    result = train(tmp_path / "out", "--data", path, "--corpus", "pan16-mention", "--lambda", 0.1)
    assert result.exit_code == 0, result.output
    assert (engine.settings[0].corpus, engine.settings[0].weight) == ("pan16-mention", 0.1)


def test_a_repository_of_the_hub(engine: Engine, tmp_path: Path) -> None:
    result = train(tmp_path / "out", "--hub", "some/posts", "--label", "mood", "--private", "age")
    assert result.exit_code == 0, result.output
    assert (engine.settings[0].hub, engine.where["data"]) == ("some/posts", None)


def test_the_same_command_again_reads_the_record(engine: Engine, tmp_path: Path) -> None:
    first, second = train(tmp_path / "out"), train(tmp_path / "out")
    assert second.stdout == first.stdout
    assert "this run is on record" in second.stderr
    assert len(engine.settings) == 1


def test_another_table_is_another_run(engine: Engine, tmp_path: Path, table: Path) -> None:
    own = ("--data", table, "--label", "mood", "--private", "age")
    train(tmp_path / "out", *own)
    write(table, cells(each=4))
    train(tmp_path / "out", *own)
    assert len(engine.settings) == 2
    files = {record["arguments"]["file"] for record in read_records(tmp_path / "out")}
    assert files == {"posts.csv"}
    train(tmp_path / "out", "--data", tmp_path, *own[2:])  # the folder of the same table
    assert len(engine.settings) == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--label mood", ("--label: of which table?", "--data PATH or --hub NAME")),
        ("--balance", ("--balance: of which table?",)),
        ("--data TABLE", ("what to learn and what to hide", "--label COLUMN", "dial-sentiment")),
        ("--data TABLE --label mood", ("give --label COLUMN and --private COLUMN",)),
        ("--hub some/posts", ("give --label COLUMN and --private COLUMN",)),
        ("--data TABLE --hub some/posts", ("--data and --hub are both given",)),
        ("--weight 1 --at-most 0.1", ("--weight and --at-most are both given",)),
        ("--corpus dial-mention --label mood", ("has its own columns; leave out --label",)),
        ("--corpus dial-mention", ("--corpus dial-mention: where are its texts?", "--data PATH")),
        ("--corpus synthetic --data TABLE", ("--corpus synthetic is made up; leave out --data",)),
        ("--corpus own", ("--corpus is 'own'; expected one of synthetic, dial-sentiment",)),
        ("--corpus dial-mention --data TABLE", ("there is no column", "'mention'", "'race'")),
        ("--data TABLE --label mood --private agee", ("there is no column 'agee'", "'age'")),
        ("--data TABLE --label age --private age", ("label and private are both the column 'age'",)),
        ("--data nowhere.csv --label a --private b", ("nowhere.csv does not exist",)),
        ("--data TABLE --label mood --private age --strip", ("strip has 'two words'", "expected one token")),
        ("--method dann", ("method is 'dann'", "'knife'")),
        ("--preset gpu", ("preset is 'gpu'", "'cpu'")),
        ("--fine-tune", ("fine_tune is True with encoder", "'minilm'")),
        ("--lr 0", ("lr is 0.0", "above 0")),
        ("--lambda -1", ("weight is -1.0", "at least 0")),
        ("--device gpu", ("device is 'gpu'; expected cpu, or cuda where there is one",)),
    ],
)
def test_bad_input_is_one_line(
    engine: Engine, tmp_path: Path, table: Path, options: str, words: tuple[str, ...]
) -> None:
    flags: list[object] = [table if flag == "TABLE" else flag for flag in options.split()]
    flags += ["two words"] if flags[-1] == "--strip" else []
    line = complaint(train(tmp_path / "out", *flags))
    assert all(word in line for word in words), line
    assert SECRET not in line
    assert not (tmp_path / "out").exists()
    assert not engine.settings


def test_a_failure_is_told(engine: Engine, tmp_path: Path) -> None:
    engine.error = FloatingPointError("the loss of step 3 is nan; a smaller lr may help")
    assert complaint(train(tmp_path / "out")) == (
        "infoknife train fair-text: the loss of step 3 is nan; a smaller lr may help"
    )


def test_an_interrupted_run_says_how_to_go_on(engine: Engine, tmp_path: Path) -> None:
    engine.error = KeyboardInterrupt()
    stopped = train(tmp_path / "out")
    assert stopped.exit_code == 130
    assert "stopped; the same command goes on from the last checkpoint" in stopped.stderr
    engine.error = None
    assert train(tmp_path / "out").exit_code == 0


def test_a_token_that_tells_the_label_is_a_note_and_no_warning(tmp_path: Path, engine: Engine) -> None:
    columns = cells(each=30)
    columns["text"] = [f"word {mood}" for mood in columns["mood"]]
    path = write(tmp_path / "posts.csv", columns)
    result = train(tmp_path / "out", "--data", path, "--label", "mood", "--private", "age")
    assert result.exit_code == 0, result.output  # warnings are errors here


def test_figure_4_is_run_and_printed(engine: Engine, tmp_path: Path) -> None:
    chosen = ("--methods", "none,knife", "--weights", "0,1", "--corpora", "synthetic", "--jobs", "1")
    flags = ["reproduce", "fig4", "--preset", "quick", "--out", str(tmp_path), *chosen]
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, flags)
    assert result.exit_code == 0, result.output
    assert [(s.method, s.weight) for s in engine.settings] == [("none", 0.0), ("knife", 1.0)]
    (row,) = [line for line in result.stdout.splitlines() if "KNIFE" in line]
    assert row.split() == ["KNIFE,", "autoregressive", "1", "seed", "–", "83.1", "/", "51.2"]


def test_the_application_itself(tmp_path: Path) -> None:
    """A small table from end to end: files are there, and no text is in what is said or kept as a record."""
    path = write(tmp_path / "posts.csv", cells(each=8))
    sizes = "--preset quick --steps 2 --every 1 --features 2 --batch-size 8 --method none"
    result = train(tmp_path / "out", "--data", path, "--label", "mood", "--private", "age", *sizes.split())
    assert result.exit_code == 0, result.output
    folder = next((tmp_path / "out").glob("fig4-none-*"))
    assert {"model.pt", "features.npz", "audit.html"} <= {path.name for path in folder.iterdir()}
    with np.load(folder / "features.npz") as arrays:
        assert arrays["z"].shape == (64, 2)
    (record,) = read_records(tmp_path / "out")
    assert SECRET not in result.output + str(record) + (folder / "audit.html").read_text(encoding="utf-8")
