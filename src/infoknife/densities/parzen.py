"""Kernels at fixed centres: Parzen-Rosenblatt and Schraudolph."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from infoknife import kernels
from infoknife.coordinates import Features, Identity, Regression
from infoknife.densities.base import Density
from infoknife.inputs import check_count, check_number, one_of
from infoknife.mixtures import some_rows
from infoknife.nn import MLP

RULES: dict[str, Callable[[int], float]] = {"scott": lambda dim: 1.0, "silverman": lambda dim: (dim + 2) / 4}
NARROWEST, WIDEST = 1e-18, 1e18  # bandwidths whose squares float32 holds
_CHUNK = 2**24  # numbers at once when many points meet many centres


class FixedCentres(Density):
    """Kernels at rows of the data, which neither move nor leave the coordinates of the start."""

    centres: Tensor

    def observe(self, x: Any, given: Any = None) -> None:
        """Start from the first batch; after that neither centres nor coordinates move."""
        if not self.initialized:
            super().observe(x, given)

    def _rule(self, name: str, rows: int) -> float:
        """The bandwidth of a rule for so many rows, in standard deviations."""
        return math.pow(rows * RULES[name](self.dim), -1 / (self.dim + 4))


class Parzen(FixedCentres):
    r"""The Parzen-Rosenblatt density with a fixed bandwidth, `eq:kernel0`; nothing is learned.

    $\hat p(x) = \frac{1}{M} \sum_m \mathcal N(x; x'_m, w^2 \Sigma)$. Called as a module it is the mean of
    $-\log\hat p$ in nats, an upper bound of the entropy in expectation on rows that are not centres (`eq:ce_bound`).

    Args:
        dim: Dimension of x.
        components: Number of centres, drawn from the rows of ``initialize``; all of them if not given.
        bandwidth: ``"scott"`` or ``"silverman"``, where $\Sigma$ is the data's covariance and w the rule's factor,
            or a number w in the units of the data, where $\Sigma$ is the identity.

    Examples:
        >>> generator = torch.Generator().manual_seed(0)
        >>> x, fresh = torch.randn(2, 2000, 1, generator=generator)
        >>> round(Parzen(1).initialize(x)(fresh).item(), 1)  # h = 1.42 nats
        1.4
    """

    width: Tensor

    def __init__(self, dim: int, components: int | None = None, *, bandwidth: str | float = "scott") -> None:
        if isinstance(bandwidth, str):
            one_of("bandwidth", bandwidth, tuple(RULES))
        elif not NARROWEST <= check_number("bandwidth", bandwidth) <= WIDEST:
            raise ValueError(
                f"bandwidth is {bandwidth}; expected 'scott', 'silverman' or a number from {NARROWEST} to {WIDEST}, in "
                f"the units of the data. Use other units"
            )
        super().__init__(dim, None, None, Regression(dim) if isinstance(bandwidth, str) else Identity(dim))
        self.components = None if components is None else check_count("components", components)
        self.bandwidth = bandwidth
        self.register_buffer("centres", torch.zeros(1, dim))
        self.register_buffer("width", torch.tensor(1.0 if isinstance(bandwidth, str) else float(bandwidth)))

    def _log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        centres, scale = self.centres.to(u.dtype), -self.width.to(u.dtype).log().expand_as(self.centres)
        log_weights = u.new_full((len(centres),), -math.log(len(centres)))
        parts = u.split(max(1, _CHUNK // centres.numel()))
        return torch.cat([kernels.diagonal(part, log_weights, centres, scale) for part in parts])

    def _sample(self, n: int, given: Tensor | None, generator: torch.Generator) -> Tensor:
        kernel = torch.randint(len(self.centres), (n,), generator=generator)
        noise = torch.randn(n, self.dim, generator=generator, dtype=self.centres.dtype).to(self.centres.device)
        return self.centres[kernel.to(self.centres.device)] + self.width * noise

    def _initialize(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        rows = torch.arange(len(u)) if self.components is None else some_rows(len(u), self.components, generator)
        self.centres = u[rows.to(u.device)]
        rule = self.bandwidth
        self.width = u.new_tensor(self._rule(rule, len(rows)) if isinstance(rule, str) else rule)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Make room for as many centres as the state has."""
        saved = state_dict.get(prefix + "centres")
        if saved is not None:
            self.centres = self.centres.new_empty(saved.shape, dtype=saved.dtype)
        super()._load_from_state_dict(state_dict, prefix, *args)


class Schraudolph(FixedCentres):
    r"""Kernels at fixed samples with equal weights and learnable diagonal covariances, `eq:schraudolph`.

    Given a continuous variable, a network with one tanh layer computes the covariances; given classes, each class has
    its own centres and covariances. Called as a module it is the mean of $-\log\hat p$ in nats, an upper bound of the
    entropy in expectation on rows that are not centres (`eq:ce_bound`).

    Args:
        dim: As for ``Density``, and so are ``given_dim`` and ``given_classes``.
        components: Number of centres (for each class), drawn from the rows of ``initialize``.
        hidden: Width of the network's hidden layer.
        init: ``"data"``: whitened coordinates and Scott's bandwidth; ``"paper"``: the coordinates of the data and
            log-scales of 0.01 times standard noise.

    Examples:
        >>> generator = torch.Generator().manual_seed(0)
        >>> x, fresh = torch.randn(2, 2000, 1, generator=generator)
        >>> round(Schraudolph(1).initialize(x, seed=0)(fresh).item(), 1)  # h = 1.42 nats
        1.4
    """

    def __init__(
        self,
        dim: int,
        components: int = 128,
        *,
        given_dim: int | None = None,
        given_classes: int | None = None,
        hidden: int = 64,
        init: str = "data",
    ) -> None:
        one_of("init", init, ("data", "paper"))
        own = init == "data"
        features = Features(check_count("given_dim", given_dim), ranks=False) if own and given_dim is not None else None
        super().__init__(dim, given_dim, given_classes, Regression(dim) if own else Identity(dim), features)
        self.components = components = check_count("components", components)
        self.init, hidden = init, check_count("hidden", hidden)
        classes = self.given_classes or 1
        self.register_buffer("centres", 0.1 * torch.randn(classes, components, dim))
        self.log_diagonal = nn.Parameter(torch.zeros(classes, components, dim))
        if given_dim is not None:
            self.network = MLP(given_dim, components * dim, (hidden,))
            self._zero_network()

    def _log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        if self.given_classes is not None:
            assert given is not None
            return self._log_prob_all(u).gather(-1, given.unsqueeze(-1)).squeeze(-1)
        return self._mixed(u, self.centres[0], self.log_diagonal[0].to(u.dtype) + self._moves(given))

    def _log_prob_all(self, u: Tensor) -> Tensor:
        each = zip(self.centres, self.log_diagonal, strict=True)
        return torch.stack([self._mixed(u, *one) for one in each], -1)

    def _mixed(self, u: Tensor, centres: Tensor, log_diagonal: Tensor) -> Tensor:
        log_weights = u.new_zeros(self.components).log_softmax(0)
        return kernels.diagonal(u, log_weights, centres.to(u.dtype), log_diagonal.to(u.dtype))

    def _moves(self, given: Tensor | None) -> Tensor | float:
        """What the network adds to the log-diagonals, (N, M, d), and nothing where there is none."""
        return 0.0 if self.given_dim is None else self.network(given).view(-1, self.components, self.dim)

    def _sample(self, n: int, given: Tensor | None, generator: torch.Generator) -> Tensor:
        rows = torch.arange(n, device=self.centres.device)
        label = torch.zeros_like(rows) if self.given_classes is None or given is None else given
        kernel = torch.randint(self.components, (n,), generator=generator).to(rows)
        log_diagonal = (self.log_diagonal[label] + self._moves(given))[rows, kernel]
        noise = torch.randn(n, self.dim, generator=generator, dtype=self.centres.dtype).to(self.centres.device)
        return self.centres[label, kernel] + noise * (-log_diagonal).exp()

    def _initialize(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        groups = self._rows_by_class(u, given, least=1)
        drawn = [rows[some_rows(len(rows), self.components, generator).to(rows.device)] for rows in groups]
        self.centres = torch.stack(drawn)
        if self.init == "data":
            self.log_diagonal.fill_(-math.log(self._rule("scott", self.components)))
        else:
            self.log_diagonal.copy_(0.01 * torch.randn(self.log_diagonal.shape, generator=generator))
        if self.given_dim is not None:
            self._zero_network()

    def _zero_network(self) -> None:
        for parameter in self.network[-1].parameters():
            nn.init.zeros_(parameter)
