r"""Invertible maps with an exact log-determinant: a density composed with a transform is a density.

With $u = T(x)$, $\log p_X(x) = \log p_U(u) + \log|\det T'(x)|$. Estimators work in standardised coordinates, so that
$h(aX + b) = h(X) + \log|a|$ holds to rounding and units of measurement do not matter.
"""

from abc import ABC, abstractmethod
from typing import Self

import torch
from torch import Tensor, nn

from infoknife.inputs import check_count, matrix

__all__ = ["Identity", "Quantile", "Standardize", "Steady", "Transform", "Whiten"]

CLOSE = 3e-3  # least gap between two knots, as a part of the gaps around them


class Transform(nn.Module, ABC):
    """An invertible map of (N, dim) with its log-determinant. ``initialize`` fits it, ``update`` follows data."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = check_count("dim", dim)

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
    log_det: Tensor

    def __init__(self, dim: int, momentum: float = 0.01) -> None:
        super().__init__(dim)
        self.momentum = _fraction(momentum)
        self.register_buffer("shift", torch.zeros(dim))
        self.register_buffer("scale", torch.ones(dim))
        self.register_buffer("log_det", torch.zeros(()))  # kept, so that only a change of the map costs a sum

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map x (N, dim) to standardised coordinates; the log-determinant is minus the sum of the log-scales."""
        return (x - self.shift.to(x.dtype)) / self.scale.to(x.dtype), self.log_det.to(x.dtype)

    def inverse(self, u: Tensor) -> Tensor:
        """Map u (N, dim) back to the scale of the data."""
        return u * self.scale.to(u.dtype) + self.shift.to(u.dtype)

    def initialize(self, x: Tensor, name: str = "x") -> Self:
        """Take mean and standard deviation of x (N, dim); a constant column is an error."""
        x = matrix(x, name, dim=self.dim)
        scale, self.shift = (value.to(x.dtype) for value in _moments(x, name))
        self._rescale(scale)
        return self

    def update(self, x: Tensor) -> None:
        """Move mean and variance by ``momentum`` towards the batch; tensors are replaced, never overwritten."""
        if self.momentum == 0 or len(x) < 2:
            return
        variance, mean = torch.var_mean(x.detach().to(self.scale.dtype), 0)
        self.shift = torch.lerp(self.shift, mean, self.momentum)
        self._rescale(torch.lerp(self.scale * self.scale, variance, self.momentum).sqrt_())

    def _rescale(self, scale: Tensor) -> None:
        self.scale, self.log_det = scale, -scale.log().sum()


