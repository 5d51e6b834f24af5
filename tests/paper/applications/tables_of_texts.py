"""Small tables for tests: every pair of a mood and an age, a secret in every text."""

import csv
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from infoknife.paper.applications.texts import TextTable

SECRET = "xyzzy"  # in every text: no error may hold it

Cells = dict[str, list[str]]


def cells(each: int = 3, splits: Sequence[str] = ("train", "dev", "test"), **columns: Sequence[str]) -> Cells:
    """Give columns split, mood, age and text with ``each`` rows of every pair in every split."""
    rows = [(split, mood, age) for split, mood, age, _ in product(splits, ("bad", "good"), "01", range(each))]
    text = [f"{SECRET} word{i} again" for i in range(len(rows))]
    split, mood, age = (list(column) for column in zip(*rows, strict=True))
    return {"split": split, "mood": mood, "age": age, "text": text} | {k: list(v) for k, v in columns.items()}


def without(columns: Cells, *names: str) -> Cells:
    return {name: column for name, column in columns.items() if name not in names}


def write(path: Path, columns: Cells) -> Path:
    """Write a table as Python's csv module does, TSV with backslashes."""
    with path.open("w", newline="", encoding="utf-8") as file:
        if path.suffix == ".tsv":
            writer = csv.writer(file, delimiter="\t", quoting=csv.QUOTE_NONE, escapechar="\\", lineterminator="\r\n")
        else:
            writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def table(columns: Cells) -> TextTable:
    """Build a table as if it had been read."""
    roles = {"text": "text", "label": "mood", "private": "age", "split": "split"}
    found = {role: columns[name] for role, name in roles.items() if name in columns}
    return TextTable("moods.csv", found, lambda row: f"line {row + 2}")
