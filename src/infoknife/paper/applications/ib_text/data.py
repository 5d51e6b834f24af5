"""One or two texts per row, with a class or a value: the paper's GLUE tasks, and your own tables."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite
from pathlib import Path

import torch
from torch import Tensor

from infoknife.inputs import check_count, check_whole
from infoknife.paper.applications.settings import digest
from infoknife.paper.applications.texts import (
    SPLITS,
    Classes,
    Roles,
    TextTable,
    check_roles,
    draw_rows,
    encode_classes,
    listed,
    read_source,
    shown,
    split_rows,
    to_number,
)

GLUE, COMMIT = "nyu-mll/glue", "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c"  # the hub's repository, as it was


@dataclass(frozen=True, eq=False, repr=False)
class TextPairs:
    """The rows of one split. Its ``repr`` does not show the texts: they may be personal.

    Examples:
        >>> TextPairs(("so", "no"), None, torch.tensor([0, 1]))
        TextPairs(2 rows)
    """

    first: tuple[str, ...]  # N texts, in the order of the file
    second: tuple[str, ...] | None  # N texts that go with them, or None
    y: Tensor  # codes of the class, int64 (N,), or values, float32 (N,)

    def __post_init__(self) -> None:
        for name, column in (("second", self.second), ("y", self.y)):
            if column is not None and len(column) != len(self.first):
                raise ValueError(f"{name} has {len(column)} rows; expected {len(self.first)}, as first has")

    def __len__(self) -> int:
        """Rows."""
        return len(self.first)

    def __repr__(self) -> str:
        return f"TextPairs({len(self)} rows)"

    def take(self, rows: Tensor) -> "TextPairs":
        """Return some rows by their numbers, int64 (n,)."""
        places = rows.tolist()
        first = tuple(self.first[row] for row in places)
        second = None if self.second is None else tuple(self.second[row] for row in places)
        return TextPairs(first, second, self.y[rows])


@dataclass(frozen=True, eq=False)
class PairData:
    """The splits of one task."""

    name: str  # what it is called
    train: TextPairs  # for learning
    validation: TextPairs  # for choosing
    test: TextPairs | None  # for judging, where there are labelled rows for it
    labels: tuple[str, ...] | None  # the name of class 0, 1, ...; None where y is a value
    metrics: tuple[str, ...]  # what it is judged by, of metrics.METRICS
    notes: tuple[str, ...] = ()  # what was left out or done, in plain words

    @property
    def regression(self) -> bool:
        """Whether y is a value."""
        return self.labels is None

    @cached_property
    def digest(self) -> str:
        """What tells these pairs from others."""
        splits = [part for part in (self.train, self.validation, self.test) if part is not None]
        return digest([self.labels, self.metrics], *(x for part in splits for x in ([part.first, part.second], part.y)))

    def cut(self, train_size: int, seed: int) -> "PairData":
        """Keep so many rows of train, with the classes in proportion and one row of each at least.

        Examples:
            >>> train = TextPairs(("a", "b", "c", "d", "e", "f"), None, torch.tensor([0, 0, 0, 0, 1, 1]))
            >>> PairData("tiny", train, train, None, ("no", "yes"), ("accuracy",)).cut(4, seed=0).train.y
            tensor([0, 0, 0, 1])
        """
        kept = self._draw_stratified("train_size", train_size, seed)
        note = f"cut train to {train_size} of {len(self.train)} rows, seed {seed}"
        return replace(self, train=self.train.take(kept), notes=(*self.notes, note))

    def separated(self, size: int, seed: int) -> "PairData":
        """Let no pair choose and judge: without a labelled test part of train chooses, and validation is the test."""
        if self.test is not None:
            return self
        choosing = self._draw_stratified("selection_size", size, seed)
        left = torch.ones(len(self.train), dtype=torch.bool).index_fill(0, choosing, False)
        note = f"{size} of {len(self.train)} rows of train choose, seed {seed}; validation is the test"
        rest, chosen = self.train.take(left.nonzero().flatten()), self.train.take(choosing)
        return replace(self, train=rest, validation=chosen, test=self.validation, notes=(*self.notes, note))

    def _draw_stratified(self, name: str, size: int, seed: int) -> Tensor:
        """Draw so many rows of train, with the classes in proportion and one row of each at least."""
        size, rows = check_count(name, size), len(self.train)
        least = 2 * len(self.labels or ("all",))
        if not least <= size <= rows:
            raise ValueError(
                f"{name} is {size}; expected at least {least}, two per class, and at most {rows}, the rows of "
                f"{self.name}'s train"
            )
        groups = torch.zeros(rows, dtype=torch.int64) if self.labels is None else self.train.y
        quota = size * groups.bincount().double() / rows
        shares = quota.long().clamp(min=1).minimum(groups.bincount())  # by the largest remainders
        while shares.sum() < size:
            shares[(quota - shares).argmax()] += 1
        while shares.sum() > size:  # rare groups were given more than their share: the largest ones pay
            shares[shares.argmax()] -= 1
        return draw_rows(groups, shares, check_whole("seed", seed))


@dataclass(frozen=True)
class PairColumns:
    """Which columns of a table are what.

    Examples:
        >>> PairColumns("mood", first="tweet", second=None).roles
        {'first': 'tweet', 'label': 'mood', 'split': 'split'}
    """

    label: str  # the column Y to learn
    first: str = "sentence1"  # the column of texts
    second: str | None = "sentence2"  # the column of texts that go with them, or None where there is one text per row
    split: str = "split"  # the column that says train, validation or test. A table may be without it
    regression: bool = False  # whether Y is a value, not a class

    def __post_init__(self) -> None:
        check_roles(self.roles)

    @property
    def roles(self) -> Roles:
        """What each column is."""
        second = {} if self.second is None else {"second": self.second}
        return {"first": self.first, **second, "label": self.label, "split": self.split}


CORRELATIONS = ("pearson", "spearman")


@dataclass(frozen=True)
class TextTask:
    """What is learned from a table, and how that is judged."""

    columns: PairColumns
    metrics: tuple[str, ...]  # of ``metrics.METRICS``
    labels: tuple[str, ...] | None = None  # None where Y is a value, or the classes are those that the table has
    span: tuple[float, float] = (-inf, inf)  # the least and the greatest value
    glue: str = ""  # what GLUE's files and the hub call it; empty for a task of one's own

    @property
    def roles(self) -> Roles:
        """What each column is. In a table of GLUE a column ``task``, where it is there, tells its rows from others."""
        return {**self.columns.roles, "task": "task"} if self.glue else self.columns.roles


# A file says 0 and 1. The hub numbers the classes of RTE the other way round, but it has their names.
PARAPHRASE, ENTAILMENT = ("not_equivalent", "equivalent"), ("not_entailment", "entailment")
TASKS = {
    "mrpc": TextTask(PairColumns("label"), ("f1", "accuracy"), PARAPHRASE, glue="mrpc"),
    "stsb": TextTask(PairColumns("label", regression=True), CORRELATIONS, span=(0.0, 5.0), glue="stsb"),
    "rte": TextTask(PairColumns("label"), ("accuracy",), ENTAILMENT, glue="rte"),
}


def task_key(name: str) -> str:
    """Return a task's name as ``TASKS`` has it; capitals and hyphens do not matter.

    Examples:
        >>> task_key(" STS-B")
        'stsb'
    """
    return name.strip().lower().replace("-", "").replace("_", "")


def load_pairs(
    task: str | PairColumns, *, data: Path | str | None = None, hub: str | None = None, seed: int = 0
) -> PairData:
    r"""Load the texts and labels of a task from a table, or from a repository of the Hugging Face hub.

    The task is one of ``TASKS``, or the columns of a table of one's own. Its classes are the label's different values,
    sorted: numbers by size, others by letter; or with ``regression`` its values are numbers. Where a table of GLUE has
    a column ``task``, the rows of the task are used; the hub's ``"nyu-mll/glue"`` has all tasks.

    A table's splits are obeyed; without them a tenth is held out for validation and one for testing, by the seed. Where
    train and validation are there alone, or no row of test has a label, there is no test. Rows without any text stay.
    See ``texts.read_table`` and ``texts.read_hub`` for what is read.

    Examples:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "tiny.csv"
        >>> _ = path.write_text("split,mood,text\ntrain,good,so\ntrain,bad,no\ndev,good,oh\n")
        >>> found = load_pairs(PairColumns("mood", first="text", second=None), data=path)
        >>> found.labels, found.train, found.test, found.metrics
        (('bad', 'good'), TextPairs(2 rows), None, ('accuracy', 'f1'))
    """
    seed = check_whole("seed", seed)
    if isinstance(task, str) and task_key(task) not in TASKS:
        raise ValueError(f"task is {task!r}; expected one of {', '.join(TASKS)}, or 'own' with your columns")
    if isinstance(task, str):
        chosen = TASKS[task_key(task)]
    else:
        chosen = TextTask(task, CORRELATIONS if task.regression else ("accuracy", "f1"))
    table = read_source(chosen.roles, data, f"{GLUE}:{chosen.glue}@{COMMIT}" if chosen.glue and hub == GLUE else hub)
    name = chosen.glue or (Path(table.name).name if hub is None else table.name)
    table = _labelled(_of_task(table, chosen), chosen)
    texts = [table.cells[role] for role in ("first", "second") if role in table.cells]
    empty = table.count_empty([not any(map(str.strip, row)) for row in zip(*texts, strict=True)], "--first, --second")
    found = None if chosen.columns.regression else _classes(table, chosen)
    y = _values(table, chosen) if found is None else found.codes
    rows, done = split_rows(table, torch.zeros(len(y), dtype=torch.int64) if found is None else y, seed, tested=False)
    if found is not None:
        found.check_every_split(table, {"train": rows["train"]})
    if not len(rows["validation"]):
        raise ValueError(
            f"{table.name}: of {len(table)} rows none is left for validation; expected some. Add rows, or a column "
            f"that says the split (--split)"
        )
    every = TextPairs(tuple(texts[0]), tuple(texts[1]) if len(texts) > 1 else None, y)
    train, validation, test = (every.take(part) for part in rows.values())
    labels = None if found is None else found.names
    notes = (*table.notes, *empty, *done)
    return PairData(name, train, validation, test if len(test) else None, labels, chosen.metrics, notes)


def _of_task(table: TextTable, task: TextTask) -> TextTable:
    """Keep the rows of a task, where a column says of which task they are."""
    if "task" not in table.cells:
        return table
    names = table.cells["task"]
    rows = [row for row, name in enumerate(names) if task_key(name) == task.glue]
    if not rows:
        raise ValueError(
            f"{table.name}: has no rows of the task {task.glue!r}; its column 'task' has {listed(sorted(set(names)))}. "
            f"Choose another task (--task), or another file (--data PATH)"
        )
    return table.only(rows)


def _labelled(table: TextTable, task: TextTask) -> TextTable:
    """Leave test out where none of its rows has a label: it is empty or, in GLUE's own tables, -1."""
    splits = [SPLITS.get(split.strip().lower()) for split in table.cells.get("split", [])]
    test = [row for row, split in enumerate(splits) if split == "test"]
    cells = [table.cells["label"][row] for row in test]
    if not test or any(cell.strip() and not (task.glue and to_number(cell) == -1) for cell in cells):
        return table
    rest = [row for row, split in enumerate(splits) if split != "test"]
    return table.only(rest, f"left out test: its {len(test)} rows have no labels")


