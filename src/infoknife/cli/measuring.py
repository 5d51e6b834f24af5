"""What ``entropy`` and ``mi`` share: from names of columns to arguments of the measuring functions, and the answer."""

import csv
import io
import math
import shlex
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from infoknife.cli.options import MeasuringOptions
from infoknife.cli.terminal import Watch, bar, note, print_json

if TYPE_CHECKING:
    from infoknife.files import File
    from infoknife.measure import Estimate, PermutationTest
    from infoknife.measure.estimate import ColumnKind

ALTERNATIVES = {
    "a quantity": ("is a quantity", "are quantities", "--continuous"),
    "labels": ("has labels", "have labels", "--discrete"),
}
MAX_SHOWN = 50  # letters of columns' names on each side of a formula


def open_table(path: Path, options: MeasuringOptions) -> "File":
    """Open a file, or a sample of rows of a large one; what was recognised about it is said on stderr."""
    from infoknife.files import open_file
    from infoknife.streams import MAX_ROWS, SampledFile

    is_large = path.is_dir() or (options.rows is not None and path.suffix.lower() in (".parquet", ".npy"))
    file = SampledFile(path, options.rows or MAX_ROWS) if is_large else open_file(path, **options.text)
    for words in file.notes:
        note(f"{path.name}: {words}")
    return file


def columns_of(file: "File", option: str, text: str) -> tuple[str, ...]:
    """Return the columns that an option names, separated by commas.

    A name with a comma in it stands in double quotes, or alone. The name of an array with two axes is all its columns.
    """
    try:
        return file.find(text)
    except ValueError:
        try:
            parts = next(csv.reader([text], skipinitialspace=True), []) or [""]
        except csv.Error:  # a line break, a quote that is left open
            parts = [text]
    try:
        found = [name for part in parts for name in file.find(part.strip())]
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from None
    if twice := sorted({name for name in found if found.count(name) > 1}):
        raise ValueError(f"{option} names {', '.join(map(repr, twice))} more than once")
    return tuple(found)


def one_column(file: "File", option: str, text: str) -> str:
    """Return the one column that an option names."""
    found = columns_of(file, option, text)
    if len(found) != 1:
        raise ValueError(f"{option} names {len(found)} columns; expected one")
    return found[0]


def declared_kinds(file: "File", discrete: Iterable[str] | None, continuous: Iterable[str] | None) -> dict[str, bool]:
    """Return for each column that ``--discrete`` or ``--continuous`` names whether it is discrete."""
    labels = [name for text in discrete or () for name in columns_of(file, "--discrete", text)]
    numbers = [name for text in continuous or () for name in columns_of(file, "--continuous", text)]
    if both := [name for name in labels if name in numbers]:
        raise ValueError(f"{', '.join(map(repr, both))}: both --discrete and --continuous; choose one")
    return dict.fromkeys(labels, True) | dict.fromkeys(numbers, False)


def read(file: "File", names: Iterable[str]) -> dict[str, Any]:
    """Read columns; what was recognised in them is said on stderr."""
    with bar() as watch:
        found = file.read(list(dict.fromkeys(names)), progress=watch)
    for column in found.values():
        if column.note:
            note(column.note)
    return found


def arguments(file: "File", sides: Mapping[str, Sequence[str]], options: MeasuringOptions) -> dict[str, Any]:
    """Return the arguments of a measuring function that come from a file, by the names of the columns of each side."""
    kinds = declared_kinds(file, options.discrete, options.continuous)
    apart = [] if options.groups is None else [one_column(file, "--groups", options.groups)]
    used = [name for names in sides.values() for name in names]
    found = read(file, [*used, *apart])
    wanted: dict[str, Any] = {side: {name: found[name] for name in names} for side, names in sides.items()}
    wanted["discrete"] = {name: kind for name, kind in kinds.items() if name in used}
    return wanted | ({"groups": found[apart[0]]} if apart else {})


@contextmanager
def measuring_bar() -> Iterator[Watch]:
    """Show a bar while something is measured; warnings of measurements are left out, as the answer has them all."""
    from infoknife.measure import MeasurementWarning

    with bar() as watch, warnings.catch_warnings():
        warnings.simplefilter("ignore", MeasurementWarning)
        yield watch


