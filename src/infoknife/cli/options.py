"""The options that the measuring commands share, and the checks that come before any work."""

import functools
import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from infoknife.cli.terminal import check_writable, require_matplotlib

PICTURES = (".png", ".svg", ".pdf")
PICTURES_OR = f"{', '.join(PICTURES[:-1])} or {PICTURES[-1]}"
EFFORT = "How long to look for the best density."


Unit = Literal["nats", "bits"]
Effort = Literal["quick", "standard", "thorough"]
Missing = Literal["error", "drop", "category"]

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


Command = Callable[..., None]


def with_options(kind: type, name: str) -> Callable[[Command], Command]:
    """Give a command the fields of a dataclass as options; it takes them as one argument of this name."""
    shared = inspect.signature(kind).parameters

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapped(**given: Any) -> None:
            command(**{name: kind(**{key: given.pop(key) for key in shared})}, **given)

        own = [each for key, each in inspect.signature(command).parameters.items() if key != name]
        every = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own, *shared.values())]
        wrapped.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
        hints = get_type_hints(command, include_extras=True) | {each.name: each.type for each in fields(kind)}
        wrapped.__annotations__ = {each.name: hints[each.name] for each in every}
        return wrapped

    return decorate


@dataclass(frozen=True, kw_only=True)
class MeasuringOptions:
    """What ``entropy`` and ``mi`` can be told alike."""

    given: Given = None
    groups: Groups = None
    discrete: Discrete = None
    continuous: Continuous = None
    sep: Sep = None
    decimal: Decimal = None
    encoding: Encoding = None
    unit: UnitOption = "nats"
    method: Method = "auto"
    missing: MissingOption = "error"
    blocks: Blocks = None
    rows: RowsOption = None
    stderr: Stderr = None
    seed: Seed = 0
    as_json: AsJson = False
    pointwise: Pointwise = False
    plot: Plot = None

    @property
    def text(self) -> dict[str, Any]:
        """How a text file is written."""
        return {"sep": self.sep, "decimal": self.decimal, "encoding": self.encoding}

    def settings(self, effort: Effort) -> dict[str, Any]:
        """Return the options of measuring functions that do not name columns."""
        how = {"method": self.method, "unit": self.unit, "effort": effort, "seed": self.seed}
        return how | {"missing": self.missing, "blocks": self.blocks}

    def check(self, file: Path, out: Path | None = None) -> None:
        """Stop before a file is read where there is no such density, or where what is wanted has no place."""
        if self.pointwise and not self.as_json:
            raise ValueError("--pointwise is for --json alone; add --json")
        if self.plot is not None:
            if self.plot.suffix.lower() not in PICTURES:
                raise ValueError(f"--plot is {self.plot}; expected a name that ends with {PICTURES_OR}")
            require_matplotlib()
        for option, path in (("--plot", self.plot), ("--out", out)):
            if path is not None:
                check_writable(option, path, file)
        from infoknife.inputs import one_of
        from infoknife.measure import methods

        one_of("--method", self.method, ("auto", *methods()))


@contextmanager
def no_warnings() -> Iterator[None]:
    """Leave out the warnings of measurements: all of them are messages of the estimate."""
    from infoknife.measure import MeasurementWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MeasurementWarning)
        yield
