r"""Kernels computed from a continuous condition: $\theta = \Theta(y)$ in `eq:hat_h_xgivy`."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from infoknife import pointwise
from infoknife.densities.banks import Bank
from infoknife.densities.covariance import Covariance, Full, Shape
from infoknife.densities.start import SPREAD, Mixture, redraw, regression, start
from infoknife.nn import MLP, Activation, Linear, Transposed, capped, hidden_layers

__all__ = ["PaperFullKernels", "PaperKernels", "PaperShapedKernels", "TrunkKernels", "paper_kernels"]

NARROWEST = 5.0  # how much the trunk may add to the log of a precision's factor: a row that it never saw stays possible
ROWS = 512  # points whose full kernels are computed at a time: planes that fit the cache, and less memory


class TrunkKernels(Bank):
    r"""Kernels whose weights, means and scales move with the condition; one shared trunk computes them.

    With the factor $F_m$ of kernel m, shared by all points, and a linear part $B$,
    $y_m = e^{s_m(v)} \odot \bigl(F_m (u - B v) - c_m - o_m(v)\bigr)$ is standard normal in kernel m. $F_m$ and $c_m$
    start from a mixture fitted to the residuals of the regression $B$; the trunk's outputs $(s, o)$ and the change of
    the weights start at zero. So the start is a fitted linear-Gaussian model, refined where the residuals have
    structure, and a step costs N M d numbers of network output, not N M d d.

    Args:
        given_dim: Dimension of the condition.
        components: Number of kernels.
        covariance: Shape of the kernels.
        hidden: Width of the trunk's two hidden layers.
        activation: The activation module's class.
        layer_norm: Whether the trunk has LayerNorms, as ``MLP`` takes it.
    """

    def __init__(
        self,
        given_dim: int,
        components: int,
        covariance: Covariance,
        hidden: int = 128,
        *,
        activation: Activation = nn.SiLU,
        layer_norm: bool = False,
    ) -> None:
        super().__init__()
        d = covariance.dim
        self.covariance, self.components = covariance, components
        self.skip = Linear(given_dim, d, bias=False)
        self.offset = nn.Parameter(torch.randn(components, d) * SPREAD)
        sizes = covariance.sizes(components)
        self.shape = nn.ParameterDict({name: nn.Parameter(torch.zeros(size)) for name, size in sizes.items()})
        outputs = components * (2 * d + 1)
        self.trunk = MLP(given_dim, outputs, (hidden, hidden), activation, layer_norm=layer_norm)
        for parameter in (*self.trunk[-1].parameters(), *self.skip.parameters()):
            nn.init.zeros_(parameter)

    def log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        """Give the log-density at u (N, d) given v (N, given_dim)."""
        shape = {name: value.to(u.dtype) for name, value in self.shape.items()}
        log_weights, offset, log_scale = self._moves(given)
        z = self.covariance.project(u - self.skip(given), shape)
        return self.covariance.mix(z, log_weights, offset, log_scale, shape)

    def sample(self, n: int, given: Tensor | None, generator: torch.Generator) -> Tensor:
        """Choose a kernel for each row, then draw from it."""
        log_weights, offset, log_scale = self._moves(given)
        kernel = torch.multinomial(log_weights.exp().cpu(), 1, generator=generator).squeeze(-1).to(offset.device)
        rows = torch.arange(n, device=offset.device)
        chosen = {name: self.covariance.select(value, kernel) for name, value in self.shape.items()}
        noise = self.covariance.noise(chosen, offset[rows, kernel], generator)
        z = offset[rows, kernel] + noise * (-log_scale[rows, kernel]).exp()
        return self.covariance.unproject(z, chosen) + self.skip(given)

    def start(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        """Start from a linear regression and a mixture of its residuals."""
        assert given is not None
        slope = regression(given, u)
        residual = u - given @ slope
        mean, chol = residual.mean(0), _spread(residual)
        white = torch.linalg.solve_triangular(chol, (residual - mean).T, upper=False).T
        mixture = _moved(start(white, self.components, generator), chol, mean)
        shape = self.covariance.of_mixture(mixture)
        self.skip.weight.copy_(slope.T)
        for name, value in shape.items():
            self.shape[name].copy_(value)
        centres = self.covariance.project(mixture.means, shape).expand(self.components, self.components, -1)
        self.offset.copy_(centres.diagonal(0, 0, 1).T)
        for parameter in self.trunk[-1].parameters():
            parameter.zero_()
        self.trunk[-1].bias[: self.components].copy_(mixture.weights.log())  # type: ignore[index]

    def start_paper(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        """Start from data: the paper has no trunk."""
        self.start(u, given, generator)

    def _moves(self, given: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Log-weights (N, M), means (N, M, d) after the factor, and log-scales (N, M, d)."""
        assert given is not None
        M, d = self.offset.shape
        logits, offset, log_scale = self.trunk(given).split([M, M * d, M * d], -1)
        offset = offset.view(-1, M, d) + self.offset.to(offset.dtype)
        return torch.log_softmax(logits, -1), offset, capped(log_scale, NARROWEST).view(-1, M, d)


