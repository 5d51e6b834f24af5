"""``infoknife audit``: what features in a file tell about a private attribute, and what an attacker can do with it."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infoknife.cli import options
from infoknife.cli.terminal import bar, check_writable, print_json, require_matplotlib

if TYPE_CHECKING:
    from infoknife.files import File, RawColumn
    from infoknife.leakage import Audit

ARRAY = "z"  # the features of an NPZ file, if it has an array of that name
TO_INCLUDE = "To include a column that looks like an identifier, name it in --features."


def audit(
    file: options.File,
    private: Annotated[
        str, typer.Option("--private", metavar="COLUMN", help="The private attribute: classes, or a quantity.")
    ],
    label: Annotated[
        str | None, options.column("--label", help="What the features are meant to tell: classes or a quantity.")
    ] = None,
    features: Annotated[
        str | None,
        options.column("--features", help="The features.", show_default="z, or all other columns but identifiers"),
    ] = None,
    discrete: options.Discrete = None,
    continuous: options.Continuous = None,
    sep: options.Sep = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    missing: options.MissingOption = "error",
    folds: Annotated[int, options.measuring("--folds", help="Outer folds.", min=3, metavar="N")] = 5,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    out: Annotated[
        Path | None,
        options.file_option(
            "--out", metavar="FILE.html", help="The page.", show_default="FILE-audit.html, if that is new"
        ),
    ] = None,
) -> None:
    """Audit how much features reveal about a private attribute, and what an attacker can do with it.

    Use rows that the encoder was not trained on: the probes must never see what it was trained on. Four kinds of
    probes attack by nested cross-validation; the information is measured on held-out rows.

    Columns that name or count rows, constant columns and free text are left out, and listed. Text with few different
    values is taken as classes.

    The page goes to --out, or to the current folder unless that would replace a file; with --json only to --out.

    Example: `infoknife audit features.npz --private sex --label occupation --out audit.html`
    """
    page = out if out is not None or as_json else _usual_page(file)
    if page is not None:
        require_matplotlib()
        check_writable("--out", page, file)
    from infoknife import leakage
    from infoknife.cli.measuring import open_table

    table = open_table(file, options.MeasuringOptions(sep=sep, decimal=decimal, encoding=encoding))
    arguments, identifiers = _arguments(table, private, label, features, discrete, continuous)
    with bar() as watch:
        found = leakage.audit(**arguments, missing=missing, folds=folds, seed=seed, progress=watch)
    hint = (TO_INCLUDE,) if identifiers else ()
    found = replace(found, left_out=identifiers | dict(found.left_out), notes=(*found.notes, *hint))
    if as_json:
        print_json({"file": str(file), "folds": folds, "seed": seed} | found.to_dict())
    else:
        _show(found, file)
    if page is not None:
        from infoknife.atomic import write_text

        write_text(page, found.to_html())
        if not as_json:
            typer.echo(f"Page: {page}")


def _usual_page(file: Path) -> Path:
    usual = Path(f"{file.name.partition('.')[0]}-audit.html")
    if usual.exists():
        raise ValueError(f"{usual} exists already; to replace it say --out {usual}, or choose another --out")
    return usual


def _arguments(
    file: "File",
    private: str,
    label: str | None,
    features: str | None,
    discrete: Iterable[str] | None,
    continuous: Iterable[str] | None,
) -> tuple[dict[str, Any], dict[str, str]]:
    """The arguments of ``infoknife.audit``, and which columns are identifiers and why.

    Without a word the features are the array z, or all columns that are left and do not look like identifiers.
    """
    from infoknife.cli.measuring import columns_of, declared_kinds, one_column, read
    from infoknife.leakage import find_identifier

    targets = [one_column(file, "--private", private)]
    if label is not None:
        targets.append(one_column(file, "--label", label))
        if targets[0] == targets[1]:
            raise ValueError(f"--label is {label}, the private attribute; choose another column")
    text = ARRAY if features is None and ARRAY in file.groups else features
    names = file.names if text is None else columns_of(file, "--features", text)
    if text is not None and (both := [name for name in names if name in targets]):
        raise ValueError(f"--features has {both[0]}, which is what they are audited for; leave it out")
    kinds = declared_kinds(file, discrete, continuous)
    if others := [name for name, is_discrete in kinds.items() if not is_discrete and name != targets[0]]:
        raise ValueError(
            f"--continuous names {others[0]}; expected the private attribute alone: other numbers are numbers"
        )
    found = read(file, [*targets, *names])
    identifiers = {}
    for name in (name for name in names if text is None and name not in targets):
        if how := find_identifier(name, found[name].data[~found[name].missing]):
            identifiers[name] = f"looks like an identifier: {how}"
    taken = [name for name in names if name not in (*targets, *identifiers)]
    if not taken:
        more = [f"; {name} {how}. Name it in --features to audit it" for name, how in identifiers.items()][:1]
        raise ValueError(f"{file.path} has no features besides the private attribute; expected some{''.join(more)}")
    columns = {name: _as_labels(found[name]) if kinds.get(name) else found[name] for name in (*taken, *targets[1:])}
    given = {"z": {name: columns[name] for name in taken}, "s": found[targets[0]], "discrete": kinds.get(targets[0])}
    return given | ({} if label is None else {"y": columns[targets[1]]}), identifiers


def _as_labels(column: "RawColumn") -> "RawColumn":
    """Numbers that are declared classes, as text."""
    import numpy as np

    texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in column.data.tolist()]
    return replace(column, data=np.array(texts, dtype=object))


def _show(found: "Audit", file: Path) -> None:
    from rich.console import Console
    from rich.text import Text

    from infoknife.leakage.page import reached
    from infoknife.pictures.tables import terminal

    console = Console()
    console.print(terminal(reached(found, found.allowed.upper)))
    sentences = [f"{file.name}: {found.rows:,} rows", *found.about_features]
    if found.label is not None:
        console.print(terminal(reached(found.label)))
        shared = f"The labels alone tell {found.label.shared:.3f} nats about {found.name}."
        sentences.append(f"{found.label.name}: the best probe is {found.label.strongest.name}. {shared}")
    for sentence in (*sentences, found.verdict, *(f"Note: {text}" for text in found.notes)):
        console.print(Text(sentence))
