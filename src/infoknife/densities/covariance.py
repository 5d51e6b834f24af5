r"""The shapes that a kernel's covariance can take: full, diagonal, tied (one for all kernels), low-rank plus diagonal.

A covariance says which tensors describe the shape of M kernels, gives their log-density and maps noise to samples.
The tensors are shared by all points, (M, ...), or differ from point to point, (N, M, ...). All of them zero describe
unit kernels. Every shape is a factor F, whose output has identity covariance or, for low rank, $I + W W^\top$.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from infoknife import kernels
from infoknife.densities.start import Mixture, precision_factor
from infoknife.inputs import check_whole

__all__ = ["COVARIANCES", "Covariance", "Diagonal", "Full", "LowRank", "Shape", "Tied", "in_plain_units"]

Shape = dict[str, Tensor]


class Covariance(ABC):
    """How kernels in ``dim`` dimensions are shaped."""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    @abstractmethod
    def sizes(self, components: int) -> dict[str, tuple[int, ...]]:
        """Name the tensors that describe so many kernels, with their sizes."""

    @abstractmethod
    def log_density(self, x: Tensor, log_weights: Tensor, means: Tensor, shape: Shape) -> Tensor:
        """Give the log-density in nats at x (N, d) of kernels that are shared or differ from point to point: (N,)."""

    def stored_log_density(
        self, x: Tensor, log_weights: Tensor, means: Tensor, shape: Shape, units: kernels.Units
    ) -> Tensor:
        """Give ``log_density`` of shared kernels whose means and shape are stored in units."""
        return self.log_density(x, log_weights, means * units.mean, in_plain_units(shape, units))

    @abstractmethod
    def project(self, x: Tensor, shape: Shape) -> Tensor:
        """Map x (N, d) by the factor of every shared kernel: (N, M, d), or (N, 1, d) if it is the same for all."""

    @abstractmethod
    def unproject(self, z: Tensor, shape: Shape) -> Tensor:
        """Undo the factor of each row's own kernel, whose tensors are (N, ...): z (N, d) to x (N, d)."""

    @abstractmethod
    def of_mixture(self, mixture: Mixture) -> Shape:
        """Give the tensors whose kernels come closest to those of a full mixture."""

    def mix(self, z: Tensor, log_weights: Tensor, offset: Tensor, log_scale: Tensor, shape: Shape) -> Tensor:
        """Give the log-density (N,) of projected points z (N, M, d) with means and log-scales (N, M, d)."""
        return kernels.diagonal(z, log_weights + shape["log_diagonal"].sum(-1), offset, log_scale)

    def select(self, value: Tensor, kernel: Tensor) -> Tensor:
        """Give each row the tensor of its kernel: from shared (M, ...) and the kernels' numbers (N,) to (N, ...)."""
        return value[kernel]

    def noise(self, shape: Shape, like: Tensor, generator: torch.Generator) -> Tensor:
        """Draw what leaves the factor of each row's own kernel, in the size of ``like`` (N, d)."""
        return _normal(like.shape, like, generator)


class Full(Covariance):
    """A covariance of its own for every kernel: the paper's choice, `eq:knife`."""

    def sizes(self, components: int) -> dict[str, tuple[int, ...]]:
        """Log-diagonal (M, d) and strictly lower part (M, d, d) of the precision's factor."""
        return {"log_diagonal": (components, self.dim), "lower": (components, self.dim, self.dim)}

    def log_density(self, x: Tensor, log_weights: Tensor, means: Tensor, shape: Shape) -> Tensor:
        """Evaluate ``kernels.full``."""
        return kernels.full(x, log_weights, means, shape["log_diagonal"], shape["lower"])

    def stored_log_density(
        self, x: Tensor, log_weights: Tensor, means: Tensor, shape: Shape, units: kernels.Units
    ) -> Tensor:
        """Evaluate ``kernels.full``, which multiplies by the units in passing."""
        return kernels.full(x, log_weights, means, shape["log_diagonal"], shape["lower"], units)

    def project(self, x: Tensor, shape: Shape) -> Tensor:
        """Multiply x by every kernel's factor."""
        M, d = shape["log_diagonal"].shape
        return (x @ _factor(shape).reshape(M * d, d).T).view(-1, M, d)

    def unproject(self, z: Tensor, shape: Shape) -> Tensor:
        """Solve with each row's factor."""
        return torch.linalg.solve_triangular(_factor(shape), z.unsqueeze(-1), upper=False).squeeze(-1)

    def of_mixture(self, mixture: Mixture) -> Shape:
        """Factor every covariance."""
        factor = precision_factor(mixture.covariances)
        return {"log_diagonal": factor.diagonal(0, 1, 2).log(), "lower": factor.tril(-1)}


