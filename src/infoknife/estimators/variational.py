r"""Mutual information from a model of the conditional, learned by maximum likelihood: CLUB and its relatives.

They are called upper bounds, and are where the model $q(y \mid x)$ is the true conditional. A learned one can be on
either side of the truth (the paper's own figure 3 has CLUB at 1.38 where the truth is 2), so ``bound`` is ``None``.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, final

import torch
from torch import Tensor, nn
from typing_extensions import override

from infoknife.densities.location_scale import Gaussian
from infoknife.distributed import all_rows, batch_mean, total
from infoknife.estimators.base import Facts, MutualInformation
from infoknife.estimators.bounds import log_mean_exp, without
from infoknife.estimators.critics import RELU, by_blocks, shuffled
from infoknife.inputs import check_count, one_of
from infoknife.nn import MLP

LIKELIHOOD = "maximum likelihood of q(y | x)"
HIDDEN = {"default": 64, "paper": 15}
FAR = 7.0  # the published networks' log-scales end softly there; the data have unit scale


class Conditional(nn.Module, ABC):
    r"""A learnable $q(y \mid x)$ in standardised coordinates, in nats."""

    @abstractmethod
    def log_prob(self, y: Tensor, x: Tensor) -> Tensor:
        """Return log q(y_i | x_i): (N,)."""

    @abstractmethod
    def mean_log_prob(self, y: Tensor, x: Tensor) -> Tensor:
        """Return the mean of log q(y_j | x_i) over all rows j, for each i: (N,)."""

    @abstractmethod
    def _pairs(self, y: Tensor, x: Tensor) -> tuple[Callable[[slice], Tensor], int]:
        """How to compute log q(y_j | x_i) (N, B) for a slice of rows j, and how many numbers an entry takes."""

    def start(self, y: Tensor, x: Tensor, generator: torch.Generator) -> None:
        """Set the parameters from data, where that helps; networks stay at their random start."""

    def log_mean_prob(self, y: Tensor, x: Tensor) -> Tensor:
        """Return the logarithm of the mean of q(y_j | x_i) over the rows i other than j, for each j: (N,)."""
        x, first = all_rows(x)
        columns, numbers = self._pairs(y, x)
        others = len(x) - 1
        return by_blocks(
            lambda at: log_mean_exp(without(columns(at), first + at.start), others), len(y), len(x) * numbers
        )


class Regressor(Conditional):
    """A Gaussian with diagonal covariance whose mean and scale are functions of x, for continuous y.

    Args:
        x_dim: Dimension of x, and ``y_dim`` that of y.
        hidden: Width of the hidden layer; that of the preset if it is not given.
        preset: ``"default"``: a linear regression and what a network adds to it, started from data; ``"paper"``: a
            network for the mean and one for the log-scale, each with half of 15 hidden units, random start.
        network: ``activation`` (tanh by default, ReLU for the paper's) and ``layer_norm``, as ``MLP`` takes them.

    Examples:
        >>> x = torch.randn(1000, 1, generator=torch.Generator().manual_seed(0))
        >>> q = Regressor(1, 1)
        >>> q.start(2 * x + 1, x, torch.Generator())
        >>> bool(q.log_prob(2 * x + 1, x).mean() > 4)
        True
    """

    def __init__(
        self, x_dim: int, y_dim: int, hidden: int | None = None, preset: str = "default", **network: Any
    ) -> None:
        super().__init__()
        width = _width(hidden, preset)
        if preset == "default":
            self.density = Gaussian(y_dim, given_dim=x_dim, hidden=width, **network)
            return
        self.density = Gaussian(y_dim, given_dim=x_dim, init="paper")
        layers: dict[str, Any] = {"hidden": (max(1, width // 2),)} | RELU | network
        self.density.skip = MLP(x_dim, y_dim, **layers)  # type: ignore[assignment]
        self.density.network = _LogScale(MLP(x_dim, y_dim, **layers))  # type: ignore[assignment]

    @override
    def log_prob(self, y: Tensor, x: Tensor) -> Tensor:
        return self.density.evaluate(y, x)

    def mean_log_prob(self, y: Tensor, x: Tensor) -> Tensor:
        """Average over two points with the mean and the variances of all rows: log q has squares, no mixed terms."""
        variance, mean = torch.var_mean(all_rows(y)[0], 0, correction=0)
        deviation = variance.clamp_min(torch.finfo(y.dtype).tiny).sqrt()
        above, below = (self.density.evaluate(point.expand_as(y), x) for point in (mean + deviation, mean - deviation))
        return 0.5 * (above + below)

    def start(self, y: Tensor, x: Tensor, generator: torch.Generator) -> None:
        """Take the linear regression of y on x; published networks stay random."""
        if self.density.init == "data":
            self.density.initialize(y, x, seed=generator.initial_seed())

    def _pairs(self, y: Tensor, x: Tensor) -> tuple[Callable[[slice], Tensor], int]:
        return self.density.log_prob_pairs(y, x), y.shape[1]


class Classifier(Conditional):
    """The probabilities of classes from a network of x with one hidden layer, 64 or, as in the paper, 15 wide.

    Its arguments are those of ``Regressor``, with the number of classes in the place of ``y_dim``; ReLU by default.

    Examples:
        >>> Classifier(3, 7).log_probs(torch.zeros(2, 3)).shape
        torch.Size([2, 7])
    """

    def __init__(
        self, x_dim: int, classes: int, hidden: int | None = None, preset: str = "default", **network: Any
    ) -> None:
        super().__init__()
        self.classes = classes
        self.network = MLP(x_dim, classes, (_width(hidden, preset),), **RELU | network)

    def log_probs(self, x: Tensor) -> Tensor:
        """Return log q of every class: (N, classes)."""
        return self.network(x).log_softmax(-1)

    def frequencies(self, y: Tensor, dtype: torch.dtype) -> Tensor:
        """How often each class is there: (classes,)."""
        return batch_mean(nn.functional.one_hot(y, self.classes).to(dtype))

    @override
    def log_prob(self, y: Tensor, x: Tensor) -> Tensor:
        return self.log_probs(x).gather(-1, y.unsqueeze(-1)).squeeze(-1)

    def mean_log_prob(self, y: Tensor, x: Tensor) -> Tensor:
        """Average over all rows of y by the frequencies of the classes."""
        return self.log_probs(x) @ self.frequencies(y, x.dtype)

    def _pairs(self, y: Tensor, x: Tensor) -> tuple[Callable[[slice], Tensor], int]:
        log_probs = self.log_probs(x)
        return lambda at: log_probs[:, y[at]], 1


class _LogScale(nn.Module):
    """Zeros for the location, and a network's log-variance, whose scale ends softly far out."""

    def __init__(self, network: MLP) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        log_variance = 2 * FAR * (self.network(x) / FAR).tanh()
        return torch.cat([torch.zeros_like(log_variance), log_variance], -1)


def _width(hidden: int | None, preset: str) -> int:
    one_of("preset", preset, tuple(HIDDEN))
    return check_count("hidden", HIDDEN[preset] if hidden is None else hidden)


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
        return -batch_mean(self.conditional.log_prob(y, x))

    def _initialize(self, x: Tensor, y: Tensor, generator: torch.Generator) -> None:
        self.conditional.start(y, x, generator)


class CLUB(Variational):
    r"""The contrastive log-ratio (Cheng et al., 2020). Its arguments are those of ``Variational``.

    $\mathbb E_{p(x,y)}[\log q(y|x)] - \mathbb E_{p(x)p(y)}[\log q(y|x)]$ in nats, with all N (N - 1) negatives of the
    batch at the cost of N. An upper bound where q is the true conditional; for a Gaussian pair with correlation
    $\rho$ it is then $\rho^2 / (1 - \rho^2)$.

    Examples:
        >>> x = torch.randn(2000, 1, generator=torch.Generator().manual_seed(0))
        >>> y = x + torch.randn(2000, 1, generator=torch.Generator().manual_seed(1))
        >>> round(CLUB(1, 1).initialize(x, y)(x, y).item(), 1)  # I = 0.35
        1.0
    """

    facts = Facts(LIKELIHOOD, "all pairs of the batch", "N", "Cheng et al. 2020")

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        q, (n,) = self.conditional, total(len(x), device=x.device)
        return n / (n - 1) * (q.log_prob(y, x) - q.mean_log_prob(y, x))  # the factor: no row is its own negative


@final
class CLUBSample(CLUB):
    r"""CLUB with one negative per row (Cheng et al., 2020): the mean of $\log q(y_i|x_i) - \log q(y_{\sigma(i)}|x_i)$.

    In nats. In training, with gradients on, $\sigma$ is a cyclic shift of the rows that torch's global generator draws.
    Otherwise the value is the mean over all shifts, which is that of ``CLUB``, so that it repeats exactly. Its
    arguments are those of ``Variational``.

    Examples:
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

    Examples:
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

    $\mathbb E[\log q(x|y) - \log \mathcal N(x; 0, I)]$ in nats, in standardised coordinates, with a learned Gaussian q:
    too large by what the prior misses and too small by what q misses, so no bound. Where the posterior of an encoder
    is known, ``mi("vub", x_dim, encoder="gaussian")`` has it in closed form, a certified upper bound.

    Args:
        x_dim: As for ``MutualInformation``, and so are ``y_dim`` and ``y_classes``; x is the representation.
        q: ``hidden``, the width of q's network (64), ``activation`` and ``layer_norm``, as ``MLP`` takes them.

    Examples:
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

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        prior = -0.5 * (x.square() + math.log(2 * math.pi)).sum(-1)
        return self.density.evaluate(x, y) - prior

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        return -batch_mean(self.density.evaluate(x, y))

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

    Examples:
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
        (rows,) = total(len(y), device=x.device)
        known = (rows * frequencies + 0.5) / (rows + 0.5 * len(frequencies))  # a class may be absent
        return batch_mean((log_probs.exp() * (log_probs - known.log())).sum(-1))

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        return -batch_mean(self.classifier.log_prob(y, x))
