"""Settings: the paper's numbers, presets, and what is refused."""

import json
from typing import Any

import pytest

from infoknife.paper.applications.ib_text import METHODS, PRESETS, TASKS, Columns, Settings

NAN = float("nan")


@pytest.mark.parametrize("method", METHODS)
def test_paper_preset_has_the_papers_numbers(method: str) -> None:
    settings = Settings.preset("paper", "mrpc", method)
    assert (settings.bottleneck, settings.samples, settings.layers, settings.pooling) == (144, 5, None, "first")
    assert (settings.epochs, settings.batch_size, settings.lr, settings.ramp) == (6, 32, 2e-5, 1.0)
    assert (settings.weight, settings.length) == (1e-5, 128)


def test_cpu_preset_learns_the_upper_layers() -> None:
    cpu, quick = (Settings.preset(name, "mrpc", "knife") for name in ("cpu", "quick"))
    assert (cpu.layers, cpu.bottleneck, cpu.encoder, cpu.dropout) == (2, 144, "minilm", 0.0)
    assert quick.epochs < cpu.epochs
    assert quick.train_size is not None
    assert cpu.train_size is None


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("task", [*TASKS, "own"])
def test_arguments_are_json_and_come_back(preset: str, method: str, task: str) -> None:
    changes: dict[str, Any] = {"label": "mood", "regression": True} if task == "own" else {}
    settings = Settings.preset(preset, task, method, seed=7, estimator={"some": 3}, **changes)
    arguments = json.loads(json.dumps(settings.arguments()))
    assert arguments == settings.arguments()
    assert Settings.of(arguments) == settings
    assert Settings.of(arguments | {"unknown": 1}) == settings


def test_changes_win_and_none_is_no_change() -> None:
    settings, plain = Settings.preset("cpu", "rte", "knife", epochs=7, lr=None), Settings.preset("cpu", "rte", "knife")
    assert settings.epochs == 7
    assert settings.lr == plain.lr


def test_settings_are_values() -> None:
    assert Settings(seed=1) == Settings(seed=1) != Settings(seed=2)
    assert hash(Settings(estimator={"components": 3})) == hash(Settings(estimator={"components": 3}))
    settings = Settings(estimator={"components": 3})
    settings.arguments()["estimator"]["components"] = 4
    assert settings.estimator == {"components": 3}


def test_columns_are_those_of_the_table() -> None:
    assert Settings().columns is None
    own = Settings(task="own", label="mood", first="tweet", second=None, split="part", regression=True)
    assert own.columns == Columns("mood", "tweet", None, "part", True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "qnli"}, "task is 'qnli'; expected one of 'mrpc'"),
        ({"method": "foo"}, "method is 'foo'; expected one of 'none'"),
        ({"pooling": "max"}, "pooling is 'max'; expected one of 'pair', 'mean'"),
        ({"precision": "float16"}, "precision is 'float16'; expected one of 'float32'"),
        *(
            ({name: 0}, f"{name} is 0; expected at least 1")
            for name in (
                "length",
                "bottleneck",
                "samples",
                "epochs",
                "batch_size",
                "accumulate",
                "train_size",
                "layers",
            )
        ),
        *(
            ({name: value}, f"{name} is {value}; expected a part from 0 to 1")
            for name in ("warm_up", "ramp", "dropout")
            for value in (1.5, -0.1, NAN)
        ),
        *(
            ({name: value}, f"{name} is {value}; expected at least 0")
            for name in ("weight", "weight_decay", "patience", "least_steps")
            for value in (-1, NAN)
        ),
        *(
            ({name: value}, f"{name} is {value}; expected a number above 0")
            for name in ("lr", "head_lr", "clip", "noise")
            for value in (0, -1.0, NAN)
        ),
        ({"task": "own"}, "task is 'own' with label None; expected a label column with task 'own'"),
        ({"label": "mood"}, "task is 'mrpc' with label 'mood'; expected a label column with task 'own'"),
    ],
)
def test_what_cannot_be_run_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Settings(**changes)


def test_counts_are_whole() -> None:
    with pytest.raises(TypeError, match=r"epochs is 2\.5, a float; expected a whole number"):
        Settings(epochs=2.5)  # type: ignore[arg-type]


def test_unknown_presets_are_refused() -> None:
    with pytest.raises(ValueError, match="preset is 'gpu'; expected one of 'paper'"):
        Settings.preset("gpu", "mrpc", "knife")
    with pytest.raises(ValueError, match="method is 'foo'"):
        Settings.preset("cpu", "mrpc", "foo")


def test_without_a_bottleneck_the_features_are_the_mean() -> None:
    """A linear head overfits on features of a pair: what suits it best is what it is compared by."""
    plain, bottleneck = (Settings.preset("cpu", "mrpc", method) for method in ("none", "knife"))
    assert (plain.pooling, bottleneck.pooling) == ("mean", "pair")
    assert Settings.preset("cpu", "mrpc", "none", pooling="pair").pooling == "pair"
