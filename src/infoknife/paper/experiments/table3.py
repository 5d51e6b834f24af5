"""Table 3: domain adaptation on six pairs of image sets (section 4.3)."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from infoknife.paper.engine import methods
from infoknife.paper.engine.records import (
    Mean,
    Record,
    by,
    failed,
    mean_of,
    method_of,
    percent_of,
    preset_of,
    published,
)
from infoknife.paper.engine.trial import Arguments, Experiment, Outcome, RunContext
from infoknife.paper.engine.verdicts import DEVIATIONS, Point, Verdict, compared, reproduced
from infoknife.paper.experiments.applied import (
    Row,
    cost_table,
    each_preset,
    mean_curve,
    percent_table,
    resolved,
    title_of,
    whole_mean,
)
from infoknife.paper.experiments.entropies import curve
from infoknife.pictures import Block, Chart, Confusion, Fold, Panel, Series, Table
from infoknife.pictures.charts import BLUE, ORANGE, settled

Pair = tuple[str, str]  # labelled source, unlabelled target

SEEDS = 3
BASE = "source-only"
PAIRS: tuple[Pair, ...] = (
    ("mnist", "mnistm"),
    ("stl10", "cifar10"),
    ("usps", "mnist"),
    ("mnist", "usps"),
    ("cifar10", "stl10"),
    ("svhn", "mnist"),
)
LETTERS = {"mnist": "M", "mnistm": "MM", "usps": "U", "svhn": "SV", "stl10": "S", "cifar10": "C"}
ACCURACIES = {  # percent, mean and deviation, in the order of PAIRS, and the mean of all as it is printed
    "source-only": ((51.9, 0.8), (58.3, 0.2), (91.1, 0.7), (93.5, 0.6), (72.3, 0.5), (54.7, 2.8), (70.3, 0.9)),
    "club": ((79.1, 2.2), (59.9, 1.9), (96.0, 0.2), (96.8, 0.5), (71.6, 1.3), (83.8, 3.4), (81.2, 1.7)),
    "doe": ((82.2, 2.6), (58.9, 0.8), (97.2, 0.3), (94.2, 0.9), (68.8, 1.4), (86.4, 5.4), (81.3, 1.9)),
    "infonce": ((77.3, 0.5), (61.0, 0.1), (97.4, 0.2), (97.0, 0.3), (70.6, 0.8), (89.2, 4.1), (82.1, 1.0)),
    "mine": ((76.7, 0.4), (61.2, 0.3), (97.7, 0.1), (97.3, 0.1), (70.8, 1.0), (91.8, 0.8), (82.6, 0.4)),
    "nwj": ((77.1, 0.6), (61.2, 0.3), (97.6, 0.1), (97.3, 0.5), (72.1, 0.7), (91.4, 0.8), (82.8, 0.5)),
    "knife": ((78.7, 0.7), (61.8, 0.5), (97.7, 0.3), (97.4, 0.4), (71.2, 1.8), (93.2, 0.2), (83.4, 0.6)),
}
PUBLISHED = {name: [published(*cell, SEEDS) for cell in row] for name, row in ACCURACIES.items()}
QUICK = {"channels": 16, "size": 16, "steps": 100, "batch_size": 32, "every": 50}


def run(arguments: Arguments, context: RunContext, base: str | None = None) -> Outcome:
    """Train one pair with one method; a trial that was killed goes on from its checkpoint."""
    from infoknife.paper.applications.domain_adaptation import adapt

    settings = _settings(arguments, base or context.preset)
    source, target = _pair(settings.source, settings.target, context.data, settings.size)
    found = adapt(
        settings, source, target, folder=context.folder, on_progress=context.on_progress, device=context.device
    )
    return Outcome(found.results | {"settings": settings.arguments()}, found.curves)


def _settings(arguments: Arguments, preset: str) -> Any:
    from infoknife.paper.applications.domain_adaptation import AdaptationSettings

    return resolved(AdaptationSettings, preset, arguments)


def check(arguments: Arguments, data: Path | None) -> None:
    """Raise where the images of a trial are not there."""
    from infoknife.paper.applications.domain_adaptation import check_pair

    check_pair(arguments["source"], arguments["target"], data)


def _files(arguments: Arguments, data: Path | None) -> list[Path]:
    if data is None or not data.is_dir():
        return []
    names = {arguments["source"], arguments["target"]}
    return sorted(
        path for name in names for path in (data / f"{name}.npz", *data.glob(f"{name}_*.npz")) if path.is_file()
    )


@lru_cache(maxsize=1)  # trials of a pair follow each other
def _pair(source: str, target: str, folder: Path | None, size: int) -> Any:
    from infoknife.paper.applications.domain_adaptation import load_pair

    return load_pair(source, target, folder=folder, size=size)


def _trials(seeds: int) -> Iterator[Arguments]:
    for seed in range(seeds):
        for source, target in PAIRS:
            for method in (BASE, *(name for name in methods.names(methods.DOMAINS) if name != BASE)):
                yield {"source": source, "target": target, "method": method, "seed": seed}


def _networks(sizes: Mapping[str, int]) -> Iterator[Arguments]:
    """The four configurations of each MI network, on the pair whose validation images chose among them."""
    source, target = PAIRS[0]
    for method in (name for name in methods.names(methods.DOMAINS) if name not in {BASE, "dann"}):
        for activation, layer_norm in itertools.product(("relu", "tanh"), (False, True)):
            network = {"activation": activation, "layer_norm": layer_norm}
            shared = {"source": source, "target": target, "method": method, "seed": 0, "estimator": network}
            yield {**shared, **sizes}


# what records say


def pair_of(record: Record) -> Pair:
    """The data sets of a record."""
    arguments = record["arguments"]
    return str(arguments.get("source", "–")), str(arguments.get("target", "–"))


def pair_title(pair: Pair) -> str:
    """Source and target: with the letters of the paper for its own pairs, in full for others.

    Example:
        >>> pair_title(("mnist", "mnistm")), pair_title(("digits", "mnist5k"))
        ('M → MM', 'digits → mnist5k')
    """
    return " → ".join(LETTERS[name] if pair in PAIRS else name for name in pair)


def _pairs(records: Sequence[Record]) -> list[Pair]:
    """All pairs: the paper's in its order, then others by name."""
    found = {pair_of(record) for record in records}
    return [*(pair for pair in PAIRS if pair in found), *sorted(found - {*PAIRS})]


