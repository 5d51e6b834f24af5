"""A step of fine-tuning with KNIFE's bottleneck beside one with the cross-entropy alone, at MiniLM's size."""

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.rows import Bar, Row
from benchmarks.timing import best
from infoknife.paper.applications.ib_text import Bottleneck, BottleneckConfig, BottleneckSettings

BATCHES = 4  # that are timed together
HIDDEN = 384
MINILM: dict[str, Any] = {"model_type": "bert", "vocab_size": 100, "hidden_size": HIDDEN, "num_hidden_layers": 6}
MINILM |= {"num_attention_heads": 12, "intermediate_size": 4 * HIDDEN}


def knife_against_cross_entropy(length: int, rounds: int, most: float) -> Row:
    """How much longer a step takes with I(Z; X) in the loss, where only the upper layers learn.

    Args:
        length: Tokens of a pair; MRPC has 53 on average.
        rounds: Turns of each.
        most: The bar.
    """
    settings = BottleneckSettings.preset("cpu", "knife")
    names = "knife", "none"
    seconds = dict(zip(names, best([_steps(name, settings, length) for name in names], rounds), strict=True))
    size = f"{settings.batch_size}, {length}, {settings.bottleneck}"
    each = {name: value / BATCHES for name, value in seconds.items()}
    return Row(
        "bottleneck step to cross-entropy", size, seconds["knife"] / seconds["none"], "x", Bar(most, False), each
    )


def _steps(method: str, settings: BottleneckSettings, length: int) -> Callable[[], None]:
    config = BottleneckConfig(encoder=MINILM, method=method, layers=settings.layers, num_labels=2)
    model = Bottleneck(config).train()
    optimizer = torch.optim.AdamW(model.parameter_groups(settings.lr, settings.head_lr), fused=True)
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(settings.batch_size, length, HIDDEN, generator=generator)
    batch = {"states": states, "attention_mask": torch.ones(states.shape[:2]), "labels": torch.arange(len(states)) % 2}

    def take() -> None:
        for _ in range(BATCHES):
            optimizer.zero_grad()
            model(**batch).loss.backward()
            optimizer.step()

    return take
