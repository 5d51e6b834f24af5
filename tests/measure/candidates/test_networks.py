"""Candidates with a network: truths of Gaussians and of classes after a few steps, and nothing that leaks."""

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

from infoknife.densities import KNIFE
from infoknife.measure.candidates.networks import MAX_CLASSES, MIN_ROWS, SMOOTH, ClassifierCandidate, NetworkDensity
from infoknife.measure.question import Part, Question, Sample
from tests.measure.samples import class_information, sample

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

RHO = 0.8
INFORMATION = Question("mutual information", Part((1,)), Part((0,)), Part())
TOTAL = Question("total correlation", Part((0, 1)), Part(), Part(), apart=True)
ENTROPY = Question("entropy", Part((0, 1)), Part())
CLASS = Part((), (0,))
CLASSES = Question("mutual information", CLASS, Part((0,)), Part())


@pytest.fixture(autouse=True)
def own_random_state() -> Iterator[None]:
    """Modules are made with torch's own random numbers: leave no trace in other tests."""
    with torch.random.fork_rng():
        yield


def pair(rows: int = 500, seed: int = 0) -> Sample:
    x, noise = np.random.default_rng(seed).normal(size=(2, rows))
    return sample(np.stack([5 + x, 100 * (RHO * x + math.sqrt(1 - RHO**2) * noise)], 1))


def classes(rows: int = 1000, seed: int = 0) -> Sample:
    rng = np.random.default_rng(seed)
    label = rng.integers(2, size=rows)
    return sample((rng.normal(size=rows) + 2 * label)[:, None], label)


def knife(steps: int = 60) -> NetworkDensity:
    return NetworkDensity("knife", lambda d, v: KNIFE(d, 8, given_dim=v), steps)


# densities


def chain(rows: int, seed: int = 0) -> Sample:
    """Two columns that both follow a third, and one also the other."""
    z, a, b = np.random.default_rng(seed).normal(size=(3, rows))
    return sample(np.stack([z + a, z + 0.6 * a + 0.8 * b, 3 * z], 1))


CHAIN = Question("conditional mutual information", Part((1,)), Part((0, 2)), Part((2,)))
NUMBER = Question("mutual information", Part((0,)), CLASS, Part())  # a class as ones and zeros


@pytest.mark.parametrize(
    ("make", "question", "truth"),
    [
        (pair, INFORMATION, -0.5 * math.log(1 - RHO**2)),
        (pair, TOTAL, -0.5 * math.log(1 - RHO**2)),
        (pair, ENTROPY, -math.log(2 * math.pi * math.e) - 0.5 * math.log(1 - RHO**2) - math.log(100)),
        (chain, CHAIN, -0.5 * math.log(1 - 0.36)),
        (classes, NUMBER, class_information()),
    ],
    ids=["information", "total", "entropy", "given", "class"],
)
def test_densities_find_the_truth(
    make: Callable[..., Sample], question: Question, truth: float, generator: torch.Generator
) -> None:
    terms = knife().fit(make(600), question, generator).terms(make(2000, seed=1))
    assert float((terms[0] - terms[1]).mean()) == pytest.approx(truth, abs=0.1 if question is ENTROPY else 0.08)
    assert terms.dtype == torch.float64
    assert question is not ENTROPY or not terms[1].any()


def test_columns_alone_are_standard_normal(generator: torch.Generator) -> None:
    """In the second term of a total correlation, in coordinates that make them so."""
    rows = pair(2000, seed=1)
    _, alone = knife(steps=1).fit(pair(2000), TOTAL, generator).terms(rows)
    x, y = rows.continuous.numpy().T
    expected = stats.norm.logpdf(x, 5) + stats.norm.logpdf(y, 0, 100)
    assert float(alone.mean()) == pytest.approx(expected.mean(), abs=0.03)


def test_parameters_of_all_densities_count(generator: torch.Generator) -> None:
    once, twice = (knife(steps=1).fit(pair(200), question, generator).parameters for question in (ENTROPY, INFORMATION))
    assert once == sum(p.numel() for p in KNIFE(2, 8).parameters())
    assert twice == sum(p.numel() for density in (KNIFE(1, 8, given_dim=1), KNIFE(1, 8)) for p in density.parameters())


