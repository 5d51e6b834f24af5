"""Table 3: domain adaptation on six pairs of image sets (section 4.3)."""

import itertools
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from infoknife.paper.applications import domain_adaptation
from infoknife.paper.engine import methods
from infoknife.paper.engine.records import NOTHING, Frame, Mean, grouped, mean_of, means, numeric, percents
from infoknife.paper.engine.trial import Arguments, Experiment, Outcome, RunContext
from infoknife.paper.engine.verdicts import DEVIATIONS, Point, Verdict, compared_on_shared, reproduced
from infoknife.paper.experiments.applied import (
    Row,
    cost_table,
    each_preset,
    in_order,
    mean_curve,
    outcome,
    panels_chart,
    percent_table,
    rivals_of,
    settings_of,
    whole_mean,
    with_titles,
)
from infoknife.paper.experiments.entropies import curve
from infoknife.pictures import Block, Chart, Confusion, Fold, Panel, Series, Table
from infoknife.pictures.charts import BLUE, ORANGE, settled_range

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
QUICK = {"channels": 16, "size": 16, "steps": 100, "batch_size": 32, "every": 50}


def pair_title(pair: Pair) -> str:
    """Source and target: with the letters of the paper for its own pairs, in full for others.

    Examples:
        >>> pair_title(("mnist", "mnistm")), pair_title(("digits", "mnist5k"))
        ('M → MM', 'digits → mnist5k')
    """
    return " → ".join(LETTERS[name] if pair in PAIRS else name for name in pair)


TITLES = [pair_title(pair) for pair in PAIRS]
PUBLISHED = {
    name: dict(zip([*TITLES, "mean"], (Mean(*cell, SEEDS) for cell in row), strict=True))
    for name, row in ACCURACIES.items()
}


def run(arguments: Arguments, context: RunContext, base: str | None = None) -> Outcome:
    """Train one pair with one method; a trial that was killed goes on from its checkpoint."""
    settings = settings_of(domain_adaptation.AdaptationSettings, base or context.preset, arguments)
    source, target = _pair(settings.source, settings.target, folder=context.data, size=settings.size)
    return outcome(domain_adaptation.adapt(settings, source, target, **context.where), settings)


def check(arguments: Arguments, data: Path | None) -> None:
    """Raise where the images of a trial are not there."""
    domain_adaptation.check_pair(arguments["source"], arguments["target"], data)


def _files(arguments: Arguments, data: Path | None) -> list[Path]:
    if data is None or not data.is_dir():
        return []
    names = {arguments["source"], arguments["target"]}
    return sorted(
        path for name in names for path in (data / f"{name}.npz", *data.glob(f"{name}_*.npz")) if path.is_file()
    )


_pair = lru_cache(maxsize=1)(domain_adaptation.load_pair)  # trials of a pair follow each other


def _trials(seeds: int) -> Iterator[Arguments]:
    for seed in range(seeds):
        for source, target in PAIRS:
            for method in (BASE, *rivals_of(BASE, methods.DOMAINS)):
                yield {"source": source, "target": target, "method": method, "seed": seed}


def _networks(sizes: Mapping[str, int]) -> Iterator[Arguments]:
    """The four configurations of each MI network, on the pair whose validation images chose among them."""
    source, target = PAIRS[0]
    for method in (name for name in rivals_of(BASE, methods.DOMAINS) if name not in {"dann", "coral"}):
        for activation, layer_norm in itertools.product(("relu", "tanh"), (False, True)):
            network = {"activation": activation, "layer_norm": layer_norm}
            shared = {"source": source, "target": target, "method": method, "seed": 0, "estimator": network}
            yield {**shared, **sizes}


# what records say


def _paired(runs: Frame) -> Frame:
    """Add the pair of each run, and titles that tell which KNIFE it was."""
    pairs = map(pair_title, zip(runs["source"], runs["target"], strict=True))
    return with_titles(runs.assign(pair=list(pairs)))


