r"""Coordinates: invertible maps with exact log-determinants, fitted in closed form, moved by ``observe`` alone.

With $u = T(x)$, $\log p_X(x) = \log p_U(u) + \log|\det T'(x)|$. Densities and estimators work in such coordinates, so
that $h(aX + b) = h(X) + \log|a|$ holds to rounding, and two densities in different coordinates can be compared.

Everything stands on running statistics. All rows count alike until recent ones say that the data have moved. Entries
far outside are clipped before they count, rows that are not finite are left out, and both are counted.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self, final

import torch
from torch import Tensor, nn
from typing_extensions import override

from infoknife.distributed import all_rows, order_statistics, sums
from infoknife.inputs import Remembered, check_count, matrix, tensor

MEMORY = 8192  # rows that notice a change: with twice as many it is noticed half as soon, but half as large
STALE = 0.05  # maps are solved for again when so many of these rows are new: the noise of the others is larger
FAR = 10.0  # standard deviations beyond which an entry is an outlier: no light tail reaches there
TRIMMED = 0.01  # part of the first rows, on either side, that does not decide where outliers begin
Z_SCORE = 4.0  # standard errors beyond which a change is not chance: once in 30,000 looks
EVIDENCE = 10.0  # nats by which fresh rows are likelier after a change: by chance once in 20,000 looks
ENOUGH = 1024  # rows that show where quantiles are: some twenty between two knots in the middle
CLOSE = 3e-3  # smallest gap between two knots, as a part of the gaps around them: only ties ever come so close

ALL, RECENT = 0, 1  # the two memories of running moments


class Transform(nn.Module, ABC):
    """An invertible map of (N, dim), perhaps given a condition, with its log-determinant in nats.

    ``forward`` and ``inverse`` change nothing. ``observe`` is the only place where a map follows data; ``initialize``
    forgets what was seen and observes.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = check_count("dim", dim)

    @override
    def __call__(self, x: Any, given: Tensor | None = None) -> tuple[Tensor, Tensor]:
        mapped: tuple[Tensor, Tensor] = super().__call__(x if isinstance(x, Tensor) else tensor(x, "x"), given)
        return mapped

    @abstractmethod
    def forward(self, x: Tensor, given: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Map x (N, dim) to u (N, dim); also return the log-determinant of the map, () or (N,)."""

    @abstractmethod
    def inverse(self, u: Tensor, given: Tensor | None = None) -> Tensor:
        """Map u (N, dim) back to x."""

    @abstractmethod
    def observe(self, x: Tensor, given: Tensor | None = None) -> None:
        """Let the map follow the rows of x (N, dim); buffers are replaced, never overwritten."""

    def initialize(self, x: Any, given: Tensor | None = None) -> Self:
        """Fit the map to the rows of x (N, dim): forget everything, then observe them."""
        x = matrix(x, "x", dim=self.dim).detach()
        forget(self)
        self.observe(x, given)
        return self


@final
class Identity(Transform):
    """The map that does nothing: the coordinates of the data, as the paper has them.

    Examples:
        >>> Identity(2)(torch.ones(1, 2))
        (tensor([[1., 1.]]), tensor(0.))
    """

    @override
    def forward(self, x: Tensor, given: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return x, x.new_zeros(())

    @override
    def inverse(self, u: Tensor, given: Tensor | None = None) -> Tensor:
        return u

    @override
    def observe(self, x: Tensor, given: Tensor | None = None) -> None:
        pass


class Running(nn.Module, ABC):
    """Statistics of columns, in double precision and two memories: of all rows, and of the last ``MEMORY`` or so.

    In the memory of all rows each counts alike. In the recent one older rows fade. They are the same until more than
    ``MEMORY`` rows were seen. ``forget_older`` lets the recent memory take the place of all: the data have moved.

    Args:
        columns: How many columns c.
        **statistics: A tensor for each, the two memories along its first axis.

    Attributes:
        origin: What the columns are measured from, (c,): the median of the first rows.
        unit: The units in which statistics are kept, (c,): the spread of the first rows.
        rows: How many rows count, (2,): ``ALL``, then ``RECENT``.
        noise: The sum of the squared weights of all rows, (2,): one over the effective number of rows.
        outliers: How many rows had an entry that was clipped, or were left out.
    """

    origin: Tensor
    unit: Tensor
    rows: Tensor
    noise: Tensor
    outliers: Tensor
    counts = Remembered("counted")  # rows that were seen, and those of them since the last look

    def __init__(self, columns: int, **statistics: Tensor) -> None:
        super().__init__()
        self.statistics = (*statistics, "rows", "noise")
        pair, each = torch.zeros(2, dtype=torch.double), torch.zeros(columns, dtype=torch.double)
        own = {"origin": each, "unit": each + 1, "rows": pair, "noise": pair + 1, "outliers": pair.sum()}
        for name, value in (statistics | own).items():
            self.register_buffer(name, value)
        self.register_buffer("counted", torch.zeros(2, dtype=torch.long))

    def forget(self) -> None:
        """Forget all rows."""
        self.rows, self.noise = torch.zeros_like(self.rows), torch.ones_like(self.noise)
        self.outliers, self.counts = torch.zeros_like(self.outliers), [0, 0]

    @property
    def seen(self) -> int:
        """How many rows came."""
        return int(self.counts[0])

    def observe(self, x: Tensor) -> None:
        """Take the rows of x (N, c) into both memories; those that are not finite are left out."""
        x = x.detach().double()
        finite = torch.isfinite(x).all(1, keepdim=True)
        if not self.seen:
            start = all_rows(torch.where(finite, x, torch.nan))[0]
            if bool(start.isnan().all()):
                return  # nothing to start from
            self._start(start)
        self._take((x - self.origin) / self.unit, finite)

    @abstractmethod
    def _start(self, x: Tensor) -> None:
        """Set origin and units from the first rows (N, c), NaN where there is none."""

    @abstractmethod
    def _take(self, w: Tensor, finite: Tensor) -> None:
        """Take the finite rows (N, 1) of w (N, c), in units; what all ranks have of them is added up."""

    def due(self) -> bool:
        """Whether enough rows came since the last time this was true for what follows from them to change."""
        seen, pending = self.counts
        if pending < STALE * min(seen, MEMORY):
            return False
        self.counts = [seen, 0]
        return True

    def forget_if(self, gain: Tensor, numbers: float) -> Tensor:
        """Forget the older rows if recent ones gain so much by so many numbers of their own; say whether."""
        deviation = 2 / (9 * numbers)  # of the cube root of a chi-squared variable (Wilson & Hilferty, 1931)
        enough = numbers * (1 - deviation + Z_SCORE * math.sqrt(deviation)) ** 3
        when = 2 * gain > enough * self.noise[RECENT]
        self.forget_older(when)
        return when

    def forget_older(self, when: Tensor) -> None:
        """Let the recent memory take the place of all, or do not."""
        for name in self.statistics:
            value = getattr(self, name)
            setattr(self, name, torch.where(when, value[RECENT], value))

    def _count(self, came: int, n: Tensor, outliers: Tensor) -> Tensor:
        """Count n of the rows that came; return the part (2,) of each memory that they are."""
        rows = self.rows + n
        rows = rows.minimum(rows.new_tensor([math.inf, MEMORY])) if self.seen else rows
        step = (n / rows.clamp_min(1)).clamp_max(1.0)
        self.rows, self.noise = rows, (1 - step) ** 2 * self.noise + step**2 / n.clamp_min(1)
        self.outliers = self.outliers + outliers
        self.counts = [count + came for count in self.counts]
        return step

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Move to another device; a change of precision does not reach the statistics."""
        exact = dict(self._buffers)
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, buffer in self._buffers.items():
            self._buffers[name] = None if buffer is None else exact[name].to(buffer.device)  # type: ignore[union-attr]
        return self


@final
class Moments(Running):
    """Running means and covariances of columns.

    Args:
        columns: How many columns c.
        full: Whether all covariances are kept, or the variances alone.

    Attributes:
        means: In units, (2, c).
        covariances: In units, (2, c, c), or variances (2, c).
        batch: Rows, mean and covariance of the last rows that came, on all ranks.

    Examples:
        >>> moments = Moments(1)
        >>> moments.observe(torch.tensor([[1.0], [3.0]]))
        >>> moments.mean(ALL), (1 / moments.noise[ALL]).item()
        (tensor([2.], dtype=torch.float64), 2.0)
    """

    means: Tensor
    covariances: Tensor
    batch: tuple[Tensor, Tensor, Tensor]

    def __init__(self, columns: int, full: bool = True) -> None:
        means = torch.zeros(2, columns, dtype=torch.double)
        super().__init__(columns, means=means, covariances=torch.diag_embed(means + 1) if full else means + 1)
        self.full = full

    @override
    def forget(self) -> None:
        super().forget()
        self.means = torch.zeros_like(self.means)

    def mean(self, memory: int) -> Tensor:
        """Means (c,) in units of the data."""
        return self.origin + self.unit * self.means[memory]

    def scale(self, memory: int) -> Tensor:
        """Standard deviations (c,) in units of the data; the unit for a column that never varied."""
        variance = self._variances()[memory]
        floor = torch.finfo(torch.double).eps * (1 + self.means[memory].square())
        return self.unit * torch.where(variance > floor, variance, torch.ones_like(variance)).sqrt()

    @override
    def _start(self, x: Tensor) -> None:
        self.origin, self.unit = _robust_scale(x)

    @override
    def _take(self, w: Tensor, finite: Tensor) -> None:
        centre = self.means[RECENT]
        away, far = self._clipped(finite * torch.where(finite, w - centre, 0.0))
        outliers, device = (far | ~finite.squeeze(1)).sum(), w.device
        squares = away.T @ away if self.full else away.square().sum(0)
        n, came, outliers, total, squares = sums(finite.sum(), len(w), outliers, away.sum(0), squares, device=device)
        step, mean = self._count(int(came), n, outliers), total / n.clamp_min(1)  # 2, and c
        gap = torch.where(n > 0, centre + mean - self.means, 0.0)  # 2 c
        if self.full:
            beyond, between = mean[:, None] * mean, gap[:, :, None] * gap[:, None, :]
        else:
            beyond, between = mean.square(), gap.square()
        weight, own = step.view(2, *[1] * beyond.dim()), squares / n.clamp_min(1) - beyond
        self.batch = n, centre + mean, own
        own = torch.where(n > 0, own, self.covariances)
        self.covariances = torch.lerp(self.covariances, own, weight) + weight * (1 - weight) * between
        self.means = self.means + step[:, None] * gap

    def change(self) -> Tensor:
        """What recent rows gain, in nats per row, by means and variances of their own, columns taken apart."""
        recent, every = self._variances().flip(0).clamp_min(torch.finfo(torch.double).eps)
        return normal_gain(recent / every, (self.means[RECENT] - self.means[ALL]).square() / every)

    def _variances(self) -> Tensor:
        return self.covariances.diagonal(0, 1, 2) if self.full else self.covariances

    def _clipped(self, away: Tensor) -> tuple[Tensor, Tensor]:
        """Clip deviations (N, c) from the recent mean that are too large; also return which rows have one (N,)."""
        variance = self._variances()[RECENT] if self.seen else torch.ones_like(self.unit)
        reach = FAR * torch.where(variance > 0, variance, 1.0).sqrt()
        return away.clamp(-reach, reach), (away.abs() > reach).any(1)


@final
class Quantiles(Running):
    """Running quantiles of columns, at evenly spaced points of the normal scale.

    Quantiles of batches are averaged, and far out their logarithms: tails may be heavy. They notice a change, but a
    batch blurs what is narrower than its rows are apart. So rows are counted as well: how many are below each of a
    number of knots, which were put at quantiles when enough rows had come, and are again when the data have moved.

    The unit of a column that is constant at first is its own size, at least one.

    Args:
        columns: How many columns c.
        normal: The points of the normal scale, (Q,).

    Attributes:
        values: In units, the inverse hyperbolic sine of the quantiles, (2, c, Q).
        knots: In units, (c, Q).
        below: The part of the rows below each knot, (c, Q), of so many ``counted_rows`` (c, 1).
        placed: How many rows counted when the knots were placed.
    """

    normal: Tensor
    values: Tensor
    knots: Tensor
    below: Tensor
    counted_rows: Tensor
    placed: Tensor

    def __init__(self, columns: int, normal: Tensor) -> None:
        normal = normal.double()
        super().__init__(columns, values=normal.asinh().repeat(2, columns, 1))
        self.register_buffer("normal", normal, persistent=False)
        self.register_buffer("knots", normal.repeat(columns, 1))
        self.register_buffer("below", torch.special.ndtr(self.knots))
        self.register_buffer("counted_rows", torch.zeros(columns, 1, dtype=torch.double))
        self.register_buffer("placed", torch.zeros((), dtype=torch.double))

    def of_batches(self, memory: int) -> Tensor:
        """Averaged quantiles (c, Q) of batches in units of the data."""
        return self.in_data(self.values[memory].sinh())

    def in_data(self, w: Tensor) -> Tensor:
        """Numbers (c, Q) in units of the data."""
        return self.origin[:, None] + self.unit[:, None] * w

    def levels(self) -> Tensor:
        """Where the knots are on the normal scale, (c, Q); at least half a row is beyond the outermost."""
        half = 0.5 / (self.counted_rows + 1)
        return _apart(torch.special.ndtri(self.below.clamp(half, 1 - half)), self._gap)

    @property
    def _gap(self) -> Tensor:
        return (self.normal[1] - self.normal[0]).expand(len(self.knots), 1)

    def place(self, when: Tensor, rows: Tensor | float, known: bool = False) -> None:
        """Put the knots at the averaged quantiles, or do not; they count as so many rows, as counting begins anew.

        Where they are on the normal scale is ``known`` from the knots before, or the averages are believed.
        """
        knots = _apart(self.values[ALL].sinh(), self._gap)
        levels = _through(knots.T, self.knots, self.levels())[0].T if known else self.normal
        self.knots = torch.where(when, knots, self.knots)
        self.below = torch.where(when, torch.special.ndtr(levels), self.below)
        self.counted_rows = torch.where(when, torch.as_tensor(rows).to(self.rows), self.counted_rows)
        self.placed = torch.where(when, self.rows[ALL], self.placed)

    @override
    def _start(self, x: Tensor) -> None:
        self.origin, self.unit = _robust_scale(x)
        still = torch.nan_to_num((x - self.origin).abs()).amax(0) == 0
        self.unit = torch.where(still, self.origin.abs().clamp_min(1.0), self.unit)
        self.values = self.normal.asinh().expand_as(self.values)

    @override
    def _take(self, w: Tensor, finite: Tensor) -> None:
        low, middle, high = self.values[RECENT, :, [0, len(self.normal) // 2, -1]].sinh().split(1, 1)
        reach = (high - low) * (FAR if not self.seen else FAR**2) / (self.normal[-1] - self.normal[0])
        w = torch.where(finite, w, torch.nan).T  # c N; data that have jumped are to be followed
        near = w.clamp(middle - reach, middle + reach)
        ordered = near.sort(1).values.contiguous()  # NaN last
        outliers = (near != w).any(0).sum()  # NaN is not equal to itself
        parts = finite.sum(), w.shape[1], outliers, self._below(ordered)
        n, came, outliers, below = sums(*parts, device=w.device)
        batch = self._of_ordered(ordered, n, int(came))
        told = (batch[:, -1:] > batch[:, :1]) & (n > 1)  # a column that stands still in a batch says nothing
        rows = torch.where(told, n, 0)  # c 1
        self.counted_rows = self.counted_rows + rows
        self.below = torch.lerp(self.below, below / n.clamp_min(1), rows / self.counted_rows.clamp_min(1))
        step = self._count(int(came), n, outliers)
        self.values = torch.where(told, torch.lerp(self.values, batch.asinh(), step[:, None, None]), self.values)

    def _of_ordered(self, ordered: Tensor, n: Tensor, came: int) -> Tensor:
        """Quantiles (c, Q) of the n finite ones of so many numbers that came, of which (c, N) are here, ordered."""
        last = (n - 1).clamp_min(0).long()
        place = (torch.special.ndtr(self.normal) * n - 0.5).clamp_min(0).minimum(last.double())  # Q
        below = place.long().minimum((last - 1).clamp_min(0))
        above = (below + 1).minimum(last)
        low, high = order_statistics(ordered, torch.cat([below, above]), came).chunk(2, 1)
        return torch.nan_to_num(torch.lerp(low, high, place - below))

    def _below(self, ordered: Tensor) -> Tensor:
        """How many numbers (c, N) are below the knots, (c, Q); one that is at a knot is half below it."""
        ordered = torch.where(ordered.isnan(), math.inf, ordered)
        sides = (torch.searchsorted(ordered, self.knots, right=right) for right in (False, True))
        return sum(sides, torch.zeros_like(self.knots)) / 2


def normal_gain(ratio: Tensor, off: Tensor) -> Tensor:
    """What normal columns gain, in nats per row, by a variance ``ratio`` times as large and a mean moved by ``off``."""
    return 0.5 * (ratio + off - 1 - ratio.log()).sum()


def forget(module: nn.Module) -> None:
    """Let all statistics inside a module forget the rows that they have seen."""
    for part in _statistics(module):
        part.forget()


def count_outliers(module: nn.Module, rows: Tensor | int = 0) -> int:
    """Return how many rows the statistics inside a module left out or clipped, after so many more."""
    for part in _statistics(module):
        part.outliers = part.outliers + rows
    return max((int(part.outliers) for part in _statistics(module)), default=0)


def _statistics(module: nn.Module) -> list[Running]:
    return [part for part in module.modules() if isinstance(part, Running)]


class Affine(Transform):
    r"""$u = L\,(x - b - B^\top \phi)$ with the features $\phi$ of a condition, from running moments.

    The map follows all rows seen, so that it comes to rest while the data stay, and narrow structure is not blurred by
    the noise of batches. When recent rows say that the data have moved, the rows before are forgotten.
    """

    moments: Moments
    shift: Tensor
    log_det: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.register_buffer("shift", torch.zeros(dim))
        self.register_buffer("log_det", torch.zeros(()))


@final
class Standardize(Affine):
    r"""Centre and scale every column: $u = (x - \mu) / \sigma$.

    Examples:
        >>> x = torch.tensor([[1.0], [3.0]])
        >>> u, log_det = Standardize(1).initialize(x)(x)
        >>> u.flatten(), log_det
        (tensor([-1.,  1.]), tensor(-0.))
    """

    scale: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.moments = Moments(dim, full=False)
        self.register_buffer("scale", torch.ones(dim))

    @override
    def forward(self, x: Tensor, given: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return (x - self.shift.to(x.dtype)) / self.scale.to(x.dtype), self.log_det.to(x.dtype)

    @override
    def inverse(self, u: Tensor, given: Tensor | None = None) -> Tensor:
        return u * self.scale.to(u.dtype) + self.shift.to(u.dtype)

    @override
    def observe(self, x: Tensor, given: Tensor | None = None) -> None:
        moments = self.moments
        moments.observe(x)
        if not moments.due():
            return
        moments.forget_if(moments.change(), 2 * self.dim)
        scale = moments.scale(ALL)
        self.shift, self.scale = moments.mean(ALL).to(self.shift), scale.to(self.scale)
        self.log_det = -scale.log().sum().to(self.log_det)


@final
class Regression(Affine):
    r"""What a linear regression on a condition leaves, whitened: $u = L\,(x - b - B^\top \phi)$.

    $B$ and the lower-triangular $L$ follow from the running second moments of $(\phi, x)$. Sampling noise in them is
    removed where its size is known: the canonical correlations of x and $\phi$ are shrunk by the rule that is optimal
    for a matrix in white noise (Gavish & Donoho, 2017) of variance one over the effective number of rows, and the
    correlations of what is left by the oracle-approximating rule (Chen et al., 2010).

    The maps of both memories are known. Every batch says, before it is learned from, by how many nats it is likelier
    under the one of recent rows. Once such evidence adds up, with a sum that never falls below zero (Page, 1954), the
    data have moved: older rows are forgotten.

    Args:
        dim: Number of columns of x.
        features: Number of features of the condition; 0 for whitening alone, $u = L\,(x - \mu)$.
        blocks: In how many equal parts they come. What one adds to those before it is shrunk by itself, so that a part
            that adds nothing brings no noise.

    Examples:
        >>> phi, noise = torch.randn(2, 5000, 2, generator=torch.Generator().manual_seed(0))
        >>> x = phi.cumsum(1) + noise
        >>> u, log_det = Regression(2, features=2).initialize(x, phi)(x, phi)
        >>> bool((u.T.cov() - torch.eye(2)).abs().max() < 0.05), round(abs(log_det.item()), 1)
        (True, 0.0)
    """

    slope: Tensor
    factor: Tensor
    evidence: Tensor
    alone: Tensor
    left: Tensor

    def __init__(self, dim: int, features: int = 0, blocks: int = 1) -> None:
        super().__init__(dim)
        self.features, self.blocks = features, blocks
        self.moments = Moments(features + dim)
        for prefix in ("", "recent_"):
            self.register_buffer(prefix + "slope", torch.zeros(features, dim))
            self.register_buffer(prefix + "factor", torch.eye(dim))
        self.register_buffer("recent_shift", torch.zeros(dim))
        self.register_buffer("recent_log_det", torch.zeros(()))
        self.register_buffer("evidence", torch.zeros((), dtype=torch.double))  # nats, that the data have moved
        self.register_buffer("alone", torch.cat([torch.zeros(1, dim), torch.eye(dim)]))  # b and L without the condition
        self.register_buffer("left", torch.eye(dim))  # factor of the covariance that the condition leaves of x whitened

    @override
    def forward(self, x: Tensor, given: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return (x - self._expected(x, given)) @ self.factor.to(x.dtype).T, self.log_det.to(x.dtype)

    def both(self, x: Tensor, given: Tensor, turn: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """Map x (N, dim) given features, and without them: u and the logs of the slopes (dim,) of each.

        Both are along the same axes, those of x whitened alone and turned by a rotation (dim, dim), and every
        coordinate is what is new beyond the ones before it. So the terms of the chain rule are of the same variables.
        """
        shift, whiten = self.alone[0].to(x.dtype), self.alone[1:].to(x.dtype)
        axes = whiten.T @ turn
        upper = torch.linalg.qr(self.left.to(x.dtype).T @ turn).R  # stays exact where the condition tells nearly all
        chol = (upper * upper.diagonal().sign()[:, None]).T
        rest = (x - self._expected(x, given)) @ axes
        u = torch.linalg.solve_triangular(chol, rest.T, upper=False).T
        log_slopes = (whiten.diagonal().log().sum() / self.dim).expand(self.dim)  # a rotation has none of its own
        return (u, log_slopes - chol.diagonal().log()), ((x - shift) @ axes, log_slopes)

    @override
    def inverse(self, u: Tensor, given: Tensor | None = None) -> Tensor:
        wide = u if u.dtype.itemsize >= 4 else u.float()  # torch solves nothing in half precision
        x = torch.linalg.solve_triangular(self.factor.to(wide.dtype).T, wide, upper=True, left=False)
        return (x + self._expected(wide, given)).to(u.dtype)

    @override
    def observe(self, x: Tensor, given: Tensor | None = None) -> None:
        moments, known = self.moments, self.moments.seen
        moments.observe(torch.cat([given.to(x.dtype), x], 1) if self.features and given is not None else x)
        if not moments.seen:
            return
        gain = torch.nan_to_num(self._loss("") - self._loss("recent_")) if known else -self.evidence
        self.evidence = (self.evidence + gain).clamp_min(0)
        if not moments.due():
            return
        moved = self.evidence > EVIDENCE
        moments.forget_older(moved)
        self.evidence = torch.where(moved, 0.0, self.evidence)
        self._solve("recent_", RECENT)
        self._solve("", ALL)

    def _expected(self, like: Tensor, given: Tensor | None) -> Tensor:
        """What x (N, dim), or its mean (dim,), is expected to be, in the precision of a tensor."""
        shift = self.shift.to(like.dtype)
        if given is None or not self.features:
            return shift
        return torch.addmm(shift, given.to(like.dtype), self.slope.to(like.dtype))

    def _solve(self, prefix: str, memory: int) -> None:
        """Set the map of a memory, in units of the data, and for that of all rows what x is alone."""
        f, moments = self.features, self.moments
        S, rows, unit, mean = moments.covariances[memory], 1 / moments.noise[memory], moments.unit, moments.mean(memory)
        slope, rest = S[:f, f:], S[f:, f:]
        whole = rest
        if f:
            of_features, of_x = precision_factor(S[:f, :f], None)[0], precision_factor(rest, None)[0]
            cross = torch.nan_to_num(of_features @ slope @ of_x.T)
            told = torch.cat([_without_noise(part, rows) for part in cross.chunk(self.blocks)]) @ _inverse(of_x).T
            slope, rest = of_features.T @ told, rest - told.T @ told  # in units
        factor, log_det = precision_factor(rest, rows)
        slope, factor = slope * unit[f:] / unit[:f, None], factor / unit[f:]
        maps = {"shift": mean[f:] - mean[:f] @ slope, "slope": slope, "factor": factor.contiguous()}
        maps["log_det"] = log_det - unit[f:].log().sum()
        if memory == ALL:
            alone = precision_factor(whole, rows)[0] / unit[f:]
            maps |= {"left": alone @ _inverse(factor), "alone": torch.cat([mean[None, f:], alone])}
        for name, value in maps.items():
            setattr(self, prefix + name, value.to(getattr(self, prefix + name)))

    def _loss(self, prefix: str) -> Tensor:
        """Minus the log-density of the last batch by a map, u standard normal, less its constant."""
        shift, slope, factor, log_det = (
            getattr(self, prefix + name).double() for name in ("shift", "slope", "factor", "log_det")
        )
        n, mean, covariance = self.moments.batch
        back = factor @ torch.cat([-slope.T, torch.eye(self.dim).to(factor)], 1)  # d (f + d)
        off, scaled = back @ (self.moments.origin + self.moments.unit * mean) - factor @ shift, back * self.moments.unit
        spread = (scaled @ covariance * scaled).sum()
        return n * (0.5 * (spread + off.square().sum()) - log_det)


@final
class RankNormal(Transform):
    r"""Map every column to a standard normal by its running quantiles: $u = \Phi^{-1}(F(x))$, piecewise linear.

    The map runs through knots, the quantiles of the data at evenly spaced points of the normal scale, and beyond them
    bends from a straight line to a logarithm. It is rank-based: heavy tails, skew and bounded supports become easy,
    and mutual information does not change.

    Args:
        dim: Number of columns.
        knots: Number of knots; 105 are 0.05 standard deviations apart.
        reach: Where the outermost knots are, in standard deviations; 2.6 is what a batch of 128 still shows.

    Examples:
        >>> x = torch.randn(5000, 1, generator=torch.Generator().manual_seed(0)) ** 3
        >>> u, _ = RankNormal(1).initialize(x)(x)
        >>> bool((u.std() - 1).abs() < 0.05)
        True
    """

    normal: Tensor
    quantiles: Tensor
    knots: Tensor
    levels: Tensor
    weights: Tensor

    def __init__(self, dim: int, knots: int = 105, reach: float = 2.6) -> None:
        super().__init__(dim)
        self.register_buffer("normal", torch.linspace(-reach, reach, knots))
        for name in ("quantiles", "knots", "levels"):  # dim Q; levels are where the map leads the knots
            self.register_buffer(name, self.normal.repeat(dim, 1))
        edges = torch.special.ndtr((self.normal[1:] + self.normal[:-1]) / 2)
        weights = torch.cat([torch.zeros(1), edges, torch.ones(1)]).diff()
        self.register_buffer("weights", weights, persistent=False)  # part of the rows that a knot stands for
        self.running = Quantiles(dim, self.normal)

    @override
    def forward(self, x: Tensor, given: Tensor | None = None) -> tuple[Tensor, Tensor]:
        u, log_slopes = self.map(x if x.dtype.itemsize >= 4 else x.float())  # knots may be closer than half precision
        return u.to(x.dtype), log_slopes.sum(1).to(x.dtype)

    def map(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map x (N, dim) to u; also return the log-slopes (N, dim)."""
        return _through(x, self.knots, self.levels)

    @override
    def inverse(self, u: Tensor, given: Tensor | None = None) -> Tensor:
        knots, levels = self.knots.to(u.dtype), self.levels.to(u.dtype)
        x, _, beyond = _along_lines(u.t().contiguous(), levels, knots)
        return (x + beyond.sinh() / torch.where(beyond < 0, *_end_slopes(knots, levels))).t()

    @override
    def observe(self, x: Tensor, given: Tensor | None = None) -> None:
        running = self.running
        running.observe(x)
        seen, pending = running.counts
        if not seen or not running.due():
            return
        first = seen == pending
        running.place(running.forget_if(self._change(), 2 * self.dim), STALE * MEMORY)
        if first or seen < 4 * ENOUGH:
            grown = (running.rows[ALL] >= 2 * running.placed) & (running.placed < ENOUGH)
            running.place(torch.ones_like(grown) if first else grown, running.rows[ALL], known=not first)
        gap = (running.unit[:, None] * (self.normal[1] - self.normal[0])).to(self.knots)
        both = running.of_batches(ALL), running.in_data(running.knots)
        self.quantiles, self.knots = (_apart(x.to(self.knots), gap) for x in both)  # rounded ones may coincide again
        self.levels = running.levels().to(self.levels)

    def standardize(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Centre x (N, dim) by the median and scale it by half the distance of two middle quantiles: u, and the scale.

        Unlike mean and standard deviation these exist for every distribution and move smoothly with the batches.
        """
        middle, gap = len(self.normal) // 2, float(self.normal[1] - self.normal[0])
        wide = min(middle, max(1, round(1 / gap)))  # knots from the middle to one on the normal scale, or the next
        scale = (self.quantiles[:, middle + wide] - self.quantiles[:, middle - wide]) / (2 * wide * gap)
        return (x - self.quantiles[:, middle].to(x.dtype)) / scale.to(x.dtype), scale.to(x.dtype)

    def moments(self, quantiles: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation (dim,) of columns with quantiles (dim, Q); what is farther out counts as they do.

        They exist for every distribution. In units of a standard normal's own they are 0 and 1 for one.
        """
        mean = quantiles @ self.weights.to(quantiles)
        variance = (quantiles - mean[:, None]).square() @ self.weights.to(quantiles)
        return mean, (variance / (self.normal.square() @ self.weights)).sqrt()

    def _change(self) -> Tensor:
        """What recent rows gain by means and variances of their own where the map leads, columns taken apart."""
        every = _apart(self.running.of_batches(ALL), self.running.unit[:, None])
        u = _through(self.running.of_batches(RECENT).T, every, self.normal.to(every).expand_as(every))[0]
        mean, scale = self.moments(u.clamp(self.normal[0], self.normal[-1]).T)  # batches do not show what is beyond
        return normal_gain(scale.square(), mean.square())


@final
class Features(nn.Module):
    r"""What a density sees of a continuous condition: $\phi$, its columns standardised, and made normal by rank.

    Both forms together let one linear map see relations in either. Standardised values end at ``FAR``.

    Args:
        dim: Number of columns g of the condition.
        ranks: Whether the columns come in both forms, 2 g features, or standardised alone.

    Examples:
        >>> Features(3)(torch.zeros(5, 3)).shape
        torch.Size([5, 6])
    """

    def __init__(self, dim: int, ranks: bool = True) -> None:
        super().__init__()
        self.out = 2 * dim if ranks else dim
        self.map: Transform = RankNormal(dim) if ranks else Standardize(dim)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (N, g) to features (N, out)."""
        u: Tensor = self.map(x)[0]
        if not isinstance(self.map, RankNormal):
            return u.clamp(-FAR, FAR)
        mean, scale = (part.to(x.dtype) for part in self.map.moments(self.map.quantiles.double()))
        return torch.cat([((x - mean) / scale).clamp(-FAR, FAR), u], 1)

    def observe(self, x: Tensor) -> None:
        """Follow the rows of x (N, g)."""
        self.map.observe(x)


def precision_factor(covariance: Tensor, rows: Tensor | float | None) -> tuple[Tensor, Tensor]:
    r"""Return the lower-triangular L with $L \Sigma L^\top = I$ for a covariance (d, d), and its log-determinant.

    The one rule of regularisation: a column that never varied has variance one; correlations are shrunk towards none
    as far as the number of rows suggests (``shrunk``; ``None`` where they are exact), and in any case by the rounding
    error of the computation.

    Examples:
        >>> L, log_det = precision_factor(torch.tensor([[4.0, 0.0], [0.0, 1.0]]), None)
        >>> L, round(log_det.item(), 4)
        (tensor([[0.5000, 0.0000],
                [0.0000, 1.0000]]), -0.6931)
    """
    variance = covariance.diagonal()
    scale = torch.where(variance > torch.finfo(covariance.dtype).eps ** 1.5, variance, 1.0).sqrt()
    correlation = covariance / scale / scale[:, None]
    correlation = torch.where(torch.eye(len(scale), dtype=torch.bool, device=scale.device), 1.0, correlation)
    correlation = correlation if rows is None else shrunk(correlation, rows)
    rounding = len(scale) * torch.finfo(covariance.dtype).eps ** (2 / 3)  # well above that of running averages
    eye = torch.eye(len(scale)).to(correlation)
    chol, failed = torch.linalg.cholesky_ex(torch.lerp(correlation, eye, rounding))
    chol = torch.where(failed > 0, eye, chol)  # not a covariance at all: moments that were never finite
    factor = _inverse(chol) / scale
    return factor, factor.diagonal().log().sum()


def shrunk(correlation: Tensor, rows: Tensor | float) -> Tensor:
    """Shrink a correlation matrix (d, d) of so many rows towards the identity (Chen et al., 2010)."""
    d = len(correlation)
    square = correlation.square().sum()
    rate = ((1 - 2 / d) * square + d * d) / ((rows + 1 - 2 / d) * (square - d).clamp_min(1e-300))
    return torch.lerp(correlation, torch.eye(d).to(correlation), rate.clamp(0.0, 1.0))


def shrink_correlations(s: Tensor, features: int, dim: int, rows: Tensor | float) -> Tensor:
    r"""Shrink canonical correlations (k,), estimated from so many rows, to what is there without their noise.

    The whitened cross-moments are a matrix of features x dim with noise of variance 1 / rows in every entry. Its
    singular values y, in units of that noise, become $\sqrt{(y^2 - \beta - 1)^2 - 4\beta} / y$ above $1 + \sqrt\beta$:
    the least squared error for such a matrix (Gavish & Donoho, 2017). The noise of a correlation s is smaller by
    $1 - s^2$, and so is what is taken away. Below, where none shows by itself, many may together: the part of their
    sum of squares that is no noise is kept of each (James & Stein, 1961).

    Examples:
        >>> shrink_correlations(torch.tensor([0.9, 0.01]), 10, 10, 1000.0)
        tensor([0.8956, 0.0000])
    """
    large, beta = max(features, dim), min(features, dim) / max(features, dim)
    rows, s = torch.as_tensor(rows).to(s), s.clamp_max(1 - torch.finfo(s.dtype).eps ** 0.5)
    y = s * ((rows - features - dim).clamp_min(0) / large).sqrt()  # as many numbers went into the whitening
    above = y > 1 + math.sqrt(beta)
    inside = ((y.square() - beta - 1).square() - 4 * beta).clamp_min(0)
    alone = torch.where(above, 1 - (1 - inside.sqrt() / y.clamp_min(1e-30) ** 2) * (1 - s.square()), 0.0)
    energy = torch.where(above, s.square(), 0.0) + (s.square() * ~above).sum()  # of those below, and each above
    noise = (features - above.sum() + above) * (dim - above.sum() + above) / rows
    return s * alone.maximum(1 - noise / energy.clamp_min(1e-30))


def _without_noise(cross: Tensor, rows: Tensor | float) -> Tensor:
    """Whitened cross-moments (f, d) of so many rows, with their singular values shrunk."""
    U, s, Vh = torch.linalg.svd(cross, full_matrices=False)
    return U * shrink_correlations(s, len(cross), cross.shape[1], rows) @ Vh


def pull_in(x: Tensor) -> tuple[Tensor, Tensor]:
    """Move entries of x (N, c) to within ``FAR`` robust deviations of the column's median; say which rows had others.

    By the rows alone, so that a jump of all of them is none. An entry that was moved has the gradient of the place that
    it was moved to. Classes are as they were.

    Examples:
        >>> x = torch.linspace(-1.0, 1.0, 100)[:, None].index_fill(0, torch.tensor([7]), 1e30)
        >>> near, far = pull_in(x)
        >>> far.nonzero().flatten().tolist(), round(near[7].item(), 1)
        ([7], 4.2)
    """
    if not x.is_floating_point():
        return x, torch.zeros(len(x), dtype=torch.bool, device=x.device)
    with torch.no_grad():
        median, unit = (part.to(x.dtype) for part in _robust_scale(x if x.dtype.itemsize >= 4 else x.float()))
        near = x.clamp(median - FAR * unit, median + FAR * unit)
        far = near != x
    return torch.where(far, near + (x - x.detach()), x), far.any(1)


def _robust_scale(x: Tensor) -> tuple[Tensor, Tensor]:
    """Median, and the range of all but the outermost rows in standard deviations of a normal, of x (N, c); NaN is none.

    A range of zero gives way to the largest deviation, and that of a constant to one.
    """
    n = (~x.isnan()).all(1).sum()
    ordered = x.sort(0).values  # NaN last
    cut = torch.where(n >= 10, (TRIMMED * n).ceil().long() + 1, 0)
    last = (n - 1).clamp_min(0)
    low, high = ordered[torch.minimum(cut, last)], ordered[(last - cut).clamp_min(0)]
    median = torch.nan_to_num(ordered[last // 2])
    spread = torch.nan_to_num((high - low) / (2 * 2.33), nan=0.0)
    widest = torch.nan_to_num((x - median).abs(), nan=0.0).amax(0)
    tiny = torch.finfo(torch.float).eps * 1e-3 * median.abs() + torch.finfo(torch.double).tiny
    unit = torch.where(spread > tiny, spread, torch.where(widest > tiny, widest, 1.0))
    return median, unit


def _through(x: Tensor, knots: Tensor, levels: Tensor) -> tuple[Tensor, Tensor]:
    """Map x (N, dim) by lines through knots and levels (dim, Q), and beyond them by logarithms: u, and log-slopes."""
    knots, levels = knots.to(x.dtype), levels.to(x.dtype)
    u, slope, beyond = _along_lines(x.t().contiguous(), knots, levels)
    end = torch.where(beyond < 0, *_end_slopes(knots, levels))
    slope, beyond = torch.where(beyond == 0, slope, end), beyond * end
    return (u + beyond.asinh()).t(), (slope / torch.hypot(torch.ones_like(beyond), beyond)).log().t()


def _along_lines(x: Tensor, knots: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Lines through knots and values (dim, Q) at x (dim, N): values, slopes, and how far x is beyond the knots."""
    left = torch.searchsorted(knots[:, 1:-1].contiguous(), x.detach())
    slopes = values.diff() / knots.diff()
    bases = values[:, :-1] - knots[:, :-1] * slopes
    slope, inside = slopes.gather(1, left), torch.minimum(torch.maximum(x, knots[:, :1]), knots[:, -1:])
    return torch.addcmul(bases.gather(1, left), inside, slope), slope, x - inside


def _end_slopes(knots: Tensor, levels: Tensor) -> tuple[Tensor, Tensor]:
    """The slopes (dim, 1) from which the map bends beyond the first and the last of the knots (dim, Q).

    Small batches show the same smallest number for many levels; its knots are close together and as steep as they are
    close. So the slope is at most that over the outer fifth of the knots.
    """
    part = max(1, knots.shape[1] // 5)
    ends = (slice(0, part + 1, part), slice(0, 2)), (slice(-1 - part, None, part), slice(-2, None))
    low, high = (torch.minimum(*((levels[:, at].diff() / knots[:, at].diff()) for at in both)) for both in ends)
    return low, high


def _inverse(lower: Tensor) -> Tensor:
    return torch.linalg.solve_triangular(lower, torch.eye(len(lower)).to(lower), upper=False)


def _apart(knots: Tensor, gap: Tensor) -> Tensor:
    """Push knots (dim, Q) that coincide apart, to both sides and by a small part of the gaps around: finite slopes.

    Where all coincide they become as far apart as ``gap`` (dim, 1).
    """
    near = nn.functional.max_pool1d(knots.diff(), 7, 1, 3)
    least = torch.where(near > 0, near, gap / CLOSE).amin(1, keepdim=True)  # for runs that are longer than the window
    rounding = knots[:, 1:].abs() * (2 * torch.finfo(knots.dtype).eps)
    ramp = nn.functional.pad(torch.maximum(torch.maximum(near, least) * CLOSE, rounding).cumsum(1), (1, 0))
    bare = knots - ramp
    up, down = bare.cummax(1).values, bare.flip(1).cummin(1).values.flip(1)  # no knot below or above its neighbours
    return torch.lerp(up, down, 0.5) + ramp
