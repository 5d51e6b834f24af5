"""Tiny domains for tests: bright and dark squares, the second domain with another background."""

import torch

from infoknife.paper.applications.domain_adaptation import Domain, Images

SIZE = 8


def images(n: int, background: int, seed: int) -> Images:
    """Draw images whose left or right half is bright, by class."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % 2
    x = torch.randint(background, background + 60, (n, 3, SIZE, SIZE), generator=generator)
    half = torch.arange(SIZE) < SIZE // 2
    bright = torch.where(y[:, None] == 0, half, ~half)  # (n, SIZE)
    return Images((x + 120 * bright[:, None, None]).clamp(0, 255).to(torch.uint8), y)


def domain(name: str = "dark", background: int = 0, classes: tuple[str, ...] = ("left", "right")) -> Domain:
    """Make a domain of 40 training, 20 validation and 30 test images."""
    train, validation, test = (images(n, background, seed) for seed, n in enumerate((40, 20, 30)))
    return Domain(name=name, train=train, validation=validation, test=test, classes=classes)
