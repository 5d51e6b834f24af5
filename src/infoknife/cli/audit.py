"""``infoknife audit``: what features in a file tell about a private attribute, and what an attacker can do with it."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infoknife.cli import options
from infoknife.cli.messages import fail

if TYPE_CHECKING:
    from infoknife.files import File
    from infoknife.files.base import Values
    from infoknife.leakage import Audit

__all__ = ["audit"]

ARRAY = "z"  # the features of an NPZ file, if it has an array of that name


def audit(
    file: options.File,
    private: Annotated[str, typer.Option("--private", metavar="COLUMN", help="The private attribute: classes.")],
    label: Annotated[
        str | None, options.column_option("--label", "What the features are meant to tell: classes as well.")
    ] = None,
    features: Annotated[
        str | None, options.column_option("--features", "The features.", "z, or all other numbers")
    ] = None,
    sep: options.Sep = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
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

    Give rows that the encoder was not trained on: the probes must never see what it was trained on. Four kinds of
    classifiers attack by nested cross-validation; the information is measured on held-out rows.

    The page goes to --out, or to the current folder unless that would replace a file; with --json only to --out.

    Example: `infoknife audit features.npz --private sex --label occupation --out audit.html`
    """
    page = _page(file, out, as_json)
    if page is not None:
        options.check_outputs("audit", file, plot=None, out=page)

    from infoknife import leakage
    from infoknife.cli.columns import opened
    from infoknife.cli.measured import bar, print_json, reported
    from infoknife.files import printable

    with reported("audit"):
        table = opened("audit", file, sep=sep, decimal=decimal, encoding=encoding)
        arguments, words = _arguments(table, private, label, features)
        names = (printable(private), printable(label or "y"))
        try:
            with bar() as watch:
                found = leakage.audit(**arguments, folds=folds, seed=seed, names=names, progress=watch)
        except ImportError as error:
            raise fail("audit", str(error)) from None
        except (ValueError, TypeError) as error:
            raise ValueError(_named(str(error), words)) from None
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
        raise fail("audit", f"{usual} is there already; to replace it say --out {usual}, or choose another --out")
    return usual


def _arguments(
    file: "File", private: str, label: str | None, features: str | None
) -> tuple[dict[str, Any], dict[str, str]]:
    """The arguments of ``infoknife.audit``, and what the command line calls them."""
    import numpy as np

    from infoknife.cli.columns import check_rows, known
    from infoknife.cli.messages import note

    single = {"s": _single(file, "--private", private)}
    if label is not None:
        single["y"] = _single(file, "--label", label)
    found = file.read(list(dict.fromkeys([*single.values(), *(names := _features(file, features, single))])))
    check_rows({name: one.values for name, one in found.items()})
    for one in found.values():
        if one.note:
            note("audit", one.note)
    classes = {key: _classes(known(file, found[name])) for key, name in single.items()}
    numbers = {name: known(file, found[name]) for name in names if found[name].values.dtype.kind in "fiub"}
    left = [name for name in names if name not in numbers]
    if features is not None and left:
        raise ValueError(f"--features: {left[0]} has no numbers; expected numbers. Encode it, or leave it out")
    if not numbers:
        raise ValueError(f"{file.path} has no numbers beside the classes; expected features. Name them by --features")
    words = {"z": "--features", "s": f"--private {private}", "y": f"--label {label}"}
    return classes | {"z": np.stack([*numbers.values()], 1)}, words


def _classes(values: "Values") -> "Values":
    """The names of classes, safe to show."""
    import numpy as np

    from infoknife.files import printable

    return np.array([printable(one) for one in values], dtype=object) if values.dtype.kind == "O" else values


def _single(file: "File", option: str, text: str) -> str:
    from infoknife.cli.columns import chosen

    found = chosen(file, option, text)
    if len(found) != 1:
        raise ValueError(f"{option} names {len(found)} columns; expected one")
    return found[0]


def _features(file: "File", text: str | None, single: Mapping[str, str]) -> list[str]:
    """The names of the features; without a word the array z, or all columns that are left."""
    from infoknife.cli.columns import chosen

    if text is None and ARRAY in file.groups:
        text = ARRAY
    names = file.names if text is None else chosen(file, "--features", text)
    if text is not None and (both := [name for name in names if name in single.values()]):
        raise ValueError(f"--features has {both[0]}, which is what they are audited for; leave it out")
    return [name for name in names if name not in single.values()]


def _named(text: str, words: Mapping[str, str]) -> str:
    """The same text in the words of the command line."""
    return re.sub(r"^(z|s|y)(?= |\[)", lambda found: words[found[1]], text)


def _show(found: "Audit", file: Path) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from infoknife.files import printable

    table = Table(
        box=SIMPLE_HEAD, title=Text(f"{found.name} from the features of {printable(file.name)}"), title_justify="left"
    )
    table.add_column("probe")
    for name in ("accuracy", "balanced", "±", "nats at least"):
        table.add_column(name, justify="right")
    for one in found.probes:
        numbers = f"{one.accuracy:.3f}", f"{one.balanced_accuracy:.3f}", f"{one.stderr:.3f}"
        table.add_row(one.name, *numbers, f"{max(one.information, 0.0):.3f}")
    table.add_row("without features", f"{found.majority:.3f}", f"{found.chance:.3f}", "", "0.000")
    table.add_row("Fano's ceiling", f"{found.allowed.upper:.3f}", "", "", "")
    console = Console()
    console.print(table)
    if found.label is not None:
        best = found.label.strongest
        told = f"{found.label.name}: {best.name} reaches {best.balanced_accuracy:.3f} (balanced; chance "
        told += f"{found.label.chance:.3f}). Labels alone tell {found.label.shared:.3f} nats about {found.name}."
        console.print(Text(told))
    console.print(Text(found.verdict))
    for note in found.notes:
        console.print(Text(f"Note: {note}"))


def _write(page: Path, text: str, *, quiet: bool) -> None:
    from infoknife.atomic import written_whole

    with written_whole(page) as file:
        file.write(text.encode())
    if not quiet:
        typer.echo(f"Page: {page}")
