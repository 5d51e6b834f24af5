"""A pretrained transformer as the encoder: all-MiniLM-L6-v2, tuned for sentences, from a package on the index."""

from collections.abc import Sequence
from typing import Any, Self, final

import torch
from torch import Tensor, nn

from infoknife.paper.applications.fair_text.encoders import Encoder
from infoknife.paper.applications.fair_text.settings import Settings
from infoknife.paper.applications.pretrained import MINILM, encoder_of, tokenizer_of

__all__ = ["MiniLMEncoder"]

LENGTH = 64  # tokens of a text that are kept
BLOCK = 64  # texts that are read at once
HIDDEN = 384


@final
class MiniLMEncoder(Encoder):
    """The mean of MiniLM's last states (384 numbers), and one linear layer that is learned.

    Frozen, a text's 384 numbers are computed once, when it is read; fine-tuned, they are at every step, and the
    transformer learns as well. The model is tuned for sentences, not a raw BERT.

    Args:
        features: Numbers of the features.
        fine_tune: Whether the transformer learns.
        dropout: Part of the 384 numbers that are dropped in training.
    """

    def __init__(self, features: int, fine_tune: bool, dropout: float) -> None:
        super().__init__()
        self.features, self.fine_tune = features, fine_tune
        self.tokenizer = tokenizer_of(MINILM)
        self.transformer = encoder_of(MINILM).requires_grad_(fine_tune)
        self.project = nn.Sequential(nn.LayerNorm(HIDDEN), nn.Dropout(dropout), nn.Linear(HIDDEN, features))

    def read(self, texts: Sequence[str]) -> Tensor:
        """Turn texts into codes (N, 64) where the transformer learns, else into its 384 numbers (N, 384)."""
        codes = torch.cat([self._codes(texts[i : i + BLOCK]) for i in range(0, len(texts), BLOCK)])
        return codes if self.fine_tune else self._fixed(codes)

    def forward(self, rows: Tensor) -> Tensor:
        """Give the features (N, features)."""
        features: Tensor = self.project(self._pooled(rows) if self.fine_tune else rows)
        return features

    def words(self) -> list[str]:
        """Give nothing: the words are the package's."""
        return []

    @classmethod
    def of(cls, texts: Sequence[str], settings: Settings) -> Self:
        """Load the pretrained model."""
        return cls(settings.features, settings.fine_tune, settings.dropout)

    @classmethod
    def of_words(cls, words: list[str], settings: Settings) -> Self:
        """Load the pretrained model."""
        return cls(settings.features, settings.fine_tune, settings.dropout)

    def _codes(self, texts: Sequence[str]) -> Tensor:
        how: dict[str, Any] = {"padding": "max_length", "truncation": True, "max_length": LENGTH}
        codes: Tensor = self.tokenizer(list(texts), **how, return_tensors="pt")["input_ids"]
        return codes

    @torch.no_grad()
    def _fixed(self, codes: Tensor) -> Tensor:
        was, _ = self.transformer.training, self.transformer.eval()
        device = next(self.transformer.parameters()).device
        order = (codes != self._padding).sum(1).argsort()  # texts of like length in one block
        pooled = torch.cat([self._pooled(codes[rows].to(device)).cpu() for rows in order.split(BLOCK)])
        self.transformer.train(was)
        return pooled[order.argsort()]

    def _pooled(self, codes: Tensor) -> Tensor:
        mask = codes != self._padding
        longest = int(mask.sum(1).max())
        codes, mask = codes[:, :longest], mask[:, :longest]
        states = self.transformer(input_ids=codes, attention_mask=mask.long()).last_hidden_state  # N L 384
        weights = mask.unsqueeze(-1).to(states.dtype)
        pooled: Tensor = (states * weights).sum(1) / weights.sum(1)
        return pooled

    @property
    def _padding(self) -> int:
        return int(self.tokenizer.pad_token_id)
