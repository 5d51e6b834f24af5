"""The version of infoknife."""

__version__ = "0.2.0"
