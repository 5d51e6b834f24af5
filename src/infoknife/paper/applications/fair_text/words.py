"""Texts as words, and words as whole numbers: a number each, or bags of words, pairs of them and runs of letters."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise

import torch
from torch import Tensor

LENGTH = 64  # tokens of a text that count, its first ones
LETTERS, LONG = (2, 3, 4, 5), 20  # letters of a run, and letters of a word that count
PADDING, UNKNOWN, EMPTY, SPECIAL = 0, 1, 2, 3  # codes of no word, and the first word's

TOKEN = re.compile(
    r"""
      https?://\S+ | www\.\S+                                          # addresses
    | [@\#]\w++                                                        # names and tags
    | &\#?\w++;                                                        # characters by name, such as &amp;
    | \w++(?:(?:[-'’]|(?<=\d)[.,:](?=\d))\w++)*+                       # words: don't, _twitter-entity_, 10:30
    | [<>]?[:;=]['’]?[-o^*]?(?:[dopx3](?!\w)|[)(\]\[/\\|}{@$*]++)      # :-) ;P
    | <++3++ | [-^>.]_++[-^<.]                                         # <3 -_-
    | [\U0001f1e6-\U0001f1ff]{2}                                       # flags
    | [^\w\s](?:[\ufe0f\U0001f3fb-\U0001f3ff]|\u200d[^\w\s])++         # emoji of several characters
    | ([!-/:-@\[-`{-~…])\1*+                                           # punctuation: !!!
    | [^\w\s]                                                          # everything else
    """,
    re.VERBOSE | re.IGNORECASE,
)  # nothing is tried twice: a text of ten megabytes costs what its first words do


def tokens(text: str) -> Iterator[str]:
    """Yield the words, emoticons and marks of a text, in lower case.

    Examples:
        >>> list(tokens("Don't stop!!! #fun :-) sooo good"))
        ["don't", 'stop', '!!!', '#fun', ':-)', 'sooo', 'good']
    """
    return (match[0].lower() for match in TOKEN.finditer(text))


def without(text: str, gone: frozenset[str]) -> str:
    """Put a space in the place of some tokens, given in lower case, wherever they are whole tokens of the text.

    Examples:
        >>> without("RT so #rt", frozenset({"rt"}))
        '  so #rt'
    """
    alone = "|".join(map(re.escape, sorted(gone)))
    text = re.sub(rf"(?<!\S)(?:{alone})(?!\S)", " ", text, flags=re.IGNORECASE)  # quick, and mostly enough
    lower = text.lower()
    if not any(token in lower for token in gone):
        return text
    return TOKEN.sub(lambda match: " " if match[0].lower() in gone else match[0], text)


def pieces(text: str) -> Iterator[str]:
    """Yield the words of a text, its pairs of neighbours, and the runs of 2 to 5 letters in each word.

    Examples:
        >>> list(pieces("so ok"))
        ['so', 'ok', 'so ok', '~<s', '~so', '~o>', '~<so', '~so>', '~<o', '~ok', '~k>', '~<ok', '~ok>']
    """
    words = list(islice(tokens(text), LENGTH))
    yield from words
    yield from (f"{a} {b}" for a, b in pairwise(words))
    for word in words:
        marked = f"<{word[:LONG]}>"
        for n in LETTERS:
            if n < len(marked):
                yield from (f"~{marked[i : i + n]}" for i in range(len(marked) - n + 1))


def frequent_words(texts: Sequence[str], size: int = 10_000, least: int = 2) -> list[str]:
    """Return the words that occur ``least`` times or more, the most frequent first, at most ``size``.

    Examples:
        >>> frequent_words(["so good", "so bad", "so so good"])
        ['so', 'good']
    """
    return _ranked(Counter(word for text in texts for word in islice(tokens(text), LENGTH)), size, least)


def frequent_pieces(texts: Sequence[str], size: int = 30_000, least: int = 3) -> list[str]:
    """Return the pieces that are in ``least`` texts or more, the most frequent first, at most ``size``."""
    return _ranked(Counter(piece for text in texts for piece in set(pieces(text))), size, least)


def word_codes(words: Sequence[str], texts: Sequence[str]) -> Tensor:
    """Turn N texts into codes of their words: int64 (N, L), where L is the longest text's number of tokens.

    Code 0 fills up rows, 1 is a word that is not known, 2 stands for a text without any word; then come the words.

    Examples:
        >>> word_codes(["so", "good"], ["Good grief", "", "so"])
        tensor([[4, 1],
                [2, 0],
                [3, 0]])
    """
    code = {word: i for i, word in enumerate(words, SPECIAL)}
    rows = [[code.get(word, UNKNOWN) for word in islice(tokens(text), LENGTH)] or [EMPTY] for text in texts]
    longest = max(map(len, rows), default=1)
    padded = [row + [PADDING] * (longest - len(row)) for row in rows]
    return torch.tensor(padded, dtype=torch.int64).reshape(len(rows), longest)


@dataclass(frozen=True)
class Bags:
    """Codes (T,) of N texts, one after the other, and how many are each text's (N,)."""

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


def bags(known: Sequence[str], texts: Sequence[str]) -> Bags:
    """Turn texts into bags of their pieces; what is not known is left out, and code 0 is a text that has none.

    Examples:
        >>> bags(["so", "~so"], ["so", "none"]).counts
        tensor([2, 1])
    """
    code = {piece: i for i, piece in enumerate(known, 1)}
    rows = [[code[piece] for piece in pieces(text) if piece in code] or [0] for text in texts]
    counts = torch.tensor([len(row) for row in rows], dtype=torch.int64)
    return Bags(torch.tensor([each for row in rows for each in row], dtype=torch.int64), counts)


def _ranked(counts: Counter[str], size: int, least: int) -> list[str]:
    ranked = sorted((-count, word) for word, count in counts.items() if count >= least)
    return [word for _, word in ranked[:size]]
