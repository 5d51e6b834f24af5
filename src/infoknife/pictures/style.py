"""One style for all figures: colours for light and dark ground, figures as files and inside a page."""

import io
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

Figure = Any  # matplotlib's, which is an extra
Axes = Any

XLINK_HREF = "{http://www.w3.org/1999/xlink}href"
NARROW = 5.0  # inches: what fits a small screen without scrolling
NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))


class Colour(NamedTuple):
    """A colour on light and on dark ground."""

    light: str
    dark: str


INK = Colour("#1f2933", "#e4e7eb")
SOFT = Colour("#5a6775", "#a3adb9")
FAINT = Colour("#9aa5b1", "#616e7c")
LINE = Colour("#e1e5ea", "#343d48")
GROUND = Colour("#ffffff", "#1c222a")
BASICS = (INK, SOFT, FAINT, LINE, GROUND)


def new_figure(size: tuple[float, float], title: str = "") -> Figure:
    """Make an empty figure of so many inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, facecolor=GROUND.light, dpi=150)
    figure.set_layout_engine("constrained", w_pad=0.06, h_pad=0.06)
    if title:
        figure.suptitle(label_text(title, round(8 * size[0])), color=INK.light, fontsize=12)
    return figure


def styled(name: str) -> Any:
    """A context in which figures are drawn and written; the same name gives the same file."""
    import matplotlib as mpl

    inks = ("text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor", "xtick.color", "ytick.color")
    settings: Any = {"font.size": 9, "svg.hashsalt": name, "svg.fonttype": "none", **dict.fromkeys(inks, INK.light)}
    return mpl.rc_context(settings)


def shortened(text: str, longest: int) -> str:
    """Leave out the middle of a text that is too long: its ends tell it from others.

    Examples:
        >>> shortened("gene_expression_01", 10), shortened("gene", 10)
        ('gene…on_01', 'gene')
    """
    keep = longest - 1
    return text if len(text) <= longest else f"{text[: keep // 2]}…{text[len(text) - (keep + 1) // 2 :]}"


def label_text(text: object, longest: int = 80) -> str:
    """One line that matplotlib takes for no formula, without its middle where it is too long.

    Examples:
        >>> label_text("$x$"), label_text("the number of days without rain", 18)
        ('\\\\$x\\\\$', 'the numb…hout rain')
    """
    return shortened(" ".join(str(text).split()), longest).replace("$", r"\$")


def style_axes(axes: Axes, title: object = "", *, x: str = "", y: str = "") -> None:
    """Two spines, small letters, and text that is no formula."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT.light)
    axes.tick_params(labelsize=8, color=FAINT.light, labelcolor=INK.light, which="both")
    axes.set_axisbelow(True)
    axes.set_title(title, fontsize=9, color=INK.light)
    axes.set_xlabel(x, fontsize=9, color=INK.light)
    axes.set_ylabel(y, fontsize=9, color=INK.light)


def laid_out(figure: Figure) -> Figure:
    """Place everything, once: that is the slow part of writing a figure."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def svg(figure: Figure) -> str:
    """A figure as the text of an SVG file."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata=NO_METADATA)
    return text.getvalue()


def save(figure: Figure, drawing: str, stem: Path) -> list[Path]:
    """Write a figure as PNG, and as the SVG that it was drawn as; return the paths."""
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "svg")]
    figure.savefig(paths[0], dpi=150, metadata={"Software": None})
    paths[1].write_text(drawing, encoding="utf-8")
    return paths


def variables(colours: Iterable[Colour]) -> tuple[str, str]:
    """The colours as custom properties of a style sheet: on light ground, on dark ground.

    Examples:
        >>> variables([Colour("#ffffff", "#000000")])
        ('--ffffff: #ffffff;', '--ffffff: #000000;')
    """
    found = sorted({*colours})
    light = " ".join(f"--{colour.light[1:]}: {colour.light};" for colour in found)
    return light, " ".join(f"--{colour.light[1:]}: {colour.dark};" for colour in found)


def markup(drawing: str, label: str) -> str:
    """A drawing as an element of a page that follows the page's colours, with no style that a strict policy refuses.

    Colours become custom properties of the page, see ``variables``; declarations of style become attributes; names
    that nothing refers to go.
    """
    root = ElementTree.fromstring(drawing)
    used = {*re.findall(r"#(\w+)[)\"]", drawing)}
    for parent in root.iter():
        for child in [child for child in parent if child.tag.endswith(("style", "metadata"))]:
            parent.remove(child)
    for element in root.iter():
        _plain(element, used)
    if float(root.get("width", "0pt").removesuffix("pt")) < 72 * NARROW:
        root.set("class", "narrow")
    root.attrib |= {"role": "img", "aria-label": label, "stroke-linejoin": "round", "font-family": "sans-serif"}
    return ElementTree.tostring(root, encoding="unicode")


def _plain(element: ElementTree.Element, used: set[str]) -> None:
    element.tag = element.tag.rpartition("}")[2]
    if element.get("id") not in used:
        element.attrib.pop("id", None)
    if XLINK_HREF in element.attrib:
        element.set("href", element.attrib.pop(XLINK_HREF))
    for declaration in filter(None, element.attrib.pop("style", "").split(";")):
        name, value = (part.strip() for part in declaration.split(":", 1))
        if name != "font-family":
            element.set(name, f"var(--{value[1:]}, {value})" if value.startswith("#") else value)
