"""``infoknife mi``: mutual information between columns of a file, of two groups or of all pairs."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infoknife.cli import options
from infoknife.cli.messages import fail, note

if TYPE_CHECKING:
    from infoknife.cli.matrix import Matrix
    from infoknife.cli.measured import Answer
    from infoknife.files import File

MAX_WIDTH = 1 << 16  # letters in a line of a file
PERMUTATIONS = "Test independence too, by so many permutations of the rows of y."


def mi(
    file: options.File,
    x: Annotated[str | None, options.column_option("--x", "One side.")] = None,
    y: Annotated[str | None, options.column_option("--y", "The other side.")] = None,
    given: options.Given = None,
    groups: options.Groups = None,
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
    missing: options.MissingOption = options.Missing.ERROR,
    blocks: options.Blocks = None,
    jobs: Annotated[
        int, options.measuring_option("--jobs", "With --all: processes; 0: one on every core.", min=0, metavar="N")
    ] = 0,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    pointwise: options.Pointwise = False,
    out: Annotated[
        Path | None,
        options.output_option(
            "--out", "With --all: write a CSV with one row per pair.", metavar="FILE", show_default=False
        ),
    ] = None,
    plot: options.Plot = None,
) -> None:
    """Measure how much some columns of a file tell about others, with the uncertainty.

    Densities learn from a part of the rows and are measured on the others. Strings and booleans are discrete, and
    numbers with few different whole values. The answer says what every column was taken as, and why.

    Two groups: `infoknife mi flowers.csv --x length,width --y species --unit bits --plot flowers.png`

    All pairs: `infoknife mi flowers.csv --all --out pairs.csv --plot heat.png`
    """
    _check_usage(
        every_pair,
        sides={"--x": x, "--y": y},
        for_sides={"--given": given, "--pointwise": pointwise or None},
        for_pairs={"--columns": columns, "--out": out, "--jobs": jobs or None},
    )
    if permutations is not None and given is not None:
        raise fail("mi", "--permutations tests independence without a condition; leave out --given")
    options.check_outputs("mi", file, plot=plot, out=out, pointwise=pointwise, as_json=as_json)
    usual = options.Effort.QUICK if every_pair else options.Effort.STANDARD
    settings = {"method": method, "unit": unit.value, "effort": (effort or usual).value, "seed": seed}

    from infoknife.cli.columns import declared, opened, row_options
    from infoknife.cli.measured import reported
    from infoknife.inputs import one_of
    from infoknife.measure import methods

    with reported("mi"):
        one_of("--method", method, ("auto", *methods()))
        table = opened("mi", file, sep=sep, decimal=decimal, encoding=encoding)
        how: dict[str, Any] = {
            "kinds": declared(table, discrete or (), continuous or ()),
            "rows": row_options(table, missing, groups, blocks),
            "settings": settings,
            "permutations": permutations,
        }
        if every_pair:
            matrix = _matrix(table, columns, groups, jobs=jobs, **how)
            _tell_matrix(matrix, table, settings, as_json=as_json, out=out, plot=plot)
        else:
            answer = _answer(table, {"x": x, "y": y, "given": given}, **how)
            answer.tell("mi", as_json=as_json, pointwise=pointwise, plot=plot)


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
    *,
    kinds: Mapping[str, bool],
    rows: Mapping[str, Any],
    settings: Mapping[str, Any],
    permutations: int | None,
) -> "Answer":
    from infoknife import measure as measuring
    from infoknife.cli.columns import arguments, chosen
    from infoknife.cli.measured import Answer, bar, measure

    names = {side: chosen(file, f"--{side}", text) for side, text in texts.items() if text is not None}
    measured = arguments("mi", file, names, kinds, rows)
    test = None
    with bar() as watch:
        estimate = measure(measuring.mutual_information, **measured, **settings, progress=watch)
        if permutations is not None:
            watch(1.0, f"{permutations} permutations")
            how = {"permutations": permutations, "method": settings["method"], "seed": settings["seed"]}
            test = measuring.permutation_test(**measured, **how)
    return Answer(file.path, measured, settings, estimate, test)


def _matrix(
    file: "File",
    columns: str | None,
    groups: str | None,
    *,
    kinds: Mapping[str, bool],
    rows: Mapping[str, Any],
    **how: Any,
) -> "Matrix":
    from infoknife.cli.columns import chosen, read, say_notes, single
    from infoknife.cli.pairs import pairwise, usable

    apart = single(file, "--groups", groups) if groups is not None else None
    rest = tuple(name for name in file.names if name != apart)
    names = rest if columns is None else chosen(file, "--columns", columns)
    if len(names) < 2:
        raise ValueError(f"--all has {', '.join(names)} alone; expected two columns or more")
    found = read(file, names)
    say_notes("mi", found.values())
    values, failures = usable("mi", file, found, kinds, rows)
    return pairwise("mi", [*found], values, failures, kinds=kinds, rows=rows, **how)


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
    from infoknife.cli.measured import advise, print_json
    from infoknife.files import printable

    title = f"Mutual information of columns of {printable(file.path.name)}"
    if as_json:
        how = {key: settings[key] for key in ("effort", "seed")}
        print_json({"file": str(file.path)} | how | matrix.as_dict())
    else:
        _print_matrix(matrix, title)
    advise("mi", [column for pair in matrix.pairs for column in pair.columns])
    if not as_json and (noted := sum(bool(pair.messages and pair.rows) for pair in matrix.pairs)):
        word = "pair has" if noted == 1 else "pairs have"
        note("mi", f"{noted} {word} notes, which are in --out and --json")
    if out is not None:
        matrix.write_csv(out)
    if plot is not None:
        from infoknife.pictures.measure import heat_map, save

        save(heat_map(title, matrix.names, matrix.values, matrix.stderrs, matrix.unit), plot)
    if matrix.failures:
        raise typer.Exit(1)


def _print_matrix(matrix: "Matrix", title: str) -> None:
    from rich.console import Console

    typer.echo(f"{title}, in {matrix.unit}\n")
    is_terminal, width = (console := Console()).is_terminal, console.width
    for table in matrix.tables(width if is_terminal else None):
        Console(width=width if is_terminal else MAX_WIDTH).print(table)
    if matrix.permutations:
        typer.echo(f"\n· could be chance: p > 0.05 by {matrix.permutations:,} permutations")
