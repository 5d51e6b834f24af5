import math

import pytest
import torch

from infoknife.tasks.integration import box_integral, normal_mean


def test_box_integral_of_a_gaussian() -> None:
    for dim in (1, 2):
        value, error = box_integral(lambda x: (-x.square().sum(-1)).exp(), [(-8.0, 8.0)] * dim, spacing=0.2)
        assert abs(value - math.pi ** (dim / 2)) <= error < 1e-9


def test_error_covers_a_function_that_is_hard() -> None:
    value, error = box_integral(lambda x: x[:, 0].abs(), [(-1.0, 2.0)], spacing=0.1)
    assert 0 < abs(value - 2.5) <= error + 0.15  # the edges do not vanish: half a cell each
    assert error > 1e-3


@pytest.mark.parametrize("dim", [1, 2, 3, 10])
def test_normal_mean_of_a_cosine(dim: int) -> None:
    value, error = normal_mean(lambda z: z.sum(-1).cos() + 1, dim)
    assert abs(value - 1 - math.exp(-dim / 2)) <= error
    assert error < (1e-9 if dim <= 2 else 0.02)


def test_normal_mean_repeats() -> None:
    def function(z: torch.Tensor) -> torch.Tensor:
        return z.square().sum(-1).log1p()

    assert normal_mean(function, 5) == normal_mean(function, 5)
