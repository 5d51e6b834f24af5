"""Plausible records of every experiment, made up with a seed: the same each time."""

import hashlib
import json
import math
from collections.abc import Iterator
from random import Random
from typing import Any

Record = dict[str, Any]

VERSIONS = {"infoknife": "0.1.0", "torch": "2.13.0", "numpy": "2.4.6", "python": "3.11.2"}
MACHINE = {"system": "Linux", "processor": "x86_64", "cores": 2}
ENTROPY_ERRORS = {  # preset, dim: method: mean and deviation of the error
    ("paper", 10): {"knife": (0.048, 0.011), "schraudolph": (0.72, 0.04), "doe": (0.53, 0.4)},
    ("paper", 64): {"knife": (2.60, 0.03), "schraudolph": (9.72, 0.15), "doe": (3.52, 1.8)},
    ("ours", 10): {"knife": (0.012, 0.008), "schraudolph": (0.2, 0.02), "doe": (0.008, 0.004)},
    ("ours", 64): {"knife": (0.05, 0.03), "schraudolph": (4.0, 0.1), "doe": (0.08, 0.02)},
    ("paper", 8): {"knife": (1.7, 0.8), "schraudolph": (2.4, 0.5), "doe": (7.0, 2.0)},
    ("ours", 8): {"knife": (0.4, 0.1), "schraudolph": (2.0, 0.5), "doe": (6.0, 2.0)},
    ("paper", 20): {"knife": (10.5, 5.0), "schraudolph": (13.0, 5.0), "doe": (20.0, 6.0)},
    ("ours", 20): {"knife": (2.5, 1.0), "schraudolph": (9.0, 3.0), "doe": (16.0, 5.0)},
    ("paper", 1): {"knife": (0.06, 0.01), "schraudolph": (0.1, 0.02), "doe": (0.9, 0.1)},
    ("ours", 1): {"knife": (0.01, 0.002), "schraudolph": (0.08, 0.01), "doe": (0.9, 0.1)},
}
SLOPES = {  # of the estimate over the truth
    "knife": 0.995,
    "knife-joint": 0.98,
    "doe": 0.86,
    "club": 1.22,
    "infonce": 0.42,
    "mine": 0.29,
    "nwj": 0.2,
    "tuba": 0.76,
}
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


def entropy(experiment: str, preset: str, method: str, dim: int, seed: int, *, error: float, **more: Any) -> Record:
    """A trial of an entropy: estimate and curve end where the error says."""
    random, truth = Random(f"{experiment}{preset}{method}{dim}{seed}"), 1.4189 * dim
    steps = [(i + 1) * 100 for i in range(200)]
    falling = [truth + error + 1.2 * dim * math.exp(-i / 25) + random.gauss(0, 0.03 * dim) for i in range(200)]
    arguments = {"method": method, "dim": dim, "seed": seed, "steps": 20_000, "batch_size": 128, "lr": 0.001}
    results = {"truth": truth, "estimate": truth + error, "stderr": 0.01, "error": error} | more.pop("results", {})
    curves = {"step": steps, "estimate": falling, "truth": [truth] * 200} | more.pop("curves", {})
    return record(experiment, preset, arguments, results=results, curves=curves, **more)


def staircase(
    experiment: str,
    preset: str,
    method: str,
    seed: int,
    *,
    means: tuple[float, ...],
    truths: tuple[float, ...] = LEVELS,
    variance: float = 0.04,
    **arguments: Any,
) -> Record:
    """A trial on a staircase that ends every level at its mean."""
    random = Random(f"{experiment}{preset}{method}{seed}{arguments}")
    each, scale = 80, math.sqrt(variance)
    estimate, before = list[float](), 0.0
    for mean in means:
        estimate += [mean + (before - mean) * math.exp(-i / 8) + random.gauss(0, scale) for i in range(each)]
        before = mean
    steps = [(i + 1) * 50 for i in range(len(estimate))]
    levels = [
        {"truth": t, "mean": m, "bias": m - t, "variance": variance, "mse": (m - t) ** 2 + variance}
        for t, m in zip(truths, means, strict=True)
    ]
    curves = {"step": steps, "estimate": estimate, "truth": [t for t in truths for _ in range(each)]}
    settings = {
        "method": method,
        "dim": 20,
        "seed": seed,
        "steps": 20_000,
        "batch_size": 128,
        "lr": 0.001,
        "clip": None,
    }
    return record(experiment, preset, settings | arguments, results={"levels": levels}, curves=curves, seconds=95.0)


def table1(runs: int = 20) -> Iterator[Record]:
    for preset, dim in (("paper", 10), ("paper", 64), ("ours", 10), ("ours", 64)):
        yield from entropies("table1", preset, dim, runs)