class Steady(Standardize):
    """Standardise with statistics that stay while the data stays, and move when it has moved.

    Running moments are kept beside the map. A coordinate takes them over once they are more than ``slack`` away, so
    that the noise of batches does not blur densities with narrow structure.

    Args:
        dim: Number of coordinates.
        momentum: Step of the running mean and variance in ``update``; 0 freezes them.
        slack: How far the running mean, in standard deviations, or the log of the running scale may be from the map's.

    Example:
        >>> x = torch.randn(1000, 1, generator=torch.Generator().manual_seed(0))
        >>> steady = Steady(1, momentum=0.1).initialize(x)
        >>> before = steady.shift.clone()
        >>> steady.update(x[:50]), bool(steady.shift == before)
        (None, True)
    """

    mean: Tensor
    variance: Tensor

    def __init__(self, dim: int, momentum: float = 0.01, slack: float = 0.25) -> None:
        super().__init__(dim, momentum)
        self.slack = slack
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("variance", torch.ones(dim))

    def initialize(self, x: Tensor, name: str = "x") -> Self:
        """Take mean and standard deviation of x (N, dim); a constant column is an error."""
        super().initialize(x, name)
        self.mean, self.variance = self.shift.clone(), self.scale * self.scale
        return self

    def update(self, x: Tensor) -> None:
        """Move the running moments by ``momentum`` towards the batch, and the map where they have left it."""
        if self.momentum == 0 or len(x) < 2:
            return
        variance, mean = torch.var_mean(x.detach().to(self.scale.dtype), 0)
        self.mean = torch.lerp(self.mean, mean, self.momentum)
        self.variance = torch.lerp(self.variance, variance, self.momentum)
        off = (self.mean - self.shift).abs() > self.slack * self.scale
        off |= (0.5 * self.variance.log() - self.scale.log()).abs() > self.slack
        self.shift = torch.where(off, self.mean, self.shift)
        self._rescale(torch.where(off, self.variance.sqrt(), self.scale))


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
    turn: Tensor

    def __init__(self, dim: int, momentum: float = 0.01) -> None:
        super().__init__(dim, momentum)
        self.register_buffer("rotation", torch.eye(dim).T)  # in memory as initialize leaves it: loaded, it rounds alike
        self.register_buffer("turn", torch.zeros(()))  # log-determinant of the rotation

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map x (N, dim) to whitened coordinates."""
        u, log_det = super().forward(x)
        return u @ self.rotation.to(x.dtype).T, log_det

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
        self.turn = self.rotation.diagonal().log().sum()
        self._rescale(self.scale)
        return self

    def _rescale(self, scale: Tensor) -> None:
        self.scale, self.log_det = scale, self.turn - scale.log().sum()


class Quantile(Transform):
    r"""Map every coordinate to a standard normal by its running quantiles: $u = \Phi^{-1}(F(x))$, piecewise linear.

    The map runs through knots, the quantiles of the data at evenly spaced points of the normal scale, and beyond them
    bends from a straight line to a logarithm. It is rank-based: heavy tails, skew and bounded supports become easy,
    and mutual information does not change.

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
        self.momentum, self.step = _fraction(momentum), 2 * reach / (knots - 1)
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
        inside = torch.minimum(torch.maximum(columns, quantiles[:, :1]), quantiles[:, -1:])
        beyond = (columns - inside) * slope
        u = torch.addcmul(bases.gather(1, left), inside, slope) + beyond.asinh()
        return u.t(), (slope / torch.hypot(torch.ones_like(beyond), beyond)).t()

    def inverse(self, u: Tensor) -> Tensor:
        """Map u (N, dim) back."""
        columns, quantiles, normal = u.t().contiguous(), self.quantiles.to(u.dtype), self.normal.to(u.dtype)
        left = torch.searchsorted(normal[1:-1].contiguous(), columns.detach())
        widths = quantiles.diff() / self.step
        bases = quantiles[:, :-1] - normal[:-1] * widths
        inside = columns.clamp(float(normal[0]), float(normal[-1]))
        x = inside + (columns - inside).sinh()
        return torch.addcmul(bases.gather(1, left), x, widths.gather(1, left)).t()

    def standardize(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Centre x (N, dim) by the median and scale it by half the distance of two middle quantiles: u, and the scale.

        Unlike mean and standard deviation these exist for every distribution and move smoothly with the batches.
        """
        scale = self._width().to(x.dtype)
        return (x - self.quantiles[:, len(self.normal) // 2].to(x.dtype)) / scale, scale

    def initialize(self, x: Tensor, name: str = "x") -> Self:
        """Take the quantiles of x (N, dim); a constant column is an error."""
        x = matrix(x, name, dim=self.dim)
        _moments(x, name)  # refuses a constant column
        self.quantiles = self._quantiles(x.detach())
        return self

    def update(self, x: Tensor) -> None:
        """Move the quantiles by ``momentum`` towards the batch's, in logarithms far out: tails may be heavy."""
        if self.momentum == 0 or len(x) < 2:
            return
        x = x.detach().to(self.quantiles.dtype)
        spread = (x.amax(0) > x.amin(0)).unsqueeze(-1)  # a column that stands still in a batch tells nothing
        batch, middle = torch.where(spread, self._quantiles(x), self.quantiles), len(self.normal) // 2
        centre, reach = self.quantiles[:, middle : middle + 1], self.quantiles[:, -1:] - self.quantiles[:, :1]
        scale = torch.maximum(self._width().unsqueeze(-1), reach * 1e-6)
        old, new = ((self.quantiles - centre) / scale).asinh_(), ((batch - centre) / scale).asinh_()
        self.quantiles = self._increasing(torch.lerp(old, new, self.momentum).sinh_() * scale + centre, x)

    def _quantiles(self, x: Tensor) -> Tensor:
        """Quantiles (dim, Q) of x (N, dim) at the knots' levels, strictly increasing."""
        ordered = x.t().sort(-1).values
        place = (torch.special.ndtr(self.normal.to(x.dtype)) * len(x) - 0.5).clamp_(0, len(x) - 1)  # Q
        below = place.long().clamp_max_(len(x) - 2)
        values = torch.lerp(ordered[:, below], ordered[:, below + 1], place - below)
        return self._increasing(values, x)

    def _increasing(self, quantiles: Tensor, x: Tensor) -> Tensor:
        return _apart(quantiles, x.std(0).unsqueeze(-1) * (self.step / CLOSE))  # all the same: standardise

    def _width(self) -> Tensor:
        """Half the distance (dim,) of the quantiles at minus and plus one on the normal scale, or next to them."""
        middle = len(self.normal) // 2
        wide = min(middle, max(1, round(1 / self.step)))
        return (self.quantiles[:, middle + wide] - self.quantiles[:, middle - wide]) / (2 * wide * self.step)


def _fraction(momentum: float) -> float:
    if not 0 <= momentum < 1:
        raise ValueError(f"momentum is {momentum}; expected a number in [0, 1), 0 for fixed statistics")
    return momentum


def _moments(x: Tensor, name: str) -> tuple[Tensor, Tensor]:
    """Standard deviations and means (dim,) of x (N, dim), in double; a single row or a constant column is an error."""
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
    return scale, exact.mean(0)


def _apart(knots: Tensor, widest: Tensor) -> Tensor:
    """Push knots (dim, Q) that coincide apart, to both sides and by a small part of the gaps around: finite slopes."""
    near = nn.functional.max_pool1d(knots.diff(), 7, 1, 3)
    least = torch.where(near > 0, near, widest).amin(1, keepdim=True)  # for runs that are longer than the window
    rounding = knots[:, 1:].abs() * (2 * torch.finfo(knots.dtype).eps)
    ramp = nn.functional.pad(torch.maximum(torch.maximum(near, least) * CLOSE, rounding).cumsum(1), (1, 0))
    bare = knots - ramp
    up, down = bare.cummax(1).values, bare.flip(1).cummin(1).values.flip(1)  # no knot below or above its neighbours
    return torch.lerp(up, down, 0.5) + ramp


def shrunk(correlation: Tensor, rows: int) -> Tensor:
    """Shrink a correlation matrix (d, d) of so many rows towards the identity (Chen et al., 2010)."""
    d = len(correlation)
    square = float(correlation.square().sum())
    rate = ((1 - 2 / d) * square + d * d) / ((rows + 1 - 2 / d) * max(square - d, 1e-300))
    return torch.lerp(correlation, torch.eye(d).to(correlation), min(1.0, rate))
