"""Figure 4: texts whose features hide a private attribute, by the weight of the information (section 4.2)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from infoknife.paper.applications import fair_text
from infoknife.paper.engine import methods
from infoknife.paper.engine.records import (
    Frame,
    Mean,
    decimals,
    grouped,
    mean_of,
    means,
    number,
    numeric,
    percents,
    several,
)
from infoknife.paper.engine.trial import Arguments, Experiment, Outcome, RunContext
from infoknife.paper.engine.verdicts import Verdict, compared
from infoknife.paper.experiments.applied import (
    cost_table,
    data_files,
    each_preset,
    in_order,
    outcome,
    panels_chart,
    rivals_of,
    settings_of,
)
from infoknife.paper.experiments.entropies import curve
from infoknife.pictures import Block, Chart, Fold, Panel, Series, Table
from infoknife.pictures.charts import TRUTH

SEEDS = 3
BASE = "none"  # training without a regularizer
UNWEIGHTED = (BASE, "leace")  # methods without a weight
LOSS = 2.0  # percent points of main accuracy that hiding may cost
TITLES = {
    "dial-sentiment": "DIAL sentiment",
    "dial-mention": "DIAL mention",
    "pan16-mention": "PAN16 mention",
    "synthetic": "Synthetic",
}
WEIGHTS = {  # lambda of the figure, from left to right; PAN16's is not in the paper
    "dial-sentiment": (0.01, 0.1, 1.0, 10.0, 100.0),
    "dial-mention": (0.001, 0.01, 0.1, 1.0, 10.0),
    "pan16-mention": (0.1, 1.0, 3.0, 10.0, 30.0),
}
CPU = {corpus: sorted({*weights, 3.0}) for corpus, weights in WEIGHTS.items()}  # 3 is what the preset has for KNIFE
QUICK = {"synthetic": (0.1, 1.0)}  # needs no data
LABEL_ONLY = {"dial-sentiment": (71.0, 64.0), "dial-mention": (84.0, 66.0)}  # the figure's dashed lines
PUBLISHED = {  # main and private accuracy in percent, in the order of WEIGHTS
    ("dial-sentiment", "knife"): ((70.9, 61.5), (69.8, 57.1), (70.6, 57.9), (69.9, 55.2), (70.4, 50.0)),
    ("dial-sentiment", "club"): ((70.6, 54.5), (70.4, 56.5), (70.0, 56.9), (69.9, 56.2), (67.3, 54.8)),
    ("dial-sentiment", "infonce"): ((70.4, 64.0), (70.4, 63.7), (69.6, 53.4), (65.8, 50.0), (61.4, 50.0)),
    ("dial-sentiment", "nwj"): ((70.4, 60.3), (67.6, 58.8), (50.0, 59.1), (52.8, 50.0), (50.0, 58.4)),
    ("dial-sentiment", "doe"): ((70.8, 59.8), (69.6, 61.6), (60.0, 60.8), (57.6, 60.0), (58.1, 60.9)),
    ("dial-sentiment", "adv"): ((72.0, 60.3), (72.0, 61.1), (50.0, 53.0), (51.6, 65.0), (52.9, 65.0)),
    ("dial-mention", "knife"): ((82.0, 61.2), (82.9, 61.6), (82.9, 57.3), (83.1, 53.0), (83.2, 50.0)),
    ("dial-mention", "club"): ((82.4, 60.3), (82.6, 55.3), (81.6, 50.1), (82.1, 50.1), (83.0, 56.6)),
    ("dial-mention", "infonce"): ((63.7, 50.0), (63.6, 50.0), (79.9, 61.9), (50.1, 50.0), (68.8, 56.5)),
    ("dial-mention", "nwj"): ((57.0, 63.6), (50.0, 63.8), (50.0, 60.3), (52.9, 61.9), (50.1, 62.8)),
    ("dial-mention", "doe"): ((82.2, 62.6), (82.0, 59.7), (81.6, 59.7), (80.4, 61.5), (65.1, 58.6)),
    ("dial-mention", "adv"): ((80.8, 62.8), (80.6, 59.0), (80.8, 56.7), (54.8, 52.7), (53.0, 67.0)),
}
CORPUS = ("corpus", "label", "private", "text", "split", "strip", "balance", "hub")  # which texts, whatever the run


def run(arguments: Arguments, context: RunContext) -> Outcome:
    """Train one method with one weight; a trial that was killed goes on from its checkpoint."""
    settings = settings_of(fair_text.FairTextSettings, context.preset, arguments)
    return outcome(fair_text.learn(settings, data=context.data, **context.where), settings)


def check(arguments: Arguments, data: Path | None) -> None:
    """Raise where the texts of a trial cannot be used; each corpus is checked once."""
    _check(fair_text.FairTextSettings.of({name: arguments[name] for name in CORPUS if name in arguments}), data)


@lru_cache
def _check(settings: Any, data: Path | None) -> None:
    fair_text.check_corpus(settings, data)


def _trials(corpora: Mapping[str, Sequence[float]], seeds: int) -> Iterator[Arguments]:
    """Every method with every weight, and training without a regularizer once, corpus by corpus."""
    for seed in range(seeds):
        for corpus, weights in corpora.items():
            yield from ({"corpus": corpus, "method": name, "seed": seed, "weight": 0.0} for name in UNWEIGHTED)
            for method in (name for name in rivals_of(BASE, methods.FAIR) if name not in UNWEIGHTED):
                for weight in weights:
                    yield {"corpus": corpus, "method": method, "seed": seed, "weight": weight}


# what records say


class Tradeoff(NamedTuple):
    """Main and private accuracy of a method with a weight, over seeds, in percent."""

    method: str
    title: str
    weight: float
    main: Mean
    private: Mean


def tradeoffs(runs: Frame) -> list[Tradeoff]:
    """All points of one corpus: method by method, from weak to strong."""
    found = [
        Tradeoff(at[0], at[1], at[2], mean_of(own, "main_accuracy", 100.0), mean_of(own, "private_accuracy", 100.0))
        for at, own in grouped(runs, ["method", "title", "weight"])
    ]
    return sorted(found, key=lambda point: (methods.rank(point.method), *point[:3]))


def best(found: Sequence[Tradeoff]) -> dict[str, Tradeoff]:
    """By method, the weight that hides most while the label is told almost as well as without a regularizer."""
    known = [(point, round(point.main.mean, 6)) for point in found if point.main.mean is not None]
    least = next((round(main - LOSS, 6) for point, main in known if point.method == BASE), math.inf)
    kept = [point for point, main in known if point.method != BASE and main >= least]
    return {point.method: point for point in sorted(kept, key=lambda point: -(point.private.mean or 0.0))}


def published(corpus: str, method: str, weight: float) -> tuple[float, float] | None:
    """The paper's main and private accuracy.

    Examples:
        >>> published("dial-mention", "knife", 10.0)
        (83.2, 50.0)
    """
    if method == BASE or not weight:
        return LABEL_ONLY.get(corpus) if method == BASE and not weight else None
    return dict(zip(WEIGHTS.get(corpus, ()), PUBLISHED.get((corpus, method), ()), strict=False)).get(weight)


def _corpora(runs: Frame) -> Iterator[tuple[str, str, Frame]]:
    """The name, title and runs of each corpus."""
    for name in in_order(runs["corpus"], WEIGHTS):
        yield name, TITLES.get(name, name), runs[runs["corpus"] == name]


# tables


def tradeoff_table(corpus: str, found: Sequence[Tradeoff]) -> Table:
    """Main and private accuracy by method and weight, the paper's under ours."""
    columns, chosen = sorted({point.weight for point in found}), best(found)
    lines, stand_out = list[tuple[str, ...]](), list[tuple[int, int]]()
    for method in dict.fromkeys(point.method for point in found):
        row = {point.weight: point for point in found if point.method == method}
        first = next(iter(row.values()))
        if method in chosen:
            stand_out.append((len(lines), 2 + columns.index(chosen[method].weight)))
        runs = several(max(point.main.runs for point in row.values()), "seed")
        lines.append((first.title, runs, *(_cell(row[at]) if at in row else "–" for at in columns)))
        paper = [published(corpus, method, at) for at in columns]
        if any(paper):
            cells = ("–" if cell is None else f"{cell[0]:.1f} / {cell[1]:.1f}" for cell in paper)
            lines.append((methods.title(method), "published", *cells))
    caption = (
        f"{TITLES.get(corpus, corpus)}: main / private accuracy, percent, mean ± deviation over seeds; for each method "
        f"the lowest private accuracy stands out where at most {LOSS:g} points of the main one are lost"
    )
    return Table(caption, ("method", "run", *(f"λ = {at:g}" for at in columns)), tuple(lines), 2, tuple(stand_out))


