r"""Banks of kernels: the parameters $\theta = (A, b, u)$ of `eq:knife`, shared, by class, or computed from a condition.

A bank works in standardised coordinates. Its parameters are kept in units in which a step of size one in every
coordinate of a block changes the log-density by about one: $1/\sqrt d$ for means and log-diagonals, $\sqrt 2/d$ for the
lower triangle. So one learning rate serves all dimensions, and Adam's noise does not grow with $d^2$.
"""

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from infoknife.densities.covariance import Covariance, Shape, in_plain_units
from infoknife.densities.revival import Revived
from infoknife.densities.start import SPREAD, Mixture, start
from infoknife.inputs import is_transformed
from infoknife.kernels import Units

__all__ = ["Bank", "ClassKernels", "SharedKernels", "some_rows"]

MASS_MOMENTUM = 0.2  # of the running mass of kernels
DEAD = 0.02  # a kernel with less than this part of its fair share of the mass is dead
EXTREME = 9.2  # log-scales beyond it, four powers of ten, are out of all proportion to standardised data


class Bank(nn.Module, ABC):
    """Kernels for the points u (N, d), perhaps given a standardised condition or classes."""

    @abstractmethod
    def log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        """Give the log-density in nats at u (N, d): (N,)."""

    @abstractmethod
    def sample(self, n: int, given: Tensor | None, generator: torch.Generator) -> Tensor:
        """Draw (n, d)."""

    @abstractmethod
    def start(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        """Start from data."""

    @abstractmethod
    def start_paper(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        """Start as the paper does."""

    def revive(self, u: Tensor, given: Tensor | None) -> Revived:
        """Put kernels without mass where the rows u (N, d) are badly explained; those of a network follow it."""
        return Revived()


class SharedKernels(Bank):
    """M kernels for all points: the marginal density."""

    mass: Tensor

    def __init__(self, components: int, covariance: Covariance) -> None:
        super().__init__()
        d = covariance.dim
        self.covariance = covariance
        self.units = _units(d)
        self.logits = nn.Parameter(torch.zeros(components))
        self.means = nn.Parameter(torch.randn(components, d) * (SPREAD / self.units.mean))
        self.names = tuple(covariance.sizes(components))
        for name, size in covariance.sizes(components).items():
            self.register_parameter(name, nn.Parameter(torch.zeros(size)))
        self.register_buffer("mass", torch.full((components,), 1 / components))  # running, where it is looked after

    @property
    def shape(self) -> Shape:
        """The parameters of the covariance, as they are stored."""
        return {name: self._parameters[name] for name in self.names}  # type: ignore[misc]

    def log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        """Give the log-density at u (N, d)."""
        shape = {name: value.to(u.dtype) for name, value in self.shape.items()}
        log_weights, means = torch.log_softmax(self.logits.to(u.dtype), -1), self.means.to(u.dtype)
        return self.covariance.stored_log_density(u, log_weights, means, shape, self.units)

    def sample(self, n: int, given: Tensor | None, generator: torch.Generator) -> Tensor:
        """Choose a kernel for each sample, then draw from it."""
        weights, shape = torch.softmax(self.logits, -1), in_plain_units(self.shape, self.units)
        kernel = torch.multinomial(weights.cpu(), n, replacement=True, generator=generator).to(weights.device)
        means = self.means[kernel] * self.units.mean
        chosen = {name: self.covariance.select(value, kernel) for name, value in shape.items()}
        return means + self.covariance.unproject(self.covariance.noise(chosen, means, generator), chosen)

    def start(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        """Start from a mixture fitted to u."""
        self.take(start(u, len(self.logits), generator))

    def take(self, mixture: Mixture) -> None:
        """Take the weights and means of a mixture of as many kernels, and the shapes that come closest to its own."""
        self.units = _units(self.covariance.dim)
        self.logits.copy_(mixture.weights.log())
        self.means.copy_(mixture.means / self.units.mean)
        inverse = Units(*(1 / unit for unit in self.units))
        for name, value in in_plain_units(self.covariance.of_mixture(mixture), inverse).items():
            self.shape[name].copy_(value)

    def start_paper(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        """Means at samples, equal weights, everything else 0.01 times standard noise, in plain units."""
        self.units = Units()
        self.logits.zero_()
        self.means.copy_(u[some_rows(len(u), len(self.logits), generator).to(u.device)])
        for value in self.shape.values():
            value.copy_(0.01 * torch.randn(value.shape, generator=generator))

    def revive(self, u: Tensor, given: Tensor | None) -> Revived:
        """Follow the kernels' mass, and put those that have none at the rows u (N, d) that are least likely."""
        with torch.enable_grad():
            log_prob = self.log_prob(u.detach(), None)
            (surplus,) = torch.autograd.grad(log_prob.mean(), self.logits)  # mass minus weight
        self.mass = torch.lerp(self.mass, surplus + torch.softmax(self.logits.detach(), -1), MASS_MOMENTUM)
        M = len(self.logits)
        dead = (self.mass < DEAD / M).nonzero().flatten()[: len(u) // 2]
        scales = self.shape["log_diagonal"].detach() * self.units.diagonal
        extreme = (scales.abs() > EXTREME).double().mean().item()
        moved = self._put(dead, u[log_prob.detach().argsort()[: len(dead)]]) if len(dead) else ()
        return Revived(M, len(dead), extreme, moved)

    @torch.no_grad()
    def _put(self, kernels: Tensor, places: Tensor) -> tuple[tuple[Tensor, Tensor], ...]:
        """Put kernels at places (K, d), with half a fair share of weight and the shape of the heaviest one."""
        heaviest = self.mass.argmax()
        self.logits[kernels] = torch.logsumexp(self.logits, -1) - math.log(2 * len(self.logits))
        self.means[kernels] = (places / self.units.mean).to(self.means.dtype)
        own = [value for value in self.shape.values() if len(value) == len(self.logits) or len(self.logits) == 1]
        for value in own:
            value[kernels] = value[heaviest].clone()
        self.mass = self.mass.index_fill(0, kernels, 1 / len(self.logits))
        return tuple((parameter, kernels) for parameter in (self.logits, self.means, *own))

    def get_extra_state(self) -> Tensor:
        """Give the units, which the parameters mean nothing without."""
        return torch.tensor(self.units, dtype=torch.double)

    def set_extra_state(self, state: Tensor) -> None:
        """Take the units of a state dictionary."""
        self.units = Units(*state.tolist())


class ClassKernels(Bank):
    """One set of M kernels for each class, `eq:hat_h_xgivy` with a discrete condition."""

    def __init__(self, classes: int, components: int, covariance: Covariance) -> None:
        super().__init__()
        self.banks = nn.ModuleList(SharedKernels(components, covariance) for _ in range(classes))

    def log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        """Give the log-density at u (N, d): every class sees its own rows only."""
        assert given is not None
        if is_transformed():
            every = torch.stack([bank.log_prob(u, None) for bank in self._banks()], -1)  # N C
            return every.gather(-1, given.unsqueeze(-1)).squeeze(-1)
        order, parts = self._parts(given)
        pieces = [self._banks()[label].log_prob(u[rows], None) for label, rows in parts]
        return torch.cat(pieces)[torch.argsort(order)]

    def sample(self, n: int, given: Tensor | None, generator: torch.Generator) -> Tensor:
        """Draw each row from the kernels of its class."""
        assert given is not None
        order, parts = self._parts(given)
        pieces = [self._banks()[label].sample(len(rows), None, generator) for label, rows in parts]
        return torch.cat(pieces)[torch.argsort(order)]

    def start(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        """Start every class from its rows; a class with fewer than two starts from all rows."""
        self._each(u, given, generator, "start")

    def start_paper(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        """Start every class as the paper does."""
        self._each(u, given, generator, "start_paper")

    def revive(self, u: Tensor, given: Tensor | None) -> Revived:
        """Look after every class that has at least two rows."""
        assert given is not None
        found, (_, parts) = Revived(), self._parts(given)
        for label, rows in parts:
            found = found.beside(self._banks()[label].revive(u[rows], None)) if len(rows) > 1 else found
        return found

    def _banks(self) -> list[SharedKernels]:
        return [bank for bank in self.banks if isinstance(bank, SharedKernels)]

    def _parts(self, given: Tensor) -> tuple[Tensor, list[tuple[int, Tensor]]]:
        """Rows sorted by class, and for each class that is there its number and rows."""
        order = torch.argsort(given, stable=True)
        labels, counts = torch.unique_consecutive(given[order], return_counts=True)
        return order, list(zip(labels.tolist(), order.split(counts.tolist()), strict=True))

    def _each(self, u: Tensor, given: Tensor | None, generator: torch.Generator, how: str) -> None:
        assert given is not None
        for label, bank in enumerate(self._banks()):
            rows = u[given == label]
            getattr(bank, how)(rows if len(rows) > 1 else u, None, generator)


def _units(d: int) -> Units:
    return Units(d**-0.5, d**-0.5, 2**0.5 / d)


def some_rows(rows: int, count: int, generator: torch.Generator) -> Tensor:
    """So many row numbers, all different where there are enough rows."""
    return torch.cat([torch.randperm(rows, generator=generator) for _ in range(-(-count // rows))])[:count]
