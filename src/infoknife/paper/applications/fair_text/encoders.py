"""Encoders of texts: bags of pieces, the paper's recurrent network, a pretrained transformer."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self, final

import torch
from torch import Tensor, nn

from infoknife.paper.applications.fair_text.pieces import Bags, Pieces
from infoknife.paper.applications.fair_text.settings import Settings
from infoknife.paper.applications.fair_text.vocabulary import PADDING, Vocabulary

__all__ = ["ENCODERS", "BagEncoder", "Encoder", "GRUEncoder"]

START = 0.1  # deviation of the embeddings before training
LAYERS = 2


class Encoder(nn.Module, ABC):
    """Features of texts. ``read`` turns texts into rows once; ``forward`` turns rows into features, again and again.

    Attributes:
        features: How many.
    """

    features: int

    @abstractmethod
    def read(self, texts: Sequence[str]) -> Any:
        """Turn N texts into rows: with a length, taken by a tensor of their numbers, and moved by ``to(device)``."""

    @abstractmethod
    def forward(self, rows: Any) -> Tensor:
        """Give the features (N, features) of rows."""

    @abstractmethod
    def words(self) -> list[str]:
        """Give the words that have codes, for a checkpoint."""

    @classmethod
    @abstractmethod
    def of(cls, texts: Sequence[str], settings: Settings) -> Self:
        """Make an encoder for texts like these, which are the training texts."""

    @classmethod
    @abstractmethod
    def of_words(cls, words: list[str], settings: Settings) -> Self:
        """Make the encoder anew whose words these are."""


@final
class BagEncoder(Encoder):
    """A sum of learned embeddings of the pieces of a text, brought to unit size, and one linear layer.

    Args:
        known: The pieces.
        embedding: Numbers of an embedding.
        features: Numbers of the features.
        dropout: Part of the pieces that are left out in training.

    Example:
        >>> encoder = BagEncoder(Pieces(("so", "ok")), 8, 4, 0.5)
        >>> encoder(encoder.read(["so ok", ""])).shape
        torch.Size([2, 4])
    """

    def __init__(self, known: Pieces, embedding: int, features: int, dropout: float) -> None:
        super().__init__()
        self.known, self.features, self.dropout = known, features, dropout
        self.embedding = nn.EmbeddingBag(len(known), embedding, mode="sum")
        nn.init.normal_(self.embedding.weight, std=START)
        self.project = nn.Sequential(nn.LayerNorm(embedding), nn.Linear(embedding, features))

    def read(self, texts: Sequence[str]) -> Bags:
        """Turn texts into bags of codes."""
        return self.known.encode(texts)

    def forward(self, rows: Bags) -> Tensor:
        """Give the features (N, features)."""
        size = torch.repeat_interleave(rows.counts.sqrt(), rows.counts)
        weights = torch.rand_like(size) >= self.dropout if self.training else torch.ones_like(size)
        kept = 1 - self.dropout if self.training else 1.0
        pooled = self.embedding(rows.codes, rows.starts, per_sample_weights=weights / (kept * size))
        features: Tensor = self.project(pooled)
        return features

    def words(self) -> list[str]:
        """Give the pieces."""
        return list(self.known.known)

    @classmethod
    def of(cls, texts: Sequence[str], settings: Settings) -> Self:
        """Take the pieces of the training texts."""
        return cls.of_words(list(Pieces.of(texts).known), settings)

    @classmethod
    def of_words(cls, words: list[str], settings: Settings) -> Self:
        """Make the encoder of these pieces."""
        return cls(Pieces(tuple(words)), settings.embedding, settings.features, settings.word_dropout)


@final
class GRUEncoder(Encoder):
    """The paper's encoder: a bidirectional GRU of two layers; the features are both directions' last states.

    Args:
        vocabulary: The words.
        embedding: Numbers of a word's embedding, and the GRU's input.
        features: Numbers of the features, half of them from each direction.
        dropout: Part of the numbers that are dropped on the way in and between the layers.

    Example:
        >>> encoder = GRUEncoder(Vocabulary(("so", "ok")), 8, 4, 0.2)
        >>> encoder(encoder.read(["so ok", ""])).shape
        torch.Size([2, 4])
    """

    def __init__(self, vocabulary: Vocabulary, embedding: int, features: int, dropout: float) -> None:
        super().__init__()
        if features % 2:
            raise ValueError(f"features is {features}; expected an even number, half of them from each direction")
        self.vocabulary, self.features = vocabulary, features
        self.embedding = nn.Embedding(len(vocabulary), embedding, padding_idx=PADDING)
        self.gru = nn.GRU(embedding, features // 2, LAYERS, batch_first=True, bidirectional=True, dropout=dropout)
        self.drop = nn.Dropout(dropout)

    def read(self, texts: Sequence[str]) -> Tensor:
        """Turn texts into codes of words (N, L)."""
        return self.vocabulary.encode(texts)

    def forward(self, rows: Tensor) -> Tensor:
        """Give the features (N, features) of codes (N, L)."""
        lengths = (rows != PADDING).sum(1)
        embedded = self.drop(self.embedding(rows[:, : int(lengths.max())]))
        packed = nn.utils.rnn.pack_padded_sequence(embedded, lengths.cpu(), batch_first=True, enforce_sorted=False)
        _, states = self.gru(packed)  # 2 LAYERS, N, features / 2
        return torch.cat([states[-2], states[-1]], -1)

    def words(self) -> list[str]:
        """Give the vocabulary's words."""
        return self.vocabulary.state()

    @classmethod
    def of(cls, texts: Sequence[str], settings: Settings) -> Self:
        """Take the words of the training texts."""
        return cls.of_words(Vocabulary.of(texts).state(), settings)

    @classmethod
    def of_words(cls, words: list[str], settings: Settings) -> Self:
        """Make the encoder of these words."""
        return cls(Vocabulary.of_state(words), settings.embedding, settings.features, settings.dropout)


def _minilm() -> type[Encoder]:
    from infoknife.paper.applications.fair_text.pretrained import (
        MiniLMEncoder,
    )  # loads nothing heavy before it is asked for

    return MiniLMEncoder


ENCODERS: Mapping[str, Callable[[], type[Encoder]]] = MappingProxyType(
    {"bag": lambda: BagEncoder, "gru": lambda: GRUEncoder, "minilm": _minilm}
)
