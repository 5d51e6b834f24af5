r"""A normalising flow: $\log p(x) = \log \mathcal N(f(x); 0, I) + \log|\det f'(x)|$ with a learned invertible f."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from infoknife.densities.base import MOMENTUM, Density
from infoknife.inputs import check_count
from infoknife.mixtures import precision_factor
from infoknife.nn import Linear, regression
from infoknife.transforms import Steady, shrunk

__all__ = ["Flow"]

LEAST = 1e-6  # standard deviation of the start, for a class that repeats itself


class Flow(Density):
    r"""A neural spline flow (Durkan et al., 2019), by zuko, behind a Gaussian that is fitted to the data.

    $\log \hat p(x) = \log \mathcal N(f(z); 0, I) + \log|\det f'(z)| + \log|\det L|$ with $z = L\,(x - b)$. The factor L
    of a precision and the mean b are those of the data, or of each class; b follows a continuous condition by linear
    regression. The map f is a chain of autoregressive monotone splines whose knots a network sets from the coordinates
    before and from the condition, classes as one-hot vectors. The start has f(z) = z: a Gaussian. The splines act
    on [-5, 5]; rows beyond stay where they are, so that the tails are Gaussian.
    Called as a module it is the mean of $-\log\hat p$ in nats, an upper bound of the entropy in expectation on fresh
    rows (`eq:ce_bound`).

    It needs zuko: ``pip install "infoknife[flow]"``.

    Args:
        dim: Dimension d of x.
        given_dim: Dimension of a continuous condition.
        given_classes: Number of classes of a discrete condition.
        transforms: Number of splines in the chain; the order of the coordinates turns around from one to the next.
        bins: Number of pieces of a spline, at least 2.
        hidden: Widths of the hidden layers of the network behind each spline.

    Example:
        >>> x = torch.randn(20_000, 3, generator=torch.Generator().manual_seed(0)).cumsum(1)
        >>> round(Flow(3).initialize(x)(x).item(), 1)  # h = 3/2 log(2 pi e) = 4.26 nats
        4.3
    """

    rate = 1e-3

    def __init__(
        self,
        dim: int,
        *,
        given_dim: int | None = None,
        given_classes: int | None = None,
        transforms: int = 3,
        bins: int = 8,
        hidden: Sequence[int] = (64, 64),
    ) -> None:
        super().__init__(dim, given_dim, given_classes, Steady(dim, MOMENTUM))
        check_count("transforms", transforms)
        if check_count("bins", bins) < 2:
            raise ValueError("bins is 1; expected at least 2, a spline of one piece cannot bend")
        sets = self.given_classes or 1
        self.means = nn.Parameter(torch.zeros(sets, self.dim))
        self.log_diagonal = nn.Parameter(torch.zeros(sets, self.dim))  # of the factor of the precision
        self.lower = nn.Parameter(torch.zeros(sets, self.dim, self.dim))
        self.skip = None if self.given_dim is None else Linear(self.given_dim, self.dim, bias=False)
        if self.skip is not None:
            nn.init.zeros_(self.skip.weight)
        context = self.given_dim or self.given_classes or 0
        self.splines = _Splines(self.dim, context, transforms, bins, _widths(hidden))

    def _log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        centred = u - self._mean(given, u.dtype)
        z = (centred @ self._factor().to(u.dtype).flatten(0, 1).T).unflatten(-1, (-1, self.dim))  # N C d
        z = z.squeeze(1) if self.given_classes is None or given is None else _of_class(z, given)
        return self._of_residuals(z, given)

    def _log_prob_all(self, u: Tensor) -> Tensor:
        assert self.given_classes is not None
        factor, means = self._factor().to(u.dtype), self.means.to(u.dtype)
        z = torch.einsum("ncd,ced->nce", u.unsqueeze(1) - means, factor)  # N C d
        label = torch.arange(self.given_classes, device=u.device).repeat(len(u))
        return self._of_residuals(z.flatten(0, 1), label).view(len(u), -1)

    def _of_residuals(self, z: Tensor, given: Tensor | None) -> Tensor:
        """Log-density (N,) of rows that the Gaussian made standard, z (N, d)."""
        z, log_det = self._map(z, given)
        log_diagonal = self._own(self.log_diagonal, given, z.dtype)
        return log_det + (log_diagonal - 0.5 * (z * z + math.log(2 * math.pi))).sum(-1)

    def _sample(self, n: int, given: Tensor | None, generator: torch.Generator) -> Tensor:
        z = torch.randn(n, self.dim, generator=generator, dtype=torch.double).to(self.means.device)
        z, _ = self._map(z, given, inverse=True)  # in double: the inverse of a spline solves a quadratic
        factor = self._own(self._factor(), given, z.dtype)
        centred = torch.linalg.solve_triangular(factor, z.unsqueeze(-1), upper=False).squeeze(-1)
        return (centred + self._mean(given, z.dtype)).to(self.means)

    def _initialize(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        self.splines.start(generator)
        if self.skip is not None and given is not None:
            self.skip.weight.copy_(regression(given, u).T)
            u = u - self.skip(given)
        label = u.new_zeros(len(u), dtype=torch.long) if self.given_classes is None or given is None else given
        means, covariances = _moments(u.double(), label, len(self.means))
        factor = precision_factor(covariances)
        self.means.copy_(means)
        self.log_diagonal.copy_(factor.diagonal(0, 1, 2).log())
        self.lower.copy_(factor.tril(-1))

    def _map(self, z: Tensor, given: Tensor | None, *, inverse: bool = False) -> tuple[Tensor, Tensor]:
        """The splines in the precision of z (N, d): where they take it, and their log-determinant (N,)."""
        if given is not None:
            given = given if self.given_classes is None else nn.functional.one_hot(given, self.given_classes)
            given = given.to(z.dtype)
        parameters = {name: value.to(z.dtype) for name, value in self.splines.named_parameters()}
        return torch.func.functional_call(self.splines, parameters, (z, given, inverse))

    def _mean(self, given: Tensor | None, dtype: torch.dtype) -> Tensor:
        means = self._own(self.means, given, dtype)
        return means if self.skip is None or given is None else means + self.skip(given.to(dtype))

    def _factor(self) -> Tensor:
        return self.lower.tril(-1) + torch.diag_embed(self.log_diagonal.exp())  # C d d

    def _own(self, values: Tensor, given: Tensor | None, dtype: torch.dtype) -> Tensor:
        """Each row's own set of the values (sets, ...): (N, ...) with classes, else (1, ...)."""
        values = values.to(dtype)
        return values if self.given_classes is None else values[given]


