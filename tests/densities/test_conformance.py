"""What every density does: shapes, gradients, precision, state, seeds."""

import copy
import io
import pickle

import pandas as pd
import polars as pl
import pytest
import torch
from torch import Tensor

from infoknife.densities import Density
from tests.densities.conformance import Case


def state_of(density: Density) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in density.state_dict().items()}


def same_state(density: Density, before: dict[str, Tensor]) -> bool:
    after = density.state_dict()
    return after.keys() == before.keys() and all(torch.equal(value, before[name]) for name, value in after.items())


def finite(*values: Tensor) -> bool:
    return all(bool(torch.isfinite(value).all()) for value in values)


def test_log_prob_has_one_value_a_row(case: Case) -> None:
    density, (x, given) = case.started(), case.data(7)
    value = density.log_prob(x, given)
    assert value.shape == (7,)
    assert finite(value)


def test_forward_is_the_mean_of_minus_log_prob(case: Case) -> None:
    density, data = case.shaken().eval(), case.data(50)
    torch.testing.assert_close(density(*data), -density.log_prob(*data).mean())


def test_rows_do_not_mix(case: Case) -> None:
    density, (x, given) = case.shaken(dtype=torch.double).eval(), case.data(9, dtype=torch.double)
    each = [density.log_prob(x[[n]], None if given is None else given[[n]]) for n in range(9)]
    torch.testing.assert_close(density.log_prob(x, given), torch.cat(each))


def test_works_before_it_has_seen_data(case: Case) -> None:
    density, data = case.make(), case.data(20)
    assert not density.initialized
    assert finite(density.log_prob(*data), density(*data), density.sample(3, _some(data[1], 3), seed=0))
    assert case.started().initialized


def _some(given: Tensor | None, n: int) -> Tensor | None:
    return None if given is None else given[:n]


@pytest.mark.parametrize("dim", [1, 5])
def test_dimensions_of_x_and_of_the_condition_are_free(case: Case, dim: int) -> None:
    density, (x, given) = case.started(dim), case.data(12, dim)
    assert density.log_prob(x, given).shape == (12,)
    assert density.sample(12, given, seed=0).shape == (12, dim)


def test_gradients_reach_every_parameter_and_the_data(case: Case) -> None:
    density, (x, given) = case.shaken(), case.data()
    x.requires_grad_()
    if given is not None and given.is_floating_point():
        given.requires_grad_()
    density(x, given).backward()
    wanted = {"x": x} | dict(density.named_parameters())
    if given is not None and given.requires_grad:
        wanted["given"] = given
    for name, value in wanted.items():
        assert value.grad is not None, name
        assert finite(value.grad), name
        assert bool((value.grad != 0).any()), name


def test_gradient_in_x_is_the_derivative(case: Case) -> None:
    density, (x, given) = case.shaken(dtype=torch.double).eval(), case.data(3, dtype=torch.double)
    assert torch.autograd.gradcheck(lambda points: density.log_prob(points, given), x.requires_grad_())


def test_gradient_penalty(case: Case) -> None:
    density, (x, given) = case.shaken(), case.data(20)
    x.requires_grad_()
    (slope,) = torch.autograd.grad(density.log_prob(x, given).sum(), x, create_graph=True)
    slope.square().sum().backward()
    assert x.grad is not None
    assert finite(x.grad)


def test_two_forwards_then_one_backward(case: Case) -> None:
    density, (x, given) = case.started().train(), case.data()
    x.requires_grad_()
    (density(x, given) + density(x, given)).backward()
    assert x.grad is not None
    assert finite(x.grad)


def test_training_lowers_the_loss(case: Case) -> None:
    if not case.kind.learns:
        assert not list(case.make().parameters())
        return
    density, data = case.shaken(), case.data()
    before = density(*data).item()
    assert case.trained(density, data, 10)(*data).item() < before


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_precision_in_is_precision_out(case: Case, dtype: torch.dtype) -> None:
    data = case.data(20, dtype=dtype)
    for density in (case.make(), case.started(), case.started(dtype=torch.double)):
        assert density.log_prob(*data).dtype == density(*data).dtype == dtype
    density = case.started(dtype=dtype)
    assert density.sample(3, _some(data[1], 3), seed=0).dtype == dtype
    assert all(parameter.dtype == dtype for parameter in density.parameters())


