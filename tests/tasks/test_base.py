"""What all tasks share, on a few of them; and one table of what makes no task."""

import itertools
import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch
from scipy import stats

from infoknife import tasks
from infoknife.tasks import checks
from infoknife.tasks.base import BLOCK
from infoknife.tasks.judging import cases
from infoknife.tasks.relations import Relation

PAIR, CLASSES = tasks.GaussianPair(2, 0.5), tasks.GaussianClasses.draw(3, 2, seed=0)
CUBE = tasks.Independent(stats.uniform(-0.5, 1), 2)
PARTS = tasks.Components.draw(2, 2, seed=0, spread=1.0)
HALVES = torch.tensor([0.5, 0.5])


def test_seeds_repeat_and_generators_go_on() -> None:
    first, again = PAIR.sample(10, 7), PAIR.sample(10, 7)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    source = torch.Generator().manual_seed(7)
    (x, _), (more, _) = PAIR.sample(10, source), PAIR.sample(10, source)
    assert torch.equal(x, first[0])
    assert not torch.equal(more, x)


def test_dtypes_agree_to_rounding_and_classes_stay_integers() -> None:
    for task in (tasks.Student(3, df=2), tasks.UniformBall(4), CUBE):
        single, double = task.sample(50, 0), task.sample(50, 0, dtype=torch.float64)
        assert torch.equal(single, double.float())
        assert task.log_prob(single).dtype == torch.float32
        assert task.log_prob(double).dtype == torch.float64
    x, y = CLASSES.sample(100, 0, dtype=torch.float64)
    assert (x.dtype, y.dtype, y.shape) == (torch.float64, torch.int64, (100,))


def test_global_randomness_is_untouched() -> None:
    before = torch.get_rng_state()
    for name in ("mixture-8d", "moons", "triangles-8d", "laplace-8d", "bmi-bimodal-1x1", "bmi-student-2x2-df1"):
        tasks.get(name).sample(10, 0)
        assert tasks.get(name).error >= 0
    assert torch.equal(before, torch.get_rng_state())


def test_batches_are_fresh_and_endless() -> None:
    batches = list(itertools.islice(CUBE.batches(5, torch.Generator().manual_seed(0)), 4))
    assert [x.shape for (x,) in batches] == [(5, 2)] * 4
    assert len({float(x[0, 0]) for (x,) in batches}) == 4
    x, y = next(PAIR.batches(6, seed=0, dtype=torch.float64))
    assert (x.shape, y.shape, x.dtype) == ((6, 2), (6, 2), torch.float64)


def test_tasks_are_frozen_and_name_themselves() -> None:
    assert PAIR.name == repr(PAIR) == "GaussianPair(dim=2, rho=0.5)"
    assert tasks.GaussianPair(2, 0.5, name="mine").name == "mine"
    assert repr(tasks.Gaussian.standard(3)) == "Gaussian(covariance=<3x3>, scale=1.0)"
    with pytest.raises(FrozenInstanceError):
        PAIR.rho = 0.1  # type: ignore[misc]


def test_descriptions_and_parameters_tell_the_configuration() -> None:
    assert tasks.UniformBall(1).description.endswith("x has 1 column")
    assert tasks.EllipticalPair.dense(2, 3).description.endswith("x has 2 columns, y has 3 columns")
    assert CLASSES.description.endswith("x has 2 columns, y is one of 3 classes")
    assert tasks.Transformed(tasks.GaussianPair(1, 0.5), tasks.SwissRoll()).parameters == {
        "base": {"kind": "GaussianPair", "dim": 1, "rho": 0.5},
        "x_map": {"kind": "SwissRoll"},
        "y_map": {"kind": "Unbent"},
    }
    assert tasks.Gaussian.standard(2).parameters["covariance"] == [[1.0, 0.0], [0.0, 1.0]]


def test_oracles_work_in_blocks() -> None:
    x, y = PAIR.sample(BLOCK + 5, 0)
    assert torch.equal(PAIR.pointwise(x, y)[-5:], PAIR.pointwise(x[-5:], y[-5:]))


