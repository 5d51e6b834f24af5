import torch

from infoknife import tasks


def test_cubic_pair_is_the_gaussian_with_y_cubed() -> None:
    cubic, gaussian = tasks.CubicPair(3, 0.6), tasks.GaussianPair(3, 0.6)
    (x, cubed), (same, y) = (t.sample(50, 3, dtype=torch.float64) for t in (cubic, gaussian))
    assert torch.equal(x, same)
    assert torch.equal(cubed, y**3)
    assert torch.allclose(cubic.pointwise(x, cubed), gaussian.pointwise(x, y))
    assert torch.allclose(cubic.log_prob_x(x), gaussian.log_prob_x(x))
    assert torch.allclose(
        cubic.log_prob(x, cubed) - cubic.log_prob_y(cubed), gaussian.log_prob(x, y) - gaussian.log_prob_y(y)
    )
