import torch

from infoknife import KNIFE
from infoknife.demo.figures import outlines


def correlated() -> torch.Tensor:
    noise = torch.randn(2000, 2, generator=torch.Generator().manual_seed(0))
    return noise @ torch.tensor([[3.0, 1.0], [0.0, 0.5]]) + 5


def test_an_outline_is_a_level_line_of_its_kernel() -> None:
    knife = KNIFE(2, 1).initialize(correlated(), seed=0)
    line = outlines(knife, radius=2.0)[0]
    with torch.no_grad():
        drop = knife.log_prob(line[:-1].mean(0, keepdim=True)) - knife.log_prob(line)
    torch.testing.assert_close(drop, torch.full((len(line),), 2.0), rtol=0, atol=1e-3)  # radius^2 / 2


def test_outlines_are_closed_and_one_a_kernel() -> None:
    lines = outlines(KNIFE(2, 7).initialize(correlated(), seed=0), corners=12)
    assert lines.shape == (7, 12, 2)
    torch.testing.assert_close(lines[:, 0], lines[:, -1])
