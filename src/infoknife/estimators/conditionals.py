r"""Models of y given x, $q(y \mid x)$, with the two averages over a batch that the variational estimators need."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from infoknife.densities.location_scale import Gaussian
from infoknife.estimators.bounds import log_mean_exp, without
from infoknife.estimators.critics import RELU, by_blocks
from infoknife.inputs import check_count, one_of
from infoknife.nn import MLP

HIDDEN = {"default": 64, "paper": 15}
FAR = 7.0  # the published networks' log-scales end softly there; the data have unit scale


class Conditional(nn.Module, ABC):
    r"""A learnable $q(y \mid x)$ in standardised coordinates, in nats."""

    @abstractmethod
    def log_prob(self, y: Tensor, x: Tensor) -> Tensor:
        """Return log q(y_i | x_i): (N,)."""

    @abstractmethod
    def mean_log_prob(self, y: Tensor, x: Tensor) -> Tensor:
        """Return the mean of log q(y_j | x_i) over all rows j, for each i: (N,)."""

    @abstractmethod
    def _pairs(self, y: Tensor, x: Tensor) -> tuple[Callable[[slice], Tensor], int]:
        """How to compute log q(y_j | x_i) (N, B) for a slice of rows j, and how many numbers an entry takes."""

    def start(self, y: Tensor, x: Tensor, generator: torch.Generator) -> None:
        """Set the parameters from data, where that helps; networks stay at their random start."""

    def log_mean_prob(self, y: Tensor, x: Tensor) -> Tensor:
        """Return the logarithm of the mean of q(y_j | x_i) over the rows i other than j, for each j: (N,)."""
        columns, numbers = self._pairs(y, x)
        others = len(x) - 1
        return by_blocks(lambda at: log_mean_exp(without(columns(at), at.start), others), len(y), len(x) * numbers)


class Regressor(Conditional):
    """A Gaussian with diagonal covariance whose mean and scale are functions of x, for continuous y.

    Args:
        x_dim: Dimension of x, and ``y_dim`` that of y.
        hidden: Width of the hidden layer; that of the preset if it is not given.
        preset: ``"default"``: a linear regression and what a network adds to it, started from data; ``"paper"``: a
            network for the mean and one for the log-scale, each with half of 15 hidden units, random start.
        network: ``activation`` (tanh by default, ReLU for the paper's) and ``layer_norm``, as ``MLP`` takes them.

    Example:
        >>> x = torch.randn(1000, 1, generator=torch.Generator().manual_seed(0))
        >>> q = Regressor(1, 1)
        >>> q.start(2 * x + 1, x, torch.Generator())
        >>> bool(q.log_prob(2 * x + 1, x).mean() > 4)
        True
    """

    def __init__(
        self, x_dim: int, y_dim: int, hidden: int | None = None, preset: str = "default", **network: Any
    ) -> None:
        super().__init__()
        width = _width(hidden, preset)
        if preset == "default":
            self.density = Gaussian(y_dim, given_dim=x_dim, hidden=width, **network)
            return
        self.density = Gaussian(y_dim, given_dim=x_dim, init="paper")
        layers: dict[str, Any] = {"hidden": (max(1, width // 2),)} | RELU | network
        self.density.skip = MLP(x_dim, y_dim, **layers)  # type: ignore[assignment]
        self.density.network = _LogScale(MLP(x_dim, y_dim, **layers))  # type: ignore[assignment]

    def log_prob(self, y: Tensor, x: Tensor) -> Tensor:
        """Return log q(y_i | x_i): (N,)."""
        return self.density.evaluate(y, x)

    def mean_log_prob(self, y: Tensor, x: Tensor) -> Tensor:
        """Average over two points with the mean and the variances of all rows: log q has squares, no mixed terms."""
        variance, mean = torch.var_mean(y, 0, correction=0)
        deviation = variance.clamp_min(torch.finfo(y.dtype).tiny).sqrt()
        above, below = (self.density.evaluate(point.expand_as(y), x) for point in (mean + deviation, mean - deviation))
        return 0.5 * (above + below)

    def start(self, y: Tensor, x: Tensor, generator: torch.Generator) -> None:
        """Take the linear regression of y on x; published networks stay random."""
        if self.density.init == "data":
            self.density.initialize(y, x, seed=generator.initial_seed())

    def _pairs(self, y: Tensor, x: Tensor) -> tuple[Callable[[slice], Tensor], int]:
        return self.density.log_prob_pairs(y, x), y.shape[1]


class Classifier(Conditional):
    """The probabilities of classes from a network of x with one hidden layer, 64 or, as in the paper, 15 wide.

    Its arguments are those of ``Regressor``, with the number of classes in the place of ``y_dim``; ReLU by default.

    Example:
        >>> Classifier(3, 7).log_probs(torch.zeros(2, 3)).shape
        torch.Size([2, 7])
    """

    def __init__(
        self, x_dim: int, classes: int, hidden: int | None = None, preset: str = "default", **network: Any
    ) -> None:
        super().__init__()
        self.classes = classes
        self.network = MLP(x_dim, classes, (_width(hidden, preset),), **RELU | network)

    def log_probs(self, x: Tensor) -> Tensor:
        """Return log q of every class: (N, classes)."""
        return self.network(x).log_softmax(-1)

    def frequencies(self, y: Tensor, dtype: torch.dtype) -> Tensor:
        """How often each class is there: (classes,)."""
        return nn.functional.one_hot(y, self.classes).to(dtype).mean(0)

    def log_prob(self, y: Tensor, x: Tensor) -> Tensor:
        """Return log q(y_i | x_i): (N,)."""
        return self.log_probs(x).gather(-1, y.unsqueeze(-1)).squeeze(-1)

    def mean_log_prob(self, y: Tensor, x: Tensor) -> Tensor:
        """Average over all rows of y by the frequencies of the classes."""
        return self.log_probs(x) @ self.frequencies(y, x.dtype)

    def _pairs(self, y: Tensor, x: Tensor) -> tuple[Callable[[slice], Tensor], int]:
        log_probs = self.log_probs(x)
        return lambda at: log_probs[:, y[at]], 1


class _LogScale(nn.Module):
    """Zeros for the location, and a network's log-variance, whose scale ends softly far out."""

    def __init__(self, network: MLP) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        log_variance = 2 * FAR * (self.network(x) / FAR).tanh()
        return torch.cat([torch.zeros_like(log_variance), log_variance], -1)


def _width(hidden: int | None, preset: str) -> int:
    one_of("preset", preset, tuple(HIDDEN))
    return check_count("hidden", HIDDEN[preset] if hidden is None else hidden)