class Tied(Full):
    """One full covariance for all kernels."""

    def sizes(self, components: int) -> dict[str, tuple[int, ...]]:
        """The tensors of one full kernel."""
        return super().sizes(1)

    def log_density(self, x: Tensor, log_weights: Tensor, means: Tensor, shape: Shape) -> Tensor:
        """Map points and means by the one factor, then use unit kernels."""
        if means.dim() == 3:
            return super().log_density(x, log_weights, means, shape)
        factor = _factor(shape)[0]
        centres = means @ factor.T
        log_weights = log_weights + shape["log_diagonal"].sum()
        return kernels.diagonal(x @ factor.T, log_weights, centres, torch.zeros_like(centres))

    def stored_log_density(
        self, x: Tensor, log_weights: Tensor, means: Tensor, shape: Shape, units: kernels.Units
    ) -> Tensor:
        """Give ``log_density`` after multiplying by the units."""
        return self.log_density(x, log_weights, means * units.mean, in_plain_units(shape, units))

    def select(self, value: Tensor, kernel: Tensor) -> Tensor:
        """Give every row the one tensor that there is."""
        return super().select(value, torch.zeros_like(kernel))

    def of_mixture(self, mixture: Mixture) -> Shape:
        """Factor the mean covariance."""
        pooled = torch.einsum("m,mij->ij", mixture.weights, mixture.covariances)
        return super().of_mixture(mixture._replace(covariances=pooled[None]))


class Diagonal(Covariance):
    """Axis-aligned kernels."""

    def sizes(self, components: int) -> dict[str, tuple[int, ...]]:
        """Minus the log-standard deviations (M, d)."""
        return {"log_diagonal": (components, self.dim)}

    def log_density(self, x: Tensor, log_weights: Tensor, means: Tensor, shape: Shape) -> Tensor:
        """Evaluate ``kernels.diagonal``."""
        return kernels.diagonal(x, log_weights, means, shape["log_diagonal"])

    def project(self, x: Tensor, shape: Shape) -> Tensor:
        """Scale x for every kernel."""
        return x.unsqueeze(-2) * shape["log_diagonal"].exp()

    def unproject(self, z: Tensor, shape: Shape) -> Tensor:
        """Divide by each row's scales."""
        return z * (-shape["log_diagonal"]).exp()

    def of_mixture(self, mixture: Mixture) -> Shape:
        """Take the variances."""
        return {"log_diagonal": -0.5 * mixture.covariances.diagonal(0, 1, 2).log()}


class LowRank(Diagonal):
    """Diagonal plus a part of rank ``rank``: d (r + 1) numbers a kernel instead of d (d + 1) / 2."""

    def __init__(self, dim: int, rank: int | None = None) -> None:
        super().__init__(dim)
        rank = max(1, math.isqrt(dim)) if rank is None else check_whole("rank", rank)
        if not 1 <= rank <= dim:
            raise ValueError(f"rank is {rank}; expected 1 to dim={dim}")
        self.rank = rank

    def sizes(self, components: int) -> dict[str, tuple[int, ...]]:
        """Log-diagonal (M, d) and W (M, d, r)."""
        return super().sizes(components) | {"factor": (components, self.dim, self.rank)}

    def log_density(self, x: Tensor, log_weights: Tensor, means: Tensor, shape: Shape) -> Tensor:
        """Evaluate ``kernels.low_rank``."""
        return kernels.low_rank(x, log_weights, means, shape["log_diagonal"], shape["factor"])

    def mix(self, z: Tensor, log_weights: Tensor, offset: Tensor, log_scale: Tensor, shape: Shape) -> Tensor:
        """Give the log-density of scaled points, which keep the low-rank part."""
        log_weights = log_weights + shape["log_diagonal"].sum(-1)
        return kernels.low_rank(z, log_weights, offset, log_scale, shape["factor"])

    def noise(self, shape: Shape, like: Tensor, generator: torch.Generator) -> Tensor:
        """Draw from N(0, I + W W')."""
        latent = _normal((*like.shape[:-1], self.rank, 1), like, generator)
        return super().noise(shape, like, generator) + (shape["factor"] @ latent).squeeze(-1)

    def of_mixture(self, mixture: Mixture) -> Shape:
        """Keep the largest principal directions, and on the diagonal what is left of the variances."""
        values, vectors = torch.linalg.eigh(mixture.covariances)
        rest = values[..., : self.dim - self.rank].mean(-1) if self.rank < self.dim else values[..., 0] / 2  # M
        top = (
            vectors[..., -self.rank :] * (values[..., None, -self.rank :] - rest[:, None, None]).clamp_min(1e-6).sqrt()
        )
        variances = mixture.covariances.diagonal(0, 1, 2) - top.square().sum(-1)
        log_diagonal = -0.5 * variances.clamp_min(1e-6).log()
        return {"log_diagonal": log_diagonal, "factor": top * log_diagonal.exp()[..., None]}


def in_plain_units(shape: Shape, units: kernels.Units) -> Shape:
    """Multiply the stored tensors of a shape, vectors a kernel and matrices a kernel, by their units."""
    return {name: value * (units.diagonal if value.dim() == 2 else units.lower) for name, value in shape.items()}


COVARIANCES: dict[str, Callable[[int], Covariance]] = {
    "full": Full,
    "diagonal": Diagonal,
    "tied": Tied,
    "low-rank": LowRank,
}


def _factor(shape: Shape) -> Tensor:
    return shape["lower"].tril(-1) + torch.diag_embed(shape["log_diagonal"].exp())


def _normal(size: tuple[int, ...], like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(size, generator=generator, dtype=like.dtype).to(like.device)
