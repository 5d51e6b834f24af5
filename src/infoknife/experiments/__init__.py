"""The paper's experiments: frozen descriptions, trials that run once, records, reports.

Example:
    >>> from infoknife import experiments
    >>> "table1" in experiments.names()
    True
"""

from infoknife.experiments.catalogue import get, names, select
from infoknife.experiments.experiment import PRESETS, Experiment
from infoknife.experiments.runner import run
from infoknife.experiments.store import Store, read_records
from infoknife.experiments.trial import Outcome, Trial

__all__ = ["PRESETS", "Experiment", "Outcome", "Store", "Trial", "get", "names", "read_records", "run", "select"]
