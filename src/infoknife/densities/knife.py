r"""KNIFE: a fully learnable Gaussian-kernel density (Pichler et al., ICML 2022).

A ``Covariance`` is the shape of a kernel: it names the tensors that describe it, and knows their log-density. A
``Bank`` holds the parameters $\theta = (A, b, u)$ of `eq:knife`: one set, one for each class, or a network that gives
them for a condition. ``KNIFE`` puts both behind the coordinates of a ``Density``.
"""
# ruff: noqa: D102  # what methods of shapes and banks do is said in their base classes

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor, nn

from infoknife import kernels
from infoknife.coordinates import Features, Identity, Regression
from infoknife.densities.base import Density
from infoknife.inputs import check_count, check_whole, is_transformed, one_of
from infoknife.kernels import PLAIN, Units
from infoknife.mixtures import SPREAD, Mixture, fit_mixture, some_rows
from infoknife.nn import MLP, Activation, Transposed, hidden_layers, redraw

Shape = dict[str, Tensor]
Init = Literal["data", "paper", "zero"]

NARROWEST = 5.0  # how much the trunk may add to the log of a precision's factor: a row that it never saw stays possible
NOISE = 0.01  # deviation of what the paper's code draws at random
ROWS = 512  # points whose kernels the paper's networks compute at a time: planes that fit the cache, and less memory


# shapes


class Covariance(ABC):
    """How kernels in ``dim`` dimensions are shaped.

    The tensors that describe a shape are shared by all points, (M, ...); zeros describe unit kernels. Every shape is a
    factor F, whose output has identity covariance or, for low rank, $I + W W^\\top$.
    """

    name: ClassVar[str]

    def __init__(self, dim: int) -> None:
        self.dim = dim

    @abstractmethod
    def sizes(self, components: int) -> dict[str, tuple[int, ...]]:
        """The tensors that describe so many kernels, by name, with their sizes."""

    @abstractmethod
    def log_density(self, x: Tensor, log_weights: Tensor, means: Tensor, shape: Shape, units: Units = PLAIN) -> Tensor:
        """Log-density in nats (N,) at x (N, d) of kernels whose means (M, d) and shape are stored in units."""

    @abstractmethod
    def project(self, x: Tensor, shape: Shape) -> Tensor:
        """Map x (N, d) by the factor of every kernel: (N, M, d), or (N, 1, d) if it is the same for all."""

    @abstractmethod
    def unproject(self, z: Tensor, shape: Shape) -> Tensor:
        """Undo the factor of each row's own kernel, whose tensors are (N, ...): z (N, d) to x (N, d)."""

    @abstractmethod
    def of_mixture(self, mixture: Mixture) -> Shape:
        """The tensors whose kernels come closest to those of a mixture with full covariances."""

    def mix(self, z: Tensor, log_weights: Tensor, offset: Tensor, log_scale: Tensor, shape: Shape) -> Tensor:
        """Log-density (N,) of projected points z (N, M, d) with means and log-scales (N, M, d)."""
        return kernels.diagonal(z, log_weights + shape["log_diagonal"].sum(-1), offset, log_scale)

    def select(self, shape: Shape, kernel: Tensor) -> Shape:
        """Each row's own kernel: from tensors (M, ...) and the kernels' numbers (N,) to tensors (N, ...)."""
        return {name: value[kernel] for name, value in shape.items()}

    def noise(self, shape: Shape, like: Tensor, generator: torch.Generator) -> Tensor:
        """Draw what leaves the factor of each row's own kernel, in the size of ``like`` (N, d)."""
        return _normal(like.shape, like, generator)


