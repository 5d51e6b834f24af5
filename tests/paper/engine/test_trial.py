"""Identity: what was set, and the data."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from infoknife.paper.engine import Trial
from infoknife.paper.engine.trial import digest
from infoknife.paper.experiments import get, select
from tests.paper.engine.tiny import tiny

numbers = st.integers(-1000, 1000) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(numbers | st.booleans() | st.none() | st.text(max_size=5), lambda v: st.lists(v, max_size=3))
arguments = st.dictionaries(st.text(max_size=5), values, min_size=1, max_size=5)
TINY = tiny()


def trial(settings: dict[str, Any], preset: str = "paper", name: str = "tiny") -> Trial:
    return Trial(tiny(name=name), preset, settings)


@given(arguments, st.randoms(use_true_random=False))
def test_the_order_of_arguments_does_not_matter(settings: dict[str, Any], random: Any) -> None:
    shuffled = list(settings.items())
    random.shuffle(shuffled)
    one, other = Trial(TINY, "paper", settings), Trial(TINY, "paper", dict(shuffled))
    assert (one, one.id, one.folder) == (other, other.id, other.folder)


@given(arguments, st.data())
def test_another_value_or_argument_is_another_trial(settings: dict[str, Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(settings)))
    other = data.draw(values.filter(lambda value: repr(value) != repr(settings[name])))
    ids = {Trial(TINY, "paper", s).id for s in (settings, {**settings, name: other}, {**settings, "longer": None})}
    assert len(ids) == 3


def test_experiment_preset_and_data_belong_to_the_identity(tmp_path: Path) -> None:
    settings = {"method": "knife", "seed": 0}
    trials = [trial(settings, preset, name) for name in ("a", "b") for preset in ("paper", "ours")]
    data = [Trial(TINY, "paper", settings, data) for data in (None, "one", "other")]
    assert len({trial.id for trial in (*trials, *data)}) == 7


def test_an_identity_is_for_ever() -> None:
    one = trial({"method": "knife", "dim": 10, "seed": 0, "steps": 200}, name="table1")
    assert one.folder == "table1-knife-5c924de70982eda9"


def test_the_data_of_a_trial_are_the_files_that_it_reads(tmp_path: Path) -> None:
    only: dict[str, Any] = {"pair": ["usps-mnist"], "method": ["knife"], "seed": [0]}

    def identity(name: str, content: bytes) -> str:
        (tmp_path / name).write_bytes(content)
        return select("table3", "cpu", data=tmp_path, only=only)[0].id

    first = identity("usps.npz", b"one")
    assert identity("svhn.npz", b"not read") == first
    assert identity("usps.npz", b"other") != first
    assert identity("usps.npz", b"one") == first
    assert digest([]) is None
    assert len({digest([tmp_path / name]) for name in ("usps.npz", "svhn.npz", "missing.npz")}) == 3


def test_later_changes_of_what_was_passed_do_not_matter() -> None:
    settings: dict[str, Any] = {"seed": 0, "nats": [2.0, 4.0]}
    one = trial(settings)
    settings["nats"].append(6.0)
    assert one.arguments == {"seed": 0, "nats": [2.0, 4.0]}
    assert one == trial({"seed": 0, "nats": (2.0, 4.0)})


@pytest.mark.parametrize(
    ("value", "error"),
    [
        *((value, ValueError) for value in (math.nan, [1.0, math.inf], {"deep": -math.inf})),
        (torch.tensor(1.0), TypeError),
    ],
)
def test_values_that_json_does_not_have(value: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="argument lr"):
        trial({"seed": 0, "lr": value})


@pytest.mark.parametrize(
    ("name", "settings", "title"),
    [
        ("table1", {"method": "doe", "dim": 64, "seed": 3}, "table1 doe d=64 #3"),
        ("tuba", {"method": "tuba", "staircase": "cubic", "seed": 3}, "tuba tuba cubic #3"),
        ("table2", {"method": "knife", "task": "rte", "train_size": 500}, "table2 knife rte n=500 #0"),
        ("table2", {"method": "knife", "task": "rte", "train_size": None}, "table2 knife rte #0"),
        ("table3", {"method": "doe", "source": "usps", "target": "mnist"}, "table3 doe usps-mnist #0"),
        ("fig4", {"method": "knife", "corpus": "dial-mention", "weight": 0.1}, "fig4 knife dial-mention λ=0.1 #0"),
        ("bench", {"method": "doe", "task": "moons", "n": 1000}, "bench doe moons n=1000 #0"),
    ],
)
def test_titles_are_for_people(name: str, settings: dict[str, Any], title: str) -> None:
    assert get(name).trial("quick", settings).title == title
