"""Records by hand."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

Record = dict[str, Any]

VERSIONS = {"infoknife": "0.1.0", "torch": "2.13.0", "numpy": "2.4.6", "python": "3.11.2"}
MACHINE = {"system": "Linux", "processor": "x86_64", "cores": 2}
LEVELS = (2.0, 4.0, 6.0, 8.0, 10.0)


def record(experiment: str, preset: str, arguments: dict[str, Any], **fields: Any) -> Record:
    """A record with its identity; `results` and `curves` among the fields."""
    whole = json.dumps([experiment, preset, arguments], sort_keys=True)
    return {
        "format": 1,
        "id": hashlib.sha256(whole.encode()).hexdigest()[:16],
        "experiment": experiment,
        "preset": preset,
        "arguments": arguments,
        "status": "done",
        "error": None,
        "results": {},
        "curves": {},
        "seconds": 12.3,
        "started": "2026-11-15T23:50:00+00:00",
        "versions": VERSIONS,
        "machine": MACHINE,
    } | fields


def failure(experiment: str, preset: str, error: str, **arguments: Any) -> Record:
    """A trial that failed."""
    return record(experiment, preset, arguments, status="failed", error=error)


def entropy(experiment: str, preset: str, method: str, dim: int, seed: int, error: float, **results: Any) -> Record:
    """A trial of an entropy, with a short curve."""
    truth = 1.4189 * dim
    results = {"truth": truth, "estimate": truth + error, "stderr": 0.01, "error": error} | results
    curves = {"step": [1.0, 2.0], "estimate": [truth + 3 * error, truth + error], "truth": [truth] * 2}
    arguments = {"method": method, "dim": dim, "seed": seed, "steps": 200, "lr": 0.001}
    return record(experiment, preset, arguments, results=results, curves=curves)


def entropies(experiment: str, preset: str, dim: int, runs: int) -> Iterator[Record]:
    """Three methods, KNIFE the best of them and near what the paper has for Table 1."""
    for seed in range(runs):
        for method, error in (("knife", 0.04), ("schraudolph", 0.7), ("doe", 0.8)):
            yield entropy(experiment, preset, method, dim, seed, error * (1 + 0.2 * seed))


def staircase(
    experiment: str, preset: str, method: str, seed: int, means: Sequence[float], *, variance: float = 0.04, **set_: Any
) -> Record:
    """A trial on a staircase that ends every level at its mean."""
    levels = [
        {"truth": t, "mean": m, "bias": m - t, "variance": variance, "mse": (m - t) ** 2 + variance}
        for t, m in zip(LEVELS, means, strict=False)
    ]
    curves = {"step": list(range(len(levels))), "estimate": list(means), "truth": list(LEVELS[: len(levels)])}
    arguments = {"method": method, "dim": 20, "seed": seed, "staircase": "cubic", "options": {"preset": "paper"}}
    return record(experiment, preset, arguments | set_, results={"levels": levels}, curves=curves)


def bench() -> Iterator[Record]:
    """Four methods, KNIFE the best, on three tasks, and a failure."""
    for method, level in (("knife", 0.08), ("ksg", 0.25), ("mine", 0.12), ("infonce", 0.2)):
        for task, factor in (("multinormal-dense-5", 1.0), ("student-identity-3-3", 1.6), ("swissroll", 0.4)):
            for n in (1000, 5000, 10_000):
                arguments = {"method": method, "task": task, "quantity": "mutual_information", "n": n, "seed": 0}
                error = level * factor * (1000 / n) ** 0.5
                results = {"truth": 1.0, "estimate": 1.0 + error, "error": error}
                yield record("bench", "standard", arguments, results=results, seconds=3.0)
    message = "FloatingPointError: the loss is nan at step 7; lower lr"
    yield failure(
        "bench", "standard", message, method="nwj", task="swissroll", quantity="mutual_information", n=1000, seed=0
    )