class Full(Covariance):
    """A covariance of its own for every kernel: the paper's choice, `eq:knife`."""

    name = "full"

    def sizes(self, components: int) -> dict[str, tuple[int, ...]]:
        """Log-diagonal (M, d) and strictly lower part (M, d, d) of the precision's factor."""
        return {"log_diagonal": (components, self.dim), "lower": (components, self.dim, self.dim)}

    def log_density(self, x: Tensor, log_weights: Tensor, means: Tensor, shape: Shape, units: Units = PLAIN) -> Tensor:
        """Evaluate ``kernels.full``, which multiplies by the units in passing."""
        return kernels.full(x, log_weights, means, shape["log_diagonal"], shape["lower"], units)

    def project(self, x: Tensor, shape: Shape) -> Tensor:
        M, d = shape["log_diagonal"].shape
        return (x @ _factor(shape).reshape(M * d, d).T).view(-1, M, d)

    def unproject(self, z: Tensor, shape: Shape) -> Tensor:
        return torch.linalg.solve_triangular(_factor(shape), z.unsqueeze(-1), upper=False).squeeze(-1)

    def of_mixture(self, mixture: Mixture) -> Shape:
        return {"log_diagonal": mixture.factors.diagonal(0, 1, 2).log(), "lower": mixture.factors.tril(-1)}


class Tied(Full):
    """One full covariance for all kernels."""

    name = "tied"

    def sizes(self, components: int) -> dict[str, tuple[int, ...]]:
        return super().sizes(1)

    def log_density(self, x: Tensor, log_weights: Tensor, means: Tensor, shape: Shape, units: Units = PLAIN) -> Tensor:
        """Map points and means by the one factor, then use unit kernels."""
        shape = _scaled(shape, units)
        factor = _factor(shape)[0]
        centres = (means * units.mean) @ factor.T
        log_weights = log_weights + shape["log_diagonal"].sum()
        return kernels.diagonal(x @ factor.T, log_weights, centres, torch.zeros_like(centres))

    def select(self, shape: Shape, kernel: Tensor) -> Shape:
        return super().select(shape, torch.zeros_like(kernel))

    def of_mixture(self, mixture: Mixture) -> Shape:
        pooled = torch.einsum("m,mij->ij", mixture.weights, mixture.covariances)
        return super().of_mixture(Mixture.from_covariances(mixture.weights, mixture.means, pooled[None]))


class Diagonal(Covariance):
    """Axis-aligned kernels."""

    name = "diagonal"

    def sizes(self, components: int) -> dict[str, tuple[int, ...]]:
        """Minus the log-standard deviations (M, d)."""
        return {"log_diagonal": (components, self.dim)}

    def log_density(self, x: Tensor, log_weights: Tensor, means: Tensor, shape: Shape, units: Units = PLAIN) -> Tensor:
        return kernels.diagonal(x, log_weights, means * units.mean, shape["log_diagonal"] * units.diagonal)

    def project(self, x: Tensor, shape: Shape) -> Tensor:
        return x.unsqueeze(-2) * shape["log_diagonal"].exp()

    def unproject(self, z: Tensor, shape: Shape) -> Tensor:
        return z * (-shape["log_diagonal"]).exp()

    def of_mixture(self, mixture: Mixture) -> Shape:
        return {"log_diagonal": -0.5 * mixture.covariances.diagonal(0, 1, 2).log()}


