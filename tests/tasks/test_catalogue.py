"""Every task of the catalogue: shapes, oracle against truth, gradient against finite differences."""

import json

import pytest
import torch
from torch import Tensor

from infoknife import tasks

NAMES = tasks.names()
WITH_GRADIENT = [name for name in NAMES if tasks.get(name).parameter is not None]


def truth(task: tasks.Task) -> float:
    return task.entropy() if isinstance(task, tasks.EntropyTask) else task.mutual_information()


def oracle(task: tasks.Task, n: int, seed: int, dtype: torch.dtype) -> Tensor:
    if isinstance(task, tasks.PairTask):
        return task.pointwise(*task.sample(n, seed, dtype=dtype))
    assert isinstance(task, tasks.EntropyTask)
    return -task.log_prob(task.sample(n, seed, dtype=dtype))


@pytest.mark.parametrize("name", NAMES)
def test_oracle_agrees_with_the_truth(name: str) -> None:
    task = tasks.get(name)
    values = oracle(task, 4000, seed=11, dtype=torch.float32).double()
    standard_error = float(values.std()) / len(values) ** 0.5
    assert abs(float(values.mean()) - truth(task)) < 4 * standard_error + task.error + 1e-6
    assert task.error < 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_shapes_are_as_declared(name: str) -> None:
    task = tasks.get(name)
    assert task.name == name
    assert json.loads(json.dumps(task.parameters))
    if isinstance(task, tasks.EntropyTask):
        x = task.sample(7, 0)
        assert (task.y_dim, task.y_classes) == (None, None)
    else:
        assert isinstance(task, tasks.PairTask)
        x, y = task.sample(7, 0)
        assert y.shape == ((7, task.y_dim) if task.y_classes is None else (7,))
        assert (task.y_dim is None) != (task.y_classes is None)
    assert x.shape == (7, task.x_dim)


@pytest.mark.parametrize("name", WITH_GRADIENT)
def test_gradient_is_the_slope_of_the_truth(name: str) -> None:
    task = tasks.get(name)
    slope = (truth(task._moved(1e-5)) - truth(task._moved(-1e-5))) / 2e-5
    assert task.gradient() == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_gradients_are_there() -> None:
    assert {"gaussian-20x20-6nats", "cubic-20x20-6nats", "uniform-20x20-6nats", "cube-8d"} <= set(WITH_GRADIENT)


def test_names_are_unique_and_kept() -> None:
    assert len(NAMES) == len(set(NAMES)) == 109
    assert sum(name.startswith("bmi-") for name in NAMES) == 40
    assert tasks.get("moons") is tasks.get("moons")


def test_unknown_names_get_the_closest_and_all() -> None:
    with pytest.raises(ValueError, match=r"no task 'gausian-1d'; did you mean 'gaussian-1d'\? There are: .*rings"):
        tasks.get("gausian-1d")
