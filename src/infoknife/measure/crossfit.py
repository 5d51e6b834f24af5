"""Choose densities on held-out rows, and let every row be measured by densities that have not seen it."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

import torch
from torch import Tensor

from infoknife.measure.candidates.base import Candidate, Fitted, dependence
from infoknife.measure.question import Sample, View

Progress = Callable[[float, str], None]

MAX_TRAINING = 40_000  # rows that a density is fitted to; more only cost time
MAX_HELD_OUT = 20_000  # rows that choose
MIN_GAIN = 0.002  # nats per row that a density must gain over what is there to take part
Z_SCORE = 2.0  # standard errors by which anything must be better to be taken as better
TIE_TOLERANCE = 0.0005  # nats per row by which densities may differ and be as good as each other
PAIRINGS = 8  # of held-out rows, that stand for independence
MAX_ROW_COST = 1.0  # nats that a single row may cost in the mean: a density that loses more is broken by it
BELOW_ZERO = 0.05  # nats that an information may lie below zero by chance, or three standard errors
MAX_STDERR = 1.0  # nats: an information that is known no better is not known
ITERATIONS = 200  # of expectation maximisation for the weights
IMPOSSIBLE = -1e6  # log-density of a row that nothing explains
MIN_WEIGHT = 0.01  # weights below this are not worth a density


def weights(log_probs: Tensor) -> Tensor:
    r"""Weights (C,) of $\bar q = \sum_i w_i\, q_i$ under which held-out rows are most likely.

    Args:
        log_probs: Of C densities, for held-out rows (C, N).

    Example:
        >>> weights(torch.tensor([[-1.0, -1.0], [-9.0, -9.0]]))
        tensor([1., 0.])
    """
    log_probs = log_probs.clamp_min(IMPOSSIBLE)
    w = torch.full((len(log_probs), 1), 1 / len(log_probs)).to(log_probs)
    for _ in range(ITERATIONS):
        w = torch.softmax(log_probs + w.log(), 0).mean(1, keepdim=True).clamp_min(1e-12)
    w = torch.where(w < MIN_WEIGHT, 0.0, w)
    return (w / w.sum()).flatten()


def stacked(terms: Tensor, w: Tensor) -> Tensor:
    """The terms of the average, from those of its parts (C, ...) and their weights (C,), the same in every term."""
    kept = w > 0
    return torch.logsumexp(terms[kept] + w[kept].log().view(-1, *[1] * (terms.dim() - 1)), 0)


class Tried(NamedTuple):
    """A candidate in one of the views, fitted to training rows."""

    view: int
    candidate: Candidate
    fitted: Fitted

    def terms(self, samples: Sequence[Sample]) -> Tensor:
        """The question's terms for every row: (2, N)."""
        return self.fitted.terms(samples[self.view])

    def name(self, views: Sequence[View]) -> str:
        """The name of the candidate, and of its view if that is not the first."""
        return "-".join(filter(None, (self.candidate.name, views[self.view].name)))

    def fixed(self) -> "Tried":
        """With what was searched for fixed."""
        return self._replace(candidate=self.candidate.with_fixed_hyperparameters(self.fitted))


class Screened(NamedTuple):
    """Densities that were tried on one division of the rows.

    Args:
        tried: Those that take part in the answer.
        weights: Their weights.
        scores: The mean of -log q(t given c) of everything that was tried, by name.
    """

    tried: list[Tried]
    weights: Tensor
    scores: dict[str, float]

    def terms(self, samples: Sequence[Sample]) -> Tensor:
        """The question's terms for every row, from the average of the fitted densities: (2, N)."""
        return stacked(torch.stack([one.terms(samples) for one in self.tried]), self.weights)

    def ratio(self, samples: Sequence[Sample]) -> Tensor:
        """The difference of the terms (N,)."""
        full, reduced = self.terms(samples)
        return full - reduced


class Measured(NamedTuple):
    """What cross-fitting gives.

    Args:
        terms: The question's terms of every row, held out: (2, N).
        gap: Training minus held-out mean of the terms, (2,).
        means: The mean terms of every repetition, (repetitions, 2).
        shares: The weights of those candidates that take part, by name.
        parameters: Numbers learned in one fold.
        folds: How many folds.
        tail: The part of the held-out rows that are less likely than 99 % of the training rows.
    """

    terms: Tensor
    gap: Tensor
    means: Tensor
    shares: dict[str, float]
    parameters: int
    folds: int
    tail: float

    @classmethod
    def average(cls, runs: Sequence[Self]) -> Self:
        """The mean of several repetitions, whose folds differ."""
        names = dict.fromkeys(name for run in runs for name in run.shares)
        return cls(
            terms=torch.stack([run.terms for run in runs]).mean(0),
            gap=torch.stack([run.gap for run in runs]).mean(0),
            means=torch.cat([run.means for run in runs]),
            shares={name: sum(run.shares.get(name, 0.0) for run in runs) / len(runs) for name in names},
            parameters=max(run.parameters for run in runs),
            folds=max(run.folds for run in runs),
            tail=sum(run.tail for run in runs) / len(runs),
        )


