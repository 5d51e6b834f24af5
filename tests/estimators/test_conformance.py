"""What every estimator of mutual information does: shapes, where gradients go, precision, state, seeds, units."""

import copy
import io
import math
import pickle
from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pytest
import torch
from torch import Tensor, nn

from infoknife import fit
from infoknife.estimators import MutualInformation, names
from tests.estimators.conformance import ABSENT, CASES, EACH, START, Case

every = pytest.mark.parametrize("case", CASES, ids=str)
each = pytest.mark.parametrize("case", EACH, ids=str)


class Encoder(nn.Module):
    """Makes x, and y where it is continuous, from rows of them: what an outer loss trains."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.x = nn.Linear(case.x_dim, case.x_dim)
            self.y = nn.Identity() if case.y_dim is None else nn.Linear(case.y_dim, case.y_dim)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return self.x(x), self.y(y)


def state_of(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def same_state(module: nn.Module, before: dict[str, Tensor]) -> bool:
    after = module.state_dict()
    return after.keys() == before.keys() and all(
        torch.equal(value.nan_to_num(), before[name].nan_to_num()) for name, value in after.items()
    )


def learning(estimator: MutualInformation) -> list[tuple[str, nn.Parameter]]:
    return [(name, parameter) for name, parameter in estimator.named_parameters() if parameter.requires_grad]


def finite(*values: Tensor) -> bool:
    return all(bool(torch.isfinite(value).all()) for value in values)


def test_every_name_is_in_the_table() -> None:
    assert {case.name for case in CASES} == set(names())


@every
def test_shapes(case: Case) -> None:
    estimator, (x, y) = case.started(), case.data(40)
    assert case.y_classes is None or not bool((y == ABSENT).any())
    estimate, values, loss = estimator(x, y), estimator.pointwise(x, y), estimator.loss(x, y)
    assert estimate.shape == loss.shape == ()
    assert values.shape == (40,)
    assert finite(estimate, values, loss)
    assert estimator.bound in ("lower", "upper", None)


@each
def test_estimate_is_the_mean_of_its_values(case: Case) -> None:
    estimator, data = case.trained(case.started()).eval(), case.data(40)
    torch.testing.assert_close(estimator(*data), estimator.pointwise(*data).mean())


@every
def test_works_before_it_has_seen_data(case: Case) -> None:
    estimator, data = case.make(), case.data(40)
    assert not estimator.initialized
    assert finite(estimator(*data), estimator.pointwise(*data), estimator.loss(*data))
    assert finite(case.trained(estimator, 9 if case.name.startswith("knife") else 2)(*data))
    assert case.started().initialized


@every
def test_loss_reaches_the_parameters_and_never_the_encoder(case: Case) -> None:
    estimator, encoder = case.trained(case.started().train(), 2), Encoder(case)
    estimator.zero_grad()
    for seed in range(4):
        estimator.loss(*encoder(*case.data(seed=seed))).backward()
    assert all(parameter.grad is None for parameter in encoder.parameters())
    for name, parameter in learning(estimator):
        assert parameter.grad is not None, name
        assert finite(parameter.grad), name
        if (case.name, name) != ("infonce", "critic.rest.1.0.bias"):  # its value knows no constant
            assert bool((parameter.grad != 0).any()), name


@every
@pytest.mark.parametrize("training", [True, False])
def test_estimate_reaches_the_encoder(case: Case, training: bool) -> None:
    estimator, encoder = case.trained(case.started(), 3).train(training), Encoder(case)
    before = state_of(estimator)
    estimator(*encoder(*case.data())).backward()
    for name, parameter in encoder.named_parameters():
        if case.name in ("vub", "knife") and case.is_encoder and name.startswith("x"):
            continue  # a divergence knows the posterior alone
        assert parameter.grad is not None, name
        assert finite(parameter.grad), name
        assert bool((parameter.grad != 0).any()), name
    assert same_state(estimator, before)


@each
def test_a_frozen_estimator_still_reaches_the_encoder(case: Case) -> None:
    estimator, encoder = case.started().requires_grad_(False), Encoder(case)
    estimator(*encoder(*case.data())).backward()
    assert any(parameter.grad is not None for parameter in encoder.parameters())
    assert all(parameter.grad is None for parameter in estimator.parameters())


@each
def test_gradient_in_x_is_the_derivative(case: Case) -> None:
    estimator = case.trained(case.started(torch.double), 2).eval()
    x, y = case.data(40, dtype=torch.double)
    x.requires_grad_()
    ahead = torch.randn(x.shape, generator=torch.Generator().manual_seed(3), dtype=torch.double)
    (slope,) = torch.autograd.grad(estimator(x, y) + 0 * x.sum(), x)
    step = 1e-7
    with torch.no_grad():
        difference = (estimator(x + step * ahead, y) - estimator(x - step * ahead, y)) / (2 * step)
    assert float((slope * ahead).sum()) == pytest.approx(float(difference), rel=1e-4, abs=1e-6)


@each
def test_start_is_decided_by_the_seed(case: Case) -> None:
    data, before = case.data(START), torch.get_rng_state()
    one, two = (case.make().initialize(*data, seed=3).eval() for _ in range(2))
    assert torch.equal(one(*data), two(*data))
    assert same_state(one, state_of(two))
    assert torch.equal(torch.get_rng_state(), before)


@each
def test_a_second_start_forgets_the_data_of_the_first(case: Case) -> None:
    estimator, (x, y) = case.make(), case.data(START)
    shifted = y if case.y_dim is None or case.is_encoder else -3 * y
    estimator.initialize(3 * x + 1, shifted, seed=1).initialize(x, y, seed=0)
    torch.testing.assert_close(estimator.eval()(x, y), case.started().eval()(x, y), rtol=1e-4, atol=1e-5)


@each
@pytest.mark.parametrize("state", ["made", "trained", "double"])
def test_state_dict_round_trip(case: Case, state: str) -> None:
    dtype = torch.float64 if state == "double" else torch.float32
    estimator = case.make() if state == "made" else case.trained(case.started(dtype))
    fresh, file, data = case.make(seed=2).to(dtype).eval(), io.BytesIO(), case.data(dtype=dtype)
    torch.save(estimator.state_dict(), file)
    file.seek(0)
    fresh.load_state_dict(torch.load(file, weights_only=True))
    assert bool(fresh.initialized) == bool(estimator.initialized)
    assert torch.equal(fresh.pointwise(*data), estimator.eval().pointwise(*data))


@each
def test_training_goes_on_from_a_state(case: Case) -> None:
    estimator = case.trained(case.started(), 3)
    fresh = case.make(seed=2)
    fresh.load_state_dict(estimator.state_dict())
    losses = []
    for one in (estimator, fresh):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            losses.append([float(one.loss(*case.data(seed=seed)).detach()) for seed in range(6)])
    assert losses[0] == losses[1]


@each
def test_copies_and_pickles(case: Case) -> None:
    estimator, data = case.started().eval(), case.data()
    value = estimator(*data)
    for twin in (copy.deepcopy(estimator), pickle.loads(pickle.dumps(estimator))):
        assert torch.equal(twin(*data), value)
        case.trained(twin.train(), 2)
    assert torch.equal(estimator(*data), value)


@each
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_precision_in_is_precision_out(case: Case, dtype: torch.dtype) -> None:
    data = case.data(40, dtype=dtype)
    for estimator in (case.make(), case.started(), case.started(torch.double)):
        for _ in range(9 if case.name.startswith("knife") else 1):  # parts of KNIFE follow every few batches
            assert estimator.loss(*data).dtype == dtype
        assert estimator(*data).dtype == estimator.pointwise(*data).dtype == dtype
    assert all(parameter.dtype == dtype for parameter in case.started(dtype).parameters())


@each
def test_double_precision_agrees_with_single(case: Case) -> None:
    estimator = case.trained(case.started()).eval()
    single, double = (estimator.pointwise(*case.data(dtype=dtype)) for dtype in (torch.float32, torch.float64))
    torch.testing.assert_close(single.double(), double, rtol=1e-3, atol=1e-3)


@each
def test_y_may_have_another_precision_than_x(case: Case) -> None:
    x, y = case.data(START)
    other = y.double() if y.is_floating_point() else y.int()
    estimator = case.make().initialize(x, other, seed=0).eval()
    assert estimator(x, other).dtype == torch.float32
    torch.testing.assert_close(estimator(x, other), estimator(x, y))


@each
def test_half_precision_is_evaluated_in_single(case: Case) -> None:
    estimator, (x, y) = case.started(), case.data()
    x, y = x.bfloat16(), y.bfloat16() if y.is_floating_point() else y
    expected = copy.deepcopy(estimator).eval()(x.float(), y.float() if y.is_floating_point() else y)
    with torch.autocast("cpu", torch.bfloat16):
        loss = estimator.loss(x, y)
        value = copy.deepcopy(case.started()).eval()(x, y)
    loss.backward()
    assert loss.dtype == value.dtype == torch.float32
    assert torch.equal(value, expected)


@each
def test_autocast_does_not_reach_the_start(case: Case) -> None:
    cast, data = case.make(), case.data(START)
    with torch.autocast("cpu", torch.bfloat16):
        cast.initialize(*data, seed=0)
    torch.testing.assert_close(cast.eval()(*data), case.started().eval()(*data))


@each
def test_inference_mode_may_start_what_is_trained_later(case: Case) -> None:
    estimator = case.make()
    with torch.inference_mode():
        estimator.initialize(*case.data(START), seed=0)
    assert finite(case.trained(estimator, 5)(*case.data()))


def rescaled(case: Case, data: tuple[Tensor, Tensor], factor: float) -> tuple[Tensor, Tensor]:
    x, y = data
    if case.y_dim is None:
        return factor * x, y
    if case.is_encoder:  # the scales of z and of its posterior go together
        mean, log_variance = y.chunk(2, 1)
        return factor * x, torch.cat([factor * mean, log_variance + 2 * math.log(factor)], 1)
    return factor * x, factor * y


@each
@pytest.mark.parametrize("factor", [1e-4, 1e4])
def test_units_of_measurement_do_not_matter(case: Case, factor: float) -> None:
    if case.options.get("preset") == "paper" or (case.is_encoder and case.name in ("vub", "knife")):
        pytest.skip("the published start and the standard-normal prior have a scale of their own")
    values = []
    for unit in (1.0, factor):
        estimator = case.make()
        fit(estimator, rescaled(case, case.data(200), unit), steps=5, batch_size=32, lr=1e-3, seed=0)
        values.append(float(estimator(*rescaled(case, case.data(seed=9), unit)).detach()))
    assert values[1] == pytest.approx(values[0], abs=1e-2)


@each
def test_two_losses_before_one_backward(case: Case) -> None:
    estimator = case.started().train()
    losses = [estimator.loss(*case.data(seed=seed)) for seed in range(5)]
    torch.stack(losses).sum().backward()
    assert all(parameter.grad is not None and finite(parameter.grad) for _, parameter in learning(estimator))


@each
def test_an_outer_and_an_inner_loss_before_one_backward(case: Case) -> None:
    estimator, encoder = case.started().train(), Encoder(case)
    data = encoder(*case.data())
    value = estimator(*data)
    for _ in range(4):
        loss = estimator.loss(*data)
    (loss + value).backward()
    assert all(parameter.grad is None or finite(parameter.grad) for parameter in encoder.parameters())


@each
def test_parameter_groups_hold_every_parameter_once(case: Case) -> None:
    estimator = case.started()
    groups = estimator.parameter_groups(1e-3)
    held = [parameter for group in groups for parameter in group["params"]]
    assert sorted(map(id, held)) == sorted(map(id, estimator.parameters()))
    assert all(group["lr"] > 0 for group in groups)
    if case.learns:
        optimizer = torch.optim.Adam(groups, lr=1.0)
        assert 1e-3 in {group["lr"] for group in optimizer.param_groups}
        before = state_of(estimator)
        estimator.loss(*case.data()).backward()
        optimizer.step()
        assert any(not torch.equal(before[name], value) for name, value in estimator.named_parameters())


@each
def test_fit_trains_it(case: Case) -> None:
    estimator, data = case.make(), case.data(100)
    if not case.learns:
        with pytest.raises(ValueError, match="no parameters"):
            fit(estimator, data, steps=1)
        return
    before = torch.get_rng_state()
    history = fit(estimator, data, steps=6, batch_size=32, lr=1e-3, validation=0.2, seed=0)
    assert len(history) == 6
    assert estimator.initialized
    assert not estimator.training
    assert finite(estimator(*data))
    assert torch.equal(torch.get_rng_state(), before)


@each
def test_training_lowers_the_loss(case: Case) -> None:
    if not case.learns:
        return
    estimator = case.started()
    history = fit(estimator, case.data(200), steps=20, batch_size=32, lr=3e-3, seed=0, initialize=False)
    assert sum(history.losses[-5:]) < sum(history.losses[:5]) + 0.5


@each
def test_looking_does_not_change_the_state(case: Case) -> None:
    estimator, data = case.started(), case.data(seed=5)
    before = state_of(estimator)
    estimator.eval()
    estimator.loss(*data), estimator(*data), estimator.pointwise(*data)
    estimator.train()
    estimator(*data), estimator.pointwise(*data)
    with torch.no_grad():
        estimator.loss(*data)
    assert same_state(estimator, before)


@each
def test_values_repeat_in_eval_mode(case: Case) -> None:
    estimator, data = case.started().eval(), case.data()
    assert torch.equal(estimator(*data), estimator(*data))
    assert torch.equal(estimator.loss(*data), estimator.loss(*data))


@each
def test_arrays_and_frames(case: Case) -> None:
    (x, y), expected = case.data(START), case.started().eval()(*case.data(START))
    column = y.dim() == 1
    kinds: list[tuple[Any, Any]] = [
        (x.numpy(), y.numpy()),
        (pd.DataFrame(x.numpy()), (pd.Series if column else pd.DataFrame)(y.numpy())),
        (pl.DataFrame(x.numpy()), (pl.Series if column else pl.DataFrame)(y.numpy())),
    ]
    for rows, partner in kinds:
        estimator = case.make().initialize(rows, partner, seed=0).eval()
        torch.testing.assert_close(estimator(rows, partner), expected)


@each
def test_few_rows_are_enough_to_start(case: Case) -> None:
    for n in (2, 3, 9, 30):
        estimator, data = case.make().initialize(*case.data(n), seed=0), case.data(40)
        assert finite(estimator(*data), estimator.loss(*data))
    assert finite(case.trained(estimator)(*data))


@each
def test_repr_names_the_dimensions(case: Case) -> None:
    text = repr(case.make())
    assert f"x_dim={case.x_dim}" in text
    assert (f"y_dim={case.y_dim}" in text) == (case.y_dim is not None)
    assert (f"y_classes={case.y_classes}" in text) == (case.y_classes is not None)


Call = Callable[[MutualInformation, Any, Any], Any]
CALLS: dict[str, Call] = {
    "forward": lambda estimator, x, y: estimator(x, y),
    "pointwise": lambda estimator, x, y: estimator.pointwise(x, y),
    "loss": lambda estimator, x, y: estimator.loss(x, y),
    "initialize": lambda estimator, x, y: estimator.initialize(x, y),
}


@each
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_bad_input_is_refused(case: Case, call: Call) -> None:
    estimator, (x, y) = case.started(), case.data(40)
    before = state_of(estimator)
    broken = x.clone()
    broken[3, 0] = math.nan
    bad: list[tuple[Any, Any, type[Exception], str]] = [
        (broken, y, ValueError, r"x has NaN .* row 3"),
        (x[:-1], y, ValueError, r"y has 40 rows; expected 39"),
        (torch.cat([x, x], 1), y, ValueError, rf"x has {2 * case.x_dim} columns; expected {case.x_dim}"),
        (x[:, :, None], y, ValueError, r"x has shape"),
        (x.long(), y, TypeError, r"x has dtype torch.int64; expected floating point"),
        (x[:0], y[:0], ValueError, r"x is empty"),
        ([["a"] * case.x_dim] * 40, y, TypeError, r"x has dtype"),
        (None, y, TypeError, r"x is a NoneType"),
    ]
    if case.y_classes is not None:
        bad += [
            (x, y.float(), TypeError, r"y has dtype torch.float32; expected integer classes 0 to 6"),
            (x, y + 3, ValueError, r"y has classes from 3 to 9; expected 0 to 6"),
            (x, y - 1, ValueError, r"y has classes from -1"),
            (x, y[:, None], ValueError, r"y has shape \(40, 1\)"),
        ]
    else:
        infinite = y.clone()
        infinite[0, 0] = -math.inf
        bad += [
            (x, infinite, ValueError, r"y has infinite values in 1 of 40 rows"),
            (x, torch.cat([y, y], 1), ValueError, rf"y has {2 * y.shape[1]} columns; expected {y.shape[1]}"),
            (x, y.long(), TypeError, r"y has dtype torch.int64; expected floating point"),
        ]
    for x_bad, y_bad, error, message in bad:
        with pytest.raises(error, match=message):
            call(estimator, x_bad, y_bad)
    assert same_state(estimator, before)


@each
def test_one_row_is_too_few_to_start_from(case: Case) -> None:
    estimator, (x, y) = case.make(), case.data(1)
    with pytest.raises(ValueError, match=r"x has 1 row; expected at least 2"):
        estimator.initialize(x, y)
    assert not estimator.initialized


@each
def test_a_constant_column_is_refused(case: Case) -> None:
    x, y = case.data()
    flat = x.clone()
    flat[:, 0] = 3.0
    if case.is_encoder and case.name == "vub":
        return  # the divergence does not look at z
    with pytest.raises(ValueError, match=r"x is constant in column 0"):
        case.make().initialize(flat, y)
    if case.y_dim is not None and not case.is_encoder:
        still = y.clone()
        still[:, -1] = 3.0
        with pytest.raises(ValueError, match=rf"y is constant in column {case.y_dim - 1}"):
            case.make().initialize(x, still)
