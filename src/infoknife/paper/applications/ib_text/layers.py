"""The lower layers of an encoder that stay as they are: their states are computed once, and given to the upper ones."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

TOLERANCE = 1e-4  # of states that must be the same


class PassThrough(nn.Module):
    """In place of the embeddings: returns what is given."""

    def forward(self, codes: Any = None, inputs_embeds: Tensor | None = None, *_: Any, **__: Any) -> Tensor:
        """Return ``inputs_embeds``, by name or as the second argument."""
        assert inputs_embeds is not None
        return inputs_embeds


def freeze(encoder: nn.Module, layers: int) -> None:
    """Let the embeddings and all but the uppermost layers of an encoder of Hugging Face's kind stay as they are."""
    holder, name = _list_of_layers(encoder)
    whole = getattr(holder, name)
    if layers > len(whole):
        raise ValueError(f"layers is {layers}; expected at most {len(whole)}, as many as the encoder has")
    encoder.requires_grad_(False)
    for layer in whole[len(whole) - layers :]:
        layer.requires_grad_(True)


@contextmanager
def upper_only(encoder: nn.Module, layers: int) -> Iterator[None]:
    """Let the encoder be its uppermost layers alone, which take ``inputs_embeds``, inside."""
    holder, name = _list_of_layers(encoder)
    whole, embeddings = getattr(holder, name), encoder.embeddings
    setattr(holder, name, whole[len(whole) - layers :])
    encoder.embeddings = PassThrough()
    try:
        yield
    finally:
        setattr(holder, name, whole)
        encoder.embeddings = embeddings


@torch.no_grad()
def lower_states(encoder: nn.Module, layers: int, **inputs: Tensor) -> Tensor:
    """Return the states (N, L, H) that the uppermost layers take."""
    holder, name = _list_of_layers(encoder)
    whole = getattr(holder, name)
    setattr(holder, name, whole[: len(whole) - layers])
    try:
        states: Tensor = encoder(**inputs).last_hidden_state
        return states
    finally:
        setattr(holder, name, whole)


@torch.no_grad()
def splits(encoder: nn.Module, layers: int) -> bool:
    """Whether the lower states and the upper layers give what the whole encoder gives: it is tried."""
    was, _ = encoder.training, encoder.eval()
    device = next(encoder.parameters()).device
    inputs = {"input_ids": torch.tensor([[1, 2, 3]]), "attention_mask": torch.tensor([[1, 1, 0]])}
    inputs = {key: value.to(device) for key, value in inputs.items()}
    try:
        states = lower_states(encoder, layers, **inputs)
        with upper_only(encoder, layers):
            found = encoder(inputs_embeds=states, attention_mask=inputs["attention_mask"]).last_hidden_state
        return torch.allclose(found[:, :2], encoder(**inputs).last_hidden_state[:, :2], atol=TOLERANCE)
    except (AssertionError, AttributeError, RuntimeError, TypeError, ValueError):  # it has no such parts
        return False
    finally:
        encoder.train(was)


def _list_of_layers(encoder: nn.Module) -> tuple[nn.Module, str]:
    """The module that holds the list of layers, and its name there."""
    count = getattr(encoder.config, "num_hidden_layers", None)
    for path, module in encoder.named_modules():
        if isinstance(module, nn.ModuleList) and len(module) == count:
            parent, _, name = path.rpartition(".")
            return encoder.get_submodule(parent), name
    raise ValueError(
        f"layers is set, but {type(encoder).__name__} has no list of {count} layers; leave layers out, so that the "
        "whole encoder learns"
    )