def test_double_precision_agrees_with_single(case: Case) -> None:
    density = case.shaken().eval()
    single, double = (density.log_prob(*case.data(50, dtype=dtype)) for dtype in (torch.float32, torch.float64))
    torch.testing.assert_close(single.double(), double, rtol=1e-4, atol=1e-4)


def test_half_precision_is_evaluated_in_single(case: Case) -> None:
    density, (x, given) = case.shaken().eval(), case.data(20)
    half = x.bfloat16()
    condition = given.bfloat16() if given is not None and given.is_floating_point() else given
    with torch.autocast("cpu", torch.bfloat16):
        value = density.log_prob(half, condition)
        assert density(half, condition).dtype == torch.float32
    assert value.dtype == torch.float32
    expected = density.log_prob(half.float(), None if condition is None else condition.to(given))
    assert torch.equal(value, expected)


def test_autocast_does_not_reach_the_start_and_the_samples(case: Case) -> None:
    plain, cast, (x, given) = case.started(), case.make(), case.data()
    with torch.autocast("cpu", torch.bfloat16):
        cast.initialize(x, given, seed=0)
        samples = cast.sample(200, given, seed=0)
    torch.testing.assert_close(cast.log_prob(x, given), plain.log_prob(x, given))
    torch.testing.assert_close(samples, plain.sample(200, given, seed=0))


def test_a_start_in_inference_mode_can_be_trained(case: Case) -> None:
    plain, density = case.started(), case.make()
    with torch.inference_mode():
        density.initialize(*case.data(), seed=0)
    data = case.data()
    assert torch.equal(density.log_prob(*data), plain.log_prob(*data))
    assert not any(value.is_inference() for value in density.state_dict().values())
    case.trained(density, data)


@pytest.mark.parametrize("state", ["made", "started", "trained", "double"])
def test_state_dict_round_trip(case: Case, state: str) -> None:
    dtype = torch.float64 if state == "double" else torch.float32
    density, data = case.make() if state == "made" else case.started(dtype=dtype), case.data(dtype=dtype)
    if state == "trained":
        case.trained(density, data)
    fresh, file = case.make(seed=2).to(dtype), io.BytesIO()
    torch.save(density.state_dict(), file)
    file.seek(0)
    fresh.load_state_dict(torch.load(file, weights_only=True))
    assert bool(fresh.initialized) == bool(density.initialized)
    assert torch.equal(fresh.log_prob(*data), density.log_prob(*data))
    given = _some(data[1], 5)
    assert torch.equal(fresh.sample(5, given, seed=0), density.sample(5, given, seed=0))


def test_copies_and_pickles(case: Case) -> None:
    density, data = case.shaken().eval(), case.data()
    value = density.log_prob(*data)
    for twin in (copy.deepcopy(density), pickle.loads(pickle.dumps(density))):
        assert torch.equal(twin.log_prob(*data), value)
        case.trained(twin, data)
    assert torch.equal(density.log_prob(*data), value)


def test_moves_between_devices_and_precisions(case: Case) -> None:
    density, data = case.shaken().eval(), case.data(20)
    value = density.log_prob(*data)
    torch.testing.assert_close(density.to("cpu").double().log_prob(*data), value)
    assert all(tensor.device.type == "meta" for tensor in density.to("meta").state_dict().values() if tensor.dim() > 1)


def test_start_is_decided_by_the_seed(case: Case) -> None:
    data = case.data()
    one, two = (case.make().initialize(*data, seed=3) for _ in range(2))
    assert torch.equal(one.log_prob(*data), two.log_prob(*data))


def test_a_second_start_forgets_the_first(case: Case) -> None:
    density, data = case.started(), case.data()
    value = density.log_prob(*data)
    case.trained(density, data)
    torch.testing.assert_close(density.initialize(*data, seed=0).log_prob(*data), value)


def test_randomness_is_where_it_belongs(case: Case) -> None:
    density, data = case.make(), case.data()
    before = torch.get_rng_state()
    density.initialize(*data, seed=0)
    density.sample(5, _some(data[1], 5), seed=0)
    density(*data)
    density.log_prob(*data)
    assert torch.equal(torch.get_rng_state(), before)


