"""The audit as one page: what it shows and says; ``pictures`` has the shell and draws the bars."""

import math

from infoknife.files import printable
from infoknife.leakage.probes import KINDS
from infoknife.leakage.result import Audit, Predictability
from infoknife.pictures import Bar, Bars, Block, Items, Section, Table, page

HELD_OUT = (
    "They must be rows that the encoder was not trained on: then the probes never see what it was trained on, and the "
    "audit speaks for rows to come."
)
ABOUT_QUANTITIES = (
    "A typical error is the root of the mean squared error, in the unit of the quantity. Without features it is the "
    "standard deviation, and nothing is explained.",
    "Information counts every kind of relation, also those that the probes do not find. A stronger attacker than these "
    "four may reach more.",
)
ABOUT_CLASSES = (
    "The nats of a probe are H minus its held-out cross-entropy: what this kind of attacker can use (V-information), a "
    "lower bound of the information, in expectation. A stronger attacker than these four may reach more.",
    "The code length is that of a code of the classes in nats per row which learns from the rows before: below the "
    "entropy where features help. An attacker who needs few rows has a short one.",
    "Fano's inequality speaks of the information that was found, not of what neither the densities nor the probes can "
    "see. It is no certificate.",
)


def html(audit: Audit) -> str:
    """Return the whole page."""
    name = printable(audit.name)
    what, how = ("regressors predict", "predicted") if audit.is_quantity else ("classifiers guess", "guessed")
    kinds = ", ".join(one.describe(is_quantity=audit.is_quantity) for one in KINDS)
    method = (
        f"Four kinds of {what} {name} from the features: {kinds}. Inner folds choose their settings, and every row is "
        f"{how} by probes that have not seen it."
    )
    sections = [
        Section("information", "Information", "", "", (_information(audit),)),
        Section("attacks", "Attacks", "", method, _attacks(audit, audit.allowed.upper)),
    ]
    if not audit.is_quantity:
        sections.append(_classes(audit))
    if audit.label is not None:
        sections.append(_label(audit))
    sections.append(Section("features", "Features", "", "", (Items(tuple(map(printable, audit.about_features))),)))
    sections.append(Section("notes", "How to read this", "", "", (Items(tuple(map(printable, _notes(audit)))),)))
    return page(f"What do the features tell about {name}?", printable(audit.verdict), sections)


def _information(audit: Audit) -> Table:
    value, (low, high) = audit.information.value, audit.interval()
    rows = [(f"I(features; {printable(audit.name)})", "not measured" if math.isnan(value) else f"{value:.3f}")]
    if math.isfinite(low):
        rows.append(("95 % interval", f"{low:.3f} to {high:.3f}"))
    if not audit.is_quantity:
        rows += [
            (f"H({printable(audit.name)}), all there is to know", f"{audit.entropy:.3f}"),
            ("highest accuracy of any attacker, if no more than this leaks (Fano)", percent(audit.allowed.value)),
            ("the same at the upper end of the interval", percent(audit.allowed.upper)),
        ]
    return Table("In nats, unless stated otherwise", ("quantity", "nats"), tuple(rows))


def reached(found: Predictability, limit: float = math.nan) -> Table:
    """What the probes reach, what a guess without features does, and the limit of accuracy if there is one."""
    caption, without = f"Probes of {printable(found.name)}", "without features"
    rows: list[tuple[str, ...]] = []
    if found.is_quantity:
        rows += [(one.name, percent(max(one.r2, 0.0)), percent(one.stderr), number(one.error)) for one in found.probes]
        rows.append((without, percent(0.0), "", number(found.strongest.spread)))
        return Table(caption, ("probe", "explained", "±", "typical error"), tuple(rows))
    for one in found.probes:
        shares = map(percent, (one.accuracy, one.balanced_accuracy, one.stderr))
        rows.append((one.name, *shares, f"{max(one.information, 0.0):.3f}", f"{one.description_length:.3f}"))
    rows.append((without, percent(found.majority), percent(found.chance), "", "0.000", f"{found.entropy:.3f}"))
    rows += [] if math.isnan(limit) else [("Fano, if no more leaks", percent(limit), "", "", "", "")]
    return Table(caption, ("probe", "accuracy", "balanced", "±", "nats", "code length"), tuple(rows))


def _attacks(found: Predictability, limit: float = math.nan) -> tuple[Block, ...]:
    """What the probes reach, as bars and as a table."""
    name, id = printable(found.name), "private" if isinstance(found, Audit) else "label"
    scores = tuple(Bar(one.name, max(one.score, 0.0), one.stderr) for one in found.probes)
    if found.is_quantity:
        title = f"The part of the variance of {name} that a probe explains"
        return Bars(f"{id}-variance", title, scores), reached(found)
    accuracy = tuple(Bar(one.name, one.accuracy) for one in found.probes)
    marks = [("largest class", found.majority)]
    marks += [] if math.isnan(limit) else [("Fano, if no more leaks", limit)]
    title = f"Balanced accuracy for {name}: the mean over classes"
    return (
        Bars(f"{id}-balanced", title, scores, (("chance", found.chance),)),
        Bars(f"{id}-accuracy", f"Accuracy for {name}, over all rows", accuracy, tuple(marks)),
        reached(found, limit),
    )


def _classes(audit: Audit) -> Section:
    rows = [(printable(one.name), f"{one.rows:,}", f"{one.leakage:.3f}", percent(one.recall)) for one in audit.classes]
    text = (
        "How far the features of each class are from those of all rows, in nats, and how many of its rows the "
        f"strongest probe ({audit.strongest.name}) names correctly."
    )
    table = Table("Who is recognised", ("class", "rows", "leakage", "named correctly"), tuple(rows))
    return Section("classes", "Classes", "", text, (table,))


def _label(audit: Audit) -> Section:
    label = audit.label
    assert label is not None
    name, private = printable(label.name), printable(audit.name)
    what = f"The same kinds of probes predict the label {name}"
    what += "." if label.is_quantity else f", which has {label.entropy:.3f} nats."
    shared = (
        f" The labels themselves hold {label.shared:.3f} nats about {private}: features that tell everything about "
        f"{name} cannot leak less than that."
    )
    return Section("label", "What the features are good for", "", what + shared, _attacks(label))


def _notes(audit: Audit) -> tuple[str, ...]:
    held_out = f"{audit.rows:,} rows. {HELD_OUT}"
    if audit.is_quantity:
        return held_out, *ABOUT_QUANTITIES, *audit.notes
    balanced = (
        "Balanced accuracy gives all classes the same weight, however many rows they have. A guess without features "
        f"reaches {percent(audit.chance)}; always naming the largest class is right for {percent(audit.majority)} of "
        "the rows."
    )
    return held_out, balanced, *ABOUT_CLASSES, *audit.notes


def number(value: float) -> str:
    """Write a positive number with three digits that count.

    Examples:
        >>> number(9.637), number(12345.6), number(0.0)
        ('9.64', '12,346', '0')
    """
    return f"{value:,.{max(0, 2 - math.floor(math.log10(value)))}f}" if value > 0 else "0"


def percent(part: float) -> str:
    """Write a part of the whole as a percentage.

    Examples:
        >>> percent(0.8)
        '80.0 %'
    """
    return f"{100 * part:.1f} %"
