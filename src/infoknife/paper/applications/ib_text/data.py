"""Texts with a class or a value: the tasks of GLUE, and tables of one's own."""

from pathlib import Path

import torch
from torch import Tensor

from infoknife.inputs import check_whole
from infoknife.paper.applications.ib_text.labels import classes, unlabelled, values
from infoknife.paper.applications.ib_text.pairs import PairData, Pairs
from infoknife.paper.applications.ib_text.tasks import GLUE, Columns, Task, key, own_task, task_named
from infoknife.paper.applications.tables import (
    SPLITS,
    Rows,
    Table,
    check_every_split,
    read_hub,
    read_table,
    split_rows,
)
from infoknife.paper.applications.tables.table import listed

__all__ = ["load_pairs"]


def load_pairs(
    task: str | Columns, *, data: Path | str | None = None, hub: str | None = None, seed: int = 0
) -> PairData:
    r"""Load the texts and labels of a task.

    A table's splits are obeyed; without them a tenth is held out for validation and one for testing. Where train and
    validation are there alone, or no row of test has a label, there is no test. Rows without any text stay.

    Args:
        task: A task of GLUE, of ``TASKS``, or the columns of a table of one's own. Its classes are the label's
            different values, sorted: numbers by size, others by letter; or with ``regression`` its values are numbers.
        data: A table, or a folder with one that has these columns; see ``tables.read_table``. Where a table of GLUE
            has a column ``task``, the rows of the task are used.
        hub: Instead, a repository of the Hugging Face hub; see ``tables.read_hub``. ``"nyu-mll/glue"`` has all tasks.
        seed: Of the rows that are held out.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "tiny.csv"
        >>> _ = path.write_text("split,mood,text\ntrain,good,so\ntrain,bad,no\ndev,good,oh\n")
        >>> found = load_pairs(Columns("mood", first="text", second=None), data=path)
        >>> found.labels, found.train, found.test, found.metrics
        (('bad', 'good'), Pairs(2 rows), None, ('accuracy', 'f1'))
    """
    seed = check_whole("seed", seed)
    chosen = own_task(task) if isinstance(task, Columns) else task_named(task)
    if data is not None and hub is None:
        table = read_table(Path(data), chosen.request)
        name = Path(table.name).name
    elif hub is not None and data is None:
        table = read_hub(f"{GLUE}:{chosen.glue}" if chosen.glue and hub == GLUE else hub, chosen.request)
        name = table.name
    else:
        raise ValueError(
            f"data is {str(data)!r} and hub is {hub!r}; expected one of them: a file or folder (--data PATH), or a "
            f"repository of the Hugging Face hub (--hub {GLUE if chosen.glue else 'NAME'})"
        )
    return _pair_data(chosen.glue or name, _of_task(table, chosen), chosen, seed)


def _pair_data(name: str, table: Table, task: Task, seed: int) -> PairData:
    if not len(table):
        raise ValueError(f"{table.name}: has no rows; expected texts below the columns' names")
    table = _labelled(table, task)
    empty = _empty(table)
    y, labels, rows, done = _split(table, task, seed)
    second = table.cells.get("second")
    every = Pairs(tuple(table.cells["first"]), None if second is None else tuple(second), y)
    train, validation, test = (every.take(rows[split]) for split in ("train", "validation", "test"))
    notes = (*table.notes, *empty, *done)
    return PairData(name, train, validation, test if len(test) else None, labels, task.metrics, notes)


def _of_task(table: Table, task: Task) -> Table:
    """Keep the rows of a task, where a column says of which task they are."""
    if "task" not in table.cells or not len(table):
        return table
    names = table.cells["task"]
    rows = [row for row, name in enumerate(names) if key(name) == task.glue]
    if not rows:
        raise ValueError(
            f"{table.name}: has no rows of the task {task.glue!r}; its column 'task' has {listed(sorted(set(names)))}. "
            f"Choose another task (--task), or another file (--data PATH)"
        )
    return table.only(rows)


def _labelled(table: Table, task: Task) -> Table:
    """Leave test out where none of its rows has a label."""
    splits = [SPLITS.get(split.strip().lower()) for split in table.cells.get("split", [])]
    test = [row for row, split in enumerate(splits) if split == "test"]
    if not test or not all(unlabelled(table.cells["label"][row], task) for row in test):
        return table
    rest = [row for row, split in enumerate(splits) if split != "test"]
    return table.only(rest, f"left out test: its {len(test)} rows have no labels")


def _empty(table: Table) -> list[str]:
    """Count rows without any text; not all may be such."""
    texts = [table.cells[role] for role in ("first", "second") if role in table.cells]
    count = sum(not any(map(str.strip, row)) for row in zip(*texts, strict=True))
    if count == len(table):
        raise ValueError(
            f"{table.name}: all {count} texts are empty; expected words. Name the columns of the texts (--first, "
            f"--second)"
        )
    return [f"{count} of {len(table)} rows have no text at all; they are kept"] if count else []


def _split(table: Table, task: Task, seed: int) -> tuple[Tensor, tuple[str, ...] | None, Rows, list[str]]:
    """Give y (N,), the names of its classes, the rows of each split, and what was done."""
    if task.columns.regression:
        y, labels = values(table, task), None
        rows, done = split_rows(table, torch.zeros(len(y), dtype=torch.int64), seed, tested=False)
    else:
        found = classes(table, task)
        y, labels = found.codes, found.classes
        rows, done = split_rows(table, y, seed, tested=False)
        check_every_split(table, found, {"train": rows["train"]})
    if not len(rows["validation"]):
        raise ValueError(
            f"{table.name}: of {len(table)} rows none is left for validation; expected some. Add rows, or a column "
            f"that says the split (--split)"
        )
    return y, labels, rows, done
