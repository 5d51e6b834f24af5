"""Texts that hide a private attribute: Figure 4 again, its numbers as tables, and the trade-off."""

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

from infoknife.paper.experiments import published
from infoknife.paper.experiments.report import charts, words
from infoknife.paper.experiments.report.cells import seeds
from infoknife.paper.experiments.report.charts import Chart, Panel, Series
from infoknife.paper.experiments.report.costs import costing
from infoknife.paper.experiments.report.palette import colour_name
from infoknife.paper.experiments.report.tables import Table
from infoknife.paper.experiments.report.tradeoffs import (
    BASE,
    LOSS,
    Point,
    Strength,
    best,
    corpora,
    corpus,
    level,
    points,
    reached,
    strength,
    title,
)
from infoknife.paper.experiments.summary import Accuracy, Record, by, failed, in_order, method_of

__all__ = ["costs", "curves", "leaks", "plane", "tradeoffs"]

PUBLISHED, CHANCE = "published", "chance"  # entries of legends
SIDES: dict[str, Callable[[Point], Accuracy]] = {"main": lambda p: p.main, "private": lambda p: p.private}
LEVELS = {"main": "majority", "private": "private_chance"}  # what one who knows nothing reaches


# tables


def tradeoffs(records: Sequence[Record]) -> list[Table]:
    """Main and private accuracy by method and weight, the paper's under ours; a table a corpus."""
    found = points(records)
    return [_tradeoffs(name, [point for point in found if point.corpus == name]) for name in corpora(records)]


def leaks(records: Sequence[Record]) -> list[Table]:
    """I(Z; S) of the audit by method and weight, in nats; a table a corpus that has such."""
    good = [record for record in in_order(records) if not failed(record) and "leak" in record["results"]]
    return [_leaks(name, [record for record in good if corpus(record) == name]) for name in corpora(good)]


def costs(records: Sequence[Record]) -> Table:
    """Time of a step, also as a multiple of that without a regularizer, and failures."""
    return costing(records, BASE, corpus, "corpora")


def _tradeoffs(name: str, own: Sequence[Point]) -> Table:
    columns, chosen = sorted({point.strength for point in own}), best(reached(own))
    lines, stand_out = list[tuple[str, ...]](), list[tuple[int, int]]()
    for method in dict.fromkeys(point.method for point in own):
        row = {point.strength: point for point in own if point.method == method}
        stand_out += [(len(lines), 2 + columns.index(chosen[method].strength))] if method in chosen else []
        lines.append(
            (
                words.method(method),
                seeds(point.main for point in row.values()),
                *(_cell(row.get(at)) for at in columns),
            )
        )
        printed = [_published(name, method, at) for at in columns]
        lines += [(words.method(method), PUBLISHED, *printed)] if any(text != "–" for text in printed) else []
    caption = (
        f"{words.corpus(name)}: main / private accuracy, percent, mean ± deviation over seeds; for each method the "
        f"lowest private accuracy stands out where at most {LOSS:g} points of the main one are lost"
    )
    return Table(caption, ("method", "run", *map(title, columns)), tuple(lines), 2, tuple(stand_out), pinned=True)


def _cell(point: Point | None) -> str:
    if point is None:
        return "–"
    tally = point.main.tally
    if tally.failures == tally.runs:
        return "failed"
    lost = f" ({tally.failures} of {tally.runs} failed)" if tally.failures else ""
    return f"{words.accuracy(*point.main[:2])} / {words.accuracy(*point.private[:2])}{lost}"


def _published(name: str, method: str, at: Strength) -> str:
    cell = None if at.limited or (method == BASE) != (at.value == 0) else published.tradeoff(name, method, at.value)
    return "–" if cell is None else f"{words.accuracy(cell.main)} / {words.accuracy(cell.private)}"


def _leaks(name: str, own: Sequence[Record]) -> Table:
    columns = sorted({strength(record) for record in own})
    cells = by(own, lambda record: (method_of(record), strength(record)))
    rows = [
        (words.method(method), *(_leak(cells.get((method, at), ())) for at in columns))
        for method in dict.fromkeys(map(method_of, own))
    ]
    truths = {record["results"].get("truth") for record in own} - {None}
    known = f"; a text itself tells {words.number(truths.pop())}" if len(truths) == 1 else ""
    caption = f"{words.corpus(name)}: information of the features about the private attribute, nats{known}"
    return Table(caption, ("method", *map(title, columns)), tuple(rows))


def _leak(group: Sequence[Record]) -> str:
    return f"{fmean(record['results']['leak'] for record in group):.3f}" if group else "–"


# charts


