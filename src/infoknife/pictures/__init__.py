"""Every picture and page: plain data in, one style out. Needs matplotlib and jinja2: ``infoknife[plot]``.

A chart or a table is plain data; nothing here knows where its numbers come from.
"""

from infoknife.pictures.charts import Bar, Bars, Chart, Confusion, Panel, Picture, Series
from infoknife.pictures.page import Badge, Badges, Block, Fold, Heading, Items, Section, page
from infoknife.pictures.style import Colour
from infoknife.pictures.tables import Table

__all__ = [
    "Badge",
    "Badges",
    "Bar",
    "Bars",
    "Block",
    "Chart",
    "Colour",
    "Confusion",
    "Fold",
    "Heading",
    "Items",
    "Panel",
    "Picture",
    "Section",
    "Series",
    "Table",
    "page",
]
