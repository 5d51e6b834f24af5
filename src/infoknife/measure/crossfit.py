"""Choose densities on held-out rows, and let every row be measured by densities that have not seen it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, Self

import torch
from torch import Tensor
from typing_extensions import override

from infoknife.distributed import alone
from infoknife.measure.candidates.base import Candidate, Fitted
from infoknife.measure.candidates.neighbours import Neighbours, are_crowded
from infoknife.measure.question import Part, Question, Sample, View

Progress = Callable[[float, str], None]

MAX_TRAINING = 40_000  # rows that a density is fitted to; more only cost time
MAX_HELD_OUT = 20_000  # rows that choose
MIN_GAIN = 0.002  # nats per row that a density must gain over what is there to take part
Z_SCORE, RATIO_Z_SCORE = 2.0, 3.0  # standard errors by which a density must be better; and what is none
TIE_TOLERANCE = 0.0005  # nats per row by which densities may differ and be as good as each other
MAX_ROW_COST = 1.0  # nats that a single row may cost in the mean: a density that loses more is broken by it
BELOW_ZERO = 0.05  # nats that an information may lie below zero by chance, or three standard errors
MAX_STDERR = 1.0  # nats: an information that is known no better is not known
ITERATIONS = 200  # of expectation maximisation for the weights
IMPOSSIBLE = -1e6  # log-density of a row that nothing explains
MIN_WEIGHT = 0.01  # weights below this are not worth a density
CURVE_PARTS = (4, 2, 1)  # parts of the training rows at which a learning curve is taken: one over these
MIN_CURVE_ROWS = 25  # of the smallest of them


def weights(log_probs: Tensor) -> Tensor:
    r"""Weights (C,) of $\bar q = \sum_i w_i\, q_i$ under which held-out rows are most likely.

    Args:
        log_probs: Of C densities, for held-out rows (C, N).

    Examples:
        >>> weights(torch.tensor([[-1.0, -1.0], [-9.0, -9.0]]))
        tensor([1., 0.])
    """
    log_probs = log_probs.clamp_min(IMPOSSIBLE)
    w = torch.full((len(log_probs), 1), 1 / len(log_probs)).to(log_probs)
    for _ in range(ITERATIONS if len(log_probs) > 1 else 0):
        w = torch.softmax(log_probs + w.log(), 0).mean(1, keepdim=True).clamp_min(1e-12)
    w = torch.where(w < MIN_WEIGHT, 0.0, w)
    return (w / w.sum()).flatten()


def stacked(terms: Tensor, w: Tensor) -> Tensor:
    """The terms of the average, from those of its parts (C, ...) and their weights (C,), the same in every term."""
    kept = w > 0
    return torch.logsumexp(terms[kept] + w[kept].log().view(-1, *[1] * (terms.dim() - 1)), 0)


def value_of(question: Question, terms: Tensor) -> Tensor:
    """What is asked for, of every row: the difference of its terms (2, N), or the first with its sign turned."""
    return -terms[0] if question.reduced is None else terms[0] - terms[1]


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


class Screened(NamedTuple):
    """Densities that were tried on one division of the rows."""

    tried: list[Tried]  # those that take part in the answer
    weights: Tensor  # theirs
    scores: dict[str, float]  # the mean of -log q(t given c) of everything that was tried, by name
    curve: Tensor | None = None  # what held-out rows say at nested parts of the training rows, as in `Measured`

    def terms(self, samples: Sequence[Sample]) -> Tensor:
        """The question's terms for every row, from the average of the fitted densities: (2, N)."""
        return stacked(torch.stack([one.terms(samples) for one in self.tried]), self.weights)

    def ratio(self, samples: Sequence[Sample]) -> Tensor:
        """The difference of the terms (N,)."""
        full, reduced = self.terms(samples)
        return full - reduced


