"""The demo's figures, drawn with matplotlib, which is imported where it is needed."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from infoknife import KNIFE
from infoknife.demo.cases import Result
from infoknife.demo.drawing import Drawing
from infoknife.densities.knife import MarginalKernels

Axes = Any  # those of matplotlib, which is an extra
Figure = Any

DATA, LEARNED, FAINT, INK = "#2f6690", "#c8553d", "#9aa5b1", "#1f2933"
DENSITY = ["#ffffff", "#fbe6da", "#efa27a", "#c8553d", "#6e1f14"]
POINTS = 6_000  # dots in a scatter
PIXELS = 640  # of the density across


class Gallery(NamedTuple):
    """What the figures show: the picture, some of its rows, what was learned from it twice, and all results."""

    picture: Drawing
    rows: Tensor
    samples: Tensor
    results: list[Result]

    @property
    def density(self) -> KNIFE:
        """The density learned from the picture."""
        return self.results[0].density

    @classmethod
    def of(cls, picture: Drawing, results: list[Result], seed: int) -> "Gallery":
        """Draw as many rows from the picture as samples from the density learned from it."""
        samples = results[0].density.sample(POINTS, seed=seed)
        return cls(picture, picture.sample(POINTS, 2 * seed), samples, results)

    def write(self, folder: Path) -> None:
        """Write all figures into a folder, each under its name in ``FIGURES``."""
        for name, (size, dpi, paint) in FIGURES.items():
            figure = _figure(size)
            paint(figure, self)
            figure.savefig(folder / name, dpi=dpi)


@torch.no_grad()
def outlines(knife: KNIFE, radius: float = 2.0, corners: int = 48) -> Tensor:
    """The kernels of a density in the plane as closed lines (M, corners, 2): so many standard deviations around."""
    bank = knife.bank
    assert isinstance(bank, MarginalKernels)
    M, (_, means, shape) = knife.components, bank.plain(bank.means.dtype)
    angle = torch.linspace(0, 2 * math.pi, corners)
    circle = radius * torch.stack([angle.cos(), angle.sin()], -1).repeat(M, 1)  # M corners, 2
    kernel = torch.arange(M).repeat_interleave(corners)
    points = means[kernel] + bank.covariance.unproject(circle, bank.covariance.select(shape, kernel))
    return knife.coordinates.inverse(points).view(M, corners, 2)


def _figure(size: tuple[float, float]) -> Figure:
    from matplotlib import figure as canvas

    figure = canvas.Figure(figsize=size, facecolor="white")
    figure.set_layout_engine("constrained", w_pad=0.08, h_pad=0.08)
    return figure


def _data(axes: Axes, gallery: Gallery) -> None:
    _scatter(axes, gallery, gallery.rows, DATA)


def _samples(axes: Axes, gallery: Gallery) -> None:
    _scatter(axes, gallery, gallery.samples, LEARNED)


def _scatter(axes: Axes, gallery: Gallery, points: Tensor, colour: str) -> None:
    x, y = points.T.numpy()
    axes.scatter(x, y, s=2.2, c=colour, alpha=0.55, linewidths=0)
    _frame(axes, gallery)


def _density(axes: Axes, gallery: Gallery, opacity: float = 1.0) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    (left, right), (bottom, top) = gallery.picture.box
    across = torch.linspace(left, right, PIXELS)
    up = torch.linspace(bottom, top, round(PIXELS * (top - bottom) / (right - left)))
    points = torch.cartesian_prod(up, across).flip(-1)
    with torch.no_grad():
        values = torch.cat([gallery.density.log_prob(block) for block in points.split(1 << 14)]).exp()
    colours = LinearSegmentedColormap.from_list("density", DENSITY)
    image = values.view(len(up), len(across)).sqrt().numpy()  # the root shows the faint parts too
    extent = left, right, bottom, top
    axes.imshow(image, origin="lower", extent=extent, cmap=colours, alpha=opacity, interpolation="bilinear")
    _frame(axes, gallery)


def _kernels(axes: Axes, gallery: Gallery) -> None:
    from matplotlib.collections import LineCollection

    _density(axes, gallery, opacity=0.35)
    lines = outlines(gallery.density)
    axes.add_collection(LineCollection(list(lines.numpy()), colors=INK, linewidths=0.4, alpha=0.8))
    x, y = lines[:, :-1].mean(1).T.numpy()  # the last corner is the first again
    axes.scatter(x, y, s=2, c=INK, linewidths=0)


def _frame(axes: Axes, gallery: Gallery) -> None:
    (left, right), (bottom, top) = gallery.picture.box
    axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    axes.set_axis_off()


def _learning(axes: Axes, gallery: Gallery) -> None:
    from_data, from_noise = gallery.results[:2]
    for result, colour, name in (from_noise, DATA, "paper's start"), (from_data, LEARNED, "start from data"):
        losses, (at, held_out) = result.history.losses, zip(*result.history.validation, strict=True)
        axes.plot(range(1, len(losses) + 1), losses, color=colour, linewidth=0.5, alpha=0.25)
        axes.plot(at, held_out, color=colour, marker="o", markersize=3, label=name)
    axes.axhline(from_data.case.truth, color=INK, linewidth=1, linestyle="--", label="true entropy")
    axes.set(xlabel="step", ylabel="mean of −log p, nats")
    axes.legend(frameon=False)
    _clean(axes)


def _errors(axes: Axes, gallery: Gallery) -> None:
    places = range(len(gallery.results), 0, -1)
    errors, bars = [r.error for r in gallery.results], [2 * r.stderr for r in gallery.results]
    axes.axvline(0, color=INK, linewidth=1, linestyle="--")
    axes.errorbar(errors, places, xerr=bars, fmt="o", color=LEARNED, markersize=5, capsize=3, linewidth=1.2)
    axes.set_yticks(places, [r.case.title for r in gallery.results])
    axes.set(xlabel="estimate − truth, nats (bars: two standard errors)", ylim=(0.4, len(errors) + 0.6))
    _clean(axes)


def _clean(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=9)
    axes.grid(color="#e4e7eb", linewidth=0.6)
    axes.set_axisbelow(True)


def _overview(figure: Figure, gallery: Gallery) -> None:
    titles = "data", "learned density", "samples drawn from it"
    painters: list[Callable[..., None]] = [_data, _density, _samples]
    panels = zip(figure.subplots(1, 3), titles, painters, strict=True)
    for axes, title, paint in panels:
        paint(axes, gallery)
        axes.set_title(title, color=INK, fontsize=12)


def _single(paint: Callable[[Axes, Gallery], None]) -> Callable[[Figure, Gallery], None]:
    return lambda figure, gallery: paint(figure.subplots(), gallery)


_PANEL, _CHART, _BANNER = ((3.6, 2.34), 250), ((6.0, 3.9), 150), ((10.0, 2.35), 150)  # inches, dots per inch
FIGURES: dict[str, tuple[tuple[float, float], int, Callable[[Figure, Gallery], None]]] = {
    "data.png": (*_PANEL, _single(_data)),
    "density.png": (*_PANEL, _single(_density)),
    "samples.png": (*_PANEL, _single(_samples)),
    "kernels.png": (*_PANEL, _single(_kernels)),
    "learning.png": (*_CHART, _single(_learning)),
    "errors.png": (*_CHART, _single(_errors)),
    "overview.png": (*_BANNER, _overview),
}
