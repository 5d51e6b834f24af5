"""A measurement from the command line: what goes in, what people see meanwhile, and how the answer is shown."""

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import typer

from infoknife.cli.columns import Column, columns
from infoknife.cli.messages import fail, note
from infoknife.files import File, printable

if TYPE_CHECKING:
    from infoknife.measure import PermutationTest
    from infoknife.measure.estimate import Estimate

__all__ = [
    "Answer",
    "Sides",
    "Watch",
    "arguments",
    "bar",
    "formula",
    "measure",
    "print_json",
    "reported",
    "sides",
]

Sides = Mapping[str, Sequence[Column]]  # "x", "y", "given": the columns of each
Watch = Callable[[float, str], None]

OPTIONS = {"discrete=True": "--discrete", "discrete=False": "--continuous", "method='auto'": "--method auto"}
SHOWN = 50  # letters of columns' names on each side of a formula


def sides(command: str, file: File, names: Mapping[str, Sequence[str]], kinds: Mapping[str, bool]) -> Sides:
    """Read the columns of every side; what was decided about them is said on stderr."""
    found = columns(file, [name for side in names.values() for name in side], kinds)
    for column in found.values():
        if column.note:
            note(command, column.note)
    return {side: [found[name] for name in wanted] for side, wanted in names.items()}


def arguments(sides: Sides) -> dict[str, Any]:
    """Give the arguments of a measuring function: one matrix a side, and which columns of each are discrete.

    Example:
        >>> a, b = Column("a", torch.tensor([0.5, 1.5]), None), Column("b", torch.tensor([0, 1]), ("no", "yes"))
        >>> found = arguments({"x": [a, b], "y": [b]})
        >>> found["x"].tolist(), found["discrete"]
        ([[0.5, 0.0], [1.5, 1.0]], {'x': [1], 'y': [0]})
    """
    matrices = {side: torch.stack([column.values for column in columns], -1) for side, columns in sides.items()}
    is_discrete = {side: [column.labels is not None for column in columns] for side, columns in sides.items()}
    return matrices | {"discrete": {side: [i for i, yes in enumerate(one) if yes] for side, one in is_discrete.items()}}


def measure(command: str, function: "Callable[..., Estimate]", sides: Sides, **options: Any) -> "Estimate":
    """Call a measuring function; what it warns of is said on stderr, with the file's names of columns."""
    from infoknife.measure import MeasurementWarning

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", MeasurementWarning)
            estimate = function(**arguments(sides), **options)
    except (ValueError, TypeError) as error:
        raise ValueError(_named(str(error), sides)) from error
    messages = tuple(_named(message, sides) for message in estimate.diagnostics.messages)
    for warning in caught:
        text = _named(str(warning.message), sides)
        if issubclass(warning.category, MeasurementWarning) and text not in messages:
            note(command, text)
    return replace(estimate, diagnostics=replace(estimate.diagnostics, messages=messages))


def _named(text: str, sides: Sides) -> str:
    """The same text in the words of the command line: the file's names of columns, and options."""

    def name(found: re.Match[str]) -> str:
        columns, i = sides.get(found[1], ()), int(found[2])
        return columns[i].name if i < len(columns) else found[0]

    for python, option in OPTIONS.items():
        text = text.replace(python, option)
    return re.sub(r"\b(x|y|given)\[:, (\d+)\]", name, text)


@contextmanager
def reported(command: str) -> Iterator[None]:
    """Say what goes wrong in one line: the exit code is 2 for wrong input, 1 where the measuring fails."""
    try:
        yield
    except typer.Exit:
        raise
    except (ValueError, TypeError) as error:
        raise fail(command, " ".join(str(error).split())) from None
    except OSError as error:  # a disk that is full, a file that is not there
        if isinstance(error, FileNotFoundError) and error.errno is None:  # one of ours
            raise fail(command, str(error)) from None
        raise fail(command, f"{error.filename or 'a file'}: {(error.strerror or str(error)).lower()}") from None
    except (RuntimeError, ArithmeticError, MemoryError) as error:
        note(command, f"measuring failed: {type(error).__name__}: {error}")
        raise typer.Exit(1) from None


