"""Candidates that are trained by gradient: densities with a network inside, and classifiers."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar, final

import torch
from torch import Tensor, nn
from typing_extensions import override

from infoknife.densities import Density
from infoknife.estimators.difference import Difference
from infoknife.measure.candidates.base import Candidate, Fitted
from infoknife.measure.candidates.coordinates import normal
from infoknife.measure.candidates.mixtures import MixtureCandidate
from infoknife.measure.question import Part, Question, Sample
from infoknife.nn import MLP
from infoknife.randomness import borrowed
from infoknife.training import cosine, fit

HELD_OUT = 0.15  # of the training rows: the step is kept under which they are most likely
BATCH, LR = 256, 1e-2
STEP_ROWS, MAX_STEPS = 10_000, 3  # steps grow with the rows from so many on, up to so many times
MIN_ROWS = 100  # training rows
MAX_CLASSES = 64  # classes, at most
SMOOTH = 0.5  # rows that every class is given in addition to its own

Module = TypeVar("Module", bound=nn.Module)
Build = Callable[[int, int | None], Density]


@final
@dataclass(frozen=True)
class NetworkDensity(Candidate):
    """A density of continuous columns given others, in normal coordinates."""

    name: str
    build: Build  # makes the density from the dimensions of target and condition
    steps: int  # of the optimiser, for up to 10,000 rows; more rows get up to three times as many

    is_network = True

    @override
    def supports(self, data: Sample, question: Question) -> bool:
        return bool(question.target.continuous) and not question.target.discrete and len(data) >= MIN_ROWS

    @override
    def fit(self, data: Sample, question: Question, generator: torch.Generator) -> Fitted:
        """Train one density for every term of the question."""
        coordinates, target = normal(question, data.continuous), question.target.continuous
        u = coordinates(data.continuous)[0].float()
        conditions = [question.condition]
        if question.reduced is not None and not question.apart:
            conditions.append(question.reduced)
        densities = []
        for columns in conditions:
            t, v = u[:, target], _condition(u, data, columns)
            with borrowed(_seed(generator)):
                density = self.build(t.shape[1], v.shape[1] or None).to(u.device)
            densities.append(_train(density, (t, v) if v.shape[1] else (t,), generator, self.steps))

        def terms(data: Sample) -> Tensor:
            u, log_slopes = coordinates(data.continuous)
            log_slope, t = log_slopes[:, target].sum(1), u[:, target].float()
            terms = []
            for condition, density in zip(conditions, densities, strict=True):
                v = _condition(u.float(), data, condition)
                terms.append(density.log_prob(t, v if v.shape[1] else None).double() + log_slope)
            if question.apart:  # every column alone is standard normal
                terms.append(log_slope - 0.5 * (u[:, target].square() + math.log(2 * math.pi)).sum(1))
            return torch.stack(terms if len(terms) == 2 else [terms[0], torch.zeros_like(terms[0])])

        return Fitted(terms, _parameters(densities), is_flexible=True)


@final
@dataclass(frozen=True)
class NetworkDifference(Candidate):
    r"""The information of two continuous variables by ``Difference``: KNIFE by the chain rule, one network for both.

    It learns a rotation of one variable given the other, and chooses which is given. Either way the log-ratio and a
    mixture's $\log q(t)$ together are $\log q(t \mid c)$, which can be compared with that of other densities.
    """

    steps: int
    target: Candidate = MixtureCandidate("difference", normal)  # noqa: RUF009 (it is frozen)

    name = "difference"
    is_network = True

    @override
    def supports(self, data: Sample, question: Question) -> bool:
        return question.is_plain_information and not question.columns.discrete and len(data) >= MIN_ROWS

    @override
    def fit(self, data: Sample, question: Question, generator: torch.Generator) -> Fitted:
        """Train one network for both terms, and fit a mixture to the target."""
        coordinates = normal(question, data.continuous)
        u = coordinates(data.continuous)[0].float()
        c, t = question.condition.continuous, question.target.continuous
        with borrowed(_seed(generator)):
            pair = Difference(len(c), len(t), ranks=False).to(u.device)
        _train(pair, (u[:, c], u[:, t]), generator, self.steps, lr=None)
        few = data.narrowed(question.target)
        marginal = self.target.fit(few, Question(question.quantity, few.columns, Part(), Part()), generator)

        def terms(data: Sample) -> Tensor:
            u = coordinates(data.continuous)[0].float()
            reduced = marginal.terms(data.narrowed(question.target))[1]
            return torch.stack([reduced + pair.pointwise(u[:, c], u[:, t]).double(), reduced])

        fixed = replace(self, target=marginal.fixed or self.target)
        return Fitted(terms, _parameters([pair]), is_flexible=True, fixed=fixed)


@final
@dataclass(frozen=True)
class ClassifierCandidate(Candidate):
    """A network that tells the class from the condition, for a target of classes."""

    steps: int

    name = "classifier"
    is_network = True

    @override
    def supports(self, data: Sample, question: Question) -> bool:
        are_classes = not question.target.continuous and _classes(data, question.target) <= MAX_CLASSES
        return are_classes and bool(question.condition.continuous) and not question.apart and len(data) >= MIN_ROWS

    @override
    def fit(self, data: Sample, question: Question, generator: torch.Generator) -> Fitted:
        """Train one classifier for every condition; without one the frequencies answer."""
        coordinates, target = normal(question, data.continuous), question.target
        u, labels = coordinates(data.continuous)[0].float(), _labels(data, target)
        conditions = (question.condition, question.reduced or Part())
        models: list[nn.Module] = []
        for columns in conditions:
            v = _condition(u, data, columns)
            if v.shape[1]:
                with borrowed(_seed(generator)):
                    model = _Softmax(v.shape[1], _classes(data, target)).to(v.device)
                models.append(_train(model, (v, labels), generator, self.steps))
            else:
                models.append(_Frequencies(labels, _classes(data, target)))

        def terms(data: Sample) -> Tensor:
            u, labels = coordinates(data.continuous)[0].float(), _labels(data, target)
            full, reduced = (
                -model(_condition(u, data, columns), labels, reduce=False).double()
                for model, columns in zip(models, conditions, strict=True)
            )
            return torch.stack([full, torch.zeros_like(full) if question.reduced is None else reduced])

        return Fitted(terms, _parameters(models), is_flexible=True)


@final
class _Softmax(nn.Module):
    """Log-probabilities of classes: a linear model and a network alongside it."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, classes)
        self.network = MLP(features, classes, (64, 64), nn.SiLU)
        with torch.no_grad():
            for parameter in (*self.linear.parameters(), *self.network.last.parameters()):
                parameter.zero_()

    def forward(self, v: Tensor, labels: Tensor, reduce: bool = True) -> Tensor:
        """Mean of -log q(label given v), or all of them (N,)."""
        logits = self.linear(v) + self.network(v)
        return nn.functional.cross_entropy(logits, labels, reduction="mean" if reduce else "none")


