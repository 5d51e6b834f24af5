"""``infoknife tasks``: the distributions with known truth, all of them or one."""

import difflib
import time
from collections.abc import Iterable, Iterator
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from infoknife.tasks import Task

__all__ = ["matching", "tasks"]

PATIENCE = 1.0  # seconds of work without a word
LONGEST = 8  # numbers of a parameter that are shown one by one
GAP = "  "  # between columns
HEAD = ("task", "x", "y", "nats", "error", "d/d", "formula")
MORE = (
    "d/d: the parameter by which the gradient of the truth is known; k: y is a class. One in full: infoknife tasks NAME"
)


class TruthKind(StrEnum):
    """What a task has a truth of."""

    ENTROPY = "entropy"
    MI = "mi"


def tasks(
    pattern: Annotated[str, typer.Argument(help="A name, a part of names, or a pattern as `*-20x20-*`.")] = "",
    kind: Annotated[TruthKind | None, typer.Option(help="Only entropies, or only mutual informations.")] = None,
) -> None:
    """List the distributions with known truth, in nats; with the name of one, all about it."""
    from rich.console import Console

    from infoknife import tasks as catalogue

    known = [name for name in catalogue.names() if kind in (None, _kind(catalogue.get(name)))]
    try:
        found = [catalogue.get(name) for name in matching(known, pattern)]
    except ValueError as error:
        typer.echo(f"infoknife tasks: {error}", err=True)
        raise typer.Exit(2) from None
    if [task.name for task in found] == [pattern]:
        typer.echo("\n".join(_about(found[0])))
    elif (console := Console()).is_terminal:
        console.print(_table(_with_truths(found), console.width))
    else:
        for task, truth in _with_truths(found):
            typer.echo(_line(task, truth))


def matching(names: Iterable[str], pattern: str) -> list[str]:
    """The names that a pattern means: the one that it is, those it fits with ``*`` and ``?``, or those it is part of.

    Raises:
        ValueError: There is none; the message has the closest.

    Example:
        >>> matching(["moons", "rings", "cube-2d"], "r*"), matching(["moons", "rings", "cube-2d"], "n")
        (['rings'], ['moons', 'rings'])
    """
    names = list(names)
    if pattern in names:
        return [pattern]
    wild = pattern if any(sign in pattern for sign in "*?[") else f"*{pattern}*"
    if found := [name for name in names if fnmatchcase(name, wild)]:
        return found
    close = difflib.get_close_matches(pattern, names, n=3, cutoff=0)
    raise ValueError(f"no task matches {pattern!r}; the closest are {', '.join(close)}")


def _kind(task: "Task") -> TruthKind:
    from infoknife.tasks import EntropyTask

    return TruthKind.ENTROPY if isinstance(task, EntropyTask) else TruthKind.MI


def _with_truths(found: "list[Task]") -> "list[tuple[Task, float]]":
    """Work the truths out, with a bar on stderr where it takes its time."""
    from rich.console import Console
    from rich.progress import Progress

    console, begin = Console(stderr=True), time.monotonic()
    progress = Progress(console=console, transient=True, redirect_stdout=False, disable=not console.is_terminal)
    bar = progress.add_task("truths", total=len(found))
    results = []
    try:
        for task in found:
            if not progress.live.is_started and time.monotonic() - begin > PATIENCE:
                progress.start()
            results.append((task, task.truth()))
            progress.advance(bar)
    finally:
        progress.stop()
    return results


def _table(found: "Iterable[tuple[Task, float]]", width: int) -> "Table":
    """All but the formula whole; the formula as far as there is room in a line."""
    from rich.markup import escape
    from rich.table import Table

    rows = [_cells(task, truth) for task, truth in found]
    room = width - sum(max(map(len, column)) + len(GAP) for column in list(zip(HEAD, *rows, strict=True))[:-1])
    table = Table(box=None, pad_edge=False, padding=(0, len(GAP), 0, 0), caption=MORE, caption_justify="left")
    for name in HEAD[:-1]:
        table.add_column(name, no_wrap=True, justify="left" if name in ("task", "d/d") else "right")
    table.add_column(HEAD[-1], no_wrap=True, max_width=max(room, 1))
    for row in rows:
        table.add_row(*map(escape, row))
    return table


def _cells(task: "Task", truth: float) -> tuple[str, ...]:
    y = f"k={task.y_classes}" if task.y_classes else str(task.y_dim or "")
    error = f"{task.error:.0e}" if task.error else ""
    return task.name, str(task.x_dim), y, f"{truth:.4f}", error, task.parameter or "", task.formula


def _line(task: "Task", truth: float) -> str:
    """One task for a file or a filter: whole, and in columns."""
    y = f"{task.y_classes} classes" if task.y_classes else str(task.y_dim or "-")
    error = f"error<{task.error:.0e}" if task.error else "exact"
    gradient = f"d/d {task.parameter}" if task.parameter else "-"
    value = f"{_symbol(task)} = {truth:9.6f} nats"
    return f"{task.name:28}  {task.x_dim:2} x {y:10}  {value:>23}  {error:11}  {gradient:11}  {task.formula}"


def _symbol(task: "Task") -> str:
    return "h(X)" if _kind(task) is TruthKind.ENTROPY else "I(X;Y)"


def _about(task: "Task") -> Iterator[str]:
    yield task.name
    yield f"  {task.description}"
    sure = f"error below {task.error:.1e}" if task.error else "in closed form"
    yield f"  {_symbol(task)} = {task.truth():.6f} nats, {sure}"
    if task.parameter:
        yield f"  d {_symbol(task)} / d {task.parameter} = {task.gradient():.6f}"
    else:
        yield "  no parameter by which the gradient is known"
    yield from _listed(task.parameters, "  ")
    yield f"  in Python: infoknife.tasks.get({task.name!r}).sample(n, seed)"


def _listed(parameters: dict[str, Any], margin: str) -> Iterator[str]:
    """Parameters, those of parts further in; many numbers by their shape."""
    for name, value in parameters.items():
        if isinstance(value, dict):
            yield f"{margin}{name}:"
            yield from _listed(value, f"{margin}  ")
        else:
            yield f"{margin}{name} = {_shown(value)}"


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if not isinstance(value, (list, tuple)):
        return str(value)
    shape, inner = [len(value)], value
    while inner and isinstance(inner[0], (list, tuple)):
        inner = inner[0]
        shape.append(len(inner))
    few = len(value) <= LONGEST and len(shape) <= 2 and shape[-1] <= LONGEST
    return f"[{', '.join(map(_shown, value))}]" if few else f"{' x '.join(map(str, shape))} numbers"
