"""Figure 4: texts whose features hide a private attribute, by the weight of the information (section 4.2)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from infoknife.paper.engine import methods
from infoknife.paper.engine.records import (
    Mean,
    Record,
    by,
    failed,
    in_order,
    mean_of,
    method_of,
    number,
    percent_of,
    percents,
    several,
)
from infoknife.paper.engine.trial import Arguments, Experiment, Outcome, RunContext
from infoknife.paper.engine.verdicts import Verdict, compared
from infoknife.paper.experiments.applied import cost_table, data_files, each_preset, listed, resolved, title_of
from infoknife.paper.experiments.entropies import curve
from infoknife.pictures import Block, Chart, Fold, Panel, Series, Table
from infoknife.pictures.charts import TRUTH

SEEDS = 3
BASE = "none"  # training without a regularizer
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
    from infoknife.paper.applications.fair_text import learn

    settings = _settings(arguments, context.preset)
    found = learn(
        settings, data=context.data, folder=context.folder, device=context.device, on_progress=context.on_progress
    )
    return Outcome(found.results | {"settings": settings.arguments()}, found.curves)


def _settings(arguments: Arguments, preset: str) -> Any:
    from infoknife.paper.applications.fair_text import FairTextSettings

    return resolved(FairTextSettings, preset, arguments)


def check(arguments: Arguments, data: Path | None) -> None:
    """Raise where the texts of a trial cannot be used; a corpus is looked at once."""
    from infoknife.paper.applications.fair_text import FairTextSettings

    _check(FairTextSettings.of({name: arguments[name] for name in CORPUS if name in arguments}), data)


@lru_cache
def _check(settings: Any, data: Path | None) -> None:
    from infoknife.paper.applications.fair_text import check_corpus

    check_corpus(settings, data)


def _files(arguments: Arguments, data: Path | None) -> list[Path]:
    return [] if arguments["corpus"] == "synthetic" else data_files(data)


def _trials(corpora: Mapping[str, Sequence[float]], seeds: int) -> Iterator[Arguments]:
    """Every method with every weight, and training without a regularizer once, corpus by corpus."""
    for seed in range(seeds):
        for corpus, weights in corpora.items():
            yield {"corpus": corpus, "method": BASE, "seed": seed, "weight": 0.0}
            for method in (name for name in methods.names(methods.FAIR) if name != BASE):
                for weight in weights:
                    yield {"corpus": corpus, "method": method, "seed": seed, "weight": weight}


def _place(arguments: Arguments) -> str:
    limit = arguments.get("at_most")
    return f"{arguments['corpus']} " + (f"λ={arguments.get('weight', 0):g}" if limit is None else f"≤{limit:g}")


# from records to points


class Strength(NamedTuple):
    """How strongly the information is held down: by a weight, lambda, or to a limit in nats."""

    limited: bool
    value: float

    @property
    def title(self) -> str:
        """In words.

        Example:
            >>> Strength(False, 0.1).title, Strength(True, 0.05).title
            ('λ = 0.1', '≤ 0.05 nats')
        """
        return f"≤ {self.value:g} nats" if self.limited else f"λ = {self.value:g}"


class Tradeoff(NamedTuple):
    """Main and private accuracy of a method at a strength, over seeds, in percent."""

    method: str
    title: str
    strength: Strength
    main: Mean
    private: Mean


def corpus_of(record: Record) -> str:
    """The corpus of a record: its name, or what is learned and what is hidden in a table of one's own.

    Example:
        >>> corpus_of({"arguments": {"corpus": "own", "label": "mood", "private": "age", "hub": None}})
        'mood without age'
    """
    arguments = record["arguments"]
    name = str(arguments.get("corpus", "–"))
    if name != "own":
        return name
    where = arguments.get("hub") or arguments.get("file")
    what = f"{arguments.get('label', '–')} without {arguments.get('private', '–')}"
    return f"{where}: {what}" if where else what


def strength_of(record: Record) -> Strength:
    """The strength of a record; a method without a regularizer has none, whatever was set."""
    arguments, limit = record["arguments"], record["arguments"].get("at_most")
    if method_of(record) == BASE:
        return Strength(False, 0.0)
    return Strength(limit is not None, float(arguments.get("weight") or 0.0 if limit is None else limit))


def _corpora(records: Sequence[Record]) -> dict[str, list[Record]]:
    groups = by(in_order(records), corpus_of)
    return {name: groups[name] for name in listed(groups, WEIGHTS)}


def tradeoffs(records: Sequence[Record]) -> list[Tradeoff]:
    """All points of one corpus: method by method, from weak to strong."""
    groups = by(in_order(records), lambda record: (method_of(record), title_of(record), strength_of(record)))
    order = sorted(groups, key=lambda key: (methods.rank(key[0]), key))
    main, private = percent_of("main_accuracy"), percent_of("private_accuracy")
    return [Tradeoff(*key, mean_of(groups[key], main), mean_of(groups[key], private)) for key in order]


def best(found: Sequence[Tradeoff]) -> dict[str, Tradeoff]:
    """By method, the weight that hides most while the label is told almost as well as without a regularizer."""
    base = next((p.main.mean for p in found if p.method == BASE and p.main.mean is not None), None)
    kept = [
        p
        for p in found
        if base is not None
        and p.method != BASE
        and not p.strength.limited
        and p.main.mean is not None
        and round(p.main.mean, 6) >= round(base - LOSS, 6)
    ]
    return {point.method: point for point in sorted(kept, key=lambda point: -(point.private.mean or 0.0))}


def published(corpus: str, method: str, at: Strength) -> tuple[float, float] | None:
    """The paper's main and private accuracy.

    Example:
        >>> published("dial-mention", "knife", Strength(False, 10.0))
        (83.2, 50.0)
    """
    if at.limited or (method == BASE) != (at.value == 0):
        return None
    if method == BASE:
        return LABEL_ONLY.get(corpus)
    return dict(zip(WEIGHTS.get(corpus, ()), PUBLISHED.get((corpus, method), ()), strict=False)).get(at.value)


# tables


def tradeoff_table(corpus: str, found: Sequence[Tradeoff]) -> Table:
    """Main and private accuracy by method and weight, the paper's under ours."""
    columns, chosen = sorted({point.strength for point in found}), best(found)
    lines, stand_out, strong = list[tuple[str, ...]](), list[tuple[int, int]](), list[int]()
    for method in dict.fromkeys(point.method for point in found):
        start, row = len(lines), {point.strength: point for point in found if point.method == method}
        if method in chosen:
            stand_out.append((start, 2 + columns.index(chosen[method].strength)))
        runs = max(point.main.runs for point in row.values())
        cells = (_cell(row[at]) if at in row else "–" for at in columns)
        lines.append((next(iter(row.values())).title, several(runs, "seed"), *cells))
        paper = [published(corpus, method, at) for at in columns]
        if any(paper):
            cells = ("–" if cell is None else f"{cell[0]:.1f} / {cell[1]:.1f}" for cell in paper)
            lines.append((methods.title(method), "published", *cells))
        strong += range(start, len(lines)) if methods.is_ours(method) else []
    caption = (
        f"{TITLES.get(corpus, corpus)}: main / private accuracy, percent, mean ± deviation over seeds; for each method "
        f"the lowest private accuracy stands out where at most {LOSS:g} points of the main one are lost"
    )
    head = ("method", "run", *(at.title for at in columns))
    return Table(caption, head, tuple(lines), 2, tuple(stand_out), tuple(strong))


