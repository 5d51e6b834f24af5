"""Lower bounds of mutual information from a critic that tells pairs that came together from pairs that did not."""

from collections.abc import Callable
from typing import Any, ClassVar, final

import torch
from torch import Tensor, nn

from infoknife.distributed import all_rows, batch_mean, sums
from infoknife.estimators import bounds
from infoknife.estimators.base import Bound, Facts, MutualInformation
from infoknife.estimators.critics import RELU, Concatenated, Critic, Separable, shuffled
from infoknife.inputs import one_of
from infoknife.nn import MLP

CRITICS: dict[str, type[Separable | Concatenated]] = {"concatenated": Concatenated, "separable": Separable}
ASCENT = "gradient ascent on the bound"

Average = Callable[[Tensor, int], Tensor]  # of a block of columns over so many rows


class Contrastive(MutualInformation):
    """A critic, and what its scores say about the mutual information.

    Classes reach the critic one-hot. The score matrix of a batch is reduced in blocks, so that memory is linear in N.

    ``pairs`` says which pairs stand for independent ones:

    - ``"all"``: the N (N - 1) pairs of the batch that did not come together;
    - ``"batch"``: all N N of them, as public code has it. The bound holds, and cannot exceed log N;
    - ``"shuffled"``: in training, with gradients on, one for each row, from a cyclic shift of the rows that torch's
      global generator draws; otherwise ``"all"``, so that values repeat exactly.

    Args:
        x_dim: As for ``MutualInformation``, and so are ``y_dim`` and ``y_classes``.
        pairs: ``"all"``, ``"batch"`` or ``"shuffled"``; those of the estimator and its preset if it is not given.
        critic: ``"concatenated"``, one network of x and y, or ``"separable"``, a product of two networks.
        hidden: Width of the critic's hidden layers; that of the preset if it is not given.
        layers: Number of the critic's hidden layers.
        preset: ``"default"`` (128 wide), or ``"paper"``: the networks of figure 3, 15 wide, trained with Adam at 0.001.
        network: ``activation`` (ReLU by default) and ``layer_norm`` of the networks, as ``MLP`` takes them.
    """

    bound: ClassVar[Bound] = "lower"
    negatives = True
    terms: ClassVar[Callable[[Tensor, Tensor], Tensor]]  # the bound, of scores and of what is left of the negatives
    widths: ClassVar = {"default": 128, "paper": 15}
    pairs: ClassVar = {"default": "all", "paper": "all"}
    paper_output: ClassVar[type[nn.Module]] = nn.Identity  # what is applied to the score under preset="paper"

    def __init__(
        self,
        x_dim: int,
        y_dim: int | None = None,
        *,
        y_classes: int | None = None,
        pairs: str | None = None,
        critic: str = "concatenated",
        hidden: int | None = None,
        layers: int = 1,
        preset: str = "default",
        **network: Any,
    ) -> None:
        super().__init__(x_dim, y_dim, y_classes=y_classes)
        one_of("preset", preset, tuple(self.widths))
        pairs = self.pairs[preset] if pairs is None else pairs
        one_of("pairs", pairs, ("all", "batch", "shuffled"))
        one_of("critic", critic, tuple(CRITICS))
        self.y_features = y_dim or y_classes or 0
        self.hidden = self.widths[preset] if hidden is None else hidden
        self.network: dict[str, Any] = RELU | network
        output = self.paper_output() if preset == "paper" else nn.Identity()
        make = CRITICS[critic]
        self.critic: Critic = make(x_dim, self.y_features, self.hidden, layers, output=output, **self.network)
        self.one_negative, self.with_joint = pairs == "shuffled", pairs == "batch"

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._value(x, y)

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        y = self._encoded(x, y)
        return self._bound(self.critic(x, y), self._negative(x, y), y)

    def _bound(self, joint: Tensor, negative: Tensor, y: Tensor) -> Tensor:
        """Values (N,) from the scores (N,) of pairs that came together and the log-mean-exp (N,) of the others."""
        return type(self).terms(joint, negative)

    def _negative(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the log-mean-exp (N,) over the negatives of each y."""
        if self.one_negative and self.training and torch.is_grad_enabled():
            return self.critic(shuffled(x), y)
        return self._reduced(x, y, bounds.log_mean_exp)

    def _reduced(self, x: Tensor, y: Tensor, average: Average) -> Tensor:
        """Reduce the scores of each y with the x that it did not come with, or with all: (N,)."""
        x, start = all_rows(x)
        if self.with_joint:
            return self.critic.columns(x, y, lambda block, first: average(block, len(x)))
        return self.critic.columns(x, y, lambda block, first: average(bounds.without(block, start + first), len(x) - 1))

    def _encoded(self, x: Tensor, y: Tensor) -> Tensor:
        """What the critic sees of y: numbers as they are, classes one-hot."""
        return y if self.y_classes is None else nn.functional.one_hot(y, self.y_classes).to(x.dtype)


def _donsker_varadhan(joint: Tensor, negative: Tensor) -> Tensor:
    """The bound's terms (N,), with the negatives of all ranks under the logarithm."""
    return bounds.donsker_varadhan(joint, all_rows(negative)[0])


@final
class MINE(Contrastive):
    r"""The Donsker-Varadhan bound, with the moving-average correction of its gradient (Belghazi et al., 2018).

    $\mathbb E_{p(x,y)}[f] - \log \mathbb E_{p(x)p(y)}[e^f] \le I(X; Y)$ in nats. The gradient of the logarithm from few
    negatives is biased; ``loss`` divides by a running mean of $\mathbb E[e^f]$, which ``observe`` moves, instead of the
    batch's. The value is a lower bound for many rows; from few negatives it is too large by half the squared relative
    error of their mean. ``pairs`` is ``"shuffled"`` if it is not given.

    Args:
        dims: As for ``Contrastive``, and so are ``options``.
        momentum: Step of the running mean; 1 is the batch's own mean, the uncorrected gradient.

    Examples:
        >>> x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
        >>> bool(MINE(3, 3).initialize(x, x)(x, x) < 1)  # not trained yet
        True
    """

    facts = Facts(ASCENT, "one shuffled pair per row", "N", "Belghazi et al. 2018")
    terms = _donsker_varadhan
    pairs: ClassVar = {"default": "shuffled", "paper": "shuffled"}
    log_mean: Tensor

    def __init__(self, *dims: Any, momentum: float = 0.01, **options: Any) -> None:
        super().__init__(*dims, **options)
        if not 0 < momentum <= 1:
            raise ValueError(f"momentum is {momentum}; expected a number in (0, 1], 1 for the batch's own mean")
        self.momentum = momentum
        self.register_buffer("log_mean", torch.tensor(float("nan")))  # of e^f; no batch has come yet

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Minus the bound; in training its gradient has the running mean in the denominator."""
        if not (self.training and torch.is_grad_enabled()):
            return -self._value(x, y)
        y = self._encoded(x, y)
        now = bounds.log_mean_exp(all_rows(self._negative(x, y))[0])
        log_mean = self.log_mean.to(now.dtype)
        ratio = (now - torch.where(log_mean.isnan(), now.detach(), log_mean)).exp()
        return now.detach() + (ratio - ratio.detach()) - batch_mean(self.critic(x, y))

    def _observe(self, x: Tensor, y: Tensor) -> None:
        finite = torch.isfinite(x).all(1)
        came, rows = sums(len(x), finite.sum(), device=x.device)
        if int(came) < 2:
            return  # a row alone has no negatives
        x, y = torch.where(finite[:, None], x, 0.0), self._encoded(x, y)
        scores = all_rows(self._negative(x, torch.nan_to_num(y)))[0]
        old, now = self.log_mean, bounds.log_mean_exp(scores).to(self.log_mean.dtype)
        moved = torch.lerp(torch.ones_like(now), (now - old).exp(), self.momentum).log() + old
        moved = torch.where(old.isnan() | moved.isinf(), now, moved)
        self.log_mean = torch.where(moved.isfinite() & (rows > 1), moved, old)


@final
class NWJ(Contrastive):
    r"""The bound of Nguyen, Wainwright & Jordan (2010): $\mathbb E[f] - e^{-1} \mathbb E[e^f] \le I(X; Y)$ in nats.

    A lower bound in expectation for any batch; its variance grows like $e^{I(X; Y)}$. Its arguments are those of
    ``Contrastive``; the pairs of ``preset="paper"`` are ``"batch"``.

    Examples:
        >>> x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
        >>> NWJ(3, 3).initialize(x, x).pointwise(x, x).shape
        torch.Size([64])
    """

    facts = Facts(ASCENT, "all pairs of the batch", "N, in blocks", "Nguyen et al. 2010")
    terms = bounds.nwj
    pairs: ClassVar = {"default": "all", "paper": "batch"}


@final
class TUBA(Contrastive):
    r"""The bound of Poole et al. (2019): $1 + \mathbb E[f - a(y)] - \mathbb E[e^{f - a(y)}] \le I(X; Y)$ in nats.

    The baseline $a(y)$ is learned, by a network as wide as the critic's; where it is 1 the bound is NWJ's. A lower
    bound in expectation for any batch. Its arguments are those of ``Contrastive``, but for the preset: ``"paper"`` has
    a linear baseline, and is 40 wide, chosen to come near the published values with Adam at 0.0005 (at 0.001 bursts
    reach the last level). Those exceed log N, which the public code, 15 wide with all pairs of the batch, cannot.

    Examples:
        >>> x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
        >>> TUBA(3, 3).initialize(x, x).pointwise(x, x).shape
        torch.Size([64])
    """

    facts = Facts(ASCENT, "all pairs of the batch", "N, in blocks", "Poole et al. 2019")
    widths: ClassVar = {"default": 128, "paper": 40}

    def __init__(self, *dims: Any, preset: str = "default", **options: Any) -> None:
        super().__init__(*dims, preset=preset, **options)
        widths = () if preset == "paper" else (self.hidden,)
        self.baseline = MLP(self.y_features, 1, widths, **self.network)

    def _bound(self, joint: Tensor, negative: Tensor, y: Tensor) -> Tensor:
        return bounds.tuba(joint, negative, self.baseline(y).squeeze(-1))


@final
class InfoNCE(Contrastive):
    r"""Which x belongs to $y_j$ (van den Oord et al., 2018).

    $\mathbb E[f(x_j, y_j) - \log \frac 1N \sum_i e^{f(x_i, y_j)}] \le I(X; Y)$ in nats: a lower bound in expectation
    for any batch, and never more than $\log N$. Under ``preset="paper"`` the score goes through softplus. Its arguments
    are those of ``Contrastive``, but for ``pairs``, which is ``"batch"``.

    Examples:
        >>> x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
        >>> InfoNCE(3, 3).initialize(x, x).pointwise(x, x).shape
        torch.Size([64])
    """

    facts = Facts(ASCENT, "all pairs of the batch", "N, in blocks", "van den Oord et al. 2018")
    terms = bounds.info_nce
    paper_output = nn.Softplus

    def __init__(self, *dims: Any, **options: Any) -> None:
        super().__init__(*dims, pairs="batch", **options)


@final
class SMILE(Contrastive):
    r"""The Donsker-Varadhan value with clipped negatives (Song & Ermon, 2020), in nats.

    $\mathbb E_{p(x,y)}[f] - \log \mathbb E_{p(x)p(y)}[\operatorname{clip}(e^f, e^{-\tau}, e^\tau)]$. Clipping trades
    variance for bias, so it bounds nothing. ``loss`` trains the critic towards the log-density ratio by another
    objective, as published; ``forward`` has the gradient of its value.

    Args:
        dims: As for ``Contrastive``, and so are ``options``, but for ``pairs``, which is ``"all"``.
        tau: Where the scores of the negatives are clipped, in nats.
        gradient: What the critic learns by: ``"js"``, the Jensen-Shannon objective, or ``"nwj"``, the NWJ bound (with
            its constant moved, so that the best score is the log-density ratio and not one more).

    Examples:
        >>> x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
        >>> SMILE(3, 3, tau=1.0).initialize(x, x).pointwise(x, x).shape
        torch.Size([64])
    """

    bound = None
    facts = Facts("Jensen-Shannon or NWJ", "all pairs of the batch", "N, in blocks", "Song & Ermon 2020")
    terms = _donsker_varadhan

    def __init__(self, *dims: Any, tau: float = 5.0, gradient: str = "js", **options: Any) -> None:
        super().__init__(*dims, pairs="all", **options)
        one_of("gradient", gradient, ("js", "nwj"))
        if not tau > 0:
            raise ValueError(f"tau is {tau}; expected a positive number of nats, infinity for no clipping")
        self.tau, self.gradient = tau, gradient

    def _negative(self, x: Tensor, y: Tensor) -> Tensor:
        x, start = all_rows(x)

        def clipped(block: Tensor, first: int) -> Tensor:
            return bounds.log_mean_exp(bounds.without(block.clamp(-self.tau, self.tau), start + first), len(x) - 1)

        return self.critic.columns(x, y, clipped)

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        y = self._encoded(x, y)
        joint = self.critic(x, y)
        if self.gradient == "js":
            return -batch_mean(bounds.jensen_shannon(joint, self._reduced(x, y, bounds.mean_softplus)))
        negative = self._reduced(x, y, bounds.log_mean_exp)  # one more: largest where the score is the ratio's log
        return -batch_mean(bounds.nwj(joint + 1, negative + 1))
