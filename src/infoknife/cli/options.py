"""The options that the measuring commands share, and the checks that come before any work."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from infoknife.cli.terminal import check_writable, require_matplotlib

PICTURES = (".png", ".svg", ".pdf")
PICTURES_OR = f"{', '.join(PICTURES[:-1])} or {PICTURES[-1]}"
EFFORT = "How long to look for the best density."


class Unit(StrEnum):
    """What information is measured in."""

    NATS = "nats"
    BITS = "bits"


class Effort(StrEnum):
    """How much time a measurement may take."""

    QUICK = "quick"
    STANDARD = "standard"
    THOROUGH = "thorough"


class Missing(StrEnum):
    """What becomes of rows with missing values."""

    ERROR = "error"
    DROP = "drop"
    CATEGORY = "category"


COLUMNS, MEASURING, OUTPUT = "Columns, by name: a,b", "Measuring", "Output"  # the parts of the help
TEXT = "CSV and TSV"


def column_option(name: str, words: str, default: str | bool = False) -> Any:
    """An option that names columns."""
    return typer.Option(name, metavar="COLUMNS", help=words, show_default=default, rich_help_panel=COLUMNS)


def measuring_option(name: str, words: str, **more: Any) -> Any:
    """An option that says how to measure."""
    return typer.Option(name, help=words, rich_help_panel=MEASURING, **more)


def output_option(name: str, words: str, **more: Any) -> Any:
    """An option that says what becomes of the answer."""
    return typer.Option(name, help=words, rich_help_panel=OUTPUT, **more)


def _text_option(name: str, words: str, metavar: str = "MARK") -> Any:
    return typer.Option(name, metavar=metavar, help=words, show_default="found", rich_help_panel=TEXT)


KINDS = "CSV or TSV (also .gz), Parquet, a folder of it, NPZ or NPY; one row per sample."
File = Annotated[Path, typer.Argument(metavar="FILE", help=KINDS, show_default=False)]
Given = Annotated[str | None, column_option("--given", "Those that are known; the answer is conditional on them.")]
Discrete = Annotated[list[str] | None, column_option("--discrete", "Those whose values are labels.")]
Continuous = Annotated[list[str] | None, column_option("--continuous", "Those whose values are quantities.")]
APART = "Rows with the same value are never learned from and measured on at once, such as those of one patient."
Groups = Annotated[
    str | None, typer.Option("--groups", metavar="COLUMN", help=APART, show_default=False, rich_help_panel=COLUMNS)
]
Sep = Annotated[str | None, _text_option("--sep", "Between cells; or tab.")]
Decimal = Annotated[str | None, _text_option("--decimal", "What 1,234 means: . or ,")]
Encoding = Annotated[str | None, _text_option("--encoding", "Such as cp1252.", "NAME")]
UnitOption = Annotated[Unit, measuring_option("--unit", "The unit of the answer.")]
EffortOption = Annotated[Effort, measuring_option("--effort", EFFORT)]
ONE_METHOD = "One kind of density by its name, instead of the best of several."
Method = Annotated[str, measuring_option("--method", ONE_METHOD, metavar="NAME")]
MissingOption = Annotated[
    Missing,
    measuring_option("--missing", "Missing values: refuse them, leave out their rows, or make them a label."),
]
TOGETHER = "So many neighbouring rows stay together, for series in time."
Blocks = Annotated[int | None, measuring_option("--blocks", TOGETHER, min=1, metavar="N", show_default=False)]
Seed = Annotated[int, measuring_option("--seed", "Where all randomness comes from.", min=0, max=2**32 - 1, metavar="N")]
DRAWN = "Draw so many rows at random, of a folder 200,000 if not given."
RowsOption = Annotated[int | None, measuring_option("--rows", DRAWN, min=10, metavar="N", show_default=False)]
PRECISE = "The standard error that is wanted: no more rows are measured than it needs."
Stderr = Annotated[float | None, measuring_option("--stderr", PRECISE, min=1e-9, metavar="X", show_default=False)]
AsJson = Annotated[bool, output_option("--json", "One JSON object on stdout, and nothing else.")]
Pointwise = Annotated[bool, output_option("--pointwise", "With --json: the value of every row as well.")]
DRAW = f"Draw a picture; the name ends with {PICTURES_OR}."
Plot = Annotated[Path | None, output_option("--plot", DRAW, metavar="FILE", show_default=False)]


def settings(
    method: str, unit: Unit, effort: Effort, seed: int, missing: Missing, blocks: int | None
) -> dict[str, Any]:
    """Return the options of measuring functions that do not name columns."""
    how = {"method": method, "unit": unit.value, "effort": effort.value, "seed": seed}
    return how | {"missing": missing.value, "blocks": blocks}


def check_method(method: str) -> None:
    """Stop where there is no such density, before a file is read."""
    from infoknife.inputs import one_of
    from infoknife.measure import methods

    one_of("--method", method, ("auto", *methods()))


@contextmanager
def no_warnings() -> Iterator[None]:
    """Leave out the warnings of measurements: all of them are messages of the estimate."""
    from infoknife.measure import MeasurementWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MeasurementWarning)
        yield


def check_outputs(
    file: Path, *, plot: Path | None = None, out: Path | None = None, pointwise: bool = False, as_json: bool = False
) -> None:
    """Stop where a file that is to be written cannot be, or is the input, or where what is wanted has no place."""
    if pointwise and not as_json:
        raise ValueError("--pointwise is for --json alone; add --json")
    if plot is not None:
        if plot.suffix.lower() not in PICTURES:
            raise ValueError(f"--plot is {plot}; expected a name that ends with {PICTURES_OR}")
        require_matplotlib()
    for option, path in (("--plot", plot), ("--out", out)):
        if path is not None:
            check_writable(option, path, file)
