r"""Kernels computed from a continuous condition: $\theta = \Theta(y)$ in `eq:hat_h_xgivy`."""

import math

import torch
from torch import Tensor, nn

from infoknife.densities.banks import Bank
from infoknife.densities.covariance import Covariance, Shape
from infoknife.densities.start import SPREAD, Mixture, redraw, regression, start
from infoknife.nn import MLP, Linear

__all__ = ["PaperKernels", "TrunkKernels"]

NARROWEST = 5.0  # how much the trunk may add to the log of a precision's factor: a row that it never saw stays possible


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
    """

    def __init__(self, given_dim: int, components: int, covariance: Covariance, hidden: int = 128) -> None:
        super().__init__()
        d = covariance.dim
        self.covariance, self.components = covariance, components
        self.skip = Linear(given_dim, d, bias=False)
        self.offset = nn.Parameter(torch.randn(components, d) * SPREAD)
        sizes = covariance.sizes(components)
        self.shape = nn.ParameterDict({name: nn.Parameter(torch.zeros(size)) for name, size in sizes.items()})
        self.trunk = MLP(given_dim, components * (2 * d + 1), (hidden, hidden), nn.SiLU)
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
        return torch.log_softmax(logits, -1), offset, _limited(log_scale).view(-1, M, d)


class PaperKernels(Bank):
    """The paper's form: three networks with one tanh layer give all of (A, b, u) for every point (section A.3)."""

    def __init__(self, given_dim: int, components: int, covariance: Covariance, hidden: int = 64) -> None:
        super().__init__()
        self.covariance, self.components = covariance, components
        self.sizes = covariance.sizes(components)
        self.shape = MLP(given_dim, sum(map(_numel, self.sizes.values())), (hidden,))
        self.means = MLP(given_dim, components * covariance.dim, (hidden,))
        self.logits = MLP(given_dim, components, (hidden,))

    def log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        """Give the log-density at u (N, d) given v (N, given_dim)."""
        return self.covariance.log_density(u, *self._values(given))

    def sample(self, n: int, given: Tensor | None, generator: torch.Generator) -> Tensor:
        """Choose a kernel for each row, then draw from it."""
        log_weights, means, shape = self._values(given)
        kernel = torch.multinomial(log_weights.exp().cpu(), 1, generator=generator).squeeze(-1).to(means.device)
        rows = torch.arange(n, device=means.device)
        chosen = {
            name: value.expand(n, means.shape[1], *value.shape[2:])[rows, kernel] for name, value in shape.items()
        }
        noise = self.covariance.noise(chosen, means[rows, kernel], generator)
        return means[rows, kernel] + self.covariance.unproject(noise, chosen)

    def start(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        """Let every kernel start, whatever the condition, from a mixture fitted to u."""
        mixture = start(u, self.components, generator)
        shape = self.covariance.of_mixture(mixture)
        for network, value in (
            (self.shape, torch.cat([shape[name].flatten() for name in self.sizes])),
            (self.means, mixture.means.flatten()),
            (self.logits, mixture.weights.log()),
        ):
            network[-1].weight.zero_()  # type: ignore[operator]
            network[-1].bias.copy_(value)  # type: ignore[operator]

    def start_paper(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        """Draw the networks at random (section A.3)."""
        redraw(self, generator)

    def _values(self, given: Tensor | None) -> tuple[Tensor, Tensor, Shape]:
        assert given is not None
        N = len(given)
        parts = self.shape(given).split([_numel(size) for size in self.sizes.values()], -1)
        shape = {name: part.view(N, *size) for (name, size), part in zip(self.sizes.items(), parts, strict=True)}
        means = self.means(given).view(N, self.components, self.covariance.dim)
        return torch.log_softmax(self.logits(given), -1), means, shape


def _limited(log_scale: Tensor) -> Tensor:
    """Zero at zero, slope about one below, and softly bounded above."""
    return math.log1p(math.exp(NARROWEST)) - nn.functional.softplus(NARROWEST - log_scale)


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
