"""Settings: the paper's numbers, presets, and what is refused."""

import json
from typing import Any

import pytest

from infoknife.paper.applications.fair_text import CORPORA, METHODS, PRESETS, Columns, Settings

OWN: dict[str, Any] = {"corpus": "own", "label": "mood", "private": "age"}


@pytest.mark.parametrize("method", METHODS)
def test_paper_preset_has_the_papers_numbers(method: str) -> None:
    settings = Settings.preset("paper", "dial-sentiment", method)
    assert (settings.encoder, settings.embedding, settings.features, settings.hidden) == ("gru", 128, 256, 256)
    assert (settings.steps, settings.batch_size, settings.lr, settings.warm_up) == (30_000, 128, 1e-4, 1000)
    assert (settings.dropout, settings.weight_decay, settings.noise) == (0.2, 0.01, 0.0)
    assert settings.select == "lowest-information"
    assert settings.estimator == ({"preset": "paper"} if method in {"knife", "doe"} else {})


@pytest.mark.parametrize("preset", ["cpu", "quick"])
def test_our_presets_weigh_knife_more(preset: str) -> None:
    settings = Settings.preset(preset, "synthetic", "knife")
    assert (settings.estimator, settings.weight) == ({}, 3.0)
    other = Settings.preset(preset, "synthetic", "mine")
    assert (other.estimator, other.weight) == ({}, 1.0)
    assert settings.encoder == other.encoder == "bag"


def test_quick_is_quicker() -> None:
    cpu, quick = (Settings.preset(name, "synthetic", "knife") for name in ("cpu", "quick"))
    assert quick.steps < cpu.steps
    assert quick.every <= quick.steps


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("corpus", ["synthetic", "dial-sentiment", "own"])
def test_arguments_are_json_and_come_back(preset: str, method: str, corpus: str) -> None:
    changes = {"label": "mood", "private": "age", "strip": ("rt", ":)"), "at_most": 0.1} if corpus == "own" else {}
    settings = Settings.preset(preset, corpus, method, seed=7, estimator={"components": 3}, **changes)
    arguments = json.loads(json.dumps(settings.arguments()))
    assert arguments == settings.arguments()
    assert Settings.of(arguments) == settings
    assert Settings.of(arguments | {"unknown": 1}) == settings


def test_changes_win_and_none_is_no_change() -> None:
    settings = Settings.preset("cpu", "synthetic", "knife", steps=7, lr=None, estimator=None)
    plain = Settings.preset("cpu", "synthetic", "knife")
    assert settings.steps == 7
    assert (settings.lr, settings.estimator) == (plain.lr, plain.estimator)


def test_options_of_the_estimator_are_added_to_the_presets() -> None:
    settings = Settings.preset("cpu", "synthetic", "knife", estimator={"components": 3})
    assert settings.estimator == {"components": 3}
    assert Settings.preset("cpu", "synthetic", "knife").estimator == {}, "the preset is as it was"


def test_settings_are_values() -> None:
    assert Settings(seed=1) == Settings(seed=1) != Settings(seed=2)
    assert hash(Settings(estimator={"components": 3})) == hash(Settings(estimator={"components": 3}))
    assert Settings(**OWN | {"strip": ["rt"]}).strip == ("rt",)


def test_arguments_are_apart_from_the_settings() -> None:
    settings = Settings(estimator={"components": 3})
    settings.arguments()["estimator"]["components"] = 4
    assert settings.estimator == {"components": 3}


def test_columns_are_those_of_the_corpus() -> None:
    assert Settings().columns is None
    for name, columns in CORPORA.items():
        assert Settings(corpus=name).columns == columns
    own = Settings(**OWN, text="tweet", split="part", strip=("rt",), balance=True)
    assert own.columns == Columns("mood", "age", "tweet", "part", ("rt",), True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"corpus": "foo"}, "corpus is 'foo'; expected one of 'synthetic'"),
        ({"method": "foo"}, "method is 'foo'; expected one of 'none'"),
        ({"schedule": "steep"}, "schedule is 'steep'; expected one of"),
        ({"select": "best"}, "select is 'best'; expected one of 'last'"),
        ({"encoder": "bert"}, "encoder is 'bert'; expected one of 'gru'"),
        *(
            ({name: 0}, f"{name} is 0; expected at least 1")
            for name in ("embedding", "features", "hidden", "steps", "batch_size", "every")
        ),
        *(
            ({name: value}, f"{name} is {value}; expected a part from 0 to less than 1")
            for name in ("dropout", "word_dropout", "average", "ramp")
            for value in (1.0, -0.1, float("nan"))
        ),
        *(
            ({name: -1}, f"{name} is -1; expected at least 0")
            for name in ("noise", "weight", "weight_decay", "warm_up", "at_most")
        ),
        ({"lr": 0.0}, "lr is 0.0; expected a number above 0"),
        ({"corpus": "own"}, "corpus is 'own' with label None and private None; expected both columns"),
        ({"corpus": "own", "label": "mood"}, "with label 'mood' and private None"),
        ({"label": "mood", "private": "age"}, "corpus is 'synthetic' with label 'mood' and private 'age'"),
        ({"fine_tune": True}, "fine_tune is True with encoder 'gru'; expected 'minilm', which is pretrained"),
    ],
)
def test_what_cannot_be_run_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Settings(**changes)


def test_counts_are_whole() -> None:
    with pytest.raises(TypeError, match=r"steps is 2\.5, a float; expected a whole number"):
        Settings(steps=2.5)  # type: ignore[arg-type]


def test_zero_is_no_limit_of_none() -> None:
    assert Settings(at_most=0.0, weight=0.0, noise=0.0, warm_up=0).at_most == 0.0
    assert Settings(encoder="minilm", fine_tune=True).fine_tune


def test_unknown_presets_are_refused() -> None:
    with pytest.raises(ValueError, match="preset is 'gpu'; expected one of 'paper'"):
        Settings.preset("gpu", "synthetic", "knife")
    with pytest.raises(ValueError, match="method is 'foo'"):
        Settings.preset("cpu", "synthetic", "foo")
