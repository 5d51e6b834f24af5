"""Sums of two uniform variables: a flat noise with edges that no Gaussian has."""

import math
from dataclasses import dataclass
from typing import Self, final

import torch
from scipy.optimize import brentq
from torch import Tensor

from infoknife.tasks import checks
from infoknife.tasks.base import uniforms
from infoknife.tasks.gaussian_pair import per_copy
from infoknife.tasks.pair_task import PairTask
from infoknife.tasks.uniform import SLACK

__all__ = ["AdditiveUniform", "UniformPair"]

ROOT3 = math.sqrt(3)


@final
@dataclass(frozen=True, repr=False, eq=False)
class UniformPair(PairTask):
    r"""d independent copies of $Y = \rho X + \sqrt{1 - \rho^2} E$, X and E uniform on $[-\sqrt3, \sqrt3]$.

    Y has a trapezoid for its density. With $t = |\rho| / \sqrt{1 - \rho^2}$, $I(X; Y)$ is $d\,t / 2$ for
    $t \le 1$ and $d (\log t + \frac1{2t})$ beyond.

    Args:
        dim: Number d of copies; x and y have d columns each.
        rho: Correlation, the parameter of the gradient.

    Example:
        >>> task = UniformPair.of_information(dim=20, nats=10)
        >>> round(task.rho, 4), round(task.mutual_information(), 4)
        (0.7071, 10.0)
    """

    dim: int
    rho: float

    formula = "Y = rho X + sqrt(1 - rho^2) E, X and E uniform on [-sqrt 3, sqrt 3]"
    parameter = "rho"

    @classmethod
    def of_information(cls, dim: int, nats: float) -> Self:
        """The pair with this mutual information."""
        nats_per_copy = per_copy(dim, nats)
        slope = 2 * nats_per_copy
        if slope > 1:  # log t <= I <= log t + 1/2 brackets the root
            slope = brentq(lambda t: _uniform_information(t) - nats_per_copy, 1, math.exp(nats_per_copy), xtol=1e-14)
        return cls(dim, slope / math.hypot(1, slope))

    def _check(self) -> None:
        checks.count(self.dim, "dim")
        checks.correlation(self.rho, "rho")

    @property
    def _dims(self) -> tuple[int, int]:
        return self.dim, self.dim

    @property
    def _noise(self) -> float:
        return math.sqrt(1 - self.rho**2)

    def mutual_information(self) -> float:
        """I(X; Y) in nats."""
        return self.dim * _uniform_information(abs(self.rho) / self._noise)

    def gradient(self) -> float:
        """Derivative of I(X; Y) by rho."""
        t = abs(self.rho) / self._noise
        by_slope = 0.5 if t <= 1 else 1 / t - 0.5 / t**2
        return math.copysign(self.dim * by_slope / self._noise**3, self.rho)

    def _draw(self, n: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
        x, noise = ROOT3 * (2 * uniforms(2, n, self.dim, source=source) - 1)
        return x, self.rho * x + self._noise * noise

    def _log_prob(self, x: Tensor, y: Tensor) -> Tensor:
        given = _box_log_prob(y - self.rho * x, ROOT3 * self._noise)
        return self._log_prob_x(x) + given.sum(-1)

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

    Example:
        >>> round(AdditiveUniform(0.1).mutual_information(), 4)
        1.7094
    """

    epsilon: float

    formula = "Y = X + E, X uniform on [0, 1], E uniform on [-epsilon, epsilon]"
    parameter = "epsilon"

    def _check(self) -> None:
        checks.positive(self.epsilon, "epsilon")

    @property
    def _dims(self) -> tuple[int, int]:
        return 1, 1

    def mutual_information(self) -> float:
        """I(X; Y) in nats."""
        return _uniform_information(0.5 / self.epsilon)

    def gradient(self) -> float:
        """Derivative of I(X; Y) by epsilon."""
        return 1 - 1 / self.epsilon if self.epsilon <= 0.5 else -0.25 / self.epsilon**2

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
    outside = x.abs() > SLACK * half
    return torch.zeros_like(x).masked_fill(outside, -math.inf) - math.log(2 * half)


def _trapezoid_log_prob(x: Tensor, first: float, second: float) -> Tensor:
    """Log-density of the sum of uniforms on [-first, first] and [-second, second], a number at a time."""
    wide, narrow = max(first, second), max(min(first, second), 1e-12)
    ramp = (SLACK * (wide + narrow) - x.abs()).clamp(min=0)
    return ramp.clamp(max=2 * narrow).log() - math.log(4 * wide * narrow)
