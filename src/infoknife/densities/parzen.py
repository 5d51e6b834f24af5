"""Kernels at fixed centres: Parzen-Rosenblatt and Schraudolph."""

import math
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn

from infoknife import kernels
from infoknife.coordinates import Features, Identity, Whiten
from infoknife.densities.base import Density
from infoknife.inputs import check_count, one_of
from infoknife.mixtures import some_rows
from infoknife.nn import MLP

_CHUNK = 2**24  # numbers at once when many points meet many centres


class Parzen(Density):
    r"""The Parzen-Rosenblatt density with a fixed bandwidth, `eq:kernel0`; nothing is learned.

    $\hat p(x) = \frac{1}{M} \sum_m \mathcal N(x; x'_m, w^2 \Sigma)$. Given a continuous variable, its kernel
    weights the centres; given classes, only the centres of the class count. Called as a module it is the mean of
    $-\log\hat p$ in nats, an upper bound of the entropy in expectation on rows that are not centres (`eq:ce_bound`).

    Args:
        dim: Dimension of x.
        components: Number of centres, drawn from the rows of ``initialize``; all of them if not given.
        bandwidth: ``"scott"`` or ``"silverman"``, where $\Sigma$ is the data's covariance and w the rule's factor,
            or a number w in the units of the data, where $\Sigma$ is the identity.
        given_dim: Dimension of a continuous condition.
        given_classes: Number of classes of a discrete condition.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> x, fresh = torch.randn(2, 2000, 1, generator=generator)
        >>> round(Parzen(1).initialize(x)(fresh).item(), 1)  # h = 1.42 nats
        1.4
    """

    centres: Tensor
    given_centres: Tensor
    width: Tensor

    def __init__(
        self,
        dim: int,
        components: int | None = None,
        *,
        bandwidth: str | float = "scott",
        given_dim: int | None = None,
        given_classes: int | None = None,
    ) -> None:
        if isinstance(bandwidth, str):
            one_of("bandwidth", bandwidth, ("scott", "silverman"))
        elif isinstance(bandwidth, bool) or not isinstance(bandwidth, Real):
            raise TypeError(f"bandwidth is {bandwidth!r}; expected 'scott', 'silverman' or a positive number")
        elif not 0 < bandwidth < math.inf:
            raise ValueError(f"bandwidth is {bandwidth}; expected 'scott', 'silverman' or a positive number")
        features = None if given_dim is None else Features(check_count("given_dim", given_dim), ranks=False)
        coordinates = Whiten(dim) if isinstance(bandwidth, str) else Identity(dim)
        super().__init__(dim, given_dim, given_classes, coordinates, features)
        self.components = None if components is None else check_count("components", components)
        self.bandwidth = bandwidth
        classes = self.given_classes or 1  # until ``initialize``, one centre for each class
        self.register_buffer("centres", torch.zeros(classes, dim))
        self.register_buffer(
            "given_centres", torch.arange(classes)[:, None] if given_dim is None else torch.zeros(1, given_dim)
        )
        self.register_buffer("width", torch.tensor(1.0 if isinstance(bandwidth, str) else float(bandwidth)))

    def observe(self, x: Any, given: Any = None) -> None:
        """Start from the first batch; after that neither centres nor coordinates move."""
        if not self.initialized:
            super().observe(x, given)

    def _log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        parts = u.split(self._rows_at_once)
        conditions = [None] * len(parts) if given is None else given.split(self._rows_at_once)
        return torch.cat([self._part(*pair) for pair in zip(parts, conditions, strict=True)])

    @property
    def _rows_at_once(self) -> int:
        return max(1, _CHUNK // self.centres.numel())

    def _part(self, u: Tensor, given: Tensor | None) -> Tensor:
        centres = self.centres.to(u.dtype)
        log_width = self.width.to(u.dtype).log()
        scale = (-log_width).expand_as(centres)
        if given is None:
            return kernels.diagonal(u, u.new_full((len(centres),), -math.log(len(centres))), centres, scale)
        return kernels.diagonal(u, self._log_weights(given, u), centres, scale)

    def _log_weights(self, given: Tensor, u: Tensor) -> Tensor:
        """Log of the centres' weights (N, M) under the condition; minus infinity everywhere for a class without one."""
        if self.given_classes is not None:
            same = given.unsqueeze(-1) == self.given_centres.squeeze(-1)
            return torch.where(same, -same.sum(-1, keepdim=True).to(u.dtype).log(), -torch.inf)
        # the rule's factor also for the condition, which is standardised
        width = self.width.to(u.dtype) if isinstance(self.bandwidth, str) else _scott(len(self.centres), self.dim)
        distance = torch.cdist(given, self.given_centres.to(u.dtype)) / width
        return torch.log_softmax(-0.5 * distance * distance, -1)

    def _sample(self, n: int, given: Tensor | None, generator: torch.Generator) -> Tensor:
        if given is None:
            kernel = torch.randint(len(self.centres), (n,), generator=generator)
        else:
            kernel = torch.cat([self._choose(part, generator) for part in given.split(self._rows_at_once)])
        noise = torch.randn(n, self.dim, generator=generator, dtype=self.centres.dtype).to(self.centres.device)
        return self.centres[kernel.to(self.centres.device)] + self.width * noise

    def _choose(self, given: Tensor, generator: torch.Generator) -> Tensor:
        weights = self._log_weights(given, self.centres).exp().cpu()
        empty = weights.sum(-1) == 0
        if bool(empty.any()):
            raise ValueError(f"given has class {int(given[empty][0])}, of which initialize saw no rows to draw from")
        return torch.multinomial(weights, 1, generator=generator).squeeze(-1)

    def _initialize(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        rows = torch.arange(len(u)) if self.components is None else some_rows(len(u), self.components, generator)
        rows = rows.to(u.device)
        self.centres = u[rows]
        if given is not None:
            self.given_centres = given[rows] if given.dim() == 2 else given[rows].unsqueeze(-1)
        if isinstance(self.bandwidth, str):
            rule = {"scott": _scott, "silverman": _silverman}[self.bandwidth]
            self.width = u.new_tensor(rule(len(rows), self.dim + (self.given_dim or 0)))
        else:
            self.width = u.new_tensor(self.bandwidth)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Make room for as many centres as the state has."""
        for name in ("centres", "given_centres"):
            saved = state_dict.get(prefix + name)
            if saved is not None:
                setattr(self, name, getattr(self, name).new_empty(saved.shape, dtype=saved.dtype))
        super()._load_from_state_dict(state_dict, prefix, *args)


class Schraudolph(Density):
    r"""Kernels at fixed samples with equal weights and learnable diagonal covariances, `eq:schraudolph`.

    Given a continuous variable, a network with one tanh layer computes the covariances; given classes, each class has
    its own centres and covariances. Called as a module it is the mean of $-\log\hat p$ in nats, an upper bound of the
    entropy in expectation on rows that are not centres (`eq:ce_bound`).

    Args:
        dim: Dimension of x.
        components: Number of centres (for each class), drawn from the rows of ``initialize``.
        given_dim: Dimension of a continuous condition.
        given_classes: Number of classes of a discrete condition.
        hidden: Width of the network's hidden layer.
        init: ``"data"``: whitened coordinates and Scott's bandwidth; ``"paper"``: the coordinates of the data and
            log-scales of 0.01 times standard noise.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> x, fresh = torch.randn(2, 2000, 1, generator=generator)
        >>> round(Schraudolph(1).initialize(x, seed=0)(fresh).item(), 1)  # h = 1.42 nats
        1.4
    """

    centres: Tensor

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
        features = None
        if init == "data" and given_dim is not None:
            features = Features(check_count("given_dim", given_dim), ranks=False)
        super().__init__(dim, given_dim, given_classes, Whiten(dim) if init == "data" else Identity(dim), features)
        self.components = components = check_count("components", components)
        self.init, hidden = init, check_count("hidden", hidden)
        classes = self.given_classes or 1
        self.register_buffer("centres", 0.1 * torch.randn(classes, components, dim))
        self.log_diagonal = nn.Parameter(torch.zeros(classes, components, dim))
        if given_dim is not None:
            self.network = MLP(given_dim, components * dim, (hidden,))
            self._still()

    def observe(self, x: Any, given: Any = None) -> None:
        """Start from the first batch; after that neither centres nor coordinates move."""
        if not self.initialized:
            super().observe(x, given)

    def _log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        centres, log_diagonal = self.centres.to(u.dtype), self.log_diagonal.to(u.dtype)
        log_weights = u.new_zeros(self.components).log_softmax(0)
        if self.given_classes is not None:
            return self._log_prob_all(u).gather(-1, _column(given)).squeeze(-1)
        shape = log_diagonal[0]
        if self.given_dim is not None:
            shape = shape + self.network(given).view(-1, self.components, self.dim)
        return kernels.diagonal(u, log_weights, centres[0], shape)

    def _log_prob_all(self, u: Tensor) -> Tensor:
        centres, log_diagonal = self.centres.to(u.dtype), self.log_diagonal.to(u.dtype)
        log_weights = u.new_zeros(self.components).log_softmax(0)
        each = [kernels.diagonal(u, log_weights, *pair) for pair in zip(centres, log_diagonal, strict=True)]
        return torch.stack(each, -1)

    def _sample(self, n: int, given: Tensor | None, generator: torch.Generator) -> Tensor:
        label = torch.zeros(n, dtype=torch.long, device=self.centres.device)
        if self.given_classes is not None:
            label = _column(given).squeeze(-1)
        kernel = torch.randint(self.components, (n,), generator=generator).to(label.device)
        log_diagonal = self.log_diagonal[label, kernel]
        if self.given_dim is not None:
            moves = self.network(given).view(n, self.components, self.dim)
            log_diagonal = log_diagonal + moves[torch.arange(n, device=kernel.device), kernel]
        noise = torch.randn(n, self.dim, generator=generator, dtype=self.centres.dtype).to(self.centres.device)
        return self.centres[label, kernel] + noise * (-log_diagonal).exp()

    def _initialize(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        self.centres = torch.stack([self._draw_centres(rows, generator) for rows in self._groups(u, given)])
        if self.init == "data":
            self.log_diagonal.fill_(-math.log(_scott(self.components, self.dim)))
        else:
            self.log_diagonal.copy_(0.01 * torch.randn(self.log_diagonal.shape, generator=generator))
        if self.given_dim is not None:
            self._still()

    def _still(self) -> None:
        """Let the network give zero."""
        for parameter in self.network[-1].parameters():
            nn.init.zeros_(parameter)

    def _groups(self, u: Tensor, given: Tensor | None) -> list[Tensor]:
        """The rows of each class, all rows for a class without any, and one group where there are no classes."""
        if self.given_classes is None or given is None:
            return [u]
        rows = [u[given == label] for label in range(self.given_classes)]
        return [group if len(group) > 0 else u for group in rows]

    def _draw_centres(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        return rows[some_rows(len(rows), self.components, generator).to(rows.device)]


def _column(given: Tensor | None) -> Tensor:
    assert given is not None
    return given.unsqueeze(-1)


def _scott(rows: int, dim: int) -> float:
    return math.pow(rows, -1 / (dim + 4))


def _silverman(rows: int, dim: int) -> float:
    return math.pow(rows * (dim + 2) / 4, -1 / (dim + 4))