@pytest.mark.parametrize(
    "task",
    [
        tasks.Gaussian.of_condition(3, 20, seed=0),
        tasks.Student(2, df=3, scale=0.7),
        tasks.GaussianPair(3, 0.6),
        tasks.Transformed(tasks.GaussianPair(2, -0.5), tasks.Wiggly(((0.4, 1.0, 0.0),)), tasks.Power(3)),
    ],
    ids=repr,
)
def test_velocity_carries_the_gradient_of_the_truth(task: tasks.Task) -> None:
    rows = next(task.batches(100_000, 0, dtype=torch.float64))
    rows = tuple(one.requires_grad_() for one in rows)
    value = task.pointwise(*rows) if isinstance(task, tasks.PairTask) else -task.log_prob(*rows)  # type: ignore[attr-defined]
    slopes = torch.autograd.grad(value.sum(), rows)
    found = task.velocity(len(rows[0]), 0, dtype=torch.float64)
    velocities = found if isinstance(found, tuple) else (found,)
    moved = torch.stack([(s * v).sum(-1) for s, v in zip(slopes, velocities, strict=True)]).sum(0)
    assert abs(float(moved.mean()) - task.gradient()) < 4 * float(moved.std()) / len(moved) ** 0.5


def test_parameters_are_copied_and_normalised() -> None:
    sigma = torch.eye(2, dtype=torch.float64)
    task = tasks.Gaussian(sigma)
    sigma[0, 0] = 9
    assert torch.equal(task.covariance, torch.eye(2, dtype=torch.float64))
    weights = checks.probabilities(torch.full((3,), 1 / 3, dtype=torch.float32), "weights")
    assert weights.dtype == torch.float64
    assert float(weights.sum()) == pytest.approx(1, abs=1e-15)


