"""Texts with a label to learn and a private attribute to hide: from a file, a folder, the hub, or made up."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import log
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from infoknife.inputs import check_whole
from infoknife.paper.applications.fair_text.words import tokens, without
from infoknife.paper.applications.pretrained import library
from infoknife.paper.applications.settings import digest
from infoknife.paper.applications.texts import (
    MAX_SHOWN,
    Classes,
    Roles,
    SplitRows,
    TextTable,
    check_roles,
    draw_rows,
    encode_classes,
    read_source,
    split_rows,
)

SHARE, ACCURACY = 0.2, 0.99  # texts that have a token, and how well it tells a label, for it to be a marker
LENGTH = 1000  # tokens of a text that are searched for markers
FILLERS, WORDS = 200, 20  # stems that are neutral; stems of the style, and of each topic
MARKS, TOPICAL, SHORTEST, LONGEST = 2, 3, 4, 8  # words of style and topic in a text, and of neutral ones from .. to
LEAK, NOISE = 0.15, 0.1  # probabilities that the style and the topic are those of the other class
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]


@dataclass(frozen=True, eq=False, repr=False)
class Texts:
    """The texts of one split. Its ``repr`` does not show them: they may be personal."""

    texts: tuple[str, ...]  # N of them, in the order of the file
    y: Tensor  # codes of the label, int64 (N,)
    s: Tensor  # codes of the private attribute, int64 (N,)

    def __len__(self) -> int:
        """Rows."""
        return len(self.texts)

    def __repr__(self) -> str:
        return f"Texts({len(self)} rows)"


@dataclass(frozen=True, eq=False)
class Corpus:
    """Three splits with the same classes; each has rows of every class."""

    name: str  # what it is called
    train: Texts  # for learning
    validation: Texts  # for choosing
    test: Texts  # for judging
    labels: tuple[str, ...]  # the name of label 0, 1,
    privates: tuple[str, ...]  # the name of private class 0, 1,
    information: float | None = None  # I(X; S) of a text and its private class in nats, where it is known
    notes: tuple[str, ...] = ()  # what was left out or done, in plain words

    @cached_property
    def digest(self) -> str:
        """What tells this corpus from others."""
        splits = (self.train, self.validation, self.test)
        return digest([self.labels, self.privates], *(x for part in splits for x in (part.texts, part.y, part.s)))


@dataclass(frozen=True)
class CorpusColumns:
    """Which columns of a table are what, and what is done to its texts.

    Examples:
        >>> CorpusColumns("sentiment", "race").text
        'text'
    """

    label: str  # the column Y to learn
    private: str  # the column S to hide
    text: str = "text"  # the column of texts
    split: str = "split"  # the column that says train, validation or test. A table may be without it
    strip: tuple[str, ...] = ()  # tokens to take out of every text
    balance: bool = False  # whether every split is cut to as many rows of each pair (y, s) as the rarest pair has

    def __post_init__(self) -> None:
        check_roles(self.roles)
        if isinstance(self.strip, str):
            raise TypeError(f"strip is the string {self.strip!r}; expected a tuple of tokens, ({self.strip!r},)")
        for token in self.strip:
            if (found := tuple(tokens(token))) != (token.lower(),):
                raise ValueError(f"strip has {token!r}, which is {len(found)} tokens: {found}; expected one token each")

    @property
    def roles(self) -> Roles:
        """What each column is."""
        return {"text": self.text, "label": self.label, "private": self.private, "split": self.split}


CORPORA = {
    "dial-sentiment": CorpusColumns("sentiment", "race"),
    "dial-mention": CorpusColumns("mention", "race", strip=("_twitter-entity_",), balance=True),
    "pan16-mention": CorpusColumns("mention", "gender_male"),
}  # the paper's, by the columns of their files


def load_corpus(
    columns: CorpusColumns, *, data: Path | str | None = None, hub: str | None = None, seed: int = 0
) -> Corpus:
    """Load texts with a label and a private attribute from a table, or from a repository of the Hugging Face hub.

    Classes are the column's different values, sorted: numbers by size, others by letter. Texts without any word stay,
    and count as the single token for an empty text. The seed is that of the rows that are held out or left out; see
    ``texts.read_table`` and ``texts.read_hub`` for what is read.

    Warns:
        UserWarning: A token alone gives the label away.
    """
    seed = check_whole("seed", seed)
    table = read_source(columns.roles, data, hub)
    label = encode_classes(table, columns.label, table.cells["label"])
    private = encode_classes(table, columns.private, table.cells["private"])
    pairs = label.codes * len(private.names) + private.codes  # (N,)
    if len(pairs.unique()) == len(label.names):
        raise ValueError(
            f"{table.name}: every {label.column!r} has one {private.column!r} alone; a label that tells all of the "
            f"private attribute cannot be learned without it. Choose another column for one of them"
        )
    texts, notes = table.cells["text"], []
    if columns.strip:
        gone = frozenset(token.lower() for token in columns.strip)
        texts = [without(text, gone) for text in texts]
        changed = sum(new != old for new, old in zip(texts, table.cells["text"], strict=True))
        notes += [f"took {', '.join(map(repr, columns.strip))} out of {changed} of {len(texts)} texts"]
    notes += table.count_empty([next(tokens(text), None) is None for text in texts], "--text; or strip less")
    rows, done = split_rows(table, pairs, seed)
    for column in (label, private):
        column.check_every_split(table, rows)
    if columns.balance:
        rows, cut = _balance(table, rows, label, private, seed)
        done += cut
    train, validation, test = (
        Texts(tuple(texts[row] for row in part.tolist()), label.codes[part], private.codes[part])
        for part in rows.values()
    )
    told = [
        f"the token {token!r} alone tells {label.described(code)} with accuracy {accuracy:.3f}: nothing else needs to "
        f"be learned. Take it out with strip=({token!r},) (--strip {token})."
        for token, code, accuracy in markers(train, len(label.names))
    ]
    if told:
        warnings.warn(" ".join(told), UserWarning, stacklevel=2)
    notes = [*table.notes, *notes, *done, *told]
    name = Path(table.name).name if hub is None else hub
    return Corpus(name, train, validation, test, label.names, private.names, None, tuple(notes))


class Marker(NamedTuple):
    """A token that alone tells one label from the others, with a balanced accuracy."""

    token: str
    label: int
    accuracy: float


def markers(texts: Texts, labels: int) -> list[Marker]:
    """Find tokens that at least a fifth of the training texts have and that tell a label with 0.99 balanced accuracy.

    Examples:
        >>> marked = Texts(("@ hi", "@ so", "hi", "so"), torch.tensor([1, 1, 0, 0]), torch.tensor([0, 1, 0, 1]))
        >>> markers(marked, 2)
        [Marker(token='@', label=1, accuracy=1.0)]
    """
    if not any(next(tokens(text), None) for text in texts.texts):
        return []
    counter = library("sklearn.feature_extraction.text", "fair-text").CountVectorizer(
        analyzer=lambda text: list(islice(tokens(text), LENGTH)), binary=True
    )
    present = counter.fit_transform(texts.texts)  # N, tokens
    frequent = np.flatnonzero(SHARE * len(texts) <= present.sum(0).A1)
    member = np.eye(labels)[texts.y.numpy()]  # N, labels
    inside = (present[:, frequent].T @ member) / np.maximum(1, member.sum(0))  # tokens, labels
    outside = (present[:, frequent].T @ (1 - member)) / np.maximum(1, (1 - member).sum(0))
    by_presence = (inside + 1 - outside) / 2
    best = np.maximum(by_presence, 1 - by_presence)  # presence or absence as a sign
    found = []
    for token, both, presence in zip(counter.get_feature_names_out()[frequent], best, by_presence, strict=True):
        label = max(range(labels), key=lambda y: (both[y], presence[y], y))
        found.append(Marker(str(token)[:MAX_SHOWN], label, float(both[label])))
    return [marker for marker in found if marker.accuracy >= ACCURACY]


def _balance(
    table: TextTable, rows: SplitRows, label: Classes, private: Classes, seed: int
) -> tuple[SplitRows, list[str]]:
    """Cut every split to as many rows of each pair (y, s) as its rarest pair has, chosen by the seed."""
    pairs, count = label.codes * len(private.names) + private.codes, len(label.names) * len(private.names)
    level, notes = {}, []
    for split, part in rows.items():
        sizes = torch.bincount(pairs[part], minlength=count)  # (count,)
        if not sizes.all():
            y, s = divmod(int(sizes.argmin()), len(private.names))
            raise ValueError(
                f"{table.name}: {split} has no row with {label.described(y)} and {private.described(s)}, so it cannot "
                f"be balanced; add such rows, drop a class, or leave out balance"
            )
        level[split] = part[draw_rows(pairs[part], sizes.min().expand(count), seed)]
        notes.append(f"balanced {split}: {int(sizes.min())} rows in each of {count} cells, of {len(part)} rows in all")
    return level, notes


# made-up texts


def synthetic(rows: int = 6000, seed: int = 0) -> Corpus:
    r"""Write texts with a label Y and, independent of it, a private attribute S, of two classes each.

    S goes through a noisy channel to the style T, Y through another one to the topic. A text holds words that mark
    its style, words of its topic in the form that they have in its style, as in a dialect, and neutral ones. So a text
    tells its style for sure and S no better than the style does: with the probability e = ``LEAK`` of another style

    .. math:: I(X; S) = I(T; S) = \log 2 + e \log e + (1 - e) \log(1 - e),

    and the best classifier of Y is right with probability 1 - ``NOISE``. A sixth of the rows, 24 or more in all, is for
    validation and a sixth for testing; in each split all pairs (y, s) are equally frequent and have the same part of
    flipped rows, up to one row. The words are the same with every seed.

    Examples:
        >>> corpus = synthetic(rows=60)
        >>> len(corpus.train), round(corpus.information, 3)
        (40, 0.27)
    """
    generator, words = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(0)
    pairs = torch.randperm(len(SYLLABLES) ** 2, generator=words)[: FILLERS + 3 * WORDS].tolist()
    stems = [SYLLABLES[i // len(SYLLABLES)] + SYLLABLES[i % len(SYLLABLES)] for i in pairs]  # a style adds an ending

    def write(n: int) -> Texts:
        cells = torch.randperm(n, generator=generator) % 4
        y, s = cells // 2, cells % 2
        topics, styles = (_flipped(codes, cells, part, generator) for codes, part in ((y, NOISE), (s, LEAK)))
        texts = (_text(topic, style, stems, generator) for topic, style in zip(topics, styles, strict=True))
        return Texts(tuple(texts), y, s)

    train, validation, test = (write(n) for n in (rows - 2 * (rows // 6), rows // 6, rows // 6))
    information = log(2) + LEAK * log(LEAK) + (1 - LEAK) * log(1 - LEAK)
    best = f"the best accuracy of the label is {1 - NOISE:.3g}"
    classes = ("negative", "positive"), ("dialect 0", "dialect 1")
    return Corpus("synthetic", train, validation, test, *classes, information, (best,))


def _flipped(codes: Tensor, cells: Tensor, probability: float, generator: torch.Generator) -> list[int]:
    """Flip a part of the codes of every cell, up to one row, so that a sample holds what the channel lets through."""
    flipped = codes.clone()
    torch.randint(1, 2, codes.shape, generator=generator)  # keeps the texts of a seed what they always were
    for cell in cells.unique():
        rows = (cells == cell).nonzero().flatten()
        rows = rows[torch.randperm(len(rows), generator=generator)]
        part = int(probability * len(rows) + torch.rand((), generator=generator, dtype=torch.float64))
        flipped[rows[:part]] = 1 - codes[rows[:part]]
    return flipped.tolist()


def _text(topic: int, style: int, stems: list[str], generator: torch.Generator) -> str:
    def draw(start: int, end: int, n: int) -> list[int]:
        return torch.randint(start, end, (n,), generator=generator).tolist()

    (fillers,) = draw(SHORTEST, LONGEST + 1, 1)
    own = FILLERS + WORDS * (1 + topic)  # where the topic's stems begin
    marked = draw(FILLERS, FILLERS + WORDS, MARKS) + draw(own, own + WORDS, TOPICAL)
    words = [stems[i] + SYLLABLES[style] for i in marked] + [stems[i] for i in draw(0, FILLERS, fillers)]
    order = torch.randperm(len(words), generator=generator).tolist()
    return " ".join(words[i] for i in order)
