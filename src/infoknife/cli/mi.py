"""``infoknife mi``: mutual information between columns of a file, of two groups or of all pairs."""

import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infoknife.cli.options import (
    EFFORT,
    Effort,
    File,
    MeasuringOptions,
    column,
    file_option,
    measuring,
    number,
    with_options,
)
from infoknife.cli.terminal import bar, note, print_json

if TYPE_CHECKING:
    from infoknife.files import File as Table
    from infoknife.measure.pairs import Pairs

FEW_PAIRS = 6  # so few are quicker than the start of other processes
MANY_PAIRS = 1000  # so many are screened first
MAX_LISTED = 100  # pairs that are printed
REDRAW = 60  # seconds between two pictures of what was found so far
SCREEN = "With --all: leave out pairs that bins and ranks show to be independent at this level; 1: none."


@with_options(MeasuringOptions, "options")
def mi(
    file: File,
    x: Annotated[str | None, column("--x", help="One side.")] = None,
    y: Annotated[str | None, column("--y", help="The other side.")] = None,
    columns: Annotated[
        str | None, column("--columns", help="With --all: those to pair.", show_default="all of them")
    ] = None,
    every_pair: Annotated[
        bool, measuring("--all", help="Every pair of columns instead of --x and --y, the strongest first.")
    ] = False,
    effort: Annotated[
        Effort | None, measuring("--effort", help=EFFORT, show_default="standard; with --all quick")
    ] = None,
    permutations: Annotated[
        int | None, number("--permutations", min=1, help="Test independence too, by so many permutations of y's rows.")
    ] = None,
    jobs: Annotated[
        int, number("--jobs", min=0, help="With --all: processes; 0: one on every core.", show_default=True)
    ] = 0,
    screen: Annotated[
        float | None, measuring("--screen", min=0.0, max=1.0, help=SCREEN, show_default="0.05 beyond 1,000 pairs")
    ] = None,
    scheduler: Annotated[
        str | None,
        number("--scheduler", metavar="ADDRESS", help="With --all: a Dask scheduler, tcp://host:port."),
    ] = None,
    out: Annotated[Path | None, file_option("--out", help="With --all: write a CSV with one row per pair.")] = None,
    *,
    options: MeasuringOptions,
) -> None:
    """Measure how much some columns of a file tell you about others, with an interval.

    Densities learn from a part of the rows and are measured on the others. Strings and booleans are discrete, and
    numbers with few different whole values. The answer says what every column was taken as, and why.

    Two groups: `infoknife mi flowers.csv --x length,width --y species --unit bits --plot flowers.png`

    All pairs: `infoknife mi flowers.csv --all --out pairs.csv --plot heat.png`
    """
    for_sides = {"--x": x, "--y": y, "--given": options.given, "--pointwise": options.pointwise or None}
    for_pairs = {"--columns": columns, "--out": out, "--jobs": jobs or None, "--screen": screen}
    if not every_pair and (x is None or y is None):
        raise ValueError("expected both --x and --y, or --all for every pair of columns")
    reason = "does not go with --all; leave one of them out" if every_pair else "is for --all alone"
    others = for_sides | {"--stderr": options.stderr} if every_pair else for_pairs | {"--scheduler": scheduler}
    if misplaced := [option for option, value in others.items() if value is not None]:
        raise ValueError(f"{misplaced[0]} {reason}")
    if permutations is not None and options.given is not None:
        raise ValueError("--permutations tests independence without a condition; leave out --given")
    options.check(file, out)
    from infoknife import measure
    from infoknife.cli.measuring import arguments, columns_of, measuring_bar, open_table, print_answer

    settings = options.settings(effort or ("quick" if every_pair else "standard"))
    table = open_table(file, options)
    if every_pair:
        where: dict[str, Any] = {"out": out, "screen": screen, "scheduler": scheduler, "jobs": jobs}
        pairs = _all_pairs(table, columns, options, settings, permutations, **where)
        _print_answer(pairs, table, settings, permutations or 0, options, out)
        return
    texts = {"x": x, "y": y, "given": options.given}
    sides = {side: columns_of(table, f"--{side}", text) for side, text in texts.items() if text is not None}
    measured = arguments(table, sides, options)
    test = None
    with measuring_bar() as watch:
        estimate = measure.mutual_information(**measured, **settings, stderr=options.stderr, progress=watch)
        if permutations is not None:
            watch(1.0, f"{permutations} permutations")
            how = {name: settings[name] for name in ("method", "seed", "missing", "blocks")}
            test = measure.permutation_test(**measured, **how, permutations=permutations)
    print_answer(file, measured, settings, estimate, options, test)