def _cell(point: Tradeoff) -> str:
    if point.main.mean is None:
        return point.main.text()
    return f"{point.main._replace(failures=0).text(percents)} / {point.private.text(percents)}"


def leak_table(title: str, runs: Frame) -> Table:
    """I(Z; S) of the audit by method and weight, in nats."""
    good = runs[numeric(runs, "leak").notna()]
    columns, write = sorted(set(good["weight"])), decimals(3)
    rows = []
    for name, own in grouped(good, "title"):
        found = means(own, "weight", "leak")
        rows.append((name, *("–" if at not in found else write(found[at].mean) for at in columns)))
    truths = numeric(good, "truth").dropna().unique()
    told = f"; a text itself tells {number(truths[0])}" if len(truths) == 1 else ""
    caption = f"{title}: information of the features about the private attribute, nats{told}"
    return Table(caption, ("method", *(f"λ = {at:g}" for at in columns)), tuple(rows))


# charts


def _curves(runs: Frame, name: str) -> Chart | None:
    """Figure 4: main and private accuracy by weight, a line for each method; a row of two panels for each corpus."""
    panels: list[Panel] = []
    for corpus, title, own in _corpora(runs):
        found = [p for p in tradeoffs(own) if p.main.mean is not None and (p.weight or p.method == BASE)]
        if any(point.method != BASE for point in found):
            chances = (mean_of(own, column, 100.0).mean for column in ("majority", "private_chance"))
            sides = zip(("main", "private"), chances, strict=True)
            panels += [_side(corpus, f"{title}: {side}", side, chance, found) for side, chance in sides]
    title = "Accuracy on the label (left) and of the strongest probe of the private attribute (right), mean over seeds"
    return panels_chart(name, title, "λ", "percent", panels, 2)