def entropies(experiment: str, preset: str, dim: int, runs: int) -> Iterator[Record]:
    for seed in range(runs):
        for method, (mean, std) in ENTROPY_ERRORS[preset, dim].items():
            error = abs(Random(f"{preset}{dim}{method}{seed}").gauss(mean, std))
            chosen = {"chosen": "autoregressive", "candidates": {"mixture": 5.1, "autoregressive": 4.9}}
            more = {"results": chosen} if (preset, method) == ("ours", "knife") else {}
            yield entropy(experiment, preset, method, dim, seed, error=error, **more)


def pdf() -> Iterator[Record]:
    random = Random(0)
    x = [i / 20 for i in range(20, 231)]
    widths, weights = [random.uniform(0.1, 1) for _ in range(10)], [random.random() for _ in range(10)]
    total = sum(weights)
    true = [
        sum(
            w / total / s * max(0.0, 2 - 4 * abs(v - i - 1.5) / s)
            for i, (s, w) in enumerate(zip(widths, weights, strict=True))
        )
        for v in x
    ]
    for preset in ("paper", "ours"):
        for method, blur in (("knife", 1), ("schraudolph", 4), ("doe", 60)):
            rough = [
                sum(true[max(0, i - blur) : i + blur + 1]) / len(true[max(0, i - blur) : i + blur + 1])
                for i in range(len(x))
            ]
            curves = {"x": x, "pdf": rough, "true_pdf": true}
            error = ENTROPY_ERRORS[preset, 1][method][0]
            yield entropy("fig2-pdf", preset, method, 1, 0, error=error, results={"kl": error}, curves=curves)


def shrinking() -> Iterator[Record]:
    truths = tuple(90.81 - 22.18 * i for i in range(5))
    for preset in ("paper", "ours"):
        for method, off, growth in (("knife", 2.6, 0.3), ("schraudolph", 9.7, 6.0), ("doe", 2.0, 0.5)):
            means = tuple(truth + off + growth * i for i, truth in enumerate(truths))
            yield staircase("fig1-shrinking", preset, method, 0, means=means, truths=truths, variance=0.5, dim=64)


def figure3(runs: int = 3) -> Iterator[Record]:
    for name in ("gaussian", "cubic", "uniform"):
        for preset in ("paper", "ours"):
            for method, slope in SLOPES.items():
                if method != "tuba" and (preset, method) != ("paper", "knife-joint"):
                    for seed in range(runs):
                        random = Random(f"{name}{method}{seed}")
                        means = tuple(slope * t + random.gauss(0, 0.05) for t in LEVELS)
                        yield staircase(f"fig3-{name}", preset, method, seed, means=means, staircase=name)


def tuba(runs: int = 2) -> Iterator[Record]:
    for preset in ("paper", "ours"):
        for name in ("gaussian", "cubic"):
            for seed in range(runs):
                yield staircase("tuba", preset, "tuba", seed, means=tuple(0.76 * t for t in LEVELS), staircase=name)


def bench() -> Iterator[Record]:
    for method, level in (("knife", 0.08), ("ksg", 0.25), ("mine", 0.12), ("infonce", 0.2)):
        for task, factor in (("multinormal-dense-5", 1.0), ("student-identity-3-3", 1.6), ("swissroll", 0.4)):
            for n in (1000, 5000, 10_000):
                arguments = {"method": method, "task": task, "quantity": "mutual_information", "n": n, "seed": 0}
                error = level * factor * math.sqrt(1000 / n)
                results = {"truth": 1.0, "estimate": 1.0 + error, "error": error}
                yield record("bench", "standard", arguments, results=results, seconds=3.0)
    message = "FloatingPointError: the loss is nan at step 7; lower lr"
    yield failure(
        "bench", "standard", message, method="nwj", task="swissroll", quantity="mutual_information", n=1000, seed=0
    )


def everything() -> list[Record]:
    """All experiments, some failures, and one that no report knows."""
    unknown = {"method": "knife", "seed": 0, "source": "mnist"}
    return [
        *table1(),
        *(r for preset in ("paper", "ours") for r in entropies("fig2-triangle8", preset, 8, 10)),
        *(r for preset in ("paper", "ours") for r in entropies("triangle20", preset, 20, 10)),
        *pdf(),
        *shrinking(),
        *figure3(),
        *tuba(),
        *bench(),
        failure("table1", "paper", "FloatingPointError: the loss is nan at step 7", method="doe", dim=64, seed=20),
        record("table3", "ours", unknown, results={"accuracy": 0.951, "by_class": {"zero": 0.99}}, seconds=600.0),
    ]
