"""The classifier: an encoder of texts, and a head for the label."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, final

import torch
from torch import Tensor, nn

from infoknife.paper.applications.fair_text.encoders import ENCODERS
from infoknife.paper.applications.fair_text.settings import FairTextSettings

BLOCK = 1000  # rows that are encoded at once


@final
class TextClassifier(nn.Module):
    r"""An encoder $\Phi$ and a head of two layers with LeakyReLU. Called with texts it returns logits of labels.

    The features are $Z = \Phi(X) + \sigma \epsilon$ with standard noise $\epsilon$, in training and ever after: what is
    smaller than the noise is gone for good. Without noise, information counts a direction however little features vary
    in it, and to hide something an encoder would have to make it right in all of them.

    Args:
        words: Those that the encoder has codes for.
        settings: Of the encoder, the head and the noise.
        labels: How many there are.

    Example:
        >>> settings = FairTextSettings(encoder="gru", features=4)
        >>> model = TextClassifier.of(["so ok", "so so"], settings, labels=2).eval()
        >>> model(["ok", "unseen words", ""]).shape
        torch.Size([3, 2])
    """

    def __init__(self, words: Sequence[str], settings: FairTextSettings, labels: int) -> None:
        super().__init__()
        self.encoder, self.noise = ENCODERS[settings.encoder](words, settings), settings.noise
        self.head = nn.Sequential(
            nn.Dropout(settings.dropout),
            nn.Linear(settings.features, settings.hidden),
            nn.LeakyReLU(),
            nn.Dropout(settings.dropout),
            nn.Linear(settings.hidden, labels),
        )

    @classmethod
    def of(cls, texts: Sequence[str], settings: FairTextSettings, labels: int) -> "TextClassifier":
        """Make a classifier for texts like these, the training texts."""
        return cls(ENCODERS[settings.encoder].words_of(texts), settings, labels)

    def forward(self, texts: Sequence[str], seed: int | None = None) -> Tensor:
        """Return the logits (N, labels) of texts; a seed makes the noise repeatable."""
        logits: Tensor = self.head(self.features(texts, seed))
        return logits

    def features(self, texts: Sequence[str], seed: int | None = None) -> Tensor:
        r"""Return $\Phi(x) + \sigma \epsilon$ (N, features) of texts; a seed makes the noise repeatable."""
        if isinstance(texts, str):
            raise TypeError("texts is one string; expected a sequence of strings, such as [text]")
        rows = self.encoder.read(texts).to(next(self.parameters()).device)
        return self.noisy(rows, None if seed is None else torch.Generator().manual_seed(seed))

    def noisy(self, rows: Any, generator: torch.Generator | None = None) -> Tensor:
        """Return the features (N, features) of rows that the encoder has read."""
        z: Tensor = self.encoder(rows)
        if self.noise == 0:
            return z
        return z + self.noise * torch.randn(z.shape, generator=generator, dtype=z.dtype).to(z.device)


@contextmanager
def quiet(module: nn.Module) -> Iterator[None]:
    """Let a module be without dropout inside."""
    was, _ = module.training, module.eval()
    try:
        yield
    finally:
        module.train(was)


@torch.no_grad()
def encoded(model: TextClassifier, rows: Any, seed: int = 0) -> Tensor:
    """Return the features (N, features) of all rows, without dropout, with the noise of a seed."""
    generator = torch.Generator().manual_seed(seed)
    with quiet(model):
        every = torch.arange(len(rows)).to(next(model.parameters()).device)
        return torch.cat([model.noisy(rows[block], generator) for block in every.split(BLOCK)])