def is_absurd(value: float, stderr: float, limit: float) -> bool:
    """Whether no information can have this value: far below zero, above an entropy, or not known at all.

    Args:
        value: In nats.
        stderr: Its standard error.
        limit: The entropy of a side whose values are counted, infinite if both are continuous.
    """
    if not (math.isfinite(value) and math.isfinite(stderr)):
        return True
    return value < -max(3 * stderr, BELOW_ZERO) or value > limit + max(3 * stderr, BELOW_ZERO) or stderr > MAX_STDERR


def screen(
    views: Sequence[View], candidates: Sequence[Candidate], generator: torch.Generator, progress: Progress
) -> Screened:
    """Try candidates on one division of the rows, the cheap ones first, networks only while they win."""
    first, second = views[0].sample.held_out(5, generator)
    held, train = ([view.sample.rows(part) for view in views] for part in (first[:MAX_HELD_OUT], second[:MAX_TRAINING]))
    suitable = [
        (i, one)
        for one in candidates
        for i, view in enumerate(views)
        if one.supports(train[i], view.question) and (i == 0 or one.sees_order)
    ]
    if not suitable:
        raise ValueError(
            f"method is {candidates[0].family!r}, which cannot measure {views[0].question.quantity} of these columns "
            f"from {len(train[0])} training rows; expected one that can. Set method to 'auto'"
        )
    tried: list[Tried] = []
    terms: list[Tensor] = []
    scores: dict[str, float] = {}
    lost = set[str]()  # networks that did not win: others are not tried
    for n, (i, candidate) in enumerate(suitable):
        if not candidate.is_density or (candidate.is_network and lost):
            continue
        progress(n / len(suitable), candidate.name)
        one = Tried(i, candidate, candidate.fit(train[i], views[i].question, generator))
        found = one.terms(held)
        name = one.name(views)
        scores[name] = -float(found[0].mean())
        if not _is_broken(found):
            tried, terms = [*tried, one], [*terms, found]
            if candidate.is_network and len(terms) > 1 and not _wins(_average(terms), _average(terms[:-1])):
                lost.add(name)
    best = _kept(tried, terms, scores) if tried else None
    for i, candidate in suitable:
        if not candidate.is_density:
            progress(1.0, candidate.name)
            one = Tried(i, candidate, candidate.fit(train[i], views[i].question, generator))
            scores[one.name(views)] = math.nan
            best = _better(best, one, scores, held, views, generator)
    if best is None:
        raise ValueError(
            f"no density fits these columns: their {views[0].question.quantity} cannot be measured. Look for values "
            f"that are far from all others, or set another method"
        )
    return best


def _is_broken(terms: Tensor) -> bool:
    """Whether a density cannot answer for held-out rows: not finite, or one row alone decides the mean."""
    if not bool(torch.isfinite(terms).all()):
        return True
    full = terms[0]
    return float(full.median() - full.min()) > MAX_ROW_COST * len(full) + 50


def _average(terms: Sequence[Tensor]) -> Tensor:
    """log q(t given c) of the best average, for every held-out row (N,)."""
    full = torch.stack([one[0] for one in terms])
    return stacked(full, weights(full))


def _wins(now: Tensor, before: Tensor) -> bool:
    """Whether log-densities (N,) are better than others by something, and beyond chance."""
    gain = now - before
    if len(gain) < 2:
        return False
    return float(gain.mean()) > max(MIN_GAIN, Z_SCORE * float(gain.std()) / math.sqrt(len(gain)))


def _kept(tried: list[Tried], terms: list[Tensor], scores: dict[str, float]) -> Screened:
    """The best candidate, and others as long as each makes the average better."""
    kept: list[int] = []
    while len(kept) < len(tried):
        ways = {i: _average([terms[j] for j in [*kept, i]]) for i in range(len(tried)) if i not in kept}
        most = max(float(way.mean()) for way in ways.values())
        best = next(i for i, way in ways.items() if float(way.mean()) >= most - TIE_TOLERANCE)  # the simplest of them
        if not kept and tried[best].view > 0:
            best = _counted(tried, ways, best)
        if kept and not _wins(ways[best], _average([terms[j] for j in kept])):
            break
        kept.append(best)
    w = weights(torch.stack([terms[i][0] for i in kept]))
    return Screened([tried[i].fixed() for i in kept], w, scores)


