"""Pairs of independent copies with an additive noise, normal or uniform: the tasks that every estimator meets first."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self, final

import torch
from scipy.optimize import brentq
from torch import Tensor

from infoknife.inputs import check_count, check_number
from infoknife.tasks import checks
from infoknife.tasks.base import PairTask
from infoknife.tasks.checks import Columns
from infoknife.tasks.independent import SLACK
from infoknife.tasks.integration import Certified
from infoknife.tasks.laws import FLAT, NORMAL, Noise

ROOT3 = math.sqrt(3)


class _NoisyCopies(PairTask):
    """Independent copies of Y = slope X + spread E, and X = centre + width U, with U and E of one distribution."""

    _noise: ClassVar[Noise]

    @property
    @abstractmethod
    def _shape(self) -> tuple[float, float, float, float]:
        """Centre and width of X, slope, and spread of the noise."""

    def _draw(self, n: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
        centre, width, slope, spread = self._shape
        u, noise = self._noise.draw((2, n, self.x_dim), source)
        x = centre + width * u
        return x, slope * x + spread * noise

    def _log_prob(self, x: Tensor, y: Tensor) -> Tensor:
        _, _, slope, spread = self._shape
        noise = self._noise.log_prob((y - slope * x) / spread) - math.log(spread)
        return self._log_prob_x(x) + noise.sum(-1)

    def _log_prob_x(self, x: Tensor) -> Tensor:
        centre, width, _, _ = self._shape
        return (self._noise.log_prob((x - centre) / width) - math.log(width)).sum(-1)


class _UniformSums(_NoisyCopies):
    """X and E are uniform, so that Y has a trapezoid for its density."""

    _noise = FLAT._replace(log_prob=lambda e: FLAT.log_prob(e / (1 + SLACK)))

    def _truth(self) -> Certified:
        _, width, slope, spread = self._shape
        return Certified(self.x_dim * _uniform_information(width * abs(slope) / spread))

    def _log_prob_y(self, y: Tensor) -> Tensor:
        centre, width, slope, spread = self._shape
        narrow, wide = sorted((max(width * abs(slope), 1e-12), spread))
        ramp = ((1 + SLACK) * (wide + narrow) - (y - slope * centre).abs()).clamp(min=0)
        return (ramp.clamp(max=2 * narrow).log() - math.log(4 * wide * narrow)).sum(-1)


@dataclass(frozen=True, repr=False, eq=False)
class _CorrelatedCopies(_NoisyCopies):
    r"""d independent copies of $Y = \rho X + \sqrt{1 - \rho^2} E$, X and E of one distribution with variance 1."""

    dim: int
    rho: float

    parameter = "rho"
    _unit = 1.0  # of the distribution

    @classmethod
    def of_information(cls, dim: int, nats: float) -> Self:
        """The pair with this mutual information."""
        check_count("dim", dim)
        if not (math.isfinite(nats) and nats >= 0):
            raise ValueError(f"nats is {nats}; expected a finite mutual information of at least 0")
        return cls(dim, cls._correlation(nats / dim))

    @staticmethod
    @abstractmethod
    def _correlation(nats: float) -> float:
        """The rho at which one copy has this information."""

    def _check(self) -> Columns:
        check_count("dim", self.dim)
        checks.correlation(self.rho, "rho")
        return Columns(self.dim, self.dim)

    @property
    def _shape(self) -> tuple[float, float, float, float]:
        return 0.0, self._unit, self.rho, self._unit * math.sqrt(1 - self.rho**2)


@final
class GaussianPair(_CorrelatedCopies):
    r"""d independent normal pairs with correlation $\rho$: $I(X; Y) = -\frac d2 \log(1 - \rho^2)$.

    Args:
        dim: Number d of pairs; x and y have d columns each.
        rho: Correlation, the parameter of the gradient $d \rho / (1 - \rho^2)$.

    Examples:
        >>> task = GaussianPair.of_information(dim=20, nats=10)
        >>> round(task.rho, 4), round(task.mutual_information(), 4), round(task.gradient(), 3)
        (0.7951, 10.0, 43.224)
        >>> x, y = task.sample(100, seed=0)
    """

    formula = "(X_i, Y_i) normal with correlation rho"
    _noise = NORMAL

    @staticmethod
    def _correlation(nats: float) -> float:
        return math.sqrt(-math.expm1(-2 * nats))

    def _truth(self) -> Certified:
        return Certified(-0.5 * self.dim * math.log1p(-(self.rho**2)))

    def _log_prob_y(self, y: Tensor) -> Tensor:
        return self._log_prob_x(y)


@final
class UniformPair(_UniformSums, _CorrelatedCopies):
    r"""d independent copies of $Y = \rho X + \sqrt{1 - \rho^2} E$, X and E uniform on $[-\sqrt3, \sqrt3]$.

    With $t = |\rho| / \sqrt{1 - \rho^2}$, $I(X; Y)$ is $d\,t / 2$ for
    $t \le 1$ and $d (\log t + \frac1{2t})$ beyond.

    Args:
        dim: Number d of copies; x and y have d columns each.
        rho: Correlation, the parameter of the gradient.

    Examples:
        >>> task = UniformPair.of_information(dim=20, nats=10)
        >>> round(task.rho, 4), round(task.mutual_information(), 4)
        (0.7071, 10.0)
    """

    formula = "Y = rho X + sqrt(1 - rho^2) E, X and E uniform on [-sqrt 3, sqrt 3]"
    _unit = ROOT3

    @staticmethod
    def _correlation(nats: float) -> float:
        slope = 2 * nats
        if slope > 1:  # log t <= I <= log t + 1/2 brackets the root
            slope = brentq(lambda t: _uniform_information(t) - nats, 1, math.exp(nats), xtol=1e-14)
        return slope / math.hypot(1, slope)


@final
@dataclass(frozen=True, repr=False, eq=False)
class AdditiveUniform(_UniformSums):
    r"""$Y = X + E$ with X uniform on [0, 1] and E on $[-\epsilon, \epsilon]$.

    $I(X; Y)$ is $\epsilon - \log 2\epsilon$ for $\epsilon \le \frac12$ and $\frac1{4 \epsilon}$ beyond.

    Args:
        epsilon: Reach of the noise, the parameter of the gradient.

    Examples:
        >>> round(AdditiveUniform(0.1).mutual_information(), 4)
        1.7094
    """

    epsilon: float

    formula = "Y = X + E, X uniform on [0, 1], E uniform on [-epsilon, epsilon]"
    parameter = "epsilon"

    def _check(self) -> Columns:
        check_number("epsilon", self.epsilon, above=True)
        return Columns(1, 1)

    @property
    def _shape(self) -> tuple[float, float, float, float]:
        return 0.5, 0.5, 1.0, self.epsilon


def _uniform_information(t: float) -> float:
    """Information of a sum of two uniforms about the one that is t times as wide as the other, in nats."""
    return t / 2 if t <= 1 else math.log(t) + 0.5 / t