def _all_pairs(
    file: "Table",
    columns: str | None,
    options: MeasuringOptions,
    settings: dict[str, Any],
    permutations: int | None,
    *,
    out: Path | None,
    screen: float | None,
    scheduler: str | None,
    jobs: int,
) -> "Pairs":
    """Measure all pairs with a bar on stderr; what cannot be measured is named there, and the others go on."""
    from infoknife.cli.measuring import columns_of, declared_kinds, one_column, read
    from infoknife.measure import pairs as room

    kinds = declared_kinds(file, options.discrete, options.continuous)
    apart = [] if options.groups is None else [one_column(file, "--groups", options.groups)]
    rest = tuple(name for name in file.names if name not in apart)
    names = rest if columns is None else columns_of(file, "--columns", columns)
    if len(names) < 2:
        raise ValueError(f"--all has {', '.join(names)} alone; expected two columns or more")
    found = read(file, [*names, *apart])
    how = settings | ({"groups": found.pop(apart[0])} if apart else {})
    usable, left_out = room.measurable(found, discrete=kinds, missing=settings["missing"])
    for why in left_out.values():
        note(f"left out: {why}")
    run = room.identity(usable, how | {"discrete": kinds, "permutations": permutations, "screen": screen})
    total = len(usable) * (len(usable) - 1) // 2
    known = {} if out is None else room.read_pairs(out, run)
    level = screen if screen is not None else room.SCREENED if total > MANY_PAIRS else 1.0
    screened = room.screen_pairs(usable, level, settings["unit"])
    if known:
        note(f"{len(known):,} of {total:,} pairs are in {out} already")
    if screened:
        note(f"{len(screened):,} of {total:,} pairs show no dependence in bins and ranks; only the others are measured")
    pairs = list((screened | known).values())
    is_short = total - len(pairs) <= FEW_PAIRS and settings["effort"] == "quick"
    workers = min(jobs or (1 if is_short else os.cpu_count() or 1), max(total - len(pairs), 1))
    left: dict[str, Any] = {"without": {*screened, *known}, "discrete": kinds, "permutations": permutations}
    drawn = time.monotonic()
    with room.appended(out, run, known.values()) as append, bar(total) as watch:
        watch(len(pairs), f"{workers} processes start" if workers > 1 else "")
        for pair in room.measure_pairs(usable, **left, jobs=workers, scheduler=scheduler, **how):
            pairs.append(pair)
            append(pair)
            watch(len(pairs), " – ".join(pair.names))
            if math.isnan(pair.value):
                note(f"no answer: {' – '.join(pair.names)}: {'. '.join(pair.messages)}")
            if options.plot is not None and time.monotonic() - drawn >= REDRAW:
                _save_heat_map(room.Pairs(names, tuple(pairs), settings["unit"]), file, options.plot)
                drawn = time.monotonic()
    place = {name: i for i, name in enumerate(names)}
    pairs.sort(key=lambda pair: [place[name] for name in pair.names])
    return room.Pairs(names, tuple(pairs), settings["unit"], left_out, run)


def _print_answer(
    pairs: "Pairs",
    file: "Table",
    settings: Mapping[str, Any],
    permutations: int,
    options: MeasuringOptions,
    out: Path | None,
) -> None:
    """Write what is asked for, print the pairs, and stop with 1 if a part of them is not there."""
    from infoknife.cli.measuring import note_kinds

    if options.as_json:
        print_json({"file": str(file.path), "effort": settings["effort"], "seed": settings["seed"]} | pairs.as_dict())
    else:
        _print_pairs(pairs, _title(file), permutations)
    note_kinds([column for pair in pairs.pairs for column in pair.columns])
    if not options.as_json and (noted := sum(bool(pair.messages and pair.rows) for pair in pairs.pairs)):
        note(f"{noted} {'pair has' if noted == 1 else 'pairs have'} notes, which are in --out and --json")
    if out is not None:
        pairs.write_csv(out)
    if options.plot is not None:
        _save_heat_map(pairs, file, options.plot)
    if pairs.failed:
        raise typer.Exit(1)


def _title(file: "Table") -> str:
    from infoknife.files import printable

    return f"Mutual information of columns of {printable(file.path.name)}"


def _save_heat_map(pairs: "Pairs", file: "Table", path: Path) -> None:
    from infoknife.pictures.measure import heat_map, save

    save(heat_map(_title(file), pairs.names, pairs.matrix("value"), pairs.matrix("stderr"), pairs.unit), path)


def _print_pairs(pairs: "Pairs", title: str, permutations: int) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from infoknife.pictures.measure import three_decimals

    typer.echo(f"{title}, in {pairs.unit}")
    table = Table(box=None, pad_edge=False)
    for head in ("column", "column", pairs.unit, "±", *["p"] * bool(permutations), "rows"):
        table.add_column(head, justify="left" if head == "column" else "right", overflow="fold")
    ranked = sorted((pair for pair in pairs.pairs if not math.isnan(pair.value)), key=lambda pair: -pair.value)
    for pair in ranked[:MAX_LISTED]:
        p_value = [f"{pair.p_value:.2g}"] if permutations else []
        error = "" if math.isnan(pair.stderr) else three_decimals(pair.stderr)
        table.add_row(*map(Text, (*pair.names, three_decimals(pair.value), error, *p_value, f"{pair.rows:,}")))
    (console if (console := Console()).is_terminal else Console(width=1 << 10)).print(table)
    if len(ranked) > MAX_LISTED:
        typer.echo(f"and {len(ranked) - MAX_LISTED:,} more, which --out and --json have")
