"""Nearest neighbours against truths, and against the formulas written out for few rows."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import digamma
from sklearn.feature_selection import mutual_info_regression

from infoknife.measure import entropy, mutual_information
from infoknife.measure.candidates.neighbours import NEIGHBOURS, Neighbours, are_crowded
from infoknife.measure.question import Part, Question, Sample
from tests.measure.samples import sample

PAIR = Question("mutual information", Part((1,)), Part((0,)), Part())


def told(rows: Sample, question: Question) -> float:
    fitted = Neighbours().fit(rows, question, torch.Generator().manual_seed(0))
    return float(fitted.ratio(rows).mean())


def test_of_training_rows_it_is_the_published_estimate() -> None:
    x, noise = np.random.default_rng(0).normal(size=(2, 600))
    y = np.sin(2 * x) + 0.3 * noise
    normal = [torch.special.ndtri((torch.tensor(v).argsort().argsort() + 0.5) / 600).numpy() for v in (x, y)]
    expected = mutual_info_regression(normal[0][:, None], normal[1], n_neighbors=NEIGHBOURS)[0]
    assert told(sample(np.c_[x, y]), PAIR) == pytest.approx(expected, abs=0.01)  # scikit-learn adds noise


def test_labels_are_as_in_ross() -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(2, size=400)
    x = rng.normal(size=400) + 2 * label
    question = Question("mutual information", Part((), (0,)), Part((0,)), Part())
    u = torch.special.ndtri((torch.tensor(x).argsort().argsort() + 0.5) / 400).numpy()
    values = []
    for i in range(400):
        radius = np.sort(np.abs(u[label == label[i]] - u[i]))[NEIGHBOURS]
        near = (np.abs(u - u[i]) < radius).sum() - 1
        same = (label == label[i]).sum() - 1
        values.append(digamma(NEIGHBOURS) + digamma(400) - digamma(near + 1) - digamma(same + 1))
    assert told(sample(x, label), question) == pytest.approx(np.mean(values), abs=1e-9)


def test_information_given_a_third_variable() -> None:
    """Of normal numbers, half the logarithm of 1 / (1 - partial correlation^2), here log(2) / 2."""
    x, z, noise = np.random.default_rng(0).normal(size=(3, 3000))
    rows = sample(np.c_[x + z, x + z + noise, z])
    question = Question("conditional mutual information", Part((1,)), Part((0, 2)), Part((2,)))
    assert told(rows, question) == pytest.approx(math.log(2) / 2, abs=0.06)


def test_information_given_labels_is_the_mean_of_that_in_each() -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(2, size=2000)
    x = rng.normal(size=2000)
    y = x * label + rng.normal(size=2000)  # log(2) / 2 where the label is 1, nothing where it is 0
    question = Question("conditional mutual information", Part((1,)), Part((0,), (0,)), Part((), (0,)))
    assert told(sample(np.c_[x, y], label), question) == pytest.approx(math.log(2) / 4, abs=0.05)


def test_jumps_are_seen() -> None:
    rng = np.random.default_rng(0)
    x = 4 * rng.random(3000)
    y = np.floor(x) % 2 + 2 * rng.integers(2, size=3000) + rng.random(3000)  # a checkerboard: log 2
    assert mutual_information(x, y, method="neighbours").value == pytest.approx(math.log(2), abs=0.12)


def test_entropy_of_a_uniform_cube() -> None:
    x = np.random.default_rng(0).random((2000, 2)) * 3
    assert entropy(x, method="neighbours").value == pytest.approx(2 * math.log(3), abs=0.12)


def test_rare_labels_say_nothing() -> None:
    x, label = np.random.default_rng(0).normal(size=100), (np.arange(100) == 7).astype(int)
    question = Question("mutual information", Part((), (0,)), Part((0,)), Part())
    assert told(sample(x, label), question) == pytest.approx(0, abs=0.05)


def test_labels_that_seldom_meet_invent_nothing() -> None:
    """Three columns of ten labels on either side: nearly every row is alone in its cell."""
    codes = torch.tensor(np.random.default_rng(0).integers(10, size=(300, 6)))
    rows = Sample(torch.rand(300, 1, generator=torch.Generator().manual_seed(0)).double(), codes, (10,) * 6)
    question = Question("mutual information", Part((), (3, 4, 5)), Part((0,), (0, 1, 2)), Part())
    assert told(rows, question) < 0.05


def test_many_columns_are_refused() -> None:
    question = Question("mutual information", Part(tuple(range(16))), Part((16,)), Part())
    assert not Neighbours().supports(sample(np.zeros((99, 17))), question)


def test_copies_are_no_neighbours() -> None:
    """Three copies of every row, be they written out or weights, would add psi(3) - psi(1) - log 3 = 0.4 nats."""
    x, noise = np.random.default_rng(0).normal(size=(2, 300))
    y = 0.5 * x + math.sqrt(0.75) * noise
    once = mutual_information(x, y, effort="quick")
    for answer in (
        mutual_information(np.tile(x, 3), np.tile(y, 3), effort="quick"),
        mutual_information(np.tile(x, 3).round(2), np.tile(y, 3).round(2), effort="quick"),
        mutual_information(x, y, weights=np.full(300, 3), effort="quick"),
    ):
        assert float(answer) == pytest.approx(float(once), abs=0.05)
        assert answer.diagnostics.neighbours is None


def test_rows_are_crowded_if_they_lie_near_their_group() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 300))
    apart = sample(np.stack([x, y], 1))
    assert not are_crowded(apart)
    assert not are_crowded(replace(apart, groups=torch.arange(300) // 3))
    assert not are_crowded(replace(apart, groups=torch.arange(300) % 2))
    assert are_crowded(replace(sample(np.tile(np.stack([x, y], 1), (2, 1))), groups=torch.arange(600) % 300))
