"""The conformance suite catches what it is there for: every kind of mistake by the name of its check."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from infoknife import Density, Gaussian, MutualInformation
from infoknife.coordinates import Identity, Standardize
from infoknife.estimators.base import Facts
from infoknife.testing import DENSITY_CHECKS, ESTIMATOR_CHECKS, check_density, check_estimator


class Normal(Density):
    """A normal with independent coordinates: right, and what the wrong ones below are made from."""

    moved: Tensor

    def __init__(self, dim: int = 2, given_classes: int | None = None) -> None:
        super().__init__(dim, None, given_classes, Standardize(dim))
        self.means = nn.Parameter(torch.zeros(given_classes or 1, dim))
        self.log_scales = nn.Parameter(torch.zeros(given_classes or 1, dim))
        self.register_buffer("moved", torch.zeros(()))

    def _log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        rows = torch.zeros(len(u), dtype=torch.long) if given is None else given
        log_scales = self.log_scales.to(u.dtype)[rows]
        z = (u - self.means.to(u.dtype)[rows]) * (-log_scales).exp()
        return (-0.5 * z * z - log_scales - 0.5 * math.log(2 * math.pi)).sum(-1)

    def _sample(self, n: int, given: Tensor | None, generator: torch.Generator) -> Tensor:
        rows = torch.zeros(n, dtype=torch.long) if given is None else given
        noise = torch.randn(n, self.dim, generator=generator, dtype=self.means.dtype)
        return self.means[rows] + self.log_scales[rows].exp() * noise

    def _initialize(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        for label in range(len(self.means)):
            own = u if given is None or int((given == label).sum()) < 2 else u[given == label]
            self.means[label], self.log_scales[label] = own.mean(0), own.std(0).clamp_min(1e-3).log()


class Moving(Normal):
    def log_prob(self, x: Tensor, given: Tensor | None = None) -> Tensor:
        if self.training:
            self.moved = self.moved + 1
        return super().log_prob(x, given)


class Column(Normal):
    def log_prob(self, x: Tensor, given: Tensor | None = None) -> Tensor:
        return super().log_prob(x, given).unsqueeze(-1)


class Double(Normal):
    def log_prob(self, x: Tensor, given: Tensor | None = None) -> Tensor:
        return super().log_prob(x, given).double()


class Cut(Normal):
    def log_prob(self, x: Tensor, given: Tensor | None = None) -> Tensor:
        return super().log_prob(x.detach(), given)


class Bent(Normal):
    """A gradient that is not the derivative."""

    def _log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        return super()._log_prob(u + u - u.detach(), given)


class Batch(Normal):
    def _log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        return super()._log_prob(u - u.mean(0), given)


class Bits(Normal):
    def forward(self, x: Tensor, given: Tensor | None = None) -> Tensor:
        return super().forward(x, given) / math.log(2)


class Heavy(Normal):
    def _log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        return super()._log_prob(u, given) + 0.2


class Narrow(Normal):
    def _sample(self, n: int, given: Tensor | None, generator: torch.Generator) -> Tensor:
        return 0.7 * super()._sample(n, given, generator)


class Raw(Normal):
    def __init__(self) -> None:
        super().__init__()
        self.coordinates = Identity(2)

    def _initialize(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        """Stay where it is."""


class Random(Normal):
    def _initialize(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        self.means.copy_(torch.randn(self.means.shape))


class Forgetful(Normal):
    def __init__(self, *arguments: int) -> None:
        super().__init__(*arguments)
        self._non_persistent_buffers_set.add("started")


class Unregistered(Normal):
    """A number that no state dictionary has."""

    def _initialize(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        super()._initialize(u, given, generator)
        self.offset = 0.1

    def _sample(self, n: int, given: Tensor | None, generator: torch.Generator) -> Tensor:
        return super()._sample(n, given, generator) + getattr(self, "offset", 0.0)

    def _log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        return super()._log_prob(u - getattr(self, "offset", 0.0), given)


class Silent(Normal):
    def observe(self, x: Any, given: Any = None) -> None:
        """Do nothing."""


class Frozen(Normal):
    def observe(self, x: Any, given: Any = None) -> None:
        if not self.initialized:
            super().observe(x, given)


class Poisoned(Normal):
    def observe(self, x: Any, given: Any = None) -> None:
        super().observe(torch.nan_to_num(x), given)


class Trusting(Normal):
    def _checked(self, x: Any, given: Any) -> tuple[Tensor, Tensor | None]:
        return self.shaped(x, given)


class Unscaled(Normal):
    """Divides by the spread of a column, which may be zero."""

    def _initialize(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        super()._initialize(u, given, generator)
        self.log_scales.copy_(u.std(0).log())


class Dead(Normal):
    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(3))


class OneClass(Normal):
    def _log_prob_all(self, u: Tensor) -> Tensor:
        return super()._log_prob_all(u).flip(1)


WRONG_DENSITIES: list[tuple[Callable[[], Density], str, str]] = [
    (Moving, "purity", "forward of a new module in train mode changes state: buffer moved moved"),
    (Column, "shapes", r"before initialize has shape"),
    (Double, "dtypes", "of torch.float32 is torch.float64"),
    (Cut, "gradient_x", "forward in train mode does not reach x"),
    (Bent, "gradient_x", "finite differences have"),
    (Batch, "rows", "rows alone and rows in a batch differ"),
    (Bits, "mean", "forward in eval mode differs from"),
    (Heavy, "integral", "the mass of the density by an integral is 1.22"),
    (Narrow, "integral", "that of its samples"),
    (Raw, "units", "with x times 1e-06 the value moves by"),
    (Random, "seeds", "initialize with the same seed changes state: entry means moved"),
    (Forgetful, "state", "state_dict of a trained module loses initialized"),
    (Unregistered, "state", "log_prob of a trained module differs after state_dict"),
    (Silent, "first_observe", "the first observe does not start the module"),
    (Frozen, "follows", "observe moves nothing"),
    (Poisoned, "missing_rows", "more outliers|rows with NaN move the values"),
    (Trusting, "bad_input", "forward of x with NaN raises nothing; expected ValueError that names x"),
    (Unscaled, "constant", "a constant column of x, after initialize, .* is not finite"),
    (Dead, "learns", "the loss does not reach unused"),
    (lambda: OneClass(2, 3), "all_classes", "log_prob_all and log_prob of each class differ by up to"),
]


class Linear(MutualInformation):
    """I(X; Y) from a Gaussian of x given y and one of x alone."""

    bound = None
    facts = Facts("likelihood", "none", "N d", "none")
    moved: Tensor

    def __init__(self) -> None:
        super().__init__(2, 1)
        self.conditional, self.marginal = Gaussian(2, given_dim=1, hidden=8), Gaussian(2)
        self.register_buffer("moved", torch.zeros(()))

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return self.conditional.evaluate(x, y) - self.marginal.evaluate(x, None)

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        return -(self.conditional.evaluate(x, y) + self.marginal.evaluate(x, None)).mean()

    def _initialize(self, x: Tensor, y: Tensor, generator: torch.Generator) -> None:
        self.conditional.initialize(x, y, seed=1)
        self.marginal.initialize(x, seed=1)


class Leaking(Linear):
    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        return self._in_coordinates(self._loss, *self._checked(x, y))


class MovingLoss(Linear):
    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        self.moved = self.moved + 1
        return super()._loss(x, y)


class Unreached(Linear):
    def _value(self, x: Tensor, y: Tensor) -> Tensor:
        return super()._value(x, y.detach())


class Halved(Linear):
    def parameter_groups(self, lr: float) -> list[dict[str, Any]]:
        return [{"params": list(self.conditional.parameters()), "lr": lr}]


class Twice(Linear):
    def parameter_groups(self, lr: float) -> list[dict[str, Any]]:
        return [{"params": [*self.parameters(), *self.marginal.parameters()], "lr": lr}]


class Waiting(Linear):
    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        loss = super()._loss(x, y)
        return loss if loss.item() < 1e9 else loss / 2


class InUnits(Linear):
    def __init__(self) -> None:
        super().__init__()
        self.y_coordinates = None

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return super()._pointwise(x, y) + y.square().sum(-1)


class Misnamed(Linear):
    bound = "above"  # type: ignore[assignment]


class Noisy(Linear):
    def _value(self, x: Tensor, y: Tensor) -> Tensor:
        return super()._value(x, y) + torch.rand(())


WRONG_ESTIMATORS: list[tuple[Callable[[], MutualInformation], str, str]] = [
    (Leaking, "detached", "the gradient of loss reaches x"),
    (MovingLoss, "purity", "loss of a new module in train mode changes state: buffer moved moved"),
    (Unreached, "gradient_y", "forward in train mode does not reach y"),
    (Halved, "groups", "parameter_groups leaves out marginal.values"),
    (Twice, "groups", "parameter_groups has marginal.values twice"),
    (Waiting, "synchronisations", "wait 3 times for the device: .*item"),
    (InUnits, "units_y", "with y times 1e-06|with y times 1e"),
    (Misnamed, "bound", "bound is 'above'"),
    (Noisy, "purity", "forward of a new module differs from itself"),
    (Noisy, "seeds", "the global random state was used"),
]


def named(broken: tuple[Any, str, str]) -> str:
    return f"{getattr(broken[0], '__name__', '')} {broken[1]}"


@pytest.mark.parametrize("broken", WRONG_DENSITIES, ids=named)
def test_wrong_densities_are_caught(broken: tuple[Callable[[], Density], str, str]) -> None:
    make, name, found = broken
    with pytest.raises(AssertionError, match=f"^check_density, {name}: .*({found})"):
        check_density(make, checks=[name])
    with pytest.raises(AssertionError, match=r"^check_density, "):
        check_density(make)


@pytest.mark.parametrize("broken", WRONG_ESTIMATORS, ids=named)
def test_wrong_estimators_are_caught(broken: tuple[Callable[[], MutualInformation], str, str]) -> None:
    make, name, found = broken
    with pytest.raises(AssertionError, match=f"^check_estimator, {name}: .*({found})"):
        check_estimator(make, checks=[name])


def test_right_ones_pass() -> None:
    check_density(Normal)
    check_density(lambda: Normal(1, 3))
    check_estimator(Linear)


def test_names_of_checks() -> None:
    with pytest.raises(ValueError, match=r"^'unit' is not a check; expected some of shapes, "):
        check_density(Normal, checks=["unit"])
    with pytest.raises(ValueError, match=r"^'unit' is not a check"):
        check_estimator(Linear, skip=["unit"])
    check_density(Heavy, skip=["integral"])
    assert all(name.isidentifier() for name in (*DENSITY_CHECKS, *ESTIMATOR_CHECKS))


def test_the_global_random_state_stays() -> None:
    before = torch.get_rng_state()
    check_density(Normal, checks=["seeds", "samples", "units"])
    assert torch.equal(torch.get_rng_state(), before)