def accuracy_table(records: Sequence[Record], caption: str, name: str = "accuracy", paper: bool = True) -> Table:
    """An accuracy by method and pair, with the paper's under ours."""
    pairs = _pairs(records)
    rows = []
    for title, own in by(records, title_of).items():
        groups, method = by(own, pair_of), method_of(own[0])
        means = [mean_of(groups[pair], percent_of(name)) if pair in groups else None for pair in pairs]
        cells = PUBLISHED.get(method, []) if paper else []
        theirs = [cells[PAIRS.index(pair)] if cells and pair in PAIRS else None for pair in pairs]
        whole = cells[-1] if cells and {*pairs} == {*PAIRS} else None
        rows.append(Row(method, title, means, theirs, whole_mean(means), whole))
    return percent_table(caption, [*map(pair_title, pairs)], rows)


def _summary(records: Sequence[Record]) -> Table:
    caption = "Accuracy on the target, percent, mean ± deviation over seeds; the best of ours stands out"
    return accuracy_table(records, caption)


def _story(name: str, preset: str, own: Sequence[Record]) -> Iterator[Block | None]:
    yield _summary(own)
    last = "Accuracy of the last checkpoint on the target, percent; the paper does not report it"
    more = (
        accuracy_table(own, last, "last_accuracy", paper=False),
        accuracy_table(own, "Accuracy on the source, percent", "source_accuracy", paper=False),
    )
    yield Fold("The last checkpoint, and the source", more)
    yield cost_table(own, BASE, pair_of, "pairs")
    title = "Accuracy on the target's validation images while training, mean over seeds"
    yield _curves(own, "target_accuracy", f"{name}-accuracy-{preset}", title, "percent", 100.0)
    title = "Estimated information between both encoders while training, mean over seeds"
    yield _curves(own, "information", f"{name}-information-{preset}", title, "nats", 1.0)
    for pair in _pairs(own):
        part, ending = [r for r in own if pair_of(r) == pair], f"{'-'.join(pair)}-{preset}"
        blocks = _features(part, f"{name}-features-{ending}"), _confusion(part, f"{name}-confusion-{ending}")
        shown = tuple(block for block in blocks if block is not None)
        yield Fold(f"Features and confusions: {pair_title(pair)}", shown) if shown else None