def test_the_generator_decides(generator: torch.Generator) -> None:
    new = pair(50, seed=1)
    first = knife(20).fit(pair(200), ENTROPY, torch.Generator().manual_seed(0)).terms(new)
    torch.manual_seed(7)
    again = knife(20).fit(pair(200), ENTROPY, torch.Generator().manual_seed(0)).terms(new)
    other = knife(20).fit(pair(200), ENTROPY, torch.Generator().manual_seed(1)).terms(new)
    assert first.equal(again)
    assert not first.equal(other)


def test_densities_suit_continuous_targets_and_enough_rows() -> None:
    suits = knife().supports
    assert suits(pair(MIN_ROWS), INFORMATION)
    assert not suits(pair(MIN_ROWS - 1), INFORMATION)
    assert not suits(classes(), CLASSES)
    assert not suits(classes(), Question("entropy", Part((0,), (0,)), Part()))


# classifier


@pytest.mark.parametrize(
    ("question", "truth"),
    [
        (CLASSES, class_information()),
        (Question("conditional entropy", CLASS, Part((0,))), class_information() - math.log(2)),
    ],
    ids=["information", "entropy"],
)
def test_classifiers_find_the_truth(question: Question, truth: float, generator: torch.Generator) -> None:
    found = ClassifierCandidate(150).fit(classes(), question, generator).ratio(classes(4000, seed=1))
    assert float(found.mean()) == pytest.approx(truth, abs=0.05)


def test_without_a_condition_frequencies_answer(generator: torch.Generator) -> None:
    rows = classes(300)
    _, reduced = ClassifierCandidate(1).fit(rows, CLASSES, generator).terms(rows)
    counts = np.bincount(rows.discrete[:, 0]) + SMOOTH
    np.testing.assert_allclose(reduced, np.log(counts / counts.sum())[rows.discrete[:, 0]], rtol=1e-6)


def test_two_columns_of_classes_are_one_target(generator: torch.Generator) -> None:
    """The entropy of what is independent of the condition is that of the four combinations."""
    rng = np.random.default_rng(0)
    first = rng.integers(2, size=1500)
    second = np.where(rng.random(1500) < 0.7, first, 1 - first)
    rows = sample(rng.normal(size=(1500, 1)), first, second)
    question = Question("conditional entropy", Part((), (0, 1)), Part((0,)))
    found = -float(
        ClassifierCandidate(100)
        .fit(rows.rows(slice(0, 1000)), question, generator)
        .terms(rows.rows(slice(1000, None)))[0]
        .mean()
    )
    assert found == pytest.approx(math.log(2) + stats.bernoulli(0.3).entropy(), abs=0.08)


def test_a_network_learns_what_a_line_cannot(generator: torch.Generator) -> None:
    def quadrants(rows: int, seed: int) -> Sample:
        x = np.random.default_rng(seed).normal(size=(rows, 2))
        return sample(x, (x.prod(1) > 0).astype(np.int64))

    question = Question("mutual information", CLASS, Part((0, 1)), Part())
    found = float(
        ClassifierCandidate(200).fit(quadrants(1000, 0), question, generator).ratio(quadrants(1000, 1)).mean()
    )
    assert 0.45 < found < math.log(2)


def test_classifiers_suit_a_few_classes_given_numbers() -> None:
    suits, rows = ClassifierCandidate(1).supports, classes(MIN_ROWS)
    assert suits(rows, CLASSES)
    assert not suits(rows.rows(slice(1, None)), CLASSES)
    assert not suits(rows, Question("entropy", CLASS, Part()))
    assert not suits(rows, Question("conditional entropy", Part((0,)), CLASS))
    x = np.random.default_rng(0).normal(size=(400, 1))
    assert [suits(sample(x, np.arange(400) % (MAX_CLASSES + more)), CLASSES) for more in (0, 1)] == [True, False]