def accuracy_table(runs: Frame, caption: str, column: str = "accuracy", paper: bool = True) -> Table:
    """An accuracy by method and pair, with the paper's under ours."""
    pairs, rows = in_order(runs["pair"], TITLES), []
    for (method, title), own in grouped(runs, ["method", "title"]):
        found = means(own, "pair", column, 100.0)
        published = PUBLISHED.get(method, {}) if paper else {}
        ours, theirs = ([cells.get(pair, NOTHING) for pair in pairs] for cells in (found, published))
        whole = published.get("mean", NOTHING) if pairs == TITLES else NOTHING
        rows.append(Row(title, methods.title(method), ours, theirs, whole_mean(ours), whole))
    return percent_table(caption, pairs, rows)


def _summary(runs: Frame) -> Table:
    return accuracy_table(
        runs, "Accuracy on the target, percent, mean ± deviation over seeds; the best of ours stands out"
    )


def _story(preset: str, runs: Frame) -> Iterator[Block | None]:
    yield _summary(runs)
    last = "Accuracy of the last checkpoint on the target, percent; the paper does not report it"
    more = (
        accuracy_table(runs, last, "last_accuracy", paper=False),
        accuracy_table(runs, "Accuracy on the source, percent", "source_accuracy", paper=False),
    )
    yield Fold("The last checkpoint, and the source", more)
    yield cost_table(runs, BASE, "pair", "pairs")
    title = "Accuracy on the target's validation images while training, mean over seeds"
    yield _curves(runs, "target_accuracy", f"table3-accuracy-{preset}", title, "percent", 100.0)
    title = "Estimated information between both encoders while training, mean over seeds"
    yield _curves(runs, "information", f"table3-information-{preset}", title, "nats", 1.0)
    for pair in in_order(runs["pair"], TITLES):
        own = runs[runs["pair"] == pair]
        ending = f"{own['source'].iloc[0]}-{own['target'].iloc[0]}-{preset}"
        blocks = _features(own, f"table3-features-{ending}"), _confusion(own, f"table3-confusion-{ending}")
        yield Fold(f"Features and confusions: {pair}", tuple(filter(None, blocks)))


def _curves(runs: Frame, column: str, chart: str, title: str, unit: str, scale: float) -> Chart | None:
    """A panel for each pair, a line for each method."""
    panels = []
    for pair in in_order(runs["pair"], TITLES):
        lines = []
        for method, own in grouped(runs[runs["pair"] == pair], "method"):
            steps, found = mean_curve(own, "step", column)
            lines += [curve(method, steps, [scale * mean for mean in found])] if steps else []
        if lines:
            panels.append(Panel(pair, tuple(reversed(lines)), settled_range(lines) if scale == 1 else None))
    return panels_chart(chart, title, "step", unit, panels, 3)


def _features(runs: Frame, name: str) -> Chart | None:
    """Two principal components of the features of a pair: before training, and after with every method's first run."""
    found = _first_runs(runs, "features")
    before = [Panel("Before training", dots) for features in found.values() if (dots := _dots(features, "before"))][:1]
    after = [
        Panel(methods.title(method), dots) for method, features in found.items() if (dots := _dots(features, "after"))
    ]
    title = f"Features, {runs['pair'].iloc[0]}: source and target, two principal components, first seed"
    return panels_chart(name, title, "component 1", "component 2", [*before, *after], 5)


def _confusion(runs: Frame, name: str) -> Confusion | None:
    """The confusion on the target's test images of a pair, without and with KNIFE, first run."""
    found = {m: rows for m, rows in _first_runs(runs, "confusion").items() if m in {BASE, "knife"}}
    sizes = {len(row) for rows in found.values() for row in (rows, *rows)}
    if len(sizes) != 1:  # none, or not square
        return None
    matrices = tuple((methods.title(m), tuple(tuple(map(int, row)) for row in rows)) for m, rows in found.items())
    classes = next(iter(_first_runs(runs, "classes").values()), None) or range(*sizes)
    title = f"Confusion on the target, {runs['pair'].iloc[0]}: true classes by row, first seed"
    return Confusion(name, title, tuple(map(str, classes)), matrices)


def _first_runs(runs: Frame, column: str) -> dict[str, Any]:
    """The first result of each method that has such: without a regularizer, then KNIFE and the others."""
    found = grouped(runs[runs[column].notna()], "method")[column].first().to_dict()
    return dict(sorted(found.items(), key=lambda item: item[0] != BASE))


