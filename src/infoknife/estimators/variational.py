r"""Mutual information from a model of the conditional, learned by maximum likelihood: CLUB and its relatives.

They are called upper bounds, and are where the model is the true conditional. A learned one can be on either side of
the truth (the paper's own figure 3 has CLUB at 1.38 where the truth is 2), so ``bound`` is ``None``.
"""

import math
from typing import Any, final

import torch
from torch import Tensor

from infoknife.densities.location_scale import Gaussian
from infoknife.estimators.base import Facts, MutualInformation
from infoknife.estimators.conditionals import Classifier, Conditional, Regressor
from infoknife.estimators.critics import shuffled
from infoknife.estimators.encoder import divergence
from infoknife.inputs import matrix

LIKELIHOOD = "maximum likelihood of q(y | x)"


class Variational(MutualInformation):
    r"""A learned $q(y \mid x)$, which predicts y from x: a Gaussian for continuous y, a classifier for classes.

    Args:
        x_dim: As for ``MutualInformation``, and so are ``y_dim`` and ``y_classes``.
        q: ``hidden``, the width of q's hidden layer, ``activation`` and ``layer_norm``, as ``MLP`` takes them, and
            ``preset``: ``"default"``: q starts from a linear regression (64 hidden units); ``"paper"``: the networks
            of figure 3, with 15 hidden units and a random start, trained with Adam at 0.001.
    """

    bound = None
    negatives = True

    def __init__(self, x_dim: int, y_dim: int | None = None, *, y_classes: int | None = None, **q: Any) -> None:
        super().__init__(x_dim, y_dim, y_classes=y_classes)
        make = Regressor if y_classes is None else Classifier
        self.conditional: Conditional = make(x_dim, y_dim or y_classes or 0, **q)

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        return -self.conditional.log_prob(y, x).mean()

    def _initialize(self, x: Tensor, y: Tensor, generator: torch.Generator) -> None:
        self.conditional.start(y, x, generator)


class CLUB(Variational):
    r"""The contrastive log-ratio (Cheng et al., 2020). Its arguments are those of ``Variational``.

    $\mathbb E_{p(x,y)}[\log q(y|x)] - \mathbb E_{p(x)p(y)}[\log q(y|x)]$ in nats, with all N (N - 1) negatives of the
    batch at the cost of N. An upper bound where q is the true conditional; for a Gaussian pair with correlation
    $\rho$ it is then $\rho^2 / (1 - \rho^2)$.

    Example:
        >>> x = torch.randn(2000, 1, generator=torch.Generator().manual_seed(0))
        >>> y = x + torch.randn(2000, 1, generator=torch.Generator().manual_seed(1))
        >>> round(CLUB(1, 1).initialize(x, y)(x, y).item(), 1)  # I = 0.35
        1.0
    """

    facts = Facts(LIKELIHOOD, "all pairs of the batch", "N", "Cheng et al. 2020")

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        q, n = self.conditional, len(x)
        return n / (n - 1) * (q.log_prob(y, x) - q.mean_log_prob(y, x))  # the factor: no row is its own negative


@final
class CLUBSample(CLUB):
    r"""CLUB with one negative per row (Cheng et al., 2020): the mean of $\log q(y_i|x_i) - \log q(y_{\sigma(i)}|x_i)$.

    In nats. In training, with gradients on, $\sigma$ is a cyclic shift of the rows that torch's global generator draws.
    Otherwise the value is the mean over all shifts, which is that of ``CLUB``, so that it repeats exactly. Its
    arguments are those of ``Variational``.

    Example:
        >>> x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
        >>> CLUBSample(3, 3).initialize(x, x + x.roll(1, 0)).pointwise(x, x).shape
        torch.Size([64])
    """

    facts = Facts(LIKELIHOOD, "one shuffled pair per row", "N", "Cheng et al. 2020")

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        if not (self.training and torch.is_grad_enabled()):
            return super()._pointwise(x, y)
        return self.conditional.log_prob(y, x) - self.conditional.log_prob(shuffled(y), x)


@final
class L1Out(Variational):
    r"""The leave-one-out estimate (Poole et al., 2019). Its arguments are those of ``Variational``.

    The mean of $\log q(y_i|x_i) - \log \frac 1{N-1} \sum_{j \ne i} q(y_i|x_j)$ in nats: an upper bound in expectation
    where q is the true conditional.

    Example:
        >>> x = torch.randn(2000, 1, generator=torch.Generator().manual_seed(0))
        >>> y = x + torch.randn(2000, 1, generator=torch.Generator().manual_seed(1))
        >>> round(L1Out(1, 1).initialize(x, y)(x, y).item(), 1)  # I = 0.35
        0.3
    """

    facts = Facts(LIKELIHOOD, "all pairs of the batch", "N, in blocks", "Poole et al. 2019")

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return self.conditional.log_prob(y, x) - self.conditional.log_mean_prob(y, x)


