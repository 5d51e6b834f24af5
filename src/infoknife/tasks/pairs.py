"""Pairs of independent copies with an additive noise, normal or uniform: the tasks that every estimator meets first."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Self, final

import torch
from scipy.optimize import brentq
from torch import Tensor

from infoknife.tasks import checks
from infoknife.tasks.base import PairTask, normals, uniforms
from infoknife.tasks.checks import Columns
from infoknife.tasks.independent import SLACK
from infoknife.tasks.integration import Certified

ROOT3 = math.sqrt(3)


@dataclass(frozen=True, repr=False, eq=False)
class _CorrelatedCopies(PairTask):
    r"""d independent copies of $Y = \rho X + \sqrt{1 - \rho^2} E$, X and E of one distribution with variance 1."""

    dim: int
    rho: float

    parameter = "rho"

    @classmethod
    def of_information(cls, dim: int, nats: float) -> Self:
        """The pair with this mutual information."""
        checks.count(dim, "dim")
        if not (math.isfinite(nats) and nats >= 0):
            raise ValueError(f"nats is {nats}; expected a finite mutual information of at least 0")
        return cls(dim, cls._correlation(nats / dim))

    @staticmethod
    @abstractmethod
    def _correlation(nats: float) -> float:
        """The rho at which one copy has this information."""

    @staticmethod
    @abstractmethod
    def _standard(n: int, dim: int, source: torch.Generator) -> Tensor:
        """Draw X and E together (2, n, dim)."""

    def _check(self) -> Columns:
        checks.count(self.dim, "dim")
        checks.correlation(self.rho, "rho")
        return Columns(self.dim, self.dim)

    @property
    def _noise(self) -> float:
        return math.sqrt(1 - self.rho**2)

    def _draw(self, n: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
        x, noise = self._standard(n, self.dim, source)
        return x, self.rho * x + self._noise * noise

    def _log_prob(self, x: Tensor, y: Tensor) -> Tensor:
        noise = (y - self.rho * x) / self._noise
        return self._log_prob_x(x) + self._log_prob_x(noise) - self.dim * math.log(self._noise)


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

    @staticmethod
    def _correlation(nats: float) -> float:
        return math.sqrt(-math.expm1(-2 * nats))

    @staticmethod
    def _standard(n: int, dim: int, source: torch.Generator) -> Tensor:
        return normals(2, n, dim, source=source)

    def _truth(self) -> Certified:
        return Certified(-0.5 * self.dim * math.log1p(-(self.rho**2)))

    def _log_prob_x(self, x: Tensor) -> Tensor:
        return (-0.5 * x.square() - 0.5 * math.log(2 * math.pi)).sum(-1)

    def _log_prob_y(self, y: Tensor) -> Tensor:
        return self._log_prob_x(y)


@final
class UniformPair(_CorrelatedCopies):
    r"""d independent copies of $Y = \rho X + \sqrt{1 - \rho^2} E$, X and E uniform on $[-\sqrt3, \sqrt3]$.

    Y has a trapezoid for its density. With $t = |\rho| / \sqrt{1 - \rho^2}$, $I(X; Y)$ is $d\,t / 2$ for
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

    @staticmethod
    def _correlation(nats: float) -> float:
        slope = 2 * nats
        if slope > 1:  # log t <= I <= log t + 1/2 brackets the root
            slope = brentq(lambda t: _uniform_information(t) - nats, 1, math.exp(nats), xtol=1e-14)
        return slope / math.hypot(1, slope)

    @staticmethod
    def _standard(n: int, dim: int, source: torch.Generator) -> Tensor:
        return ROOT3 * (2 * uniforms(2, n, dim, source=source) - 1)

    def _truth(self) -> Certified:
        return Certified(self.dim * _uniform_information(abs(self.rho) / self._noise))

    def _log_prob_x(self, x: Tensor) -> Tensor:
        return _box_log_prob(x, ROOT3).sum(-1)

    def _log_prob_y(self, y: Tensor) -> Tensor:
        return _trapezoid_log_prob(y, ROOT3 * abs(self.rho), ROOT3 * self._noise).sum(-1)


@final
@dataclass(frozen=True, repr=False, eq=False)
class AdditiveUniform(PairTask):
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
        checks.positive(self.epsilon, "epsilon")
        return Columns(1, 1)

    def _truth(self) -> Certified:
        return Certified(_uniform_information(0.5 / self.epsilon))

    def _draw(self, n: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
        x, noise = uniforms(2, n, 1, source=source)
        return x, x + self.epsilon * (2 * noise - 1)

    def _log_prob(self, x: Tensor, y: Tensor) -> Tensor:
        return self._log_prob_x(x) + _box_log_prob(y - x, self.epsilon).sum(-1)

    def _log_prob_x(self, x: Tensor) -> Tensor:
        return _box_log_prob(x - 0.5, 0.5).sum(-1)

    def _log_prob_y(self, y: Tensor) -> Tensor:
        return _trapezoid_log_prob(y - 0.5, 0.5, self.epsilon).sum(-1)


def _uniform_information(t: float) -> float:
    """Information of a sum of two uniforms about the one that is t times as wide as the other, in nats."""
    return t / 2 if t <= 1 else math.log(t) + 0.5 / t


def _box_log_prob(x: Tensor, half: float) -> Tensor:
    """Log-density of the uniform distribution on [-half, half], a number at a time."""
    outside = x.abs() > (1 + SLACK) * half
    return torch.zeros_like(x).masked_fill(outside, -math.inf) - math.log(2 * half)


def _trapezoid_log_prob(x: Tensor, first: float, second: float) -> Tensor:
    """Log-density of the sum of uniforms on [-first, first] and [-second, second], a number at a time."""
    wide, narrow = max(first, second), max(min(first, second), 1e-12)
    ramp = ((1 + SLACK) * (wide + narrow) - x.abs()).clamp(min=0)
    return ramp.clamp(max=2 * narrow).log() - math.log(4 * wide * narrow)
