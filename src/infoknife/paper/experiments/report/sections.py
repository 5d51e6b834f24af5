"""What a report says, section by section: tables, charts and a few sentences."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from infoknife.paper.experiments import published
from infoknife.paper.experiments.report import adaptation, benchmark, charts, contents, fair_text, ib_text, words
from infoknife.paper.experiments.report.charts import Chart
from infoknife.paper.experiments.report.confusion import Confusion
from infoknife.paper.experiments.report.tables import Table
from infoknife.paper.experiments.summary import Record, by, in_order, kind, pair, pairs, view

__all__ = ["Block", "Fold", "Heading", "Section", "flat", "sections"]


class Heading(NamedTuple):
    """A heading inside a section."""

    text: str


class Fold(NamedTuple):
    """Blocks that are folded away until they are asked for."""

    title: str
    blocks: "tuple[Block, ...]"


Block = Heading | Table | Chart | Confusion | Fold


class Section(NamedTuple):
    """One experiment, or one side of all."""

    name: str
    title: str
    text: str
    blocks: tuple[Block, ...]


Write = Callable[[str, Sequence[Record]], Iterator[Block | None]]

DRAWS = "Every run draws its own mixture, and the paper drew others: the difficulty differs a lot from draw to draw."
TEXTS = {
    "table1": "The entropy of N(0, I), from fresh rows after training. The smaller, the better.",
    "fig1-shrinking": "The variance of a Gaussian is halved from level to level; the estimate follows as it trains.",
    "fig2-pdf": "Ten triangles of random widths and weights in one dimension: a density with corners and gaps.",
    "fig2-triangle8": f"Two triangles in every coordinate: 256 modes. {DRAWS}",
    "triangle20": f"Two triangles in every coordinate: a million modes. {DRAWS}",
    "fig3-gaussian": "Correlated Gaussians in 20 dimensions. The mutual information steps up from 2 to 10 nats while "
    "estimators train.",
    "fig3-cubic": "The same with y cubed, which leaves the truth as it is.",
    "fig3-uniform": "Sums of uniforms: nothing here is Gaussian. The paper shows the best of ten runs.",
    "bias-variance": "Another view of the same runs: over all seeds, at the end of each level. The variance is that "
    "within a run plus that between the means of runs; MSE = bias² + variance.",
    "table2": "A pretrained encoder of texts learns a task while λ times the information between its representation z "
    "and the text is kept small. Metrics are those of validation pairs, with z at its mean, of the epoch with the best "
    "ones: the paper's rule. The paper fine-tunes BERT; with another encoder the numbers compare methods with each "
    "other, not with the paper. On MRPC the paper prints F1 below the accuracy; usually it is above.",
    "fig4": "A classifier of texts learns a label while λ times the information between its features and a private "
    "attribute is kept small. The main accuracy is that of the label on test texts; the private accuracy is the "
    "balanced accuracy of the strongest of several probes on features of held-out texts, so that chance is one over "
    "the number of classes. The paper has one probe. Dotted lines and small dots are the paper's. The preset CPU has "
    "a small encoder: its numbers compare methods with each other, not with the paper.",
    "table3": "A classifier learns from labelled images of a source and unlabelled images of a target, while the "
    "information between its features and those that tell the domain is kept small. The accuracy is that on the "
    "target's test images, of the checkpoint with the best accuracy on the target's validation images: the paper's "
    "rule. A method that has all pairs has their mean, with the mean of the deviations. The preset CPU has fewer "
    "channels and steps: its numbers compare methods with each other, not with the paper.",
    "bench": "All estimators learn from the same samples and are measured on samples that they have not seen. The "
    "smaller the error, the better. A mean that lacks tasks, as an estimator failed there, says on how many it is.",
}
STAIRS = "fig3-gaussian", "fig3-cubic", "fig3-uniform"


def sections(records: Sequence[Record]) -> list[Section]:
    """All experiments in the paper's order, those that the report does not know last, then the runs themselves."""
    groups = by(records, lambda record: str(record["experiment"]))
    known = [name for name in _WRITERS if name in groups]
    found = [_section(name, groups[name]) for name in known]
    if climbs := [record for name in STAIRS for record in groups.get(name, [])]:
        place = 1 + max(i for i, section in enumerate(found) if section.name in STAIRS)
        found.insert(place, _part("bias-variance", TEXTS["bias-variance"], _bias_variance(climbs)))
    found += [_section(name, group) for name, group in groups.items() if name not in _WRITERS]
    return [*found, _part("runs", "", _runs(records))]


