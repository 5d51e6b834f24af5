"""The leakage audit: what features tell about a private attribute, and what an attacker can do with it."""

from infoknife.leakage.audit import audit
from infoknife.leakage.probes import Probe
from infoknife.leakage.result import (
    Allowed,
    Audit,
    ClassLeak,
    Grade,
    Label,
    Predictability,
    accuracy_ceiling,
    least_error,
)
from infoknife.leakage.rows import find_identifier

__all__ = [
    "Allowed",
    "Audit",
    "ClassLeak",
    "Grade",
    "Label",
    "Predictability",
    "Probe",
    "accuracy_ceiling",
    "audit",
    "find_identifier",
    "least_error",
]
