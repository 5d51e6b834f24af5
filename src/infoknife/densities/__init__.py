"""Densities: learnable, conditional or not, each its own entropy estimator."""

from infoknife.densities.base import Density
from infoknife.densities.knife import KNIFE

__all__ = ["KNIFE", "Density"]
