"""The estimator's optimiser: made, checked, and made to forget."""

import functools
from typing import Any

import pytest
import torch
from torch import nn

from infoknife import KNIFE, Regularizer, mi
from infoknife.densities import Parzen
from infoknife.regularizer.optimizers import forget, make


def test_adam_by_default() -> None:
    knife = KNIFE(2, 4)
    optimizer = make(knife, None, None, "alternate")
    assert type(optimizer) is torch.optim.Adam
    assert [group["lr"] for group in optimizer.param_groups] == [KNIFE.rate] == [0.01]
    assert {id(p) for group in optimizer.param_groups for p in group["params"]} == {id(p) for p in knife.parameters()}


def test_groups_with_rates_of_their_own() -> None:
    estimator = mi("knife", 2, 2, preset="paper", components=3, marginal_rate=2.0)
    optimizer = make(estimator, None, 0.01, "alternate")
    assert optimizer is not None
    assert {group["lr"] for group in optimizer.param_groups} == {0.01, 0.02}
    assert sum(len(group["params"]) for group in optimizer.param_groups) == len(list(estimator.parameters()))


def test_classes_and_functions_that_make_one() -> None:
    knife = KNIFE(2, 4)
    assert type(make(knife, torch.optim.SGD, 0.1, "alternate")) is torch.optim.SGD
    optimizer = make(knife, functools.partial(torch.optim.Adam, betas=(0.5, 0.9)), None, "alternate")
    assert optimizer is not None
    assert optimizer.param_groups[0]["betas"] == (0.5, 0.9)
    assert optimizer.param_groups[0]["lr"] == KNIFE.rate


def test_a_built_one_is_taken_as_it_is() -> None:
    knife = KNIFE(2, 4)
    optimizer = torch.optim.SGD(knife.parameters(), 0.1)
    assert make(knife, optimizer, None, "alternate") is optimizer


@pytest.mark.parametrize("mode", ["alternate", "joint"])
def test_nothing_to_move(mode: str) -> None:
    assert make(Parzen(2), None, None, mode) is None


def test_foreign_parameters() -> None:
    knife, encoder = KNIFE(2, 4), nn.Linear(2, 2)
    optimizer = torch.optim.Adam([*knife.parameters(), *encoder.parameters()])
    with pytest.raises(ValueError, match=r"optimizer holds 2 parameters that are not the estimator's.*mode='joint'"):
        Regularizer(knife, optimizer=optimizer)


def test_a_rate_beside_a_built_one() -> None:
    knife = KNIFE(2, 4)
    with pytest.raises(ValueError, match=r"lr is 0.1 beside a built optimizer"):
        Regularizer(knife, optimizer=torch.optim.Adam(knife.parameters()), lr=0.1)


@pytest.mark.parametrize("options", [{"lr": 0.1}, {"optimizer": torch.optim.Adam}])
def test_joint_mode_has_none_of_its_own(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"optimizer or lr is set with mode='joint'.*mode='alternate'"):
        Regularizer(KNIFE(2, 4), mode="joint", **options)


@pytest.mark.parametrize("lr", [0, -1.0, float("nan")])
def test_rates_are_positive(lr: float) -> None:
    with pytest.raises(ValueError, match=r"lr is .*expected a finite number above 0"):
        Regularizer(KNIFE(2, 4), lr=lr)


@pytest.mark.parametrize("optimizer", ["adam", 3])
def test_an_optimiser_of_another_kind(optimizer: Any) -> None:
    with pytest.raises(TypeError, match=r"optimizer is .*expected a class such as torch.optim.Adam"):
        Regularizer(KNIFE(2, 4), optimizer=optimizer)


@pytest.mark.parametrize(
    "kind", [torch.optim.Adam, functools.partial(torch.optim.SGD, momentum=0.9), torch.optim.RMSprop]
)
def test_forgetting_rows(kind: Any) -> None:
    parameter = nn.Parameter(torch.ones(4, 3))
    optimizer = kind([parameter], lr=0.1)
    parameter.square().sum().backward()
    optimizer.step()
    before = {name: value.clone() for name, value in optimizer.state[parameter].items() if value is not None}
    forget(optimizer, parameter, torch.tensor([1, 3]))
    rows = 0
    for name, value in before.items():
        after = optimizer.state[parameter][name]
        if value.shape == parameter.shape:
            rows += 1
            assert bool((value != 0).all())
            assert not bool(after[[1, 3]].any())
            assert torch.equal(after[[0, 2]], value[[0, 2]])
        else:
            assert torch.equal(after, value)
    assert rows > 0


def test_nothing_to_forget() -> None:
    parameter = nn.Parameter(torch.ones(4))
    forget(None, parameter, torch.tensor([0]))
    optimizer = torch.optim.Adam([parameter])
    forget(optimizer, parameter, torch.tensor([0]))
    assert parameter not in optimizer.state
