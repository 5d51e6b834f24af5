"""Tables of texts and labels: read from a file or the hub, split, coded as classes. No error shows a text."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, isnan, nan
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from infoknife.files import SUFFIXES, File, open_file
from infoknife.paper.applications.pretrained import library

SPLITS = {
    "train": "train",
    **dict.fromkeys(("validation", "valid", "val", "dev"), "validation"),
    "test": "test",
}  # what a split may be called
TEST, VALIDATION = 0, 5  # of ten parts
MAX_CLASSES = 50  # of a column
MAX_SHOWN = 40  # characters of a class in an error

SplitRows = dict[str, Tensor]  # the numbers of the rows of train, validation and test, ascending
Roles = Mapping[str, str]  # the column of each role, such as {"text": "tweet", "label": "mood", "split": "split"}


@dataclass(frozen=True, eq=False, repr=False)
class TextTable:
    """The columns of a table that have a role, one string per cell.

    Examples:
        >>> table = TextTable("moods.csv", {"text": ["so", "no", "oh"]}, lambda row: f"line {row + 2}")
        >>> part = table.only([0, 2], "left out a row")
        >>> len(part), part.cells["text"], part.where(1), part.notes
        (2, ['so', 'oh'], 'line 4', ('left out a row',))
    """

    name: str  # what errors call it
    cells: dict[str, list[str]]  # N of each role; roles that may be missing are not there where they are
    where: Callable[[int], str]  # the place of row 0, 1, ... as errors tell it: "line 2"
    notes: tuple[str, ...] = ()  # what was left out

    def __len__(self) -> int:
        """Rows."""
        return len(next(iter(self.cells.values()), []))

    def only(self, rows: Sequence[int], *notes: str) -> "TextTable":
        """Return a part of the rows, with notes on what was left out."""
        cells = {role: [column[row] for row in rows] for role, column in self.cells.items()}
        return replace(self, cells=cells, where=lambda row: self.where(rows[row]), notes=self.notes + notes)

    def count_empty(self, texts: Sequence[bool], options: str) -> list[str]:
        """Say how many rows have no text at all, by row; not all may be such."""
        if (count := sum(texts)) == len(self):
            raise ValueError(f"{self.name}: all {count} texts are empty; expected words. Name their column ({options})")
        return [f"{count} of {len(self)} texts are empty; they are kept"] if count else []


def read_source(roles: Roles, data: Path | str | None, hub: str | None) -> TextTable:
    """Read the columns that have a role from a file or folder, or from a repository of the Hugging Face hub.

    A table may be without the roles ``split``, if its column goes by that name, and ``task``.
    """
    if (data is None) == (hub is None):
        raise ValueError(
            f"data is {data if data is None else str(data)!r} and hub is {hub!r}; expected one of them: a file or "
            "folder (--data PATH), or a repository of the Hugging Face hub (--hub NAME)"
        )
    table = read_hub(hub, roles) if hub is not None else read_table(Path(str(data)), roles)
    if not len(table):
        raise ValueError(f"{table.name}: has no rows; expected texts below the columns' names")
    return table


def read_table(path: Path, roles: Roles) -> TextTable:
    r"""Read a file, or the one table of a folder that has the columns; see ``infoknife.files``.

    Examples:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "tiny.csv"
        >>> _ = path.write_text('mood,age,text\ngood,old,"so, so"\nbad,young,no\n')
        >>> table = read_table(path, {"text": "text", "label": "mood"})
        >>> table.cells["label"], table.cells["text"], table.where(1)
        (['good', 'bad'], ['so, so', 'no'], 'line 3')
    """
    file = _only_table(path, roles) if path.is_dir() else open_file(path)
    columns = _present_columns(roles, file.names, str(file.path))
    cells = file.read_text(list(dict.fromkeys(columns.values())))
    return TextTable(str(file.path), {role: cells[name] for role, name in columns.items()}, file.where, file.notes)


def read_hub(repository: str, roles: Roles) -> TextTable:
    """Load a repository by its name: downloaded once, then from the cache of the library ``datasets``.

    The name is ``"owner/name"``, or ``"owner/name:configuration"`` where it has several; with ``"@commit"`` behind it
    what is loaded stays the same, whatever its owner changes later. Where no column has the role
    split the repository's own splits take it, and those that are none of train, validation and test are left out.
    """
    found = _downloaded(repository)
    parts = {split: part for split, part in found.items() if len(found) == 1 or split.lower() in SPLITS}
    if not parts:
        raise ValueError(
            f"{repository} has the splits {', '.join(found) or '(none)'}; expected some of {', '.join(SPLITS)}"
        )
    columns = _present_columns(roles, list(next(iter(parts.values())).column_names), repository)
    cells = {
        role: [cell for part in parts.values() for cell in _hub_cells(part, role, column, repository)]
        for role, column in columns.items()
    }
    places = [(split, row) for split, part in parts.items() for row in range(1, len(part) + 1)]
    if "split" not in cells and len(parts) > 1:
        cells["split"] = [split for split, _ in places]
    notes = tuple(f"left out the split {split}" for split in found if split not in parts)
    return TextTable(repository, cells, lambda i: f"row {places[i][1]} of {places[i][0]}", notes)


class Classes(NamedTuple):
    """A column by its name, the names of its classes 0, 1, ..., and the codes of its rows, int64 (N,)."""

    column: str
    names: tuple[str, ...]
    codes: Tensor

    def described(self, code: int) -> str:
        """Say which class it is, as errors do: ``race '1'``. A long one, which may be a text, is not shown."""
        name = self.names[code]
        return f"{self.column} " + (repr(name) if len(name) <= MAX_SHOWN else f"(a class of {len(name)} characters)")

    def check_every_split(self, table: TextTable, rows: SplitRows) -> None:
        """Raise where one of these splits has no row of some class."""
        for split, part in rows.items():
            counts = self.codes[part].bincount(minlength=len(self.names))
            if not counts.all():
                raise ValueError(
                    f"{table.name}: {split} has no row with {self.described(int(counts.argmin()))}, an empty class; "
                    f"expected some of every class in {' and '.join(rows)}. Add rows, drop the class, or split again "
                    f"without a split column"
                )


def encode_classes(table: TextTable, column: str, cells: list[str]) -> Classes:
    """Number the different values of a column, spaces around them left out: numbers by size, others by letter."""
    values = [cell.strip() for cell in cells]
    if "" in values:
        raise ValueError(
            f"{table.name}: {table.where(values.index(''))}: {column!r} is empty; expected a class in every row. Drop "
            f"such rows, or give them a class of their own such as 'unknown'"
        )
    sizes = {value: to_number(value) for value in values}
    by_size = all(map(isfinite, sizes.values()))
    names = sorted(sizes, key=lambda value: (sizes[value] if by_size else 0.0, value))
    if not 2 <= len(names) <= MAX_CLASSES:
        raise ValueError(
            f"{table.name}: {column!r} has {len(names)} different values; expected 2 to {MAX_CLASSES} classes. With "
            f"one there is nothing to learn; many are a measurement, a name or a text: choose another column, or group "
            f"its values"
        )
    code = {value: i for i, value in enumerate(names)}
    return Classes(column, tuple(names), torch.tensor([code[value] for value in values]))


def to_number(cell: str) -> float:
    """Read a number; NaN where it is none.

    Examples:
        >>> to_number(" 1e3"), to_number("many")
        (1000.0, nan)
    """
    try:
        return float(cell)
    except ValueError:
        return nan


def split_rows(table: TextTable, groups: Tensor, seed: int, *, tested: bool = True) -> tuple[SplitRows, list[str]]:
    """Tell apart the rows of the three splits, and say how.

    Its cells of the role split are obeyed. Without them, or where all rows are for training, a tenth of every group
    (``groups``, a number for each row, such as its class) is for validation and one for testing, drawn by the seed.
    Where validation alone is missing, a tenth of train is held out for it. Unless it is to be ``tested``, a table with
    train and validation has an empty test split.
    """
    names = []
    for row, cell in enumerate(table.cells.get("split", ["train"] * len(groups))):
        if (name := SPLITS.get(cell.strip().lower())) is None:
            raise ValueError(
                f"{table.name}: {table.where(row)}: the split is {shown(cell.strip())}; expected one of "
                f"{', '.join(SPLITS)}. Rename it, or name another column (--split)"
            )
        names.append(name)
    every = torch.arange(len(groups))
    rows = {split: every[torch.tensor([name == split for name in names])] for split in ("train", "validation", "test")}
    found = [split for split in rows if len(rows[split])]
    if found == ["train"]:
        return _held_out(every, groups, seed, "validation", "test"), [f"split 80/10/10 at random, seed {seed}"]
    if "train" not in found or (tested and "test" not in found):
        raise ValueError(
            f"{table.name}: the split column has {' and '.join(found)} alone; expected train{' and test' * tested} at "
            f"least. Rename a split, or leave the column out for a split at random"
        )
    if "validation" not in found:
        parted = _held_out(rows["train"], groups, seed, "validation")
        return rows | parted, [f"held {len(parted['validation'])} rows of train out for validation, seed {seed}"]
    return rows, []


def draw_rows(groups: Tensor, counts: Tensor, seed: int) -> Tensor:
    """Draw rows at random, ascending: ``counts`` (G,) of each of ``groups`` (N,), or all of a group that has fewer.

    Examples:
        >>> draw_rows(torch.tensor([1, 0, 1, 0, 1]), torch.tensor([2, 0]), seed=0)
        tensor([1, 3])
    """
    order = _by_group(groups, seed)
    sizes = groups.bincount(minlength=len(counts))
    first = sizes.cumsum(0) - sizes  # where a group begins in that order
    rank = torch.arange(len(order)) - first[groups[order]]
    return order[rank < counts[groups[order]]].sort().values


def check_roles(roles: Roles) -> None:
    """Raise where a role has no column, or two have the same one."""
    for role, name in roles.items():
        if not name:
            raise ValueError(f"{role} is {name!r}; expected the name of a column")
        if same := [other for other in roles if other != role and roles[other] == name]:
            raise ValueError(f"{role} and {same[0]} are both the column {name!r}; expected two different columns")


def shown(cell: str) -> str:
    """Show a short single word; of anything else, which may be a text, the length.

    Examples:
        >>> shown("gender_male"), shown("so it goes"), shown(" ")
        ("'gender_male'", '(a cell of 10 characters)', 'empty')
    """
    if not cell.strip():
        return "empty"
    return repr(cell) if re.fullmatch(r"[\w.-]{1,30}", cell) else f"(a cell of {len(cell)} characters)"


def listed(cells: Sequence[str]) -> str:
    """List up to twenty cells as ``shown`` does."""
    return ", ".join(map(shown, cells[:20])) + ", ..." * (len(cells) > 20) or "none"


def _required_columns(roles: Roles) -> dict[str, str]:
    """The roles that a table must have."""
    return {role: column for role, column in roles.items() if role != "task" and (role, column) != ("split", "split")}


def _options(roles: Roles) -> str:
    return ", ".join(f"--{role}" for role in _required_columns(roles))


def _present_columns(roles: Roles, header: Sequence[str], name: str) -> dict[str, str]:
    """Return the columns to read, by role: those that are needed, and others where they are."""
    missing = [column for column in _required_columns(roles).values() if column not in header]
    if missing:
        raise ValueError(
            f"{name}: there is no column {', '.join(map(repr, missing))}; found: {listed(header)}. Name the columns "
            f"({_options(roles)})"
        )
    return {role: column for role, column in roles.items() if column in header}


def _only_table(folder: Path, roles: Roles) -> File:
    needed, files = set(_required_columns(roles).values()), dict[str, File | None]()
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name.lower().endswith(SUFFIXES):
            try:
                files[path.name] = open_file(path)
            except ValueError:
                files[path.name] = None
    fitting = [file for file in files.values() if file is not None and needed <= set(file.names)]
    if len(fitting) != 1:
        tables = (f"{name}: {'cannot be read' if file is None else listed(file.names)}" for name, file in files.items())
        raise ValueError(
            f"{folder}: {len(fitting)} tables have the columns {', '.join(sorted(needed))}; expected one file "
            f"({', '.join(SUFFIXES)}). There is {'; '.join(tables) or 'no table'}. Pass the file itself (--data FILE), "
            f"or the names of its columns ({_options(roles)})"
        )
    return fitting[0]


def _downloaded(repository: str) -> dict[str, Any]:
    datasets = library("datasets")
    name, _, commit = repository.partition("@")
    path, _, configuration = name.partition(":")
    try:
        return dict(datasets.load_dataset(path, configuration or None, revision=commit or None))
    except Exception as error:  # whatever the library lets through: a parser's words may hold a text
        why = f": {error}" if isinstance(error, OSError) else ""  # the network, or no such repository
        kind = type(error).__name__
    raise ConnectionError(
        f"{repository!r} cannot be loaded from the Hugging Face hub ({kind}){why}. Check the name (owner/name, or "
        "owner/name:configuration where there are several, perhaps with @commit) and the network, or give a file or "
        "folder (--data PATH)"
    )


def _hub_cells(part: Any, role: str, column: str, repository: str) -> list[str]:
    """Return a column of the hub as strings: missing cells, and -1 of classes, are empty; codes are names."""
    if column not in part.column_names:
        raise ValueError(f"{repository}: a split has no column {column!r}; expected the same columns in all")
    values = [None if isinstance(value, float) and isnan(value) else value for value in part[column]]
    names = getattr(part.features[column], "names", None)
    if names is not None:
        values = [names[value] if value is not None and value >= 0 else None for value in values]
    wrong = {type(value).__name__ for value in values if not isinstance(value, str | None)}
    if role in ("text", "first", "second") and wrong:
        raise ValueError(f"{repository}: the column {column!r} has values of type {min(wrong)}; expected strings")
    return ["" if value is None else str(value) for value in values]


def _held_out(rows: Tensor, groups: Tensor, seed: int, *splits: str) -> SplitRows:
    """Take a tenth of every group for each of some splits, and leave the rest in train."""
    order = _by_group(groups[rows], seed)
    part = torch.empty_like(order)
    part[order] = torch.arange(len(order)) % 10  # every tenth row of a group, so a tenth of it
    taken = {split: part == {"validation": VALIDATION, "test": TEST}[split] for split in splits}
    left = ~torch.stack(list(taken.values())).any(0)
    return {"train": rows[left]} | {split: rows[mask] for split, mask in taken.items()}


def _by_group(groups: Tensor, seed: int) -> Tensor:
    """Return an order that goes group by group, and is random inside each."""
    order = torch.randperm(len(groups), generator=torch.Generator().manual_seed(seed))
    return order[torch.argsort(groups[order], stable=True)]
