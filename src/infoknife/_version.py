"""The version of infoknife."""

__version__ = "0.1.0"
