"""``infoknife entropy``: the entropy of columns of a file."""

from typing import Annotated

from infoknife.cli.options import EFFORT, Effort, File, MeasuringOptions, column, measuring, with_options

OTHERS = "all that are not given, and no groups"


@with_options(MeasuringOptions, "options")
def entropy(
    file: File,
    columns: Annotated[str | None, column("--columns", help="Those to measure together.", show_default=OTHERS)] = None,
    effort: Annotated[Effort, measuring("--effort", help=EFFORT)] = "standard",
    *,
    options: MeasuringOptions,
) -> None:
    """Measure the entropy of columns of a file, with an interval.

    Densities learn from a part of the rows and are measured on the others: in expectation, the value is an upper bound.
    Strings and booleans are discrete, and numbers with few different whole values. The answer says what every column
    was taken as, and why.

    Example: `infoknife entropy flowers.csv --columns length,width --given species --unit bits`
    """
    options.check(file)
    from infoknife import measure
    from infoknife.cli.measuring import arguments, columns_of, measuring_bar, one_column, open_table, print_answer

    table = open_table(file, options)
    known = columns_of(table, "--given", options.given) if options.given is not None else ()
    used = known if options.groups is None else (*known, one_column(table, "--groups", options.groups))
    rest = tuple(name for name in table.names if name not in used)
    wanted = columns_of(table, "--columns", columns) if columns is not None else rest
    if not wanted:
        raise ValueError("--given names all columns; expected some that are left to measure")
    measured = arguments(table, {"x": wanted} | ({"given": known} if known else {}), options)
    settings = options.settings(effort)
    with measuring_bar() as watch:
        estimate = measure.entropy(**measured, **settings, stderr=options.stderr, progress=watch)
    print_answer(file, measured, settings, estimate, options)
