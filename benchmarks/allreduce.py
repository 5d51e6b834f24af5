"""``python -m benchmarks.allreduce``: gradients passed between ranks, measured here, simulated for many.

A ring all-reduce of S bytes over R ranks has 2 (R - 1) rounds. In each, every rank sends S / R bytes to the next one
and waits for as much: a latency and S / R over a bandwidth. Both are fitted to gloo between two processes here. The
simulation draws the time of every message and lets each rank wait for its neighbour, so that one that is late holds
the others up; the model has no such waits.
"""

import time
from typing import Annotated, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import typer

SIZES = tuple(4 * 4**power for power in range(4, 12))  # bytes: 1 kB to 17 MB
FLOAT = 4  # bytes


class Link(NamedTuple):
    """A connection of two ranks: seconds until a message begins, bytes per second, and how messages differ."""

    latency: float
    bandwidth: float
    spread: float = 0.1  # standard deviation of the logarithm of a message's time


class Machine(NamedTuple):
    """What a rank computes with, and how it is connected."""

    name: str
    speed: float  # operations per second in matrix products
    link: Link


GPU = Machine("A100 in float32 with TF32, half of its peak, 200 Gbit/s InfiniBand", 78e12, Link(10e-6, 22e9))


def ring(size: float, ranks: int, link: Link) -> float:
    """The model: seconds of a ring all-reduce of so many bytes."""
    return 2 * (ranks - 1) * (link.latency + size / ranks / link.bandwidth)


def simulated(size: float, ranks: int, link: Link, seed: int = 0) -> float:
    """The same, message by message: a rank goes on when its own and its neighbour's are there."""
    random, now = np.random.default_rng(seed), np.zeros(ranks)
    for _ in range(2 * (ranks - 1)):
        took = (link.latency + size / ranks / link.bandwidth) * random.lognormal(0.0, link.spread, ranks)
        sent = now + took
        now = np.maximum(sent, np.roll(sent, 1))
    return float(now.max())


def parameters(dim: int, components: int) -> int:
    """Numbers of a KNIFE with full kernels: a factor, a mean and a weight for each."""
    return components * (dim * (dim + 1) // 2 + dim + 1)


def operations(rows: float, dim: int, components: int) -> float:
    """Of a step, forward and backward with the gradient to x: three products of rows with all factors."""
    return 6.0 * rows * components * dim**2


def _measure(rank: int, ranks: int, port: int, rounds: int, queue: "mp.Queue[list[list[float]]]") -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    seconds = []
    for size in SIZES:
        data, turns = torch.ones(size // FLOAT), []
        for _ in range(rounds):
            dist.barrier()
            begin = time.perf_counter()
            dist.all_reduce(data)
            turns.append(time.perf_counter() - begin)
        seconds.append(turns)
    if rank == 0:
        queue.put(seconds)
    dist.barrier()
    dist.destroy_process_group()


def measured(ranks: int, rounds: int, port: int) -> np.ndarray:
    """Seconds of all-reduces between processes here, a row for each of ``SIZES``."""
    context = mp.get_context("spawn")
    queue = context.Queue()
    mp.spawn(_measure, (ranks, port, rounds, queue), nprocs=ranks, join=False)  # type: ignore
    return np.array(queue.get(timeout=600))


def fitted(seconds: np.ndarray) -> Link:
    """The link of two ranks behind the quickest of their turns, all sizes with the same relative error."""
    least, sent = seconds.min(axis=1), np.array(SIZES) / 2
    design = np.stack([np.ones(len(sent)), sent], axis=1) / least[:, None]
    (latency, per_byte), *_ = np.linalg.lstsq(design, np.ones(len(sent)), rcond=None)
    return Link(max(latency, 1e-7) / 2, 2 / per_byte)


def main(
    rounds: Annotated[int, typer.Option(help="All-reduces of each size.")] = 50,
    port: Annotated[int, typer.Option(help="Free, for the processes.")] = 29511,
    dim: Annotated[int, typer.Option(help="Dimension of the density of the large run.")] = 768,
    components: Annotated[int, typer.Option(help="Its kernels.")] = 128,
    ranks: Annotated[int, typer.Option(help="Its GPUs.")] = 64,
) -> None:
    """Fit a link, check the model with it, then ask model and simulation for a run that is too large for here."""
    seconds = measured(2, rounds, port)
    link = fitted(seconds)
    typer.echo(f"gloo, two processes: latency {1e6 * link.latency:.0f} us, {link.bandwidth / 1e9:.2f} GB/s")
    for size, least in zip(SIZES, seconds.min(axis=1), strict=True):
        typer.echo(
            f"  {size / 1e3:9.1f} kB: {1e3 * least:.3f} ms measured, {1e3 * ring(size, 2, link):.3f} ms by the model"
        )
    size = FLOAT * parameters(dim, components)
    whole, waits = (1e3 * f(size, ranks, GPU.link) for f in (ring, simulated))
    typer.echo(f"{ranks} x {GPU.name}: d = {dim}, M = {components}, {size / 1e6:.0f} MB of gradients")
    typer.echo(f"  all-reduce: {whole:.1f} ms by the model, {waits:.1f} ms simulated")
    for rows in (16, 128, 1024, 8192):
        compute = 1e3 * operations(rows, dim, components) / GPU.speed
        share = compute / max(compute, waits)
        typer.echo(f"  {rows:5d} rows per rank: {compute:.2f} ms of computing, {share:.0%} of the time if they overlap")


if __name__ == "__main__":
    typer.run(main)
