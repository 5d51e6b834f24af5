"""The story that experiments on entropies share: the |error| over runs beside the paper's, and curves of training."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from infoknife.paper.engine import methods
from infoknife.paper.engine.records import (
    Mean,
    Record,
    by,
    error,
    failed,
    in_order,
    mean_of,
    method_of,
    preset_of,
    preset_title,
    signed,
)
from infoknife.paper.engine.verdicts import Point, Verdict, compared, reproduced, spread
from infoknife.pictures import Block, Chart, Panel, Series, Table
from infoknife.pictures.charts import TRUTH, settled

Published = Mapping[tuple[str, int], Mean]  # |error| in nats by method and dimension


def density_of(record: Record) -> str:
    """The density behind a record: the method, or what held-out rows chose in its place.

    Example:
        >>> density_of({"arguments": {"method": "knife"}, "results": {"chosen": "autoregressive-96"}})
        'autoregressive'
    """
    chosen = str(record["results"].get("chosen", ""))
    return "autoregressive" if chosen.startswith("autoregressive") else method_of(record)


def error_table(records: Sequence[Record], published: Published) -> Table:
    """Mean |error| over runs by density and dimension, a column for each preset, the paper's beside them."""
    presets = list(by(in_order(records), preset_of))
    cells = by(in_order(records), lambda r: (r["arguments"].get("dim") or 0, density_of(r)))
    keys = sorted(
        {*cells, *((dim, method) for method, dim in published if any(dim == d for d, _ in cells))}, key=_place
    )
    rows = []
    for dim, density in keys:
        own = by(cells.get((dim, density), ()), preset_of)
        paper = published.get((density, dim))
        means = (mean_of(own[preset], error).text() if preset in own else "–" for preset in presets)
        rows.append((methods.title(density), str(dim or "–"), *means, "–" if paper is None else paper.text()))
    strong = tuple(i for i, (_, density) in enumerate(keys) if methods.is_ours(density))
    head = ("density", "d", *map(preset_title, presets), "published")
    return Table("Mean |estimate − truth| ± deviation over runs, nats", head, tuple(rows), strong=strong)


def error_verdicts(records: Sequence[Record], published: Published) -> Iterator[Verdict]:
    """Whether published errors are reproduced; and of our presets, whether they are beaten, and rivals with them."""
    for dim, group in by(in_order(records), lambda r: r["arguments"].get("dim") or 0).items():
        means = {name: mean_of(own, error) for name, own in by(group, density_of).items()}
        for name, mean in means.items():
            subject = f"{methods.title(name)}, d={dim}"
            lost = f"; {mean.failures} of {mean.runs} runs failed" if mean.failures else ""
            paper = published.get(("knife" if methods.is_ours(name) else name, dim))
            if preset_of(group[0]) != "paper":
                rivals = {} if paper is None else {"the paper": paper}
                yield from _known(compared(subject, mean, rivals, "mean |error|, nats", more=lost))
            elif paper is not None and mean.mean is not None and paper.mean is not None:
                points = [Point("", mean.mean, paper.mean, spread(paper))]
                yield reproduced(subject, points, f"{mean.text()} against {paper.text()}")
            elif paper is not None:
                yield from _known(compared(subject, mean, {"the paper": paper}, "mean |error|, nats"))
        if preset_of(group[0]) != "paper":
            others = {methods.title(name): mean for name, mean in means.items() if not methods.is_ours(name)}
            for name in filter(methods.is_ours, means):
                subject = f"{methods.title(name)}, d={dim}"
                yield from _known(compared(subject, means[name], others, "mean |error|, nats"))


def draw_table(records: Sequence[Record]) -> Table:
    """The error of every draw, with its sign: draws differ a lot in difficulty."""
    good = [record for record in in_order(records) if not failed(record) and "error" in record["results"]]
    columns = by(good, lambda record: (preset_of(record), density_of(record)))
    values = {key: {r["arguments"].get("seed"): r["results"]["error"] for r in group} for key, group in columns.items()}
    seeds = sorted({seed for column in values.values() for seed in column}, key=lambda seed: seed or 0)
    rows = tuple((str(seed), *(signed(column.get(seed)) for column in values.values())) for seed in seeds)
    head = ("draw", *(f"{methods.title(name)}, {preset_title(preset).lower()}" for preset, name in columns))
    return Table("Estimate − truth by draw, nats", head, rows)


def chosen_table(records: Sequence[Record]) -> Table:
    """Which density the held-out rows chose, and how often."""
    picks = [record for record in in_order(records) if "chosen" in record["results"]]
    groups = by(picks, lambda record: (preset_of(record), str(record["results"]["chosen"])))
    rows = tuple((kind, preset_title(preset), str(len(group))) for (preset, kind), group in groups.items())
    return Table("Densities that held-out rows chose in KNIFE's place", ("chosen", "preset", "runs"), rows, 2)


def training_charts(
    name: str,
    records: Sequence[Record],
    panel: Callable[[Record], tuple[str, Any]],
    pick: Callable[[Sequence[Record]], Record],
    title: str,
    columns: int,
) -> Iterator[Block]:
    """Curves of training, a chart for each preset.

    Args:
        name: Of the charts.
        records: Of one experiment.
        panel: What a panel shows, in words, and where it stands.
        pick: Which run of a density a panel shows.
        title: What the charts show.
        columns: Panels side by side.
    """
    good = [r for r in in_order(records) if not failed(r) and r["curves"].get("step") and "error" in r["results"]]
    for preset, own in by(good, preset_of).items():
        groups = sorted(by(own, panel).items(), key=lambda item: item[0][1] or 0)
        panels = tuple(
            runs_panel(at, [pick(runs) for runs in by(group, density_of).values()]) for (at, _), group in groups
        )
        whole = f"{preset_title(preset)}: {title}"
        yield Chart(f"{name}-{preset}", whole, "step", "nats", panels, min(columns, len(panels)))


def median_run(runs: Sequence[Record]) -> Record:
    """The run in the middle by |error|, the better of two."""
    return sorted(runs, key=lambda run: error(run) or 0.0)[(len(runs) - 1) // 2]


def runs_panel(title: str, runs: Sequence[Record]) -> Panel:
    """A line for each run, ours on top, and the truth of the first."""
    lines = [curve(density_of(run), run["curves"]["step"], run["curves"]["estimate"]) for run in reversed(runs)]
    first = runs[0]["curves"]
    truth = Series("truth", TRUTH, "truth", first["step"], first["truth"])
    return Panel(title, (*lines, truth), settled([*lines, truth]))


def curve(name: str, x: Sequence[float], y: Sequence[float], style: str = "line") -> Series:
    """A curve of a method in its colour."""
    method = methods.get(name)
    return Series(method.title, method.colour, style, x, y, method.marker, methods.is_ours(name))


def _place(key: tuple[int, str]) -> tuple[int, int, str]:
    return key[0], methods.rank(key[1]), key[1]


def _known(verdict: Verdict | None) -> Iterator[Verdict]:
    if verdict is not None:
        yield verdict
