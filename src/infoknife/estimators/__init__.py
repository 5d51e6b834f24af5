"""Estimators of mutual information behind one interface, and ``mi``, which makes them by name."""

from infoknife.estimators.base import Bound, Facts, MutualInformation
from infoknife.estimators.catalogue import mi, names

__all__ = ["Bound", "Facts", "MutualInformation", "mi", "names"]