def curves(records: Sequence[Record], name: str) -> Chart | None:
    """Figure 4: main and private accuracy by weight, a line a method; a row of two panels a corpus."""
    found, groups = points(records), by(records, corpus)
    panels = []
    for which in corpora(records):
        own = [point for point in found if point.corpus == which]
        if any(_drawn(point) and point.method != BASE for point in own):
            panels += [_curves(which, side, own, level(groups[which], LEVELS[side])) for side in SIDES]
    heading = (
        "Accuracy on the label (left) and of the strongest probe of the private attribute (right), mean over seeds"
    )
    return charts.chart(name, heading, "λ", "percent", panels, columns=2)


def plane(records: Sequence[Record], name: str) -> Chart | None:
    """Main against private accuracy, a mark a weight: the upper left corner is the ideal."""
    found, groups = points(records), by(records, corpus)
    panels = []
    for which in corpora(records):
        own = [point for point in found if point.corpus == which and None not in (point.main.mean, point.private.mean)]
        if own:
            panels.append(_plane(which, own, level(groups[which], "private_chance")))
    heading = "The trade-off: a mark for each weight, ideal in the upper left corner"
    return charts.chart(name, heading, "private accuracy, percent", "main, percent", panels, columns=3)


def _drawn(point: Point) -> bool:
    """Whether a point has a place on a logarithmic axis of weights, or is the line across it."""
    at = point.strength
    return point.main.mean is not None and not at.limited and (at.value > 0 or point.method == BASE)


def _curves(name: str, side: str, own: Sequence[Point], chance: float | None) -> Panel:
    of = SIDES[side]
    own = [point for point in own if _drawn(point)]
    lines = {method: [point for point in own if point.method == method] for method in _methods(own)}
    base = [of(point).mean for point in lines.pop(BASE, [])]
    weights = [*(p.strength.value for line in lines.values() for p in line), *published.WEIGHTS.get(name, ())]
    ends = [min(weights), max(weights)]
    series = [
        *(each for method, line in lines.items() for each in _line(method, line, of)),
        *(Series(words.method(BASE), BASE, "dashed", ends, [value, value]) for value in base),
        *_paper(name, side, ends),
        *([] if chance is None else [Series(CHANCE, "truth", "truth", ends, [chance, chance])]),
    ]
    return Panel(f"{words.corpus(name)}: {side}", tuple(series), log_x=True)


def _line(method: str, line: Sequence[Point], of: Callable[[Point], Accuracy]) -> Iterator[Series]:
    """Means over seeds, and whiskers of one deviation."""
    xs, ys = list[float | None](), list[float | None]()
    for point in line:
        cell, x = of(point), point.strength.value
        if cell.mean is not None and cell.std is not None:
            xs += [x, x, None]
            ys += [cell.mean - cell.std, cell.mean + cell.std, None]
    switch, colour = words.method(method), colour_name(method)
    yield Series(switch, colour, "points", [p.strength.value for p in line], [of(p).mean for p in line])
    yield Series(switch, colour, "whisker", xs, ys)


def _paper(name: str, side: str, ends: Sequence[float]) -> Iterator[Series]:
    """The paper's curves, and its dashed line."""
    for method, weights, cells in _printed(name):
        yield Series(PUBLISHED, colour_name(method), "faint", weights, [getattr(cell, side) for cell in cells])
    if (base := published.tradeoff(name, BASE)) is not None:
        yield Series(PUBLISHED, BASE, "faint", ends, [getattr(base, side)] * 2)


def _printed(name: str) -> Iterator[tuple[str, tuple[float, ...], list[published.Tradeoff]]]:
    """The paper's methods with their points."""
    weights = published.WEIGHTS.get(name, ())
    for method in published.FAIR_METHODS:
        cells = [cell for weight in weights if (cell := published.tradeoff(name, method, weight)) is not None]
        if cells:
            yield method, weights, cells


def _plane(name: str, own: Sequence[Point], chance: float | None) -> Panel:
    series = [_marks(method, [point for point in own if point.method == method]) for method in _methods(own)]
    mains = [y for line in series for y in line.y if y is not None]
    for method, _, cells in _printed(name):
        spots = [cell.private for cell in cells], [cell.main for cell in cells]
        series.append(Series(PUBLISHED, colour_name(method), "dots", *spots))
    if chance is not None:
        series.append(Series(CHANCE, "truth", "truth", [chance, chance], [min(mains), max(mains)]))
    return Panel(words.corpus(name), tuple(series))


def _marks(method: str, own: Sequence[Point]) -> Series:
    places = [point.private.mean for point in own], [point.main.mean for point in own]
    return Series(words.method(method), colour_name(method), "marks", *places)


def _methods(own: Sequence[Point]) -> list[str]:
    """All methods, KNIFE last and so on top."""
    return list(reversed(dict.fromkeys(point.method for point in own)))
