"""Lower bounds of mutual information from a critic that tells pairs that came together from pairs that did not."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, final

import torch
from torch import Tensor, nn

from infoknife.estimators import bounds
from infoknife.estimators.base import Bound, Facts, MutualInformation
from infoknife.estimators.critics import Concatenated, Critic, Separable, shuffled
from infoknife.inputs import one_of
from infoknife.nn import MLP, Activation

CRITICS: dict[str, type[Separable | Concatenated]] = {"concatenated": Concatenated, "separable": Separable}
HIDDEN = {"default": 128, "paper": 15}
NWJ_PAIRS = {"default": "all", "paper": "batch"}
TUBA_HIDDEN = {"default": 128, "paper": 40}

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
        x_dim: Dimension of x.
        y_dim: Dimension of a continuous y.
        y_classes: Number of classes of a discrete y.
        pairs: ``"all"``, ``"batch"`` or ``"shuffled"``.
        critic: ``"concatenated"``, one network of x and y, or ``"separable"``, a product of two networks.
        hidden: Width of the critic's hidden layers; that of the preset if it is not given.
        layers: Number of the critic's hidden layers.
        activation: Class of the critic's activation module.
        layer_norm: Whether the critic has LayerNorms, as ``MLP`` takes it.
        preset: ``"default"`` (128 wide), or ``"paper"``: the networks of figure 3, 15 wide, trained with Adam at 0.001.
    """

    bound: ClassVar[Bound] = "lower"
    negatives = True

    def __init__(
        self,
        x_dim: int,
        y_dim: int | None = None,
        *,
        y_classes: int | None = None,
        pairs: str = "all",
        critic: str = "concatenated",
        hidden: int | None = None,
        layers: int = 1,
        activation: Activation = nn.ReLU,
        layer_norm: bool = False,
        preset: str = "default",
    ) -> None:
        super().__init__(x_dim, y_dim, y_classes=y_classes)
        one_of("pairs", pairs, ("all", "batch", "shuffled"))
        one_of("critic", critic, tuple(CRITICS))
        one_of("preset", preset, tuple(HIDDEN))
        self.y_features = y_dim or y_classes or 0
        self.hidden = HIDDEN[preset] if hidden is None else hidden
        network: dict[str, Any] = {"activation": activation, "layer_norm": layer_norm}
        output = self._output(preset == "paper")
        self.critic: Critic = CRITICS[critic](x_dim, self.y_features, self.hidden, layers, output=output, **network)
        self.one_negative, self.with_joint = pairs == "shuffled", pairs == "batch"

    def _output(self, published: bool) -> nn.Module:
        """What is applied to the critic's score."""
        return nn.Identity()

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._value(x, y)

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        y = self._encoded(x, y)
        return self._bound(self.critic(x, y), self._negative(x, y), y)

    @abstractmethod
    def _bound(self, joint: Tensor, negative: Tensor, y: Tensor) -> Tensor:
        """Values (N,) from the scores (N,) of pairs that came together and the log-mean-exp (N,) of the others."""

    def _negative(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the log-mean-exp (N,) over the negatives of each y."""
        if self.one_negative and self.training and torch.is_grad_enabled():
            return self.critic(shuffled(x), y)
        return self._reduced(x, y, bounds.log_mean_exp)

    def _reduced(self, x: Tensor, y: Tensor, average: Average) -> Tensor:
        """Reduce the scores of each y with the x that it did not come with, or with all: (N,)."""
        if self.with_joint:
            return self.critic.columns(x, y, lambda block, first: average(block, len(x)))
        return self.critic.columns(x, y, lambda block, first: average(bounds.without(block, first), len(x) - 1))

    def _encoded(self, x: Tensor, y: Tensor) -> Tensor:
        """What the critic sees of y: numbers as they are, classes one-hot."""
        return y if self.y_classes is None else nn.functional.one_hot(y, self.y_classes).to(x.dtype)


@final
class MINE(Contrastive):
    r"""The Donsker-Varadhan bound, with the moving-average correction of its gradient (Belghazi et al., 2018).

    $\mathbb E_{p(x,y)}[f] - \log \mathbb E_{p(x)p(y)}[e^f] \le I(X; Y)$ in nats. The gradient of the logarithm from few
    negatives is biased; ``loss`` divides by a running mean of $\mathbb E[e^f]$, which ``observe`` moves, instead of the
    batch's. The value is a lower bound for many rows; from few negatives it is too large by half the squared relative
    error of their mean.

    Args:
        dims: ``x_dim``, and ``y_dim`` or ``y_classes``.
        momentum: Step of the running mean; 1 is the batch's own mean, the uncorrected gradient.
        pairs: ``"shuffled"``, ``"all"`` or ``"batch"``.
        options: Further options of ``Contrastive``.

    Example:
        >>> x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
        >>> bool(MINE(3, 3).initialize(x, x)(x, x) < 1)  # not trained yet
        True
    """

    facts = Facts("gradient ascent on the bound", "one shuffled pair per row", "N", "Belghazi et al. 2018")
    log_mean: Tensor

    def __init__(self, *dims: Any, momentum: float = 0.01, pairs: str = "shuffled", **options: Any) -> None:
        super().__init__(*dims, pairs=pairs, **options)
        if not 0 < momentum <= 1:
            raise ValueError(f"momentum is {momentum}; expected a number in (0, 1], 1 for the batch's own mean")
        self.momentum = momentum
        self.register_buffer("log_mean", torch.tensor(float("nan")))  # of e^f; no batch has come yet

    def _bound(self, joint: Tensor, negative: Tensor, y: Tensor) -> Tensor:
        return bounds.donsker_varadhan(joint, negative)

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Minus the bound; in training its gradient has the running mean in the denominator."""
        if not (self.training and torch.is_grad_enabled()):
            return -self._value(x, y)
        y = self._encoded(x, y)
        now = bounds.log_mean_exp(self._negative(x, y))
        log_mean = self.log_mean.to(now.dtype)
        ratio = (now - torch.where(log_mean.isnan(), now.detach(), log_mean)).exp()
        return now.detach() + (ratio - ratio.detach()) - self.critic(x, y).mean()

    def _observe(self, x: Tensor, y: Tensor) -> None:
        if len(x) < 2:
            return  # a row alone has no negatives
        finite = torch.isfinite(x).all(1)
        x, y = torch.where(finite[:, None], x, 0.0), self._encoded(x, y)
        old, now = self.log_mean, bounds.log_mean_exp(self._negative(x, torch.nan_to_num(y))).to(self.log_mean.dtype)
        moved = torch.lerp(torch.ones_like(now), (now - old).exp(), self.momentum).log() + old
        moved = torch.where(old.isnan() | moved.isinf(), now, moved)
        self.log_mean = torch.where(moved.isfinite() & (finite.sum() > 1), moved, old)


@final
class NWJ(Contrastive):
    r"""The bound of Nguyen, Wainwright & Jordan (2010): $\mathbb E[f] - e^{-1} \mathbb E[e^f] \le I(X; Y)$ in nats.

    A lower bound in expectation for any batch; its variance grows like $e^{I(X; Y)}$.

    Args:
        dims: ``x_dim``, and ``y_dim`` or ``y_classes``.
        pairs: ``"all"``, ``"batch"`` (that of ``preset="paper"``) or ``"shuffled"``.
        preset: ``"default"`` or ``"paper"``.
        options: Further options of ``Contrastive``.

    Example:
        >>> x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
        >>> NWJ(3, 3).initialize(x, x).pointwise(x, x).shape
        torch.Size([64])
    """

    facts = Facts("gradient ascent on the bound", "all pairs of the batch", "N, in blocks", "Nguyen et al. 2010")

    def __init__(self, *dims: Any, pairs: str | None = None, preset: str = "default", **options: Any) -> None:
        pairs = NWJ_PAIRS.get(preset, "all") if pairs is None else pairs
        super().__init__(*dims, pairs=pairs, preset=preset, **options)

    def _bound(self, joint: Tensor, negative: Tensor, y: Tensor) -> Tensor:
        return bounds.nwj(joint, negative)


@final
class TUBA(Contrastive):
    r"""The bound of Poole et al. (2019): $1 + \mathbb E[f - a(y)] - \mathbb E[e^{f - a(y)}] \le I(X; Y)$ in nats.

    The baseline $a(y)$ is learned; where it is 1 the bound is NWJ's. A lower bound in expectation for any batch.

    Args:
        dims: ``x_dim``, and ``y_dim`` or ``y_classes``.
        hidden: Width of the critic's hidden layers, and of the baseline's one.
        activation: Class of the activation module of critic and baseline.
        layer_norm: Whether critic and baseline have LayerNorms, as ``MLP`` takes it.
        preset: ``"default"`` (128 wide), or ``"paper"``: a linear baseline, and 40 wide, chosen to come near the
            published values with Adam at 0.0005 (at 0.001 bursts reach the last level). Those exceed log N, which
            the public code, 15 wide with all pairs of the batch, cannot.
        options: Further options of ``Contrastive``.

    Example:
        >>> x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
        >>> TUBA(3, 3).initialize(x, x).pointwise(x, x).shape
        torch.Size([64])
    """

    facts = Facts("gradient ascent on the bound", "all pairs of the batch", "N, in blocks", "Poole et al. 2019")

    def __init__(
        self,
        *dims: Any,
        hidden: int | None = None,
        activation: Activation = nn.ReLU,
        layer_norm: bool = False,
        preset: str = "default",
        **options: Any,
    ) -> None:
        hidden = TUBA_HIDDEN.get(preset) if hidden is None else hidden
        network: dict[str, Any] = {"activation": activation, "layer_norm": layer_norm}
        super().__init__(*dims, **options | network | {"hidden": hidden, "preset": preset})
        self.baseline = MLP(self.y_features, 1, () if preset == "paper" else (self.hidden,), **network)

    def _bound(self, joint: Tensor, negative: Tensor, y: Tensor) -> Tensor:
        return bounds.tuba(joint, negative, self.baseline(y).squeeze(-1))


@final
class InfoNCE(Contrastive):
    r"""Which x belongs to $y_j$ (van den Oord et al., 2018).

    $\mathbb E[f(x_j, y_j) - \log \frac 1N \sum_i e^{f(x_i, y_j)}] \le I(X; Y)$ in nats: a lower bound in expectation
    for any batch, and never more than $\log N$. Under ``preset="paper"`` the score goes through softplus.

    Args:
        dims: ``x_dim``, and ``y_dim`` or ``y_classes``.
        options: Further options of ``Contrastive``, but for ``pairs``, which is ``"batch"``.

    Example:
        >>> x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
        >>> InfoNCE(3, 3).initialize(x, x).pointwise(x, x).shape
        torch.Size([64])
    """

    facts = Facts("gradient ascent on the bound", "all pairs of the batch", "N, in blocks", "van den Oord et al. 2018")

    def __init__(self, *dims: Any, **options: Any) -> None:
        super().__init__(*dims, pairs="batch", **options)

    def _output(self, published: bool) -> nn.Module:
        return nn.Softplus() if published else nn.Identity()

    def _bound(self, joint: Tensor, negative: Tensor, y: Tensor) -> Tensor:
        return bounds.info_nce(joint, negative)


@final
class SMILE(Contrastive):
    r"""The Donsker-Varadhan value with clipped negatives (Song & Ermon, 2020), in nats.

    $\mathbb E_{p(x,y)}[f] - \log \mathbb E_{p(x)p(y)}[\operatorname{clip}(e^f, e^{-\tau}, e^\tau)]$. Clipping trades
    variance for bias, so it bounds nothing. ``loss`` trains the critic towards the log-density ratio by another
    objective, as published; ``forward`` has the gradient of its value.

    Args:
        dims: ``x_dim``, and ``y_dim`` or ``y_classes``.
        tau: Where the scores of the negatives are clipped, in nats.
        gradient: What the critic learns by: ``"js"``, the Jensen-Shannon objective, or ``"nwj"``, the NWJ bound (with
            its constant moved, so that the best score is the log-density ratio and not one more).
        options: Further options of ``Contrastive``, but for ``pairs``, which is ``"all"``.

    Example:
        >>> x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
        >>> SMILE(3, 3, tau=1.0).initialize(x, x).pointwise(x, x).shape
        torch.Size([64])
    """

    bound = None
    facts = Facts("Jensen-Shannon or NWJ", "all pairs of the batch", "N, in blocks", "Song & Ermon 2020")

    def __init__(self, *dims: Any, tau: float = 5.0, gradient: str = "js", **options: Any) -> None:
        super().__init__(*dims, pairs="all", **options)
        one_of("gradient", gradient, ("js", "nwj"))
        if not tau > 0:
            raise ValueError(f"tau is {tau}; expected a positive number of nats, infinity for no clipping")
        self.tau, self.gradient = tau, gradient

    def _negative(self, x: Tensor, y: Tensor) -> Tensor:
        def clipped(block: Tensor, first: int) -> Tensor:
            return bounds.log_mean_exp(bounds.without(block.clamp(-self.tau, self.tau), first), len(x) - 1)

        return self.critic.columns(x, y, clipped)

    def _bound(self, joint: Tensor, negative: Tensor, y: Tensor) -> Tensor:
        return bounds.donsker_varadhan(joint, negative)

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        y = self._encoded(x, y)
        joint = self.critic(x, y)
        if self.gradient == "js":
            return -bounds.jensen_shannon(joint, self._reduced(x, y, bounds.mean_softplus)).mean()
        negative = self._reduced(x, y, bounds.log_mean_exp)  # one more: largest where the score is the ratio's log
        return -bounds.nwj(joint + 1, negative + 1).mean()
