import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from infoknife import tasks

MAPS = [
    tasks.Identity(),
    tasks.Cube(),
    tasks.HalfCube(),
    tasks.Asinh(),
    tasks.NormalCDF(),
    tasks.Wiggly(((0.4, 1.0, 0.0), (-0.1, 3.0, 1.0))),
    tasks.Spiral((0, 2), speed=0.7),
]


@pytest.mark.parametrize("bend", MAPS, ids=repr)
@given(values=st.lists(st.floats(-4, 4), min_size=3, max_size=3))
def test_inverse_undoes_forward(bend: tasks.Map, values: list[float]) -> None:
    x = torch.tensor([values], dtype=torch.float64)
    assert torch.allclose(bend.inverse(bend.forward(x)), x, atol=1e-7)


@pytest.mark.parametrize("bend", MAPS, ids=repr)
def test_log_det_is_that_of_the_jacobian(bend: tasks.Map) -> None:
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def row(v: Tensor) -> Tensor:
        return bend.forward(v[None])[0]

    expected = [float(torch.linalg.slogdet(torch.func.jacrev(row)(v)).logabsdet) for v in x]
    assert torch.allclose(bend.log_det(x), torch.tensor(expected, dtype=torch.float64), atol=1e-9)


def test_mixture_quantile_is_the_quantile() -> None:
    bend = tasks.MixtureQuantile((0.3, 0.7), (0.0, 5.0))
    u = torch.linspace(0.001, 0.999, 99, dtype=torch.float64)[:, None]
    y = bend.forward(u)
    assert torch.allclose(bend.inverse(y), u, atol=1e-12)
    slopes = (bend.forward(u + 1e-6) - bend.forward(u - 1e-6)) / 2e-6
    assert torch.allclose(bend.log_det(u), slopes.log().squeeze(-1), atol=1e-5)


def test_half_cube_and_cube_by_hand() -> None:
    x = torch.tensor([[4.0, -9.0]])
    assert tasks.HalfCube().forward(x).tolist() == [[8.0, -27.0]]
    assert tasks.Cube().forward(x).tolist() == [[64.0, -729.0]]


def test_spiral_by_hand() -> None:
    x = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]], dtype=torch.float64)
    turned = tasks.Spiral((0, 1), speed=math.pi / 2).forward(x)
    assert torch.allclose(turned, torch.tensor([[0.0, 1.0, 0.0], [0.0, -1.0, 1.0]], dtype=torch.float64))


def test_swiss_roll_rolls_and_unrolls() -> None:
    roll, u = tasks.SwissRoll(), torch.linspace(0, 1, 50, dtype=torch.float64)[:, None]
    assert roll.width(1) == 2
    assert torch.allclose(roll.inverse(roll.forward(u)), u)
    start = torch.tensor([0.0, -1.5 * math.pi / 21], dtype=torch.float64)
    assert torch.allclose(roll.forward(u)[0], start, atol=1e-12)
    with pytest.raises(ValueError, match="have no density; use pointwise"):
        roll.log_det(u)


def test_normal_cdf_stays_finite_where_rounding_ends() -> None:
    assert bool(torch.isfinite(tasks.NormalCDF().inverse(torch.tensor([0.0, 1.0], dtype=torch.float64))).all())


def test_wiggly_has_a_gradient() -> None:
    bend = tasks.Wiggly(((0.4, 1.0, 0.0),))
    y = torch.tensor([[0.7]], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(bend.inverse(y).sum(), y)
    x = bend.inverse(y.detach())
    assert float(slope.log()) == pytest.approx(-float(bend.log_det(x)), abs=1e-9)


def test_bad_maps_are_refused() -> None:
    with pytest.raises(ValueError, match=r"waves bend by up to 1\.2"):
        tasks.Wiggly(((0.4, 3.0, 0.0),))
    with pytest.raises(ValueError, match="plane is \\(1, 1\\)"):
        tasks.Spiral((1, 1))
    with pytest.raises(ValueError, match="of 2 columns"):
        tasks.Spiral((1, 2)).width(2)
    with pytest.raises(ValueError, match="rolls up one column; got 2"):
        tasks.SwissRoll().width(2)
    with pytest.raises(ValueError, match="means has 1 numbers; expected 2"):
        tasks.MixtureQuantile((0.5, 0.5), (1.0,))
    with pytest.raises(ValueError, match="sum to 1"):
        tasks.MixtureQuantile((0.5, 0.6), (1.0, 2.0))
