"""Choosing and cross-fitting, with candidates that know too much, too little, or count how often they are asked."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from torch import Tensor

from infoknife.measure import crossfit, mutual_information
from infoknife.measure.candidates.base import Candidate, Fitted
from infoknife.measure.crossfit import (
    MIN_WEIGHT,
    Measured,
    Screened,
    Tried,
    is_absurd,
    measure,
    screen,
    stacked,
    weights,
)
from infoknife.measure.question import Part, Question, Sample, View

LogProb = Callable[[Tensor], Tensor]

ENTROPY = Question("entropy", Part((0,)), Part())
SEEN, UNSEEN = 5.0, -5.0


class Fake(Candidate):
    """A density that is known beforehand; it keeps the rows of every fit."""

    def __init__(self, name: str, log_prob: LogProb, suited: bool = True) -> None:
        self.name, self.log_prob, self.suited = name, log_prob, suited
        self.fits: list[Tensor] = []

    def supports(self, data: Sample, question: Question) -> bool:
        return self.suited

    def fit(self, data: Sample, question: Question, generator: torch.Generator) -> Fitted:
        self.fits.append(data.continuous[:, 0])
        return known(self.log_prob, parameters=len(self.fits))


class FakeNetwork(Fake):
    is_network = True


def known(log_prob: LogProb, reduced: LogProb = torch.zeros_like, **facts: Any) -> Fitted:
    """What answers with functions of the first column."""

    def terms(data: Sample) -> Tensor:
        x = data.continuous[:, 0]
        return torch.stack([log_prob(x), reduced(x)])

    return Fitted(terms, **{"parameters": 1} | facts)


class Memory(Candidate):
    """Knows by heart what it was fitted to, and nothing else."""

    name = "memory"

    def fit(self, data: Sample, question: Question, generator: torch.Generator) -> Fitted:
        seen = data.continuous[:, 0]
        return known(lambda x: torch.where(torch.isin(x, seen), SEEN, UNSEEN).double())


def normal(mean: float = 0.0, scale: float = 1.0) -> LogProb:
    return lambda x: torch.tensor(stats.norm.logpdf(x.numpy(), mean, scale))


def data(rows: int = 300, seed: int = 0) -> Sample:
    x = torch.randn(rows, 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return Sample(x, torch.empty(rows, 0, dtype=torch.long), ())


def silent(part: float, words: str) -> None:
    """Tell nobody."""


def screened(rows: Sample, *candidates: Candidate, seed: int = 0) -> Screened:
    return screen([View(rows, ENTROPY)], candidates, torch.Generator().manual_seed(seed), silent)


def taken(*candidates: Candidate) -> Screened:
    """All candidates, whatever they are worth."""
    tried = [Tried(0, one, known(normal())) for one in candidates]
    return Screened(tried, torch.ones(len(tried)) / len(tried), {})


def measured(rows: Sample, *candidates: Candidate, count: int = 4, seed: int = 0) -> Measured:
    generator = torch.Generator().manual_seed(seed)
    found = measure([View(rows, ENTROPY)], taken(*candidates), count, generator, silent)
    assert found is not None
    return found


def names(chosen: Screened) -> list[str]:
    return [one.candidate.name for one in chosen.tried]


# rows that were not seen


@pytest.mark.parametrize("count", [2, 3, 7, 50])
def test_no_row_is_measured_by_what_has_seen_it(count: int) -> None:
    found = measured(data(50), Memory(), count=count)
    assert found.terms.tolist() == [[UNSEEN] * 50, [0.0] * 50]
    assert (found.gap.tolist(), found.tail) == ([SEEN - UNSEEN, 0], 1)


def test_memory_is_not_chosen() -> None:
    chosen = screened(data(), Memory(), Fake("honest", normal()))
    assert names(chosen) == ["honest"]
    assert chosen.scores["memory"] == -UNSEEN


@pytest.mark.parametrize("rows", [40, 41, 43])
def test_every_fold_trains_on_all_other_rows(rows: int) -> None:
    fake, whole = Fake("fake", normal()), data(rows)
    found = measured(whole, fake)
    assert found.folds == len(fake.fits) == 4
    np.testing.assert_allclose(found.terms[0], stats.norm.logpdf(whole.continuous[:, 0]), rtol=1e-12)  # in order
    assert found.gap.tolist() == [0, 0]
    times = torch.stack([torch.isin(whole.continuous[:, 0], fit) for fit in fake.fits]).sum(0)
    assert times.tolist() == [3] * rows
    assert all(len(fit) in (rows - rows // 4 - 1, rows - rows // 4) for fit in fake.fits)


def test_training_rows_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crossfit, "MAX_TRAINING", 60)
    fake = Fake("fake", normal())
    assert bool((measured(data(), fake, Memory()).terms[0] < 1).all())
    screened(data(), fake)
    assert [len(fit) for fit in fake.fits] == [60] * 5


def test_held_out_rows_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counted(x: Tensor) -> Tensor:
        asked.append(len(x))
        return normal()(x)

    monkeypatch.setattr(crossfit, "MAX_HELD_OUT", 20)
    fake = Fake("fake", counted)
    screened(data(), fake)
    assert set(asked) == {20}
    assert [len(fit) for fit in fake.fits] == [240, 60, 120]  # all, and for the learning curve


# averages


def two_humps(rows: int = 1000) -> Sample:
    """Three in ten rows about -4, the others about 4."""
    one = data(rows)
    return Sample(one.continuous + torch.where(torch.arange(rows) % 10 < 3, -4.0, 4.0)[:, None], one.discrete, ())


def test_weights_are_those_of_the_mixture() -> None:
    rows, left, right = two_humps(), Fake("left", normal(-4)), Fake("right", normal(4))
    found = measured(rows, left, right)
    x = rows.continuous[:, 0].numpy()
    assert found.shares == pytest.approx({"left": 0.3, "right": 0.7}, abs=0.01)
    expected = np.log(0.3 * stats.norm.pdf(x, -4) + 0.7 * stats.norm.pdf(x, 4))
    np.testing.assert_allclose(found.terms[0], expected, atol=0.15)


def test_screening_keeps_what_makes_the_average_better() -> None:
    rows = two_humps()
    chosen = screened(rows, Fake("wide", normal(0, 6)), Fake("left", normal(-4)), Fake("right", normal(4)))
    assert set(names(chosen)) >= {"left", "right"}
    shares = dict(zip(names(chosen), chosen.weights.tolist(), strict=True))
    assert shares["left"] == pytest.approx(0.3, abs=0.08)
    assert sum(shares.values()) == pytest.approx(1)
    full, none = chosen.terms([rows])
    parts = torch.stack([one.fitted.terms(rows)[0].exp() for one in chosen.tried])
    np.testing.assert_allclose(full.exp(), chosen.weights @ parts, rtol=1e-9)
    np.testing.assert_allclose(chosen.ratio([rows]), full - none)


def test_the_first_of_equals_is_kept_alone() -> None:
    chosen = screened(data(), Fake("first", normal()), Fake("second", normal()), Fake("worse", normal(3)))
    assert names(chosen) == ["first"]
    assert chosen.weights.tolist() == [1]


@pytest.mark.parametrize(("gain", "kept"), [(0.0003, "simple"), (0.003, "better")])
def test_what_is_better_by_almost_nothing_does_not_count(gain: float, kept: str) -> None:
    better = Fake("better", lambda x: normal()(x) + gain)
    assert names(screened(data(), Fake("simple", normal()), better)) == [kept]


def test_scores_are_held_out_costs_of_all_that_was_tried() -> None:
    chosen = screened(data(4000), Fake("right", normal()), Fake("wrong", normal(1)))
    assert chosen.scores["right"] == pytest.approx(stats.norm.entropy(), abs=0.1)
    assert chosen.scores["wrong"] == pytest.approx(stats.norm.entropy() + 0.5, abs=0.15)


def test_what_a_fit_has_searched_for_is_fixed() -> None:
    tried = [Tried(0, Fake("searching", normal()), known(normal(), fixed=Fake("fixed", normal())))]
    chosen = Screened(tried, torch.ones(1), {})
    found = measure([View(data(), ENTROPY)], chosen, 4, torch.Generator().manual_seed(0), silent)
    assert found is not None
    assert found.shares == {"fixed": 1.0}


# the learning curve


class Learner(Fake):
    """Has learned more from more rows."""

    def fit(self, data: Sample, question: Question, generator: torch.Generator) -> Fitted:
        self.fits.append(data.continuous[:, 0])
        return known(lambda x: torch.full_like(x, -100 / len(data)))


def test_the_curve_is_of_nested_rows() -> None:
    learner = Learner("learner", normal())
    curve = screened(data(500), learner).curve
    assert curve is not None
    assert curve[0].tolist() == pytest.approx([1.0, 0.5, 0.25])  # -log q from 100, 200 and 400 rows
    assert curve[1].tolist() == [0, 0, 0]
    whole, quarter, half = (set(fit.tolist()) for fit in learner.fits)
    assert quarter < half < whole
    assert screened(data(100), learner).curve is None  # too few rows


def test_the_weights_of_a_fold_come_from_the_others() -> None:
    """Of rows that only one density of two explains, those of a fold do not count for it."""
    rows = data(8)
    x = rows.continuous[:, 0]

    def half(start: int) -> LogProb:
        return lambda v: torch.where(torch.isin(v, x[start::2]), 0.0, -9.0).double()

    first, second = Fake("first", half(0)), Fake("second", half(1))
    found = measured(rows, first, second, count=8)
    np.testing.assert_allclose(found.terms[0].exp(), 3 / 7, atol=0.01)


# repetitions


def test_repetitions_are_averaged() -> None:
    rows = data(200)
    left, right = Fake("left", normal(-1)), Fake("right", normal(1))
    runs = [measured(rows, left), measured(rows, left, right, count=5, seed=1)]
    both = Measured.average(runs)
    np.testing.assert_allclose(both.terms, (runs[0].terms + runs[1].terms) / 2)
    np.testing.assert_allclose(both.gap, (runs[0].gap + runs[1].gap) / 2)
    np.testing.assert_allclose(both.means, torch.stack([run.terms.mean(1) for run in runs]))
    assert both.shares["left"] == pytest.approx((1 + runs[1].shares["left"]) / 2)
    assert both.shares["right"] == pytest.approx(runs[1].shares["right"] / 2)
    assert both.folds == 5
    assert both.tail == pytest.approx((runs[0].tail + runs[1].tail) / 2)


# networks


def test_networks_are_tried_only_while_they_win() -> None:
    closed = Fake("closed", normal(1))
    wins, loses, never = (FakeNetwork(name, normal(mean)) for name, mean in (("a", 0.3), ("b", 2), ("c", 0)))
    chosen = screened(data(2000), closed, wins, loses, never)
    assert [len(one.fits) for one in (closed, wins, loses, never)] == [1, 3, 1, 0]  # the best again, on fewer rows
    assert names(chosen) == ["a"]
    assert list(chosen.scores) == ["closed", "a", "b"]
    same, after = FakeNetwork("same", normal()), FakeNetwork("after", normal())
    assert names(screened(data(), Fake("closed", normal()), same, after)) == ["closed"]
    assert (len(same.fits), len(after.fits)) == (1, 0)


# progress and randomness


def test_progress_of_folds() -> None:
    told: list[tuple[float, str]] = []
    candidates = [Fake("a", normal()), Fake("b", normal(1))]
    measure(
        [View(data(), ENTROPY)], taken(*candidates), 2, torch.Generator().manual_seed(0), lambda *it: told.append(it)
    )
    assert [part for part, _ in told] == [0, 0.25, 0.5, 0.75, 1]
    assert told[0][1] == "fold 1 of 2: a"
    assert told[3][1] == "fold 2 of 2: b"


def test_folds_come_from_the_generator_alone() -> None:
    before = torch.get_rng_state()
    fake = Fake("fake", normal())
    for seed in (0, 0, 1):
        measured(data(), fake, seed=seed)
    first, again, other = fake.fits[0], fake.fits[4], fake.fits[8]
    assert first.equal(again)
    assert not first.equal(other)
    assert torch.get_rng_state().equal(before)


def test_weights_come_from_held_out_rows() -> None:
    """Memory would have all of the weight on training rows; it gets what held-out rows of other folds give it."""
    rows, honest = data(), Fake("honest", normal())
    held = torch.stack([torch.full((300,), UNSEEN).double(), normal()(rows.continuous[:, 0])])
    shares = measured(rows, Memory(), honest).shares
    assert list(shares.values()) == pytest.approx(weights(held).tolist(), abs=0.01)


# nothing absurd


@pytest.mark.parametrize(
    ("value", "stderr", "limit", "absurd"),
    [
        (0.5, 0.1, 0.7, False),
        (-0.04, 0.001, 0.7, False),
        (-0.4, 0.2, 0.7, False),
        (-0.4, 0.1, 0.7, True),
        (0.9, 0.01, 0.7, True),
        (30.0, 0.1, math.inf, False),
        (0.5, 3.0, math.inf, True),
        (math.nan, 0.1, math.inf, True),
        (0.1, math.inf, math.inf, True),
    ],
)
def test_absurd_values(value: float, stderr: float, limit: float, absurd: bool) -> None:
    assert is_absurd(value, stderr, limit) == absurd


class Ratio(Fake):
    """An information that is known beforehand."""

    def fit(self, data: Sample, question: Question, generator: torch.Generator) -> Fitted:
        return known(normal(), lambda x: normal()(x) - self.log_prob(x))


def of(value: float) -> Ratio:
    return Ratio(str(value), lambda x: torch.full_like(x, value))


def asked(limit: float, *values: float) -> Measured | None:
    question = Question("mutual information", Part((0,)), Part((1,)), Part())
    chosen = taken(*map(of, values))
    both = replace(data(), continuous=torch.cat([data().continuous, data(seed=1).continuous], 1))
    return measure([View(both, question)], chosen, 4, torch.Generator().manual_seed(0), silent, limit=limit)


def test_candidates_with_absurd_values_are_left_out() -> None:
    found = asked(1.0, 0.3, 1e6)
    assert found is not None
    assert found.shares == {"0.3": 1.0}
    assert asked(1.0, 2.0) is None


def test_a_condition_that_misleads_does_no_harm() -> None:
    found = asked(1.0, -4.0)
    assert found is not None
    assert float((found.terms[0] - found.terms[1]).mean()) == pytest.approx(0, abs=1e-6)


def test_what_is_gaussian_given_a_condition_alone_invents_nothing() -> None:
    """Heavy tails plus normal noise: a Gaussian of all columns reads 2.1 nats, as the covariances say."""
    rng = np.random.default_rng(0)
    turned = stats.ortho_group.rvs(3, random_state=0)
    x = rng.standard_t(3, size=(3000, 3)) @ turned
    estimate = mutual_information(x, x + rng.normal(size=(3000, 3)), method="gaussian", effort="quick")
    assert abs(estimate.value - 3 * 0.589) < 0.1  # the truth by integration


def test_a_density_that_one_row_breaks_is_not_chosen() -> None:
    rows = data()
    far = rows.continuous[:, 0].abs().argmax()
    breaking = Fake("breaking", lambda x: normal()(x) + 1 - 1e7 * (x == rows.continuous[far, 0]))
    for seed in range(5):
        assert names(screened(rows, breaking, Fake("honest", normal()), seed=seed)) != []
    found = measured(rows, breaking, Fake("honest", normal()))
    assert found.shares == {"honest": 1.0}


# groups


def test_rows_of_a_group_are_never_learned_from_and_measured_on() -> None:
    rows = replace(data(60), groups=torch.arange(60) // 3)
    twins = replace(rows, continuous=rows.continuous[::3].repeat_interleave(3, 0))
    assert measured(twins, Memory(), count=5).terms[0].tolist() == [UNSEEN] * 60
    assert screened(twins, Memory(), Fake("honest", normal())).scores["memory"] == -UNSEEN


# weights of densities: those that a search over all of them finds


def log_probs(seed: int, scales: tuple[float, ...], rows: int = 300) -> Tensor:
    """Of normal densities at rows that half of the time are wider than a standard normal."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows) * np.where(rng.random(rows) < 0.5, 1, 4)
    return torch.tensor(np.stack([stats.norm.logpdf(x, scale=scale) for scale in scales]))


