"""The paper's experiments: frozen descriptions, trials that run once, records, reports.

Example:
    >>> from infoknife.paper import experiments
    >>> "table1" in experiments.names()
    True
"""

from infoknife.paper.experiments.catalogue import get, names, select
from infoknife.paper.experiments.experiment import PRESETS, Experiment
from infoknife.paper.experiments.runner import run
from infoknife.paper.experiments.store import Store, read_records
from infoknife.paper.experiments.trial import Outcome, Trial

__all__ = ["PRESETS", "Experiment", "Outcome", "Store", "Trial", "get", "names", "read_records", "run", "select"]
