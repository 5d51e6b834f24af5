"""Metrics: the same as measuring all rows at once, over batches and over processes."""

from pathlib import Path

import pytest
import torch
from torch import distributed
from torch.multiprocessing.spawn import spawn

from infoknife import entropy, mutual_information

pytest.importorskip("torchmetrics")
from infoknife.integrations.torchmetrics import EntropyMetric, MutualInformationMetric

GAUSSIAN = {"method": "gaussian"}


def rows() -> tuple[torch.Tensor, torch.Tensor]:
    x, noise = torch.randn(2, 600, 1, generator=torch.Generator().manual_seed(0))
    return x, x + noise


def test_batches_are_measured_together() -> None:
    x, y = rows()
    metric, alone = MutualInformationMetric(options=GAUSSIAN), EntropyMetric(options=GAUSSIAN)
    for a, b in zip(x.split(100), y.split(100), strict=True):
        metric.update(a, b)
        alone.update(a)
    expected = mutual_information(x, y, method="gaussian", effort="quick", seed=0)
    assert metric.compute().item() == pytest.approx(expected.value)
    assert metric.estimate is not None
    assert metric.estimate.interval() == expected.interval()
    assert alone.compute().item() == pytest.approx(entropy(x, method="gaussian", effort="quick", seed=0).value)
    metric.reset()
    assert metric.x == []


def work(rank: int, folder: str) -> None:
    """One of two processes with half of the rows."""
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    x, y = rows()
    metric = MutualInformationMetric(options=GAUSSIAN)
    metric.update(x[300 * rank :][:300], y[300 * rank :][:300])
    torch.save(metric.compute(), f"{folder}/{rank}.pt")
    distributed.destroy_process_group()


@pytest.mark.slow
def test_two_processes_measure_all_rows(tmp_path: Path) -> None:
    spawn(work, (str(tmp_path),), nprocs=2)
    found = [float(torch.load(tmp_path / f"{rank}.pt")) for rank in (0, 1)]
    x, y = rows()
    assert found == [pytest.approx(mutual_information(x, y, method="gaussian", effort="quick", seed=0).value)] * 2
