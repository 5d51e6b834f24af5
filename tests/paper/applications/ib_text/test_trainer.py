"""The bottleneck in the Trainer of Hugging Face, with real runs of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import DataCollatorWithPadding, Trainer, TrainingArguments

from infoknife.paper.applications.ib_text import Bottleneck, PairData, TextPairs
from infoknife.paper.applications.pretrained import tokenizer_of

pytestmark = pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true but no accelerator")

QUIET: dict[str, Any] = {"report_to": [], "use_cpu": True, "disable_tqdm": True, "save_strategy": "no", "seed": 0}
SHORT: dict[str, Any] = {"max_steps": 6, "per_device_train_batch_size": 8, "learning_rate": 5e-3, "logging_steps": 2}


def model(encoder: str, method: str = "knife", **options: Any) -> Bottleneck:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        fixed: dict[str, Any] = {"bottleneck": 4, "num_labels": 2, "samples": 2, "weight": 1e-2, "pooling": "mean"}
        return Bottleneck.over(encoder, method=method, **fixed | options)


def rows(part: TextPairs, encoder: str) -> list[dict[str, Any]]:
    texts = tokenizer_of(encoder)(list(part.first), list(part.second or ()))
    return [
        {"input_ids": codes, "token_type_ids": types, "labels": label}
        for codes, types, label in zip(texts["input_ids"], texts["token_type_ids"], part.y.tolist(), strict=True)
    ]


def trainer(encoder: str, made: Bottleneck, pairs: PairData, folder: Path, **options: Any) -> Any:
    args = TrainingArguments(str(folder), **QUIET | SHORT | options)
    train, validation = rows(pairs.train, encoder), rows(pairs.validation, encoder)
    return Trainer(
        made,
        args,
        data_collator=DataCollatorWithPadding(tokenizer_of(encoder)),
        train_dataset=train,
        eval_dataset=validation,
        compute_metrics=accuracy,
    )


def accuracy(evaluated: Any) -> dict[str, float]:
    logits: np.ndarray[Any, Any] = evaluated.predictions
    return {"accuracy": float((logits.argmax(1) == evaluated.label_ids).mean())}


def tensors(made: Bottleneck) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in made.state_dict().items() if isinstance(value, Tensor)}


@pytest.mark.parametrize("method", ["plain", "vub", "knife", "mine"])
def test_it_learns_is_evaluated_and_what_is_saved_is_loaded(
    encoder: str, pairs: PairData, tmp_path: Path, method: str
) -> None:
    made = model(encoder, method, weight=1e-3, layers=2)
    run = trainer(encoder, made, pairs, tmp_path, max_steps=40)
    before = tensors(made)
    run.train()
    moved = {name for name, value in tensors(made).items() if not torch.equal(before[name], value)}
    assert "head.weight" in moved
    assert any(name.startswith("encoder.") for name in moved)
    found = run.evaluate()
    assert found["eval_accuracy"] == 1.0
    assert found == run.evaluate() | {name: found[name] for name in found if "runtime" in name or "second" in name}
    assert run.predict(rows(pairs.validation, encoder)).predictions.shape == (16, 2), "logits alone"
    run.save_model(str(tmp_path / "best"))
    again = Bottleneck.from_pretrained(tmp_path / "best")
    moving = [name for name, parameter in again.named_parameters() if parameter.requires_grad]
    assert moving == [name for name, parameter in made.named_parameters() if parameter.requires_grad]
    assert trainer(encoder, again, pairs, tmp_path).evaluate()["eval_loss"] == found["eval_loss"]


def test_mixed_precision_and_accumulation(encoder: str, pairs: PairData, tmp_path: Path) -> None:
    made = model(encoder)
    run = trainer(encoder, made, pairs, tmp_path, bf16=True, gradient_accumulation_steps=2)
    run.train()
    assert all(bool(parameter.isfinite().all()) for parameter in made.parameters())
    assert all(parameter.dtype == torch.float32 for parameter in made.parameters())
    assert int(made.calls) == 10, "five batches an epoch, the last alone"
    assert run.evaluate()["eval_loss"] > 0


def test_accumulated_batches_are_one_large_one(encoder: str, pairs: PairData, tmp_path: Path) -> None:
    """Without noise, with plain descent: two batches of four move the weights as one of eight."""
    found = []
    for size, accumulate in ((8, 1), (4, 2)):
        made = model(encoder, "plain")
        own: dict[str, Any] = {"per_device_train_batch_size": size, "gradient_accumulation_steps": accumulate}
        plain = {"optim": "sgd", "max_grad_norm": 0.0, "lr_scheduler_type": "constant", "max_steps": 3}
        trainer(encoder, made, pairs, tmp_path, **own, **plain).train()
        found.append(made.head.weight.detach())
    torch.testing.assert_close(*found)


@pytest.mark.parametrize(("method", "layers"), [("knife", 1), ("mine", None), ("plain", 1)])
def test_a_run_that_is_taken_up_again_ends_the_same(
    encoder: str, pairs: PairData, tmp_path: Path, method: str, layers: int | None
) -> None:
    saved: dict[str, Any] = {"save_strategy": "steps", "save_steps": 3, "gradient_accumulation_steps": 2}
    whole = model(encoder, method, layers=layers, ramp_steps=9)
    trainer(encoder, whole, pairs, tmp_path, **saved).train()
    other = model(encoder, method, layers=layers, ramp_steps=9)
    trainer(encoder, other, pairs, tmp_path, **saved).train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    ours, theirs = tensors(whole), tensors(other)
    assert [name for name in ours if not torch.equal(ours[name], theirs[name])] == []
