"""A regularizer in the ``Trainer`` of Hugging Face.

It needs transformers and accelerate: ``pip install "infoknife[transformers]"``.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from infoknife.atomic import written_whole
from infoknife.regularizer import Regularizer, RegularizerWarning

try:
    from transformers import Trainer
except ImportError as error:
    raise ImportError(
        "infoknife.integrations.transformers needs transformers and accelerate; install them with: pip install "
        '"infoknife[transformers]"'
    ) from error

__all__ = ["RegularizedTrainer"]

FILE = "regularizer.pt"  # next to optimizer.pt in a checkpoint


class RegularizedTrainer(Trainer):
    """A ``Trainer`` that adds a regularizer's term to the loss; also a mixin before another ``Trainer``.

    While training, each batch takes the inner step and adds the term, also with gradient accumulation and bf16; the
    numbers of ``health()`` are logged with the loss. In evaluation the loss is the task's alone. Every checkpoint with
    the optimiser's state has the regularizer's in ``regularizer.pt``, and ``resume_from_checkpoint`` goes on with it.

    Args:
        *args: As for ``Trainer``.
        regularizer: With ``mode="alternate"``; it is no part of the model, so that a saved model is free of it.
        z: Where the codes (N, d) are: a field of the model's outputs, or a function of them.
        s: The column of the data that goes with them, if any. A column that the model does not take is kept from it.
        **kwargs: As for ``Trainer``.

    Examples:
        >>> from transformers import Seq2SeqTrainer
        >>> class Translator(RegularizedTrainer, Seq2SeqTrainer): ...
        >>> def z(outputs: Any) -> Tensor:
        ...     return outputs.encoder_last_hidden_state[:, 0]
        >>> # Translator(model, arguments, regularizer=regularizer, z=z, s="language", train_dataset=...)
    """

    def __init__(
        self,
        *args: Any,
        regularizer: Regularizer,
        z: str | Callable[[Any], Tensor],
        s: str | None = None,
        **kwargs: Any,
    ) -> None:
        if regularizer.mode != "alternate":
            raise ValueError(
                f"regularizer has mode={regularizer.mode!r}; expected mode='alternate': the optimizer of a Trainer "
                "holds the parameters of the model alone"
            )
        super().__init__(*args, **kwargs)
        self.regularizer, self.z, self.s = regularizer.to(self.args.device), z, s
        self._set_signature_columns_if_needed()
        columns: Any = self._signature_columns
        self._apart = {s} - {None, *columns}  # what the model does not take
        columns.extend(self._apart)  # else the Trainer would drop it as unused

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """Return the loss of the task; while training, with the regularizer's term after an inner step."""
        s = self._s_column(inputs) if model.training else None  # before the Trainer takes labels away
        loss, outputs = super().compute_loss(model, self._model_inputs(inputs), True, num_items_in_batch)
        if model.training:
            z = self._codes(outputs)
            self.regularizer.step(z, s)
            loss = loss + self.regularizer(z, s) / self._accumulated_batches(num_items_in_batch)
        return (loss, outputs) if return_outputs else loss

    def prediction_step(self, model: nn.Module, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Evaluate a batch without s."""
        return super().prediction_step(model, self._model_inputs(inputs), *args, **kwargs)

    def log(self, logs: dict[str, float], *args: Any) -> None:
        """Log, and with the loss of the training the numbers of ``health()``."""
        if "loss" in logs:
            logs |= {f"regularizer/{name}": value for name, value in self.regularizer.health().scalars().items()}
        super().log(logs, *args)

    def _model_inputs(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in inputs.items() if name not in self._apart}

    def _s_column(self, inputs: dict[str, Any]) -> Any:
        if self.s is not None and self.s not in inputs:
            raise ValueError(f"s is {self.s!r}, and a batch has {list(inputs)}; expected a column of the training data")
        return None if self.s is None else inputs[self.s]

    def _codes(self, outputs: Any) -> Tensor:
        if callable(self.z):
            return self.z(outputs)
        if not isinstance(outputs, dict) or self.z not in outputs:
            fields = list(outputs) if isinstance(outputs, dict) else f"a {type(outputs).__name__}"
            raise ValueError(f"z is {self.z!r}, and the model gave {fields}; expected a field of it, or a function")
        return outputs[self.z]

    def _accumulated_batches(self, num_items_in_batch: Any) -> int:
        """How many batches share a step, where the Trainer leaves the division to the loss."""
        divided = getattr(self, "loss_is_scaled_for_ga", None)
        if divided is None:
            divided = self.compute_loss_func or (self.model_accepts_loss_kwargs and num_items_in_batch is not None)
        return self.current_gradient_accumulation_steps if divided else 1

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        if self.args.should_save:
            with written_whole(Path(output_dir) / FILE) as file:
                torch.save(self.regularizer.state_dict(), file)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None and (Path(checkpoint) / FILE).exists():
            state = torch.load(Path(checkpoint) / FILE, map_location=self.args.device, weights_only=True)
            self.regularizer.load_state_dict(state)
        elif checkpoint is not None:
            message = f"the checkpoint has no {FILE}, so that the estimator goes on as it is; look into {checkpoint}"
            warnings.warn(message, RegularizerWarning, stacklevel=2)
