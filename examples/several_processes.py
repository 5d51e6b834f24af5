"""Codes that forget a class, trained by several processes; if a rank dies, all resume from the last checkpoint.

    export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
    torchrun --standalone --nproc-per-node 2 --max-restarts 10 examples/several_processes.py

The first line gives each restart a store of its own, so that it does not look for dead ranks.
Without torchrun the program is a single process, with the same answer.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from infoknife import Regularizer, distributed, mi

ROWS = 512  # per batch, over all ranks


class Classifier(nn.Module):
    """Four numbers in, a noisy code of two out, and the logits of a label."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.head = nn.Linear(4, 2), nn.Linear(2, 2)

    def forward(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return codes (N, 2) and the logits of the label (N, 2)."""
        z = self.encoder(x) + 0.3 * noise
        return z, self.head(z)


def batch(step: int) -> tuple[Tensor, ...]:
    """Draw this rank's part of a batch: x, noise, label and secret. It depends on the step only."""
    generator = torch.Generator().manual_seed(step)
    y, s = torch.randint(2, (2, ROWS), generator=generator)
    x, noise = (torch.randn(ROWS, d, generator=generator) for d in (4, 2))
    x = x + torch.stack([3.0 * y, 3.0 * s, y + s, y - s], 1)
    return tuple(part.tensor_split(distributed.ranks())[distributed.rank()] for part in (x, noise, y, s))


def train(steps: int, checkpoint: Path | None = None, every: int = 20) -> dict[str, Any]:
    """Train, with checkpoints that the first rank writes and all ranks read; return the estimate and the weight."""
    torch.manual_seed(0)
    model: Any = Classifier()
    regularizer = Regularizer(mi("knife", 2, y_classes=2, components=8), at_most=0.05, warn=False, seed=0)
    if distributed.ranks() > 1:
        model = DistributedDataParallel(model)  # the regularizer stays outside: it averages its own gradients
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    parts, done = {"model": model, "regularizer": regularizer, "optimizer": optimizer}, 0
    if checkpoint is not None and checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        done = saved.pop("step")
        for name, state in saved.items():
            parts[name].load_state_dict(state)
    for step in range(done + 1, steps + 1):
        x, noise, y, s = batch(step)
        z, logits = model(x, noise)
        regularizer.step(z, s)
        loss = cross_entropy(logits, y) + regularizer(z, s)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if checkpoint is not None and step % every == 0 and distributed.rank() == 0:
            state = {name: part.state_dict() for name, part in parts.items()}
            torch.save(state | {"step": step}, checkpoint.with_suffix(".part"))
            checkpoint.with_suffix(".part").replace(checkpoint)
    return {"estimate": regularizer.estimate, "weight": regularizer.health().weight}


def main(arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Train on all ranks there are, and print what the codes reveal."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--checkpoint", type=Path)
    options = parser.parse_args(arguments)
    shared = "RANK" in os.environ  # set by torchrun
    if shared:
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    found = train(options.steps, options.checkpoint)
    if distributed.rank() == 0:
        print(f"{distributed.ranks()} ranks: I(z; s) = {found['estimate']:.6f} nats, limit 0.05", flush=True)
    if shared:
        dist.destroy_process_group()
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
