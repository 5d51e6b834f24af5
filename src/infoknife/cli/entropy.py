"""``infoknife entropy``: the entropy of columns of a file."""

from typing import TYPE_CHECKING, Annotated

from infoknife.cli import options

if TYPE_CHECKING:
    from infoknife.files import File

__all__ = ["entropy"]


def entropy(
    file: options.File,
    columns: Annotated[
        str | None, options.column_option("--columns", "Those to measure together.", "all that are not given")
    ] = None,
    given: options.Given = None,
    discrete: options.Discrete = None,
    continuous: options.Continuous = None,
    sep: options.Sep = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    unit: options.UnitOption = options.Unit.NATS,
    effort: options.EffortOption = options.Effort.STANDARD,
    method: options.Method = "auto",
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    pointwise: options.Pointwise = False,
    plot: options.Plot = None,
) -> None:
    """Measure the entropy of columns of a file, with its uncertainty.

    Densities learn from a part of the rows and are measured on the others: in expectation, the value is an upper bound.
    Floats are continuous, strings and booleans discrete. Integers are discrete if they take few values.

    Example: `infoknife entropy flowers.csv --columns length,width --given species --unit bits`
    """
    from infoknife import measure as measuring
    from infoknife.cli.columns import declared, opened
    from infoknife.cli.measured import Answer, bar, measure, reported, sides
    from infoknife.inputs import one_of
    from infoknife.measure.candidates.catalogue import methods

    options.check_outputs("entropy", file, plot=plot, pointwise=pointwise, as_json=as_json)
    settings = {"method": method, "unit": unit.value, "effort": effort.value, "seed": seed}
    with reported("entropy"):
        one_of("--method", method, ("auto", *methods()))
        table = opened("entropy", file, sep=sep, decimal=decimal, encoding=encoding)
        names = _names(table, columns, given)
        measured = sides("entropy", table, names, declared(table, discrete, continuous))
        with bar() as watch:
            estimate = measure("entropy", measuring.entropy, measured, **settings, progress=watch)
        Answer(file, measured, settings, estimate).tell(as_json=as_json, pointwise=pointwise, plot=plot)


def _names(file: "File", columns: str | None, given: str | None) -> dict[str, tuple[str, ...]]:
    """The columns of both sides; without a word, all those that are not given."""
    from infoknife.cli.columns import chosen

    known = chosen(file, "--given", given) if given is not None else ()
    rest = tuple(name for name in file.names if name not in known)
    wanted = chosen(file, "--columns", columns) if columns is not None else rest
    if not wanted:
        raise ValueError("--given names all columns; expected some that are left to measure")
    return {"x": wanted} | ({"given": known} if known else {})
