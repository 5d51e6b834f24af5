"""Settings: the paper's numbers, presets, and what is refused."""

import json
from typing import Any

import pytest

from infoknife.paper.applications.domain_adaptation import METHODS, PRESETS, Settings


@pytest.mark.parametrize("method", METHODS)
def test_paper_preset_has_the_papers_numbers(method: str) -> None:
    settings = Settings.preset("paper", "mnist", "mnistm", method)
    assert (settings.channels, settings.steps, settings.batch_size, settings.lr) == (64, 25_000, 128, 1e-3)
    assert (settings.size, settings.schedule, settings.sigma, settings.dropout) == (32, "constant", 1.0, 0.5)
    if method not in {"source-only", "dann"}:
        assert (settings.weight, settings.joint) == (0.1, True)


def test_knife_of_the_paper_has_its_kernels() -> None:
    assert Settings.preset("paper", "mnist", "mnistm", "knife").estimator["components"] == 128


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("preset", PRESETS)
def test_arguments_are_json_and_come_back(preset: str, method: str) -> None:
    settings = Settings.preset(preset, "usps", "mnist", method, seed=7)
    assert Settings.of(json.loads(json.dumps(settings.arguments()))) == settings


def test_changes_win_and_none_is_no_change() -> None:
    settings = Settings.preset("cpu", "usps", "mnist", "knife", steps=7, lr=None)
    assert settings.steps == 7
    assert settings.lr == Settings.preset("cpu", "usps", "mnist", "knife").lr


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "foo"}, "method is 'foo'; expected one of"),
        ({"schedule": "steep"}, "schedule is 'steep'; expected one of"),
        ({"steps": 0}, "steps is 0"),
        ({"every": 0}, "every is 0"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"channels": -1}, "channels is -1"),
        ({"size": 3}, "size is 3; expected at least 4 pixels"),
        ({"lr": 0.0}, "lr is 0.0 .* expected lr above 0"),
        ({"weight": -1.0}, "weight -1.0; expected"),
        ({"noise": -1.0}, "noise is -1.0"),
        ({"dropout": 1.0}, "dropout is 1.0; expected a part"),
    ],
)
def test_what_cannot_be_run_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Settings(**changes)


def test_unknown_presets_are_refused() -> None:
    with pytest.raises(ValueError, match="preset is 'gpu'; expected one of 'paper'"):
        Settings.preset("gpu", "usps", "mnist", "knife")
    with pytest.raises(ValueError, match="method is 'foo'"):
        Settings.preset("cpu", "usps", "mnist", "foo")
