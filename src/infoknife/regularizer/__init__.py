"""Information in the loss of a network: ``Regularizer``, its limits and its health."""

from infoknife.regularizer.health import Health, RegularizerWarning
from infoknife.regularizer.limits import annealed
from infoknife.regularizer.regularizer import Regularizer

__all__ = ["Health", "Regularizer", "RegularizerWarning", "annealed"]
