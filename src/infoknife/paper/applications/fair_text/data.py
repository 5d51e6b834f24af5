"""Texts with a label and a private attribute: from a file, a folder, the hub, or made up."""

import warnings
from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from infoknife.inputs import check_whole
from infoknife.paper.applications.fair_text.balance import balanced
from infoknife.paper.applications.fair_text.classes import check_untold, pairs
from infoknife.paper.applications.fair_text.corpus import Columns, Corpus, Texts
from infoknife.paper.applications.fair_text.markers import Marker, markers, stripped
from infoknife.paper.applications.fair_text.synthetic import synthetic
from infoknife.paper.applications.fair_text.vocabulary import tokens
from infoknife.paper.applications.tables import Coded, Table, check_every_split, coded, read_hub, read_table, split_rows
from infoknife.paper.applications.tables.classes import WIDEST

__all__ = ["CORPORA", "Columns", "Corpus", "Texts", "load_corpus"]

CORPORA = {
    "dial-sentiment": Columns("sentiment", "race"),
    "dial-mention": Columns("mention", "race", strip=("_twitter-entity_",), balance=True),
    "pan16-mention": Columns("mention", "gender_male"),
}  # the paper's, by the columns of their files


def load_corpus(
    columns: Columns | None = None, *, data: Path | str | None = None, hub: str | None = None, seed: int = 0
) -> Corpus:
    """Load texts with a label and a private attribute.

    Classes are the column's different values, sorted: numbers by size, others by letter. Texts without any word stay,
    and count as the single token for an empty text.

    Args:
        columns: Which columns are what, such as ``CORPORA["dial-sentiment"]``. Without them: the synthetic corpus.
        data: A table, or a folder with one that has these columns; see ``tables.read_table``.
        hub: Instead, a repository of the Hugging Face hub; see ``tables.read_hub``.
        seed: Of the rows that are held out or left out.

    Warns:
        UserWarning: A token alone gives the label away.

    Example:
        >>> corpus = load_corpus()
        >>> corpus.name, corpus.labels, len(corpus.train), len(corpus.test)
        ('synthetic', ('negative', 'positive'), 4000, 1000)
    """
    seed = check_whole("seed", seed)
    if columns is None:
        if data is not None or hub is not None:
            raise ValueError("columns is None and data or hub is given; expected Columns(label, private) with them")
        return synthetic(seed=seed)
    if data is not None and hub is None:
        table = read_table(Path(data), columns.request)
        return _corpus(table, Path(table.name).name, columns, seed)
    if hub is not None and data is None:
        return _corpus(read_hub(hub, columns.request), hub, columns, seed)
    raise ValueError(
        f"data is {str(data)!r} and hub is {hub!r}; expected one of them: a file or folder (--data PATH), or a "
        f"repository (--hub NAME). Without columns there is a synthetic corpus that needs neither"
    )


def _corpus(table: Table, name: str, columns: Columns, seed: int) -> Corpus:
    if not len(table):
        raise ValueError(f"{table.name}: has no rows; expected texts below the columns' names")
    label = coded(table, columns.label, table.cells["label"])
    private = coded(table, columns.private, table.cells["private"])
    check_untold(table, label, private)
    texts, notes = stripped(table.cells["text"], columns.strip)
    notes += _empty(table, texts)
    rows, done = split_rows(table, pairs(label, private), seed)
    for column in (label, private):
        check_every_split(table, column, rows)
    if columns.balance:
        rows, cut = balanced(table, rows, label, private, seed)
        done += cut
    train, validation, test = (_part(texts, label, private, rows[split]) for split in ("train", "validation", "test"))
    if told := [_told(marker, label) for marker in markers(train, len(label.classes))]:
        warnings.warn(" ".join(told), UserWarning, stacklevel=3)
    notes = [*table.notes, *notes, *done, *told]
    return Corpus(name, train, validation, test, label.classes, private.classes, None, tuple(notes))


def _part(texts: Sequence[str], label: Coded, private: Coded, rows: Tensor) -> Texts:
    return Texts(tuple(texts[row] for row in rows.tolist()), label.codes[rows], private.codes[rows])


def _empty(table: Table, texts: Sequence[str]) -> list[str]:
    """Count texts without any word; not all may be such."""
    count = sum(next(tokens(text), None) is None for text in texts)
    if count == len(texts):
        raise ValueError(
            f"{table.name}: all {count} texts are empty; expected words. Name the column of the texts (--text), and "
            f"strip less"
        )
    return [f"{count} of {len(texts)} texts are empty; each counts as one token of its own"] if count else []


def _told(marker: Marker, label: Coded) -> str:
    token = marker.token[:WIDEST]
    return (
        f"the token {token!r} alone tells {label.said(marker.label)} with accuracy {marker.accuracy:.3f}: nothing else "
        f"needs to be learned. Take it out with strip=({token!r},) (--strip {token})."
    )
