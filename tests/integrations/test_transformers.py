"""The regularizer in the Trainer of Hugging Face, with real runs of it."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from transformers import BertConfig, BertForSequenceClassification, Seq2SeqTrainer, TrainingArguments

from infoknife import MutualInformation, Regularizer, RegularizerWarning, mi
from infoknife.integrations.transformers import RegularizedTrainer

pytestmark = pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true but no accelerator")


class Encoder(nn.Module):
    """A linear code of x that predicts the sum of x."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.encoder, self.head = nn.Linear(3, 2), nn.Linear(2, 1)

    def forward(self, x: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        z = self.encoder(x)
        prediction = self.head(z).squeeze(-1)
        loss = {} if labels is None else {"loss": mse_loss(prediction, labels)}
        return {**loss, "prediction": prediction, "z": z}


class Scaled(Encoder):
    """The same with a loss that is summed and divided by the items of all batches of a step."""

    def forward(
        self, x: Tensor, labels: Tensor | None = None, num_items_in_batch: int | None = None, **_: Any
    ) -> dict[str, Tensor]:
        outputs = super().forward(x, labels)
        if num_items_in_batch is not None:
            outputs["loss"] = outputs["loss"] * len(x) / num_items_in_batch
        return outputs


def rows(n: int = 256, *, labels: bool = True) -> list[dict[str, Any]]:
    s = torch.arange(n) % 2
    x = torch.randn(n, 3, generator=torch.Generator().manual_seed(1)) + torch.stack([2.0 * s, 0 * s, 0 * s], 1)
    return [
        {"x": a, "group": b, "unused": 0} | ({"labels": a.sum()} if labels else {}) for a, b in zip(x, s, strict=True)
    ]


def regularizer(**options: Any) -> Regularizer:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        estimator = mi("knife", 2, y_classes=2, components=4)
    return Regularizer(estimator, **{"weight": 0.3, "seed": 0, "warn": False, **options})


def trainer(path: Path, model: nn.Module | None = None, **options: Any) -> Any:
    settings = {"max_steps": 16, "per_device_train_batch_size": 32, "learning_rate": 1e-2, "logging_steps": 4}
    quiet = {"report_to": [], "use_cpu": True, "disable_tqdm": True, "save_strategy": "no", "seed": 0}
    named = TrainingArguments.__dataclass_fields__
    arguments = {name: options.pop(name) for name in list(options) if name in named}
    args = TrainingArguments(str(path), **{**settings, **quiet, **arguments})
    options = {"regularizer": regularizer(), "z": "z", "s": "group", "train_dataset": rows(), **options}
    return RegularizedTrainer(model or Encoder(), args, **options)


def same(one: nn.Module, other: nn.Module) -> bool:
    return all(map(torch.equal, one.parameters(), other.parameters()))


def test_both_are_moved_and_the_health_is_logged(tmp_path: Path) -> None:
    run = trainer(tmp_path)
    run.train()
    health, logged = run.regularizer.health(), run.state.log_history[-2]
    assert (health.steps, health.calls) == (16, 16)
    assert not any(map(torch.equal, run.model.encoder.parameters(), Encoder().encoder.parameters()))
    assert not same(run.regularizer, regularizer())
    assert {name: logged[f"regularizer/{name}"] for name in health.scalars()} == health.scalars()
    assert "regularizer/steps" not in run.state.log_history[-1]  # the summary of the run
    assert all(p.grad is None for p in run.regularizer.parameters())


def test_the_term_is_in_the_loss(tmp_path: Path) -> None:
    with_it, without = trainer(tmp_path), trainer(tmp_path, regularizer=regularizer(weight=0.0))
    batch = {"x": torch.stack([row["x"] for row in rows()]), "group": torch.arange(256) % 2, "labels": torch.zeros(256)}
    task, total = (run.compute_loss(run.model.train(), batch) for run in (without, with_it))
    z = with_it.model(batch["x"])["z"]
    started = regularizer(weight=0.3).initialize(z.detach(), batch["group"])  # before it learned from the batch
    assert isinstance(started.estimator, MutualInformation)
    penalty = started.estimator.penalty(z, batch["group"])
    assert (total - task).item() == pytest.approx(0.3 * penalty.item(), abs=5e-3)  # one round of steps
    assert list(batch) == ["x", "group", "labels"]


def test_evaluation_has_the_loss_of_the_task_alone(tmp_path: Path) -> None:
    run = trainer(tmp_path, eval_dataset=rows(64))
    before = run.regularizer.health()
    x = torch.stack([row["x"] for row in rows(64)])
    plain = mse_loss(run.model(x)["prediction"], x.sum(1))
    assert run.evaluate()["eval_loss"] == pytest.approx(plain.item(), rel=1e-5)
    assert run.predict(rows(64, labels=False)).predictions[0].shape == (64,)  # and the model never sees the group
    assert run.regularizer.health() == before


@pytest.mark.parametrize("model", [Encoder, Scaled])
def test_accumulation_is_one_large_batch(tmp_path: Path, model: type[nn.Module]) -> None:
    # a linear term in z has the same mean over four batches as over one, unless it is counted four times
    class Linear(nn.Module):
        mode = "alternate"

        def forward(self, z: Tensor, s: Tensor) -> Tensor:
            return z.mean()

        def step(self, z: Tensor, s: Tensor) -> None: ...

        def health(self) -> Any:
            return regularizer().health()

    options = {"regularizer": Linear(), "max_steps": 4, "max_grad_norm": 0.0, "optim": "sgd"}
    large = trainer(tmp_path, model(), per_device_train_batch_size=64, **options)
    small = trainer(tmp_path, model(), per_device_train_batch_size=16, gradient_accumulation_steps=4, **options)
    large.train()
    small.train()
    for one, other in zip(large.model.parameters(), small.model.parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_accumulated_batches_each_take_an_inner_step(tmp_path: Path) -> None:
    run = trainer(tmp_path, gradient_accumulation_steps=4, max_steps=4)
    run.train()
    assert (run.state.global_step, run.regularizer.health().steps) == (4, 16)


def test_bfloat16(tmp_path: Path) -> None:
    half, whole = trainer(tmp_path, bf16=True), trainer(tmp_path)
    half.train()
    whole.train()
    assert half.regularizer.health().skipped_steps == 0
    assert half.regularizer.health().estimate == pytest.approx(whole.regularizer.health().estimate, abs=0.05)


@pytest.mark.parametrize("options", [{}, {"at_most": 0.05, "weight": 1.0}], ids=str)
def test_a_run_goes_on_to_the_bit(tmp_path: Path, options: dict[str, Any]) -> None:
    whole = trainer(tmp_path, save_strategy="steps", save_steps=20, max_steps=40, regularizer=regularizer(**options))
    whole.train()
    resumed = trainer(tmp_path, max_steps=40, regularizer=regularizer(**options))
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-20"))
    assert resumed.state.global_step == 40
    assert same(whole.model, resumed.model)
    assert same(whole.regularizer, resumed.regularizer)
    assert whole.regularizer.health() == resumed.regularizer.health()
    assert not list(tmp_path.rglob(".regularizer*"))


def test_a_checkpoint_without_the_regularizer(tmp_path: Path) -> None:
    trainer(tmp_path, save_strategy="steps", save_steps=4, max_steps=4).train()
    (tmp_path / "checkpoint-4" / "regularizer.pt").unlink()
    with pytest.warns(RegularizerWarning, match=r"the checkpoint has no regularizer.pt"):
        trainer(tmp_path, max_steps=5).train(resume_from_checkpoint=str(tmp_path / "checkpoint-4"))


def test_bert_with_a_function_and_labels_for_s(tmp_path: Path) -> None:
    config = BertConfig(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        output_hidden_states=True,
    )
    words = torch.randint(20, (64, 5), generator=torch.Generator().manual_seed(0))
    data = [{"input_ids": row, "labels": int(row[0] > 9)} for row in words]
    run = trainer(
        tmp_path,
        BertForSequenceClassification(config),  # type: ignore[no-untyped-call]
        regularizer=Regularizer(mi("knife", 7, y_classes=2, components=2), seed=0, warn=False),
        z=lambda outputs: outputs.hidden_states[-1][:, 0, :7],  # the sum of all eight is constant after a layer norm
        s="labels",
        train_dataset=data,
        label_smoothing_factor=0.1,
        gradient_accumulation_steps=2,
        max_steps=2,
    )
    run.train()
    assert run.regularizer.health().steps == 4
    assert run.regularizer.health().skipped_rows == 0


def test_it_is_a_mixin_too() -> None:
    class Mine(RegularizedTrainer, Seq2SeqTrainer):
        pass

    assert [kind.__name__ for kind in Mine.__mro__[1:4]] == ["RegularizedTrainer", "Seq2SeqTrainer", "Trainer"]


def test_joint_mode_has_no_place(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mode='joint'; expected mode='alternate'"):
        trainer(tmp_path, regularizer=regularizer(mode="joint"))


def test_names_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"z is 'hidden', and the model gave \['loss', 'prediction', 'z'\]"):
        trainer(tmp_path, z="hidden").train()
    with pytest.raises(ValueError, match=r"s is 'sex', and a batch has \['x', 'labels'\]"):
        trainer(tmp_path, s="sex").train()
