"""``infoknife tasks``: the distributions with known truth, all of them or one."""

import difflib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from infoknife.cli.terminal import bar

if TYPE_CHECKING:
    from infoknife.tasks import Task

MAX_SHOWN = 8  # numbers of a parameter that are shown one by one
MORE = (
    "d/d: the parameter by which the gradient of the truth is known; k: y is a class. One in full: infoknife tasks NAME"
)


TruthKind = Literal["entropy", "mi"]


def tasks(
    pattern: Annotated[str, typer.Argument(help="A name, a part of names, or a pattern as `*-20x20-*`.")] = "",
    kind: Annotated[TruthKind | None, typer.Option(help="Only entropies, or only mutual informations.")] = None,
) -> None:
    """List the distributions with known truth, in nats; with a name, show all about one."""
    from infoknife import tasks as catalogue

    known = [name for name in catalogue.names() if kind in (None, _kind(catalogue.get(name)))]
    found = [catalogue.get(name) for name in matching(known, pattern)]
    if [task.name for task in found] == [pattern]:
        typer.echo("\n".join(_about(found[0])))
    else:
        _list(found)


def matching(names: Iterable[str], pattern: str) -> list[str]:
    """The names that a pattern means: the one that it is, those it fits with ``*`` and ``?``, or those it is part of.

    Raises:
        ValueError: There is none; the message has the closest.

    Examples:
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

    return "entropy" if isinstance(task, EntropyTask) else "mi"


def _list(found: "list[Task]") -> None:
    """Print one line per task: as wide as the terminal, or whole for a file or a filter."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    is_terminal = (console := Console()).is_terminal
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=is_terminal, caption_justify="left")
    for head in ("task", "kind", "x", "y", "nats", "error", "d/d", "formula"):
        justify: Any = "right" if head in ("x", "nats", "error") else "left"
        table.add_column(head, no_wrap=True, justify=justify, min_width=0 if head == "formula" else None)
    with bar(len(found)) as watch:
        for i, task in enumerate(found):
            watch(i, f"truth of {task.name}")
            y = f"k={task.y_classes}" if task.y_classes else str(task.y_dim or "-")
            error = f"{task.error:.0e}" if task.error else "exact"
            words = f"{task.truth():.6f}", error, task.parameter or "-", task.formula
            table.add_row(*map(Text, (task.name, _symbol(task), str(task.x_dim), y, *words)))
    if is_terminal:
        table.caption = MORE
    (console if is_terminal else Console(width=1 << 10)).print(table)


def _symbol(task: "Task") -> str:
    return "h(X)" if _kind(task) == "entropy" else "I(X;Y)"


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
    few = len(value) <= MAX_SHOWN and len(shape) <= 2 and shape[-1] <= MAX_SHOWN
    return f"[{', '.join(map(_shown, value))}]" if few else f"{' x '.join(map(str, shape))} numbers"