BAD: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: PAIR.sample(0, 0), ValueError, "n is"),
    (lambda: PAIR.sample(True, 0), TypeError, "n is"),
    (lambda: CUBE.sample(2.0, 0), TypeError, "n is"),  # type: ignore[arg-type]
    (lambda: CUBE.sample(3, 0, dtype=torch.int64), TypeError, "dtype"),
    *((lambda seed=seed: PAIR.sample(3, seed), TypeError, "seed") for seed in (None, 1.0, True, "0")),
    (CUBE.mutual_information, ValueError, r"entropy\(\)"),
    (PAIR.entropy, ValueError, r"mutual_information\(\)"),
    (tasks.TwoMoons().gradient, ValueError, "parameter"),
    (lambda: tasks.TwoMoons().velocity(3, 0), ValueError, "parameter"),
    (lambda: PAIR.pointwise(torch.zeros(4, 3), torch.zeros(4, 2)), ValueError, "x has 3 columns"),
    (lambda: PAIR.log_prob(torch.zeros(4, 2), torch.zeros(3, 2)), ValueError, "y has 3 rows"),
    (lambda: CLASSES.pointwise(torch.zeros(2, 2), torch.tensor([0, 3])), ValueError, "y has classes"),
    (lambda: CUBE.log_prob(torch.full((1, 2), math.nan)), ValueError, "x"),
    *((lambda rho=rho: tasks.GaussianPair(2, rho), ValueError, "rho is") for rho in (-1.0, 1.0, 3.0, math.nan)),
    (lambda: tasks.UniformPair(0, 0.5), ValueError, "dim is 0"),
    *(
        (lambda nats=nats, family=family: family.of_information(20, nats), ValueError, "nats is")
        for nats in (-1.0, math.inf, math.nan)
        for family in (tasks.GaussianPair, tasks.UniformPair)
    ),
    (lambda: tasks.AdditiveUniform(0.0), ValueError, "epsilon"),
    *((lambda s=s: tasks.Student(1, 1, scale=s), ValueError, "scale") for s in (0.0, -1.0, math.nan, math.inf)),
    (lambda: tasks.Student(1, df=0), ValueError, "df is 0"),
    *(
        (lambda sigma=sigma: tasks.Gaussian(torch.as_tensor(sigma)), ValueError, "covariance")
        for sigma in (np.ones((2, 3)), np.ones(4), np.array([[1.0, 0.5], [0.2, 1.0]]), np.ones((2, 2)))
    ),
    (lambda: tasks.EllipticalPair.sparse(2, 5, pairs=3), ValueError, "pairs is 3"),
    (lambda: tasks.EllipticalPair(torch.eye(2), 2), ValueError, "x_columns is 2"),
    (lambda: tasks.EllipticalPair(torch.eye(2), 1, df=0.5), TypeError, "df"),
    (lambda: tasks.EllipticalPair.dense(2, 2, correlation=-0.5), ValueError, "dispersion"),
    (lambda: tasks.Independent(1), TypeError, "distribution"),
    (lambda: tasks.Independent(stats.poisson(1.0)), TypeError, "distribution"),
    (lambda: tasks.Independent(stats.laplace), TypeError, "distribution"),
    *(
        (lambda s=s: tasks.TriangleMixture(HALVES, torch.tensor(s)), ValueError, "scales")
        for s in ([0.5], [0.0, 0.5], [0.5, 1.1])
    ),
    *(
        (lambda w=w: tasks.TriangleMixture(torch.tensor(w), HALVES), ValueError, "weights")
        for w in ([0.5, 0.6], [1.0, 0.0], [1.5, -0.5], [], [[1.0]], [math.nan])
    ),
    (lambda: tasks.TwoMoons(0.001), ValueError, "noise"),
    (lambda: tasks.Rings(()), ValueError, "radii"),
    (lambda: tasks.Rings((1.0, -1.0)), ValueError, "radii"),
    (lambda: tasks.Components(HALVES, torch.zeros(3, 2), torch.eye(2).expand(2, -1, -1)), ValueError, "means"),
    (lambda: tasks.MixturePair(PARTS, x_columns=2), ValueError, "x_columns is 2"),
    *(
        (lambda family=family: family([]), TypeError, "parts")
        for family in (tasks.GaussianMixture, tasks.GaussianClasses, tasks.MixturePair)
    ),
    (lambda: tasks.Power(0.0), ValueError, "exponent"),
    (lambda: tasks.Wiggly(((0.4, 3.0, 0.0),)), ValueError, "waves"),
    (lambda: tasks.Spiral((1, 1)), ValueError, "plane"),
    (lambda: tasks.Spiral(-1), TypeError, "plane"),  # type: ignore[arg-type]
    (lambda: tasks.Rings(3.0), ValueError, "radii"),  # type: ignore[arg-type]
    (lambda: tasks.Wiggly(b"x"), TypeError, "waves"),  # type: ignore[arg-type]
    (lambda: tasks.get({"moons": 1}), TypeError, "name"),  # type: ignore[arg-type]
    (lambda: tasks.MixtureQuantile((0.5, 0.5), (1.0,)), ValueError, "means"),
    (lambda: tasks.MixtureQuantile((0.5, 0.6), (1.0, 2.0)), ValueError, "weights"),
    (lambda: tasks.Transformed(PAIR, tasks.SwissRoll()), ValueError, "one column"),
    (lambda: tasks.Transformed(PAIR, tasks.Unbent(), tasks.Spiral((1, 2))), ValueError, "plane"),
    (lambda: tasks.Transformed(CUBE, tasks.Asinh()), TypeError, "base"),  # type: ignore[arg-type]
    (lambda: tasks.Transformed(PAIR, 3), TypeError, "x_map"),  # type: ignore[arg-type]
    (lambda: tasks.Transformed(CLASSES, tasks.Asinh(), tasks.Asinh()), TypeError, "y_map"),
    (lambda: tasks.Staircase("none", (), 10), ValueError, "levels"),
    (lambda: tasks.Staircase("numbers", (1,), 10), TypeError, "levels"),  # type: ignore[arg-type]
    (lambda: tasks.Staircase.gaussian(steps_per_level=0), ValueError, "steps_per_level"),
    (lambda: tasks.get("gausian-1d"), ValueError, "'gaussian-1d'"),
    (lambda: Relation("cosine"), ValueError, "^kind is 'cosine'; expected one of"),
    (lambda: Relation("sine", copies=0), ValueError, "^copies is 0"),
    (lambda: Relation("sine", noise=0.0), ValueError, "^noise is 0.0"),
    (lambda: Relation("sine", seed=-1), ValueError, "^seed is -1"),
    (Relation("rounded").gradient, ValueError, "no parameter"),
    (lambda: cases()[0].sample(0, 0), ValueError, "n is"),
    (lambda: tasks.Gaussian.of_condition(1, 10.0, seed=0), ValueError, "dim is 1"),
]


@pytest.mark.parametrize(("make", "error", "named"), BAD)
def test_what_makes_no_task_is_refused(make: Callable[[], object], error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=named):
        make()