def _dots(features: Mapping[str, Any], when: str) -> tuple[Series, ...]:
    """Source and target of one picture; nothing where the record does not have it."""
    rows = list(zip(*(features.get(when, {}).get(name, ()) for name in ("x", "y", "domain")), strict=False))
    parts = (("target", ORANGE, [row for row in rows if row[2]]), ("source", BLUE, [row for row in rows if not row[2]]))
    return tuple(
        Series(name, colour, "dots", [row[0] for row in part], [row[1] for row in part])
        for name, colour, part in parts
        if part
    )


def _verdicts(runs: Frame) -> Iterator[Verdict]:
    """KNIFE against its rivals, against training without it and DANN, on the pairs that all have; and the paper."""
    if runs["preset"].iloc[0] == "paper":
        for method, own in grouped(runs, "method"):
            row, published = means(own, "pair", "accuracy", 100.0), PUBLISHED.get(method, {})
            points = [
                Point(at, mean, published[at], DEVIATIONS * (published[at].std or 0.0), 100.0)
                for at, mean in row.items()
                if at in published
            ]
            yield from reproduced(methods.title(method), points, percents)
    cells = runs.assign(accuracy=100.0 * numeric(runs, "accuracy")).pivot_table("accuracy", "pair", "method")
    cells = cells.reindex(in_order(cells.index, TITLES))
    rivals = [name for name in dict.fromkeys(runs["method"]) if name != "knife" and name in cells]
    alone = [name for name in (BASE, "dann") if name in rivals]
    for group in ([name for name in rivals if name not in alone], *([name] for name in alone)):
        if not group or "knife" not in cells:
            continue
        ours = runs.loc[runs["method"] == "knife", "title"].iloc[0]
        what = lambda shared: f"mean accuracy, percent, of {', '.join(shared.index)}"  # noqa: E731
        yield from compared_on_shared(ours, cells, "knife", group, what, goal=100.0)


def _network_table(runs: Frame) -> Table:
    rows = []
    for (title, activation, norm), own in grouped(runs, ["title", "activation", "norm"]):
        cells = (mean_of(own, name, 100.0).text(percents) for name in ("validation_accuracy", "accuracy"))
        rows.append((title, activation, "LayerNorm" if norm else "–", *cells))
    head = ("method", "activation", "norm", "validation", "test")
    return Table("Accuracy on the target, percent", head, tuple(rows), 3)


def _configured(runs: Frame) -> Frame:
    activation, norm = ([options.get(name) for options in runs["estimator"]] for name in ("activation", "layer_norm"))
    return runs.assign(activation=activation, norm=norm)


TEXT = (
    "A classifier learns from labelled images of a source and unlabelled images of a target, while the information "
    "between its features and those that tell the domain is kept small. The accuracy is that on the target's test "
    "images, of the checkpoint with the best accuracy on the target's validation images: the paper's rule. The preset "
    "CPU has fewer channels and steps: its numbers compare methods with each other, not with the paper. Needs --data."
)
SHARED: dict[str, Any] = {
    "place": lambda arguments: f"{arguments['source']}-{arguments['target']}",
    "check": check,
    "files": _files,
}
TABLE3 = Experiment(
    name="table3",
    short="Table 3",
    title="Domain adaptation by disentanglement",
    text=TEXT,
    source="Table 3 (tab:da_results, 3 seeds), read from the paper's LaTeX source",
    run=run,
    presets={"paper": partial(_trials, SEEDS), "cpu": partial(_trials, SEEDS), "quick": partial(_trials, 1)},
    blocks=each_preset(_story),
    verdicts=_verdicts,
    summary=lambda runs: [_summary(runs)],
    needs=("source", "target"),
    columns=("estimator", "features", "confusion", "classes"),
    derive=_paired,
    **SHARED,
)
NETWORKS = Experiment(
    name="table3-networks",
    short="Table 3, networks",
    title="MNIST to MNIST-M with four configurations of each MI network",
    text="The configuration of each network was chosen by validation images of this pair. Needs --data.",
    source="table of architectures (tab:da_architectures); its values are not printed",
    run=partial(run, base="paper"),
    presets={"paper": partial(_networks, {}), "quick": partial(_networks, QUICK)},
    blocks=lambda runs: [_network_table(runs)],
    summary=lambda runs: [_network_table(runs)],
    needs=("source", "target", "estimator"),
    derive=_configured,
    **SHARED,
)
