"""A measurement from the command line: what people see meanwhile, and how the answer is shown."""

import csv
import io
import json
import math
import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from infoknife.cli.messages import fail, note
from infoknife.files import printable

if TYPE_CHECKING:
    from infoknife.measure import PermutationTest
    from infoknife.measure.estimate import ColumnKind, Estimate
    from infoknife.measure.table import Table

Watch = Callable[[float, str], None]

ALTERNATIVES = {
    "a quantity": ("is a quantity", "are quantities", "--continuous"),
    "labels": ("has labels", "have labels", "--discrete"),
}
MAX_SHOWN = 50  # letters of columns' names on each side of a formula


def measure(function: "Callable[..., Estimate]", **arguments: Any) -> "Estimate":
    """Call a measuring function without its warnings: all of them are messages of the estimate."""
    from infoknife.measure import MeasurementWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MeasurementWarning)
        return function(**arguments)


def advise(command: str, columns: "Iterable[ColumnKind]") -> None:
    """Say on stderr what columns were taken as that could be something else, and how to decide that."""
    found: dict[tuple[str, str], list[str]] = {}
    for column in columns:
        names = found.setdefault((column.kind, column.either), [])
        if column.name not in names:
            names.append(column.name)
    for (kind, either), names in found.items():
        if either:
            one, many, option = ALTERNATIVES[either]
            are, if_so = (f"{names[0]} is", f"it {one}") if len(names) == 1 else (f"{_and(names)} are", f"they {many}")
            note(command, f"{are} taken as {kind}. If {if_so}, say {option} {_as_option(names)}")


def _and(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _as_option(names: Sequence[str]) -> str:
    """Names of columns as a shell takes them for an option."""
    if len(names) == 1:
        return shlex.quote(names[0])
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return shlex.quote(text.getvalue())


@contextmanager
def reported(command: str) -> Iterator[None]:
    """Say what goes wrong in one line: the exit code is 2 for wrong input, 1 where the measuring fails."""
    try:
        yield
    except typer.Exit:
        raise
    except (ValueError, TypeError) as error:
        raise fail(command, str(error)) from None
    except OSError as error:  # a disk that is full, a file that is not there
        if isinstance(error, FileNotFoundError) and error.errno is None:  # one of ours
            raise fail(command, str(error)) from None
        raise fail(command, f"{error.filename or 'a file'}: {(error.strerror or str(error)).lower()}") from None
    except (RuntimeError, ArithmeticError, MemoryError) as error:
        note(command, f"measuring failed: {type(error).__name__}: {error}")
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        note(command, "stopped")
        raise typer.Exit(130) from None


@contextmanager
def bar(total: float = 1.0) -> Iterator[Watch]:
    """Show a bar on stderr, if that is a terminal, and yield what moves it: how much is done, and a few words."""
    from rich import progress as rich
    from rich.console import Console

    console = Console(stderr=True)
    shown = rich.SpinnerColumn(), rich.BarColumn(24), rich.TaskProgressColumn(), rich.TimeElapsedColumn()
    left = rich.TimeRemainingColumn(), rich.TextColumn("left · {task.description}", markup=False)
    with rich.Progress(
        *shown,
        *left,
        console=console,
        transient=True,
        redirect_stdout=False,
        disable=not console.is_terminal,
        speed_estimate_period=600,  # seconds: a pair of columns may take a minute
    ) as progress:
        task = progress.add_task("", total=total)
        yield lambda done, text: progress.update(task, completed=done, description=text)


class Answer(NamedTuple):
    """A measurement of columns of a file.

    Args:
        file: The file.
        arguments: What was measured: the columns and the options about them.
        settings: How.
        estimate: What was found.
        test: The permutation test alongside it, if there is one.
    """

    file: Path
    arguments: Mapping[str, Any]
    settings: Mapping[str, Any]
    estimate: "Estimate"
    test: "PermutationTest | None" = None

    @property
    def title(self) -> str:
        """What was measured, and where.

        Example:
            >>> from infoknife import entropy
            >>> pets = {"x": {"pet": ["cat", "dog"] * 9}}
            >>> Answer(Path("pets.csv"), pets, {}, entropy(**pets, effort="quick")).title
            'H(pet) of pets.csv'
        """
        inside = "; ".join(_listed([*self.arguments[side]]) for side in ("x", "y") if side in self.arguments)
        given = f" | {_listed([*self.arguments['given']])}" if "given" in self.arguments else ""
        kinds = {column.kind for column in self.estimate.diagnostics.columns if column.argument == "x"}
        sign = "I" if "y" in self.arguments else "H" if kinds == {"discrete"} else "h"
        return f"{sign}({inside}{given}) of {printable(self.file.name)}"

    def table(self) -> "Table":
        """The columns as they were measured, without rows that were left out."""
        from infoknife.measure.table import read_table

        sides = {side: self.arguments[side] for side in ("x", "y", "given") if side in self.arguments}
        options = {key: value for key, value in self.arguments.items() if key not in sides}
        return read_table(sides, main="x", **options)

    def tell(self, command: str, *, as_json: bool, pointwise: bool, plot: Path | None) -> None:
        """Print it on stdout with notes on stderr, draw it if asked to, and stop with 1 if there is no answer."""
        if as_json:
            print_json(self.as_dict(pointwise=pointwise))
        else:
            self.show()
        advise(command, self.estimate.diagnostics.columns)
        if plot is not None:
            from infoknife.pictures.measure import portrait, save

            save(portrait(self.title, self.estimate, self.table().columns), plot)
        if math.isnan(self.estimate.value):
            raise typer.Exit(1)

    def show(self) -> None:
        """Print it as a table on stdout."""
        from rich.console import Console
        from rich.text import Text

        shown = self.estimate.__rich__()
        shown.title, shown.title_justify = Text(self.title), "left"
        if self.test is not None:
            p = f"p = {self.test.p_value:.2g} by {len(self.test.null):,} permutations"
            shown.add_row(Text("independence"), Text(p))
        Console().print(shown)

    def as_dict(self, *, pointwise: bool = False) -> dict[str, Any]:
        """All of it in lists and numbers, for JSON; with pointwise values the numbers of their rows, from 0."""
        told = self.estimate.diagnostics.columns
        names = {side: [*self.arguments[side]] for side in ("x", "y", "given") if side in self.arguments}
        discrete = list(dict.fromkeys(column.name for column in told if column.kind == "discrete"))
        how = {key: self.settings[key] for key in ("effort", "seed")}
        rows = {"pointwise_rows": self.table().kept.tolist()} if pointwise else {}
        test = {"permutation_test": _plain_test(self.test)} if self.test is not None else {}
        about = {"file": str(self.file), "columns": names, "discrete": discrete}
        return about | how | self.estimate.as_dict(pointwise=pointwise) | rows | test


def _listed(names: Sequence[str]) -> str:
    """The names of columns, the first few of many."""
    ends = accumulate(len(name) + 2 for name in names)
    few = max(1, sum(end <= MAX_SHOWN for end in ends))
    more = f" and {len(names) - few} more" if few < len(names) else ""
    return ", ".join(names[:few]) + more


def _plain_test(test: "PermutationTest") -> dict[str, Any]:
    return {"p_value": test.p_value, "statistic": test.statistic, "permutations": len(test.null)}


def print_json(content: Mapping[str, Any]) -> None:
    """Print one JSON object on stdout."""
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))