@final
class VUB(MutualInformation):
    r"""The variational upper bound of the information bottleneck (Alemi et al., 2017), with a standard-normal prior.

    For an encoder with known posterior $x \sim \mathcal N(\mu(y), \sigma^2(y))$, ``of_posterior`` is the mean
    Kullback-Leibler divergence to $\mathcal N(0, I)$, a certified upper bound. Where the posterior is not known, the
    module gives $\mathbb E[\log q(x|y) - \log \mathcal N(x; 0, I)]$ in nats, in standardised coordinates, with a
    learned Gaussian q: too large by what the prior misses and too small by what q misses, so no bound.

    Args:
        x_dim: As for ``MutualInformation``, and so are ``y_dim`` and ``y_classes``; x is the representation.
        q: ``hidden``, the width of q's network (64), ``activation`` and ``layer_norm``, as ``MLP`` takes them.

    Example:
        >>> x = torch.randn(2000, 1, generator=torch.Generator().manual_seed(0))
        >>> y = x + torch.randn(2000, 1, generator=torch.Generator().manual_seed(1))
        >>> round(VUB(1, 1).initialize(x, y)(x, y).item(), 1)  # I = 0.35
        0.3
    """

    bound = None
    facts = Facts("maximum likelihood of q(x | y)", "none", "N", "Alemi et al. 2017")

    def __init__(self, x_dim: int, y_dim: int | None = None, *, y_classes: int | None = None, **q: Any) -> None:
        super().__init__(x_dim, y_dim, y_classes=y_classes)
        self.density = Gaussian(x_dim, given_dim=y_dim, given_classes=y_classes, **q)

    @staticmethod
    def of_posterior(mu: Tensor, log_var: Tensor) -> Tensor:
        r"""Return the mean of $\frac 12 \sum_k (\mu_k^2 + \sigma_k^2 - 1 - \log \sigma_k^2)$ in nats: a scalar.

        An upper bound of the information that $x \sim \mathcal N(\mu, \sigma^2)$ has about what it encodes, from the
        means (N, dim) of the posteriors and the logarithms (N, dim) of their variances.

        Example:
            >>> VUB.of_posterior(torch.ones(5, 2), torch.zeros(5, 2))
            tensor(1.)
        """
        mu = matrix(mu, "mu")
        log_var = matrix(log_var, "log_var", dim=mu.shape[1], rows=len(mu))
        return divergence(mu, log_var).mean()

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        prior = -0.5 * (x.square() + math.log(2 * math.pi)).sum(-1)
        return self.density.evaluate(x, y) - prior

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        return -self.density.evaluate(x, y).mean()

    def _initialize(self, x: Tensor, y: Tensor, generator: torch.Generator) -> None:
        self.density.initialize(x, y, seed=generator.initial_seed())


@final
class Adversary(MutualInformation):
    r"""A classifier of the classes y from x, the adversary of fair representations (Barber & Agakov, 2003).

    $\mathbb E[\log q(y|x)] - \mathbb E[\log \hat p(y)] \le I(X; Y)$ in nats, with the frequencies $\hat p$ of the
    classes in the batch; ``loss`` is the classifier's cross-entropy. An encoder that is to hide y has two forms to
    minimise: the estimate, whose gradient is the reversed one of the cross-entropy (Ganin & Lempitsky, 2015), and
    ``penalty``, the posterior form $\mathbb E \sum_s q(s|x) \log q(s|x) / \hat p(s)$, which is zero only where the
    classifier knows nothing and cannot be lowered by misleading it. ``Regularizer`` takes the first with
    ``penalty=False``, the second otherwise.

    Args:
        x_dim: As for ``MutualInformation``, and so is ``y_classes``; y is classes.
        q: ``hidden``, the width of the classifier (64), ``activation`` and ``layer_norm``, as ``MLP`` takes them.

    Example:
        >>> x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
        >>> Adversary(3, y_classes=2).initialize(x, (x[:, 0] > 0).long()).bound
        'lower'
    """

    bound = "lower"
    facts = Facts("cross-entropy of a classifier", "none", "N", "Barber & Agakov 2003")

    def __init__(self, x_dim: int, y_dim: int | None = None, *, y_classes: int | None = None, **q: Any) -> None:
        super().__init__(x_dim, y_dim, y_classes=y_classes)
        if y_classes is None:
            raise ValueError(
                f"y_dim is {y_dim}; expected y_classes, the adversary predicts classes. For continuous y use CLUB"
            )
        self.classifier = Classifier(x_dim, y_classes, **q)

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return self.classifier.log_prob(y, x) - self.classifier.frequencies(y, x.dtype).log()[y]

    def _penalty(self, x: Tensor, y: Tensor) -> Tensor:
        log_probs, frequencies = self.classifier.log_probs(x), self.classifier.frequencies(y, x.dtype)
        known = (len(y) * frequencies + 0.5) / (len(y) + 0.5 * len(frequencies))  # a class may be absent
        return (log_probs.exp() * (log_probs - known.log())).sum(-1).mean()

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        return -self.classifier.log_prob(y, x).mean()
