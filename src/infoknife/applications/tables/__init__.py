"""Tables of texts and labels, read from files and the hub, split and coded: what the applications on text share."""

from infoknife.applications.tables.classes import Coded, check_every_split, coded
from infoknife.applications.tables.hub import read_hub
from infoknife.applications.tables.reading import read_table
from infoknife.applications.tables.splits import SPLITS, Rows, drawn, split_rows
from infoknife.applications.tables.table import Request, Table, check_names, shown

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
