"""``python -m benchmarks.ranks``: what a second process gains, by steps of KNIFE on a global batch of 8,192 rows.

Both are started anew in every round, one after the other, one thread per rank; the throughput of each is its best.
"""

import time
from typing import Annotated, Any

import torch
import torch.distributed as dist
import typer
from torch.multiprocessing.spawn import spawn

from infoknife import KNIFE, distributed

BATCH = 8192  # rows of all ranks


def train(rank: int, ranks: int, port: int, steps: int, dim: int, components: int, took: Any) -> None:
    """Take steps on this rank's part of the rows."""
    torch.set_num_threads(1)
    if ranks > 1:
        dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    x = torch.randn(BATCH, dim, generator=torch.Generator().manual_seed(0))[rank::ranks]
    knife = KNIFE(dim, components).initialize(x[:2048], seed=0)
    optimizer = torch.optim.Adam(knife.parameters(), 1e-3)
    for step in range(steps + 2):  # the first two warm up
        if step == 2:
            begin = time.perf_counter()
        knife.observe(x)
        loss = knife(x)
        optimizer.zero_grad()
        loss.backward()
        distributed.average_gradients(knife.parameters(), loss.detach())
        optimizer.step()
    if rank == 0:
        took.put(time.perf_counter() - begin)
    if ranks > 1:
        dist.barrier()
        dist.destroy_process_group()


def main(
    rounds: Annotated[int, typer.Option(help="How often both are timed.")] = 3,
    steps: Annotated[int, typer.Option(help="Per round.")] = 20,
    dim: Annotated[int, typer.Option(help="Columns.")] = 64,
    components: Annotated[int, typer.Option(help="Kernels.")] = 128,
) -> None:
    """Print rows per second of one and two ranks, and their ratio."""
    took = torch.multiprocessing.get_context("spawn").SimpleQueue()
    speeds: list[list[float]] = [[], []]
    for attempt in range(rounds):
        for ranks in (1, 2):
            spawn(train, (ranks, 29500 + 2 * attempt + ranks, steps, dim, components, took), nprocs=ranks)
            speeds[ranks - 1].append(steps * BATCH / took.get())
    one, two = map(max, speeds)
    typer.echo(f"1 rank: {one:,.0f} rows per second; 2 ranks: {two:,.0f}; {two / one:.2f} times")


if __name__ == "__main__":
    typer.run(main)
