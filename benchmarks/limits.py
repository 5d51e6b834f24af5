"""``python -m benchmarks.limits``: whether ``at_most`` is kept, judged by a fresh measurement of fresh codes.

The task reads s from a code of two numbers + 0.3 noise, so it wants all the information that the limit leaves. The
encoder is affine, or has two tanh layers that s enters through a curve; s is a number or one of three classes.
"""

from typing import Annotated

import torch
import typer
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from infoknife import Regularizer, mi, mutual_information

DIM, NOISE, CLASSES = 2, 0.3, 3


def draw(n: int, classes: bool, curved: bool, source: torch.Generator) -> tuple[Tensor, Tensor]:
    """x (N, 4), of which the first column tells s, straight or through a curve, and s."""
    x = torch.randn(n, 4, generator=source)
    told = (2 * x[:, 0]).sin() + x[:, 0] / 2 if curved else x[:, 0]
    s = told + 0.2 * torch.randn(n, generator=source)
    return x, torch.bucketize(s, torch.tensor([-0.45, 0.45])) if classes else s[:, None]


def kept(limit: float, classes: bool, curved: bool, seed: int, steps: int) -> tuple[float, float, float]:
    """The information in fresh codes of a trained network, its standard error, and what the regularizer says."""
    torch.manual_seed(seed)
    source, out = torch.Generator().manual_seed(seed), CLASSES if classes else 1
    layers = [nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, DIM)]
    encoder = nn.Sequential(*layers) if curved else nn.Linear(4, DIM)
    head = nn.Sequential(nn.Linear(DIM, 32), nn.Tanh(), nn.Linear(32, out))
    estimator = mi("knife", DIM, y_classes=CLASSES) if classes else mi("knife", DIM, 1)
    regularizer = Regularizer(estimator, at_most=limit, seed=seed, warn=False)
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], 3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)

    def code(n: int) -> tuple[Tensor, Tensor]:
        x, s = draw(n, classes, curved, source)
        z = encoder(x)
        return z + NOISE * torch.randn(n, DIM, generator=source), s

    for _ in range(steps):
        z, s = code(256)
        regularizer.step(z, s)
        task = cross_entropy(head(z), s) if classes else (head(z) - s).square().mean()
        optimizer.zero_grad()
        (task + regularizer(z, s)).backward()
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        found = mutual_information(*code(20_000), discrete={"y": classes}, effort="quick", seed=0)
    return float(found), found.stderr, regularizer.estimate


def main(
    steps: Annotated[int, typer.Option(help="Of training.")] = 3000,
    seeds: Annotated[int, typer.Option(help="From 0.")] = 2,
) -> None:
    """Print the table in Markdown."""
    torch.set_num_threads(1)
    print("| encoder | s | limit | seed | I(z; s) | regularizer's estimate |\n|---|---|---|---|---|---|")
    for curved in (False, True):
        for classes in (False, True):
            for limit in (0.1, 0.5 if classes else 1.0):  # three classes have 1.1 nats
                for seed in range(seeds):
                    value, stderr, said = kept(limit, classes, curved, seed, steps)
                    names = ("two tanh layers" if curved else "affine", "classes" if classes else "numbers")
                    row = (*names, limit, seed, f"{value:.3f} ± {stderr:.3f}", f"{said:.3f}")
                    print("|", " | ".join(map(str, row)), "|", flush=True)


if __name__ == "__main__":
    typer.run(main)
