"""``infoknife entropy``: the entropy of columns of a file."""

from typing import TYPE_CHECKING, Annotated

from infoknife.cli import options

if TYPE_CHECKING:
    from infoknife.files import File


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
    from infoknife import measure as measuring
    from infoknife.cli.columns import arguments, declared, opened, row_options
    from infoknife.cli.measured import Answer, bar, measure, reported
    from infoknife.inputs import one_of

    options.check_outputs("entropy", file, plot=plot, pointwise=pointwise, as_json=as_json)
    settings = {"method": method, "unit": unit.value, "effort": effort.value, "seed": seed}
    with reported("entropy"):
        one_of("--method", method, ("auto", *measuring.methods()))
        table = opened("entropy", file, sep=sep, decimal=decimal, encoding=encoding)
        kinds, rows = declared(table, discrete or (), continuous or ()), row_options(table, missing, groups, blocks)
        measured = arguments("entropy", table, _names(table, columns, given, groups), kinds, rows)
        with bar() as watch:
            estimate = measure(measuring.entropy, **measured, **settings, progress=watch)
        answer = Answer(file, measured, settings, estimate)
        answer.tell("entropy", as_json=as_json, pointwise=pointwise, plot=plot)


def _names(file: "File", columns: str | None, given: str | None, groups: str | None) -> dict[str, tuple[str, ...]]:
    """The columns of both sides; without a word, all those that are not given and make no groups."""
    from infoknife.cli.columns import chosen, single

    known = chosen(file, "--given", given) if given is not None else ()
    used = (*known, single(file, "--groups", groups)) if groups is not None else known
    rest = tuple(name for name in file.names if name not in used)
    wanted = chosen(file, "--columns", columns) if columns is not None else rest
    if not wanted:
        raise ValueError("--given names all columns; expected some that are left to measure")
    return {"x": wanted} | ({"given": known} if known else {})
