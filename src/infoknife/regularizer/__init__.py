"""Training a network with an estimator beside it: the names that users need."""

from infoknife.regularizer.health import Health, RegularizerWarning
from infoknife.regularizer.regularizer import Regularizer
from infoknife.regularizer.weights import annealed

__all__ = ["Health", "Regularizer", "RegularizerWarning", "annealed"]
