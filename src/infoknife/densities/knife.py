"""KNIFE: a fully learnable Gaussian-kernel density (Pichler et al., ICML 2022)."""

from typing import Any, Literal, Self

import torch
from torch import Tensor

from infoknife.densities.banks import Bank, ClassKernels, SharedKernels
from infoknife.densities.base import Density, check_count, one_of
from infoknife.densities.conditional import PaperKernels, TrunkKernels
from infoknife.densities.covariance import COVARIANCES, Covariance, LowRank
from infoknife.transforms import Identity, Whiten

__all__ = ["KNIFE"]

Init = Literal["data", "paper"]


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
            or ``"paper"``, three networks with one tanh layer for all of (A, b, u).
        hidden: Width of the hidden layers; 128 for the trunk and 64 for the paper's if not given.
        init: ``"data"``: standardised coordinates and a mixture fitted by expectation maximisation; ``"paper"``: the
            coordinates of the data, means at samples, noise of 0.01 elsewhere, plain units.

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
        network: str = "trunk",
        hidden: int | None = None,
        init: Init = "data",
    ) -> None:
        one_of("init", init, ("data", "paper"))
        super().__init__(dim, given_dim, given_classes, Whiten(dim) if init == "data" else Identity(dim))
        check_count("components", components)
        self.components, self.init = components, init
        shape = _covariance(dim, covariance, rank)
        self.bank = _bank(shape, components, given_dim, given_classes, network, hidden)

    def initialize(self, x: Any, given: Any = None, *, init: Init | None = None, seed: int | None = None) -> Self:
        """Start from the rows of x (N, dim) and of the condition.

        Args:
            x: Samples.
            given: As many rows of the condition, for a conditional density.
            init: ``"data"`` or ``"paper"``, instead of what the module was made with.
            seed: Makes the start repeatable; without it torch's global generator decides.
        """
        if init is not None:
            one_of("init", init, ("data", "paper"))
        if init is not None and init != self.init:
            self.init, self.transform = init, Whiten(self.dim) if init == "data" else Identity(self.dim)
        return super().initialize(x, given, seed=seed)

    def _log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        return self.bank.log_prob(u, given)

    def _sample(self, n: int, given: Tensor | None, generator: torch.Generator) -> Tensor:
        return self.bank.sample(n, given, generator)

    def _initialize(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        start = self.bank.start_paper if self.init == "paper" else self.bank.start
        start(u, given, generator)


def _covariance(dim: int, name: str, rank: int | None) -> Covariance:
    one_of("covariance", name, tuple(COVARIANCES))
    if rank is not None and name != "low-rank":
        raise ValueError(f"rank is {rank}, but covariance is {name!r}; expected covariance='low-rank' with it")
    return COVARIANCES[name](dim) if rank is None else LowRank(dim, rank)


def _bank(
    covariance: Covariance,
    components: int,
    given_dim: int | None,
    given_classes: int | None,
    network: str,
    hidden: int | None,
) -> Bank:
    networks = {"trunk": TrunkKernels, "paper": PaperKernels}
    one_of("network", network, tuple(networks))
    if given_dim is not None:
        width = {} if hidden is None else {"hidden": hidden}
        return networks[network](given_dim, components, covariance, **width)
    if given_classes is not None:
        return ClassKernels(given_classes, components, covariance)
    return SharedKernels(components, covariance)
