"""Tables of texts and labels, read from files and the hub, split and coded: what the applications on text share."""

from infoknife.paper.applications.tables.classes import Coded, check_every_split, coded
from infoknife.paper.applications.tables.hub import read_hub
from infoknife.paper.applications.tables.reading import read_table
from infoknife.paper.applications.tables.splits import SPLITS, Rows, drawn, split_rows
from infoknife.paper.applications.tables.table import Request, Table, check_names, shown

__all__ = [
    "SPLITS",
    "Coded",
    "Request",
    "Rows",
    "Table",
    "check_every_split",
    "check_names",
    "coded",
    "drawn",
    "read_hub",
    "read_table",
    "shown",
    "split_rows",
]
