"""Relations: truths against integrals that know nothing of the library, oracles, rotations, parameters."""

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import i0e
from scipy.stats import norm

from infoknife.tasks import PairTask
from infoknife.tasks.relations import RELATIONS, Relation
from tests.tasks.conftest import Grid

Array = NDArray[np.float64]
KINDS = sorted(RELATIONS)
SMOOTH = [kind for kind in KINDS if Relation(kind).parameter is not None]
X = np.linspace(-6, 6, 801)
Y = np.linspace(-6, 6, 401)


def bell(e: Array, spread: Array | float = 1.0) -> Array:
    return np.asarray(np.exp(-0.5 * (e / spread) ** 2) / (spread * math.sqrt(2 * math.pi)))


def coin(y: Array, one: Array, other: Array, spread: float) -> Array:
    return 0.5 * bell(y - one, spread) + 0.5 * bell(y - other, spread)


GIVEN: dict[str, tuple[Callable[[Array, Array], Array], Array]] = {  # p(y | x) for a standard normal x, and a grid of y
    "chirp": (lambda x, y: bell(y - np.sin(x * np.abs(x)), 0.3), Y),
    "cross": (lambda x, y: coin(y, x, -x, 0.3), np.linspace(-8, 8, 401)),
    "cusp": (lambda x, y: bell(y - np.sqrt(np.abs(x)), 0.15), np.linspace(-1, 4, 301)),
    "fork": (lambda x, y: coin(y, np.maximum(x, 0), -np.maximum(x, 0), 0.2), np.linspace(-8, 8, 601)),
    "hills": (lambda x, y: bell(y - 2 * x**2 * np.exp(-(x**2) / 2), 0.2), np.linspace(-2, 4, 301)),
    "parabola": (lambda x, y: bell(y - x**2, 0.3), np.linspace(-3, 40, 1001)),
    "sine": (lambda x, y: bell(y - np.sin(2 * x), 0.3), Y),
    "spread": (lambda x, y: bell(y, 0.1 + np.abs(x)), np.linspace(-30, 30, 1501)),
    "switch": (
        lambda x, y: (
            (bell(y - 1.5, 0.4) + np.exp(-4 * np.sin(2 * x)) * bell(y + 1.5, 0.4)) / (1 + np.exp(-4 * np.sin(2 * x)))
        ),
        Y,
    ),
    "waves": (lambda x, y: bell(y - np.sin(8 * x), 0.3), Y),
    "wobble": (lambda x, y: bell(y - np.sin(3 * x), 0.1 + 0.3 * np.abs(x)), np.linspace(-12, 12, 801)),
}


def entropy(p: Array, cell: float) -> float:
    return float(-np.sum(p * np.log(np.maximum(p, 1e-300))) * cell)


def normal_entropy(spread: float, dim: int = 1) -> float:
    return 0.5 * dim * math.log(2 * math.pi * math.e * spread**2)


@pytest.mark.parametrize("kind", GIVEN)
def test_truth_by_a_grid(kind: str, grid_information: Grid) -> None:
    given, y = GIVEN[kind]
    expected = grid_information(lambda x, y: bell(x) * given(x, y), X, y)
    task = Relation(kind)
    assert task.mutual_information() == pytest.approx(expected, abs=2e-3 + task.error)


def test_truths_in_closed_form() -> None:
    assert Relation("checkerboard").mutual_information() == pytest.approx(math.log(2), abs=1e-9)
    assert Relation("warped").mutual_information() == pytest.approx(0.5 * math.log(1 + 1.5**2), abs=1e-9)
    assert Relation("columns").mutual_information() == pytest.approx(Relation("sine").mutual_information(), abs=1e-9)


def test_truths_of_a_few_places() -> None:
    """Y is one of some places under normal noise, and x says which: I is h(Y) less that of the noise."""
    axis = np.linspace(-5, 6, 4401)
    cases = {
        "xor": ((-1.0, 1.0), (0.5, 0.5), 0.5),
        "ties": ((0.0, 1.0, 2.0), (1 / 3, 1 / 3, 1 / 3), 0.3),
        "steps": ((-1.0, 0.0, 1.0), (norm.cdf(-0.48), 1 - 2 * norm.cdf(-0.48), norm.cdf(-0.48)), 0.3),
        "window": ((0.0, 1.0), (2 * norm.cdf(-0.64), 1 - 2 * norm.cdf(-0.64)), 0.2),
    }
    for kind, (places, weights, spread) in cases.items():
        p = sum((w * bell(axis - m, spread) for m, w in zip(places, weights, strict=True)), np.zeros_like(axis))
        expected = entropy(p, axis[1] - axis[0]) - normal_entropy(spread)
        assert Relation(kind).mutual_information() == pytest.approx(expected, abs=1e-3), kind


def test_truth_of_the_ring_by_its_radius() -> None:
    """Around zero the density depends on the distance alone, by a Bessel function."""
    r, spread = np.linspace(0, 3, 3001), 0.2
    p = i0e(r / spread**2) * np.exp(-0.5 * (r - 1) ** 2 / spread**2) / (2 * math.pi * spread**2)
    plane = float(np.sum(-2 * math.pi * r * p * np.log(np.maximum(p, 1e-300))) * (r[1] - r[0]))
    assert Relation("ring").mutual_information() == pytest.approx(plane - normal_entropy(spread, 2), abs=1e-4)


def test_truth_of_rounded_values() -> None:
    z, values = np.linspace(-8, 8, 8001), np.arange(-6, 7)
    mean = 2 * np.sin(2 * z)[:, None]
    given = norm.cdf((values + 0.5 - mean) / 0.5) - norm.cdf((values - 0.5 - mean) / 0.5)
    weights = bell(z)[:, None] / bell(z).sum()
    alone = (weights * given).sum(0)
    expected = float(np.sum(weights * given * np.log(np.maximum(given, 1e-300) / alone)))
    assert Relation("rounded").mutual_information() == pytest.approx(expected, abs=1e-4)


