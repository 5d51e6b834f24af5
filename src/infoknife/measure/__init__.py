"""Entropies and mutual information of data, measured on rows that nothing was fitted to, with their uncertainty."""

from infoknife.measure.candidates.catalogue import methods
from infoknife.measure.certificate import Certificate
from infoknife.measure.estimate import Diagnostics, Estimate
from infoknife.measure.interval import MeasurementWarning
from infoknife.measure.permutation import PermutationTest, permutation_test
from infoknife.measure.quantities import (
    entropy,
    mutual_information,
    normalized_mutual_information,
    total_correlation,
)

__all__ = [
    "Certificate",
    "Diagnostics",
    "Estimate",
    "MeasurementWarning",
    "PermutationTest",
    "entropy",
    "methods",
    "mutual_information",
    "normalized_mutual_information",
    "permutation_test",
    "total_correlation",
]
