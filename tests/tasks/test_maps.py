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


def test_half_cube_and_cube_by_hand() -> None:
    x = torch.tensor([[4.0, -9.0]])
    assert tasks.HalfCube().forward(x).tolist() == [[8.0, -27.0]]
    assert tasks.Cube().forward(x).tolist() == [[64.0, -729.0]]


def test_normal_cdf_stays_finite_where_rounding_ends() -> None:
    assert bool(torch.isfinite(tasks.NormalCDF().inverse(torch.tensor([0.0, 1.0], dtype=torch.float64))).all())