def test_truth_of_many_zeros() -> None:
    """I(X; Y) = I(X; is zero) + P(not zero) I(X; Y | not zero), both on grids."""
    z, y = np.linspace(-8, 8, 1601), np.linspace(-10, 10, 2001)
    mass, zero = bell(z) / bell(z).sum(), 1 / (1 + np.exp(-(2 - 2 * z**2)))
    p0 = float(np.sum(mass * zero))
    first = float(np.sum(mass * (zero * np.log(zero / p0) + (1 - zero) * np.log((1 - zero) / (1 - p0)))))
    rest = mass * (1 - zero) / (1 - p0)
    p = rest @ bell(y - z[:, None], 0.3)
    second = entropy(p, y[1] - y[0]) - normal_entropy(0.3)
    assert Relation("zeros").mutual_information() == pytest.approx(first + (1 - p0) * second, abs=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_oracle_agrees_with_the_truth_on_samples(kind: str) -> None:
    """A plug-in of the exact densities: the mean over samples, rotated copies in single precision."""
    task = Relation(kind, copies=2)
    values = task.pointwise(*task.sample(1000, seed=3)).double()
    standard_error = float(values.std()) / len(values) ** 0.5
    assert abs(float(values.mean()) - task.mutual_information()) < 4 * standard_error + task.error + 1e-4
    assert task.error < (0.1 if kind == "torus" else 1e-2)  # a surface is integrated on a coarser grid
    assert values.isfinite().all()


@pytest.mark.parametrize("kind", KINDS)
def test_densities_are_one_joint_density(kind: str) -> None:
    task = Relation(kind, copies=3)
    x, y = task.sample(50, seed=1, dtype=torch.float64)
    joint = task.log_prob_x(x) + task.log_prob_y(y) + task.pointwise(x, y)
    torch.testing.assert_close(task.log_prob(x, y), joint)


@pytest.mark.parametrize("copies", [1, 3, 8])
def test_copies_are_independent_and_rotated(copies: int) -> None:
    task, one = Relation("ring", copies), Relation("ring")
    assert (task.x_dim, task.y_dim) == (copies, 2 * copies)
    assert task.mutual_information() == pytest.approx(copies * one.mutual_information())
    x, _ = task.sample(4000, seed=0, dtype=torch.float64)
    covariance = x.T.cov().reshape(copies, copies)
    torch.testing.assert_close(covariance, (2 * math.pi) ** 2 / 12 * torch.eye(copies).double(), rtol=0, atol=0.3)
    of_x, _ = task._rotations
    torch.testing.assert_close(of_x @ of_x.T, torch.eye(copies).double())
    assert (copies == 1) == bool((of_x.abs() > 0.999).any())
    assert Relation("ring", copies, seed=1).sample(5, 0)[0].shape == (5, copies)


def test_another_seed_is_another_rotation() -> None:
    one, two = (Relation("sine", 3, seed=seed) for seed in (0, 1))
    assert not torch.equal(one.sample(5, 0)[0], two.sample(5, 0)[0])
    assert one.mutual_information() == two.mutual_information()


@pytest.mark.parametrize("kind", ["sine", pytest.param("spread", marks=pytest.mark.slow), "xor", "ring"])
def test_more_noise_tells_less(kind: str) -> None:
    task = Relation(kind)
    slope = (Relation(kind, noise=1.01).mutual_information() - Relation(kind, noise=0.99).mutual_information()) / 0.02
    assert task.gradient() == pytest.approx(slope, abs=2e-3)
    assert task.gradient() < 0 or kind == "spread"


def test_velocity_is_that_of_the_noise() -> None:
    task = Relation("parabola", copies=3)
    (_, y), (of_x, of_y) = task.sample(20, 0, dtype=torch.float64), task.velocity(20, 0, dtype=torch.float64)
    assert float(of_x.abs().max()) < 1e-6
    moved = Relation("parabola", copies=3, noise=2.0).sample(20, 0, dtype=torch.float64)[1]
    torch.testing.assert_close(moved - y, of_y, rtol=1e-4, atol=1e-6)


def test_edges_and_atoms_have_no_gradient() -> None:
    assert set(KINDS) - set(SMOOTH) == {"bands", "checkerboard", "rounded", "sector", "zeros"}
    with pytest.raises(ValueError, match="no parameter"):
        Relation("rounded").gradient()


def test_there_are_enough_and_most_are_not_linear() -> None:
    """Neither x nor its rank is correlated with y in nearly all: no line and no monotone curve says much."""
    assert len(KINDS) >= 25
    flat = 0
    for kind in KINDS:
        x, y = Relation(kind).sample(2000, 0)
        ranks = x.argsort(0).argsort(0).float(), y.argsort(0).argsort(0).float()
        r = torch.corrcoef(torch.cat(ranks, 1).T)[: x.shape[1], x.shape[1] :]
        flat += float(r.abs().max()) < 0.6
    assert flat >= 25


def test_descriptions_are_ready_for_tables() -> None:
    for kind in KINDS:
        task: PairTask = Relation(kind, copies=3)
        assert json.loads(json.dumps(task.parameters))["kind"] == kind
        assert task.formula in task.description


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "cosine"}, "^kind is 'cosine'; expected one of"),
        ({"kind": "sine", "copies": 0}, "^copies is 0"),
        ({"kind": "sine", "noise": 0.0}, "^noise is 0.0"),
        ({"kind": "sine", "seed": -1}, "^seed is -1"),
    ],
)
def test_bad_parameters_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Relation(**options)
