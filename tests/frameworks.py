"""The same training under DDP, Accelerate, Lightning and FSDP2, started by torchrun: the parameters at the end."""

import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

from infoknife import Regularizer, mi

STEPS, ROWS = 30, 64


def parts() -> tuple[nn.Module, Regularizer]:
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    return encoder, Regularizer(mi("knife", 3, y_classes=2, components=4), at_most=0.1, warn=False, seed=0)


def data() -> tuple[Tensor, Tensor]:
    x = torch.randn(STEPS * ROWS, 4, generator=torch.Generator().manual_seed(1))
    return x, (x[:, 0] > 0).long()


def trained(kind: str) -> list[Tensor]:
    encoder, term = parts()
    optimizer: Any = torch.optim.SGD(encoder.parameters(), 0.05)
    model: Any = encoder
    backward: Any = Tensor.backward
    if kind == "accelerate":
        from accelerate import Accelerator  # type: ignore[import-untyped]

        accelerator = Accelerator(cpu=True)
        model, optimizer = accelerator.prepare(encoder, optimizer)
        backward = accelerator.backward
    elif kind == "fsdp2":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        fully_shard(encoder, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
        optimizer = torch.optim.SGD(encoder.parameters(), 0.05)
    else:
        model = DistributedDataParallel(encoder)
    for x, s in zip(*(part.split(ROWS) for part in data()), strict=True):
        mine = slice(dist.get_rank(), None, 2)
        z = model(x[mine])
        term.step(z, s[mine])
        optimizer.zero_grad()
        backward(term(z, s[mine]) + z.square().mean())
        optimizer.step()
    found = [p.full_tensor() if hasattr(p, "full_tensor") else p for p in encoder.parameters()]
    return [p.detach() for p in (*found, *term.parameters())]


def by_lightning() -> list[Tensor]:
    from lightning.pytorch import Trainer

    from infoknife.integrations.lightning import RegularizedModule

    class Fair(RegularizedModule):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.regularizer = parts()

        def training_step(self, batch: list[Tensor]) -> Tensor:
            z = self.encoder(batch[0])
            return self.regularized(z, batch[1]) + z.square().mean()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.outer_parameters(), 0.05)

    quiet: dict[str, Any] = dict.fromkeys(
        ("logger", "enable_progress_bar", "enable_model_summary", "enable_checkpointing"), False
    )
    module = Fair()
    quiet["use_distributed_sampler"] = False  # the same rows as the others have
    trainer = Trainer(max_epochs=1, accelerator="cpu", strategy="ddp", devices=2, **quiet)
    mine = range(int(os.environ["RANK"]), STEPS * ROWS, 2)
    trainer.fit(module, DataLoader(TensorDataset(*data()), batch_size=ROWS // 2, sampler=mine))
    return [p.detach() for p in (*module.encoder.parameters(), *module.regularizer.parameters())]


if __name__ == "__main__":
    kind, folder = sys.argv[1], Path(sys.argv[2])
    torch.set_num_threads(1)
    if kind != "lightning":
        dist.init_process_group("gloo")
    found = by_lightning() if kind == "lightning" else trained(kind)
    torch.save(found, folder / f"{kind}{dist.get_rank()}.pt")
    dist.destroy_process_group()
