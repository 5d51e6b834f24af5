"""Measure information and train with it: entropy and mutual information, differentiable, on PyTorch.

Names are imported when they are first used, so that the command line answers before torch is loaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from infoknife._version import __version__

if TYPE_CHECKING:
    from infoknife import coordinates, erasure, kernels, measure, tasks, theory
    from infoknife.densities import KNIFE, Autoregressive, Density, Flow, Gaussian, Logistic, Parzen, Schraudolph
    from infoknife.estimators import MutualInformation, mi
    from infoknife.leakage.audit import audit
    from infoknife.leakage.result import Audit
    from infoknife.measure import (
        Estimate,
        entropy,
        interaction_information,
        lagged,
        mutual_information,
        normalized_mutual_information,
        permutation_test,
        total_correlation,
        transfer_entropy,
    )
    from infoknife.regularizer import Regularizer, RegularizerWarning, annealed
    from infoknife.representations import Comparison, compare
    from infoknife.training import History, fit

__all__ = [
    "KNIFE",
    "Audit",
    "Autoregressive",
    "Comparison",
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
    "compare",
    "coordinates",
    "entropy",
    "erasure",
    "fit",
    "interaction_information",
    "kernels",
    "lagged",
    "measure",
    "mi",
    "mutual_information",
    "normalized_mutual_information",
    "permutation_test",
    "tasks",
    "theory",
    "total_correlation",
    "transfer_entropy",
]

_ROOMS = (  # whose names these are
    "densities",
    "estimators",
    "measure",
    "training",
    "regularizer",
    "leakage",
    "representations",
)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'infoknife' has no attribute {name!r}")
    if name in ("coordinates", "erasure", "kernels", "measure", "tasks", "theory"):
        return import_module(f"infoknife.{name}")
    room = next(room for room in map(import_module, (f"infoknife.{room}" for room in _ROOMS)) if hasattr(room, name))
    return globals().setdefault(name, getattr(room, name))


def __dir__() -> list[str]:
    return __all__