@contextmanager
def bar(total: float = 1.0) -> Iterator[Watch]:
    """Show a bar on stderr, if that is a terminal, and give what moves it: how much is done, and a few words."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    shown = SpinnerColumn(), BarColumn(24), TaskProgressColumn(), TimeElapsedColumn()
    words = TextColumn("{task.description}", markup=False)
    off = not console.is_terminal
    with Progress(*shown, words, console=console, transient=True, redirect_stdout=False, disable=off) as progress:
        task = progress.add_task("", total=total)
        yield lambda done, text: progress.update(task, completed=done, description=text)


def formula(sides: Sides) -> str:
    """Write what is measured.

    Example:
        >>> a, b, c = (Column(name, torch.zeros(3), None) for name in "abc")
        >>> formula({"x": [a, b]}), formula({"x": [a], "y": [b], "given": [c]})
        ('h(a, b)', 'I(a; b | c)')
    """
    inside = "; ".join(_listed(sides[side]) for side in ("x", "y") if side in sides)
    given = f" | {_listed(sides['given'])}" if "given" in sides else ""
    discrete = all(column.labels is not None for column in sides["x"])
    return f"{'I' if 'y' in sides else 'H' if discrete else 'h'}({inside}{given})"


def _listed(columns: Sequence[Column]) -> str:
    """The names of columns, the first few of many."""
    names = [column.name for column in columns]
    ends = accumulate(len(name) + 2 for name in names)
    few = max(1, sum(end <= SHOWN for end in ends))
    more = f" and {len(names) - few} more" if few < len(names) else ""
    return ", ".join(names[:few]) + more


class Answer(NamedTuple):
    """A measurement of columns of a file.

    Args:
        file: The file.
        sides: The columns.
        settings: The options of the measuring function.
        estimate: What it gave.
        test: The permutation test beside it, if there is one.
    """

    file: Path
    sides: Sides
    settings: Mapping[str, Any]
    estimate: "Estimate"
    test: "PermutationTest | None" = None

    @property
    def title(self) -> str:
        """What was measured, and where."""
        return f"{formula(self.sides)} of {printable(self.file.name)}"

    def tell(self, *, as_json: bool, pointwise: bool, plot: Path | None) -> None:
        """Print it on stdout, and draw it if asked to."""
        if as_json:
            print_json(self.as_dict(pointwise=pointwise))
        else:
            self.show()
        if plot is not None:
            from infoknife.cli import paint
            from infoknife.cli.portrait import portrait

            paint.save(portrait(self), plot)

    def show(self) -> None:
        """Print it as a table on stdout."""
        from rich.console import Console
        from rich.text import Text

        shown = self.estimate.__rich__()
        shown.title, shown.title_justify = Text(self.title), "left"
        if self.test is not None:
            p = f"p = {self.test.p_value:.2g} by {len(self.test.null)} permutations"
            shown.add_row(Text("independence"), Text(p))
        Console().print(shown)

    def as_dict(self, *, pointwise: bool = False) -> dict[str, Any]:
        """All of it in lists and numbers, for JSON."""
        names = {side: [column.name for column in columns] for side, columns in self.sides.items()}
        discrete = [c.name for columns in self.sides.values() for c in columns if c.labels is not None]
        how = {key: self.settings[key] for key in ("effort", "seed")}
        test = {"permutation_test": _plain_test(self.test)} if self.test is not None else {}
        about = {"file": str(self.file), "columns": names, "discrete": discrete}
        return about | how | self.estimate.as_dict(pointwise=pointwise) | test


def _plain_test(test: "PermutationTest") -> dict[str, Any]:
    return {"p_value": test.p_value, "statistic": test.statistic, "permutations": len(test.null)}


def print_json(content: Mapping[str, Any]) -> None:
    """Print one JSON object on stdout."""
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))