def _classes(table: TextTable, task: TextTask) -> Classes:
    """Return the classes that the task names, there by name or number, or else those that the table has."""
    cells, column = table.cells["label"], task.columns.label
    if task.labels is None:
        return encode_classes(table, column, cells)
    code = {name: i for i, name in enumerate(task.labels)}
    codes = [code.get(cell.strip(), to_number(cell)) for cell in cells]
    for row, found in enumerate(codes):
        if found not in code.values():
            raise _wrong(table, row, column, " or ".join(f"{i} ({name})" for name, i in code.items()))
    return Classes(column, task.labels, torch.tensor(codes).long())


def _values(table: TextTable, task: TextTask) -> Tensor:
    """Return values, float32 (N,), that are finite and in the task's span."""
    numbers = torch.tensor([to_number(cell) for cell in table.cells["label"]], dtype=torch.float64)
    low, high = task.span
    fits = (numbers >= low) & (numbers <= high) & numbers.float().isfinite()  # what is too large for float32 is not
    if not fits.all():
        span = f" of {low:g} to {high:g}" if isfinite(high) else ""
        raise _wrong(table, int(fits.long().argmin()), task.columns.label, f"a number{span}")
    if (numbers == numbers[0]).all():
        raise ValueError(f"{table.name}: {task.columns.label!r} is the same in all rows; expected different values")
    return numbers.float()


def _wrong(table: TextTable, row: int, column: str, expected: str) -> ValueError:
    return ValueError(
        f"{table.name}: {table.where(row)}: {column!r} is {shown(table.cells['label'][row].strip())}; expected "
        f"{expected}. Correct or drop such rows, or name the column of the labels (--label)"
    )
