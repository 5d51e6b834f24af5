"""What keeps the features of the class free of the domain: nothing, the information, an adversary, equal moments."""

from abc import ABC, abstractmethod
from typing import Any, final

import torch
from torch import Tensor, nn
from typing_extensions import override

from infoknife import MutualInformation, Regularizer, mi
from infoknife.paper.applications.domain_adaptation.settings import AdaptationSettings

HIDDEN = 64  # of the adversary


class DomainTerm(nn.Module, ABC):
    """A term for the loss of the class encoder."""

    needs_domain_features = True

    def __init__(self, settings: AdaptationSettings) -> None:
        super().__init__()
        self.settings = settings

    @abstractmethod
    def forward(self, z: Tensor, z_domain: Tensor | None, domain: Tensor, learned: float) -> Tensor:
        """Return the term, a scalar, from features of the class and of the domain (N, channels), None if not needed.

        ``domain`` (N,) is 0 or 1 for each row; ``learned`` says how much of the class is known, from 0 to 1.
        """

    def ramped(self, learned: float) -> float:
        """Return the weight, less as long as little is learned where the settings say so."""
        return self.settings.weight * (learned if self.settings.ramp else 1.0)

    def parameter_groups(self, lr: float) -> list[dict[str, Any]]:
        """Return what the optimiser of the encoders is to move as well."""
        own = list(self.parameters())
        return [{"params": own, "lr": lr}] if own else []


@final
class NoTerm(DomainTerm):
    """No term: a classifier of the source, whose batches hold the target's images for BatchNorm's sake.

    The domain encoder is trained alongside all the same, so that the time of a step is that of a term less.
    """

    @override
    def forward(self, z: Tensor, z_domain: Tensor | None, domain: Tensor, learned: float) -> Tensor:
        return z.new_zeros(())


@final
class InformationTerm(DomainTerm):
    r"""The term $\lambda I(\Phi(X); \Phi^d(X))$ of ``eq:domaine``, by any estimator; its gradient reaches $\Phi$ alone.

    Examples:
        >>> method, z = InformationTerm(AdaptationSettings(channels=4)), torch.randn(64, 4, requires_grad=True)
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

    @override
    def forward(self, z: Tensor, z_domain: Tensor | None, domain: Tensor, learned: float) -> Tensor:
        assert z_domain is not None
        settings = self.settings
        z, z_domain = with_noise(z, settings.noise), with_noise(z_domain.detach(), settings.domain_noise)
        self.regularizer.step(z, z_domain)
        term: Tensor = self.regularizer(z, z_domain)  # by the estimator as it was before these rows
        return learned * term if settings.ramp else term

    @override
    def parameter_groups(self, lr: float) -> list[dict[str, Any]]:
        if self.regularizer.optimizer is not None:
            return []
        assert isinstance(self.regularizer.estimator, MutualInformation)
        return self.regularizer.estimator.parameter_groups(lr)


def with_noise(z: Tensor, noise: float) -> Tensor:
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

    @override
    def forward(self, z: Tensor, z_domain: Tensor | None, domain: Tensor, learned: float) -> Tensor:
        turned: Tensor = _Reversed.apply(z, self.ramped(learned))  # type: ignore[no-untyped-call]
        return nn.functional.cross_entropy(self.discriminator(turned), domain)


@final
class EqualMoments(DomainTerm):
    r"""CORAL (Sun & Saenko, 2016): means and covariances of both domains' features are to be the same.

    $\lambda \, (\overline{(\mu_S - \mu_T)^2} + \overline{(C_S - C_T)^2})$, means over all entries, as DomainBed has it.
    """

    needs_domain_features = False

    @override
    def forward(self, z: Tensor, z_domain: Tensor | None, domain: Tensor, learned: float) -> Tensor:
        source, target = z[domain == 0], z[domain == 1]
        means = (source.mean(0) - target.mean(0)).square().mean()
        covariances = (source.T.cov() - target.T.cov()).square().mean()
        return self.ramped(learned) * (means + covariances)


OTHERS: dict[str, type[NoTerm] | type[GradientReversal] | type[EqualMoments]] = {
    "source-only": NoTerm,
    "dann": GradientReversal,
    "coral": EqualMoments,
}


def domain_term(settings: AdaptationSettings) -> DomainTerm:
    """Make the term of a run.

    Examples:
        >>> type(domain_term(AdaptationSettings(method="dann"))).__name__
        'GradientReversal'
    """
    return OTHERS.get(settings.method, InformationTerm)(settings)
