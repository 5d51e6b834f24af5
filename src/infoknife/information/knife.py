r"""KNIFE's mutual information for two continuous variables: two experts with linear chains.

The *raw* expert works in standardised coordinates; its innovations have one-dimensional KNIFE densities, and a small
network moves and scales them with the condition. The *normal* expert works in coordinates made normal by rank, with
Gaussian innovations. Both condition on raw and normal coordinates of the other variable. The experts are mixed with
running weights, the same in every entropy, so that the log-Jacobian of an expert's coordinates cancels.
"""

import math

import torch
from torch import Tensor, nn

from infoknife.densities.autoregressive import ColumnKernels
from infoknife.densities.base import check_count, one_of
from infoknife.information.base import Facts, MutualInformation
from infoknife.information.chain import Moments, factor_of, regression_of
from infoknife.inputs import is_functional
from infoknife.nn import MLP
from infoknife.transforms import Quantile, Standardize

__all__ = ["ChainKNIFE"]

PERIOD = 8  # batches between two solutions for the linear parts
WATCH = 8  # batches between two looks at how well the linear parts predict
TRUST = 0.25  # momentum of such a look
STILL = 0.01  # least trust in the network, from which it can come back
SHARPEST = 8.0  # logarithm of the largest scale that the network gives an innovation: one more row must not overflow
FAR = 10.0  # a raw condition counts up to so many standard deviations
ALIKE = 5e-3  # ridge of the difference of raw and normal slopes, whose columns are often alike
SIMPLER = 0.01  # nats a column by which learned kernels must be better than normal innovations, which have less noise
LEAST = 1e-3  # least weight of an expert, from which it can come back


