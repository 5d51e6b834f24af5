"""Codes of texts that reveal little about the writer, by Hugging Face's Trainer; needs infoknife[transformers]."""

from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import PrinterCallback, TrainingArguments, set_seed

from infoknife import Regularizer, mi
from infoknife.integrations.transformers import RegularizedTrainer


class Classifier(nn.Module):
    """A code, which is the mean of the words' vectors plus noise, and a linear classifier of it."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.head = nn.EmbeddingBag(12, 2), nn.Linear(2, 2)

    def forward(self, input_ids: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Return loss and code in the form that a Trainer expects."""
        z = self.encoder(input_ids)  # (N, 2)
        z = z + 0.2 * torch.randn_like(z)
        return {"loss": cross_entropy(self.head(z), labels), "z": z}


def texts(n: int) -> list[dict[str, Tensor]]:
    """Draw texts of six words: 0 to 4 belong to one topic, 5 to 9 to another, and 10 and 11 each mark a writer."""
    topic, writer = torch.randint(2, (n, 1)), torch.randint(2, (n, 1))
    ids = torch.cat([torch.randint(5, (n, 4)) + 5 * topic, 10 + writer.expand(n, 2)], 1)
    return [{"input_ids": i, "labels": t, "writer": w} for i, t, w in zip(ids, topic[:, 0], writer[:, 0], strict=True)]


def trained(weight: float, folder: str) -> RegularizedTrainer:
    """Train with the term at this weight."""
    set_seed(0)
    regularizer = Regularizer(mi("knife", 2, y_classes=2, components=4), lr=1e-2, weight=weight, warn=False, seed=0)
    steps: dict[str, Any] = {"max_steps": 150, "per_device_train_batch_size": 128, "learning_rate": 2e-2}
    arguments = TrainingArguments(folder, **steps, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True)
    data: dict[str, Any] = {"train_dataset": texts(4096), "eval_dataset": texts(512)}
    trainer = RegularizedTrainer(Classifier(), arguments, regularizer=regularizer, z="z", s="writer", **data)
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return trainer


def main() -> None:
    """Train without and with the term, and print what the codes reveal."""
    for weight in (0.0, 1.0):
        with TemporaryDirectory() as folder:
            trainer = trained(weight, folder)
            loss, told = trainer.evaluate()["eval_loss"], trainer.regularizer.health().estimate
        print(f"weight {weight}: I(z; writer) = {told:.3f} nats, loss of the topic {loss:.3f}")


if __name__ == "__main__":
    main()
