"""Measure information and train with it: entropy and mutual information, differentiable, on PyTorch."""

from infoknife import experiments, kernels, tasks, theory, transforms
from infoknife._version import __version__
from infoknife.densities import KNIFE, Autoregressive, Density, Gaussian, Logistic, Parzen, Schraudolph
from infoknife.information import MutualInformation, mi
from infoknife.training import History, fit
from infoknife.transforms import Standardize, Whiten

__all__ = [
    "KNIFE",
    "Autoregressive",
    "Density",
    "Gaussian",
    "History",
    "Logistic",
    "MutualInformation",
    "Parzen",
    "Schraudolph",
    "Standardize",
    "Whiten",
    "__version__",
    "experiments",
    "fit",
    "kernels",
    "mi",
    "tasks",
    "theory",
    "transforms",
]
