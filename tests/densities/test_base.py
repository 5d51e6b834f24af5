"""What densities share beyond the conformance suite."""

import pytest
import torch

from infoknife import KNIFE, mi


@pytest.mark.parametrize(
    "module", [KNIFE(2, 4), mi("mine", 2, 3), mi("knife", 2, y_classes=3)], ids=lambda m: type(m).__name__
)
def test_states_of_the_first_version_say_so(module: torch.nn.Module) -> None:
    old = module.state_dict() | {"initialized": torch.tensor(True)}
    with pytest.raises(ValueError, match=r"written by infoknife 0\.1"):
        module.load_state_dict(old)
    outer = torch.nn.Sequential(module)
    with pytest.raises(ValueError, match=r"written by infoknife 0\.1"):
        outer.load_state_dict({f"0.{name}": value for name, value in old.items()})
