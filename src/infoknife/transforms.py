r"""Invertible maps with an exact log-determinant: a density composed with a transform is a density.

With $u = T(x)$, $\log p_X(x) = \log p_U(u) + \log|\det T'(x)|$. Estimators work in standardised coordinates, so that
$h(aX + b) = h(X) + \log|a|$ holds to rounding and units of measurement do not matter.
"""

from abc import ABC, abstractmethod
from typing import Self

import torch
from torch import Tensor, nn

from infoknife.inputs import matrix

__all__ = ["Identity", "Quantile", "Standardize", "Transform", "Whiten"]


class Transform(nn.Module, ABC):
    """An invertible map of (N, dim) with its log-determinant. ``initialize`` fits it, ``update`` follows data."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    @abstractmethod
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map x (N, dim) to u (N, dim) and give the log-determinant of the map, () or (N,), in nats."""

    @abstractmethod
    def inverse(self, u: Tensor) -> Tensor:
        """Map u (N, dim) back to x."""

    @abstractmethod
    def initialize(self, x: Tensor, name: str = "x") -> Self:
        """Fit the map to the rows of x (N, dim); errors call them by ``name``."""

    @abstractmethod
    def update(self, x: Tensor) -> None:
        """Let the map follow a batch x (N, dim) of a moving distribution by a small step."""


class Identity(Transform):
    """The map that does nothing.

    Example:
        >>> Identity(2)(torch.ones(1, 2))
        (tensor([[1., 1.]]), tensor(0.))
    """

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Give back x and a log-determinant of zero."""
        return x, x.new_zeros(())

    def inverse(self, u: Tensor) -> Tensor:
        """Give back u."""
        return u

    def initialize(self, x: Tensor, name: str = "x") -> Self:
        """Do nothing."""
        return self

    def update(self, x: Tensor) -> None:
        """Do nothing."""


class Standardize(Transform):
    r"""Centre and scale every coordinate: $u = (x - \mu) / \sigma$.

    Args:
        dim: Number of coordinates.
        momentum: Step of the running mean and variance in ``update``; 0 freezes them.

    Example:
        >>> x = torch.tensor([[1.0], [3.0]])
        >>> u, log_det = Standardize(1).initialize(x)(x)
        >>> u.flatten(), log_det
        (tensor([-1.,  1.]), tensor(-0.))
    """

    shift: Tensor
    scale: Tensor

    def __init__(self, dim: int, momentum: float = 0.01) -> None:
        super().__init__(dim)
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum is {momentum}; expected a number in [0, 1), 0 for fixed statistics")
        self.momentum = momentum
        self.register_buffer("shift", torch.zeros(dim))
        self.register_buffer("scale", torch.ones(dim))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map x (N, dim) to standardised coordinates; the log-determinant is minus the sum of the log-scales."""
        scale = self.scale.to(x.dtype)
        return (x - self.shift.to(x.dtype)) / scale, -scale.log().sum()

    def inverse(self, u: Tensor) -> Tensor:
        """Map u (N, dim) back to the scale of the data."""
        return u * self.scale.to(u.dtype) + self.shift.to(u.dtype)

    def initialize(self, x: Tensor, name: str = "x") -> Self:
        """Take mean and standard deviation of x (N, dim); a constant column is an error."""
        x = matrix(x, name, dim=self.dim)
        if len(x) < 2:
            raise ValueError(f"{name} has 1 row; expected at least 2, a single row has no spread. Collect more samples")
        exact = x.detach().double()
        scale = exact.std(0, correction=0)
        constant = (scale <= exact.abs().amax(0) * torch.finfo(x.dtype).eps).nonzero().flatten().tolist()
        if constant:
            raise ValueError(
                f"{name} is constant in column {', '.join(map(str, constant))}; the entropy is minus infinity there. "
                f"Drop the column, or add noise of a known scale"
            )
        self.shift, self.scale = exact.mean(0).to(x.dtype), scale.to(x.dtype)
        return self

    def update(self, x: Tensor) -> None:
        """Move mean and variance by ``momentum`` towards the batch; tensors are replaced, never overwritten."""
        if self.momentum == 0 or len(x) < 2:
            return
        variance, mean = torch.var_mean(x.detach().to(self.scale.dtype), 0)
        self.shift = torch.lerp(self.shift, mean, self.momentum)
        self.scale = torch.lerp(self.scale * self.scale, variance, self.momentum).sqrt_()


