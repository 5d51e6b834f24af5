"""Measure information and train with it: entropy and mutual information, differentiable, on PyTorch."""

from infoknife import kernels, theory, transforms
from infoknife._version import __version__
from infoknife.densities import KNIFE, Density, Gaussian, Logistic, Parzen, Schraudolph
from infoknife.training import History, fit
from infoknife.transforms import Standardize, Whiten

__all__ = [
    "KNIFE",
    "Density",
    "Gaussian",
    "History",
    "Logistic",
    "Parzen",
    "Schraudolph",
    "Standardize",
    "Whiten",
    "__version__",
    "fit",
    "kernels",
    "theory",
    "transforms",
]
