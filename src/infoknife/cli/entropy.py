"""``infoknife entropy``: the entropy of columns of a file."""

from typing import Annotated

from infoknife.cli import options
from infoknife.cli.terminal import bar


def entropy(
    file: options.File,
    columns: Annotated[
        str | None,
        options.column_option("--columns", "Those to measure together.", "all that are not given, and no groups"),
    ] = None,
    given: options.Given = None,
    groups: options.Groups = None,
    discrete: options.Discrete = None,
    continuous: options.Continuous = None,
    sep: options.Sep = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    unit: options.UnitOption = options.Unit.NATS,
    effort: options.EffortOption = options.Effort.STANDARD,
    method: options.Method = "auto",
    missing: options.MissingOption = options.Missing.ERROR,
    blocks: options.Blocks = None,
    rows: options.RowsOption = None,
    stderr: options.Stderr = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    pointwise: options.Pointwise = False,
    plot: options.Plot = None,
) -> None:
    """Measure the entropy of columns of a file, with its uncertainty.

    Densities learn from a part of the rows and are measured on the others: in expectation, the value is an upper bound.
    Strings and booleans are discrete, and numbers with few different whole values. The answer says what every column
    was taken as, and why.

    Example: `infoknife entropy flowers.csv --columns length,width --given species --unit bits`
    """
    options.check_outputs(file, plot=plot, pointwise=pointwise, as_json=as_json)
    from infoknife import measure
    from infoknife.cli.measuring import arguments, chosen, declared, opened, single, tell

    options.check_method(method)
    table = opened(file, rows, sep=sep, decimal=decimal, encoding=encoding)
    known = chosen(table, "--given", given) if given is not None else ()
    used = known if groups is None else (*known, single(table, "--groups", groups))
    rest = tuple(name for name in table.names if name not in used)
    wanted = chosen(table, "--columns", columns) if columns is not None else rest
    if not wanted:
        raise ValueError("--given names all columns; expected some that are left to measure")
    sides = {"x": wanted} | ({"given": known} if known else {})
    measured = arguments(table, sides, declared(table, discrete, continuous), groups)
    settings = options.settings(method, unit, effort, seed, missing, blocks)
    with bar() as watch, options.no_warnings():
        estimate = measure.entropy(**measured, **settings, stderr=stderr, progress=watch)
    tell(file, measured, settings, estimate, as_json=as_json, pointwise=pointwise, plot=plot)
