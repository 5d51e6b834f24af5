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
    column_option,
    measuring_option,
    no_warnings,
    output_option,
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
NUMBER = {"metavar": "N", "show_default": False}
TEST = "Test independence too, by so many permutations of the rows of y."
SCREEN = "With --all: leave out pairs that bins and ranks show to be independent at this level; 1: none."


@with_options(MeasuringOptions, "options")
def mi(
    file: File,
    x: Annotated[str | None, column_option("--x", "One side.")] = None,
    y: Annotated[str | None, column_option("--y", "The other side.")] = None,
    columns: Annotated[str | None, column_option("--columns", "With --all: those to pair.", "all of them")] = None,
    every_pair: Annotated[
        bool, measuring_option("--all", "Every pair of columns instead of --x and --y, the strongest first.")
    ] = False,
    effort: Annotated[
        Effort | None, measuring_option("--effort", EFFORT, show_default="standard; with --all quick")
    ] = None,
    permutations: Annotated[int | None, measuring_option("--permutations", TEST, min=1, **NUMBER)] = None,
    jobs: Annotated[
        int, measuring_option("--jobs", "With --all: processes; 0: one on every core.", min=0, metavar="N")
    ] = 0,
    screen: Annotated[
        float | None,
        measuring_option("--screen", SCREEN, min=0.0, max=1.0, show_default="0.05 beyond 1,000 pairs"),
    ] = None,
    scheduler: Annotated[
        str | None,
        measuring_option(
            "--scheduler", "With --all: a Dask scheduler, tcp://host:port.", metavar="ADDRESS", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None,
        output_option("--out", "With --all: write a CSV with one row per pair.", metavar="FILE", show_default=False),
    ] = None,
    *,
    options: MeasuringOptions,
) -> None:
    """Measure how much some columns of a file tell about others, with the uncertainty.

    Densities learn from a part of the rows and are measured on the others. Strings and booleans are discrete, and
    numbers with few different whole values. The answer says what every column was taken as, and why.

    Two groups: `infoknife mi flowers.csv --x length,width --y species --unit bits --plot flowers.png`

    All pairs: `infoknife mi flowers.csv --all --out pairs.csv --plot heat.png`
    """
    shown = {"--pointwise": options.pointwise or None, "--stderr": options.stderr}
    for_sides = {"--x": x, "--y": y, "--given": options.given, **shown}
    for_pairs = {"--columns": columns, "--out": out, "--jobs": jobs or None}
    _check_usage(every_pair, for_sides, for_pairs | {"--screen": screen, "--scheduler": scheduler})
    if permutations is not None and options.given is not None:
        raise ValueError("--permutations tests independence without a condition; leave out --given")
    options.check(file, out)
    from infoknife import measure
    from infoknife.cli.measuring import arguments, columns_of, open_table, print_answer

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
    with bar() as watch, no_warnings():
        estimate = measure.mutual_information(**measured, **settings, stderr=options.stderr, progress=watch)
        if permutations is not None:
            watch(1.0, f"{permutations} permutations")
            how = {name: settings[name] for name in ("method", "seed", "missing", "blocks")}
            test = measure.permutation_test(**measured, **how, permutations=permutations)
    print_answer(file, measured, settings, estimate, options, test)


def _check_usage(every_pair: bool, for_sides: Mapping[str, Any], for_pairs: Mapping[str, Any]) -> None:
    """Stop where options do not go together."""
    if not every_pair and (for_sides["--x"] is None or for_sides["--y"] is None):
        raise ValueError("expected both --x and --y, or --all for every pair of columns")
    reason = "does not go with --all; leave one of them out" if every_pair else "is for --all alone"
    for option, value in (for_sides if every_pair else for_pairs).items():
        if value is not None:
            raise ValueError(f"{option} {reason}")


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
    apart = one_column(file, "--groups", options.groups) if options.groups is not None else None
    names = (
        tuple(name for name in file.names if name != apart)
        if columns is None
        else columns_of(file, "--columns", columns)
    )
    if len(names) < 2:
        raise ValueError(f"--all has {', '.join(names)} alone; expected two columns or more")
    found = read(file, [*names, *([apart] if apart else [])])
    labels = found.pop(apart) if apart else None
    usable, left_out = room.measurable(found, discrete=kinds, missing=settings["missing"])
    for why in left_out.values():
        note(f"left out: {why}")
    how = settings | ({"groups": labels} if apart else {})
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
