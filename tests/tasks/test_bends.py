import math

import pytest
import torch

from infoknife import tasks


def test_mixture_quantile_is_the_quantile() -> None:
    bend = tasks.MixtureQuantile((0.3, 0.7), (0.0, 5.0))
    u = torch.linspace(0.001, 0.999, 99, dtype=torch.float64)[:, None]
    y = bend.forward(u)
    assert torch.allclose(bend.inverse(y), u, atol=1e-12)
    slopes = (bend.forward(u + 1e-6) - bend.forward(u - 1e-6)) / 2e-6
    assert torch.allclose(bend.log_det(u), slopes.log().squeeze(-1), atol=1e-5)


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