def _curves(records: Sequence[Record], name: str, chart: str, title: str, unit: str, scale: float) -> Chart | None:
    """A panel for each pair, a line for each method."""
    good = [record for record in records if not failed(record)]
    panels = []
    for pair in _pairs(good):
        lines = []
        for method, runs in by([r for r in good if pair_of(r) == pair], method_of).items():
            if points := mean_curve(runs, "step", name):
                steps, means = zip(*points, strict=True)
                lines.append(curve(method, steps, [scale * mean for mean in means]))
        if lines:
            panels.append(Panel(pair_title(pair), tuple(reversed(lines)), settled(lines) if scale == 1 else None))
    return Chart(chart, title, "step", unit, tuple(panels), min(3, len(panels))) if panels else None


def _features(records: Sequence[Record], name: str) -> Chart | None:
    """Two principal components of the features of a pair: before training, and after with every method's first run."""
    runs = _first_runs(records, "features")
    before = [Panel("Before training", dots) for run in runs.values() if (dots := _dots(run, "before"))][:1]
    after = [Panel(methods.title(method), dots) for method, run in runs.items() if (dots := _dots(run, "after"))]
    panels = (*before, *after)
    title = f"Features, {pair_title(pair_of(records[0]))}: source and target, two principal components, first seed"
    return Chart(name, title, "component 1", "component 2", panels, min(5, len(panels))) if panels else None


def _confusion(records: Sequence[Record], name: str) -> Confusion | None:
    """The confusion on the target's test images of a pair, without and with KNIFE, first run."""
    runs = _first_runs(records, "confusion")
    found = {m: [tuple(map(int, row)) for row in runs[m]["results"]["confusion"]] for m in (BASE, "knife") if m in runs}
    sizes = {len(row) for rows in found.values() for row in (rows, *rows)}
    if len(sizes) != 1:  # none, or not square
        return None
    matrices = tuple((methods.title(method), tuple(rows)) for method, rows in found.items())
    classes = next(iter(runs.values()))["results"].get("classes") or range(*sizes)
    title = f"Confusion on the target, {pair_title(pair_of(records[0]))}: true classes by row, first seed"
    return Confusion(name, title, tuple(map(str, classes)), matrices)


def _first_runs(records: Sequence[Record], name: str) -> dict[str, Record]:
    """The first run of each method that has such a result: without a regularizer, then KNIFE and the others."""
    good = [record for record in records if not failed(record) and record["results"].get(name)]
    runs = {method: own[0] for method, own in by(good, method_of).items()}
    return dict(sorted(runs.items(), key=lambda item: item[0] != BASE))


def _dots(record: Record, when: str) -> tuple[Series, ...]:
    """Source and target of one picture; nothing where the record does not have it."""
    points = record["results"]["features"].get(when) or {}
    rows = list(zip(*(points.get(name) or () for name in ("x", "y", "domain")), strict=False))
    parts = (("target", ORANGE, [row for row in rows if row[2]]), ("source", BLUE, [row for row in rows if not row[2]]))
    return tuple(
        Series(name, colour, "dots", [row[0] for row in part], [row[1] for row in part])
        for name, colour, part in parts
        if part
    )


