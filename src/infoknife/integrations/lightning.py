"""A regularizer in a ``LightningModule``, and a callback that watches it.

It needs Lightning: ``pip install "infoknife[lightning]"``.
"""

import warnings
from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from infoknife.inputs import check_count
from infoknife.regularizer import Regularizer, RegularizerWarning

try:
    from lightning.pytorch import Callback, LightningModule, Trainer
except ImportError as error:
    raise ImportError(
        'infoknife.integrations.lightning needs lightning; install it with: pip install "infoknife[lightning]"'
    ) from error

__all__ = ["RegularizedModule", "RegularizerCallback"]

LOGGED = ("estimate", "weight", "lag")  # at every step; the callback has all of it


class RegularizedModule(LightningModule):
    """A ``LightningModule`` with a ``Regularizer`` for an attribute; also a mixin before another ``LightningModule``.

    The regularizer is a submodule, so Lightning moves it to the device and its state is in every checkpoint: a run that
    was stopped goes on as if it had not been.

    Examples:
        >>> import torch
        >>> from infoknife import mi
        >>> class Fair(RegularizedModule):
        ...     def __init__(self) -> None:
        ...         super().__init__()
        ...         self.encoder, self.head = nn.Linear(4, 2), nn.Linear(2, 1)
        ...         self.regularizer = Regularizer(mi("knife", 2, y_classes=2), weight=0.1, seed=0)
        ...
        ...     def training_step(self, batch: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        ...         x, y, s = batch
        ...         z = self.encoder(x)
        ...         return nn.functional.mse_loss(self.head(z), y) + self.regularized(z, s)
        ...
        ...     def configure_optimizers(self) -> torch.optim.Optimizer:
        ...         return torch.optim.Adam(self.outer_parameters(), lr=1e-3)
        >>> len(list(Fair().outer_parameters()))
        4
    """

    def regularized(self, z: Tensor, s: Any = None, name: str = "regularizer") -> Tensor:
        """Train the estimator on the batch and return the term for the loss.

        In validation and test nothing is trained. With ``mode="joint"`` the estimator's
        own loss is in the sum, for the one optimiser.

        Args:
            z: The codes (N, d), with their graph.
            s: What the regularizer takes along with them.
            name: The attribute with the regularizer, for modules with several; also where its numbers are logged.
        """
        regularizer = getattr(self, name)
        if not self.training:
            return regularizer(z, s)
        if regularizer.mode == "joint":
            term = regularizer(z, s) + regularizer.loss(z, s)
        else:
            regularizer.step(z, s)
            term = regularizer(z, s)
        scalars = regularizer.health().scalars()
        self.log_dict({f"{name}/{key}": scalars[key] for key in LOGGED}, on_step=True, on_epoch=False)
        return term

    @property
    def _ddp_params_and_buffers_to_ignore(self) -> list[str]:
        """What DDP leaves to the regularizers, which keep their estimators the same on all ranks themselves."""
        own = [(name, part) for name, part in _regularizers(self) if part.mode != "joint"]
        return [
            f"{name}.{key}"
            for name, part in own
            for key in (*dict(part.named_parameters()), *dict(part.named_buffers()))
        ]

    def outer_parameters(self) -> Iterator[nn.Parameter]:
        """Return the parameters for your optimiser: all but those of estimators that have an optimiser of their own."""
        inner = {p for _, regularizer in _regularizers(self) for p in _own(regularizer)}
        return (parameter for parameter in self.parameters() if parameter not in inner)


class RegularizerCallback(Callback):
    """Log the health of every regularizer in a module, and look whether the right optimiser holds its parameters.

    What ``health().messages`` says at the end of the training is a ``RegularizerWarning`` once more.

    Args:
        every_n_steps: Optimiser's steps between two lines of the log.

    Examples:
        >>> trainer = Trainer(callbacks=[RegularizerCallback(every_n_steps=100)], accelerator="cpu", logger=False)
    """

    def __init__(self, every_n_steps: int = 50) -> None:
        self.every_n_steps = check_count("every_n_steps", every_n_steps)
        self._logged = 0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Check whose parameters the optimisers hold."""
        held = {p for optimizer in trainer.optimizers for group in optimizer.param_groups for p in group["params"]}
        for name, regularizer in _regularizers(pl_module):
            if regularizer.mode == "joint" and not set(regularizer.parameters()) <= held:
                raise ValueError(
                    f"no optimizer of configure_optimizers holds the parameters of {name}, which has mode='joint'; "
                    "expected them there, or nothing moves the estimator. Use self.outer_parameters(), or "
                    "mode='alternate'"
                )
            if _own(regularizer) & held:
                warnings.warn(
                    f"an optimizer of configure_optimizers holds the parameters of {name}, which has one of its own; "
                    "it meets no gradient there, but some optimisers move without. Use self.outer_parameters() "
                    "instead of self.parameters()",
                    RegularizerWarning,
                    stacklevel=2,
                )

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *_: Any) -> None:
        """Log what ``health().scalars()`` gives, under the regularizer's name."""
        step = trainer.global_step
        if step % self.every_n_steps or step == self._logged:
            return
        self._logged = step
        for name, regularizer in _regularizers(pl_module):
            scalars = {f"{name}/{key}": value for key, value in regularizer.health().scalars().items()}
            for logger in trainer.loggers:
                logger.log_metrics(scalars, step=step)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Say what still holds."""
        for name, regularizer in _regularizers(pl_module) if trainer.is_global_zero else ():
            for message in regularizer.health().messages:
                warnings.warn(f"{name}, at the end of the training: {message}", RegularizerWarning, stacklevel=2)


def _regularizers(module: nn.Module) -> list[tuple[str, Regularizer]]:
    return [(name, part) for name, part in module.named_modules() if isinstance(part, Regularizer)]


def _own(regularizer: Regularizer) -> set[nn.Parameter]:
    """The parameters that the regularizer's own optimiser moves."""
    return set() if regularizer.mode == "joint" else set(regularizer.parameters())
