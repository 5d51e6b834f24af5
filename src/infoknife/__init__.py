"""Measure information and train with it: entropy and mutual information, differentiable, on PyTorch."""

from infoknife import kernels, theory, transforms
from infoknife._version import __version__
from infoknife.densities import KNIFE, Density
from infoknife.training import History, fit

__all__ = ["KNIFE", "Density", "History", "__version__", "fit", "kernels", "theory", "transforms"]
