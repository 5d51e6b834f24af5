"""Every picture and page: plain data in, one style out. Needs matplotlib and jinja2: ``infoknife[plot]``.

A chart or a table is plain data; nothing here knows where its numbers come from.
"""

from infoknife.pictures.charts import Chart, Confusion, Panel, Series
from infoknife.pictures.page import Badge, Badges, Block, Fold, Heading, Section, page
from infoknife.pictures.style import Colour
from infoknife.pictures.tables import Table

__all__ = [
    "Badge",
    "Badges",
    "Block",
    "Chart",
    "Colour",
    "Confusion",
    "Fold",
    "Heading",
    "Panel",
    "Section",
    "Series",
    "Table",
    "page",
]
