"""The audit as one HTML page: no scripts, nothing from elsewhere, light and dark."""

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from infoknife.files import printable
from infoknife.leakage.probes import KINDS, Probe
from infoknife.leakage.result import Audit, Grade, Label, Predictability

LEFT, RIGHT, ROW, HEAD, FOOT = 76, 56, 30, 4, 20  # the picture is 400 wide
WIDTH = 400 - LEFT - RIGHT
STYLE = """
:root { color-scheme: light dark; --ink: #1f2933; --soft: #5b6875; --page: #f7f8fa; --card: #fff; --line: #dfe3e8;
  --bar: #86b6e0; --mark: #1f2933; --limit: #c02f12; --found: #b3452e; --calm: #2f6fa8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --soft: #9aa5b1; --page: #14181d; --card: #1e242b; --line: #323a44; --bar: #2f6fa8;
    --mark: #f0f2f5; --limit: #ff9a7a; --found: #f08a6c; --calm: #6db3f2; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.6 system-ui, sans-serif; }
main { max-width: 54rem; margin: 0 auto; padding: 2rem 1rem 3rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .75rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .5rem; }
p, li { max-width: 46rem; }
p { margin: .5rem 0 1rem; }
.verdict { border-left: .3rem solid var(--found); background: var(--card); padding: .9rem 1.1rem; max-width: none; }
.none { border-color: var(--calm); }
.soft, figcaption { color: var(--soft); font-size: .9rem; }
.pair { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)); }
figure, .scroll { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: .6rem; }
figure { padding: .8rem 1rem; }
.scroll { overflow-x: auto; }
svg { display: block; width: 100%; max-width: 26rem; height: auto; }
svg text { fill: var(--ink); font: 13px system-ui, sans-serif; }
svg .soft { fill: var(--soft); }
svg .bar { fill: var(--bar); }
svg .rail { fill: var(--line); }
svg .ends { stroke: var(--ink); }
svg .mark { stroke: var(--mark); stroke-width: 2; stroke-dasharray: 4 3; }
svg .limit { stroke: var(--limit); stroke-width: 2; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .45rem .9rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; overflow-wrap: break-word; }
tr:last-child td { border-bottom: 0; }
th { color: var(--soft); font-weight: 600; font-size: .9rem; }
@media (max-width: 40rem) {
  h1 { font-size: 1.4rem; }
  th, td { padding: .4rem .45rem; font-size: .85rem; }
}
"""
HELD_OUT = (
    "They must be rows that the encoder was not trained on: then the probes never see what it was trained on, and the "
    "audit speaks for rows to come."
)


def html(audit: Audit) -> str:
    """Return the whole page."""
    name = safe(audit.name)
    kind = "verdict none" if audit.grade is Grade.NONE else "verdict"
    what, how = ("regressors predict", "predicted") if audit.is_quantity else ("classifiers guess", "guessed")
    kinds = ", ".join(one.describe(is_quantity=audit.is_quantity) for one in KINDS)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Leakage of {name}</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>What do the features tell about {name}?</h1>
