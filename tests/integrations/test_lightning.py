"""The regularizer in Lightning, with real runs of its ``Trainer``."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.loggers import CSVLogger
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

from infoknife import Regularizer, RegularizerWarning, mi
from infoknife.integrations.lightning import RegularizedModule, RegularizerCallback

pytestmark = [
    pytest.mark.filterwarnings("ignore:The 'train_dataloader' does not have many workers"),
    pytest.mark.filterwarnings("ignore:The 'val_dataloader' does not have many workers"),
    pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec.. is deprecated:FutureWarning"),
]


class Fair(RegularizedModule):
    """A linear code of x, whose first column is the secret and whose sum is the target."""

    def __init__(self, params: str = "outer", **options: Any) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.encoder, self.head = nn.Linear(3, 2), nn.Linear(2, 1)
            options = {"weight": 0.3, "seed": 0, "warn": False, **options}
            self.regularizer = Regularizer(mi("knife", 2, y_classes=2, components=4), **options)
        self.params = params

    def training_step(self, batch: list[Tensor]) -> Tensor:
        x, s = batch
        z = self.encoder(x)
        z = z + 0.1 * torch.ones_like(z).cumsum(0).sin()  # noise that repeats
        return mse_loss(self.head(z), x.sum(1, keepdim=True)) + self.regularized(z, s)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(list(self._chosen()), lr=1e-2, weight_decay=0.5)

    def _chosen(self) -> Iterator[nn.Parameter]:
        if self.params == "outer":
            return self.outer_parameters()
        return self.parameters() if self.params == "all" else self.encoder.parameters()


class Validated(Fair):
    def validation_step(self, batch: list[Tensor]) -> None:
        x, s = batch
        before = self.regularizer.health()
        self.log("val_term", self.regularized(self.encoder(x), s))
        assert self.regularizer.health() == before


def loader(batches: int = 8) -> DataLoader[tuple[Tensor, ...]]:
    generator = torch.Generator().manual_seed(1)
    s = torch.arange(32 * batches) % 2
    x = torch.randn(len(s), 3, generator=generator) + torch.stack([2.0 * s, 0 * s, 0 * s], 1)
    return DataLoader(TensorDataset(x, s), batch_size=32)


def trained(module: Fair, *, val: bool = False, ckpt: Path | None = None, **options: Any) -> tuple[Fair, Trainer]:
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}
    trainer = Trainer(
        **{"accelerator": "cpu", "logger": False, "max_steps": 16, "log_every_n_steps": 1, **quiet, **options}
    )
    trainer.fit(module, loader(), loader(2) if val else None, ckpt_path=ckpt)
    return module, trainer


def same(one: nn.Module, other: nn.Module) -> bool:
    return all(map(torch.equal, one.parameters(), other.parameters()))


def test_both_are_moved_by_their_own_optimiser() -> None:
    module, trainer = trained(Validated(), val=True)
    start, health = Fair(), module.regularizer.health()
    assert not any(map(torch.equal, module.encoder.parameters(), start.encoder.parameters()))
    assert not same(module.regularizer, start.regularizer)
    assert (health.steps, health.calls) == (16, 16)
    logged = trainer.callback_metrics
    assert {"regularizer/estimate", "regularizer/weight", "regularizer/lag", "val_term"} <= logged.keys()
    assert logged["regularizer/estimate"].item() == pytest.approx(health.estimate)


def test_it_is_the_loop_written_by_hand() -> None:
    module, by_hand = trained(Fair())[0], Fair()
    by_hand.log_dict = lambda *_, **__: None  # type: ignore[method-assign]
    optimizer = by_hand.configure_optimizers()
    for _ in range(2):
        for batch in loader():
            optimizer.zero_grad()
            by_hand.training_step(batch).backward()
            optimizer.step()
    assert same(module, by_hand)


def test_accumulated_batches_each_take_an_inner_step() -> None:
    module, trainer = trained(Fair(), accumulate_grad_batches=4, max_steps=4)
    assert trainer.global_step == 4
    assert module.regularizer.health().steps == 16
    assert all(p.grad is None for p in module.regularizer.parameters())


def test_bfloat16() -> None:
    half, whole = (trained(Fair(), precision=precision)[0] for precision in ("bf16-mixed", "32-true"))
    assert half.regularizer.health().skipped_steps == 0
    assert {p.dtype for p in half.parameters()} == {torch.float32}
    assert half.regularizer.health().estimate == pytest.approx(whole.regularizer.health().estimate, abs=0.05)


@pytest.mark.parametrize("options", [{}, {"mode": "joint"}, {"at_most": 0.05, "weight": 1.0}], ids=str)
def test_a_run_goes_on_to_the_bit(tmp_path: Path, options: dict[str, Any]) -> None:
    whole, _ = trained(Fair(**options), max_steps=-1, max_epochs=6)
    _, trainer = trained(Fair(**options), max_steps=-1, max_epochs=3)
    trainer.save_checkpoint(tmp_path / "half.ckpt")
    resumed, trainer = trained(Fair(**options), max_steps=-1, max_epochs=6, ckpt=tmp_path / "half.ckpt")
    assert trainer.global_step == 48
    assert same(whole, resumed)
    assert whole.regularizer.health() == resumed.regularizer.health()


def test_the_callback_logs_all_of_the_health(tmp_path: Path) -> None:
    logger = CSVLogger(tmp_path)
    module, _ = trained(
        Fair(), logger=logger, callbacks=[RegularizerCallback(every_n_steps=4)], accumulate_grad_batches=2
    )
    logger.save()
    with (Path(logger.log_dir) / "metrics.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["regularizer/steps"]]
    assert [row["step"] for row in rows] == ["4", "8", "12", "16"]
    assert {f"regularizer/{name}" for name in module.regularizer.health().scalars()} <= rows[-1].keys()
    assert float(rows[-1]["regularizer/steps"]) == 32


def test_several_regularizers_by_name() -> None:
    class Two(Fair):
        def __init__(self) -> None:
            super().__init__()
            self.second = Regularizer(mi("knife", 2, y_classes=2, components=4), seed=1)

        def training_step(self, batch: list[Tensor]) -> Tensor:
            return super().training_step(batch) + self.regularized(self.encoder(batch[0]), batch[1], "second")

    module, trainer = trained(Two(), max_steps=2)
    assert {"regularizer/lag", "second/lag"} <= trainer.callback_metrics.keys()
    assert len(list(module.outer_parameters())) == 4


def test_it_is_a_mixin_too() -> None:
    class Base(LightningModule):
        pass

    class Mine(RegularizedModule, Base):
        pass

    assert [kind.__name__ for kind in Mine.__mro__[:4]] == ["Mine", "RegularizedModule", "Base", "LightningModule"]
    assert list(Mine().outer_parameters()) == []


# whose parameters an optimiser holds


def test_all_parameters_in_one_optimiser_are_reported() -> None:
    with pytest.warns(RegularizerWarning, match=r"holds the parameters of regularizer, .* self.outer_parameters\(\)"):
        module, _ = trained(Fair("all"), callbacks=[RegularizerCallback()])
    assert same(module, trained(Fair())[0])  # weight decay does not reach what has no gradient


def test_joint_parameters_belong_to_the_optimiser() -> None:
    module, _ = trained(Fair(mode="joint"), callbacks=[RegularizerCallback()])
    assert len(list(module.outer_parameters())) == len(list(module.parameters()))
    assert not same(module.regularizer, Fair().regularizer)


def test_joint_parameters_that_nothing_moves() -> None:
    with pytest.raises(ValueError, match="no optimizer of configure_optimizers holds the parameters of regularizer"):
        trained(Fair("encoder", mode="joint"), callbacks=[RegularizerCallback()])


def test_messages_come_again_at_the_end() -> None:
    class Broken(Fair):
        def training_step(self, batch: list[Tensor]) -> Tensor:
            z = self.encoder(batch[0])
            return self.regularized(torch.cat([z[:-1], torch.full((1, 2), torch.nan)]), batch[1])

    with pytest.warns(RegularizerWarning, match="regularizer, at the end of the training: 4 rows with values"):
        trained(Broken(), callbacks=[RegularizerCallback()], max_steps=4)


@pytest.mark.parametrize("every", [0, 1.5])
def test_every_n_steps_is_a_count(every: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="every_n_steps"):
        RegularizerCallback(every_n_steps=every)
