"""What runs experiments, keeps their records and reports them; it knows no experiment by name."""

from infoknife.paper.engine.report import judge, write
from infoknife.paper.engine.runner import run
from infoknife.paper.engine.store import Store, read_records
from infoknife.paper.engine.trial import Experiment, Outcome, RunContext, Trial

__all__ = [
    "Experiment",
    "Outcome",
    "RunContext",
    "Store",
    "Trial",
    "judge",
    "read_records",
    "run",
    "write",
]