def test_samples_are_decided_by_the_seed(case: Case) -> None:
    density, given = case.started(), _some(case.data()[1], 5)
    assert torch.equal(density.sample(5, given, seed=0), density.sample(5, given, seed=0))
    assert not torch.equal(density.sample(5, given, seed=0), density.sample(5, given, seed=1))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        one = density.sample(5, given)
        torch.manual_seed(0)
        assert torch.equal(density.sample(5, given), one)
        assert not torch.equal(density.sample(5, given), one)


def test_samples_have_no_gradient_and_one_condition_serves_all(case: Case) -> None:
    density, given = case.started(), _some(case.data()[1], 1)
    samples = density.sample(6, given, seed=0)
    assert samples.shape == (6, 2)
    assert not samples.requires_grad
    many = None if given is None else given.expand(6, *given.shape[1:])
    assert torch.equal(density.sample(6, many, seed=0), samples)


def test_arrays_and_frames(case: Case) -> None:
    density, (x, given) = case.started(), case.data()
    value = density.log_prob(x, given)
    frames = [
        (x.numpy(), None if given is None else given.numpy()),
        (pd.DataFrame(x.numpy()), _pandas(given)),
        (pl.DataFrame(x.numpy()), None if given is None else _polars(given)),
    ]
    for rows, condition in frames:
        other = case.make().initialize(rows, condition, seed=0)
        torch.testing.assert_close(other.log_prob(x, given), value)


def _pandas(given: Tensor | None) -> "pd.DataFrame | pd.Series | None":
    if given is None:
        return None
    return pd.Series(given.numpy()) if given.dim() == 1 else pd.DataFrame(given.numpy())


def _polars(given: Tensor) -> "pl.DataFrame | pl.Series":
    return pl.Series(given.numpy()) if given.dim() == 1 else pl.DataFrame(given.numpy())


def test_looking_does_not_change_the_state(case: Case) -> None:
    density, (x, given) = case.started(), case.data()
    before = state_of(density)
    density.eval()(x + 1, given)
    density.train().log_prob(x + 1, given)
    density.sample(5, _some(given, 5), seed=0)
    with torch.no_grad():
        density(x + 1, given)
    assert same_state(density, before)


def test_torch_func_sees_the_same_function(case: Case) -> None:
    density, (x, given) = case.shaken(dtype=torch.double).eval(), case.data(4, dtype=torch.double)
    parameters: dict[str, Tensor] = dict(density.named_parameters())

    def entropy(values: dict[str, Tensor], points: Tensor) -> Tensor:
        return torch.func.functional_call(density, values, (points, given))

    to_values, to_x = torch.func.grad(entropy, (0, 1))(parameters, x)
    expected = torch.autograd.grad(density(x.requires_grad_(), given), [*parameters.values(), x])
    for ours, truth in zip((*to_values.values(), to_x), expected, strict=True):
        torch.testing.assert_close(ours, truth)


def test_vmap_over_batches(case: Case) -> None:
    density, (x, given) = case.shaken(dtype=torch.double).eval(), case.data(12, dtype=torch.double)
    conditions = None if given is None else given.unflatten(0, (3, 4))
    mapped = torch.func.vmap(density.log_prob, in_dims=(0, None if given is None else 0))(
        x.unflatten(0, (3, 4)), conditions
    )
    torch.testing.assert_close(mapped.flatten(), density.log_prob(x, given))


def test_transforms_leave_no_trace_in_training_mode(case: Case) -> None:
    density, (x, given) = case.started().train(), case.data()
    torch.func.grad(lambda points: density(points, given))(x)
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor
    assert not any(wrapped(value) for value in density.buffers())
    copy.deepcopy(density)


def test_repr_names_the_dimensions(case: Case) -> None:
    text = repr(case.make(5))
    assert "dim=5" in text
    assert ("given_dim=3" in text) == (case.condition == "continuous")
    assert ("given_classes=2" in text) == (case.condition == "classes")


def test_points_far_away(case: Case) -> None:
    density, (_, given) = case.started(), case.data(4)
    x = torch.tensor([[1e3], [-1e5], [1e8], [1e15]]).expand(4, 2)
    value = density.log_prob(x, given)
    assert bool((value < -50).all()), "neither NaN nor a large density"