@dataclass(frozen=True)
class _WithSecond(Candidate):
    """A candidate and, where there is one, what fits the second term by itself: together they have three terms.

    What is likely without the condition need not be so by the way.
    """

    own: Candidate
    second: Candidate | None

    @override
    def fit(self, data: Sample, question: Question, generator: torch.Generator) -> Fitted:
        full = self.own.fit(data, question, generator)
        if self.second is None:
            return replace(full, of_rows=lambda rows: full.of_rows(rows)[[0, 1, 1]], fixed=self)
        columns = question.target | (question.reduced or Part())
        alone = self.second.fit(data.narrowed(columns), question.of_reduced(), generator)

        def terms(rows: Sample) -> Tensor:
            return torch.cat([full.of_rows(rows), alone.terms(rows.narrowed(columns))[:1]])

        return replace(full, of_rows=terms, fixed=_WithSecond(self.own, alone.fixed or self.second))


class _Fold(NamedTuple):
    """A part of the rows, which is measured by what others have taught."""

    out: Tensor  # its rows
    rest: Tensor  # those of all other folds
    taught: Tensor  # of these, what densities were fitted to
    terms: Tensor  # of every candidate for what it was fitted to (C, 3 or 2, n)


class Measured(NamedTuple):
    """What cross-fitting gives."""

    terms: Tensor  # the question's terms of every row, held out: (2, N)
    gap: Tensor  # training minus held-out mean of the terms, (2,)
    flexible: float  # the weight of densities whose size was chosen on held-out rows
    means: Tensor  # the mean terms of every repetition, (repetitions, 2)
    shares: dict[str, float]  # the weights of those candidates that take part, by name
    parameters: int  # numbers learned in one fold
    folds: int  # how many folds
    tail: float  # the part of the held-out rows that are less likely than 99 % of the training rows
    curve: Tensor | None = None  # means at the parts of the rows of `CURVE_PARTS`, and errors of the steps: (2, parts)
    neighbours: Tensor | None = None  # what nearest neighbours say of every row (N,), `None` where they cannot
    beaten: float = math.inf  # what densities say where neighbours have taken their place

    @classmethod
    def average(cls, runs: Sequence[Self]) -> Self:
        """The mean of several repetitions, whose folds differ."""
        names = dict.fromkeys(name for run in runs for name in run.shares)

        def mean(parts: Sequence[Tensor | None]) -> Tensor | None:
            there = [part for part in parts if part is not None]
            return torch.stack(there).mean(0) if there else None

        return cls(
            terms=torch.stack([run.terms for run in runs]).mean(0),
            gap=torch.stack([run.gap for run in runs]).mean(0),
            flexible=sum(run.flexible for run in runs) / len(runs),
            means=torch.cat([run.means for run in runs]),
            shares={name: sum(run.shares.get(name, 0.0) for run in runs) / len(runs) for name in names},
            parameters=max(run.parameters for run in runs),
            folds=max(run.folds for run in runs),
            tail=sum(run.tail for run in runs) / len(runs),
            curve=mean([run.curve for run in runs]),
            neighbours=mean([run.neighbours for run in runs]),
            beaten=min(run.beaten for run in runs),
        )


def is_absurd(value: float, stderr: float, limit: float) -> bool:
    """Whether no information can have this value: far below zero, above a side's entropy, or not known at all."""
    if not (math.isfinite(value) and math.isfinite(stderr)):
        return True
    return value < -max(3 * stderr, BELOW_ZERO) or value > limit + max(3 * stderr, BELOW_ZERO) or stderr > MAX_STDERR


@alone()
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
        if one.supports(train[i], view.question) and (i == 0 or _gains(one, view))
    ]
    if not suitable:
        raise ValueError(
            f"method is {candidates[0].family!r}, which cannot measure {views[0].question.quantity} of these columns "
            f"from {len(train[0])} training rows; expected one that can. Set method to 'auto'"
        )
    tried: list[Tried] = []
    terms: list[Tensor] = []
    others: list[tuple[Tried, Tensor]] = []
    scores: dict[str, float] = {}
    for n, (i, candidate) in enumerate(suitable):
        if candidate.is_network and not _is_worth_training(candidate, i, tried, terms, views):
            continue
        progress(n / len(suitable), candidate.name)
        one = Tried(i, candidate, candidate.fit(train[i], views[i].question, generator))
        found = one.terms(held)
        scores[one.name(views)] = -float(found[0].mean()) if candidate.is_density else math.nan
        if _is_broken(found):
            continue
        if candidate.is_density:
            tried, terms = [*tried, one], [*terms, found]
        else:
            others.append((one, found))
    best = _kept(tried, terms, scores) if tried else None
    for one, found in others:
        if best is None or (views[0].question.reduced is not None and _exceeds(found[0] - found[1], best.ratio(held))):
            best = Screened([one], found.new_ones(1), scores)
    if best is None:
        raise ValueError(
            f"no density fits these columns: their {views[0].question.quantity} cannot be measured. Look for values "
            f"that are far from all others, or set another method"
        )
    return best._replace(curve=_curve(best, train, held, views, generator))