class _Splines(nn.Module):
    """The chain of splines, both ways, as a module that ``functional_call`` can run in another precision."""

    def __init__(self, dim: int, context: int, transforms: int, bins: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        try:
            from zuko.flows import NSF
        except ImportError as error:
            raise ImportError('Flow needs zuko; install it with: pip install "infoknife[flow]"') from error
        flow = NSF(dim, context, bins, transforms=transforms, hidden_features=hidden, activation=nn.SiLU)
        self.chain = flow.transform
        with torch.no_grad():
            self._flatten()

    def forward(self, z: Tensor, given: Tensor | None, inverse: bool) -> tuple[Tensor, Tensor]:
        """Map z (N, d) and give the log-determinant (N,)."""
        chain = self.chain(given)
        mapped, log_det = (chain.inv if inverse else chain).call_and_ladj(z)
        return mapped, log_det

    def start(self, generator: torch.Generator) -> None:
        """Draw the networks anew, uniform up to one over the root of the number of inputs; the map is the identity."""
        for layer in self.modules():
            weight = getattr(layer, "weight", None)
            if isinstance(weight, Tensor):
                bound = float(weight.shape[-1]) ** -0.5
                for parameter in layer.parameters():
                    parameter.copy_(torch.empty(parameter.shape).uniform_(-bound, bound, generator=generator))
        self._flatten()

    def _flatten(self) -> None:
        """Make every spline the identity: what its network gives, or what it holds where it sees nothing, is zero."""
        for spline in self.chain.transforms:
            knots = spline.hyper[-1] if hasattr(spline, "hyper") else spline.phi
            for parameter in knots.parameters():
                parameter.zero_()


def _of_class(values: Tensor, label: Tensor) -> Tensor:
    """From values for every class (N, C, d) those of each row's own: (N, d)."""
    return values.take_along_dim(label[:, None, None], 1).squeeze(1)


def _widths(hidden: Sequence[int]) -> tuple[int, ...]:
    if isinstance(hidden, str) or not isinstance(hidden, Sequence):
        raise TypeError(f"hidden is {hidden!r}; expected the widths of the layers, such as (64, 64)")
    return tuple(check_count("hidden", width) for width in hidden)


def _moments(u: Tensor, label: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Mean (C, d) and covariance (C, d, d) of each class of u (N, d); with few rows it has the covariance of all."""
    member = nn.functional.one_hot(label, classes).to(u)  # N C
    means = (member.T @ u) / member.sum(0).clamp_min(1)[:, None]
    centred = u - means[label]
    pooled = _covariance(centred)
    groups = (centred[label == c] for c in range(classes))
    return means, torch.stack([_covariance(rows) if len(rows) > u.shape[1] + 1 else pooled for rows in groups])


def _covariance(centred: Tensor) -> Tensor:
    """The covariance (d, d) of rows (N, d) around zero, its correlations shrunk towards none."""
    scale = centred.square().mean(0).sqrt().clamp_min(LEAST)
    unit = centred / scale
    return shrunk(unit.T @ unit / len(unit), len(unit)) * scale * scale[:, None]
