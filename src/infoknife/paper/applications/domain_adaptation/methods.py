"""What keeps the features of the class free of the domain: nothing, an estimate of the information, an adversary."""

from abc import ABC, abstractmethod
from typing import Any, final

import torch
from torch import Tensor, nn

from infoknife import MutualInformation, Regularizer, mi
from infoknife.paper.applications.domain_adaptation.settings import AdaptationSettings
from infoknife.paper.applications.term import Term

HIDDEN = 64  # of the adversary


class DomainTerm(Term, ABC):
    """A term for the loss of the class encoder."""

    needs_domain_features = True

    def __init__(self, settings: AdaptationSettings) -> None:
        super().__init__()
        self.settings = settings

    @abstractmethod
    def forward(self, z: Tensor, z_domain: Tensor | None, domain: Tensor, learned: float) -> Tensor:
        """Return the term, a scalar.

        Args:
            z: Features of the class (N, channels).
            z_domain: Features of the domain (N, channels); None where they are not needed.
            domain: Which domain a row is from, 0 or 1, (N,).
            learned: How much of the class is known by now, from 0 to 1.
        """

    def parameter_groups(self, lr: float) -> list[dict[str, Any]]:
        """Return what the optimiser of the encoders is to move as well."""
        own = list(self.parameters())
        return [{"params": own, "lr": lr}] if own else []


@final
class SourceOnly(DomainTerm):
    """No term: a classifier of the source, whose batches hold the target's images for BatchNorm's sake.

    The domain encoder is trained alongside all the same, so that the time of a step is that of a term less.
    """

    def forward(self, z: Tensor, z_domain: Tensor | None, domain: Tensor, learned: float) -> Tensor:
        """Return the term."""
        return z.new_zeros(())


@final
class Disentangled(DomainTerm):
    r"""The term $\lambda I(\Phi(X); \Phi^d(X))$ of ``eq:domaine``, by any estimator; its gradient reaches $\Phi$ alone.

    Example:
        >>> method, z = Disentangled(AdaptationSettings(channels=4)), torch.randn(64, 4, requires_grad=True)
        >>> method(z, torch.randn(64, 4), torch.arange(64) % 2, 1.0).requires_grad
        True
    """

    def __init__(self, settings: AdaptationSettings) -> None:
        super().__init__(settings)
        estimator = mi(settings.method, settings.channels, settings.channels, **settings.estimator)
        self.regularizer = Regularizer(
            estimator,
            lr=settings.estimator_lr,
            mode="joint" if settings.joint else "alternate",
            weight=settings.weight,
            max_inner_steps=1,  # as the authors ran it
            warn=False,  # the results say it
            seed=settings.seed,
        )

    def forward(self, z: Tensor, z_domain: Tensor | None, domain: Tensor, learned: float) -> Tensor:
        """Return the term."""
        assert z_domain is not None
        settings = self.settings
        z, z_domain = blurred(z, settings.noise), blurred(z_domain.detach(), settings.domain_noise)
        self.regularizer.step(z, z_domain)
        term: Tensor = self.regularizer(z, z_domain)  # by the estimator as it was before these rows
        return learned * term if settings.ramp else term

    def parameter_groups(self, lr: float) -> list[dict[str, Any]]:
        """Return what the optimiser is to move as well."""
        if self.regularizer.optimizer is not None:
            return []
        assert isinstance(self.regularizer.estimator, MutualInformation)
        return self.regularizer.estimator.parameter_groups(lr)


def blurred(z: Tensor, noise: float) -> Tensor:
    """Add Gaussian noise to features z (N, d), in units of each one's deviation in the batch.

    Information counts a direction in which features hardly vary as much as any other, and pooled features have many.
    Noise hides these, so that neither estimator nor encoder spends itself on them.
    """
    return z + noise * z.detach().std(0) * torch.randn_like(z) if noise > 0 else z


class _Reversed(torch.autograd.Function):
    """The identity, with the gradient turned round."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, weight: float) -> Tensor:
        ctx.weight = weight
        return z.view_as(z)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return -ctx.weight * gradient, None


@final
class GradientReversal(DomainTerm):
    """DANN (Ganin et al., 2016): a classifier of the domain whose gradient reaches the encoder turned round."""

    needs_domain_features = False

    def __init__(self, settings: AdaptationSettings) -> None:
        super().__init__(settings)
        self.discriminator = nn.Sequential(nn.Linear(settings.channels, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 2))

    def forward(self, z: Tensor, z_domain: Tensor | None, domain: Tensor, learned: float) -> Tensor:
        """Return the term."""
        weight = self.settings.weight * (learned if self.settings.ramp else 1.0)
        turned: Tensor = _Reversed.apply(z, weight)  # type: ignore[no-untyped-call]
        return nn.functional.cross_entropy(self.discriminator(turned), domain)


OTHERS: dict[str, type[SourceOnly] | type[GradientReversal]] = {"source-only": SourceOnly, "dann": GradientReversal}


def domain_term(settings: AdaptationSettings) -> DomainTerm:
    """Make the term of a run.

    Example:
        >>> type(domain_term(AdaptationSettings(method="dann"))).__name__
        'GradientReversal'
    """
    return OTHERS.get(settings.method, Disentangled)(settings)