def _side(corpus: str, title: str, side: str, chance: float | None, found: Sequence[Tradeoff]) -> Panel:
    """One of two accuracies by weight, with that of no regularizer, of chance, and of the paper."""
    lines = {method: [p for p in found if p.method == method] for method in _ours_last(found)}
    label_only = [getattr(point, side).mean for point in lines.pop(BASE, [])]
    weights = [point.weight for line in lines.values() for point in line]
    ends, grey = [min(weights), max(weights)], methods.get(BASE)
    series = []
    for method, line in lines.items():
        cells = [getattr(point, side) for point in line]
        series.append(curve(method, [point.weight for point in line], [cell.mean for cell in cells], "points"))
        xs, ys = list[float | None](), list[float | None]()
        for point, cell in zip(line, cells, strict=True):
            if cell.std is not None:  # whiskers of one deviation
                xs, ys = (
                    [*xs, point.weight, point.weight, None],
                    [*ys, cell.mean - cell.std, cell.mean + cell.std, None],
                )
        series.append(curve(method, xs, ys, "whisker"))
    series += [Series(grey.title, grey.colour, "dashed", ends, [level, level]) for level in label_only]
    at = ("main", "private").index(side)
    for (which, method), pairs in PUBLISHED.items():
        if which == corpus:
            shown = [pair[at] for pair in pairs]
            series.append(Series("published", methods.get(method).colour, "faint", WEIGHTS[corpus], shown))
    if corpus in LABEL_ONLY:
        series.append(Series("published", grey.colour, "faint", ends, [LABEL_ONLY[corpus][at]] * 2))
    series += [] if chance is None else [Series("chance", TRUTH, "truth", ends, [chance, chance])]
    return Panel(title, tuple(series), log_x=True)


