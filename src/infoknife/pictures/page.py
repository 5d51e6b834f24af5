"""One page shell: a page in one file that needs no network and runs no script."""

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.resources import files
from typing import NamedTuple

from infoknife.pictures.charts import Picture
from infoknife.pictures.style import BASICS, markup, styled, svg, variables
from infoknife.pictures.tables import Table


class Heading(NamedTuple):
    """A heading inside a section."""

    text: str


class Items(NamedTuple):
    """A list of sentences."""

    texts: tuple[str, ...]


class Badge(NamedTuple):
    """One line of a judgement: ``kind`` is ``"good"``, ``"even"`` or ``"bad"``."""

    kind: str
    word: str
    subject: str
    text: str


class Badges(NamedTuple):
    """Judgements on one matter."""

    title: str
    badges: tuple[Badge, ...]


class Fold(NamedTuple):
    """Blocks that are folded away until they are asked for."""

    title: str
    blocks: "tuple[Block, ...]"


Block = Heading | Items | Table | Picture | Badges | Fold


class Section(NamedTuple):
    """A part of a page with a link at its top."""

    name: str  # of the link
    short: str  # its text
    title: str  # the heading, after the short one
    text: str  # a few sentences
    blocks: tuple[Block, ...]


def flat(blocks: Iterable[Block]) -> Iterator[Block]:
    """All blocks, those that are folded away among them."""
    for block in blocks:
        yield from flat(block.blocks) if isinstance(block, Fold) else (block,)


def slug(name: str) -> str:
    """A name for a file or an element, whatever it is made from.

    Examples:
        >>> slug("../fig 3")
        '..-fig-3'
    """
    return re.sub(r"[^\w.-]", "-", name)


def drawn(picture: Picture) -> str:
    """Draw a picture as markup."""
    with styled(picture.name):
        return markup(svg(picture.draw()), picture.title)


def page(
    title: str,
    lead: str,
    sections: Sequence[Section],
    *,
    links: Sequence[tuple[str, str]] = (),
    draw: Callable[[Picture], str] = drawn,
) -> str:
    """Write a page with links to files next to it: all text is escaped, and the page may load and run nothing."""
    from jinja2 import Environment, PackageLoader

    shown = [block for section in sections for block in flat(section.blocks)]
    light, dark = variables([*BASICS, *(c for block in shown if isinstance(block, Picture) for c in block.colours())])
    sheet = files("infoknife.pictures").joinpath("page.css").read_text(encoding="utf-8")
    sheet = sheet.replace("/* light */", light).replace("/* dark */", dark)
    environment = Environment(
        loader=PackageLoader("infoknife.pictures", ""), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"drawn": draw, "slug": slug, "kind": _kind}
    template = environment.get_template("page.html")
    digest = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    return template.render(title=title, lead=lead, sections=sections, links=links, sheet=sheet, digest=digest) + "\n"


def _kind(block: Block) -> str:
    return "picture" if isinstance(block, Picture) else type(block).__name__.lower()
