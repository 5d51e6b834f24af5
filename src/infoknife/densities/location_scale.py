r"""The densities of DoE (McAllester & Stratos, 2020): independent coordinates with a location and a scale.

$\log p(x \mid y) = \sum_i \log f\bigl((x_i - \mu_i(y)) / \sigma_i(y)\bigr) - \log \sigma_i(y)$, f standard.
"""

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from infoknife.coordinates import Features, Identity, Standardize
from infoknife.densities.base import Density
from infoknife.inputs import check_count, one_of
from infoknife.nn import MLP, Activation, Linear, redraw


class Standard(NamedTuple):
    """The standard member of a family: its standard deviation, log-density and quantiles, elementwise."""

    deviation: float
    log_prob: Callable[[Tensor], Tensor]
    quantile: Callable[[Tensor], Tensor]


class LocationScale(Density):
    r"""A location and a log-scale for every coordinate: numbers, one pair per class, or a network of the condition.

    As a module it gives the mean of $-\log p$ in nats, in expectation an upper bound of the entropy (`eq:ce_bound`).

    Args:
        dim: As for ``Density``, and so are ``given_dim`` and ``given_classes``.
        hidden: Width of the network's one hidden layer, for a continuous condition.
        activation: Class of the network's activation module; ``nn.Tanh`` if not given.
        layer_norm: Whether the network has LayerNorms, as ``MLP`` takes it.
        init: ``"data"``: standardised coordinates, location and scale of the data, linear regression on the condition;
            ``"paper"``: the coordinates of the data, log-variances and a random start, as the paper trained it.
    """

    standard: ClassVar[Standard]

    def __init__(
        self,
        dim: int,
        *,
        given_dim: int | None = None,
        given_classes: int | None = None,
        hidden: int = 64,
        activation: Activation | None = None,
        layer_norm: bool = False,
        init: str = "data",
    ) -> None:
        one_of("init", init, ("data", "paper"))
        if given_dim is None and (activation is not None or layer_norm):
            raise ValueError(
                "activation or layer_norm is set, but there is no continuous condition for a network; "
                "expected given_dim= with them"
            )
        own = init == "data"
        features = Features(check_count("given_dim", given_dim), ranks=False) if own and given_dim is not None else None
        super().__init__(dim, given_dim, given_classes, Standardize(dim) if own else Identity(dim), features)
        self.init, hidden = init, check_count("hidden", hidden)
        self.unit = 1.0 if own else 0.5  # of the log-scale: the paper learns log-variances
        self.values = nn.Parameter(torch.zeros(given_classes or 1, 2 * dim))  # location, then log-scale in units
        if given_dim is not None:
            self.skip = Linear(given_dim, dim, bias=False) if own else None  # the paper's has none
            self.network = MLP(given_dim, 2 * dim, (hidden,), activation or nn.Tanh, layer_norm=layer_norm)
            for module in (self.skip, self.network[-1]):
                for parameter in () if module is None else module.parameters():
                    nn.init.zeros_(parameter)

    def rsample(self, n: int, given: Any = None, seed: int | None = None) -> Tensor:
        """Draw n samples (n, dim) whose gradient reaches the parameters and the condition."""
        return self._drawn(n, given, seed)

    def log_prob_pairs(self, x: Tensor, given: Tensor) -> Callable[[slice], Tensor]:
        """How to compute the log-densities (N, B) of a slice of rows of x given every row of a continuous condition."""
        u, log_det = self.coordinates(x)
        location, log_scale = self._location_and_log_scale(self._seen(given, x.dtype), u)
        rate, offset = (-log_scale).exp().unsqueeze(1), log_det - log_scale.sum(-1, keepdim=True)
        return lambda at: self.standard.log_prob((u[at] - location.unsqueeze(1)) * rate).sum(-1) + offset

    def _log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        location, log_scale = self._location_and_log_scale(given, u)
        return (self.standard.log_prob((u - location) * (-log_scale).exp()) - log_scale).sum(-1)

    def _log_prob_all(self, u: Tensor) -> Tensor:
        return self._log_prob(u.unsqueeze(1), torch.arange(len(self.values), device=u.device))

    def _sample(self, n: int, given: Tensor | None, generator: torch.Generator) -> Tensor:
        location, log_scale = self._location_and_log_scale(given, self.values)
        level = torch.rand(n, self.dim, generator=generator, dtype=torch.double).clamp(1e-12, 1 - 1e-12)
        return location + log_scale.exp() * self.standard.quantile(level).to(self.values)

    def _initialize(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        if self.init == "paper":
            self._initialize_paper(generator)
            return
        if self.given_dim is not None:
            assert given is not None
            assert self.skip is not None
            for parameter in self.network[-1].parameters():
                parameter.zero_()
            slope = _regression(given, u)
            self.skip.weight.copy_(slope.T)
            u = u - given @ slope
        for values, rows in zip(self.values, self._rows_by_class(u, given), strict=True):
            scale = rows.std(0, correction=0).clamp_min(1e-6) / self.standard.deviation
            values.copy_(torch.cat([rows.mean(0), scale.log()]))

    def _initialize_paper(self, generator: torch.Generator) -> None:
        """Standard noise for locations and log-variances, Glorot's start for the network's last layer."""
        self.values.copy_(torch.randn(self.values.shape, generator=generator))
        if self.given_dim is not None:
            redraw(self.network, generator)
            weight, bias = self.network[-1].parameters()
            weight.copy_(nn.init.xavier_uniform_(torch.empty(weight.shape), generator=generator))
            bias.zero_()

    def _location_and_log_scale(self, given: Tensor | None, like: Tensor) -> tuple[Tensor, Tensor]:
        values = self.values.to(like.dtype)
        location, log_scale = (values if self.given_classes is None else values[given]).chunk(2, -1)
        if self.given_dim is None:
            return location, log_scale * self.unit
        more, wider = self.network(given).chunk(2, -1)
        if self.skip is not None:
            more = more + self.skip(given)
        return location + more, (log_scale + wider) * self.unit


class Gaussian(LocationScale):
    """A Gaussian with diagonal covariance, perhaps given a second variable: the density of DoE.

    Its arguments are those of ``LocationScale``.

    Examples:
        >>> x = torch.randn(20_000, 2, generator=torch.Generator().manual_seed(0))
        >>> round(Gaussian(2).initialize(x)(x).item(), 1)  # h = log(2 pi e) = 2.84 nats
        2.8
    """

    standard = Standard(1.0, lambda z: -0.5 * (z * z + math.log(2 * math.pi)), torch.special.ndtri)


class Logistic(LocationScale):
    """Independent logistic coordinates, perhaps given a second variable: DoE with the logistic density.

    Its arguments are those of ``LocationScale``.

    Examples:
        >>> x = torch.logit(torch.rand(20_000, 1, generator=torch.Generator().manual_seed(0)))
        >>> round(Logistic(1).initialize(x)(x).item(), 1)  # h = 2 nats
        2.0
    """

    standard = Standard(math.pi / math.sqrt(3), lambda z: -z - 2 * nn.functional.softplus(-z), torch.logit)


def _regression(v: Tensor, u: Tensor) -> Tensor:
    """Least-squares slope (given_dim, d) of u on the standardised v, with a ridge that a few rows need."""
    gram = v.T @ v / len(v)
    ridge = v.shape[1] / len(v) * 0.1 + 1e-6
    return torch.linalg.solve(gram + ridge * torch.eye(len(gram)).to(gram), v.T @ (u - u.mean(0)) / len(v))
