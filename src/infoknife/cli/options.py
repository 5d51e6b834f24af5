"""The options that the measuring commands share, and the checks that come before any work."""

import tempfile
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from infoknife.cli.messages import fail, require_matplotlib

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


File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="CSV or TSV (also .gz), Parquet, NPZ or NPY; one row per sample.", show_default=False
    ),
]
Given = Annotated[str | None, column_option("--given", "Those that are known; the answer is conditional on them.")]
Discrete = Annotated[list[str] | None, column_option("--discrete", "Those whose values are labels.")]
Continuous = Annotated[list[str] | None, column_option("--continuous", "Those whose values are quantities.")]
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="COLUMN",
        help="Rows with the same value are never learned from and measured on at once, such as those of one patient.",
        show_default=False,
        rich_help_panel=COLUMNS,
    ),
]
Sep = Annotated[
    str | None,
    typer.Option("--sep", metavar="MARK", help="Between cells; or tab.", show_default="found", rich_help_panel=TEXT),
]
Decimal = Annotated[
    str | None,
    typer.Option(
        "--decimal", metavar="MARK", help="What 1,234 means: . or ,", show_default="found", rich_help_panel=TEXT
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option("--encoding", metavar="NAME", help="Such as cp1252.", show_default="found", rich_help_panel=TEXT),
]
UnitOption = Annotated[Unit, measuring_option("--unit", "The unit of the answer.")]
EffortOption = Annotated[Effort, measuring_option("--effort", EFFORT)]
Method = Annotated[
    str,
    measuring_option("--method", "One kind of density by its name, instead of the best of several.", metavar="NAME"),
]
MissingOption = Annotated[
    Missing,
    measuring_option("--missing", "Missing values: refuse them, leave out their rows, or make them a label."),
]
Blocks = Annotated[
    int | None,
    measuring_option(
        "--blocks",
        "So many neighbouring rows stay together, for series in time.",
        min=1,
        metavar="N",
        show_default=False,
    ),
]
Seed = Annotated[int, measuring_option("--seed", "Where all randomness comes from.", min=0, max=2**32 - 1, metavar="N")]
AsJson = Annotated[bool, output_option("--json", "One JSON object on stdout, and nothing else.")]
Pointwise = Annotated[bool, output_option("--pointwise", "With --json: the value of every row as well.")]
Plot = Annotated[
    Path | None,
    output_option("--plot", f"Draw a picture; the name ends with {PICTURES_OR}.", metavar="FILE", show_default=False),
]


def check_outputs(
    command: str,
    file: Path,
    *,
    plot: Path | None,
    out: Path | None = None,
    pointwise: bool = False,
    as_json: bool = False,
) -> None:
    """Stop where a file that is to be written cannot be, or is the input, or where what is wanted has no place."""
    if pointwise and not as_json:
        raise fail(command, "--pointwise is for --json alone; add --json")
    if plot is not None:
        if plot.suffix.lower() not in PICTURES:
            raise fail(command, f"--plot is {plot}; expected a name that ends with {PICTURES_OR}")
        require_matplotlib(command)
    for option, path in (("--plot", plot), ("--out", out)):
        if path is not None:
            _check_writable(command, option, path, file)


def _check_writable(command: str, option: str, path: Path, file: Path) -> None:
    """Try it without a trace: a file that was not there is not there afterwards."""
    try:
        if path.exists() and file.exists() and path.samefile(file):
            raise fail(command, f"{option} is {path}, the file that is read; choose another {option}")
        if path.exists():
            path.open("ab").close()
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-"):  # as when it is written
            pass
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise fail(command, f"cannot write to {_short(path)}: {reason}; choose another {option}") from None


def _short(path: Path) -> str:
    text = str(path)
    return text if len(text) <= 200 else f"{text[:80]}...{text[-40:]}"