def flat(blocks: Iterable[Block]) -> Iterator[Block]:
    """All blocks, those that are folded away among them."""
    for block in blocks:
        yield from flat(block.blocks) if isinstance(block, Fold) else (block,)


def _section(name: str, group: Sequence[Record]) -> Section:
    write = _WRITERS.get(name, _anything)
    if not any(record["results"] for record in group):
        write = _anything
    source = published.source(name)
    text = " ".join([TEXTS.get(name, ""), f"Published: {source}." if source else ""]).strip()
    return _part(name, text, write(name, group))


def _part(name: str, text: str, blocks: Iterator[Block | None]) -> Section:
    return Section(name, words.title(name), text, _kept(blocks))


def _kept(blocks: Iterable[Block | None]) -> tuple[Block, ...]:
    """Leave out what has nothing to show."""
    kept = [Fold(block.title, _kept(block.blocks)) if isinstance(block, Fold) else block for block in blocks]
    return tuple(block for block in kept if block is not None and _filled(block))


def _filled(block: Block) -> bool:
    if isinstance(block, Table):
        return bool(block.rows)
    return not isinstance(block, Fold) or bool(block.blocks)


def _table1(name: str, group: Sequence[Record]) -> Iterator[Block | None]:
    yield contents.error_means(group)
    yield from _each_preset(name, group, charts.training)
    yield from _details(group)


def _triangles(name: str, group: Sequence[Record]) -> Iterator[Block | None]:
    yield contents.error_means(group)
    yield from _each_preset(name, group, charts.draws)
    yield Fold("Every draw", (contents.by_draw(group),))
    yield from _details(group)


def _pdf(name: str, group: Sequence[Record]) -> Iterator[Block | None]:
    yield contents.error_means(group)
    yield contents.divergences(group)
    yield from _each_preset(name, group, charts.pdf)
    yield from _details(group)


def _shrinking(name: str, group: Sequence[Record]) -> Iterator[Block | None]:
    yield from _each_preset(name, group, charts.shrinking)
    yield contents.averages(group)
    yield from _each_preset(f"{name}-levels", group, charts.level_statistics)
    yield Fold("Every level", (contents.level_means(group), contents.by_level(group)))
    yield from _details(group)


def _stairs(name: str, group: Sequence[Record]) -> Iterator[Block | None]:
    yield from _each_preset(name, group, charts.climbing)
    yield contents.level_means(group)
    yield from _details(group)


def _tuba(name: str, group: Sequence[Record]) -> Iterator[Block | None]:
    for stairs, part in by(group, view).items():
        yield Heading(words.title(stairs))
        yield from _each_preset(stairs, part, charts.climbing)
        yield contents.level_means(part)
    yield from _details(group)


def _bench(name: str, group: Sequence[Record]) -> Iterator[Block | None]:
    for preset, own in by(in_order(group), lambda record: str(record["preset"])).items():
        for what, part in sorted(by(own, kind).items()):
            yield Heading(f"{what.capitalize()}, {words.preset(preset).lower()}")
            yield benchmark.by_size(part)
            yield charts.bench_sizes(part, f"{name}-{what}-{preset}")
            yield benchmark.gradients(part)
            yield from _tasks(part)
    yield from _details(group)


def _tasks(part: Sequence[Record]) -> Iterator[Block]:
    """Every task: with the most samples in sight, the others folded away."""
    most, *fewer = benchmark.by_task(part).items()
    yield most[1]
    yield from (Fold(f"Every task with {n:,} samples", (table,)) for n, table in fewer)


