"""A step of domain adaptation with KNIFE beside one without, both encoders trained in either."""

from collections.abc import Callable

import torch

from benchmarks.rows import Bar, Row
from benchmarks.timing import best
from infoknife.paper.applications.domain_adaptation import AdaptationSettings, Domain, Images
from infoknife.paper.applications.domain_adaptation.train import AdaptationTrainer

BLOCK = 32  # steps that are timed together: some of the estimator's work is done every few
IMAGES, CLASSES = 512, 10


def knife_against_source_only(preset: str, rounds: int, most: float) -> Row:
    """How much longer a step takes with the information in the loss."""
    settings = {method: AdaptationSettings.preset(preset, method) for method in ("knife", "source-only")}
    runs = [AdaptationTrainer(own, _domain(own.size, 0), _domain(own.size, 1)) for own in settings.values()]
    seconds = dict(zip(settings, best([_steps(run) for run in runs], rounds), strict=True))
    value = seconds["knife"] / seconds["source-only"]
    size = f"{2 * settings['knife'].batch_size}, {settings['knife'].channels}"
    each = {name: value / BLOCK for name, value in seconds.items()}
    return Row("adaptation step to source-only", size, value, "x", Bar(most, False), each)


def _domain(size: int, seed: int) -> Domain:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(256, (IMAGES, 3, size, size), generator=generator, dtype=torch.uint8)
    images = Images(x, torch.arange(IMAGES) % CLASSES)
    return Domain("noise", images, images, images, tuple(map(str, range(CLASSES))))


def _steps(run: AdaptationTrainer) -> Callable[[], None]:
    def take() -> None:
        for _ in range(BLOCK):
            run.take_step()

    return take
