"""Entropies and mutual information of data, measured on rows that nothing was fitted to, with their uncertainty."""

from infoknife.measure.candidates import methods
from infoknife.measure.estimate import Certificate, Diagnostics, Estimate
from infoknife.measure.interval import MeasurementWarning
from infoknife.measure.permutation import PermutationTest, permutation_test
from infoknife.measure.quantities import (
    Interaction,
    entropy,
    interaction_information,
    mutual_information,
    normalized_mutual_information,
    total_correlation,
)
from infoknife.measure.series import Lagged, lagged, transfer_entropy

__all__ = [
    "Certificate",
    "Diagnostics",
    "Estimate",
    "Interaction",
    "Lagged",
    "MeasurementWarning",
    "PermutationTest",
    "entropy",
    "interaction_information",
    "lagged",
    "methods",
    "mutual_information",
    "normalized_mutual_information",
    "permutation_test",
    "total_correlation",
    "transfer_entropy",
]
