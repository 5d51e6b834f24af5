r"""Differences of entropies: $I(X; Y) = h(Y) - h(Y \mid X)$ with a density for each (`eq:MI`).

Marginal and conditional are densities of one family behind one map of the target, so that the marginal can do what the
conditional can, and no information is invented.
"""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, final

import torch
from torch import Tensor, nn

from infoknife.coordinates import Features, Identity, RankNormal, Regression, Transform, forget
from infoknife.densities import KNIFE, Autoregressive, Density, Gaussian, Logistic, Schraudolph
from infoknife.densities.autoregressive import ColumnKernels
from infoknife.densities.base import generator_of
from infoknife.distributed import batch_mean
from infoknife.estimators.base import Facts, MutualInformation
from infoknife.inputs import Remembered, check_number, one_of
from infoknife.mixtures import fit_mixture

DENSITIES: dict[str, Callable[..., Density]] = {
    "autoregressive": Autoregressive,
    "knife": KNIFE,
    "doe": Gaussian,
    "doe-logistic": Logistic,
    "schraudolph": Schraudolph,
}
LIKELIHOOD = "likelihood of each entropy"
TRIAL_ROWS = 2048  # rows of the short fits that choose a side; enough to see which is simpler
TRIAL_STEPS = 200  # of them, of Adam at
TRIAL_RATE = 1e-2
TRIAL_KERNELS = 32  # of the mixture that says how much a marginal has to learn


