"""A task is a named, configured distribution that knows its truth; no estimator has a part in it."""

import dataclasses
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Protocol, Self

import torch
from torch import Tensor
from typing_extensions import TypeVar, override

from infoknife.inputs import check_count, class_codes, matrix
from infoknife.tasks import checks
from infoknife.tasks.checks import Columns
from infoknife.tasks.integration import Certified

Seed = int | torch.Generator
Sample = TypeVar("Sample", bound=Tensor | tuple[Tensor, Tensor], default=Any)  # of x, or of x and y

BLOCK = 1 << 16  # rows of an oracle that are worked on at once
STEP = 1e-6  # of the parameter, for derivatives of truths and samples


@dataclass(frozen=True, repr=False, eq=False)
class Task(ABC, Generic[Sample]):
    r"""A named distribution with its truth in nats, $h(X)$ for an ``EntropyTask``, $I(X; Y)$ for a ``PairTask``.

    ``sample(n, seed)`` draws in float64 and casts, so that the samples of one seed agree to rounding in every
    dtype. ``seed`` is an integer, or a ``torch.Generator`` to go on drawing from, on its device.

    A kind of task is a frozen dataclass of its parameters with a ``formula``. Private methods say how it is checked
    (``_check``), what its truth is (``_truth``), how it is drawn (``_draw``) and what its log-densities are.

    Args:
        name: What the task is called in tables; by default its class with its parameters.

    Attributes:
        x_dim: Number of columns of x.
        y_dim: Number of columns of y; ``None`` without y and where y is a class.
        y_classes: Number of classes where y is discrete, else ``None``.
        parameter: The name of the parameter that ``gradient`` and ``velocity`` differentiate by, or ``None``.
    """

    name: str = field(default="", kw_only=True)
    x_dim: int = field(init=False)
    y_dim: int | None = field(init=False)
    y_classes: int | None = field(init=False)

    def __post_init__(self) -> None:
        x, y, classes = self._check()
        self._set(x_dim=x, y_dim=y, y_classes=classes, name=self.name or repr(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={_short(v)}' for k, v in self._fields().items())})"

    @property
    @abstractmethod
    def formula(self) -> str:
        """The distribution in symbols."""

    @property
    def description(self) -> str:
        """The distribution in one line: its formula and its dimensions."""
        x = f"{self.formula}; x has {_pluralized(self.x_dim, 'column')}"
        if self.y_classes is not None:
            return f"{x}, y is one of {self.y_classes} classes"
        return x if self.y_dim is None else f"{x}, y has {_pluralized(self.y_dim, 'column')}"

    @property
    def parameters(self) -> dict[str, Any]:
        """The configuration: numbers, lists of numbers and the configurations of parts, ready for JSON."""
        return {key: _plain(value) for key, value in self._fields().items()}

    @property
    def parameter(self) -> str | None:
        """The name of the parameter that ``gradient`` and ``velocity`` differentiate by."""
        return None

    @property
    def error(self) -> float:
        """A bound on the error of the truth itself, in nats; 0.0 for closed forms."""
        return self._known.error

    def sample(self, n: int, seed: Seed, *, dtype: torch.dtype = torch.float32) -> Sample:
        """Draw n independent samples: x (n, x_dim), or (x, y) with y (n, y_dim), or (n,) integers if it is a class."""
        check_count("n", n)
        return _cast(self._draw(n, checks.generator(seed)), dtype)

    def batches(
        self, batch_size: int, seed: Seed, *, dtype: torch.dtype = torch.float32
    ) -> Iterator[tuple[Tensor, ...]]:
        """Draw fresh batches without end: ``(x,)``, or ``(x, y)`` for pairs."""
        source = checks.generator(seed)
        return (_parts(self.sample(batch_size, source, dtype=dtype)) for _ in itertools.count())

    def velocity(self, n: int, seed: int, *, dtype: torch.dtype = torch.float32) -> Sample:
        """Derivative of ``sample(n, seed)`` by ``parameter``, from central differences; of pairs those of x and y.

        An estimator's gradient by the parameter is the sum of its gradient by x (and y) times this velocity.
        """
        moved = (_parts(self._moved(s).sample(n, seed, dtype=torch.float64)) for s in (STEP, -STEP))
        slopes = [(ahead - behind) / (2 * STEP) for ahead, behind in zip(*moved, strict=True)]
        return _cast(slopes[0] if len(slopes) == 1 else tuple(slopes), dtype)

    def truth(self) -> float:
        """What the task is about, in nats: h(X), or I(X; Y) of a pair."""
        return self._known.value

    def entropy(self) -> float:
        """h(X) in nats."""
        raise ValueError(f"{self.name} is a pair without a stated entropy; use mutual_information()")

    def mutual_information(self) -> float:
        """I(X; Y) in nats."""
        raise ValueError(f"{self.name} has no y, so no mutual information; use entropy() or a task with a y")

    def gradient(self) -> float:
        """Derivative of the truth by ``parameter``, in nats per unit of it, from central differences."""
        return (self._moved(STEP).truth() - self._moved(-STEP).truth()) / (2 * STEP)

    @abstractmethod
    def _check(self) -> Columns:
        """Raise where the parameters make no distribution, bring tensors to float64, and return the columns."""

    @abstractmethod
    def _draw(self, n: int, source: torch.Generator) -> Sample:
        """Draw float64 rows on the device of the source, and classes as integers."""

    @abstractmethod
    def _truth(self) -> Certified:
        """Work out the truth, a closed form or an integral with a bound on its error."""

    @cached_property
    def _known(self) -> Certified:
        return self._truth()

    def _fields(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init and f.name != "name"}

    def _set(self, **values: Any) -> None:
        """Write fields of a frozen task while it is being made."""
        for key, value in values.items():
            object.__setattr__(self, key, value)

    def _moved(self, step: float) -> Self:
        """The task with another value of its parameter."""
        if self.parameter is None:
            raise ValueError(
                f"{self.name} has no parameter to differentiate its truth by; take a task whose `parameter` is "
                f"not None, such as GaussianPair (rho) or UniformBall (radius)"
            )
        return dataclasses.replace(self, **{self.parameter: getattr(self, self.parameter) + step})


class EntropyTask(Task[Tensor]):
    r"""A distribution of x alone, with $h(X) = -\mathrm{E} \log p(X)$ and its log-density, the oracle."""

    @override
    def entropy(self) -> float:
        return self.truth()

    @abstractmethod
    def _log_prob(self, x: Tensor) -> Tensor:
        """Log-density (n,) of float64 rows."""

    def log_prob(self, x: Tensor) -> Tensor:
        """Log-density (N,) of x (N, x_dim) in nats; its mean over samples is -h(X)."""
        return _by_blocks(self._log_prob, matrix(x, "x", dim=self.x_dim))


class PairTask(Task[tuple[Tensor, Tensor]]):
    r"""A joint distribution with $I(X; Y) = \mathrm{E} \log p(X, Y) / p(X) p(Y)$ and its log-densities, the oracle."""

    @override
    def mutual_information(self) -> float:
        return self.truth()

    @abstractmethod
    def _log_prob(self, x: Tensor, y: Tensor) -> Tensor:
        """Joint log-density (n,)."""

    @abstractmethod
    def _log_prob_x(self, x: Tensor) -> Tensor:
        """Log-density of x alone (n,)."""

    @abstractmethod
    def _log_prob_y(self, y: Tensor) -> Tensor:
        """Log-density or log-probability of y alone (n,)."""

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return self._log_prob(x, y) - self._log_prob_x(x) - self._log_prob_y(y)

    def log_prob(self, x: Tensor, y: Tensor) -> Tensor:
        """Joint log-density (N,) of x (N, x_dim) and y (N, y_dim), in nats."""
        return _by_blocks(self._log_prob, *self._checked(x, y))

    def log_prob_x(self, x: Tensor) -> Tensor:
        """Log-density (N,) of x (N, x_dim) alone, in nats."""
        return _by_blocks(self._log_prob_x, matrix(x, "x", dim=self.x_dim))

    def log_prob_y(self, y: Tensor) -> Tensor:
        """Log-density (N,) of y alone, its log-probability where y is a class, in nats."""
        return _by_blocks(self._log_prob_y, self._checked_y(y))

    def pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        """log p(x, y) / (p(x) p(y)), shape (N,), in nats; its mean over samples is I(X; Y)."""
        return _by_blocks(self._pointwise, *self._checked(x, y))

    def _checked(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        x = matrix(x, "x", dim=self.x_dim)
        return x, self._checked_y(y, rows=len(x))

    def _checked_y(self, y: Tensor, rows: int | None = None) -> Tensor:
        if self.y_classes is not None:
            return class_codes(y, "y", classes=self.y_classes, rows=rows)
        return matrix(y, "y", dim=self.y_dim, rows=rows)


class Distribution(Protocol):
    """A distribution of rows (n, d)."""

    def rows(self, n: int, source: torch.Generator) -> Tensor:
        """Draw rows (n, d)."""

    def log_prob(self, x: Tensor) -> Tensor:
        """Log-density (n,) of rows (n, d)."""

    def marginal(self, columns: slice) -> Self:
        """The distribution of some of the columns."""


class DistributionTask(EntropyTask):
    """A task of one distribution."""

    _law: Distribution

    def _draw(self, n: int, source: torch.Generator) -> Tensor:
        return self._law.rows(n, source)

    def _log_prob(self, x: Tensor) -> Tensor:
        return self._law.log_prob(x)


Joint = TypeVar("Joint", bound=Distribution)


class PartitionedPair(PairTask, Generic[Joint]):
    """A pair cut from the rows of one distribution, of which the first columns are x."""

    _law: Joint

    @cached_property
    def _sides(self) -> tuple[Joint, Joint]:
        return self._law.marginal(slice(self.x_dim)), self._law.marginal(slice(self.x_dim, None))

    def _draw(self, n: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
        xy = self._law.rows(n, source)
        return xy[:, : self.x_dim], xy[:, self.x_dim :]

    def _log_prob(self, x: Tensor, y: Tensor) -> Tensor:
        return self._law.log_prob(torch.cat([x, y], -1))

    def _log_prob_x(self, x: Tensor) -> Tensor:
        return self._sides[0].log_prob(x)

    def _log_prob_y(self, y: Tensor) -> Tensor:
        return self._sides[1].log_prob(y)


def normals(*shape: int, source: torch.Generator) -> Tensor:
    """Draw standard normal numbers, float64."""
    return torch.randn(*shape, generator=source, dtype=torch.float64, device=source.device)


def uniforms(*shape: int, source: torch.Generator) -> Tensor:
    """Draw numbers uniform on [0, 1), float64."""
    return torch.rand(*shape, generator=source, dtype=torch.float64, device=source.device)


def rotation(dim: int, source: torch.Generator) -> Tensor:
    """Draw an orthogonal matrix (dim, dim)."""
    q: Tensor = torch.linalg.qr(normals(dim, dim, source=source)).Q
    return q


def _parts(rows: Any) -> tuple[Tensor, ...]:
    return rows if isinstance(rows, tuple) else (rows,)


def _cast(rows: Any, dtype: torch.dtype) -> Any:
    """Cast float64 samples; classes stay integers."""
    checks.floating(dtype)
    if isinstance(rows, tuple):
        return tuple(_cast(part, dtype) for part in rows)
    return rows.to(dtype) if rows.is_floating_point() else rows


def _by_blocks(function: Callable[..., Tensor], *arrays: Tensor) -> Tensor:
    """Apply an oracle in float64 to blocks of rows; the values have the dtype of the first floating array."""
    wide = [a.double() if a.is_floating_point() else a for a in arrays]
    blocks = zip(*(torch.split(a, BLOCK) for a in wide), strict=True)
    values = torch.cat([function(*block) for block in blocks])
    floating = [a.dtype for a in arrays if a.is_floating_point()]
    return values.to(floating[0]) if floating else values


def _pluralized(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _plain(value: Any) -> Any:
    """A value as JSON has it; parts of a task name their kind."""
    if isinstance(value, Tensor):
        return value.tolist()
    if isinstance(value, Task):
        return {"kind": type(value).__name__} | value.parameters
    if dataclasses.is_dataclass(value):
        fields = {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"kind": type(value).__name__} | fields
    return str(value) if value == math.inf else value


def _short(value: Any) -> str:
    return f"<{'x'.join(map(str, value.shape))}>" if isinstance(value, Tensor) else f"{value!r}"