def _gains(candidate: Candidate, view: View) -> bool:
    """Whether another view than the first may tell a candidate more."""
    return candidate.sees_rotation if view.name == "unmixed" else candidate.sees_order


def _is_worth_training(
    candidate: Candidate, view: int, tried: list[Tried], terms: list[Tensor], views: Sequence[View]
) -> bool:
    """Whether a network may win: in the best view of the cheap ones, if the networks before it have won."""
    if not tried:
        return True
    cheap = [i for i, one in enumerate(tried) if not one.candidate.is_network]
    best = max(cheap, key=lambda i: float(terms[i][0].mean())) if cheap else 0
    if (views[view].name == "unmixed") != (views[tried[best].view].name == "unmixed"):
        return not cheap
    last = tried[-1].candidate.is_network
    return not last or _exceeds(_average(terms), _average(terms[:-1]), Z_SCORE)


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


def _exceeds(one: Tensor, other: Tensor, z_score: float = RATIO_Z_SCORE) -> bool:
    """Whether numbers (N,) are larger than others by something, and beyond chance."""
    gain = one - other
    return len(gain) > 1 and float(gain.mean()) > max(MIN_GAIN, z_score * float(gain.std()) / math.sqrt(len(gain)))


def _kept(tried: list[Tried], terms: list[Tensor], scores: dict[str, float]) -> Screened:
    """The best candidate, and others as long as each makes the average better."""
    kept: list[int] = []
    while len(kept) < len(tried):
        ways = {i: _average([terms[j] for j in [*kept, i]]) for i in range(len(tried)) if i not in kept}
        most = max(float(way.mean()) for way in ways.values())
        best = next(i for i, way in ways.items() if float(way.mean()) >= most - TIE_TOLERANCE)  # the simplest of them
        if not kept and tried[best].view > 0:
            best = _counted(tried, ways, best)
        if kept and not _exceeds(ways[best], _average([terms[j] for j in kept]), Z_SCORE):
            break
        kept.append(best)
    w = weights(torch.stack([terms[i][0] for i in kept]))
    return Screened([tried[i] for i in kept], w, scores)


def _counted(tried: list[Tried], ways: dict[int, Tensor], best: int) -> int:
    """The best candidate in the first view, if one in another is better by chance alone."""
    counting = [i for i in ways if tried[i].view == 0]
    if not counting:
        return best
    other = max(counting, key=lambda i: float(ways[i].mean()))
    gain = ways[best] - ways[other]
    return best if float(gain.mean()) > float(gain.std()) / math.sqrt(len(gain)) else other


