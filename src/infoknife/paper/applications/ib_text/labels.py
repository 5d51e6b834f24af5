"""The cells of a label as classes or values. No error shows a text."""

from math import isfinite, nan

import torch
from torch import Tensor

from infoknife.paper.applications.ib_text.tasks import Task
from infoknife.paper.applications.tables import Coded, Table, coded, shown

__all__ = ["classes", "unlabelled", "values"]


def classes(table: Table, task: Task) -> Coded:
    """Give the codes of the classes: those that the task names, or else those that the table has.

    Args:
        table: With the role label. A class that the task names is there by its name or its number.
        task: Of classes.
    """
    cells, column = table.cells["label"], task.columns.label
    if task.labels is None:
        return coded(table, column, cells)
    code = {name: i for i, name in enumerate(task.labels)}
    codes = [code.get(cell.strip(), _number(cell)) for cell in cells]
    for row, found in enumerate(codes):
        if found not in code.values():
            names = " or ".join(f"{i} ({name})" for name, i in code.items())
            raise _wrong(table, row, column, f"{names}, as {task.title} has them")
    return Coded(column, task.labels, torch.tensor(codes).long())


def values(table: Table, task: Task) -> Tensor:
    """Give values, float32 (N,), that are finite and in the task's span."""
    numbers = torch.tensor([_number(cell) for cell in table.cells["label"]], dtype=torch.float64)
    low, high = task.span
    fits = (numbers >= low) & (numbers <= high) & numbers.float().isfinite()  # what is too large for float32 is not
    if not fits.all():
        span = f" of {low:g} to {high:g}, as {task.title} has them" if isfinite(high) else ""
        raise _wrong(table, int(fits.long().argmin()), task.columns.label, f"a number{span}")
    if (numbers == numbers[0]).all():
        raise ValueError(f"{table.name}: {task.columns.label!r} is the same in all rows; expected different values")
    return numbers.float()


def unlabelled(cell: str, task: Task) -> bool:
    """Say whether a cell has no label: it is empty or, in GLUE's own tables, -1."""
    return not cell.strip() or (task.glue != "" and _number(cell) == -1)


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return nan


def _wrong(table: Table, row: int, column: str, expected: str) -> ValueError:
    cell = table.cells["label"][row].strip()
    found = shown(cell) if cell else "empty"
    return ValueError(
        f"{table.name}: {table.where(row)}: {column!r} is {found}; expected {expected}. Correct or drop such rows, or "
        f"name the column of the labels (--label)"
    )