def _plane(runs: Frame, name: str) -> Chart | None:
    """Main against private accuracy, a mark for each weight: the upper left corner is the ideal."""
    panels = []
    for corpus, title, own in _corpora(runs):
        found = [point for point in tradeoffs(own) if None not in (point.main.mean, point.private.mean)]
        series = []
        for method in _ours_last(found):
            line = [point for point in found if point.method == method]
            series.append(curve(method, [p.private.mean for p in line], [p.main.mean for p in line], "marks"))
        for (which, method), cells in PUBLISHED.items():
            if which == corpus:
                dots = [private for _, private in cells], [main for main, _ in cells]
                series.append(Series("published", methods.get(method).colour, "dots", *dots))
        panels += [Panel(title, tuple(series))] if found else []
    title = "The trade-off: a mark for each weight, ideal in the upper left corner"
    return panels_chart(name, title, "private accuracy, percent", "main, percent", panels, 3)


def _ours_last(found: Sequence[Tradeoff]) -> list[str]:
    """All methods, KNIFE last and so on top."""
    return list(reversed(dict.fromkeys(point.method for point in found)))


# the story


def _summary(runs: Frame) -> list[Table]:
    return [tradeoff_table(corpus, tradeoffs(own)) for corpus, _, own in _corpora(runs)]


def _story(preset: str, runs: Frame) -> Iterator[Block | None]:
    yield _curves(runs, f"fig4-{preset}")
    yield from _summary(runs)
    yield _plane(runs, f"fig4-plane-{preset}")
    yield Fold("Information that is left", tuple(leak_table(title, own) for _, title, own in _corpora(runs)))
    yield cost_table(runs, BASE, "corpus", "corpora")


def _verdicts(runs: Frame) -> Iterator[Verdict]:
    """Where the label is kept, whether KNIFE hides more than no regularizer does, and more than its rivals."""
    for _, title, own in _corpora(runs):
        found = tradeoffs(own)
        chosen, ours = best(found), [point for point in found if point.method == "knife"]
        label_only = {point.title: point.private for point in found if point.method == BASE}
        if "knife" in chosen:
            at = chosen.pop("knife")
            what = f"private accuracy, percent, λ = {at.weight:g}, main {percents(at.main.mean)}"
            chance = mean_of(own, "private_chance", 100.0).mean or 50.0
            for rivals in (label_only, {point.title: point.private for point in chosen.values()}):
                yield from compared(f"{at.title}, {title}", at.private, rivals, what, goal=chance)
        elif ours and label_only:
            lost = f"more than {LOSS:g} points of main accuracy are lost at every λ"
            yield Verdict(f"{ours[0].title}, {title}", "behind", methods.title(BASE), lost)


FIG4 = Experiment(
    name="fig4",
    short="Figure 4",
    title="Texts whose features hide a private attribute",
    text="A classifier of texts learns a label while λ times the information between its features and a private "
    "attribute is kept small. The main accuracy is that of the label on test texts; the private accuracy is the "
    "balanced accuracy of the strongest of several probes on features of held-out texts, so that chance is one over "
    "the number of classes. The paper has one probe. Dotted lines and small dots are the paper's. The preset CPU has a "
    "small encoder: its numbers compare methods with each other, not with the paper. Needs --data, except for quick.",
    source="Figure 4 (fig:fair_classification_main), read from the published PDF's vector graphics; MINE did not "
    "converge there",
    run=run,
    presets={
        "paper": partial(_trials, WEIGHTS, SEEDS),
        "cpu": partial(_trials, CPU, SEEDS),
        "quick": partial(_trials, QUICK, 1),
    },
    blocks=each_preset(_story),
    verdicts=_verdicts,
    summary=_summary,
    needs=("corpus", "weight"),
    derive=lambda runs: runs.assign(  # a method without a regularizer has no weight, whatever was set
        weight=numeric(runs, "weight").mask(runs["method"].isin(UNWEIGHTED), 0.0).fillna(0.0)
    ),
    place=lambda arguments: f"{arguments['corpus']} λ={arguments['weight']:g}",
    check=check,
    files=lambda arguments, data: [] if arguments["corpus"] == "synthetic" else data_files(data),
)
