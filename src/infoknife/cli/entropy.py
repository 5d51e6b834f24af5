"""``infoknife entropy``: the entropy of columns of a file."""

from typing import Annotated

from infoknife.cli.options import EffortOption, File, MeasuringOptions, column_option, no_warnings, with_options
from infoknife.cli.terminal import bar

COLUMNS = column_option("--columns", "Those to measure together.", "all that are not given, and no groups")


@with_options(MeasuringOptions, "options")
def entropy(
    file: File,
    columns: Annotated[str | None, COLUMNS] = None,
    effort: EffortOption = "standard",
    *,
    options: MeasuringOptions,
) -> None:
    """Measure the entropy of columns of a file, with its uncertainty.

    Densities learn from a part of the rows and are measured on the others: in expectation, the value is an upper bound.
    Strings and booleans are discrete, and numbers with few different whole values. The answer says what every column
    was taken as, and why.

    Example: `infoknife entropy flowers.csv --columns length,width --given species --unit bits`
    """
    options.check(file)
    from infoknife import measure
    from infoknife.cli.measuring import arguments, columns_of, one_column, open_table, print_answer

    table = open_table(file, options)
    known = columns_of(table, "--given", options.given) if options.given is not None else ()
    used = known if options.groups is None else (*known, one_column(table, "--groups", options.groups))
    rest = tuple(name for name in table.names if name not in used)
    wanted = columns_of(table, "--columns", columns) if columns is not None else rest
    if not wanted:
        raise ValueError("--given names all columns; expected some that are left to measure")
    measured = arguments(table, {"x": wanted} | ({"given": known} if known else {}), options)
    settings = options.settings(effort)
    with bar() as watch, no_warnings():
        estimate = measure.entropy(**measured, **settings, stderr=options.stderr, progress=watch)
    print_answer(file, measured, settings, estimate, options)
