"""The options that the measuring commands share, and the checks that come before any work."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from infoknife.cli.terminal import check_writable, require_matplotlib

PICTURES = (".png", ".svg", ".pdf")
PICTURES_OR = f"{', '.join(PICTURES[:-1])} or {PICTURES[-1]}"

Unit = Literal["nats", "bits"]
Effort = Literal["quick", "standard", "thorough"]
Missing = Literal["error", "drop", "category"]

# the parts of the help
column = partial(typer.Option, rich_help_panel="Columns, by name: a,b", metavar="COLUMNS", show_default=False)
mark = partial(typer.Option, rich_help_panel="CSV and TSV", metavar="MARK", show_default="found")
measuring = partial(typer.Option, rich_help_panel="Measuring")
number = partial(measuring, metavar="N", show_default=False)
output = partial(typer.Option, rich_help_panel="Output")
file_option = partial(output, metavar="FILE", show_default=False)

EFFORT = "How long to look for the best density."
FORMATS = "CSV or TSV (also .gz), Parquet, a folder of it, NPZ or NPY; one row per sample."
APART = (
    "Keep rows with the same value together, such as those of one patient: no row is measured by what another taught."
)
REFUSE = "Missing values: refuse them, leave out their rows, or make them a label."

File = Annotated[Path, typer.Argument(metavar="FILE", help=FORMATS, show_default=False)]
Discrete = Annotated[list[str] | None, column("--discrete", help="Columns whose values are labels.")]
Continuous = Annotated[list[str] | None, column("--continuous", help="Columns whose values are quantities.")]
Sep = Annotated[str | None, mark("--sep", help="What separates cells, such as ';' or tab.")]
Decimal = Annotated[str | None, mark("--decimal", help="What 1,234 means: . or ,")]
Encoding = Annotated[str | None, mark("--encoding", metavar="NAME", help="Such as cp1252.")]
MissingOption = Annotated[Missing, measuring("--missing", help=REFUSE)]
Seed = Annotated[int, measuring("--seed", help="Seed of everything random.", min=0, max=2**32 - 1, metavar="N")]
AsJson = Annotated[bool, output("--json", help="One JSON object on stdout, and nothing else.")]

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
    """The options that ``entropy`` and ``mi`` share."""

    given: Annotated[str | None, column("--given", help="What is known already; the answer is conditional on it.")] = (
        None
    )
    groups: Annotated[str | None, column("--groups", metavar="COLUMN", help=APART)] = None
    discrete: Discrete = None
    continuous: Continuous = None
    sep: Sep = None
    decimal: Decimal = None
    encoding: Encoding = None
    unit: Annotated[Unit, measuring("--unit", help="The unit of the answer.")] = "nats"
    method: Annotated[
        str, measuring("--method", metavar="NAME", help="One kind of density by its name, not the best of several.")
    ] = "auto"
    missing: MissingOption = "error"
    blocks: Annotated[
        int | None, number("--blocks", min=1, help="Keep this many neighbouring rows together, for time series.")
    ] = None
    rows: Annotated[
        int | None,
        number("--rows", min=10, help="Measure this many rows, drawn at random; for a folder, 200,000 by default."),
    ] = None
    stderr: Annotated[
        float | None,
        number(
            "--stderr",
            min=1e-9,
            metavar="X",
            help="The standard error you want: no more rows are measured than it takes.",
        ),
    ] = None
    seed: Seed = 0
    as_json: AsJson = False
    pointwise: Annotated[bool, output("--pointwise", help="With --json: the value of every row as well.")] = False
    plot: Annotated[Path | None, file_option("--plot", help=f"Draw a picture; the name ends with {PICTURES_OR}.")] = (
        None
    )

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
