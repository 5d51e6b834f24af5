"""Relations: oracles, rotations, parameters; ``test_laws`` has their truths."""

import json
import math

import pytest
import torch

from infoknife.tasks import PairTask
from infoknife.tasks.relations import RELATIONS, Relation

KINDS = sorted(RELATIONS)


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
    rough = {kind for kind in KINDS if Relation(kind).parameter is None}
    assert rough == {"bands", "checkerboard", "rounded", "sector", "zeros"}


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