def likelihood(terms: Tensor, w: Tensor) -> float:
    return float(stacked(terms, w).mean())


@pytest.mark.parametrize("seed", range(3))
def test_two_weights_against_a_grid(seed: int) -> None:
    terms = log_probs(seed, (1.0, 4.0))
    grid = np.linspace(0.01, 0.99, 981)
    likely = special.logsumexp(terms.numpy()[:, None], 0, b=np.stack([grid, 1 - grid])[..., None]).mean(-1)
    w = weights(terms)
    assert float(w[0]) == pytest.approx(grid[likely.argmax()], abs=0.01)
    assert likelihood(terms, w) >= likely.max() - 1e-6


@given(st.integers(0, 1000), st.lists(st.floats(0.2, 20), min_size=1, max_size=6))
def test_weights_are_probabilities_that_beat_every_part(seed: int, scales: list[float]) -> None:
    terms = log_probs(seed, tuple(scales))
    w = weights(terms)
    assert float(w.sum()) == pytest.approx(1)
    assert bool(((w == 0) | (w >= MIN_WEIGHT)).all())
    assert likelihood(terms, w) >= float(terms.mean(1).max()) - MIN_WEIGHT * len(scales)


def test_what_does_not_help_gets_nothing() -> None:
    terms = log_probs(0, (1.0, 4.0))
    w = weights(torch.cat([terms, terms.amin(0, keepdim=True) - 2]))
    assert float(w[2]) == 0
    np.testing.assert_allclose(w[:2], weights(terms), rtol=1e-6)


def test_impossible_rows_are_no_obstacle() -> None:
    terms = torch.tensor([[-1.0, -torch.inf], [-1.0, -2.0]])
    assert weights(terms).tolist() == [0, 1]


def test_neither_order_nor_precision_matters() -> None:
    terms = log_probs(0, (0.7, 1.5, 5.0))
    np.testing.assert_allclose(weights(terms.flip(0)).flip(0), weights(terms), rtol=1e-9)
    assert weights(terms.float()).dtype == stacked(terms.float(), weights(terms.float())).dtype == torch.float32


@given(st.integers(0, 1000), st.integers(1, 5))
def test_stacked_is_the_log_of_the_average(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    terms, w = rng.normal(size=(count, 2, 7)), rng.dirichlet(np.ones(count))
    expected = np.log(np.einsum("c,cij->ij", w, np.exp(terms)))
    np.testing.assert_allclose(stacked(torch.tensor(terms), torch.tensor(w)), expected, rtol=1e-9, atol=1e-12)


def test_parts_without_weight_are_not_looked_at() -> None:
    terms = torch.tensor([[-1.0, -2.0], [torch.nan, torch.inf]])
    assert stacked(terms, torch.tensor([1.0, 0.0])).tolist() == [-1, -2]
