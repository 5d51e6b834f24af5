"""Candidates in closed form: their answers against scipy's densities, what they find against what was planted."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special, stats
from torch import Tensor

from infoknife.measure.candidates import mixtures
from infoknife.measure.candidates.base import Candidate, Fitted
from infoknife.measure.candidates.coordinates import normal, standard
from infoknife.measure.candidates.mixtures import (
    DEGREES,
    Counts,
    GaussianKernel,
    MixtureCandidate,
    StudentKernel,
    cells,
    clusters,
)
from infoknife.measure.question import Part, Question, Sample

Array = NDArray[np.float64]
Seeded = Callable[[int], torch.Generator]

ENTROPY = Question("entropy", Part((0, 1)), Part())
INFORMATION = Question("mutual information", Part((0,)), Part((1,)), Part())
TOTAL = Question("total correlation", Part((0, 1)), Part(), Part(), apart=True)
LABELLED = Question("mutual information", Part((0, 1)), Part((), (0,)), Part())

ALL: dict[str, Candidate] = {
    "gaussian": GaussianKernel("gaussian", standard),
    "copula": GaussianKernel("gaussian-copula", normal),
    "several": GaussianKernel("gaussian-cells", standard, prior=1.0),
    "together": GaussianKernel("gaussian-together", standard, together=True),
    "student": StudentKernel("student", ranked=False),
    "ranked": StudentKernel("student-copula", ranked=True),
    "mixture": MixtureCandidate("mixture", standard, kernels=3),
}
everyone = pytest.mark.parametrize("candidate", ALL.values(), ids=ALL)


def data(continuous: Array | None = None, *codes: NDArray[np.int64]) -> Sample:
    rows = len(codes[0]) if continuous is None else len(continuous)
    discrete = np.stack(codes, 1) if codes else np.zeros((rows, 0), dtype=np.int64)
    levels = tuple(int(code.max()) + 1 for code in codes)
    return Sample(
        torch.tensor(np.zeros((rows, 0)) if continuous is None else continuous), torch.tensor(discrete), levels
    )


def normals(rows: int = 400, seed: int = 0) -> Array:
    """Correlated, neither centred nor of one scale."""
    return np.random.default_rng(seed).normal(size=(rows, 2)) @ [[1, 30], [0, 40]] + [2, -300]


def labelled(rows: int = 200, seed: int = 0) -> Sample:
    label = np.random.default_rng(seed).integers(3, size=rows)
    return data(normals(rows, seed) + np.array([[0, 0], [3, 50], [-1, 100]])[label], label, label % 2)


def fitted(candidate: Candidate, rows: Sample, question: Question, seed: int = 0) -> Fitted:
    return candidate.fit(rows, question, torch.Generator().manual_seed(seed))


def fixed(candidate: Candidate, rows: Sample, seed: int = 0) -> Any:
    """What a fit has searched for, as a candidate that need not search."""
    return fitted(candidate, rows, ENTROPY, seed).fixed


def moments(x: Array) -> tuple[Array, Array]:
    return x.mean(0), np.cov(x, rowvar=False, bias=True)


# one Gaussian


def test_gaussian_entropy_is_that_of_scipy() -> None:
    x, new = normals(), normals(50, seed=1)
    full, none = fitted(ALL["gaussian"], data(x), ENTROPY).terms(data(new))
    np.testing.assert_allclose(full, stats.multivariate_normal(*moments(x)).logpdf(new), rtol=1e-7)
    assert none.tolist() == [0] * 50


def test_gaussian_information_is_that_of_the_correlation() -> None:
    x = normals()
    correlation = stats.pearsonr(*x.T).statistic
    for question in (INFORMATION, TOTAL):
        information = fitted(ALL["gaussian"], data(x), question).ratio(data(x)).mean()
        assert float(information) == pytest.approx(-0.5 * np.log(1 - correlation**2), rel=1e-6)


def test_conditional_information() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 3))
    question = Question("conditional mutual information", Part((0,)), Part((1, 2)), Part((2,)))
    found = float(fitted(ALL["gaussian"], data(x), question).ratio(data(x)).mean())
    precision = np.linalg.inv(np.cov(x.T))
    partial = precision[0, 1] ** 2 / (precision[0, 0] * precision[1, 1])
    assert found == pytest.approx(-0.5 * np.log(1 - partial), rel=1e-6)


def test_a_copula_does_not_mind_the_margins() -> None:
    x = normals(4000)
    bent = np.stack([np.exp(x[:, 0]), (x[:, 1] / 50) ** 3], 1)
    truth = -0.5 * np.log(1 - 0.36)  # the correlation is 30 / 50
    found = float(fitted(ALL["copula"], data(bent), INFORMATION).ratio(data(bent)).mean())
    assert found == pytest.approx(truth, abs=0.04)
    plain = float(fitted(ALL["gaussian"], data(bent), INFORMATION).ratio(data(bent)).mean())
    assert plain < 0.6 * truth


# combinations of discrete values


def test_one_covariance_for_all_labels_is_linear_discriminant_analysis() -> None:
    rows = labelled()
    x, label = rows.continuous.numpy(), rows.discrete[:, 0].numpy()
    means = np.stack([x[label == k].mean(0) for k in range(3)])
    within = moments(x - means[label])[1]
    shares = np.bincount(label) / len(x)
    scores = np.stack([np.log(shares[k]) + stats.multivariate_normal(means[k], within).logpdf(x) for k in range(3)])
    one = fitted(ALL["gaussian"], rows, LABELLED)
    np.testing.assert_allclose(one.terms(rows)[1], special.logsumexp(scores, 0), rtol=1e-6)
    expected = (scores[label, np.arange(len(x))] - special.logsumexp(scores, 0) - np.log(shares[label])).mean()
    assert float(one.ratio(rows).mean()) == pytest.approx(expected, abs=0.02)  # tables are smoothed a little


def test_a_finite_prior_lets_covariances_differ() -> None:
    rng = np.random.default_rng(0)
    label = np.arange(2000) % 2
    x = rng.normal(size=(2000, 2)) * np.where(label, 5, 0.2)[:, None]
    question = Question("mutual information", Part((0, 1)), Part((), (0,)), Part())
    same, several = (fitted(ALL[name], data(x, label), question) for name in ("gaussian", "several"))
    assert float(same.ratio(data(x, label)).mean()) < 0.01
    assert float(several.ratio(data(x, label)).mean()) == pytest.approx(np.log(2), abs=0.05)


def test_together_makes_labels_independent_of_numbers() -> None:
    rows = labelled()
    np.testing.assert_allclose(fitted(ALL["together"], rows, LABELLED).ratio(rows), 0, atol=1e-9)
    between = Question("mutual information", Part((), (0,)), Part((), (1,)), Part())
    np.testing.assert_allclose(fitted(ALL["together"], rows, between).ratio(rows), 0, atol=1e-9)


# what holds for all


@everyone
def test_information_is_symmetric(candidate: Candidate) -> None:
    rows = labelled()
    there = Question("mutual information", Part((0,), (1,)), Part((1,), (0,)), Part())
    back = there._replace(target=there.condition, condition=there.target)
    one, other = fitted(candidate, rows, there), fitted(candidate, rows, back)
    np.testing.assert_allclose(one.ratio(rows), other.ratio(rows), rtol=1e-6, atol=1e-6)


@everyone
def test_terms_are_consistent(candidate: Candidate) -> None:
    rows = labelled()
    x = Question("entropy", Part((0,)), Part((1,), (0,)))
    y = Question("entropy", Part((1,)), Part((), (0,)))
    both = Question("entropy", Part((0, 1)), Part((), (0,)))
    parts = fitted(candidate, rows, x).terms(rows)[0] + fitted(candidate, rows, y).terms(rows)[0]
    np.testing.assert_allclose(fitted(candidate, rows, both).terms(rows)[0], parts, rtol=1e-6, atol=1e-6)


@everyone
def test_total_correlation_is_joint_minus_singles(candidate: Candidate) -> None:
    rows = labelled()
    target = Part((0, 1), (1,))
    total = Question("total correlation", target, Part(), Part(), apart=True)
    single = [Part((0,)), Part((1,)), Part((), (1,))]
    parts = [fitted(candidate, rows, total._replace(target=one, apart=False)).terms(rows)[0] for one in single]
    full, apart = fitted(candidate, rows, total).terms(rows)
    np.testing.assert_allclose(apart, torch.stack(parts).sum(0), rtol=1e-6, atol=1e-6)
    joint = fitted(candidate, rows, total._replace(apart=False)).terms(rows)[0]
    np.testing.assert_allclose(full, joint, rtol=1e-6, atol=1e-6)


@everyone
def test_units_move_entropies_by_their_logarithm(candidate: Candidate) -> None:
    rows = labelled()
    scaled = Sample(rows.continuous * torch.tensor([1e-3, 5.0]) - 7, rows.discrete, rows.levels)
    one, other = (fitted(candidate, r, ENTROPY).terms(r)[0] for r in (rows, scaled))
    np.testing.assert_allclose(one - other, math.log(1e-3) + math.log(5), rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "suited"),
    [
        ("gaussian", ["numbers", "number", "both"]),
        ("copula", ["numbers", "number", "both"]),
        ("several", ["both"]),
        ("together", ["labels", "both"]),
        ("student", ["numbers", "number", "both"]),
        ("ranked", ["numbers"]),
        ("mixture", ["numbers", "number", "both"]),
    ],
)
def test_what_suits_whom(name: str, suited: list[str]) -> None:
    label, x = np.arange(20) % 3, normals(20)
    rows = {"numbers": data(x), "number": data(x[:, :1]), "labels": data(None, label), "both": data(x[:, :1], label)}
    assert [what for what, one in rows.items() if ALL[name].supports(one, LABELLED)] == suited


def test_shrinking_is_for_few_rows() -> None:
    shrinks = GaussianKernel("gaussian-shrunk", standard, is_shrunk=True)
    assert shrinks.supports(data(normals(9)), ENTROPY)
    assert not shrinks.supports(data(normals(10)), ENTROPY)


def test_shrunk_correlations_of_few_rows_serve_others_better() -> None:
    x = np.random.default_rng(0).standard_normal((60, 20))
    question = Question("entropy", Part(tuple(range(20))), Part())
    costs = [
        -float(
            fitted(GaussianKernel("gaussian", standard, is_shrunk=few), data(x[:30]), question)
            .terms(data(x[30:]))[0]
            .mean()
        )
        for few in (False, True)
    ]
    assert costs[1] < costs[0] - 5
    assert costs[1] == pytest.approx(10 * math.log(2 * math.pi * math.e), abs=3)


def test_counts_are_for_labels_alone_and_are_smoothed_frequencies() -> None:
    label = np.repeat([0, 1, 2], [60, 30, 10])
    question, rows = Question("entropy", Part((), (0,)), Part()), data(None, label)
    assert Counts().supports(rows, question)
    assert not Counts().supports(data(normals(100), label), question)
    log_prob = fitted(Counts(), rows, question).terms(rows)[0]
    np.testing.assert_allclose(log_prob.exp()[[0, 60, 90]], [0.6, 0.3, 0.1], atol=0.02)


# Student's distribution


def student(df: float, rows: int = 3000, dim: int = 2, seed: int = 0) -> Array:
    shape = 0.5 * np.eye(dim) + 0.5
    return stats.multivariate_t(np.full(dim, 3.0), 4 * shape, df=df, seed=seed).rvs(rows)


@pytest.mark.parametrize("ranked", [False, True])
@pytest.mark.parametrize("df", [1.0, 2.0, 4.5, 12.0])
def test_degrees_of_freedom_are_found(df: float, ranked: bool) -> None:
    rows = data(student(df))
    (found,) = fixed(StudentKernel("student", ranked), rows).degrees
    assert abs(DEGREES.index(found) - DEGREES.index(df)) <= 1
    exact = df < 12 and not ranked
    assert not exact or found == df


def test_student_entropy_is_that_of_scipy() -> None:
    x, new = student(2.0), student(2.0, 200, seed=1)
    full, _ = fitted(ALL["student"], data(x), ENTROPY).terms(data(new))
    truth = stats.multivariate_t(np.full(2, 3.0), 4 * (0.5 * np.eye(2) + 0.5), df=2.0).logpdf(new)
    np.testing.assert_allclose(full, truth, atol=0.2)
    assert float(full.mean()) == pytest.approx(truth.mean(), abs=0.02)


def test_a_student_copula_does_not_mind_the_margins() -> None:
    x = student(3.0)
    joint = stats.multivariate_t(np.full(2, 3.0), 4 * (0.5 * np.eye(2) + 0.5), df=3.0).logpdf(x)
    truth = (joint - stats.t(3.0, 3, 2).logpdf(x).sum(1)).mean()
    for rows in (data(x), data(np.cbrt(x))):
        found, gaussian = (fitted(ALL[name], rows, INFORMATION).ratio(rows).mean() for name in ("ranked", "copula"))
        assert float(found) == pytest.approx(truth, abs=0.015)
        assert float(gaussian) < truth - 0.03


def test_one_row_far_away_is_survived() -> None:
    x = normals()
    x[0, 0] = 1e18
    assert bool(fitted(ALL["ranked"], data(x), ENTROPY).terms(data(x)).isfinite().all())


# mixtures


def clustered(rows: int = 2000, count: int = 4, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * np.arange(count) / count
    centres = 8 * np.stack([np.cos(angle), np.sin(angle)], 1)
    x = rng.normal(size=(rows, 2)) + centres[rng.integers(count, size=rows)]
    scores = [stats.multivariate_normal(centre).logpdf(x) - np.log(count) for centre in centres]
    return x, special.logsumexp(scores, 0)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_clear_clusters_are_counted(count: int) -> None:
    """One more kernel may help held-out rows by chance: the median over seeds."""
    kernels, losses = [], []
    for seed in range(5):
        x, truth = clustered(1000, count, seed)
        one = fitted(MixtureCandidate("mixture", standard), data(x), ENTROPY, seed)
        kernels.append(fixed(MixtureCandidate("mixture", standard), data(x), seed).kernels)
        losses.append(truth.mean() - float(one.terms(data(x))[0].mean()))
    assert np.median(kernels) in ((1, 2) if count == 1 else (count,))
    assert np.abs(losses).max() < 0.03


@pytest.mark.parametrize(
    ("candidate", "same"),
    [(StudentKernel("student-copula", ranked=True), True), (MixtureCandidate("mixture-x", standard), False)],
    ids=["degrees", "kernels"],
)
def test_what_was_searched_for_is_fixed(candidate: Candidate, same: bool) -> None:
    """Degrees of freedom decide the fit; from as many kernels expectation maximisation starts again."""
    rows = data(clustered()[0])
    first = fitted(candidate, rows, ENTROPY)
    assert first.fixed is not None
    again = fitted(first.fixed, rows, ENTROPY)
    assert first.fixed == again.fixed != candidate
    assert (first.fixed.name, first.parameters) == (candidate.name, again.parameters)
    assert bool(torch.isclose(first.terms(rows), again.terms(rows)).all()) or not same


def test_one_kernel_is_the_gaussian() -> None:
    rows = data(normals())
    one = fitted(MixtureCandidate("mixture", standard, 1), rows, ENTROPY).terms(rows)
    np.testing.assert_allclose(one, fitted(ALL["gaussian"], rows, ENTROPY).terms(rows), rtol=1e-9)


def test_kernels_are_for_every_combination() -> None:
    rows = data(normals(1000), np.arange(1000) % 2)
    assert fitted(MixtureCandidate("mixture", standard, 3), rows, LABELLED).parameters == 6 * (1 + 2 + 3 + 1) - 1


def test_no_randomness_but_the_generator(seeded: Seeded) -> None:
    x, before = data(clustered(500)[0]), torch.get_rng_state()
    first, again = (MixtureCandidate("mixture", normal).fit(x, ENTROPY, seeded(3)).terms(x) for _ in range(2))
    assert first.equal(again)
    assert torch.get_rng_state().equal(before)


# combinations of discrete values, and clusters


def test_without_labels_there_is_one_cell() -> None:
    assert cells(data(normals(20))).tolist() == [[1] * 20]


@given(st.integers(1, 80), st.integers(0, 1000))
def test_cells_are_the_combinations(rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.integers(3, size=rows), rng.integers(2, size=rows)
    found = cells(data(None, first, second))
    counts = np.unique(3 * second + first, return_counts=True)[1]
    once = int((counts == 1).sum())  # these share a cell
    assert sorted(found.sum(1).tolist()) == sorted([*counts[counts > 1].tolist(), *([once] if once else [])])
    assert found.sum(0).tolist() == [1] * rows
    several = [len(set(zip(first[cell], second[cell], strict=True))) for cell in found.bool().numpy()]
    assert sorted(several) == sorted([1] * int((counts > 1).sum()) + ([once] if once else []))


def test_rare_combinations_share_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixtures, "MAX_CELLS", 3)
    label = np.repeat([4, 0, 2, 1, 3], [1, 9, 5, 2, 7])
    found = cells(data(None, label))
    assert [sorted(set(label[cell].tolist())) for cell in found.bool().numpy()] == [[0], [3], [1, 2, 4]]


def grouped(rows: int = 200) -> tuple[Tensor, Tensor]:
    groups = torch.nn.functional.one_hot((torch.arange(rows) % 10 == 0).long()).T.double()
    return torch.tensor(normals(rows)), groups


@pytest.mark.parametrize("count", [2, 5, 50])
def test_clusters_divide_groups(count: int, generator: torch.Generator) -> None:
    u, groups = grouped()
    found = clusters(u, groups, count, generator)
    assert found.sum(0).tolist() == [1] * 200
    first, second = (min(count, rows // 12) for rows in (180, 20))
    assert len(found) == first + max(second, 1)
    assert bool((found[:first].sum(0) == groups[0]).all())
    assert bool((found[first:].sum(0) == groups[1]).all())


def test_clusters_do_not_mind_scales_and_correlations() -> None:
    x, _ = clustered()
    u = torch.tensor(x)
    turned = u @ torch.tensor([[1e-4, 50.0], [2e-4, -10.0]]).double() + 7
    whole = torch.ones(1, len(u)).double()
    one, other = (clusters(v, whole, 4, torch.Generator().manual_seed(0)) for v in (u, turned))
    assert one.equal(other)