class LowRank(Diagonal):
    """Diagonal plus a part of rank ``rank``: d (r + 1) numbers per kernel instead of d (d + 1) / 2."""

    name = "low-rank"

    def __init__(self, dim: int, rank: int | None = None) -> None:
        super().__init__(dim)
        rank = max(1, math.isqrt(dim)) if rank is None else check_whole("rank", rank)
        if not 1 <= rank <= dim:
            raise ValueError(f"rank is {rank}; expected 1 to dim={dim}")
        self.rank = rank

    def sizes(self, components: int) -> dict[str, tuple[int, ...]]:
        """Log-diagonal (M, d) and W (M, d, r)."""
        return super().sizes(components) | {"factor": (components, self.dim, self.rank)}

    def log_density(self, x: Tensor, log_weights: Tensor, means: Tensor, shape: Shape, units: Units = PLAIN) -> Tensor:
        shape = _scaled(shape, units)
        return kernels.low_rank(x, log_weights, means * units.mean, shape["log_diagonal"], shape["factor"])

    def mix(self, z: Tensor, log_weights: Tensor, offset: Tensor, log_scale: Tensor, shape: Shape) -> Tensor:
        """Log-density of scaled points, which keep the low-rank part."""
        log_weights = log_weights + shape["log_diagonal"].sum(-1)
        return kernels.low_rank(z, log_weights, offset, log_scale, shape["factor"])

    def noise(self, shape: Shape, like: Tensor, generator: torch.Generator) -> Tensor:
        """Draw from N(0, I + W W')."""
        latent = _normal((*like.shape[:-1], self.rank, 1), like, generator)
        return super().noise(shape, like, generator) + (shape["factor"] @ latent).squeeze(-1)

    def of_mixture(self, mixture: Mixture) -> Shape:
        """Keep the largest principal directions, and on the diagonal what is left of the variances."""
        covariances = mixture.covariances
        values, vectors = torch.linalg.eigh(covariances)
        rest = values[..., : self.dim - self.rank].mean(-1) if self.rank < self.dim else values[..., 0] / 2  # M
        spread = (values[..., None, -self.rank :] - rest[:, None, None]).clamp_min(1e-6).sqrt()
        top = vectors[..., -self.rank :] * spread  # M d r
        variances = covariances.diagonal(0, 1, 2) - top.square().sum(-1)
        log_diagonal = -0.5 * variances.clamp_min(1e-6).log()
        return {"log_diagonal": log_diagonal, "factor": top * log_diagonal.exp()[..., None]}


COVARIANCES: dict[str, Callable[[int], Covariance]] = {kind.name: kind for kind in (Full, Diagonal, Tied, LowRank)}


def _factor(shape: Shape) -> Tensor:
    return shape["lower"].tril(-1) + torch.diag_embed(shape["log_diagonal"].exp())