def _cell(point: Tradeoff) -> str:
    if point.main.mean is None:
        return point.main.text()
    return f"{point.main._replace(failures=0).text(percents)} / {point.private.text(percents)}"


def leak_table(corpus: str, records: Sequence[Record]) -> Table:
    """I(Z; S) of the audit by method and weight, in nats."""
    good = [record for record in records if not failed(record) and "leak" in record["results"]]
    columns = sorted({strength_of(record) for record in good})
    cells = by(good, lambda record: (title_of(record), strength_of(record)))
    rows = tuple(
        (title, *(_leak(cells.get((title, at), ())) for at in columns)) for title in dict.fromkeys(map(title_of, good))
    )
    truths = {record["results"].get("truth") for record in good} - {None}
    told = f"; a text itself tells {number(truths.pop())}" if len(truths) == 1 else ""
    caption = f"{TITLES.get(corpus, corpus)}: information of the features about the private attribute, nats{told}"
    return Table(caption, ("method", *(at.title for at in columns)), rows)


def _leak(group: Sequence[Record]) -> str:
    return f"{fmean(record['results']['leak'] for record in group):.3f}" if group else "–"


# charts

SIDES: dict[str, tuple[Callable[[Tradeoff], Mean], str]] = {  # and what one who knows nothing reaches
    "main": (lambda point: point.main, "majority"),
    "private": (lambda point: point.private, "private_chance"),
}


def _curves(records: Sequence[Record], name: str) -> Chart | None:
    """Figure 4: main and private accuracy by weight, a line for each method; a row of two panels for each corpus."""
    panels: list[Panel] = []
    for corpus, own in _corpora(records).items():
        found = [
            point
            for point in tradeoffs(own)
            if point.main.mean is not None
            and not point.strength.limited
            and (point.strength.value or point.method == BASE)
        ]
        if any(point.method != BASE for point in found):
            panels += [_side(corpus, side, found, own) for side in range(len(SIDES))]
    title = "Accuracy on the label (left) and of the strongest probe of the private attribute (right), mean over seeds"
    return Chart(name, title, "λ", "percent", tuple(panels), 2) if panels else None


