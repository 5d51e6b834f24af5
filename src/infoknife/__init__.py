"""Measure information and train with it: entropy and mutual information, differentiable, on PyTorch."""

from infoknife import coordinates, erasure, kernels, measure, tasks, theory
from infoknife._version import __version__
from infoknife.densities import KNIFE, Autoregressive, Density, Flow, Gaussian, Logistic, Parzen, Schraudolph
from infoknife.estimators import MutualInformation, mi
from infoknife.leakage import Audit, audit
from infoknife.measure import (
    Estimate,
    entropy,
    mutual_information,
    normalized_mutual_information,
    permutation_test,
    total_correlation,
)
from infoknife.regularizer import Regularizer, RegularizerWarning, annealed
from infoknife.training import History, fit

__all__ = [
    "KNIFE",
    "Audit",
    "Autoregressive",
    "Density",
    "Estimate",
    "Flow",
    "Gaussian",
    "History",
    "Logistic",
    "MutualInformation",
    "Parzen",
    "Regularizer",
    "RegularizerWarning",
    "Schraudolph",
    "__version__",
    "annealed",
    "audit",
    "coordinates",
    "entropy",
    "erasure",
    "fit",
    "kernels",
    "measure",
    "mi",
    "mutual_information",
    "normalized_mutual_information",
    "permutation_test",
    "tasks",
    "theory",
    "total_correlation",
]
