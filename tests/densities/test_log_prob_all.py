"""Log-densities of all classes in one pass are those of every class alone."""

from collections.abc import Callable

import pytest
import torch

from infoknife.densities import KNIFE, Autoregressive, Density, Flow, Gaussian, Logistic, Schraudolph
from tests.conftest import Seeded

CLASSES = 4
MAKES: dict[str, Callable[[], Density]] = {
    "KNIFE full": lambda: KNIFE(3, 5, given_classes=CLASSES),
    "KNIFE tied": lambda: KNIFE(3, 5, given_classes=CLASSES, covariance="tied"),
    "KNIFE paper": lambda: KNIFE(3, 5, given_classes=CLASSES, init="paper"),
    "Autoregressive": lambda: Autoregressive(3, 4, given_classes=CLASSES, hidden=8),
    "Gaussian": lambda: Gaussian(3, given_classes=CLASSES),
    "Gaussian paper": lambda: Gaussian(3, given_classes=CLASSES, init="paper"),
    "Logistic": lambda: Logistic(3, given_classes=CLASSES),
    "Schraudolph": lambda: Schraudolph(3, 8, given_classes=CLASSES),
    "Flow": lambda: Flow(3, given_classes=CLASSES),
}


@pytest.mark.parametrize("name", MAKES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_all_classes_at_once(name: str, dtype: torch.dtype, seeded: Seeded) -> None:
    """The last class has no rows: its density is what the density makes of that."""
    if name == "Flow":
        pytest.importorskip("zuko")
    x, label = torch.randn(60, 3, generator=seeded(0), dtype=dtype), torch.arange(60) % (CLASSES - 1)
    density = MAKES[name]().initialize(x + label[:, None], label, seed=0)
    with torch.no_grad():
        for parameter in density.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=seeded(1), dtype=dtype))
    found = density.log_prob_all(x)
    each = [density.log_prob(x, torch.full((60,), one)) for one in range(CLASSES)]
    tolerance = 1e-4 if dtype == torch.float32 else 1e-9
    torch.testing.assert_close(found, torch.stack(each, -1), rtol=tolerance, atol=tolerance)
    assert found.shape == (60, CLASSES)
    assert found.dtype == dtype


def test_gradients_reach_the_points_and_the_parameters(seeded: Seeded) -> None:
    x, label = torch.randn(60, 2, generator=seeded(0)), torch.arange(60) % 3
    density = KNIFE(2, 4, given_classes=3).initialize(x, label, seed=0)
    density.log_prob_all(x.requires_grad_()).sum().backward()
    assert x.grad is not None
    assert all(parameter.grad is not None for parameter in density.parameters())
