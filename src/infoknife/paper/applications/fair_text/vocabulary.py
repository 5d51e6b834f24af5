"""Texts as rows of whole numbers: one number a word."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from infoknife.inputs import check_count

__all__ = ["EMPTY", "PADDING", "UNKNOWN", "Vocabulary", "tokens", "without"]

PADDING, UNKNOWN, EMPTY = 0, 1, 2
SPECIAL = 3  # the first word's code

PIECE = re.compile(
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
    """Give the words, emoticons and marks of a text one by one, in lower case.

    Example:
        >>> list(tokens("Don't stop!!! #fun :-) sooo good"))
        ["don't", 'stop', '!!!', '#fun', ':-)', 'sooo', 'good']
    """
    return (match[0].lower() for match in PIECE.finditer(text))


def without(text: str, gone: frozenset[str]) -> str:
    """Put a space in the place of some tokens, given in lower case, wherever they are whole tokens of the text.

    Example:
        >>> without("RT so #rt", frozenset({"rt"}))
        '  so #rt'
    """
    alone = "|".join(map(re.escape, sorted(gone)))
    text = re.sub(rf"(?<!\S)(?:{alone})(?!\S)", " ", text, flags=re.IGNORECASE)  # quick, and mostly enough
    lower = text.lower()
    if not any(token in lower for token in gone):
        return text
    return PIECE.sub(lambda match: " " if match[0].lower() in gone else match[0], text)


@dataclass(frozen=True)
class Vocabulary:
    """The words that have a code of their own: 3, 4, ... in their order.

    Code 0 fills up rows, 1 is a word that is not here, 2 stands for a text without any word.

    Args:
        words: In lower case, each once.

    Example:
        >>> vocabulary = Vocabulary.of(["so good", "so bad", "so so good"])
        >>> vocabulary.words, len(vocabulary)
        (('so', 'good'), 5)
        >>> vocabulary.encode(["Good grief", "", "so"])
        tensor([[4, 1],
                [2, 0],
                [3, 0]])
    """

    words: tuple[str, ...]

    @classmethod
    def of(cls, texts: Sequence[str], size: int = 10_000, least: int = 2, length: int = 64) -> "Vocabulary":
        """Take the most frequent words of some texts, the most frequent first.

        Args:
            texts: To learn from: those for training.
            size: As many words at most.
            least: A word occurs as often at least.
            length: Tokens at the beginning of a text that count.
        """
        _check_texts(texts)
        size, least, length = (check_count(*given) for given in (("size", size), ("least", least), ("length", length)))
        counts = Counter(word for text in texts for word in islice(tokens(text), length))
        ranked = sorted((-count, word) for word, count in counts.items() if count >= least)
        return cls(tuple(word for _, word in ranked[:size]))

    @classmethod
    def of_state(cls, state: Any) -> "Vocabulary":
        """Build the vocabulary whose ``state`` this is."""
        if not isinstance(state, list | tuple) or not all(isinstance(word, str) for word in state):
            raise ValueError(f"state is a {type(state).__name__}; expected a list of words, as state() gives it")
        if len(set(state)) != len(state):
            raise ValueError(
                f"state has {len(state) - len(set(state))} words twice; expected each once, as state() gives it"
            )
        return cls(tuple(state))

    def state(self) -> list[str]:
        """Give the words as a plain list, for a checkpoint."""
        return list(self.words)

    def __len__(self) -> int:
        """Codes there are, and so the rows of an embedding."""
        return SPECIAL + len(self.words)

    def encode(self, texts: Sequence[str], length: int = 64) -> Tensor:
        """Turn texts into codes.

        Args:
            texts: N of them.
            length: Tokens of a text that are kept, its first ones.

        Returns:
            int64 (N, L), where L is the longest text's number of tokens, at most ``length``.
        """
        _check_texts(texts)
        length = check_count("length", length)
        rows = [self._codes(text, length) for text in texts]
        longest = max(map(len, rows), default=1)
        padded = [row + [PADDING] * (longest - len(row)) for row in rows]
        return torch.tensor(padded, dtype=torch.int64).reshape(len(rows), longest)

    def _codes(self, text: str, length: int) -> list[int]:
        code = self._code
        return [code.get(word, UNKNOWN) for word in islice(tokens(text), length)] or [EMPTY]

    @cached_property
    def _code(self) -> dict[str, int]:
        return {word: code for code, word in enumerate(self.words, SPECIAL)}


def _check_texts(texts: Sequence[str]) -> None:
    if isinstance(texts, str):
        raise TypeError("texts is one string; expected a sequence of strings, such as [text]")