def formula(estimate: "Estimate") -> str:
    """Return what was measured.

    Examples:
        >>> from infoknife import entropy
        >>> formula(entropy({"pet": ["cat", "dog"] * 9}, effort="quick"))
        'H(pet)'
    """
    columns = estimate.diagnostics.columns
    sides = {side: [one.name for one in columns if one.argument == side] for side in ("x", "y", "given")}
    inside = "; ".join(_listed(sides[side]) for side in ("x", "y") if sides[side])
    kinds = {column.kind for column in columns if column.argument == "x"}
    sign = "I" if sides["y"] else "H" if kinds == {"discrete"} else "h"
    given = f" | {_listed(sides['given'])}" if sides["given"] else ""
    return f"{sign}({inside}{given})"


def print_answer(
    file: Path,
    measured: Mapping[str, Any],
    settings: Mapping[str, Any],
    estimate: "Estimate",
    options: MeasuringOptions,
    test: "PermutationTest | None" = None,
) -> None:
    """Print an answer on stdout with notes on stderr, draw it if asked to, and stop with 1 if there is none.

    ``measured`` and ``settings`` are the arguments of the measuring function, and ``test`` may go with its answer.
    """
    from infoknife.files import printable

    title = f"{formula(estimate)} of {printable(file.name)}"
    if options.as_json:
        print_json({"file": str(file)} | _content(measured, settings, estimate, test, options.pointwise))
    else:
        _print_table(title, estimate, test)
    note_kinds(estimate.diagnostics.columns)
    if options.plot is not None:
        from infoknife.pictures.measure import measurement_figure, save

        save(measurement_figure(title, estimate, _table(measured, settings).columns), options.plot)
    if math.isnan(estimate.value):
        raise typer.Exit(1)


def _table(measured: Mapping[str, Any], settings: Mapping[str, Any]) -> Any:
    """The columns as they were measured, without rows that were left out."""
    from infoknife.measure.table import read_table

    sides = {side: measured[side] for side in ("x", "y", "given") if side in measured}
    rows: dict[str, Any] = {key: settings[key] for key in ("missing", "blocks")}
    return read_table(sides, main="x", discrete=measured["discrete"], groups=measured.get("groups"), **rows)


def _print_table(title: str, estimate: "Estimate", test: "PermutationTest | None") -> None:
    from rich.console import Console
    from rich.text import Text

    shown = estimate.__rich__()
    shown.title, shown.title_justify = Text(title), "left"
    if test is not None:
        shown.add_row(Text("independence"), Text(f"p = {test.p_value:.2g} by {len(test.null):,} permutations"))
    Console().print(shown)


def _content(
    measured: Mapping[str, Any],
    settings: Mapping[str, Any],
    estimate: "Estimate",
    test: "PermutationTest | None",
    pointwise: bool,
) -> dict[str, Any]:
    """What the answer is as JSON."""
    kinds = estimate.diagnostics.columns
    content = {
        "columns": {side: [*measured[side]] for side in ("x", "y", "given") if side in measured},
        "discrete": list(dict.fromkeys(column.name for column in kinds if column.kind == "discrete")),
        **{name: settings[name] for name in ("effort", "seed")},
        **estimate.as_dict(pointwise=pointwise),
    }
    if pointwise:
        content["pointwise_rows"] = _table(measured, settings).kept.tolist()
    if test is not None:
        numbers = {"p_value": test.p_value, "statistic": test.statistic, "permutations": len(test.null)}
        content["permutation_test"] = numbers
    return content


def note_kinds(columns: "Iterable[ColumnKind]") -> None:
    """Say on stderr what columns were taken as that could be something else, and how to decide that."""
    found: dict[tuple[str, str], dict[str, None]] = {}  # names in order
    for column in columns:
        if column.either:
            found.setdefault((column.kind, column.either), {})[column.name] = None
    for (kind, either), names in found.items():
        one, many, option = ALTERNATIVES[either]
        *first, last = names
        are, if_so = (f"{', '.join(first)} and {last} are", f"they {many}") if first else (f"{last} is", f"it {one}")
        note(f"{are} taken as {kind}. If {if_so}, say {option} {_as_option([*names])}")


def _as_option(names: Sequence[str]) -> str:
    """Names of columns as a shell takes them for an option."""
    if len(names) == 1:
        return shlex.quote(names[0])
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return shlex.quote(text.getvalue())


def _listed(names: Sequence[str]) -> str:
    """The names of columns, the first few of many."""
    ends = accumulate(len(name) + 2 for name in names)
    few = max(1, sum(end <= MAX_SHOWN for end in ends))
    more = f" and {len(names) - few} more" if few < len(names) else ""
    return ", ".join(names[:few]) + more
