from typing import Any

import pytest
import torch
from torch import Tensor

from infoknife.densities import Autoregressive, Density, Gaussian
from infoknife.paper.experiments import fig2
from infoknife.paper.experiments.fig2 import CANDIDATES, best_of


@pytest.fixture
def two_heaps(generator: torch.Generator) -> Tensor:
    """Rows around -5 and 5, which no single Gaussian fits."""
    x = torch.randn(1000, 1, generator=generator)
    return x + 10 * torch.randint(2, (1000, 1), generator=generator) - 5


@pytest.mark.parametrize("names", [["mixture", "single"], ["single", "mixture"]])
def test_the_better_candidate_is_chosen(monkeypatch: pytest.MonkeyPatch, two_heaps: Tensor, names: list[str]) -> None:
    monkeypatch.setitem(fig2.CANDIDATES, "single", Gaussian)
    steps: list[int] = []
    settings: dict[str, Any] = {"batch_size": 100, "lr": 0.01, "trial_steps": 10, "steps": 20}
    density, losses, choice = best_of(names, two_heaps, steps.append, seed=0, **settings)
    assert isinstance(density, type(CANDIDATES["mixture"](1)))
    assert choice["chosen"] == "mixture"
    assert list(choice["candidates"]) == names
    assert choice["candidates"]["mixture"] < choice["candidates"]["single"] - 0.5  # 2.1 and 3.0 nats
    assert len(losses) == 20
    assert steps == list(range(1, 41))


def test_the_last_tenth_is_held_out(monkeypatch: pytest.MonkeyPatch, two_heaps: Tensor) -> None:
    trained, judged = list[Tensor](), list[Tensor]()

    def judge(density: Density, x: Tensor) -> tuple[float, float]:
        judged.append(x)
        return 0.0, 0.0

    monkeypatch.setattr(fig2, "train", lambda density, x, on_step, **options: trained.append(x))
    monkeypatch.setattr(fig2, "entropy_on", judge)
    best_of(["mixture"], two_heaps, lambda step: None, seed=0, trial_steps=1, steps=1)
    assert torch.equal(torch.cat([trained[0], judged[0]]), two_heaps)
    assert len(judged[0]) == 100
    assert torch.equal(trained[1], two_heaps)


def test_a_choice_repeats_with_its_seed(two_heaps: Tensor) -> None:
    settings: dict[str, Any] = {"batch_size": 100, "lr": 0.01, "trial_steps": 3, "steps": 3}
    one, same = (best_of(["mixture"], two_heaps, lambda step: None, seed=1, **settings) for _ in range(2))
    assert one[1:] == same[1:]


def test_the_autoregressive_candidates() -> None:
    assert isinstance(CANDIDATES["autoregressive"](3), Autoregressive)
    assert isinstance(CANDIDATES["autoregressive-96"](1), Autoregressive)
