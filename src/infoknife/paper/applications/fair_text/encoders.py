"""Encoders of texts: bags of pieces, the paper's recurrent network, a pretrained transformer."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, final

import torch
from torch import Tensor, nn

from infoknife.paper.applications.fair_text.settings import FairTextSettings
from infoknife.paper.applications.fair_text.words import (
    PADDING,
    SPECIAL,
    Bags,
    bags,
    frequent_pieces,
    frequent_words,
    word_codes,
)
from infoknife.paper.applications.pretrained import MINILM, encoder_of, tokenizer_of

START = 0.1  # deviation of the embeddings of a bag before training
LAYERS = 2  # of the GRU
MINILM_WIDTH, LENGTH, BLOCK = 384, 64, 64  # of MiniLM: width, tokens of a text, texts that are read at once


class TextEncoder(nn.Module, ABC):
    """Features of texts. ``read`` turns texts into rows once; ``forward`` turns rows into features, again and again.

    Args:
        words: Those that have codes.
        settings: Those of the run.
    """

    def __init__(self, words: Sequence[str], settings: FairTextSettings) -> None:
        super().__init__()
        self.words, self.features = list(words), settings.features

    @staticmethod
    @abstractmethod
    def words_of(texts: Sequence[str]) -> list[str]:
        """Return the words that are to have codes, from the training texts."""

    @abstractmethod
    def read(self, texts: Sequence[str]) -> Any:
        """Turn N texts into rows: with a length, taken by a tensor of their numbers, and moved by ``to(device)``."""

    @abstractmethod
    def forward(self, rows: Any) -> Tensor:
        """Return the features (N, features) of rows."""


@final
class BagEncoder(TextEncoder):
    """A sum of learned embeddings of the pieces of a text, brought to unit size, and one linear layer.

    Example:
        >>> encoder = BagEncoder(["so", "ok"], FairTextSettings(features=4))
        >>> encoder(encoder.read(["so ok", ""])).shape
        torch.Size([2, 4])
    """

    def __init__(self, words: Sequence[str], settings: FairTextSettings) -> None:
        super().__init__(words, settings)
        self.dropout = settings.word_dropout
        self.embedding = nn.EmbeddingBag(1 + len(words), settings.embedding, mode="sum")
        nn.init.normal_(self.embedding.weight, std=START)
        self.project = nn.Sequential(nn.LayerNorm(settings.embedding), nn.Linear(settings.embedding, settings.features))

    @staticmethod
    def words_of(texts: Sequence[str]) -> list[str]:
        """Return frequent pieces."""
        return frequent_pieces(texts)

    def read(self, texts: Sequence[str]) -> Bags:
        """Turn texts into bags of codes."""
        return bags(self.words, texts)

    def forward(self, rows: Bags) -> Tensor:
        """Return the features; in training of a part of the pieces."""
        size = torch.repeat_interleave(rows.counts.sqrt(), rows.counts)
        weights = torch.rand_like(size) >= self.dropout if self.training else torch.ones_like(size)
        kept = 1 - self.dropout if self.training else 1.0
        pooled = self.embedding(rows.codes, rows.starts, per_sample_weights=weights / (kept * size))
        features: Tensor = self.project(pooled)
        return features


@final
class GRUEncoder(TextEncoder):
    """The paper's encoder: a bidirectional GRU of two layers; the features are both directions' last states.

    Example:
        >>> encoder = GRUEncoder(["so", "ok"], FairTextSettings(features=4))
        >>> encoder(encoder.read(["so ok", ""])).shape
        torch.Size([2, 4])
    """

    def __init__(self, words: Sequence[str], settings: FairTextSettings) -> None:
        super().__init__(words, settings)
        width, dropout = settings.embedding, settings.dropout
        self.embedding = nn.Embedding(SPECIAL + len(words), width, padding_idx=PADDING)
        half = settings.features // 2
        self.gru = nn.GRU(width, half, LAYERS, batch_first=True, bidirectional=True, dropout=dropout)
        self.drop = nn.Dropout(dropout)

    @staticmethod
    def words_of(texts: Sequence[str]) -> list[str]:
        """Return frequent words."""
        return frequent_words(texts)

    def read(self, texts: Sequence[str]) -> Tensor:
        """Turn texts into codes of words (N, L)."""
        return word_codes(self.words, texts)

    def forward(self, rows: Tensor) -> Tensor:
        """Return the features of codes (N, L)."""
        lengths = (rows != PADDING).sum(1)
        embedded = self.drop(self.embedding(rows[:, : int(lengths.max())]))
        packed = nn.utils.rnn.pack_padded_sequence(embedded, lengths.cpu(), batch_first=True, enforce_sorted=False)
        _, states = self.gru(packed)  # 2 LAYERS, N, features / 2
        return torch.cat([states[-2], states[-1]], -1)


@final
class MiniLMEncoder(TextEncoder):
    """The mean of MiniLM's last states (384 numbers), and one linear layer that is learned.

    Frozen, a text's 384 numbers are computed once, when it is read; fine-tuned, they are at every step, and the
    transformer learns as well. The model is tuned for sentences, not a raw BERT.
    """

    def __init__(self, words: Sequence[str], settings: FairTextSettings) -> None:
        super().__init__((), settings)
        self.fine_tune = settings.fine_tune
        self.tokenizer = tokenizer_of(MINILM)
        self.transformer = encoder_of(MINILM).requires_grad_(self.fine_tune)
        last = nn.Linear(MINILM_WIDTH, settings.features)
        self.project = nn.Sequential(nn.LayerNorm(MINILM_WIDTH), nn.Dropout(settings.dropout), last)

    @staticmethod
    def words_of(texts: Sequence[str]) -> list[str]:
        """Return nothing: the words are the package's."""
        return []

    def read(self, texts: Sequence[str]) -> Tensor:
        """Turn texts into codes (N, 64) where the transformer learns, else into its 384 numbers (N, 384)."""
        how: dict[str, Any] = {"padding": "max_length", "truncation": True, "max_length": LENGTH}
        blocks = (list(texts[i : i + BLOCK]) for i in range(0, len(texts), BLOCK))
        codes = torch.cat([self.tokenizer(block, **how, return_tensors="pt")["input_ids"] for block in blocks])
        return codes if self.fine_tune else self._fixed(codes)

    def forward(self, rows: Tensor) -> Tensor:
        """Return the features."""
        features: Tensor = self.project(self._pooled(rows) if self.fine_tune else rows)
        return features

    @torch.no_grad()
    def _fixed(self, codes: Tensor) -> Tensor:
        was, _ = self.transformer.training, self.transformer.eval()
        device = next(self.transformer.parameters()).device
        order = (codes != self.tokenizer.pad_token_id).sum(1).argsort()  # texts of like length in one block
        pooled = torch.cat([self._pooled(codes[rows].to(device)).cpu() for rows in order.split(BLOCK)])
        self.transformer.train(was)
        return pooled[order.argsort()]

    def _pooled(self, codes: Tensor) -> Tensor:
        mask = codes != self.tokenizer.pad_token_id
        longest = int(mask.sum(1).max())
        codes, mask = codes[:, :longest], mask[:, :longest]
        states = self.transformer(input_ids=codes, attention_mask=mask.long()).last_hidden_state  # N L 384
        weights = mask.unsqueeze(-1).to(states.dtype)
        pooled: Tensor = (states * weights).sum(1) / weights.sum(1)
        return pooled


ENCODERS: Mapping[str, type[TextEncoder]] = {"bag": BagEncoder, "gru": GRUEncoder, "minilm": MiniLMEncoder}