class PaperKernels(Bank):
    """The paper's form: three networks with one tanh layer give all of (A, b, u) for every point (section A.3).

    A subclass names the class of their last layers, ``last``, and has the network of the shape.

    Args:
        given_dim: Dimension of the condition.
        components: Number of kernels.
        covariance: Shape of the kernels.
        hidden: Width of the networks' hidden layer.
        network: ``activation`` and ``layer_norm`` of the networks, as ``MLP`` takes them.
    """

    last: type[Linear]

    def __init__(
        self, given_dim: int, components: int, covariance: Covariance, hidden: int = 64, **network: Any
    ) -> None:
        super().__init__()
        self.covariance, self.components = covariance, components
        self.means = MLP(given_dim, components * covariance.dim, (hidden,), last=self.last, **network)
        self.logits = MLP(given_dim, components, (hidden,), last=self.last, **network)

    def sample(self, n: int, given: Tensor | None, generator: torch.Generator) -> Tensor:
        """Choose a kernel for each row, then draw from it."""
        assert given is not None
        weights = self._log_weights(given).exp()
        kernel = torch.multinomial(weights.cpu(), 1, generator=generator).squeeze(-1).to(weights.device)
        means, shape = self._chosen(given, kernel)
        return means + self.covariance.unproject(self.covariance.noise(shape, means, generator), shape)

    def start(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        """Let every kernel start, whatever the condition, from a mixture fitted to u."""
        mixture = start(u, self.components, generator)
        for layer, value in ((self.logits.last, mixture.weights.log()), *self._outputs(mixture)):
            layer.weight.zero_()
            layer.bias.copy_(value.flatten())

    def start_paper(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        """Draw the networks at random (section A.3)."""
        redraw(self, generator)

    @abstractmethod
    def _log_weights(self, given: Tensor) -> Tensor:
        """The log-weights (N, M)."""

    @abstractmethod
    def _outputs(self, mixture: Mixture) -> Iterator[tuple[Linear, Tensor]]:
        """The last layers of means and shape, with what they have to put out for the kernels of a mixture."""

    @abstractmethod
    def _chosen(self, given: Tensor, kernel: Tensor) -> tuple[Tensor, Shape]:
        """Means (N, d) and shape (N, ...) of the one kernel that each row has chosen."""


class PaperFullKernels(PaperKernels):
    """The paper's form with full covariances, evaluated by ``pointwise.full``.

    One layer for each column of the factor: an optimiser is quicker with arrays that fit the cache.
    """

    last = Transposed

    def __init__(
        self, given_dim: int, components: int, covariance: Covariance, hidden: int = 64, **network: Any
    ) -> None:
        super().__init__(given_dim, components, covariance, hidden, **network)
        d = covariance.dim
        self.shape = nn.Sequential(*hidden_layers(given_dim, (hidden,), **network))
        self.columns = nn.ModuleList(Transposed(hidden, (d - j) * components) for j in range(d))

    def log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        """Give the log-density at u (N, d) given v (N, given_dim)."""
        assert given is not None
        return torch.cat([self._block(*rows) for rows in zip(u.split(ROWS), given.split(ROWS), strict=True)])

    def _outputs(self, mixture: Mixture) -> Iterator[tuple[Linear, Tensor]]:
        yield self.means.last, mixture.means.T
        layers = (layer for layer in self.columns if isinstance(layer, Transposed))
        yield from zip(layers, pointwise.packed(**self.covariance.of_mixture(mixture)), strict=True)

    def _chosen(self, given: Tensor, kernel: Tensor) -> tuple[Tensor, Shape]:
        rows, (means, columns) = torch.arange(len(kernel), device=kernel.device), self._planes(given)
        log_diagonal, lower = pointwise.unpacked([column[:, kernel, rows] for column in columns])
        return means[:, kernel, rows].T, {"log_diagonal": log_diagonal, "lower": lower}

    def _block(self, u: Tensor, given: Tensor) -> Tensor:
        return pointwise.full(u, self._log_weights(given).T, *self._planes(given))

    def _log_weights(self, given: Tensor) -> Tensor:
        return torch.log_softmax(self.logits(given), 0).T

    def _planes(self, given: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Means (d, M, N) and the columns of the factor, (d - j, M, N)."""
        hidden, size = self.shape(given), (-1, self.components, len(given))
        return self.means(given).view(size), [layer(hidden).view(size) for layer in self.columns]


class PaperShapedKernels(PaperKernels):
    """The paper's form with covariances of any shape."""

    last = Linear

    def __init__(
        self, given_dim: int, components: int, covariance: Covariance, hidden: int = 64, **network: Any
    ) -> None:
        super().__init__(given_dim, components, covariance, hidden, **network)
        self.sizes = covariance.sizes(components)
        self.shape = MLP(given_dim, sum(map(_numel, self.sizes.values())), (hidden,), **network)

    def log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        """Give the log-density at u (N, d) given v (N, given_dim)."""
        assert given is not None
        return self.covariance.log_density(u, self._log_weights(given), *self._values(given))

    def _log_weights(self, given: Tensor) -> Tensor:
        return torch.log_softmax(self.logits(given), -1)

    def _outputs(self, mixture: Mixture) -> Iterator[tuple[Linear, Tensor]]:
        shape = self.covariance.of_mixture(mixture)
        yield self.means.last, mixture.means
        yield self.shape.last, torch.cat([shape[name].flatten() for name in self.sizes])

    def _chosen(self, given: Tensor, kernel: Tensor) -> tuple[Tensor, Shape]:
        rows, (means, shape) = torch.arange(len(kernel), device=kernel.device), self._values(given)
        every = {name: value.expand(*means.shape[:2], *value.shape[2:]) for name, value in shape.items()}
        return means[rows, kernel], {name: value[rows, kernel] for name, value in every.items()}

    def _values(self, given: Tensor) -> tuple[Tensor, Shape]:
        """Means (N, M, d) and shape (N, M, ...)."""
        N = len(given)
        parts = self.shape(given).split([_numel(size) for size in self.sizes.values()], -1)
        shape = {name: part.view(N, *size) for (name, size), part in zip(self.sizes.items(), parts, strict=True)}
        return self.means(given).view(N, self.components, self.covariance.dim), shape


def paper_kernels(
    given_dim: int, components: int, covariance: Covariance, hidden: int = 64, **network: Any
) -> PaperKernels:
    """Make the paper's form for a covariance; the full one, which the paper has, is evaluated quicker."""
    make = PaperFullKernels if type(covariance) is Full else PaperShapedKernels
    return make(given_dim, components, covariance, hidden, **network)


def _numel(size: tuple[int, ...]) -> int:
    return torch.Size(size).numel()


def _spread(residual: Tensor) -> Tensor:
    """Cholesky factor of the residuals' covariance, kept regular."""
    d = residual.shape[1]
    covariance = residual.T.cov(correction=0).view(d, d)
    return torch.linalg.cholesky(covariance + 1e-6 * torch.eye(d).to(covariance))


def _moved(mixture: Mixture, chol: Tensor, mean: Tensor) -> Mixture:
    """The mixture of chol z + mean where z has the given one."""
    chol, mean = chol.to(mixture.means), mean.to(mixture.means)
    return Mixture(mixture.weights, mixture.means @ chol.T + mean, chol @ mixture.covariances @ chol.T)
