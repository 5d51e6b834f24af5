"""KNIFE: a fully learnable Gaussian-kernel density (Pichler et al., ICML 2022)."""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from infoknife.coordinates import Features, Identity, Regression, Transform
from infoknife.densities.banks import Bank, ClassKernels, SharedKernels
from infoknife.densities.base import Density
from infoknife.densities.conditional import TrunkKernels, paper_kernels
from infoknife.densities.covariance import COVARIANCES, Covariance, LowRank
from infoknife.densities.revival import Revived
from infoknife.inputs import check_count, one_of
from infoknife.nn import Activation

__all__ = ["KNIFE"]

Init = Literal["data", "paper"]
NETWORKS: dict[str, Callable[..., Bank]] = {"trunk": TrunkKernels, "paper": paper_kernels}


class KNIFE(Density):
    r"""A mixture of Gaussian kernels with learnable weights, means and covariances, perhaps given a second variable.

    $\hat p(x) = \sum_{m=1}^M u_m\, \mathcal N(x; b_m, A_m)$ (`eq:knife`). Given a continuous variable, $(A, b, u)$ are
    functions of it (`eq:hat_h_xgivy`); given classes, there is one set of them for each class. Called as a module,
    it is the mean of $-\log\hat p$ in nats: an upper bound of the entropy in expectation on fresh rows (`eq:ce_bound`).

    It works at once, as a mixture around the standard normal; ``initialize`` starts it from data (``fit`` does).

    Args:
        dim: Dimension d of x.
        components: Number M of kernels (for each class).
        given_dim: Dimension of a continuous condition.
        given_classes: Number of classes of a discrete condition.
        covariance: ``"full"``, ``"diagonal"``, ``"tied"`` (one full covariance for all kernels) or ``"low-rank"``.
        rank: Rank of the low-rank part; about the square root of ``dim`` if not given.
        network: How kernels follow a continuous condition: ``"trunk"``, one network for weights, means and scales,
            or ``"paper"``, three networks with one tanh layer for all of (A, b, u); the trunk if not given.
        hidden: Width of the hidden layers; 128 for the trunk and 64 for the paper's if not given.
        activation: Class of the networks' activation module; ``nn.SiLU`` for the trunk and ``nn.Tanh`` for the paper's
            if not given.
        layer_norm: Whether the networks have LayerNorms, as ``MLP`` takes it.
        init: How ``initialize`` starts. ``"data"``: standardised coordinates and a mixture fitted by expectation
            maximisation; ``"paper"``: the coordinates of the data, means at samples, noise of 0.01 elsewhere, plain
            units.

    Example:
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
        network: str | None = None,
        hidden: int | None = None,
        activation: Activation | None = None,
        layer_norm: bool = False,
        init: Init = "data",
    ) -> None:
        one_of("init", init, ("data", "paper"))
        super().__init__(dim, given_dim, given_classes, *_coordinates(dim, given_dim, init))
        self.components, self.init = check_count("components", components), init
        shape = _covariance(self.dim, covariance, rank)
        self.bank: Bank
        if self.given_dim is not None:
            layers = _layers(hidden, activation, layer_norm)
            width = self.given_dim if self.features is None else self.features.out
            self.bank = _following(shape, self.components, width, network, layers)
        elif activation is not None or layer_norm:
            raise ValueError(
                "activation or layer_norm is set, but there is no continuous condition for a network; "
                "expected given_dim= with them"
            )
        elif network is not None or hidden is not None:
            raise ValueError(
                f"network is {network!r} and hidden is {hidden}, but there is no continuous condition for a network; "
                "expected given_dim= with them"
            )
        elif self.given_classes is not None:
            self.bank = ClassKernels(self.given_classes, self.components, shape)
        else:
            self.bank = SharedKernels(self.components, shape)

    def _log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        return self.bank.log_prob(u, given)

    def _sample(self, n: int, given: Tensor | None, generator: torch.Generator) -> Tensor:
        return self.bank.sample(n, given, generator)

    def _revive(self, u: Tensor, given: Tensor | None) -> Revived:
        return self.bank.revive(u, given)

    def _initialize(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        start = self.bank.start_paper if self.init == "paper" else self.bank.start
        start(u, given, generator)


def _coordinates(dim: int, given_dim: int | None, init: Init) -> tuple[Transform, Features | None]:
    """The paper's coordinates are those of the data; ours are whitened, less a regression on the condition."""
    check_count("dim", dim)
    if init == "paper":
        return Identity(dim), None
    features = None if given_dim is None else Features(check_count("given_dim", given_dim))
    return Regression(dim, 0 if features is None else features.out), features


def _covariance(dim: int, name: str, rank: int | None) -> Covariance:
    one_of("covariance", name, tuple(COVARIANCES))
    if rank is not None and name != "low-rank":
        raise ValueError(f"rank is {rank}, but covariance is {name!r}; expected covariance='low-rank' with it")
    return COVARIANCES[name](dim) if rank is None else LowRank(dim, rank)


def _layers(hidden: int | None, activation: Activation | None, layer_norm: bool) -> dict[str, Any]:
    """What is said about the layers; a network has its own defaults for the rest."""
    width = None if hidden is None else check_count("hidden", hidden)
    said = {"hidden": width, "activation": activation, "layer_norm": layer_norm or None}
    return {name: value for name, value in said.items() if value is not None}


def _following(
    covariance: Covariance, components: int, given_dim: int, network: str | None, layers: dict[str, Any]
) -> Bank:
    """Kernels that follow a continuous condition."""
    network = "trunk" if network is None else network
    one_of("network", network, tuple(NETWORKS))
    return NETWORKS[network](given_dim, components, covariance, **layers)