<p class="{kind}">{safe(audit.verdict)}</p>
<h2>Information</h2>
{_information(audit)}
<h2>Attacks</h2>
<p>Four kinds of {what} {name} from the features: {safe(kinds)}. Inner folds choose their settings, and every row is
{how} by probes that have not seen it.</p>
{_variances(audit) if audit.is_quantity else _attacks(audit)}
{_classes(audit)}
{_label(audit.label, audit) if audit.label is not None else ""}
<h2>Features</h2>
{_list(audit.about_features)}
<h2>How to read this</h2>
{_notes(audit)}
</main>
</body>
</html>
"""


def _information(audit: Audit) -> str:
    value, (low, high) = audit.information.value, audit.interval()
    rows = [(f"I(features; {audit.name})", "not measured" if math.isnan(value) else f"{value:.3f}")]
    if math.isfinite(low):
        rows.append(("95 % interval", f"{low:.3f} to {high:.3f}"))
    if not audit.is_quantity:
        rows += [
            (f"H({audit.name}), all there is to know", f"{audit.entropy:.3f}"),
            ("highest accuracy of any attacker, if no more than this leaks (Fano)", percent(audit.allowed.value)),
            ("the same at the upper end of the interval", percent(audit.allowed.upper)),
        ]
    return _table(("nats" if audit.is_quantity else "nats, unless stated otherwise", ""), rows)


def _attacks(audit: Audit) -> str:
    accuracy = [(probe.name, probe.accuracy, 0.0) for probe in audit.probes]
    balanced = [(probe.name, probe.balanced_accuracy, probe.stderr) for probe in audit.probes]
    limit = Mark("limit", "Fano, if no more leaks", audit.allowed.upper)
    figures = (
        _figure(bars(accuracy, (Mark("mark", "largest class", audit.majority), limit)), "Accuracy over all rows."),
        _figure(bars(balanced, (Mark("mark", "chance", audit.chance),)), "Balanced accuracy: the mean over classes."),
    )
    return f'<div class="pair">{"".join(figures)}</div>\n<p></p>\n{_probes(audit.probes)}'


def _variances(result: Predictability) -> str:
    """What regressors explain of a quantity."""
    explained = [(probe.name, max(probe.r2, 0.0), probe.stderr) for probe in result.probes]
    picture = _figure(bars(explained, ()), f"The part of the variance of {safe(result.name)} that a probe explains.")
    rows = [(one.name, percent(max(one.r2, 0.0)), percent(one.stderr), number(one.error)) for one in result.probes]
    rows.append(("without features", percent(0.0), "", number(result.strongest.spread)))
    return f"{picture}\n<p></p>\n{_table(('probe', 'explained', '±', 'typical error'), rows)}"


def _figure(picture: str, caption: str) -> str:
    return f"<figure>{picture}<figcaption>{caption}</figcaption></figure>"


def _probes(probes: Sequence[Probe]) -> str:
    head = ("probe", "accuracy", "balanced", "±", "nats")
    rows = [
        (
            probe.name,
            percent(probe.accuracy),
            percent(probe.balanced_accuracy),
            percent(probe.stderr),
            f"{max(probe.information, 0.0):.3f}",
        )
        for probe in probes
    ]
    return _table(head, rows)


def _classes(audit: Audit) -> str:
    if audit.is_quantity:
        return ""
    rows = [(one.name, f"{one.rows:,}", f"{one.leakage:.3f}", percent(one.recall)) for one in audit.classes]
    return f"""<h2>Classes</h2>
<p>How far the features of each class are from those of all rows, in nats, and how many of its rows the strongest probe
({safe(audit.strongest.name)}) names correctly.</p>
{_table(("class", "rows", "leakage", "named correctly"), rows)}"""


def _label(label: Label, audit: Audit) -> str:
    name, private = safe(label.name), safe(audit.name)
    if label.is_quantity:
        what, picture = f"The same kinds of probes predict the label {name}.", _variances(label)
    else:
        balanced = [(probe.name, probe.balanced_accuracy, probe.stderr) for probe in label.probes]
        figure = _figure(bars(balanced, (Mark("mark", "chance", label.chance),)), f"Balanced accuracy for {name}.")
        what = f"The same kinds of probes guess the label {name}, which has {label.entropy:.3f} nats."
        picture = f"{figure}\n<p></p>\n{_probes(label.probes)}"
    return f"""<h2>What the features are good for</h2>
