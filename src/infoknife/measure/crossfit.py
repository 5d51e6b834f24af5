"""Choose densities on held-out rows, and let every row be measured by densities that have not seen it."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

import torch
from torch import Tensor

from infoknife.measure.candidates.base import Candidate, Fitted
from infoknife.measure.candidates.canonical import dependence
from infoknife.measure.data import Data, Question, folds
from infoknife.measure.stacking import stacked, weights

__all__ = ["Measured", "Progress", "Screened", "measure", "screen"]

Progress = Callable[[float, str], None]

TRAINING = 40_000  # rows that a density is fitted to, at most; more only cost time
HELD = 20_000  # rows that choose, at most
WINS = 0.002  # nats a row that a density must gain over what is there to take part
SURE = 2.0  # standard errors by which anything must be better to be taken as better
ALIKE = 0.0005  # nats a row by which densities may differ and be as good as each other
PAIRINGS = 8  # of held-out rows, that stand for independence


class Screened(NamedTuple):
    """Densities that were tried on one division of the rows.

    Args:
        candidates: Those that take part in the answer.
        fitted: They, fitted to the training rows of the division.
        weights: Their weights.
        scores: The mean of -log q(t given c) of everything that was tried, by name.
    """

    candidates: list[Candidate]
    fitted: list[Fitted]
    weights: Tensor
    scores: dict[str, float]

    def terms(self, data: Data) -> Tensor:
        """The question's terms for every row, from the average of the fitted densities: (2, N)."""
        return stacked(torch.stack([one.terms(data) for one in self.fitted]), self.weights)

    def ratio(self, data: Data) -> Tensor:
        """The difference of the terms (N,)."""
        full, reduced = self.terms(data)
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
    def together(cls, runs: Sequence[Self]) -> Self:
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


def screen(
    data: Data, question: Question, candidates: Sequence[Candidate], generator: torch.Generator, progress: Progress
) -> Screened:
    """Try candidates on one division of the rows, the cheap ones first, networks only while they win."""
    order = torch.randperm(len(data), generator=generator)
    held, train = data.rows(order[: len(data) // 5][:HELD]), data.rows(order[len(data) // 5 :][:TRAINING])
    suitable = [one for one in candidates if one.suits(train, question)]
    if not suitable:
        raise ValueError(
            f"method is {candidates[0].family!r}, which cannot measure {question.quantity} of these columns from "
            f"{len(train)} training rows; expected one that can. Pass method='auto'"
        )
    tried: list[Candidate] = []
    fitted: list[Fitted] = []
    terms: list[Tensor] = []
    for i, candidate in enumerate(one for one in suitable if one.is_density):
        progress(i / len(suitable), candidate.name)
        one = candidate.fit(train, question, generator)
        tried, fitted, terms = [*tried, candidate], [*fitted, one], [*terms, one.terms(held)]
        if candidate.is_network and len(terms) > 1 and not _wins(_average(terms), _average(terms[:-1])):
            break
    densities = _kept(tried, fitted, terms) if tried else None
    for candidate in suitable:
        if not candidate.is_density:
            progress(1.0, candidate.name)
            return _larger(densities, candidate, candidate.fit(train, question, generator), held, generator)
    assert densities is not None
    return densities


def _average(terms: Sequence[Tensor]) -> Tensor:
    """log q(t given c) of the best average, for every held-out row (N,)."""
    full = torch.stack([one[0] for one in terms])
    return stacked(full, weights(full))


def _wins(now: Tensor, before: Tensor) -> bool:
    """Whether log-densities (N,) are better than others by something, and beyond chance."""
    gain = now - before
    if len(gain) < 2:
        return False
    return float(gain.mean()) > max(WINS, SURE * float(gain.std()) / math.sqrt(len(gain)))


def _kept(tried: list[Candidate], fitted: list[Fitted], terms: list[Tensor]) -> Screened:
    """The best candidate, and others as long as each makes the average better."""
    scores = {one.name: -float(part[0].mean()) for one, part in zip(tried, terms, strict=True)}
    kept: list[int] = []
    while len(kept) < len(tried):
        ways = {i: _average([terms[j] for j in [*kept, i]]) for i in range(len(tried)) if i not in kept}
        most = max(float(way.mean()) for way in ways.values())
        best = next(i for i, way in ways.items() if float(way.mean()) >= most - ALIKE)  # the simplest of the best
        if kept and not _wins(ways[best], _average([terms[j] for j in kept])):
            break
        kept.append(best)
    w = weights(torch.stack([terms[i][0] for i in kept]))
    return Screened([tried[i].settled(fitted[i]) for i in kept], [fitted[i] for i in kept], w, scores)


def _larger(
    densities: Screened | None, candidate: Candidate, one: Fitted, held: Data, generator: torch.Generator
) -> Screened:
    """The densities, or canonical features if these tell true pairs of held-out rows from others better."""
    scores = {candidate.name: math.nan} if densities is None else densities.scores | {candidate.name: math.nan}
    features = Screened([candidate.settled(one)], [one], torch.ones(1).to(held.continuous), scores)
    if densities is None:
        return features
    densities = densities._replace(scores=scores)
    pairings = [torch.randperm(len(held), generator=generator) for _ in range(PAIRINGS)]
    first, second = (
        dependence(
            way.ratio(held), torch.stack([way.ratio(held.paired(one.question.target, order)) for order in pairings])
        )
        for way in (densities, features)
    )
    gain = second - first
    return features if float(gain.mean()) > SURE * float(gain.std()) / math.sqrt(len(held)) else densities


def measure(
    data: Data,
    question: Question,
    candidates: Sequence[Candidate],
    count: int,
    generator: torch.Generator,
    progress: Progress,
) -> Measured:
    """Fit the candidates to all rows but those of one fold, and measure that fold; for every fold."""
    held = torch.zeros(len(candidates), 2, len(data)).to(data.continuous)
    seen: list[tuple[Tensor, Tensor]] = []
    parameters = 0
    for k, out in enumerate(parts := folds(len(data), count, generator)):
        rest = torch.cat([part for j, part in enumerate(parts) if j != k])
        rest = rest[torch.randperm(len(rest), generator=generator)[:TRAINING]]
        train, test = data.rows(rest), data.rows(out)
        learned = []
        for i, candidate in enumerate(candidates):
            progress((k + i / len(candidates)) / count, f"fold {k + 1} of {count}: {candidate.name}")
            one = candidate.fit(train, question, generator)
            held[i][:, out] = one.terms(test)
            mine = rest if one.seen is None else rest[one.seen]
            learned.append((mine, one.terms(data.rows(mine))))
            parameters = max(parameters, one.parameters)
        seen += [(learned[0][0], torch.stack([terms for _, terms in learned]))]
    w = weights(held[:, 0])
    terms = stacked(held, w)
    trained = [(rows, stacked(training, w)) for rows, training in seen]
    gaps = [(training - terms[:, rows]).mean(1) for rows, training in trained]
    scarce = [terms[0, out] < _low(training[0]) for out, (_, training) in zip(parts, trained, strict=True)]
    progress(1.0, "done")
    return Measured(
        terms=terms,
        gap=torch.stack(gaps).mean(0),
        means=terms.mean(1).unsqueeze(0),
        shares={one.name: float(share) for one, share in zip(candidates, w, strict=True)},
        parameters=parameters,
        folds=count,
        tail=float(torch.cat(scarce).double().mean()),
    )


def _low(log_prob: Tensor) -> Tensor:
    """What 99 % of the log-densities (N,) are above."""
    return log_prob.kthvalue(max(1, len(log_prob) // 100)).values