def _side(corpus: str, side: int, found: Sequence[Tradeoff], own: Sequence[Record]) -> Panel:
    name, (value, chance) = list(SIDES.items())[side]
    lines = {method: [p for p in found if p.method == method] for method in _ours_last(found)}
    label_only = [value(point).mean for point in lines.pop(BASE, [])]
    weights = [point.strength.value for line in lines.values() for point in line]
    ends = [min(weights), max(weights)]
    series = [each for method, line in lines.items() for each in _line(method, line, value)]
    grey = methods.get(BASE)
    series += [Series(grey.title, grey.colour, "dashed", ends, [level, level]) for level in label_only]
    for (which, method), cells in PUBLISHED.items():
        if which == corpus:
            shown = [cell[side] for cell in cells]
            series.append(Series("published", methods.get(method).colour, "faint", WEIGHTS[corpus], shown))
    if corpus in LABEL_ONLY:
        series.append(Series("published", grey.colour, "faint", ends, [LABEL_ONLY[corpus][side]] * 2))
    level = mean_of(own, percent_of(chance)).mean
    series += [] if level is None else [Series("chance", TRUTH, "truth", ends, [level, level])]
    return Panel(f"{TITLES.get(corpus, corpus)}: {name}", tuple(series), log_x=True)


def _line(method: str, line: Sequence[Tradeoff], value: Callable[[Tradeoff], Mean]) -> Iterator[Series]:
    """Means over seeds, and whiskers of one deviation."""
    points = [(point.strength.value, value(point)) for point in line]
    xs, ys = list[float | None](), list[float | None]()
    for x, cell in points:
        if cell.mean is not None and cell.std is not None:
            xs, ys = [*xs, x, x, None], [*ys, cell.mean - cell.std, cell.mean + cell.std, None]
    means = [(x, cell.mean) for x, cell in points if cell.mean is not None]
    yield curve(method, [x for x, _ in means], [mean for _, mean in means], "points")
    yield curve(method, xs, ys, "whisker")  # type: ignore[arg-type]


def _plane(records: Sequence[Record], name: str) -> Chart | None:
    """Main against private accuracy, a mark for each weight: the upper left corner is the ideal."""
    panels = []
    for corpus, own in _corpora(records).items():
        found = [p for p in tradeoffs(own) if p.main.mean is not None and p.private.mean is not None]
        series = [
            curve(
                method,
                [p.private.mean or 0.0 for p in found if p.method == method],
                [p.main.mean or 0.0 for p in found if p.method == method],
                "marks",
            )
            for method in _ours_last(found)
        ]
        for (which, method), cells in PUBLISHED.items():
            if which == corpus:
                dots = [private for _, private in cells], [main for main, _ in cells]
                series.append(Series("published", methods.get(method).colour, "dots", *dots))
        panels += [Panel(TITLES.get(corpus, corpus), tuple(series))] if found else []
    title = "The trade-off: a mark for each weight, ideal in the upper left corner"
    whole = Chart(name, title, "private accuracy, percent", "main, percent", tuple(panels), min(3, len(panels)))
    return whole if panels else None


def _ours_last(found: Sequence[Tradeoff]) -> list[str]:
    """All methods, KNIFE last and so on top."""
    return list(reversed(dict.fromkeys(point.method for point in found)))


# the story


def _summary(records: Sequence[Record]) -> list[Table]:
    return [tradeoff_table(corpus, tradeoffs(own)) for corpus, own in _corpora(records).items()]


def _story(preset: str, own: Sequence[Record]) -> Iterator[Block | None]:
    yield _curves(own, f"fig4-{preset}")
    yield from _summary(own)
    yield _plane(own, f"fig4-plane-{preset}")
    leaks = tuple(leak_table(corpus, part) for corpus, part in _corpora(own).items())
    yield Fold("Information that is left", leaks)
    yield cost_table(own, BASE, corpus_of, "corpora")


def _verdicts(records: Sequence[Record]) -> Iterator[Verdict]:
    """Where the label is kept, whether KNIFE hides more than no regularizer does, and more than its rivals."""
    for corpus, own in _corpora(records).items():
        found = tradeoffs(own)
        chosen, ours = best(found), [point for point in found if point.method == "knife"]
        if not ours:
            continue
        subject = f"{ours[0].title}, {TITLES.get(corpus, corpus)}"
        label_only = {p.title: p.private for p in found if p.method == BASE and p.private.mean is not None}
        if "knife" not in chosen:
            if label_only:
                text = f"more than {LOSS:g} points of main accuracy are lost at every λ"
                yield Verdict(subject, "behind", methods.title(BASE), text)
            continue
        at, rivals = chosen.pop("knife"), {point.title: point.private for point in chosen.values()}
        what = f"private accuracy, percent, {at.strength.title}, main {percents(at.main.mean)}"
        chance = mean_of(own, percent_of("private_chance")).mean or 50.0
        for others in (label_only, rivals):
            verdict = compared(subject, at.private, others, what, goal=chance) if others else None
            yield from [] if verdict is None else [verdict]


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
    blocks=lambda records: each_preset(records, _story),
    verdicts=_verdicts,
    summary=_summary,
    place=_place,
    check=check,
    files=_files,
)