<p>{what} The labels themselves hold {label.shared:.3f} nats about {private}: features that tell everything about {name}
cannot leak less than that.</p>
{picture}"""


def _notes(audit: Audit) -> str:
    facts = [f"{audit.rows:,} rows. {HELD_OUT}"]
    if audit.is_quantity:
        facts += [
            "A typical error is the root of the mean squared error, in the unit of the quantity. Without features it "
            "is the standard deviation, and nothing is explained.",
            "Information counts every kind of relation, also those that the probes do not find. A stronger attacker "
            "than these four may reach more.",
        ]
    else:
        facts += [
            "Balanced accuracy gives all classes the same weight, however many rows they have. A guess without "
            f"features reaches {percent(audit.chance)}; always naming the largest class is right for "
            f"{percent(audit.majority)} of the rows.",
            "The nats of a probe are H minus its held-out cross-entropy: a lower bound of the information, in "
            "expectation. A stronger attacker than these four may reach more.",
            "Fano's inequality speaks of the information that was found, not of what neither the densities nor the "
            "probes can see. It is no certificate.",
        ]
    return _list([*facts, *audit.notes])


def _list(facts: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{safe(fact)}</li>" for fact in facts) + "</ul>"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    cells = "".join(f"<th>{safe(one)}</th>" for one in head)
    body = "\n".join("<tr>" + "".join(f"<td>{safe(one)}</td>" for one in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table>\n<thead><tr>{cells}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>'


class Mark(NamedTuple):
    """A line across the bars: how it is drawn (``"mark"`` or ``"limit"``), what it is, and where."""

    style: str
    words: str
    at: float


def safe(text: str) -> str:
    r"""Make text from data safe for HTML and SVG.

    Example:
        >>> safe("<b>\x1b")
        '&lt;b&gt;\\x1b'
    """
    return escape(printable(text))


def number(value: float) -> str:
    """Write a positive number with three digits that count.

    Example:
        >>> number(9.637), number(12345.6), number(0.0)
        ('9.64', '12,346', '0')
    """
    return f"{value:,.{max(0, 2 - math.floor(math.log10(value)))}f}" if value > 0 else "0"


def percent(part: float) -> str:
    """Write a part of the whole as a percentage.

    Example:
        >>> percent(0.8)
        '80.0 %'
    """
    return f"{100 * part:.1f} %"


def bars(values: Sequence[tuple[str, float, float]], marks: Sequence[Mark]) -> str:
    """Draw bars with their names, values and two standard errors; an error of 0 is not drawn.

    Example:
        >>> picture = bars([("linear", 0.8, 0.01)], [Mark("mark", "chance", 0.5)])
        >>> "80.0 %" in picture, "chance 50.0 %" in picture
        (True, True)
    """
    bottom = HEAD + ROW * len(values)
    parts = [_bar(HEAD + ROW * i, *one) for i, one in enumerate(values)]
    parts += [_mark(mark, bottom, bottom + FOOT * i) for i, mark in enumerate(marks)]
    words = [(name, value) for name, value, _ in values] + [(mark.words, mark.at) for mark in marks]
    told = safe("; ".join(f"{name} {percent(value)}" for name, value in words))
    return (
        f'<svg viewBox="0 0 400 {bottom + FOOT * len(marks) + 4}" role="img" aria-label="{told}">{"".join(parts)}</svg>'
    )


def _bar(top: int, name: str, value: float, stderr: float) -> str:
    middle, width = top + ROW / 2, WIDTH * _within(value)
    low, high = (WIDTH * _within(value + sign * 2 * stderr) for sign in (-1, 1))
    ends = f'<path class="ends" d="M{LEFT + low:.1f} {middle}h{high - low:.1f}"/>' if stderr else ""
    return (
        f'<text x="0" y="{middle + 4.5}">{safe(name)}</text>'
        f'<rect class="rail" x="{LEFT}" y="{top + 5}" width="{WIDTH}" height="{ROW - 10}" rx="3"/>'
        f'<rect class="bar" x="{LEFT}" y="{top + 5}" width="{width:.1f}" height="{ROW - 10}" rx="3"/>{ends}'
        f'<text x="400" y="{middle + 4.5}" text-anchor="end">{percent(value)}</text>'
    )


def _within(part: float) -> float:
    return min(max(part, 0.0), 1.0)


def _mark(mark: Mark, bottom: int, line: int) -> str:
    """The line across the bars, and below them what it means."""
    return (
        f'<path class="{mark.style}" d="M{LEFT + WIDTH * _within(mark.at):.1f} {HEAD}V{bottom}"/>'
        f'<path class="{mark.style}" d="M{LEFT} {line + 11}h18"/>'
        f'<text class="soft" x="{LEFT + 26}" y="{line + 15.5}">{safe(mark.words)} {percent(mark.at)}</text>'
    )
