"""Entropies and mutual information of data, measured on rows that nothing was fitted to, with their uncertainty."""

from infoknife.estimation.answers import MeasurementWarning
from infoknife.estimation.candidates.catalogue import methods
from infoknife.estimation.certificate import Certificate
from infoknife.estimation.estimate import Diagnostics, Estimate
from infoknife.estimation.measure import entropy, mutual_information, total_correlation
from infoknife.estimation.normalized import normalized_mutual_information
from infoknife.estimation.permutation import PermutationTest, permutation_test

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
