"""From records of fine-tuned encoders to what can be compared: the same encoder, the same training pairs."""

import json
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from infoknife.paper.experiments import published
from infoknife.paper.experiments.report import words
from infoknife.paper.experiments.summary import Record, by, failed, in_order, method_of

__all__ = ["BASE", "Ground", "best", "columns", "described", "ground", "grounds", "pairs", "setting", "task", "tasks"]

BASE = "none"  # training without a bottleneck
MINILM = "all-MiniLM-L6-v2"
METRICS = ("f1", "accuracy", "pearson", "spearman")
APART = {"task", "method", "seed", "encoder", "layers", "train_size"}  # arguments that are no setting of a method


class Ground(NamedTuple):
    """What runs share that can be compared: the encoder, its upper layers that learn, and the training pairs."""

    encoder: str
    layers: int | None
    train_size: int | None


def ground(record: Record) -> Ground:
    """The ground of a record.

    Example:
        >>> ground({"arguments": {"encoder": "minilm", "layers": 2, "train_size": 500}})
        Ground(encoder='minilm', layers=2, train_size=500)
    """
    arguments = record["arguments"]
    return Ground(str(arguments.get("encoder", "–")), arguments.get("layers"), arguments.get("train_size"))


def grounds(records: Iterable[Record]) -> dict[Ground, list[Record]]:
    """Records by ground: encoder by encoder, all training pairs first, then from many to few."""
    found = by(in_order(records), ground)
    return {each: found[each] for each in sorted(found, key=_place)}


def described(records: Sequence[Record]) -> str:
    """The encoder of a ground in words: its name, what it is, and how much of it learns."""
    at = ground(records[0])
    name = next((str(r["results"]["encoder_name"]) for r in records if "encoder_name" in r["results"]), at.encoder)
    tuned = ", tuned for sentences, not a raw BERT" if name == MINILM or at.encoder == "minilm" else ""
    learns = "all layers learn" if at.layers is None else f"the upper {words.several(at.layers, 'layer')} learn"
    return f"{name}{tuned}; {learns if at.layers != 1 else 'the uppermost layer learns'}"


def pairs(at: Ground) -> str:
    """The training pairs of a ground in words."""
    return "all training pairs" if at.train_size is None else f"{at.train_size:,} training pairs"


def task(record: Record) -> str:
    """The task of a record: its name, or the file and the column of a table of one's own.

    Example:
        >>> task({"arguments": {"task": "own", "label": "mood", "file": "posts.csv", "hub": None}})
        'posts.csv: mood'
    """
    arguments = record["arguments"]
    name = str(arguments.get("task", "–"))
    if name != "own":
        return name
    where, label = arguments.get("hub") or arguments.get("file"), str(arguments.get("label", "–"))
    return f"{where}: {label}" if where else label


def tasks(records: Iterable[Record]) -> list[str]:
    """All tasks: the paper's in its order, then others by name."""
    found = {task(record) for record in records}
    return [*(name for name in published.GLUE if name in found), *sorted(found - published.GLUE.keys())]


def columns(records: Sequence[Record]) -> list[tuple[str, str]]:
    """All tasks with their metrics: the paper's, or those that the records of another task have."""
    groups = by(records, task)
    return [(name, metric) for name in tasks(records) for metric in _metrics(name, groups[name])]


def setting(record: Record) -> str:
    """All other arguments of a run, but for task, method and seed, as one text."""
    return json.dumps({name: value for name, value in record["arguments"].items() if name not in APART}, sort_keys=True)


def best(records: Sequence[Record]) -> list[Record]:
    """Keep one setting of each method and task: the one with most runs, and of those with the best mean score.

    Args:
        records: Of one ground.
    """
    groups = by(records, lambda record: (method_of(record), task(record)))
    kept = [max(by(group, setting).values(), key=_worth) for group in groups.values()]
    return in_order(record for group in kept for record in group)


def _worth(group: Sequence[Record]) -> tuple[int, float]:
    scores = [float(r["results"]["score"]) for r in group if not failed(r) and "score" in r["results"]]
    return len(scores), fmean(scores) if scores else 0.0


def _metrics(name: str, group: Sequence[Record]) -> tuple[str, ...]:
    found = tuple(metric for metric in METRICS if any(metric in record["results"] for record in group))
    return published.GLUE.get(name, found)


def _place(at: Ground) -> tuple[str, int, bool, int]:
    return at.encoder, at.layers or 0, at.train_size is not None, -(at.train_size or 0)
