"""``infoknife audit``: what features in a file tell about a private attribute, and what an attacker can do with it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from infoknife.cli import options
from infoknife.cli.messages import fail
from infoknife.files import printable

if TYPE_CHECKING:
    from rich.table import Table

    from infoknife.files import Column, File
    from infoknife.leakage import Audit

__all__ = ["audit"]

ARRAY = "z"  # the features of an NPZ file, if it has an array of that name


class Choice(NamedTuple):
    """Which columns are what: the private attribute, the label, the features, and whether these were named."""

    private: str
    label: str | None
    features: list[str]
    are_named: bool


def audit(
    file: options.File,
    private: Annotated[
        str, typer.Option("--private", metavar="COLUMN", help="The private attribute: classes, or a quantity.")
    ],
    label: Annotated[
        str | None, options.column_option("--label", "What the features are meant to tell: classes or a quantity.")
    ] = None,
    features: Annotated[
        str | None, options.column_option("--features", "The features.", "z, or all other columns but identifiers")
    ] = None,
    discrete: options.Discrete = None,
    continuous: options.Continuous = None,
    sep: options.Sep = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    missing: Annotated[
        options.Missing,
        options.measuring_option("--missing", "Cells without a value: refuse, drop rows, or a class of their own."),
    ] = options.Missing.ERROR,
    folds: Annotated[int, options.measuring_option("--folds", "Outer folds.", min=3, metavar="N")] = 5,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    out: Annotated[
        Path | None,
        options.output_option(
            "--out", "The page.", metavar="FILE.html", show_default="FILE-audit.html, if that is new"
        ),
    ] = None,
) -> None:
    """Audit how much features tell about a private attribute, and what an attacker can do with it.

    Use rows that the encoder was not trained on: the probes must never see what it was trained on. Four kinds of
    probes attack by nested cross-validation; the information is measured on held-out rows.

    Columns that name or count rows, constant columns and free text are left out, and listed. Text with few different
    values is taken as classes.

    The page goes to --out, or to the current folder unless that would replace a file; with --json only to --out.

    Example: `infoknife audit features.npz --private sex --label occupation --out audit.html`
    """
    page = _page(file, out, as_json)
    if page is not None:
        options.check_outputs("audit", file, plot=None, out=page)

    from infoknife import leakage
    from infoknife.cli.columns import opened
    from infoknife.cli.measured import bar, print_json, reported

    with reported("audit"):
        table = opened("audit", file, sep=sep, decimal=decimal, encoding=encoding)
        choice = _choice(table, private, label, features)
        kinds = _kinds(table, choice, discrete or (), continuous or ())
        arguments, identifiers = _arguments(table, choice, kinds)
        how: dict[str, Any] = {
            "discrete": kinds.get(choice.private),
            "missing": missing.value,
            "folds": folds,
            "seed": seed,
        }
        try:
            with bar() as watch:
                found = leakage.audit(**arguments, **how, progress=watch)
        except ImportError as error:
            raise fail("audit", str(error)) from None
        except (ValueError, TypeError) as error:
            raise ValueError(_in_words_of_the_command(str(error), table)) from None
        hint = ("To include a column that looks like an identifier, name it in --features.",) if identifiers else ()
        found = replace(found, left_out=identifiers | dict(found.left_out), notes=(*found.notes, *hint))
        if as_json:
            print_json({"file": str(file), "folds": folds, "seed": seed} | found.to_dict())
        else:
            _show(found, file)
        if page is not None:
            _write(page, found.to_html(), quiet=as_json)


def _page(file: Path, out: Path | None, as_json: bool) -> Path | None:
    """Where the page goes, if anywhere."""
    if out is not None or as_json:
        return out
    usual = Path(f"{file.name.partition('.')[0]}-audit.html")
    if usual.exists():
        raise fail("audit", f"{usual} exists already; to replace it say --out {usual}, or choose another --out")
    return usual


def _choice(file: "File", private: str, label: str | None, features: str | None) -> Choice:
    """Which columns are what; without a word the features are the array z, or all columns that are left."""
    from infoknife.cli.columns import chosen, single

    targets = [single(file, "--private", private)]
    if label is not None:
        targets.append(single(file, "--label", label))
        if targets[0] == targets[1]:
            raise ValueError(f"--label is {label}, the private attribute; choose another column")
    text = ARRAY if features is None and ARRAY in file.groups else features
    names = file.names if text is None else chosen(file, "--features", text)
    if text is not None and (both := [name for name in names if name in targets]):
        raise ValueError(f"--features has {both[0]}, which is what they are audited for; leave it out")
    rest = [name for name in names if name not in targets]
    return Choice(targets[0], targets[1] if label is not None else None, rest, text is not None)


def _kinds(file: "File", choice: Choice, discrete: Iterable[str], continuous: Iterable[str]) -> dict[str, bool]:
    """Whether columns are discrete, of those that the options name."""
    from infoknife.cli.columns import chosen, declared

    numbers = [name for text in continuous for name in chosen(file, "--continuous", text)]
    if others := [name for name in numbers if name != choice.private]:
        raise ValueError(
            f"--continuous names {others[0]}; expected the private attribute alone: other numbers are numbers"
        )
    shown = declared(file, discrete, continuous)
    return {name: shown[printable(name)] for name in file.names if printable(name) in shown}


def _arguments(file: "File", choice: Choice, kinds: Mapping[str, bool]) -> tuple[dict[str, Any], dict[str, str]]:
    """The arguments of ``infoknife.audit``, and which columns are identifiers and why."""
    from infoknife.cli.messages import note
    from infoknife.leakage import find_identifier

    targets = [name for name in (choice.private, choice.label) if name is not None]
    found = file.read(list(dict.fromkeys([*targets, *choice.features])))
    rows = {name: len(column.values) for name, column in found.items()}
    for name, count in rows.items():
        if count != rows[choice.private]:
            raise ValueError(f"{name} has {count} rows; expected {rows[choice.private]}, as {choice.private} has")
    for column in found.values():
        if column.note:
            note("audit", column.note)
    identifiers = {}
    if not choice.are_named:
        why = {name: find_identifier(name, found[name].values[~found[name].missing]) for name in choice.features}
        identifiers = {printable(name): f"looks like an identifier: {text}" for name, text in why.items() if text}
    taken = [name for name in choice.features if printable(name) not in identifiers]
    if not taken:
        more = [f"{name} {text}. Name it in --features to audit it" for name, text in identifiers.items()]
        raise ValueError(
            "; ".join([f"{file.path} has no features beside the private attribute; expected some", *more[:1]])
        )
    arguments: dict[str, Any] = {"z": {name: _values(found[name], kinds.get(name)) for name in taken}}
    for argument, name in zip(("s", "y"), targets, strict=False):
        arguments[argument] = {name: _values(found[name], argument == "y" and kinds.get(name))}
    return arguments, identifiers


def _values(column: "Column", is_discrete: bool | None) -> Any:
    """The values of a column, masked where they are missing; numbers that are declared classes become text."""
    import numpy as np

    values = column.values
    if is_discrete and values.dtype.kind in "fiu":
        values = np.array([f"{value:g}" if values.dtype.kind == "f" else str(value) for value in values], dtype=object)
    return np.ma.masked_array(values, column.missing)


def _in_words_of_the_command(text: str, file: "File") -> str:
    """The same message with options, and with places in the file."""
    text = re.sub(r"the first in row (\d+)", lambda found: f"the first in {file.where(int(found[1]))}", text)
    text = re.sub(r"(?:Pass )?missing='(\w+)'", r"--missing \1", text).replace(
        "expected none. --", "expected none. Say --"
    )
    return text.replace("use fewer folds", "use fewer --folds")


def _show(found: "Audit", file: Path) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console()
    console.print(_quantity_table(found) if found.is_quantity else _classes_table(found))
    sentences = [f"{file.name}: {found.rows:,} rows", *found.about_features]
    if found.label is not None:
        best, label = found.label.strongest, found.label
        reached = f"reaches {best.score:.3f} (balanced accuracy; chance {label.chance:.3f})"
        if label.is_quantity:
            reached = f"explains {max(best.score, 0):.1%} of the variance"
        shared = f"The labels alone tell {label.shared:.3f} nats about {found.name}."
        sentences.append(f"{label.name}: {best.name} {reached}. {shared}")
    for sentence in (*sentences, found.verdict, *(f"Note: {note}" for note in found.notes)):
        console.print(Text(printable(sentence)))


def _table(found: "Audit", *names: str) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, title=Text(f"{printable(found.name)} from the features"), title_justify="left")
    table.add_column("probe")
    for name in names:
        table.add_column(name, justify="right")
    return table


def _classes_table(found: "Audit") -> "Table":
    table = _table(found, "accuracy", "balanced", "±", "nats at least")
    for one in found.probes:
        numbers = f"{one.accuracy:.3f}", f"{one.balanced_accuracy:.3f}", f"{one.stderr:.3f}"
        table.add_row(one.name, *numbers, f"{max(one.information, 0.0):.3f}")
    table.add_row("without features", f"{found.majority:.3f}", f"{found.chance:.3f}", "", "0.000")
    table.add_row("Fano, if no more leaks", f"{found.allowed.upper:.3f}", "", "", "")
    return table


def _quantity_table(found: "Audit") -> "Table":
    from infoknife.leakage.page import number

    table = _table(found, "variance explained", "±", "typical error")
    for one in found.probes:
        table.add_row(one.name, f"{max(one.r2, 0.0):.1%}", f"{one.stderr:.1%}", number(one.error))
    table.add_row("without features", "0.0%", "", number(found.strongest.spread))
    return table


def _write(page: Path, text: str, *, quiet: bool) -> None:
    from infoknife.atomic import written_whole

    with written_whole(page) as file:
        file.write(text.encode())
    if not quiet:
        typer.echo(f"Page: {page}")