class EntropyPair(nn.Module, ABC):
    """The densities of a target with and without a condition, behind one map of the target, normal by rank or none."""

    rate = 1e-3  # learning rate for Adam
    averaged = False  # whether ``fit`` ends with averages of the parameters
    alike = False  # whether both get the same wrong, so that a term below zero is noise

    def __init__(self, dim: int, ranks: bool) -> None:
        super().__init__()
        self.map: Transform = RankNormal(dim) if ranks else Identity(dim)

    @abstractmethod
    def _log_probs(self, t: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        """Log-densities (N, k) of the mapped target with and without the condition, in k terms of the chain rule."""

    @abstractmethod
    def _initialize(self, t: Tensor, condition: Tensor, generator: torch.Generator) -> None:
        """Start from the mapped target."""

    @abstractmethod
    def _observe(self, t: Tensor, condition: Tensor) -> None:
        """Follow the mapped target."""

    def log_probs(self, target: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        r"""Log-densities (N, k) of the target with and without the condition, in k terms $t_j$ given $t_{<j}$."""
        t, log_det = self.map(target)
        conditional, marginal = self._log_probs(t, condition)
        log_det = (log_det / conditional.shape[1]).view(-1, 1)
        return conditional + log_det, marginal + log_det

    def initialize(self, target: Tensor, condition: Tensor, generator: torch.Generator) -> None:
        """Start map and densities."""
        forget(self)
        self.map.observe(target)
        self._initialize(self.map(target)[0], condition, generator)

    def observe(self, target: Tensor, condition: Tensor) -> None:
        """Let map and coordinates follow a fresh batch."""
        self.map.observe(target)
        self._observe(self.map(target)[0], condition)


@final
class OneNetwork(EntropyPair):
    r"""KNIFE by the chain rule for both: the marginal is the conditional with its view of the condition switched off.

    The target is whitened in closed form, and turned by a rotation that is learned: kernels of one coordinate follow
    edges and modes along an axis, whatever columns the data came in. Then every coordinate, less a linear regression
    on the condition and on those before it, has kernels as in ``Autoregressive``. So the terms with and without the
    condition are of the same variables, and the mean of their difference is $I(X; t_j \mid t_{<j})$.
    What both get wrong cancels, and an encoder has little to gain from moving rows to where only one of them is wrong.
    """

    rate = 5e-3  # what is steep is learned fast, at the price of noise,
    averaged = True  # which averages take out
    alike = True

    def __init__(self, dim: int, given_dim: int, ranks: bool, *, components: int = 16, hidden: int = 64) -> None:
        super().__init__(dim, ranks)
        self.features = Features(given_dim)
        self.regression = Regression(dim, self.features.out, self.features.out // given_dim)
        self.columns = ColumnKernels(dim, components, self.features.out + 1, hidden, sets=2)
        self.turn = nn.Parameter(torch.zeros(dim, dim))

    def _log_probs(self, t: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        v = self.features(condition.to(t.dtype))
        (u, slopes), (u_alone, slopes_alone) = self.regression.both(t, v, self._rotation(t))
        context = torch.cat([v, torch.ones_like(v[:, :1])], 1)
        context = torch.cat([context, torch.zeros_like(context)])
        sets = torch.eye(2).to(t).repeat_interleave(len(t), 0)
        logs = self.columns.log_prob(torch.cat([u, u_alone]), context, sets).view(2, len(t), -1)
        return logs[0] + slopes, logs[1] + slopes_alone

    def _rotation(self, like: Tensor) -> Tensor:
        """The rotation (dim, dim), by Cayley; a step of its parameters turns by about the learning rate in any dim."""
        half = (self.turn - self.turn.T).to(like.dtype) / (2 * len(self.turn))
        eye = torch.eye(len(half)).to(half)
        return torch.linalg.solve(eye - half, eye + half)

    def _initialize(self, t: Tensor, condition: Tensor, generator: torch.Generator) -> None:
        self._observe(t, condition)
        self.turn.zero_()
        (u, _), (u_alone, _) = self.regression.both(t, self.features(condition.to(t.dtype)), self._rotation(t))
        self.columns.start([u, u_alone], generator_of(seed_from(generator)))

    def _observe(self, t: Tensor, condition: Tensor) -> None:
        self.features.observe(condition)
        self.regression.observe(t, self.features(condition.to(t.dtype)))


@final
class TwoDensities(EntropyPair):
    """A density of its own for each, of one family."""

    def __init__(self, marginal: Density, conditional: Density, ranks: bool) -> None:
        super().__init__(marginal.dim, ranks)
        self.marginal, self.conditional = marginal, conditional

    def _log_probs(self, t: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        return self.conditional.evaluate(t, condition)[:, None], self.marginal.evaluate(t, None)[:, None]

    def _initialize(self, t: Tensor, condition: Tensor, generator: torch.Generator) -> None:
        self.marginal.initialize(t, seed=seed_from(generator))
        self.conditional.initialize(t, condition, seed=seed_from(generator))

    def _observe(self, t: Tensor, condition: Tensor) -> None:
        self.marginal.observe(t)
        self.conditional.observe(t, condition)


@final
class Difference(MutualInformation):
    r"""$\hat I(X; Y) = \hat h(Y) - \hat h(Y \mid X)$ for continuous variables (`eq:MI`), or the sides exchanged.

    The default form is KNIFE by the chain rule: one-dimensional mixtures whose weights, places and scales move with the
    coordinates before and with the condition (``Autoregressive``), on what a linear regression leaves, with the target
    made normal by rank. What is linear is in closed form and follows a moving encoder at once; what is not is learned.
    Each density learns by its own likelihood. A difference of two upper bounds is no bound.

    Args:
        x_dim: Dimension of x, and ``y_dim`` that of y.
        density: ``"autoregressive"``, ``"knife"`` (mixtures of full kernels), ``"doe"`` (Gaussian), ``"doe-logistic"``
            or ``"schraudolph"``.
        given: The side that is conditioned on, ``"x"`` or ``"y"``. If not given, ``initialize`` makes a short fit of
            both, and the one is taken that tells more about held-out pairs. It is ``"x"`` unless the other is surely
            better: an encoder of x is followed more steadily where x is the condition.
        ranks: Whether the target is made normal by rank first, which leaves the information as it is.
        marginal_rate: Learning rate of the marginal density in units of the conditional's (section A.3).
        conditional_options: Options of the conditional density alone, such as the width of its network.
        **options: Options of both densities.

    Examples:
        >>> x, noise = torch.randn(2, 5000, 4, generator=torch.Generator().manual_seed(0))
        >>> y = x + noise
        >>> estimator = Difference(4, 4, given="x").initialize(x, y, seed=0)
        >>> round(estimator(x, y).item(), 1)  # 2 log 2 = 1.39 nats
        1.4
    """

    bound = None
    given_y = Remembered("side")
    facts = Facts(LIKELIHOOD, "none", "N d K", "Pichler et al. 2022, eq:MI; McAllester & Stratos 2020")

    def __init__(
        self,
        x_dim: int,
        y_dim: int | None = None,
        *,
        density: str = "autoregressive",
        given: str | None = None,
        ranks: bool = True,
        marginal_rate: float = 1.0,
        conditional_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(x_dim, y_dim, standardize=False)
        one_of("density", density, tuple(DENSITIES))
        assert y_dim is not None
        if given is not None:
            one_of("given", given, ("x", "y"))
        self.marginal_rate = check_number("marginal_rate", marginal_rate, above=True)
        make, own = DENSITIES[density], options | (conditional_options or {})
        self.sides = nn.ModuleDict()
        for side, dim, given_dim in (("x", y_dim, x_dim), ("y", x_dim, y_dim)):
            if given not in (None, side):
                continue
            if make is Autoregressive:
                self.sides[side] = OneNetwork(dim, given_dim, ranks, **options)
            else:
                self.sides[side] = TwoDensities(make(dim, **options), make(dim, given_dim=given_dim, **own), ranks)
        self.register_buffer("side", torch.tensor(given == "y"))
        self.rate, self.averaged = self._pair.rate, self._pair.averaged

    def parameter_groups(self, lr: float) -> list[dict[str, Any]]:
        """Return one group for each density: the marginal learns at ``marginal_rate`` times ``lr``."""
        marginals = [pair.marginal for pair in self._pairs().values() if isinstance(pair, TwoDensities)]
        theirs = [p for marginal in marginals for p in marginal.parameters()]
        others = [p for p in self.parameters() if p not in set(theirs)]
        groups = ({"params": others, "lr": lr}, {"params": theirs, "lr": lr * self.marginal_rate})
        return [group for group in groups if group["params"]]

    @property
    def given(self) -> str:
        """The side that is conditioned on."""
        return "y" if self.given_y else "x"

    def _pairs(self) -> dict[str, EntropyPair]:
        return {side: pair for side, pair in self.sides.items() if isinstance(pair, EntropyPair)}

    @property
    def _pair(self) -> EntropyPair:
        return self._pairs()[self.given]

    def _ordered(self, x: Tensor, y: Tensor, given: str | None = None) -> tuple[Tensor, Tensor]:
        """Target and condition."""
        return (y, x) if (given or self.given) == "x" else (x, y)

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return self._terms(x, y).sum(1)

    def _terms(self, x: Tensor, y: Tensor) -> Tensor:
        """Return every row's part (N, k) of the terms of the chain rule, each of which is an information."""
        conditional, marginal = self._pair.log_probs(*self._ordered(x, y))
        return conditional - marginal

    def _penalty(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the sum of the terms' means, those that are positive where one network has both densities.

        No information is negative: what a batch finds below zero is then the estimator's error, and an encoder that
        could lower it further would be moved by nothing else.
        """
        terms = batch_mean(self._terms(x, y))
        return terms.clamp_min(0.0).sum() if self._pair.alike else terms.sum()

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        conditional, marginal = self._pair.log_probs(*self._ordered(x, y))
        return -batch_mean((conditional + marginal).sum(1))

    def _observe(self, x: Tensor, y: Tensor) -> None:
        self._pair.observe(*self._ordered(x, y))

    def _initialize(self, x: Tensor, y: Tensor, generator: torch.Generator) -> None:
        if len(self.sides) > 1:  # with a generator of its own: what the choice draws depends on the data
            self.given_y = self._better_side(x, y, generator_of(seed_from(generator))) == "y"
        self._pair.initialize(*self._ordered(x, y), generator)

    def _better_side(self, x: Tensor, y: Tensor, generator: torch.Generator) -> str:
        r"""The side that held-out pairs say is better; "x" unless the other is surely better.

        Given x, the value is too large by what the density of y misses, and too small by what that of y given x misses.
        So the better side is the one that tells more after a short fit, with the marginal that is there by then, or
        with a mixture of kernels in its place where that is the better density.
        """
        order = torch.randperm(len(x), generator=generator)[:TRIAL_ROWS].to(x.device)
        held, train = order[: len(order) // 4], order[len(order) // 4 :]
        if len(held) < 2:
            return "x"
        told = {}
        for side, pair in self._pairs().items():
            trial, (target, condition) = copy.deepcopy(pair), self._ordered(x, y, side)
            _short_fit(trial, target[train], condition[train], generator)
            conditional, marginal = (terms.sum(1) for terms in trial.log_probs(target[held], condition[held]))
            mixture = _mixture_log_prob(trial.map, target[train], target[held], generator)
            told[side] = conditional - (mixture if mixture.mean() > marginal.mean() else marginal)
        return "y" if _surely(told["y"] - told["x"]) else "x"


@final
class JointDifference(MutualInformation):
    r"""$\hat I(X; Y) = \hat h(X) + \hat h(Y) - \hat h(X, Y)$ with a density for each of the three.

    They are of one kind and learn each by its own likelihood: how the paper ran the first two rows of figure 3, with
    21 kernels. It stays apart from ``Difference`` as it has no conditional. A difference of upper bounds is no bound.

    Args:
        x_dim: Dimension of x, and ``y_dim`` that of y.
        density: A density as ``Difference`` takes it.
        ranks: Whether x and y are made normal by rank first.
        **options: Options of the densities.

    Examples:
        >>> x, noise = torch.randn(2, 5000, 2, generator=torch.Generator().manual_seed(0))
        >>> estimator = JointDifference(2, 2, components=4).initialize(x, x + noise, seed=0)
        >>> round(estimator(x, x + noise).item(), 1)  # log 2 nats
        0.7
    """

    bound = None
    facts = Facts(LIKELIHOOD, "none", "N M (d_x + d_y)", "Pichler et al. 2022, figure 3")

    def __init__(
        self, x_dim: int, y_dim: int | None = None, *, density: str = "knife", ranks: bool = True, **options: Any
    ) -> None:
        super().__init__(x_dim, y_dim, standardize=False)
        one_of("density", density, tuple(DENSITIES))
        assert y_dim is not None
        make = DENSITIES[density]
        self.x_map: Transform = RankNormal(x_dim) if ranks else Identity(x_dim)
        self.y_map: Transform = RankNormal(y_dim) if ranks else Identity(y_dim)
        self.x_density, self.y_density = make(x_dim, **options), make(y_dim, **options)
        self.joint = make(x_dim + y_dim, **options)

    def _parts(self, x: Tensor, y: Tensor) -> tuple[tuple[Density, Tensor], ...]:
        """Each density with its rows, x and y mapped."""
        u, v = self.x_map(x)[0], self.y_map(y)[0]
        return (self.x_density, u), (self.y_density, v), (self.joint, torch.cat([u, v], -1))

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        of_x, of_y, of_both = (density.evaluate(rows, None) for density, rows in self._parts(x, y))
        return of_both - of_x - of_y

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        log_det = self.x_map(x)[1] + self.y_map(y)[1]
        logs = [density.evaluate(rows, None) for density, rows in self._parts(x, y)]
        return -batch_mean(sum(logs, torch.zeros_like(logs[0])) + 2 * log_det)

    def _observe(self, x: Tensor, y: Tensor) -> None:
        self.x_map.observe(x)
        self.y_map.observe(y)
        for density, rows in self._parts(x, y):
            density.observe(rows)

    def _initialize(self, x: Tensor, y: Tensor, generator: torch.Generator) -> None:
        self.x_map.initialize(x)
        self.y_map.initialize(y)
        for density, rows in self._parts(x, y):
            density.initialize(rows, seed=seed_from(generator))


def seed_from(generator: torch.Generator) -> int:
    """Draw the seed of a part."""
    return int(torch.randint(2**62, (), generator=generator))


def _surely(x: Tensor) -> bool:
    """Whether the mean of independent numbers (N,) is above zero, by three standard errors."""
    return bool(x.mean() > 3 * x.std() / math.sqrt(len(x)))


def _mixture_log_prob(first: Transform, train: Tensor, held: Tensor, generator: torch.Generator) -> Tensor:
    """Log-density (N,) of held-out rows by a mixture that is fitted to others behind a map."""
    (t, _), (h, log_det) = first(train), first(held)
    whiten = Regression(first.dim).to(train.dtype).initialize(t)
    u, (v, log_scale) = whiten(t)[0], whiten(h)
    mixture = fit_mixture(u.float(), TRIAL_KERNELS, generator, patience=math.inf)
    return mixture.log_prob(v.float()).to(v) + log_scale + log_det


def _short_fit(pair: EntropyPair, target: Tensor, condition: Tensor, generator: torch.Generator) -> None:
    """Start a pair of densities from rows, then a few steps on batches of them."""
    pair.initialize(target, condition, generator)
    batches = generator_of(seed_from(generator))
    optimizer = torch.optim.Adam(pair.parameters(), lr=TRIAL_RATE)
    with torch.enable_grad():
        for _ in range(TRIAL_STEPS):
            rows = torch.randint(len(target), (128,), generator=batches).to(target.device)
            optimizer.zero_grad()
            conditional, marginal = pair.log_probs(target[rows], condition[rows])
            (-(conditional + marginal).sum(1).mean()).backward()
            optimizer.step()