def _normal(size: tuple[int, ...], like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(size, generator=generator, dtype=like.dtype).to(like.device)


def _scaled(shape: Shape, units: Units) -> Shape:
    """Multiply the tensors of a shape, a vector or a matrix per kernel, by their units."""
    return {name: value * (units.diagonal if value.dim() == 2 else units.lower) for name, value in shape.items()}


def _units(d: int) -> Units:
    return Units(d**-0.5, d**-0.5, 2**0.5 / d)


# banks


class Bank(nn.Module, ABC):
    """Kernels for the points u (N, d), perhaps given features of a condition or classes."""

    @abstractmethod
    def log_prob(self, u: Tensor, given: Any) -> Tensor:
        """Log-density in nats at u (N, d): (N,)."""

    @abstractmethod
    def sample(self, n: int, given: Any, generator: torch.Generator) -> Tensor:
        """Draw (n, d)."""

    @abstractmethod
    def start(self, u: Tensor, generator: torch.Generator) -> None:
        """Start from data, whatever the condition."""


class MarginalKernels(Bank):
    r"""M kernels for all points: the marginal density.

    Parameters are kept in units in which a step of size one in every coordinate of a block changes the log-density by
    about one: $1/\sqrt d$ for means and log-diagonals, $\sqrt 2/d$ for the lower triangle. So one learning rate serves
    all dimensions, and Adam's noise does not grow with $d^2$.
    """

    def __init__(self, components: int, covariance: Covariance) -> None:
        super().__init__()
        self.covariance, self.units = covariance, _units(covariance.dim)
        self.logits = nn.Parameter(torch.zeros(components))
        self.means = nn.Parameter(torch.randn(components, covariance.dim) * (SPREAD / self.units.mean))
        self.names = tuple(covariance.sizes(components))
        for name, size in covariance.sizes(components).items():
            self.register_parameter(name, nn.Parameter(torch.zeros(size)))

    @property
    def shape(self) -> Shape:
        """The parameters of the covariance, as they are stored."""
        return {name: self._parameters[name] for name in self.names}  # type: ignore[misc]

    def plain(self, dtype: torch.dtype) -> tuple[Tensor, Tensor, Shape]:
        """Log-weights (M,), means (M, d) and shape in plain units, as ``Covariance.log_density`` takes them."""
        log_weights, means, shape = self._stored(dtype)
        return log_weights, means * self.units.mean, _scaled(shape, self.units)

    def log_prob(self, u: Tensor, given: Any = None) -> Tensor:
        return self.covariance.log_density(u, *self._stored(u.dtype), self.units)

    def sample(self, n: int, given: Any, generator: torch.Generator) -> Tensor:
        weights, (_, means, shape) = torch.softmax(self.logits, -1), self.plain(self.logits.dtype)
        kernel = torch.multinomial(weights.cpu(), n, replacement=True, generator=generator).to(weights.device)
        means, shape = means[kernel], self.covariance.select(shape, kernel)
        return means + self.covariance.unproject(self.covariance.noise(shape, means, generator), shape)

    def start(self, u: Tensor, generator: torch.Generator) -> None:
        self.copy_mixture(fit_mixture(u, len(self.logits), generator))

    def copy_mixture(self, mixture: Mixture) -> None:
        """Take the weights and means of a mixture of as many kernels, and the shapes that come closest to its own."""
        self.units = _units(self.covariance.dim)
        self.logits.copy_(mixture.weights.log())
        self.means.copy_(mixture.means / self.units.mean)
        inverse = Units(*(1 / unit for unit in self.units))
        for name, value in _scaled(self.covariance.of_mixture(mixture), inverse).items():
            self.shape[name].copy_(value)

    def start_paper(self, u: Tensor, generator: torch.Generator) -> None:
        """Means at samples, equal weights, everything else 0.01 times standard noise, in plain units."""
        self.units = PLAIN
        self.logits.zero_()
        self.means.copy_(u[some_rows(len(u), len(self.logits), generator).to(u.device)])
        for value in self.shape.values():
            value.copy_(NOISE * torch.randn(value.shape, generator=generator))

    def _stored(self, dtype: torch.dtype) -> tuple[Tensor, Tensor, Shape]:
        """Log-weights, means and shape as they are stored, in units."""
        shape = {name: value.to(dtype) for name, value in self.shape.items()}
        return torch.log_softmax(self.logits.to(dtype), -1), self.means.to(dtype), shape

    def get_extra_state(self) -> Tensor:
        return torch.tensor(self.units, dtype=torch.double)

    def set_extra_state(self, state: Tensor) -> None:
        self.units = Units(*state.tolist())


class ClassKernels(nn.ModuleList):
    """One set of M kernels for each class, `eq:hat_h_xgivy` with a discrete condition."""

    def __init__(self, classes: int, components: int, covariance: Covariance) -> None:
        super().__init__(MarginalKernels(components, covariance) for _ in range(classes))

    def log_prob(self, u: Tensor, given: Any) -> Tensor:
        """Log-density in nats at u (N, d), every class at its own rows only: (N,)."""
        if is_transformed():
            return self.log_prob_all(u).gather(-1, given.unsqueeze(-1)).squeeze(-1)
        order, parts = self._parts(given)
        return torch.cat([bank.log_prob(u[rows]) for bank, rows in parts])[torch.argsort(order)]

    def log_prob_all(self, u: Tensor) -> Tensor:
        """Log-densities of every class at u (N, d): (N, classes)."""
        banks: Iterable[Any] = self
        return torch.stack([bank.log_prob(u) for bank in banks], -1)

    def sample(self, n: int, given: Any, generator: torch.Generator) -> Tensor:
        """Draw each of n rows from the kernels of its class."""
        order, parts = self._parts(given)
        return torch.cat([bank.sample(len(rows), None, generator) for bank, rows in parts])[torch.argsort(order)]

    def _parts(self, given: Tensor) -> tuple[Tensor, list[tuple[Any, Tensor]]]:
        """Rows sorted by class, and the bank and the rows of each class that is there."""
        order = torch.argsort(given, stable=True)
        rows = order.split(torch.bincount(given, minlength=len(self)).tolist())
        return order, [(bank, part) for bank, part in zip(self, rows, strict=True) if len(part)]


class TrunkKernels(Bank):
    r"""Kernels whose weights, means and scales move with the condition; one shared trunk computes them.

    With the factor $F_m$ of kernel m, shared by all points,
    $y_m = e^{s_m(v)} \odot \bigl(F_m u - c_m - o_m(v)\bigr)$ is standard normal in kernel m. The coordinates u are what
    a linear regression on the condition leaves. $F_m$ and $c_m$ start from a mixture fitted to them; the trunk's
    outputs $(s, o)$ and the change of the weights start at zero. A step costs N M d numbers of network output, not
    N M d d. The trunk has two hidden layers; ``network`` is its ``activation`` and ``layer_norm``, as for ``MLP``.
    """

    def __init__(
        self, given_dim: int, components: int, covariance: Covariance, hidden: int = 128, **network: Any
    ) -> None:
        super().__init__()
        d = covariance.dim
        self.covariance, self.components = covariance, components
        self.offset = nn.Parameter(torch.randn(components, d) * SPREAD)
        sizes = covariance.sizes(components)
        self.shape = nn.ParameterDict({name: nn.Parameter(torch.zeros(size)) for name, size in sizes.items()})
        self.trunk = MLP(given_dim, components * (2 * d + 1), (hidden, hidden), **{"activation": nn.SiLU} | network)
        for parameter in self.trunk.last.parameters():
            nn.init.zeros_(parameter)

    def log_prob(self, u: Tensor, given: Any) -> Tensor:
        shape = {name: value.to(u.dtype) for name, value in self.shape.items()}
        log_weights, offset, log_scale = self._moves(given)
        z = self.covariance.project(u, shape)
        return self.covariance.mix(z, log_weights, offset, log_scale, shape)

    def sample(self, n: int, given: Any, generator: torch.Generator) -> Tensor:
        log_weights, offset, log_scale = self._moves(given)
        kernel = torch.multinomial(log_weights.exp().cpu(), 1, generator=generator).squeeze(-1).to(offset.device)
        rows = torch.arange(n, device=offset.device)
        chosen = self.covariance.select(dict(self.shape.items()), kernel)
        noise = self.covariance.noise(chosen, offset[rows, kernel], generator)
        z = offset[rows, kernel] + noise * (-log_scale[rows, kernel]).exp()
        return self.covariance.unproject(z, chosen)

    def start(self, u: Tensor, generator: torch.Generator) -> None:
        mixture = fit_mixture(u, self.components, generator)
        shape = self.covariance.of_mixture(mixture)
        for name, value in shape.items():
            self.shape[name].copy_(value)
        centres = self.covariance.project(mixture.means, shape).expand(self.components, self.components, -1)
        self.offset.copy_(centres.diagonal(0, 0, 1).T)
        self.trunk.last.weight.zero_()
        self.trunk.last.bias.zero_()[: self.components].copy_(mixture.weights.log())

    def _moves(self, given: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Log-weights (N, M), means (N, M, d) after the factor, and log-scales (N, M, d)."""
        M, d = self.offset.shape
        logits, offset, log_scale = self.trunk(given).split([M, M * d, M * d], -1)
        offset = offset.view(-1, M, d) + self.offset.to(offset.dtype)
        return torch.log_softmax(logits, -1), offset, _capped(log_scale, NARROWEST).view(-1, M, d)


class PaperKernels(Bank):
    """The paper's form: three networks with one tanh layer give all of (A, b, u) for every point (section A.3).

    The network of the factors has a last layer for each of their columns, as ``kernels.by_point`` takes them. They
    start at random. ``network`` is ``activation`` and ``layer_norm``, as for ``MLP``.
    """

    def __init__(self, given_dim: int, components: int, dim: int, hidden: int = 64, **network: Any) -> None:
        super().__init__()
        self.covariance, self.components = Full(dim), components
        self.means = MLP(given_dim, components * dim, (hidden,), last=Transposed, **network)
        self.logits = MLP(given_dim, components, (hidden,), last=Transposed, **network)
        self.shape = nn.Sequential(*hidden_layers(given_dim, (hidden,), **network))
        self.columns = nn.ModuleList(Transposed(hidden, length * components) for length in range(dim, 0, -1))

    def log_prob(self, u: Tensor, given: Any) -> Tensor:
        blocks = zip(u.split(ROWS), given.split(ROWS), strict=True)
        return torch.cat([kernels.by_point(rows, self._log_weights(v), *self._planes(v)) for rows, v in blocks])

    def sample(self, n: int, given: Any, generator: torch.Generator) -> Tensor:
        weights = self._log_weights(given).T.exp()
        kernel = torch.multinomial(weights.cpu(), 1, generator=generator).squeeze(-1).to(weights.device)
        rows, (means, columns) = torch.arange(n, device=kernel.device), self._planes(given)
        log_diagonal, lower = kernels.unpacked([column[:, kernel, rows] for column in columns])
        means, shape = means[:, kernel, rows].T, {"log_diagonal": log_diagonal, "lower": lower}
        return means + self.covariance.unproject(self.covariance.noise(shape, means, generator), shape)

    def start(self, u: Tensor, generator: torch.Generator) -> None:
        redraw(self, generator)

    def _log_weights(self, given: Tensor) -> Tensor:
        """The log-weights (M, N)."""
        return torch.log_softmax(self.logits(given), 0)

    def _planes(self, given: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Means (d, M, N) and the columns of the factor, (d - j, M, N)."""
        hidden, size = self.shape(given), (-1, self.components, len(given))
        return self.means(given).view(size), [layer(hidden).view(size) for layer in self.columns]


class KNIFE(Density):
    r"""A mixture of Gaussian kernels with learnable weights, means and covariances, perhaps given a second variable.

    $\hat p(x) = \sum_{m=1}^M u_m\, \mathcal N(x; b_m, A_m)$ (`eq:knife`). Given a continuous variable, $(A, b, u)$ are
    functions of it (`eq:hat_h_xgivy`); given classes, there is one set of them for each class. Called as a module,
    it is the mean of $-\log\hat p$ in nats: an upper bound of the entropy in expectation on fresh rows (`eq:ce_bound`).

    It works at once, as a mixture around the standard normal; ``initialize`` starts it from data (``fit`` does).

    Args:
        dim: As for ``Density``, and so are ``given_dim`` and ``given_classes``.
        components: Number M of kernels (for each class).
        covariance: ``"full"``, ``"diagonal"``, ``"tied"`` (one full covariance for all kernels) or ``"low-rank"``.
        rank: Rank of the low-rank part; about the square root of ``dim`` if not given.
        hidden: Width of the hidden layers of the network behind a continuous condition; 128 if not given, and 64 in the
            paper's form.
        activation: Class of its activation module; ``nn.SiLU`` if not given, and ``nn.Tanh`` in the paper's form.
        layer_norm: Whether the networks have LayerNorms, as ``MLP`` takes it.
        init: How ``initialize`` starts. ``"data"``: coordinates less a linear regression on the condition, whitened, a
            mixture fitted by expectation maximisation, and one network that moves its weights, means and scales.
            ``"paper"``: the paper's form in the coordinates of the data: means at samples, noise of 0.01 elsewhere,
            plain units; given a continuous variable, three random networks for (A, b, u) of full kernels. ``"zero"``:
            the same with means in noise of 0.01 around zero, as its mutual information of uniforms starts.

    Examples:
        >>> x = torch.randn(20_000, 2, generator=torch.Generator().manual_seed(0))
        >>> knife = KNIFE(dim=2, components=16).initialize(x, seed=0)
        >>> round(knife(x).item(), 1)  # h = log(2 pi e) = 2.84 nats
        2.8
        >>> knife.sample(5, seed=0).shape
        torch.Size([5, 2])
    """

    def __init__(
        self,
        dim: int,
        components: int = 128,
        *,
        given_dim: int | None = None,
        given_classes: int | None = None,
        covariance: str = "full",
        rank: int | None = None,
        hidden: int | None = None,
        activation: Activation | None = None,
        layer_norm: bool = False,
        init: Init = "data",
    ) -> None:
        one_of("init", init, get_args(Init))
        one_of("covariance", covariance, tuple(COVARIANCES))
        if rank is not None and covariance != "low-rank":
            raise ValueError(
                f"rank is {rank}, but covariance is {covariance!r}; expected covariance='low-rank' with it"
            )
        width = None if hidden is None else check_count("hidden", hidden)
        said: dict[str, Any] = {"hidden": width, "activation": activation, "layer_norm": layer_norm or None}
        said = {name: value for name, value in said.items() if value is not None}
        if said and given_dim is None:
            raise ValueError(
                f"{', '.join(said)} came without a continuous condition for a network; expected given_dim="
            )
        if init != "data" and given_dim is not None and covariance != "full":
            raise ValueError(
                f"covariance is {covariance!r} with init={init!r} and a continuous condition, for which the paper has "
                "full kernels; expected 'full', or init='data' for all of them"
            )
        own = init == "data"
        features = Features(check_count("given_dim", given_dim)) if own and given_dim is not None else None
        coordinates = Regression(dim, 0 if features is None else features.out) if own else Identity(dim)
        super().__init__(dim, given_dim, given_classes, coordinates, features)
        self.components, self.init = check_count("components", components), init
        shape = COVARIANCES[covariance](self.dim) if rank is None else LowRank(self.dim, rank)
        self.bank: Bank | ClassKernels
        if features is not None:
            self.bank = TrunkKernels(features.out, self.components, shape, **said)
        elif self.given_dim is not None:
            self.bank = PaperKernels(self.given_dim, self.components, self.dim, **said)
        elif self.given_classes is not None:
            self.bank = ClassKernels(self.given_classes, self.components, shape)
        else:
            self.bank = MarginalKernels(self.components, shape)

    def _log_prob(self, u: Tensor, given: Any) -> Tensor:
        return self.bank.log_prob(u, given)

    def _log_prob_all(self, u: Tensor) -> Tensor:
        assert isinstance(self.bank, ClassKernels)
        return self.bank.log_prob_all(u)

    def _sample(self, n: int, given: Any, generator: torch.Generator) -> Tensor:
        return self.bank.sample(n, given, generator)

    def _initialize(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        banks: Any = self.bank if isinstance(self.bank, ClassKernels) else [self.bank]
        for bank, rows in zip(banks, self._rows_by_class(u, given), strict=True):
            if self.init == "zero":
                rows = NOISE * _normal(rows.shape, rows, generator)  # noqa: PLW2901  # means around zero, wherever they are
            paper = self.init != "data" and isinstance(bank, MarginalKernels)
            (bank.start_paper if paper else bank.start)(rows, generator)


def _capped(x: Tensor, top: float) -> Tensor:
    """Bound x softly from above: zero at zero, slope about one below, and never more than about ``top``."""
    return math.log1p(math.exp(top)) - nn.functional.softplus(top - x)
