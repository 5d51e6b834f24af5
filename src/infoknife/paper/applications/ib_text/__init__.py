"""The information bottleneck over a pretrained encoder of texts (paper, section 4.1)."""

from typing import TYPE_CHECKING, Any

from infoknife.paper.applications.ib_text.data import TASKS, PairColumns, PairData, TextPairs, load_pairs, task_key
from infoknife.paper.applications.ib_text.settings import METHODS, BottleneckSettings

if TYPE_CHECKING:
    from infoknife.paper.applications.ib_text.model import Bottleneck, BottleneckConfig, BottleneckOutput
    from infoknife.paper.applications.ib_text.train import data_of, load_model, tune

__all__ = [
    "METHODS",
    "TASKS",
    "Bottleneck",
    "BottleneckConfig",
    "BottleneckOutput",
    "BottleneckSettings",
    "PairColumns",
    "PairData",
    "TextPairs",
    "data_of",
    "load_model",
    "load_pairs",
    "task_key",
    "tune",
]

LATER = {"model": ("Bottleneck", "BottleneckConfig", "BottleneckOutput"), "train": ("data_of", "load_model", "tune")}


def __getattr__(name: str) -> Any:
    """Import what needs transformers when it is asked for."""
    import importlib

    for module, names in LATER.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
