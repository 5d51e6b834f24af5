"""Plausible records of fair text classification, made up with a seed: the same each time."""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from infoknife.paper.experiments.fig4 import WEIGHTS, Strength, published
from tests.paper.engine.record_factory import Record, failure, record

METHODS = ("knife", "doe", "club", "infonce", "mine", "nwj", "adv")


def learned(
    preset: str,
    corpus: str,
    method: str,
    weight: float = 0.0,
    seed: int = 0,
    limit: float | None = None,
    **results: Any,
) -> Record:
    """A run with all its results; those that are given stand for its own."""
    random = Random(f"{preset}{corpus}{method}{weight}{seed}")
    main, hidden = published(corpus, method, Strength(False, weight)) or (70.0, 60.0)
    private = random.gauss(hidden, 1.0) / 100
    leak = max(0.0, 2 * (private - 0.5) ** 2)
    own = {
        "main_accuracy": random.gauss(main, 0.5) / 100,
        "majority": 0.5,
        "private_accuracy": private,
        "private_chance": 0.5,
        "probe": "linear",
        "probes": {"linear": private},
        "leak": leak,
        "leak_stderr": 0.01,
        "leak_interval": [max(0.0, leak - 0.02), leak + 0.02],
        "private_entropy": 0.6931,
        "truth": 0.2704 if corpus == "synthetic" else None,
        "held_out": 2000,
        "seconds_per_step": 0.01 if method == "none" else 0.012,
    }
    return record("fig4", preset, _arguments(corpus, method, weight, seed, limit), results=own | results)


def lost(preset: str, corpus: str, method: str, weight: float = 0.0, seed: int = 0) -> Record:
    """A run that failed."""
    return failure("fig4", preset, "nan", **_arguments(corpus, method, weight, seed))


def figure4(preset: str, corpora: Sequence[str] = tuple(WEIGHTS), seeds: int = 3) -> Iterator[Record]:
    """All methods with all weights."""
    for corpus in corpora:
        for seed in range(seeds):
            yield learned(preset, corpus, "none", 0.0, seed)
            yield from (learned(preset, corpus, m, w, seed) for m in METHODS for w in WEIGHTS.get(corpus, (0.1, 1.0)))


def _arguments(corpus: str, method: str, weight: float, seed: int, limit: float | None = None) -> dict[str, Any]:
    return {"corpus": corpus, "method": method, "weight": weight, "at_most": limit, "seed": seed, "steps": 500}