class Whiten(Standardize):
    r"""Standardise, then remove the correlations: $u = R\,(x - \mu) / \sigma$ with correlations $R^{-1} R^{-\top}$.

    The correlations are shrunk towards none by the oracle-approximating rule (Chen et al., 2010), so that they are
    safe with few rows and vanish where there are none. ``update`` moves mean and scale and leaves R.

    Args:
        dim: Number of coordinates.
        momentum: Step of the running mean and variance in ``update``; 0 freezes them.

    Example:
        >>> x = torch.randn(1000, 2, generator=torch.Generator().manual_seed(0)).cumsum(1)
        >>> u, log_det = Whiten(2).initialize(x)(x)
        >>> bool((u.T.cov() - torch.eye(2)).abs().max() < 0.01)
        True
    """

    rotation: Tensor

    def __init__(self, dim: int, momentum: float = 0.01) -> None:
        super().__init__(dim, momentum)
        self.register_buffer("rotation", torch.eye(dim))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map x (N, dim) to whitened coordinates."""
        u, log_det = super().forward(x)
        rotation = self.rotation.to(x.dtype)
        return u @ rotation.T, log_det + rotation.diagonal().log().sum()

    def inverse(self, u: Tensor) -> Tensor:
        """Map u (N, dim) back to the coordinates of the data."""
        rotation = self.rotation.to(u.dtype)
        return super().inverse(torch.linalg.solve_triangular(rotation.T, u, upper=True, left=False))

    def initialize(self, x: Tensor, name: str = "x") -> Self:
        """Take mean, standard deviation and correlations of x (N, dim); linearly dependent columns are an error."""
        super().initialize(x, name)
        x = matrix(x, name, dim=self.dim)
        u = (x.detach().double() - self.shift) / self.scale
        correlation = u.T @ u / len(u)
        rounding = max((16 * torch.finfo(x.dtype).eps) ** 2, 1e-13)  # of the data, squared, or of this computation
        if len(x) > self.dim and float(torch.linalg.eigvalsh(correlation)[0]) < rounding:
            raise ValueError(
                f"{name} has columns that are linear functions of the others; the entropy is minus infinity. "
                "Drop them, or add noise of a known scale"
            )
        chol = torch.linalg.cholesky(shrunk(correlation, len(u)))
        self.rotation = torch.linalg.solve_triangular(chol, torch.eye(self.dim).to(chol), upper=False).to(x.dtype)
        return self


class Quantile(Transform):
    r"""Map every coordinate to a standard normal by its running quantiles: $u = \Phi^{-1}(F(x))$, piecewise linear.

    The map runs through knots, the quantiles of the data at evenly spaced points of the normal scale, and goes on
    straight beyond them. It is rank-based: heavy tails, skew and bounded supports become easy, and mutual information
    does not change.

    Args:
        dim: Number of coordinates.
        knots: Number of knots.
        reach: Where the outermost knots are, in standard deviations; 2.6 is what a batch of 128 still shows.
        momentum: Step of the running quantiles in ``update``; 0 freezes them.

    Example:
        >>> x = torch.randn(5000, 1, generator=torch.Generator().manual_seed(0)) ** 3
        >>> u, _ = Quantile(1).initialize(x)(x)
        >>> bool((u.std() - 1).abs() < 0.05)
        True
    """

    normal: Tensor
    quantiles: Tensor

    def __init__(self, dim: int, knots: int = 27, reach: float = 2.6, momentum: float = 0.01) -> None:
        super().__init__(dim)
        self.momentum, self.step = momentum, 2 * reach / (knots - 1)
        self.register_buffer("normal", torch.linspace(-reach, reach, knots))
        self.register_buffer("quantiles", self.normal.repeat(dim, 1))  # dim Q

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map x (N, dim); the log-determinant (N,) is the sum of the log-slopes."""
        u, slope = self.map(x)
        return u, slope.log().sum(1)

    def map(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map x (N, dim) to u and give the slopes (N, dim)."""
        columns, quantiles = x.t().contiguous(), self.quantiles.to(x.dtype)
        left = torch.searchsorted(quantiles[:, 1:-1].contiguous(), columns.detach())  # dim N
        slopes = self.step / quantiles.diff()
        bases = self.normal[:-1].to(x.dtype) - quantiles[:, :-1] * slopes
        slope = slopes.gather(1, left)
        return torch.addcmul(bases.gather(1, left), columns, slope).t(), slope.t()

    def inverse(self, u: Tensor) -> Tensor:
        """Map u (N, dim) back."""
        columns, quantiles = u.t().contiguous(), self.quantiles.to(u.dtype)
        left = torch.searchsorted(self.normal[1:-1].to(u.dtype), columns.detach())
        widths = quantiles.diff() / self.step
        bases = quantiles[:, :-1] - self.normal[:-1].to(u.dtype) * widths
        return torch.addcmul(bases.gather(1, left), columns, widths.gather(1, left)).t()

    def initialize(self, x: Tensor, name: str = "x") -> Self:
        """Take the quantiles of x (N, dim)."""
        x = matrix(x, name, dim=self.dim)
        if len(x) < 2:
            raise ValueError(f"{name} has 1 row; expected at least 2, a single row has no spread. Collect more samples")
        self.quantiles = self._quantiles(x.detach())
        return self

    def update(self, x: Tensor) -> None:
        """Move the quantiles by ``momentum`` towards those of the batch."""
        if self.momentum == 0 or len(x) < 2:
            return
        self.quantiles = torch.lerp(self.quantiles, self._quantiles(x.detach().to(self.quantiles.dtype)), self.momentum)

    def _quantiles(self, x: Tensor) -> Tensor:
        """Quantiles (dim, Q) of x (N, dim) at the knots' levels, strictly increasing."""
        ordered = x.t().sort(-1).values
        place = (torch.special.ndtr(self.normal.to(x.dtype)) * len(x) - 0.5).clamp_(0, len(x) - 1)  # Q
        below = place.long().clamp_max_(len(x) - 2)
        values = torch.lerp(ordered[:, below], ordered[:, below + 1], place - below)
        spread = (values[:, -1:] - values[:, :1]).clamp_min(torch.finfo(x.dtype).tiny ** 0.5)
        return values + spread * 1e-4 * self.normal.to(x.dtype)  # repeated values keep a slope


def shrunk(correlation: Tensor, rows: int) -> Tensor:
    """Shrink a correlation matrix (d, d) of so many rows towards the identity (Chen et al., 2010)."""
    d = len(correlation)
    square = float(correlation.square().sum())
    rate = ((1 - 2 / d) * square + d * d) / ((rows + 1 - 2 / d) * max(square - d, 1e-300))
    return torch.lerp(correlation, torch.eye(d).to(correlation), min(1.0, rate))
