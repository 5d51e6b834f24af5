"""``infoknife mi``: mutual information between columns of a file, of two groups or of all pairs."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infoknife.cli import options
from infoknife.cli.messages import fail

if TYPE_CHECKING:
    from infoknife.cli.matrix import Matrix
    from infoknife.cli.measured import Answer
    from infoknife.files import File

__all__ = ["mi"]

Kinds = Mapping[str, bool]

WIDE = 1 << 16  # letters in a line of a file
PERMUTATIONS = "Test independence too, by so many permutations of the rows of y."


def mi(
    file: options.File,
    x: Annotated[str | None, options.column_option("--x", "One side.")] = None,
    y: Annotated[str | None, options.column_option("--y", "The other side.")] = None,
    given: options.Given = None,
    columns: Annotated[
        str | None, options.column_option("--columns", "With --all: those to pair.", "all of them")
    ] = None,
    discrete: options.Discrete = None,
    continuous: options.Continuous = None,
    every_pair: Annotated[
        bool, options.measuring_option("--all", "Every pair of columns instead of --x and --y, as a matrix.")
    ] = False,
    sep: options.Sep = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    unit: options.UnitOption = options.Unit.NATS,
    effort: Annotated[
        options.Effort | None,
        options.measuring_option("--effort", options.EFFORT, show_default="standard; with --all quick"),
    ] = None,
    method: options.Method = "auto",
    permutations: Annotated[
        int | None, options.measuring_option("--permutations", PERMUTATIONS, min=1, metavar="N", show_default=False)
    ] = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    pointwise: options.Pointwise = False,
    out: Annotated[
        Path | None,
        options.output_option("--out", "With --all: write the matrix as CSV.", metavar="FILE", show_default=False),
    ] = None,
    plot: options.Plot = None,
) -> None:
    """Measure how much some columns of a file tell about others, with the uncertainty.

    Densities learn from a part of the rows and are measured on the others. Floats are continuous, strings and booleans
    discrete. Integers are discrete if they take few values.

    Two groups: `infoknife mi flowers.csv --x length,width --y species --unit bits --plot flowers.png`

    All pairs: `infoknife mi flowers.csv --all --out matrix.csv --plot heat.png`
    """
    _check_usage(
        every_pair,
        sides={"--x": x, "--y": y},
        for_sides={"--given": given, "--permutations": permutations, "--pointwise": pointwise or None},
        for_pairs={"--columns": columns, "--out": out},
    )
    if permutations is not None and given is not None:
        raise fail("mi", "--permutations tests independence without a condition; leave out --given")
    options.check_outputs("mi", file, plot=plot, out=out, pointwise=pointwise, as_json=as_json)
    usual = options.Effort.QUICK if every_pair else options.Effort.STANDARD
    settings = {"method": method, "unit": unit.value, "effort": (effort or usual).value, "seed": seed}

    from infoknife.cli.columns import declared, opened
    from infoknife.cli.measured import reported
    from infoknife.inputs import one_of
    from infoknife.measure.candidates.catalogue import methods

    with reported("mi"):
        one_of("--method", method, ("auto", *methods()))
        table = opened("mi", file, sep=sep, decimal=decimal, encoding=encoding)
        kinds = declared(table, discrete, continuous)
        if every_pair:
            _tell_matrix(_matrix(table, columns, kinds, settings), table, settings, as_json=as_json, out=out, plot=plot)
        else:
            answer = _answer(table, {"x": x, "y": y, "given": given}, kinds, settings, permutations)
            answer.tell(as_json=as_json, pointwise=pointwise, plot=plot)


def _check_usage(
    every_pair: bool, *, sides: Mapping[str, Any], for_sides: Mapping[str, Any], for_pairs: Mapping[str, Any]
) -> None:
    """Stop where options do not go together."""
    wrong = {**sides, **for_sides} if every_pair else for_pairs
    if not every_pair and None in sides.values():
        raise fail("mi", "expected both --x and --y, or --all for every pair of columns")
    if extra := [option for option, value in wrong.items() if value is not None]:
        reason = "does not go with --all" if every_pair else "is for --all alone"
        raise fail("mi", f"{extra[0]} {reason}; leave one of them out" if every_pair else f"{extra[0]} {reason}")


def _answer(
    file: "File",
    texts: Mapping[str, str | None],
    kinds: Kinds,
    settings: Mapping[str, Any],
    permutations: int | None,
) -> "Answer":
    from infoknife import measure as measuring
    from infoknife.cli.columns import chosen
    from infoknife.cli.measured import Answer, arguments, bar, measure, sides

    names = {side: chosen(file, f"--{side}", text) for side, text in texts.items() if text is not None}
    measured = sides("mi", file, names, kinds)
    with bar() as watch:
        estimate = measure("mi", measuring.mutual_information, measured, **settings, progress=watch)
        if permutations is None:
            return Answer(file.path, measured, settings, estimate)
        watch(1.0, f"{permutations} permutations")
        test = measuring.permutation_test(**arguments(measured), permutations=permutations, seed=settings["seed"])
    return Answer(file.path, measured, settings, estimate, test)


def _matrix(file: "File", columns: str | None, kinds: Kinds, settings: Mapping[str, Any]) -> "Matrix":
    from infoknife import measure as measuring
    from infoknife.cli.columns import chosen
    from infoknife.cli.matrix import pairwise, usable
    from infoknife.files import printable

    names = file.names if columns is None else chosen(file, "--columns", columns)
    if len(names) < 2:
        raise ValueError(f"--all has {', '.join(names)} alone; expected two columns or more")
    found, failures = usable("mi", file, names, kinds)
    shown = tuple(map(printable, names))
    return pairwise("mi", measuring.mutual_information, shown, found, failures, **settings)


def _tell_matrix(
    matrix: "Matrix",
    file: "File",
    settings: Mapping[str, Any],
    *,
    as_json: bool,
    out: Path | None,
    plot: Path | None,
) -> None:
    """Write what is asked for, print the matrix, and stop with 1 if a part of it is not there."""
    from rich.console import Console

    from infoknife.cli.measured import print_json
    from infoknife.files import printable

    title = f"Mutual information of columns of {printable(file.path.name)}"
    if as_json:
        how = {key: settings[key] for key in ("effort", "seed")}
        print_json({"file": str(file.path)} | how | matrix.as_dict())
    else:
        typer.echo(f"{title}, in {matrix.unit}\n")
        is_terminal, width = (console := Console()).is_terminal, console.width
        for table in matrix.tables(width if is_terminal else None):
            Console(width=width if is_terminal else WIDE).print(table)
    if out is not None:
        matrix.write_csv(out)
    if plot is not None:
        from infoknife.cli import paint
        from infoknife.cli.heat import heat

        paint.save(heat(matrix, title), plot)
    if matrix.failures:
        raise typer.Exit(1)