def _counted(tried: list[Tried], ways: dict[int, Tensor], best: int) -> int:
    """The best candidate that counts, if one that takes numbers in their order is better by chance alone."""
    counting = [i for i in ways if tried[i].view == 0]
    if not counting:
        return best
    other = max(counting, key=lambda i: float(ways[i].mean()))
    gain = ways[best] - ways[other]
    return best if float(gain.mean()) > float(gain.std()) / math.sqrt(len(gain)) else other


def _better(
    before: Screened | None,
    one: Tried,
    scores: dict[str, float],
    held: Sequence[Sample],
    views: Sequence[View],
    generator: torch.Generator,
) -> Screened:
    """What was best so far, or features if these tell true pairs of held-out rows from others better."""
    features = Screened([one.fixed()], torch.ones(1).to(held[0].continuous), scores)
    if before is None:
        return features
    pairings = [torch.randperm(len(held[0]), generator=generator) for _ in range(PAIRINGS)]
    targets = [view.question.target for view in views]
    mixed = [[sample.paired(target, order) for sample, target in zip(held, targets, strict=True)] for order in pairings]
    first, second = (
        dependence(way.ratio(held), torch.stack([way.ratio(samples) for samples in mixed]))
        for way in (before, features)
    )
    gain = second - first
    return features if float(gain.mean()) > Z_SCORE * float(gain.std()) / math.sqrt(len(gain)) else before


def measure(
    views: Sequence[View],
    screened: Screened,
    count: int,
    generator: torch.Generator,
    progress: Progress,
    *,
    limit: float = math.inf,
    half: float = 0.0,
) -> Measured | None:
    """Fit the candidates to all rows but those of one fold, and measure that fold; for every fold.

    Args:
        views: The rows and the question.
        screened: Which candidates, in which views.
        count: How many folds.
        generator: Of everything random.
        progress: Called with the part that is done and a few words.
        limit: What no information can exceed; candidates that give an absurd one are left out.
        half: The part of the gap that will be added to an information.

    Returns:
        ``None`` if every candidate gives an absurd value.
    """
    candidates, sample = screened.tried, views[0].sample
    held = torch.zeros(len(candidates), 2, len(sample)).to(sample.continuous)
    seen: list[tuple[Tensor, Tensor]] = []
    parameters = 0
    for k, out in enumerate(parts := sample.parts(count, generator)):
        rest = torch.cat([part for j, part in enumerate(parts) if j != k])
        rest = rest[torch.randperm(len(rest), generator=generator)[:MAX_TRAINING]]
        learned = []
        for i, (v, candidate, _) in enumerate(candidates):
            progress((k + i / len(candidates)) / count, f"fold {k + 1} of {count}: {candidate.name}")
            rows, question, _ = views[v]
            one = candidate.fit(rows.rows(rest), question, generator)
            held[i][:, out] = one.terms(rows.rows(out))
            mine = rest if one.seen is None else rest[one.seen]
            learned.append((mine, one.terms(rows.rows(mine))))
            parameters = max(parameters, one.parameters)
        seen += [(learned[0][0], torch.stack([terms for _, terms in learned]))]
    progress(1.0, "done")
    kept = _plausible(held, seen, limit, half if views[0].question.reduced is not None else None)
    if not kept:
        return None
    held = held[kept]
    w = weights(held[:, 0])
    terms = stacked(held, w)
    trained = [(rows, stacked(training[kept], w)) for rows, training in seen]
    gaps = [(training - terms[:, rows]).mean(1) for rows, training in trained]
    scarce = [terms[0, out] < _low(training[0]) for out, (_, training) in zip(parts, trained, strict=True)]
    return Measured(
        terms=terms,
        gap=torch.stack(gaps).mean(0),
        means=terms.mean(1).unsqueeze(0),
        shares=dict(zip([candidates[i].name(views) for i in kept], w.tolist(), strict=True)),
        parameters=parameters,
        folds=count,
        tail=float(torch.cat(scarce).double().mean()),
    )


def _plausible(held: Tensor, seen: list[tuple[Tensor, Tensor]], limit: float, half: float | None) -> list[int]:
    """Which candidates (C, 2, N) give a value that can be; all that are finite, where an entropy is asked for."""
    kept = []
    for i, terms in enumerate(held):
        if _is_broken(terms):
            continue
        if half is not None:
            ratio = terms[0] - terms[1]
            gaps = [((training[i][0] - training[i][1]) - ratio[rows]).mean() for rows, training in seen]
            value = float(ratio.mean() + half * torch.stack(gaps).mean())
            if is_absurd(value, float(ratio.std()) / math.sqrt(len(ratio)), limit):
                continue
        kept.append(i)
    return kept


def _low(log_prob: Tensor) -> Tensor:
    """What 99 % of the log-densities (N,) are above."""
    return log_prob.kthvalue(max(1, len(log_prob) // 100)).values
