"""Texts as bags of pieces: words, pairs of words, and short runs of letters inside words."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise

import torch
from torch import Tensor

from infoknife.paper.applications.fair_text.vocabulary import tokens

__all__ = ["Bags", "Pieces", "pieces"]

LENGTH = 64  # tokens of a text that count
LETTERS = (2, 3, 4, 5)  # of a run
LONG = 20  # letters of a word that count
UNKNOWN = 0  # the code of a text without any known piece


def pieces(text: str, length: int = LENGTH) -> Iterator[str]:
    """Give the words of a text, its pairs of neighbours, and the runs of 2 to 5 letters in each word.

    Example:
        >>> list(pieces("so ok"))
        ['so', 'ok', 'so ok', '~<s', '~so', '~o>', '~<so', '~so>', '~<o', '~ok', '~k>', '~<ok', '~ok>']
    """
    words = list(islice(tokens(text), length))
    yield from words
    yield from (f"{a} {b}" for a, b in pairwise(words))
    for word in words:
        marked = f"<{word[:LONG]}>"
        for n in LETTERS:
            if n < len(marked):
                yield from (f"~{marked[i : i + n]}" for i in range(len(marked) - n + 1))


@dataclass(frozen=True)
class Bags:
    """Codes of N texts, one after the other.

    Args:
        codes: Of all texts, (T,).
        counts: How many are each text's, (N,).
    """

    codes: Tensor
    counts: Tensor

    @cached_property
    def starts(self) -> Tensor:
        """Where each text begins, (N,)."""
        return self.counts.cumsum(0) - self.counts

    def __len__(self) -> int:
        """Texts."""
        return len(self.counts)

    def __getitem__(self, rows: Tensor) -> "Bags":
        """Take some texts, by their numbers."""
        counts = self.counts[rows]
        shift = self.starts[rows] - (counts.cumsum(0) - counts)
        where = torch.repeat_interleave(shift, counts) + torch.arange(int(counts.sum()), device=counts.device)
        return Bags(self.codes[where], counts)

    def to(self, device: torch.device | str) -> "Bags":
        """Move to a device."""
        return Bags(self.codes.to(device), self.counts.to(device))


@dataclass(frozen=True)
class Pieces:
    """The pieces that have a code: 1, 2, ... in their order; code 0 is a text that has none of them.

    Args:
        known: Each once.

    Example:
        >>> found = Pieces.of(["so ok", "so so"], least=2)
        >>> found.encode(["so", "none"]).counts
        tensor([6, 1])
    """

    known: tuple[str, ...]

    @classmethod
    def of(cls, texts: Sequence[str], size: int = 30_000, least: int = 3) -> "Pieces":
        """Take the pieces that are in ``least`` of some texts or more, the most frequent first, at most ``size``."""
        counts = Counter(piece for text in texts for piece in set(pieces(text)))
        ranked = sorted((-count, piece) for piece, count in counts.items() if count >= least)
        return cls(tuple(piece for _, piece in ranked[:size]))

    def __len__(self) -> int:
        """Codes there are."""
        return 1 + len(self.known)

    def encode(self, texts: Sequence[str]) -> Bags:
        """Turn texts into bags; pieces that are not known are left out."""
        code = self._code
        rows = [[code[piece] for piece in pieces(text) if piece in code] or [UNKNOWN] for text in texts]
        counts = torch.tensor([len(row) for row in rows], dtype=torch.int64)
        return Bags(torch.tensor([each for row in rows for each in row], dtype=torch.int64), counts)

    @cached_property
    def _code(self) -> dict[str, int]:
        return {piece: code for code, piece in enumerate(self.known, 1)}
