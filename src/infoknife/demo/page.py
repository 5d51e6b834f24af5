"""The demo's tables, pictures and page, all of them through ``pictures``."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from infoknife.demo.parts import POINTS, Codes, LearnedDensity, MeasuredRelation
from infoknife.pictures import Bar, Bars, Chart, Colour, Panel, Section, Series, Table, page
from infoknife.pictures.charts import BLUE, ORANGE
from infoknife.pictures.style import Axes, Figure, laid_out, new_figure

PIXELS = 480  # of the density across
SHADES = ["#ffffff", "#fbe6da", "#efa27a", "#c8553d", "#6e1f14"]


class Learning(NamedTuple):
    """The picture's rows, the density that was learned from them, and samples of it, side by side."""

    found: LearnedDensity
    seed: int
    name: str = "density"
    title: str = "Rows, the density that was learned from them, and samples drawn from it"

    def colours(self) -> Iterator[Colour]:
        """All colours that it needs."""
        yield from (BLUE, ORANGE)

    def draw(self) -> Figure:
        """Draw it."""
        from matplotlib.colors import LinearSegmentedColormap

        picture, density = self.found.picture, self.found.density
        figure = new_figure((10.0, 2.4))
        data, learned, samples = figure.subplots(1, 3)
        (left, right), (bottom, top) = picture.box
        across, up = torch.linspace(left, right, PIXELS), torch.linspace(bottom, top, round(0.65 * PIXELS))
        with torch.no_grad():
            blocks = torch.cartesian_prod(up, across).flip(-1).split(1 << 14)
            values = torch.cat([density.log_prob(block) for block in blocks]).exp().view(len(up), len(across))
        shown = values.sqrt().numpy()  # the root shows the faint parts too
        colours = LinearSegmentedColormap.from_list("density", SHADES)
        learned.imshow(shown, origin="lower", extent=(left, right, bottom, top), cmap=colours)
        _scatter(data, picture.sample(POINTS, self.seed), BLUE)
        _scatter(samples, density.sample(POINTS, seed=self.seed), ORANGE)
        for axes in (data, learned, samples):
            axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
            axes.set_axis_off()
        return laid_out(figure)


def _scatter(axes: Axes, points: torch.Tensor, colour: Colour) -> None:
    axes.scatter(*points.T.numpy(), s=1.5, c=colour.light, alpha=0.5, linewidths=0, rasterized=True)


def relations_table(found: Sequence[MeasuredRelation]) -> Table:
    """Estimates and truths in nats."""
    rows = []
    for one in found:
        low, high = one.estimate.interval()
        ours = f"{one.estimate.value:.3f} ± {one.estimate.stderr:.3f}"
        ends = f"{low:.3f} to {high:.3f}" if high < math.inf else f"at least {low:.3f}"
        rows.append((one.title, f"{one.truth:.3f}", ours, ends, f"{one.ksg:.3f}"))
    head = ("relation of y to x", "truth", "infoknife", "95 % interval", "KSG")
    return Table(f"I(X; Y) in nats, from {len(found[0].x):,} rows", head, tuple(rows))


def codes_table(codes: Codes) -> Table:
    """What the strongest attacker and the label's probe reach."""
    rows = []
    for words, found in (("plain", codes.plain), ("regularized", codes.hidden)):
        assert found.label is not None
        label, private = found.label.strongest.balanced_accuracy, found.strongest.balanced_accuracy
        rows.append((words, f"{label:.1%}", f"{private:.1%}", f"{found.information.value:.3f}"))
    head = ("code", "five or more (to keep)", "odd or even (to hide)", "nats about it")
    title = "What the strongest of four attackers reads from codes of unseen digits"
    return Table(f"{title}; chance is 50 %, and the label alone gives odd or even away in 60 %", head, tuple(rows))


def density_table(found: LearnedDensity) -> Table:
    """The picture's entropy."""
    row = ("the picture", f"{found.picture.entropy():.3f}", f"{found.estimate:.3f} ± {found.stderr:.3f}")
    return Table("Entropy in nats, on fresh rows", ("density of", "truth", "KNIFE"), (row,))


def html(found: Sequence[MeasuredRelation], codes: Codes, density: LearnedDensity, seed: int, command: str) -> str:
    """Return the whole page."""
    first = found[0]
    rows = Series("rows", BLUE, "dots", first.x[:1000, 0].tolist(), first.y[:1000, 0].tolist())
    curve = Chart("relation", f"The first relation: {first.title}", "x", "y", (Panel("", (rows,)),))
    bars = tuple(
        Bar(f"{probe.name}, {words}", probe.balanced_accuracy, probe.stderr, words)
        for words, audited in (("plain", codes.plain), ("regularized", codes.hidden))
        for probe in audited.probes
    )
    title = "How often attackers name the hidden class: balanced accuracy"
    attackers = Bars("attackers", title, bars, (("chance", 0.5),))
    sections = [
        Section(
            "measure",
            "Measure",
            "How much does x tell you about y?",
            "A number in nats with an interval, from rows that nothing was fitted to. KSG, the usual nearest-neighbour "
            "estimate, comes without an interval.",
            (relations_table(found), curve),
        ),
        Section(
            "train",
            "Train",
            "A code that keeps one thing and hides another",
            "The same number, differentiable, in the loss of a network. How well it worked is audited on unseen rows.",
            (codes_table(codes), attackers),
        ),
        Section(
            "density",
            "Density",
            "128 Gaussian kernels learn a picture",
            "Positions, shapes and weights of kernels are learned. The mean of -log p over new rows is the entropy.",
            (density_table(density), Learning(density, seed)),
        ),
    ]
    return page("infoknife in three pictures", f"Everything on this page was computed by: {command}", sections)
