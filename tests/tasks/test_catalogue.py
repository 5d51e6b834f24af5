"""Every task that has a name: shapes, oracle against truth, gradient against finite differences, published truths."""

import json
import math

import pytest
import torch
from torch import Tensor

from infoknife import tasks

NAMES = tasks.names()
WITH_GRADIENT = [name for name in NAMES if tasks.get(name).parameter is not None]
FORTY = tasks.beyond_normal()

# The true values in a public table of results (github.com/DimaTivator/MI-diffusion, README), 1.0 where nothing else
# stands here. It has no Swiss roll: that one embeds bmi-uniform-1x1.
PUBLISHED = dict.fromkeys(FORTY, 1.0) | {
    "bmi-normal-1x1": 0.4,
    "bmi-uniform-1x1": 0.4,
    "bmi-additive-0.1": 1.7,
    "bmi-additive-0.75": 0.3,
    "bmi-bimodal-1x1": 0.4,
    "bmi-wiggly-1x1": 0.4,
    "bmi-halfcube-1x1": 0.4,
    "bmi-student-1x1-df1": 0.2,
    "bmi-asinh-student-1x1-df1": 0.2,
    "bmi-swissroll-2x1": 0.4,
    "bmi-dense-2x2": 0.3,
    "bmi-dense-3x3": 0.4,
    "bmi-dense-5x5": 0.6,
    "bmi-dense-25x25": 1.3,
    "bmi-dense-50x50": 1.6,
    "bmi-student-2x2-df1": 0.4,
    "bmi-student-2x2-df2": 0.2,
    "bmi-student-3x3-df2": 0.3,
    "bmi-student-3x3-df3": 0.2,
    "bmi-student-5x5-df2": 0.4,
    "bmi-student-5x5-df3": 0.3,
    "bmi-asinh-student-2x2-df1": 0.4,
    "bmi-asinh-student-3x3-df2": 0.3,
    "bmi-asinh-student-5x5-df2": 0.4,
}


def oracle(task: tasks.Task, rows: tuple[Tensor, ...]) -> Tensor:
    if isinstance(task, tasks.PairTask):
        return task.pointwise(*rows)
    assert isinstance(task, tasks.EntropyTask)
    return -task.log_prob(*rows)


@pytest.mark.parametrize("name", NAMES)
def test_oracle_agrees_with_the_truth_and_shapes_are_as_declared(name: str) -> None:
    task = tasks.get(name)
    rows = next(task.batches(4000, seed=11))
    values = oracle(task, rows).double()
    standard_error = float(values.std()) / len(values) ** 0.5
    assert abs(float(values.mean()) - task.truth()) < 4 * standard_error + task.error + 1e-6
    assert task.error < 1e-3
    assert task.name == name
    assert json.loads(json.dumps(task.parameters, allow_nan=False))
    assert rows[0].shape == (4000, task.x_dim)
    if isinstance(task, tasks.PairTask):
        assert rows[1].shape == ((4000, task.y_dim) if task.y_classes is None else (4000,))
        assert (task.y_dim is None) != (task.y_classes is None)
    else:
        assert (task.y_dim, task.y_classes, len(rows)) == (None, None, 1)


def test_gradients_in_closed_form() -> None:
    for name, expected in (
        ("gaussian-8d-condition-100", 8.0),
        ("student-3d-df3", 3.0),
        ("laplace-8d", 8.0),
        ("ball-20d", 20.0),
        ("gaussian-1x1", 0.6 / (1 - 0.36)),
        ("cubic-20x20-4nats", 20 * math.sqrt(1 - math.exp(-0.4)) * math.exp(0.4)),
    ):
        assert tasks.get(name).gradient() == pytest.approx(expected, rel=1e-7), name


def test_names_are_unique_and_kept() -> None:
    assert len(NAMES) == len(set(NAMES)) >= 109
    assert sum(name.startswith("bmi-") for name in NAMES) == 40
    assert tasks.get("moons") is tasks.get("moons")
    assert {"gaussian-20x20-6nats", "cubic-20x20-6nats", "uniform-20x20-6nats", "cube-8d"} <= set(WITH_GRADIENT)


@pytest.mark.parametrize("name", PUBLISHED)
def test_truth_is_the_published_one(name: str) -> None:
    task, dims = FORTY[name], name.rsplit("-", 1)[-1]
    assert round(task.mutual_information(), 1) == PUBLISHED[name]
    assert task.error == 0
    assert "x" not in dims or dims == f"{task.x_dim}x{task.y_dim}"


def test_bends_are_the_benchmarks() -> None:
    u = FORTY["bmi-normal-1x1"].sample(100, 0, dtype=torch.float64)
    x, y = FORTY["bmi-wiggly-1x1"].sample(100, 0, dtype=torch.float64)
    assert torch.allclose(x, u[0] + 0.4 * u[0].sin() + 0.2 * (1.7 * u[0] + 1).sin() + 0.03 * (3.3 * u[0] - 2.5).sin())
    waves = -0.4 * (0.4 * u[1]).sin() + 0.17 * (1.3 * u[1] + 3.5).sin() + 0.02 * (4.3 * u[1] - 2.5).sin()
    assert torch.allclose(y, u[1] + waves)
    cdf = torch.special.ndtr
    x, y = FORTY["bmi-bimodal-1x1"].sample(100, 0, dtype=torch.float64)
    assert torch.allclose(0.3 * cdf(x) + 0.7 * cdf(x - 5), cdf(u[0]))
    assert torch.allclose(0.5 * cdf(y + 1) + 0.5 * cdf(y - 3), cdf(u[1]))


def test_spirals_turn_other_planes() -> None:
    x, y = FORTY["bmi-spiral-3x3"].sample(100, 0, dtype=torch.float64)
    u, v = FORTY["bmi-sparse-3x3"].sample(100, 0, dtype=torch.float64)
    assert torch.equal(x[:, 2], u[:, 2])
    assert torch.equal(y[:, 0], v[:, 0])
    angle = torch.atan2(x[:, 1], x[:, 0]) - torch.atan2(u[:, 1], u[:, 0]) - u.square().sum(-1) / 3
    assert torch.allclose(angle.cos(), torch.ones_like(angle))