class ChainKNIFE(MutualInformation):
    r"""$\hat I(X; Y) = \hat h(Y) - \hat h(Y \mid X)$, or with the sides exchanged (`eq:MI`), by the chain rule.

    A difference of two upper bounds is neither a lower nor an upper bound. Slopes and network count as far as batches
    that they have not learned from confirm them, so that with nothing to tell the value is about zero, and so is its
    gradient.

    Args:
        x_dim: Dimension of x.
        y_dim: Dimension of y.
        given: The side that is conditioned on, ``"x"`` or ``"y"``. The effect given the cause is the better density;
            for training an encoder with codes x of many dimensions ``"y"`` has the steadier gradient.
        components: Kernels of every one-dimensional density.
        hidden: Width of the network that moves the innovations with the condition; 0 for none.

    Example:
        >>> x, noise = torch.randn(2, 5000, 4, generator=torch.Generator().manual_seed(0))
        >>> y = (x + noise) ** 3
        >>> estimator = ChainKNIFE(4, 4).initialize(x, y, seed=0)
        >>> round(estimator(x, y).item(), 1)  # 2 log 2 = 1.39 nats
        1.4
    """

    bound = None
    facts = Facts("likelihood of each entropy", "none", "N d K", "Pichler et al. 2022, eq:MI, by the chain rule")

    gate: Tensor
    steps: Tensor
    linear: Tensor
    log_det: Tensor
    predictor: Tensor
    trust: Tensor
    applied: Tensor
    looks: Tensor

    def __init__(
        self, x_dim: int, y_dim: int | None = None, *, given: str = "x", components: int = 16, hidden: int = 64
    ) -> None:
        super().__init__(x_dim, y_dim)
        assert y_dim is not None
        one_of("given", given, ("x", "y"))
        check_count("components", components)
        self.given = given
        self.sizes = v, t = (x_dim, y_dim) if given == "x" else (y_dim, x_dim)  # the condition's, the target's
        self.x_transform, self.y_transform = Standardize(x_dim, momentum=0), Standardize(y_dim, momentum=0)
        self.ranks = Quantile(v + t, momentum=0.04)  # follows the data instead
        self.moments = Moments(2 * (v + t))
        self.kernels = ColumnKernels(2 * t, components)  # innovations given the condition, and without it
        self.network = _still(MLP(2 * v, 2 * t, (hidden,), nn.SiLU)) if hidden else None
        self.register_buffer("gate", torch.full((2,), 0.5))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.register_buffer("linear", torch.zeros(2 * (v + t), 4 * t))
        self.register_buffer("log_det", torch.zeros(4))  # raw with and without the condition, normal likewise
        self.register_buffer("predictor", torch.zeros(2 * v, 2 * t))  # of the targets in whitened coordinates
        self.register_buffer("applied", torch.ones(2 * t))  # trust in the slopes when they were last solved for
        parts = 4 if hidden else 2  # slopes of both experts, the network's moves and log-scales
        self.register_buffer("trust", torch.ones(parts))  # what part of their predictions fresh batches confirm
        self.register_buffer("looks", torch.zeros(2, parts))  # products of predictions with targets and themselves
        ChainKNIFE._solve(self)  # not a subclass's, which is not ready

    def hurry(self) -> None:
        """Let the moments count what they have seen as a few rows, so that new ones soon outweigh it."""
        self.moments.hurry()

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        conditional, marginal = self._experts(*self._columns(x, y))
        log_gate = self.gate.to(x.dtype).log().unsqueeze(-1)
        return torch.logsumexp(log_gate + conditional, 0) - torch.logsumexp(log_gate + marginal, 0)

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        w, log_dets = self._columns(x, y)
        conditional, marginal = self._experts(w, log_dets)
        if self.training and torch.is_grad_enabled() and not is_functional():
            self._follow(torch.cat(self._sides(x, y), 1), w, conditional.detach())
        return self._likelihood(conditional, marginal, w)

    def _likelihood(self, conditional: Tensor, marginal: Tensor, w: Tensor) -> Tensor:
        """What learns by gradient: the raw expert's densities. The normal expert is in closed form."""
        return -(conditional[0] + marginal[0]).mean()

    def _initialize(self, x: Tensor, y: Tensor, generator: torch.Generator) -> None:
        self.ranks.initialize(torch.cat(self._sides(x, y), 1))
        self.gate, self.steps = torch.full_like(self.gate, 0.5), torch.zeros_like(self.steps)
        self.trust, self.looks = torch.ones_like(self.trust), torch.zeros_like(self.looks)
        if self.network is not None:
            _still(self.network)
        w, log_dets = self._columns(x, y)
        self.moments.initialize(w)
        self._solve()
        self.kernels.initialize((w @ self.linear)[:, : 2 * self.sizes[1]])
        self._start(w, generator)
        for _ in range(5):
            self._weigh(self._experts(w, log_dets)[0], 1.0)

    def _start(self, w: Tensor, generator: torch.Generator) -> None:
        """Start what a subclass adds."""

    def _sides(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return (x, y) if self.given == "x" else (y, x)

    def _columns(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The condition, raw and normal, then the target (N, 2(v + t)); log-determinants (2, N) of its maps."""
        sides, v = torch.cat(self._sides(x, y), 1), self.sizes[0]
        raw, scale = self.ranks.standardize(sides)
        normal, slopes = self.ranks.map(sides)
        w = torch.cat([raw[:, :v].clamp(-FAR, FAR), normal[:, :v], raw[:, v:], normal[:, v:]], 1)
        log_det = slopes[:, v:].log().sum(1)
        return w, torch.stack([-scale[v:].log().sum().expand_as(log_det), log_det])

    def _follow(self, sides: Tensor, w: Tensor, conditional: Tensor) -> None:
        """Let everything in closed form follow a batch: the moments always, what costs more every few batches."""
        if int(self.steps) % WATCH == 0:
            self._look(w)
        self.moments.update(w)
        self.steps = self.steps + 1
        if int(self.steps) % PERIOD == 0:
            self.ranks.update(sides)
            self._solve()
            self._weigh(conditional, 0.01 * PERIOD)

    @torch.no_grad()
    def _look(self, w: Tensor) -> None:
        r"""Let the trust follow what a fresh batch confirms: $\alpha = \langle p, t\rangle / \langle p, p\rangle$.

        It is what James and Stein shrink predictions p of t by, measured. Slopes, and a network, that found nothing but
        the noise of the rows that they learned from count nothing.
        """
        v, t = self.sizes
        linear = self.linear.view(-1, 4, t)[:, ::2].reshape(-1, 2 * t)  # to the innovations of both experts
        p = w[:, : 2 * v] @ self.predictor.to(w.dtype)
        e = w @ linear.to(w.dtype)
        pairs = [(p, e + p * self.applied.to(w.dtype))]
        if self.network is not None:
            raw = e[:, :t]
            pairs.append((self.network(w[:, : 2 * v]), torch.cat([raw, (1 - raw * raw) / 2], 1)))  # moves, log-scales
        products = torch.cat([torch.stack([p * q, p * p]).view(2, -1, 2, t).sum((1, 3)) for p, q in pairs], 1) / len(w)
        momentum = max(TRUST, WATCH / (int(self.steps) + WATCH))
        self.looks = torch.lerp(self.looks, products.to(self.looks.dtype), momentum)
        products, squares = self.looks[0], self.looks[1].clamp_min(1e-12)
        stderr = (squares * TRUST / (2 * len(w))).sqrt()  # of the products, if nothing is predicted
        network = (products[2:] - stderr[2:]) / squares[2:]
        self.trust = torch.cat([(products / squares)[:2].clamp(0, 1), network.clamp(STILL, 1)])

    def _solve(self) -> None:
        """Take the chains' linear parts from the moments: all innovations are ``w @ linear``."""
        S, (v, t) = self.moments.matrix, self.sizes
        cross, own = S[: 2 * v, 2 * v :], S[2 * v :, 2 * v :]
        full = regression_of(S[: 2 * v, : 2 * v] + self._alike(S), cross)
        self.applied = trust = self.trust[:2].repeat_interleave(t)
        slope = full * trust
        rest = own - (2 - trust) * (cross.T @ slope)
        raw, normal = slice(0, t), slice(t, 2 * t)
        factor, self.log_det = factor_of(
            torch.stack([rest[raw, raw], own[raw, raw], rest[normal, normal], own[normal, normal]])
        )
        self.predictor = torch.cat([full[:, raw] @ factor[0].T, full[:, normal] @ factor[2].T], 1)
        linear = S.new_zeros(len(S), 4, t)
        linear[: 2 * v, 0] = -slope[:, raw] @ factor[0].T
        linear[: 2 * v, 2] = -slope[:, normal] @ factor[2].T
        linear[2 * v : 2 * v + t, :2] = factor[:2].permute(2, 0, 1)
        linear[2 * v + t :, 2:] = factor[2:].permute(2, 0, 1)
        self.linear = linear.view(len(S), 4 * t)

    def _alike(self, like: Tensor) -> Tensor:
        """A ridge for raw and normal slopes of a column that differ, which says nothing about their sum: (2v, 2v)."""
        eye = torch.eye(self.sizes[0]).to(like)
        return 0.5 * ALIKE * torch.cat([torch.cat([eye, -eye], 1), torch.cat([-eye, eye], 1)])

    def _experts(self, w: Tensor, log_dets: Tensor) -> tuple[Tensor, Tensor]:
        """Log-densities (2, N) of the target with and without the condition, by the raw and the normal expert."""
        e, m = w @ self.linear.to(w.dtype), 2 * self.sizes[1]
        both = torch.stack([self._raw(e[:, :m], w), self._normal(e[:, m:], w)])  # expert, condition, N
        return both[:, 0] + log_dets, both[:, 1] + log_dets

    def _raw(self, e: Tensor, w: Tensor) -> Tensor:
        """The raw expert's log-densities (2, N) with and without the condition, from its innovations (N, 2t)."""
        v, t = self.sizes
        log_det = self.log_det[:2].to(w.dtype).unsqueeze(-1)
        if self.network is None:
            return self.kernels(e).view(-1, 2, t).sum(-1).T + log_det
        moves = self.network(w[:, : 2 * v]).view(-1, 2, t) * self.trust[2:, None].to(w.dtype)
        move, log_scale = moves[:, 0], moves[:, 1].clamp(max=SHARPEST)
        q = self.kernels(torch.cat([(e[:, :t] - move) * log_scale.exp(), e[:, t:]], 1)).view(-1, 2, t).sum(-1).T
        return q + log_det + torch.stack([log_scale.sum(1), torch.zeros_like(q[0])])

    def _normal(self, e: Tensor, w: Tensor) -> Tensor:
        """The normal expert's log-densities (2, N) with and without the condition, in its coordinates."""
        t = self.sizes[1]
        square = (e * e).view(-1, 2, t).sum(-1).T
        return self.log_det[2:].to(w.dtype).unsqueeze(-1) - 0.5 * (square + t * math.log(2 * math.pi))

    def _weigh(self, conditional: Tensor, momentum: float) -> None:
        """Let the experts' weights follow their responsibilities, the simpler one a little before the other."""
        margin = conditional.new_tensor([[SIMPLER * self.sizes[1]], [0.0]])
        share = torch.softmax(self.gate.log().unsqueeze(-1) + conditional - margin, 0).mean(1).to(self.gate.dtype)
        gate = torch.lerp(self.gate, share, momentum).clamp_min(LEAST)
        self.gate = gate / gate.sum()


def _still(network: MLP) -> MLP:
    """Let a network start at zero."""
    for parameter in network[-1].parameters():
        nn.init.zeros_(parameter)
    return network
