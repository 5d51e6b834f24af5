"""What keeps the features free of the private attribute while they are learned: nothing, or their information."""

from abc import ABC, abstractmethod
from typing import final

from torch import Tensor
from typing_extensions import override

from infoknife import Regularizer, annealed, mi
from infoknife.paper.applications.fair_text.settings import FairTextSettings
from infoknife.paper.applications.run import Term

START = 0.1  # of the weight, where the multiplier of a limit begins: a limit that is not kept yet counts eleven times


class PrivacyTerm(Term, ABC):
    """A term for the loss of the encoder."""

    @abstractmethod
    def forward(self, z: Tensor, s: Tensor) -> Tensor:
        """Return the term, a scalar, of features z (N, d) and private classes s (N,)."""

    def measure(self, z: Tensor, s: Tensor) -> float | None:
        """Return the information of features of other texts by the estimator as it is, in nats; None without one."""
        return None


@final
class Unprotected(PrivacyTerm):
    """No term: what an encoder leaks that nobody keeps from it, or that LEACE erases once it is trained."""

    @override
    def forward(self, z: Tensor, s: Tensor) -> Tensor:
        return z.new_zeros(())


@final
class Hidden(PrivacyTerm):
    r"""The term $\lambda I(\Phi(X); S)$ of ``eq:all_loss``, or one that keeps the information at most somewhere.

    The estimator learns by Algorithm 1, a gradient step alongside each of the encoder's; or it is fitted anew in closed
    form at times, to features of a few thousand training texts, so that it never lags behind.

    Args:
        settings: Those of the run.
        classes: Number of private classes.
    """

    def __init__(self, settings: FairTextSettings, classes: int) -> None:
        super().__init__()
        weight: float | annealed = settings.weight
        if settings.at_most is not None:
            weight = START * settings.weight
        elif settings.ramp > 0:
            weight = annealed(settings.weight, max(1, int(settings.ramp * settings.steps)))
        self.regularizer = Regularizer(
            mi(settings.method, settings.features, y_classes=classes, **settings.estimator),
            lr=settings.estimator_lr,
            weight=weight,
            at_most=settings.at_most,
            warn=False,  # the results say it
            seed=settings.seed,
        )

    @override
    def forward(self, z: Tensor, s: Tensor) -> Tensor:
        self.regularizer.step(z, s)
        term: Tensor = self.regularizer(z, s)
        return term

    @override
    def measure(self, z: Tensor, s: Tensor) -> float | None:
        return self.regularizer.measure(z, s)


def privacy_term(settings: FairTextSettings, classes: int) -> PrivacyTerm:
    """Make the term of a run, for so many private classes."""
    return Unprotected() if settings.method in ("none", "leace") else Hidden(settings, classes)
