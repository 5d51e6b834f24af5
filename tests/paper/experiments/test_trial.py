import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from infoknife.paper.experiments import Trial

numbers = st.integers(-1000, 1000) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(numbers | st.booleans() | st.none() | st.text(max_size=5), lambda v: st.lists(v, max_size=3))
arguments = st.dictionaries(st.text(max_size=5), values, min_size=1, max_size=5)


@given(arguments, st.randoms(use_true_random=False))
def test_the_order_of_arguments_does_not_matter(settings: dict[str, Any], random: Any) -> None:
    shuffled = list(settings.items())
    random.shuffle(shuffled)
    one, other = Trial("table1", "paper", settings), Trial("table1", "paper", dict(shuffled))
    assert one == other
    assert one.id == other.id
    assert one.folder == other.folder


@given(arguments, st.data())
def test_another_value_is_another_trial(settings: dict[str, Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(settings)))
    other = data.draw(values.filter(lambda value: repr(value) != repr(settings[name])))
    assert Trial("table1", "paper", settings).id != Trial("table1", "paper", {**settings, name: other}).id


@given(arguments, st.text(min_size=6, max_size=8))
def test_one_more_argument_is_another_trial(settings: dict[str, Any], name: str) -> None:
    assert Trial("table1", "paper", settings).id != Trial("table1", "paper", {**settings, name: None}).id


def test_experiment_and_preset_belong_to_the_identity() -> None:
    settings = {"method": "knife", "seed": 0}
    trials = [Trial(name, preset, settings) for name in ("table1", "tuba") for preset in ("paper", "ours")]
    assert len({trial.id for trial in trials}) == 4


def test_an_identity_is_for_ever() -> None:
    trial = Trial("table1", "paper", {"method": "knife", "dim": 10, "seed": 0, "steps": 200})
    assert trial.id == "5c924de70982eda9"
    assert trial.folder == "table1-knife-5c924de70982eda9"


def test_later_changes_of_what_was_passed_do_not_matter() -> None:
    settings: dict[str, Any] = {"seed": 0, "nats": [2.0, 4.0]}
    trial = Trial("tuba", "paper", settings)
    before = trial.id
    settings["seed"] = 1
    settings["nats"].append(6.0)
    assert trial.id == before
    assert trial.arguments == {"seed": 0, "nats": [2.0, 4.0]}


def test_tuples_are_lists() -> None:
    assert Trial("tuba", "paper", {"nats": (2.0, 4.0)}) == Trial("tuba", "paper", {"nats": [2.0, 4.0]})


@pytest.mark.parametrize("value", [math.nan, math.inf, [1.0, math.nan], {"deep": -math.inf}])
def test_numbers_that_json_does_not_have(value: object) -> None:
    with pytest.raises(ValueError, match=r"argument lr is .*(nan|inf).*; expected finite numbers"):
        Trial("table1", "paper", {"seed": 0, "lr": value})


def test_values_that_json_does_not_have() -> None:
    with pytest.raises(TypeError, match=r"argument lr is tensor\(1.\); expected finite numbers"):
        Trial("table1", "paper", {"lr": torch.tensor(1.0)})


def test_steps_count_the_candidates() -> None:
    assert (
        Trial("a", "ours", {"steps": 1000, "candidates": ["mixture", "autoregressive"], "trial_steps": 200}).steps
        == 1400
    )
    assert Trial("a", "ours", {"steps": 1000}).steps == 1000
    assert Trial("a", "ours", {}).steps == 1


def test_epochs_are_counted_in_hundredths() -> None:
    assert Trial("table2", "cpu", {"epochs": 6}).steps == 600


def test_titles_are_for_people() -> None:
    assert Trial("table1", "paper", {"method": "doe", "dim": 64, "seed": 3}).title == "table1 doe d=64 #3"
    assert Trial("tuba", "paper", {"method": "tuba", "seed": 3}).title == "tuba tuba #3"
    pairs = {"method": "knife", "task": "rte", "seed": 3}
    assert Trial("table2", "cpu", {**pairs, "train_size": None}).title == "table2 knife rte #3"
    assert Trial("table2", "cpu", {**pairs, "train_size": 500}).title == "table2 knife rte n=500 #3"
    assert Trial("bench", "quick", {"method": "doe", "task": "moons", "n": 1000}).title == "bench doe moons n=1000 #0"


def test_trials_can_be_gathered_in_sets() -> None:
    assert len({Trial("a", "ours", {"seed": 0}), Trial("a", "ours", {"seed": 0}), Trial("a", "ours", {"seed": 1})}) == 2
