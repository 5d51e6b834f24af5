"""Codes that reveal little about a secret, trained by Lightning; needs the extra infoknife[lightning]."""

import logging
import warnings
from typing import Any

import torch
from lightning.pytorch import Trainer, seed_everything
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

from infoknife import Regularizer, mi
from infoknife.integrations.lightning import RegularizedModule, RegularizerCallback


class Fair(RegularizedModule):
    """A noisy code of two numbers for four; the task needs the last three, and the secret is in the first."""

    def __init__(self, weight: float) -> None:
        super().__init__()
        self.encoder, self.head = nn.Linear(4, 2), nn.Linear(2, 1)
        estimator = mi("knife", 2, y_classes=2, components=4)
        self.regularizer = Regularizer(estimator, lr=1e-2, weight=weight, warn=False, seed=0)  # the callback warns

    def training_step(self, batch: list[Tensor]) -> Tensor:
        """Return the loss of the task plus the regularizer's term."""
        x, s = batch
        z = self.encoder(x)
        z = z + 0.2 * torch.randn_like(z)
        task = mse_loss(self.head(z), x[:, 1:].sum(1, keepdim=True))
        self.log("task", task)
        return task + self.regularized(z, s)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return an optimiser for everything except the estimator."""
        return torch.optim.Adam(self.outer_parameters(), lr=1e-2)


def main() -> None:
    """Train without and with the term, and print what the codes reveal."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
    silent = ("logger", "enable_progress_bar", "enable_model_summary", "enable_checkpointing")
    quiet: dict[str, Any] = dict.fromkeys(silent, False)
    for weight in (0.0, 1.0):
        seed_everything(0, verbose=False)
        s = torch.arange(4096) % 2
        x = torch.randn(4096, 4) + s[:, None] * torch.tensor([2.0, 0.0, 0.0, 0.0])
        trainer = Trainer(max_epochs=6, accelerator="cpu", callbacks=RegularizerCallback(), **quiet)
        trainer.fit(Fair(weight), DataLoader(TensorDataset(x, s), batch_size=256, shuffle=True))
        told = trainer.callback_metrics
        print(f"weight {weight}: I(z; s) = {told['regularizer/estimate']:.3f} nats, loss {told['task']:.2f}")


if __name__ == "__main__":
    main()