def _verdicts(records: Sequence[Record]) -> Iterator[Verdict]:
    """KNIFE against training without it, against its rivals and DANN, on the pairs that all have; and the paper."""
    means = {
        name: {at: mean_of(g, percent_of("accuracy")) for at, g in by(own, pair_of).items()}
        for name, own in by(records, method_of).items()
    }
    if preset_of(records[0]) == "paper":
        yield from _printed(means)
    rivals = {name: row for name, row in means.items() if name != "knife" and any(m.mean for m in row.values())}
    groups = (
        [name for name in rivals if name not in {BASE, "dann"}],
        *([name] for name in (BASE, "dann") if name in rivals),
    )
    for group in groups if "knife" in means else ():
        rows = [means["knife"], *(rivals[name] for name in group)]
        over = [at for at in _pairs(records) if all(at in row and row[at].mean is not None for row in rows)]
        if group and over:
            theirs = {methods.title(name): _over(rivals[name], over) for name in group}
            what = f"mean accuracy, percent, of {', '.join(map(pair_title, over))}"
            ours = next(title_of(record) for record in records if method_of(record) == "knife")
            verdict = compared(ours, _over(means["knife"], over), theirs, what, goal=100.0)
            yield from [] if verdict is None else [verdict]


def _over(row: Mapping[Pair, Mean], pairs: Sequence[Pair]) -> Mean:
    return Mean(whole_mean(row[at] for at in pairs), None, sum(row[at].runs for at in pairs))


def _printed(means: Mapping[str, Mapping[Pair, Mean]]) -> Iterator[Verdict]:
    """Whether the accuracies are those of the paper, pair by pair."""
    for method, row in means.items():
        points, numbers = [], []
        for at, mean in row.items():
            if method in PUBLISHED and at in PAIRS and mean.mean is not None:
                cell = PUBLISHED[method][PAIRS.index(at)]
                assert cell.mean is not None
                points.append(Point(pair_title(at), mean.mean, cell.mean, DEVIATIONS * (cell.std or 0.0), 100.0))
                numbers.append(f"{pair_title(at)} {mean.mean:.1f} against {cell.mean:.1f}")
        if points:
            yield reproduced(methods.title(method), points, ", ".join(numbers))


def _place(arguments: Arguments) -> str:
    return f"{arguments['source']}-{arguments['target']}"


TEXT = (
    "A classifier learns from labelled images of a source and unlabelled images of a target, while the information "
    "between its features and those that tell the domain is kept small. The accuracy is that on the target's test "
    "images, of the checkpoint with the best accuracy on the target's validation images: the paper's rule. The preset "
    "CPU has fewer channels and steps: its numbers compare methods with each other, not with the paper. Needs --data."
)
TABLE3 = Experiment(
    name="table3",
    short="Table 3",
    title="Domain adaptation by disentanglement",
    text=TEXT,
    source="Table 3 (tab:da_results, 3 seeds), read from the paper's LaTeX source",
    run=run,
    presets={
        "paper": partial(_trials, SEEDS),
        "cpu": partial(_trials, SEEDS),
        "quick": partial(_trials, 1),
    },
    blocks=lambda records: each_preset(records, partial(_story, "table3")),
    verdicts=_verdicts,
    summary=lambda records: [_summary(records)],
    place=_place,
    check=check,
    files=_files,
)
NETWORKS = Experiment(
    name="table3-networks",
    short="Table 3, networks",
    title="MNIST to MNIST-M with four configurations of each MI network",
    text="The configuration of each network was chosen by validation images of this pair. Needs --data.",
    source="table of architectures (tab:da_architectures); its values are not printed",
    run=partial(run, base="paper"),
    presets={"paper": partial(_networks, {}), "quick": partial(_networks, QUICK)},
    blocks=lambda records: [_network_table(records)],
    summary=lambda records: [_network_table(records)],
    place=_place,
    check=check,
    files=_files,
)


def _network_table(records: Sequence[Record]) -> Table:
    def network(record: Record) -> tuple[str, str, str]:
        options = record["arguments"].get("estimator", {})
        norm = "LayerNorm" if options.get("layer_norm") else "–"
        return method_of(record), str(options.get("activation", "–")), norm

    rows = tuple(
        (methods.title(method), activation, norm, *_accuracies(own))
        for (method, activation, norm), own in by(records, network).items()
    )
    head = ("method", "activation", "norm", "validation", "test")
    return Table("Accuracy on the target, percent", head, rows, 3)


def _accuracies(own: Sequence[Record]) -> tuple[str, ...]:
    names = ("validation_accuracy", "accuracy")
    return tuple(mean_of(own, percent_of(name)).text(lambda value: f"{value:.1f}") for name in names)
