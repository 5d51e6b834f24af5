"""``python -m benchmarks.lasting``: memory and time of many steps, of the fused kernel and of a regularizer."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import torch
import typer

from infoknife import KNIFE, Regularizer, mi

STATUS = Path("/proc/self/status")


def main(
    fused: Annotated[int, typer.Option(help="Steps of a small density.")] = 1_000_000,
    regularized: Annotated[int, typer.Option(help="Steps of a regularizer whose data drift.")] = 100_000,
    looks: Annotated[int, typer.Option(help="How often memory is looked at.")] = 7,
) -> None:
    """Print resident memory and processor time per step as the steps go on."""
    torch.set_num_threads(1)
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(16, 2, generator=draw)
    knife = KNIFE(2, 4).initialize(torch.randn(200, 2, generator=draw), seed=0)
    optimizer = torch.optim.SGD(knife.parameters(), lr=1e-6)
    regularizer = Regularizer(mi("knife", 2, y_classes=2, components=4), seed=0, warn=False)

    def fit_once(_: int) -> None:
        optimizer.zero_grad()
        knife(x).backward()
        optimizer.step()

    def regularize_once(step: int) -> None:
        z = torch.randn(32, 2, generator=draw) + 1e-3 * step
        s = (z[:, 0] > 1e-3 * step).long()
        regularizer.step(z, s)
        regularizer(z.requires_grad_(), s).backward()

    _watch("fused", fit_once, fused, looks)
    _watch("regularizer", regularize_once, regularized, looks)


def _watch(name: str, run: Callable[[int], None], steps: int, looks: int) -> None:
    for look in range(looks):
        begin, some = time.process_time(), range(look * steps // looks, (look + 1) * steps // looks)
        for step in some:
            run(step)
        resident = next(int(line.split()[1]) for line in STATUS.read_text().splitlines() if line.startswith("VmRSS"))
        spent = 1e6 * (time.process_time() - begin) / max(1, len(some))
        typer.echo(f"{name} {some.stop:,} steps: {resident / 1e3:.1f} MB, {spent:,.0f} µs per step")


if __name__ == "__main__":
    typer.run(main)