@final
class _Frequencies(nn.Module):
    """Log-probabilities of classes without a condition."""

    def __init__(self, labels: Tensor, classes: int) -> None:
        super().__init__()
        counts = torch.bincount(labels, minlength=classes) + SMOOTH
        self.log_prob = (counts / counts.sum()).log()

    def forward(self, v: Tensor, labels: Tensor, reduce: bool = True) -> Tensor:
        """All of -log q(label) (N,)."""
        return -self.log_prob[labels]


def _train(
    module: Module, rows: tuple[Tensor, ...], generator: torch.Generator, steps: int, lr: float | None = LR
) -> Module:
    """Train a module until held-out rows are no more likely."""
    fit(
        module,
        rows if len(rows) > 1 else rows[0],
        steps=round(steps * min(max(len(rows[0]) / STEP_ROWS, 1), MAX_STEPS)),
        batch_size=min(BATCH, len(rows[0]) // 2),
        lr=lr,
        seed=_seed(generator),
        schedule=cosine,
        clip=10.0,
        validation=HELD_OUT,
        patience=6,
    )
    return module


def _seed(generator: torch.Generator) -> int:
    """Where a module starts that starts at random."""
    return int(torch.randint(2**31, (), generator=generator))


def _parameters(modules: Iterable[nn.Module]) -> int:
    return sum(parameter.numel() for module in modules for parameter in module.parameters())


def _classes(data: Sample, target: Part) -> int:
    """How many combinations the discrete columns of the target have."""
    return math.prod(data.levels[j] for j in target.discrete)


def _labels(data: Sample, target: Part) -> Tensor:
    """One code for all discrete columns of the target (N,)."""
    codes = torch.zeros(len(data), dtype=torch.long, device=data.discrete.device)
    for j in target.discrete:
        codes = codes * data.levels[j] + data.discrete[:, j]
    return codes


def _condition(u: Tensor, data: Sample, columns: Part) -> Tensor:
    """The columns of a condition as numbers: coordinates, and ones and zeros for classes (N, v)."""
    ones = [nn.functional.one_hot(data.discrete[:, j], data.levels[j]).to(u) for j in columns.discrete]
    return torch.cat([u[:, columns.continuous], *ones], 1)