def _ib_text(name: str, group: Sequence[Record]) -> Iterator[Block | None]:
    for preset, own in by(in_order(group), lambda record: str(record["preset"])).items():
        yield Heading(words.preset(preset))
        yield from ib_text.scores(own)
        yield from ib_text.planes(own, f"{name}-plane-{preset}")
        yield from ib_text.information(own)
        yield Fold("Every K and λ", tuple(ib_text.choices(own)))
        yield ib_text.costs(own)
    yield from _details(group)


def _fair_text(name: str, group: Sequence[Record]) -> Iterator[Block | None]:
    for preset, own in by(in_order(group), lambda record: str(record["preset"])).items():
        yield Heading(words.preset(preset))
        yield fair_text.curves(own, f"{name}-{preset}")
        yield from fair_text.tradeoffs(own)
        yield fair_text.plane(own, f"{name}-plane-{preset}")
        yield Fold("Information that is left", tuple(fair_text.leaks(own)))
        yield fair_text.costs(own)
    yield from _details(group)


def _adaptation(name: str, group: Sequence[Record]) -> Iterator[Block | None]:
    for preset, own in by(in_order(group), lambda record: str(record["preset"])).items():
        yield Heading(words.preset(preset))
        yield adaptation.accuracy(own)
        yield Fold("The last checkpoint, and the source", (adaptation.last(own), adaptation.source(own)))
        yield adaptation.costs(own)
        yield adaptation.accuracy_curves(own, f"{name}-accuracy-{preset}")
        yield adaptation.information_curves(own, f"{name}-information-{preset}")
        for which in pairs(own):
            part, ending = [record for record in own if pair(record) == which], f"{'-'.join(which)}-{preset}"
            blocks = (
                adaptation.features(part, f"{name}-features-{ending}"),
                adaptation.confusion(part, f"{name}-confusion-{ending}"),
            )
            yield Fold(f"Features and confusions: {words.pair(which)}", tuple(b for b in blocks if b is not None))
    yield from _details(group)


def _anything(name: str, group: Sequence[Record]) -> Iterator[Block | None]:
    yield contents.any_results(group)
    yield from _details(group)


def _bias_variance(climbs: Sequence[Record]) -> Iterator[Block | None]:
    for stairs, group in by(climbs, view).items():
        yield Heading(words.title(stairs))
        yield contents.averages(group)
        yield from _each_preset(f"bias-variance-{stairs.removeprefix('fig3-')}", group, charts.level_statistics)
        yield Fold("Every level", (contents.by_level(group),))


def _runs(records: Sequence[Record]) -> Iterator[Block | None]:
    yield contents.failures(records)
    yield contents.trials(records)
    yield contents.machines(records)


def _each_preset(
    name: str, group: Sequence[Record], draw: Callable[[Sequence[Record], str], Chart | None]
) -> Iterator[Block | None]:
    for preset, part in by(group, lambda record: str(record["preset"])).items():
        chart = draw(part, f"{name}-{preset}")
        if chart is not None:
            yield chart._replace(title=f"{words.preset(preset)}: {chart.title[0].lower()}{chart.title[1:]}")


def _details(group: Sequence[Record]) -> Iterator[Block | None]:
    yield contents.chosen(group)
    for preset, part in by(group, lambda record: str(record["preset"])).items():
        yield Fold(f"Settings: {words.preset(preset).lower()}", (contents.settings(part),))


_WRITERS: dict[str, Write] = {
    "table1": _table1,
    "fig1-shrinking": _shrinking,
    "fig2-pdf": _pdf,
    "fig2-triangle8": _triangles,
    "triangle20": _triangles,
    "fig3-gaussian": _stairs,
    "fig3-cubic": _stairs,
    "fig3-uniform": _stairs,
    "tuba": _tuba,
    "table2": _ib_text,
    "fig4": _fair_text,
    "table3": _adaptation,
    "bench": _bench,
}