def _curve(
    screened: Screened,
    train: Sequence[Sample],
    held: Sequence[Sample],
    views: Sequence[View],
    generator: torch.Generator,
) -> Tensor | None:
    """What held-out rows say at nested parts of the training rows: means, and errors of the steps, (2, parts)."""
    count = len(train[0])
    if count < CURVE_PARTS[0] * MIN_CURVE_ROWS or len(held[0]) < 2:
        return None
    values = []
    for part in CURVE_PARTS:
        few = [sample.rows(slice(count // part)) for sample in train]
        again = [
            one
            if part == 1
            else one._replace(fitted=one.candidate.fit(few[one.view], views[one.view].question, generator))
            for one in screened.tried
        ]
        values.append(value_of(views[0].question, screened._replace(tried=again).terms(held)))
    return _points(values)


def _points(values: Sequence[Tensor]) -> Tensor:
    """A learning curve from what the same rows (N,) say at every part: means, and errors of the steps, (2, parts)."""
    steps = [torch.zeros_like(values[0]), *(b - a for a, b in pairwise(values))]
    errors = [step.std() / math.sqrt(len(step)) for step in steps]
    return torch.stack([torch.stack([value.mean() for value in values]), torch.stack(errors)]).cpu()


@alone()
def measure(
    views: Sequence[View],
    screened: Screened,
    count: int,
    generator: torch.Generator,
    progress: Progress,
    *,
    limit: float = math.inf,  # what no information can exceed; candidates that give an absurd one are left out
    named: bool = False,  # whether one method was asked for: neighbours then never take its place
) -> Measured | None:
    """Fit the candidates to all rows but those of one fold, and measure that fold; for every fold.

    The weights of a fold come from the rows of all others. The answer is ``None`` if every candidate gives an absurd
    value.
    """
    tried = [one._replace(candidate=one.fitted.fixed or one.candidate) for one in screened.tried]
    asked = [views[one.view].question for one in tried]
    both: list[Candidate] = [
        _WithSecond(one, one.alone(question) if question.has_reduced_density else None)
        for (_, one, _), question in zip(tried, asked, strict=True)
    ]
    sample, question, _ = views[0]
    held = torch.zeros(len(tried), 3, len(sample)).to(sample.continuous)
    parameters, flexible, folds = 0, [0.0] * len(tried), []
    parts = sample.parts(count, generator)
    for k, out in enumerate(parts):
        rest = torch.cat([*parts[:k], *parts[k + 1 :]])
        taught = rest[torch.randperm(len(rest), generator=generator)[:MAX_TRAINING]]
        learned = []
        for i, one in enumerate(tried):
            progress((k + i / len(tried)) / count, f"fold {k + 1} of {count}: {one.candidate.name}")
            rows = views[one.view].sample
            fitted = both[i].fit(training := rows.rows(taught), asked[i], generator)
            both[i] = fitted.fixed or both[i]  # what the first fit searches for, others take over
            held[i][:, out] = fitted.terms(rows.rows(out))
            learned.append(fitted.terms(training))
            parameters, flexible[i] = max(parameters, fitted.parameters), float(fitted.is_flexible)
        folds.append(_Fold(out, rest, taught, torch.stack(learned)))
    progress(1.0, "done")
    held, folds = _nested(held, folds, [question.reduced is not None and one.candidate.is_density for one in tried])
    kept = _plausible(held, folds, limit, question)
    if not kept:
        return None
    held = held[kept]
    each = [weights(_some(held[:, 0, fold.rest])) for fold in folds]
    terms = torch.zeros_like(held[0])
    for fold, w in zip(folds, each, strict=True):
        terms[:, fold.out] = stacked(held[:, :, fold.out], w)
    seen = [stacked(fold.terms[kept], w) for fold, w in zip(folds, each, strict=True)]
    gaps = [(one - terms[:, fold.taught]).mean(1) for fold, one in zip(folds, seen, strict=True)]
    scarce = [terms[0, fold.out] < _low(one[0]) for fold, one in zip(folds, seen, strict=True)]
    names, shares = [tried[i].name(views) for i in kept], torch.stack(each).mean(0).tolist()
    measured = Measured(
        terms=terms,
        gap=torch.stack(gaps).mean(0),
        flexible=sum(flexible[i] * share for i, share in zip(kept, shares, strict=True)),
        means=terms.mean(1).unsqueeze(0),
        shares=dict(zip(names, shares, strict=True)),
        parameters=parameters,
        folds=count,
        tail=float(torch.cat(scarce).double().mean()),
        curve=screened.curve,
        neighbours=_neighbours(views[0], folds, generator),
    )
    return measured if named else _or_neighbours(measured, views[0], generator)


def _nested(held: Tensor, folds: Sequence[_Fold], are_nested: Sequence[bool]) -> tuple[Tensor, list[_Fold]]:
    """Terms (C, 2, N) in which either density can do what the other can, from those of `_WithSecond` (C, 3, N).

    The second is the best average of a candidate's own and the one that was fitted by itself, so that no information is
    invented; the first the best average with the second, so that a condition that tells nothing does no harm. The
    weights of a fold come from the rows of all others.
    """
    terms, seen = held[:, :2].clone(), [fold.terms[:, :2].clone() for fold in folds]

    def nested(three: Tensor, alone: Tensor, either: Tensor) -> Tensor:
        second = stacked(three[1:], alone)
        return torch.stack([stacked(torch.stack([three[0], second]), either), second])

    for fold, own in zip(folds, seen, strict=True):
        for i in (i for i, is_nested in enumerate(are_nested) if is_nested):
            some = _some(held[i][:, fold.rest])
            alone = weights(some[1:])
            either = weights(torch.stack([some[0], stacked(some[1:], alone)]))
            terms[i, :, fold.out] = nested(held[i][:, fold.out], alone, either)
            own[i] = nested(fold.terms[i], alone, either)
    return terms, [fold._replace(terms=own) for fold, own in zip(folds, seen, strict=True)]


def _or_neighbours(measured: Measured, view: View, generator: torch.Generator) -> Measured:
    """What nearest neighbours say of an information, if that is surely more than the corrected value.

    Both are low where they are off: densities smooth what is fine, neighbours what is strong or in many columns. Given
    a third variable neighbours may be too high, and only widen the interval.
    """
    question = view.question
    found, correction = measured.neighbours, (1 + measured.flexible) / 2 * (measured.gap[0] - measured.gap[1])
    before = value_of(question, measured.terms) + correction
    if not question.is_plain_information or found is None or not _exceeds(found, before):
        return measured
    terms = torch.stack([found, torch.zeros_like(found)])
    return measured._replace(
        terms=terms,
        gap=torch.zeros_like(measured.gap),
        means=terms.mean(1).unsqueeze(0),
        shares={Neighbours.name: 1.0},
        parameters=0,
        curve=_curve_of_neighbours(view, generator),
        beaten=float(before.mean()),
    )


def _curve_of_neighbours(view: View, generator: torch.Generator) -> Tensor | None:
    """The learning curve of nearest neighbours, at the rows of its smallest part."""
    sample, question, _ = view
    order = torch.randperm(len(sample), generator=generator)
    some = sample.rows(order[: len(sample) // CURVE_PARTS[0]])
    if len(some) < MIN_CURVE_ROWS:
        return None
    nested = [sample.rows(order[: len(sample) // part]) for part in CURVE_PARTS]
    return _points([value_of(question, Neighbours().fit(rows, question, generator).terms(some)) for rows in nested])


def _neighbours(view: View, folds: Sequence[_Fold], generator: torch.Generator) -> Tensor | None:
    """What nearest neighbours among the rows of all other folds say of every row (N,)."""
    sample, question, _ = view
    candidate, found = Neighbours(), torch.zeros(len(sample)).to(sample.continuous)
    if not candidate.supports(sample, question) or len(sample) > MAX_TRAINING or are_crowded(sample):
        return None
    for out, rest, *_ in folds:
        found[out] = value_of(question, candidate.fit(sample.rows(rest), question, generator).terms(sample.rows(out)))
    return found


def _some(log_probs: Tensor) -> Tensor:
    """Every so many columns of log-densities (C, N): enough for weights."""
    return log_probs[:, :: -(-log_probs.shape[1] // MAX_HELD_OUT)]


def _plausible(held: Tensor, folds: Sequence[_Fold], limit: float, question: Question) -> list[int]:
    """Which candidates (C, 2, N) give a value that can be; all that are finite, where an entropy is asked for."""
    kept = []
    for i, terms in enumerate(held):
        if _is_broken(terms):
            continue
        if question.reduced is not None:
            ratio = terms[0] - terms[1]
            gaps = [((fold.terms[i][0] - fold.terms[i][1]) - ratio[fold.taught]).mean() for fold in folds]
            value = float(ratio.mean() + torch.stack(gaps).mean() / 2)
            if is_absurd(value, float(ratio.std()) / math.sqrt(len(ratio)), limit):
                continue
        kept.append(i)
    return kept


def _low(log_prob: Tensor) -> Tensor:
    """What 99 % of the log-densities (N,) are above."""
    return log_prob.kthvalue(max(1, len(log_prob) // 100)).values
