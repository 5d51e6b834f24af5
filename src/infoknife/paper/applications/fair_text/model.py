"""The classifier: an encoder of texts (bags of pieces, the paper's GRU, or MiniLM), and a head for the label."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, final

import torch
from torch import Tensor, nn
from typing_extensions import override

from infoknife.erasure import LEACE
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
from infoknife.paper.applications.run import evaluating

START = 0.1  # deviation of the embeddings of a bag before training
LAYERS = 2  # of the GRU
MINILM_WIDTH, LENGTH, READ = 384, 64, 64  # of MiniLM: width, tokens of a text, texts that are read at once
BLOCK = 1000  # rows that are encoded at once
HEAD_RATE, HEAD_STEPS = 1e-2, 100  # of the head on erased features: all training rows at once, until it is flat


class TextEncoder(nn.Module, ABC):
    """Features of texts. ``read`` turns texts into rows once; ``forward`` turns rows into features, again and again."""

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

    Examples:
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
    @override
    def words_of(texts: Sequence[str]) -> list[str]:
        return frequent_pieces(texts)

    @override
    def read(self, texts: Sequence[str]) -> Bags:
        return bags(self.words, texts)

    @override
    def forward(self, rows: Bags) -> Tensor:
        size = torch.repeat_interleave(rows.counts.sqrt(), rows.counts)
        weights = torch.rand_like(size) >= self.dropout if self.training else torch.ones_like(size)
        kept = 1 - self.dropout if self.training else 1.0
        pooled = self.embedding(rows.codes, rows.starts, per_sample_weights=weights / (kept * size))
        return self.project(pooled)


@final
class GRUEncoder(TextEncoder):
    """The paper's encoder: a bidirectional GRU of two layers; the features are both directions' last states.

    Examples:
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
    @override
    def words_of(texts: Sequence[str]) -> list[str]:
        return frequent_words(texts)

    @override
    def read(self, texts: Sequence[str]) -> Tensor:
        return word_codes(self.words, texts)

    @override
    def forward(self, rows: Tensor) -> Tensor:
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
    @override
    def words_of(texts: Sequence[str]) -> list[str]:
        return []  # the words are the package's

    @override
    def read(self, texts: Sequence[str]) -> Tensor:
        # codes (N, 64) where the transformer learns, else its 384 numbers (N, 384)
        how: dict[str, Any] = {"padding": "max_length", "truncation": True, "max_length": LENGTH}
        blocks = (list(texts[i : i + READ]) for i in range(0, len(texts), READ))
        codes = torch.cat([self.tokenizer(block, **how, return_tensors="pt")["input_ids"] for block in blocks])
        if self.fine_tune:
            return codes
        device = next(self.transformer.parameters()).device
        order = (codes != self.tokenizer.pad_token_id).sum(1).argsort()  # texts of like length in one block
        with torch.no_grad(), evaluating(self.transformer):
            pooled = torch.cat([self._pooled(codes[rows].to(device)).cpu() for rows in order.split(READ)])
        return pooled[order.argsort()]

    @override
    def forward(self, rows: Tensor) -> Tensor:
        return self.project(self._pooled(rows) if self.fine_tune else rows)

    def _pooled(self, codes: Tensor) -> Tensor:
        mask = codes != self.tokenizer.pad_token_id
        longest = int(mask.sum(1).max())
        codes, mask = codes[:, :longest], mask[:, :longest]
        states = self.transformer(input_ids=codes, attention_mask=mask.long()).last_hidden_state  # N L 384
        weights = mask.unsqueeze(-1).to(states.dtype)
        return (states * weights).sum(1) / weights.sum(1)


ENCODERS: Mapping[str, type[TextEncoder]] = {"bag": BagEncoder, "gru": GRUEncoder, "minilm": MiniLMEncoder}


@final
class TextClassifier(nn.Module):
    r"""An encoder $\Phi$ and a head of two layers with LeakyReLU. Called with texts it returns logits of labels.

    The features are $Z = \Phi(X) + \sigma \epsilon$ with standard noise $\epsilon$, in training and ever after: what is
    smaller than the noise is gone for good. Without noise, information counts a direction however little features vary
    in it, and to hide something an encoder would have to make it right in all of them.

    The encoder has codes for ``words``; ``labels`` says how many there are.

    Examples:
        >>> settings = FairTextSettings(encoder="gru", features=4)
        >>> model = TextClassifier.of(["so ok", "so so"], settings, labels=2).eval()
        >>> model(["ok", "unseen words", ""]).shape
        torch.Size([3, 2])
    """

    def __init__(self, words: Sequence[str], settings: FairTextSettings, labels: int) -> None:
        super().__init__()
        self.encoder, self.noise = ENCODERS[settings.encoder](words, settings), settings.noise
        self.erasure = LEACE() if settings.method == "leace" else None  # see ``erase_private_attribute``
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
        return self.head(self.features(texts, seed))

    def features(self, texts: Sequence[str], seed: int | None = None) -> Tensor:
        r"""Return $\Phi(x) + \sigma \epsilon$ (N, features) of texts; a seed makes the noise repeatable."""
        if isinstance(texts, str):
            raise TypeError("texts is one string; expected a sequence of strings, such as [text]")
        rows = self.encoder.read(texts).to(next(self.parameters()).device)
        return self.noisy(rows, None if seed is None else torch.Generator().manual_seed(seed))

    def noisy(self, rows: Any, generator: torch.Generator | None = None) -> Tensor:
        """Return the features (N, features) of rows that the encoder has read."""
        z: Tensor = self.encoder(rows)
        if self.noise > 0:
            z = z + self.noise * torch.randn(z.shape, generator=generator, dtype=z.dtype).to(z.device)
        return z if self.erasure is None or not self.erasure.dim else self.erasure(z)


@torch.no_grad()
def encode(model: TextClassifier, rows: Any, seed: int = 0) -> Tensor:
    """Return the features (N, features) of all rows, without dropout, with the noise of a seed."""
    generator = torch.Generator().manual_seed(seed)
    with evaluating(model):
        every = torch.arange(len(rows)).to(next(model.parameters()).device)
        return torch.cat([model.noisy(rows[block], generator) for block in every.split(BLOCK)])


def erase_private_attribute(model: TextClassifier, rows: Any, y: Tensor, s: Tensor) -> None:
    """Fit LEACE to the frozen features of training rows, and retrain the head on what it leaves of them."""
    assert model.erasure is not None
    model.erasure.reset()
    z = model.erasure.fit(encode(model, rows), s)(encode(model, rows))
    optimizer = torch.optim.Adam(model.head.parameters(), lr=HEAD_RATE)
    model.head.train()
    for _ in range(HEAD_STEPS):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model.head(z), y).backward()
        optimizer.step()
