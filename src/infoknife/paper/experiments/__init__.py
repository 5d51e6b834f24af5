"""The paper's experiments, a file for each table or figure.

Examples:
    >>> from infoknife.paper import experiments
    >>> "table1" in experiments.names()
    True
"""

from infoknife.paper.experiments.catalogue import EXPERIMENTS, get, names, select

__all__ = ["EXPERIMENTS", "get", "names", "select"]
