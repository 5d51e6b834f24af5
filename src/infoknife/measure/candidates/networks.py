"""Candidates that are trained by gradient: densities with a network inside, and classifiers."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar, final

import torch
from torch import Tensor, nn

from infoknife.densities import Density
from infoknife.estimators.difference import Difference
from infoknife.measure.candidates.base import Candidate, Fitted
from infoknife.measure.candidates.mixtures import MixedFitted, MixtureCandidate
from infoknife.measure.coordinates import Map, normal
from infoknife.measure.question import Part, Question, Sample
from infoknife.nn import MLP
from infoknife.randomness import borrowed
from infoknife.training import cosine, fit

HELD_OUT = 0.15  # of the training rows: the step is kept under which they are most likely
BATCH = 256
STEP_ROWS, MAX_STEPS = 10_000, 3  # steps grow with the rows from so many on, up to so many times
MIN_ROWS = 100  # training rows
MAX_CLASSES = 64  # classes, at most
SMOOTH = 0.5  # rows that every class is given in addition to its own

Module = TypeVar("Module", bound=nn.Module)
Build = Callable[[int, int | None], Density]


class _Network(Candidate):
    """Something that is trained for so many steps.

    Args:
        steps: Of the optimiser, for up to 10,000 rows; more rows get up to three times as many.
        lr: The learning rate.
    """

    is_network = True

    def __init__(self, steps: int, lr: float | None = 1e-2) -> None:
        self.steps, self.lr = steps, lr

    def _train(self, module: Module, rows: tuple[Tensor, ...], generator: torch.Generator) -> Module:
        seed = int(torch.randint(2**31, (), generator=generator))
        fit(
            module,
            rows if len(rows) > 1 else rows[0],
            steps=round(self.steps * min(max(len(rows[0]) / STEP_ROWS, 1), MAX_STEPS)),
            batch_size=min(BATCH, len(rows[0]) // 2),
            lr=self.lr,
            seed=seed,
            schedule=cosine,
            clip=10.0,
            validation=HELD_OUT,
            patience=6,
        )
        return module

    @abstractmethod
    def fit(self, data: Sample, question: Question, generator: torch.Generator) -> Fitted:
        """Fit it to training rows."""


@final
class NetworkDensity(_Network):
    """A density of continuous columns given others, in normal coordinates.

    Args:
        name: What users call it.
        build: Makes the density from the dimensions of target and condition.
        steps: Of the optimiser.
        lr: The learning rate.
    """

    def __init__(self, name: str, build: Build, steps: int, lr: float = 1e-2) -> None:
        super().__init__(steps, lr)
        self.name, self.build = name, build

    def supports(self, data: Sample, question: Question) -> bool:
        """A continuous target, and rows enough to hold some out."""
        return bool(question.target.continuous) and not question.target.discrete and len(data) >= MIN_ROWS

    def fit(self, data: Sample, question: Question, generator: torch.Generator) -> Fitted:
        """Train one density for every term of the question."""
        coordinates = normal(question, data.continuous)
        u = coordinates(data.continuous)[0].float()
        conditions = [question.condition]
        if question.reduced is not None and not question.apart:
            conditions.append(question.reduced)
        densities = []
        for columns in conditions:
            v = _condition(u, data, columns)
            t = u[:, question.target.continuous]
            with _seeded(generator):
                density = self.build(t.shape[1], v.shape[1] or None).to(u.device)
            densities.append(self._train(density, (t, v) if v.shape[1] else (t,), generator))
        return _DensityFitted(question, coordinates, conditions, densities)


@final
class _DensityFitted(Fitted):
    def __init__(self, question: Question, coordinates: Map, conditions: list[Part], densities: list[Density]) -> None:
        super().__init__(question, sum(p.numel() for one in densities for p in one.parameters()), is_flexible=True)
        self.coordinates, self.conditions, self.densities = coordinates, conditions, densities

    def _terms(self, data: Sample) -> Tensor:
        u, log_slopes = self.coordinates(data.continuous)
        columns = self.question.target.continuous
        log_slope, t = log_slopes[:, columns].sum(1), u[:, columns].float()
        terms = []
        for condition, density in zip(self.conditions, self.densities, strict=True):
            v = _condition(u.float(), data, condition)
            terms.append(density.log_prob(t, v if v.shape[1] else None).double() + log_slope)
        if self.question.apart:  # every column alone is standard normal
            terms.append(log_slope - 0.5 * (u[:, columns].square() + math.log(2 * math.pi)).sum(1))
        return torch.stack(terms if len(terms) == 2 else [terms[0], torch.zeros_like(terms[0])])


@final
class NetworkDifference(_Network):
    r"""The information of two continuous variables by ``Difference``: KNIFE by the chain rule, one network for both.

    It learns a rotation of one variable given the other, and chooses which is given. Either way the log-ratio and a
    mixture's $\log q(t)$ together are $\log q(t \mid c)$, which can be compared with that of other densities.
    """

    name = "difference"

    def __init__(self, steps: int, kernels: int | None = None) -> None:
        super().__init__(steps, lr=None)
        self.kernels = kernels

    def supports(self, data: Sample, question: Question) -> bool:
        """Two continuous variables, nothing given, and rows enough to hold some out."""
        return question.is_plain_information and not question.columns.discrete and len(data) >= MIN_ROWS

    def fit(self, data: Sample, question: Question, generator: torch.Generator) -> Fitted:
        """Train one network for both terms, and fit a mixture to the target."""
        coordinates = normal(question, data.continuous)
        u = coordinates(data.continuous)[0].float()
        c, t = question.condition.continuous, question.target.continuous
        with _seeded(generator):
            pair = Difference(len(c), len(t), ranks=False).to(u.device)
        self._train(pair, (u[:, c], u[:, t]), generator)
        few = data.narrowed(question.target)
        alone = MixtureCandidate(self.name, normal, self.kernels)
        marginal = alone.fit(few, Question(question.quantity, few.columns, Part(), Part()), generator)
        return _DifferenceFitted(question, coordinates, pair, marginal)

    def with_fixed_hyperparameters(self, fitted: Fitted) -> Candidate:
        """With the number of kernels that was found for the target."""
        assert isinstance(fitted, _DifferenceFitted)
        assert isinstance(fitted.marginal, MixedFitted)
        return NetworkDifference(self.steps, fitted.marginal.kernels)


@final
class _DifferenceFitted(Fitted):
    def __init__(self, question: Question, coordinates: Map, pair: Difference, marginal: Fitted) -> None:
        super().__init__(question, sum(p.numel() for p in pair.parameters()), is_flexible=True)
        self.coordinates, self.pair, self.marginal = coordinates, pair, marginal

    def _terms(self, data: Sample) -> Tensor:
        u, _ = self.coordinates(data.continuous)
        c, t = (u[:, side.continuous].float() for side in (self.question.condition, self.question.target))
        reduced = self.marginal.terms(data.narrowed(self.question.target))[1]
        return torch.stack([reduced + self.pair.pointwise(c, t).double(), reduced])


@final
class Classifier(_Network):
    """A network that tells the class from the condition, for a target of classes."""

    name = "classifier"

    def supports(self, data: Sample, question: Question) -> bool:
        """A discrete target of a few classes, and a condition with numbers in it."""
        target = question.target
        classes = math.prod(data.levels[j] for j in target.discrete)
        numbers = bool(question.condition.continuous)
        return (
            not target.continuous
            and classes <= MAX_CLASSES
            and numbers
            and not question.apart
            and len(data) >= MIN_ROWS
        )

    def fit(self, data: Sample, question: Question, generator: torch.Generator) -> Fitted:
        """Train one classifier for every condition; without one the frequencies answer."""
        coordinates = normal(question, data.continuous)
        u = coordinates(data.continuous)[0].float()
        labels = _labels(data, question.target)
        classes = math.prod(data.levels[j] for j in question.target.discrete)
        models: list[nn.Module] = []
        for columns in (question.condition, question.reduced):
            v = None if columns is None else _condition(u, data, columns)
            if v is None or v.shape[1] == 0:
                models.append(_Frequencies(labels, classes))
            else:
                with _seeded(generator):
                    model = _Softmax(v.shape[1], classes).to(v.device)
                models.append(self._train(model, (v, labels), generator))
        return _ClassesFitted(question, coordinates, models)


@final
class _ClassesFitted(Fitted):
    def __init__(self, question: Question, coordinates: Map, models: list[nn.Module]) -> None:
        super().__init__(question, sum(p.numel() for one in models for p in one.parameters()), is_flexible=True)
        self.coordinates, self.models = coordinates, models

    def _terms(self, data: Sample) -> Tensor:
        u, labels = self.coordinates(data.continuous)[0].float(), _labels(data, self.question.target)
        conditions = (self.question.condition, self.question.reduced or Part())
        full, reduced = (
            -model(_condition(u, data, columns), labels, reduce=False).double()
            for model, columns in zip(self.models, conditions, strict=True)
        )
        return torch.stack([full, torch.zeros_like(full) if self.question.reduced is None else reduced])


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


@contextmanager
def _seeded(generator: torch.Generator) -> Iterator[None]:
    """Let modules that start at random start from a generator, and leave the global one as it is."""
    with borrowed(int(torch.randint(2**31, (), generator=generator))):
        yield


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
