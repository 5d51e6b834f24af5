"""The three applications, small, as torchrun starts them: what each rank has learned, and who has written."""

import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from infoknife import distributed
from infoknife.paper.applications import domain_adaptation as da
from infoknife.paper.applications import fair_text as fair
from infoknife.paper.applications import ib_text as ib
from infoknife.paper.applications.fair_text.train import FairTextTrainer
from infoknife.paper.applications.run import RunResult, seeded
from tests.paper.applications.domain_adaptation.images import SIZE, domain
from tests.paper.applications.ib_text.conftest import tiny_encoder, tiny_pairs

AT = 5  # the step after which the last rank is killed, once
Tell = Callable[[int, Mapping[str, float]], None]


def fair_settings(**changes: Any) -> fair.FairTextSettings:
    """Batches that two ranks cannot share evenly."""
    small: dict[str, Any] = {"encoder": "bag", "embedding": 8, "features": 4, "hidden": 8, "batch_size": 33}
    small |= {"dropout": 0.0, "steps": 8, "every": 4, "lr": 1e-2, "estimator": {"components": 3}}
    return fair.FairTextSettings(method="knife", **small | changes)


def trained_fair_text() -> list[Tensor]:
    """Parameters and curves of a run without noise, which any number of ranks learns alike."""
    settings = fair_settings()
    with seeded(settings.seed, "cpu"):
        run = FairTextTrainer(settings, fair.synthetic(rows=240))
        run.train()
    curves = [torch.tensor(curve) for curve in run.curves.values()]
    return [*(p.detach() for p in run.model.parameters()), *curves]


def adapted(folder: Path, tell: Tell) -> RunResult:
    settings = da.AdaptationSettings(method="knife", channels=4, size=SIZE, steps=8, batch_size=17, every=2)
    return da.adapt(settings, domain(), domain("light", 80), folder=folder, on_progress=tell)


def learned(folder: Path, tell: Tell) -> RunResult:
    settings = fair_settings(noise=0.1, dropout=0.2, every=2)
    return fair.learn(settings, corpus=fair.synthetic(rows=240), folder=folder, on_progress=tell)


def tuned(folder: Path, tell: Tell) -> RunResult:
    encoder, own = str(folder.parent / f"encoder{distributed.rank()}"), folder.parent / "encoder0"
    if not distributed.rank() and not own.exists():
        tiny_encoder(encoder)
    distributed.agree("that the encoder is there", own.exists() or distributed.rank())  # waits for the first
    small: dict[str, Any] = {"bottleneck": 4, "samples": 2, "epochs": 2, "batch_size": 9, "pooling": "mean"}
    small |= {"task": "mrpc", "length": 20}
    settings = ib.BottleneckSettings(encoder=str(own), method="knife", **small)
    return ib.tune(settings, pairs=tiny_pairs(), folder=folder, on_progress=lambda step, facts: tell(step // 20, facts))


def main(folder: Path, killed: str) -> None:
    dist.init_process_group("gloo")
    number = dist.get_rank()
    for name, run in (("domain", adapted), ("fair", learned), ("ib", tuned)):
        place = folder / name
        if (place / "metrics.json").exists():  # before a restart
            continue

        def tell(step: int, facts: Mapping[str, float], place: Path = place) -> None:
            if place.name == killed and number and step >= AT and not (folder / "killed").exists():
                (folder / "killed").touch()
                os.kill(os.getpid(), signal.SIGKILL)

        result = run(place, tell)
        assert bool(result.results) == (number == 0)
        kept = result.model.state_dict()
        torch.save({key: value for key, value in kept.items() if "extra" not in key}, folder / f"{name}{number}.pt")
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]), sys.argv[2])
