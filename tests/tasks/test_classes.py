import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import simpson
from scipy.special import entr

from infoknife import tasks

LINE = np.linspace(-30, 30, 60_001)


def normals_on_a_line(parts: tasks.Components) -> list[tuple[float, Any]]:
    deviations = parts.covariances.flatten().sqrt().tolist()
    means, weights = parts.means.flatten().tolist(), parts.weights.tolist()
    return [(w, stats.norm(m, s)) for w, m, s in zip(weights, means, deviations, strict=True)]


@pytest.mark.parametrize("classes", [2, 5])
def test_classes_information_by_integration(classes: int) -> None:
    task = tasks.GaussianClasses.draw(classes, 1, seed=classes, spread=2.0)
    joint = np.stack([w * n.pdf(LINE) for w, n in normals_on_a_line(task.parts)])
    density = (entr(joint.sum(0)) - entr(joint).sum(0)) + joint.sum(0) * math.log(classes)
    integral = simpson(density, x=LINE)
    assert task.mutual_information() == pytest.approx(integral, abs=1e-8)


def test_classes_information_by_scipys_posterior() -> None:
    task = tasks.GaussianClasses.draw(3, 5, seed=0, spread=0.8)
    x, y = (side.numpy() for side in task.sample(40_000, 0, dtype=torch.float64))
    parts = zip(task.parts.weights.tolist(), task.parts.means.numpy(), task.parts.covariances.numpy(), strict=True)
    joint = np.stack([w * stats.multivariate_normal(m, s).pdf(x) for w, m, s in parts], -1)
    values = np.log(joint[np.arange(len(y)), y] / joint.sum(-1) * 3)
    assert abs(values.mean() - task.mutual_information()) < 4 * values.std() / len(values) ** 0.5 + task.error


def test_far_classes_tell_everything() -> None:
    task = tasks.GaussianClasses.draw(4, 3, seed=0, spread=100.0)
    assert task.mutual_information() == pytest.approx(math.log(4), abs=1e-6)
