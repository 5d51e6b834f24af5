r"""A normalising flow: $\log p(x) = \log \mathcal N(f(x); 0, I) + \log|\det f'(x)|$ with a learned invertible f."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from infoknife.coordinates import Features, Regression
from infoknife.densities.base import Density
from infoknife.inputs import check_count
from infoknife.nn import redraw


class Flow(Density):
    r"""A neural spline flow (Durkan et al., 2019), by zuko, behind a linear regression on the condition.

    $\log \hat p(x) = \log \mathcal N(f(u); 0, I) + \log|\det f'(u)| + \log|\det L|$ with the coordinates
    $u = L\,(x - b - B^\top \phi)$ of ``Regression``, in closed form. The map f is a chain of autoregressive monotone
    splines whose knots a network sets from the coordinates before and from the condition, classes as one-hot vectors.
    The start has f(u) = u: a Gaussian. The splines act on [-5, 5]; rows beyond stay where they are, so that the tails
    are Gaussian.
    Called as a module it is the mean of $-\log\hat p$ in nats, an upper bound of the entropy in expectation on fresh
    rows (`eq:ce_bound`).

    It needs zuko: ``pip install "infoknife[flow]"``.

    Args:
        dim: As for ``Density``, and so are ``given_dim`` and ``given_classes``.
        transforms: Number of splines in the chain; the order of the coordinates turns around from one to the next.
        bins: Number of pieces of a spline, at least 2.
        hidden: Widths of the hidden layers of the network behind each spline.

    Examples:
        >>> x = torch.randn(20_000, 3, generator=torch.Generator().manual_seed(0)).cumsum(1)
        >>> round(Flow(3).initialize(x)(x).item(), 1)  # h = 3/2 log(2 pi e) = 4.26 nats
        4.3
    """

    rate = 1e-3
    class_coordinates = True

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
        features = None if given_dim is None else Features(check_count("given_dim", given_dim))
        classes = 0 if given_classes is None else check_count("given_classes", given_classes)
        context = classes if features is None else features.out
        super().__init__(dim, given_dim, given_classes, Regression(check_count("dim", dim), context), features)
        check_count("transforms", transforms)
        if check_count("bins", bins) < 2:
            raise ValueError("bins is 1; expected at least 2, a spline of one piece cannot bend")
        if isinstance(hidden, str) or not isinstance(hidden, Sequence):
            raise TypeError(f"hidden is {hidden!r}; expected the widths of the layers, such as (64, 64)")
        widths = tuple(check_count("hidden", width) for width in hidden)
        self.splines = _Splines(self.dim, context, transforms, bins, widths)

    def _log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        z, log_det = self._map(u, given)
        return log_det - 0.5 * (z * z + math.log(2 * math.pi)).sum(-1)

    def _sample(self, n: int, given: Tensor | None, generator: torch.Generator) -> Tensor:
        z = torch.randn(n, self.dim, generator=generator, dtype=torch.double).to(self._like().device)
        u, _ = self._map(z, given, inverse=True)  # in double: the inverse of a spline solves a quadratic
        return u.to(self._like())

    def _initialize(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        self.splines.start(generator)

    def _map(self, u: Tensor, given: Tensor | None, *, inverse: bool = False) -> tuple[Tensor, Tensor]:
        """The splines in the precision of u (N, d): where they take it, and their log-determinant (N,)."""
        context = self._regressors(given)
        context = None if context is None else context.to(u.dtype)
        parameters = {name: value.to(u.dtype) for name, value in self.splines.named_parameters()}
        return torch.func.functional_call(self.splines, parameters, (u, context, inverse))


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
        """Map z (N, d); also return the log-determinant (N,)."""
        chain = self.chain(given)
        mapped, log_det = (chain.inv if inverse else chain).call_and_ladj(z)
        return mapped, log_det

    def start(self, generator: torch.Generator) -> None:
        """Reinitialise the networks; the map is the identity."""
        redraw(self, generator)
        self._flatten()

    def _flatten(self) -> None:
        """Make every spline the identity: what its network gives, or what it holds where it sees nothing, is zero."""
        for spline in self.chain.transforms:
            knots = spline.hyper[-1] if hasattr(spline, "hyper") else spline.phi
            for parameter in knots.parameters():
                parameter.zero_()
