"""What fit refuses, and what it says: every argument that cannot be, every loss that is not finite."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from infoknife.training import fit


class Gaussian(nn.Module):
    """A normal with learnt mean and log-scale; forward is the mean of -log_prob in nats."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.zeros((), dtype=torch.float64))
        self.log_scale = nn.Parameter(torch.zeros((), dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        z = (x - self.mean) * torch.exp(-self.log_scale)
        return 0.5 * z.square().mean() + self.log_scale + 0.5 * math.log(2 * math.pi)


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def parameters(module: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in module.parameters()]).clone()


class Breaking(Gaussian):
    """Breaks in its third step: the loss, or only its gradient."""

    def __init__(self, gradient: bool):
        super().__init__()
        self.gradient, self.calls = gradient, 0

    def forward(self, x: Tensor) -> Tensor:
        loss = super().forward(x)
        self.calls += 1
        if self.calls < 3:
            return loss
        zero = self.mean * 0
        return loss + (torch.sqrt(zero) if self.gradient else zero + math.inf)


@pytest.mark.parametrize("clip", [None, 1.0])
@pytest.mark.parametrize(("gradient", "what"), [(False, "the loss is inf"), (True, "the gradient of the loss")])
def test_a_loss_or_gradient_that_is_not_finite(gradient: bool, what: str, clip: float | None) -> None:
    module, seen = Breaking(gradient), []
    keep = [lambda step, loss, module: seen.append((loss, parameters(module)))]
    with pytest.raises(FloatingPointError, match=rf"{what}.* at step 3; the last finite loss was 0\.9") as error:
        fit(module, normal(10, 1) / 9, steps=9, callbacks=keep, clip=clip)
    assert all(word in str(error.value) for word in (str(seen[-1][0]), "lr", "clip=1.0", "duplicated rows"))
    assert torch.equal(parameters(module), seen[-1][1])
    assert not module.training


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps is 0; expected an integer"),
        ({"steps": 1.5}, r"steps is 1\.5; expected an integer"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"lr": 0.0}, r"lr is 0\.0; expected"),
        ({"lr": math.nan}, "lr is nan"),
        ({"clip": 0}, "clip is 0"),
        ({"clip": math.inf}, "clip is inf"),
        ({"average": 0}, "average is 0"),
        ({"average": 1.0}, r"average is 1\.0"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 0.5}, r"seed is 0\.5"),
        ({"validation": 0.01}, r"validation=0\.01 of 10 rows leaves none"),
        ({"validation": 0.5, "patience": 0}, "patience is 0"),
        ({"validation": 0.5, "validate_every": 0}, "validate_every is 0"),
        ({"patience": 3}, "patience is 3 without validation"),
        ({"validate_every": 3}, "validate_every is 3 without validation"),
        ({"schedule": lambda progress: -1.0}, r"schedule\(0\.0\) is -1\.0"),
    ],
)
def test_values_that_cannot_be(options: dict[str, Any], message: str) -> None:
    module = Gaussian()
    with pytest.raises(ValueError, match=message):
        fit(module, normal(10, 1), **({"steps": 1} | options))
    assert not parameters(module).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimizer": "adam"}, "optimizer is 'adam'; expected a class"),
        ({"schedule": "cosine"}, "schedule is 'cosine'; expected a function"),
        ({"validation": "x"}, "validation is a str"),
    ],
)
def test_kinds_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        fit(Gaussian(), normal(10, 1), steps=1, **options)


def test_modules_that_cannot_be_trained() -> None:
    x = normal(10, 1)
    with pytest.raises(TypeError, match="module is a str"):
        fit("module", x, steps=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="module Identity has no parameters"):
        fit(nn.Identity(), x, steps=1)
    with pytest.raises(ValueError, match="no parameter of module requires a gradient"):
        fit(Gaussian().requires_grad_(False), x, steps=1)
    with pytest.raises(ValueError, match=r"loss has shape \(10, 1\); expected a tensor with one number"):
        fit(nn.Linear(1, 1, dtype=torch.float64), x, steps=1)
    with pytest.raises(ValueError, match="loss has type tuple"):
        fit(nn.RNN(1, 1, dtype=torch.float64), x, steps=1)


def test_a_built_optimizer_must_be_this_modules_and_alone() -> None:
    module = Gaussian()
    with pytest.raises(ValueError, match=r"lr is 0\.1 beside a built optimizer"):
        fit(module, normal(10, 1), steps=1, lr=0.1, optimizer=torch.optim.SGD(module.parameters(), lr=1.0))
    with pytest.raises(ValueError, match="optimizer holds no parameter of module"):
        fit(module, normal(10, 1), steps=1, optimizer=torch.optim.SGD(Gaussian().parameters(), lr=1.0))


def test_errors_in_data_name_it() -> None:
    with pytest.raises(ValueError, match=r"data\[1\] has 9 rows; expected 10"):
        fit(Gaussian(), (normal(10, 2), normal(9)), steps=1)
    with pytest.raises(ValueError, match="data has NaN"):
        fit(Gaussian(), np.array([[np.nan]]), steps=1)
    with pytest.raises(TypeError, match="data is a int"):
        fit(Gaussian(), 3, steps=1)
