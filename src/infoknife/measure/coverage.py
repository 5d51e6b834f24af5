"""How often intervals hold known truths: a table over distributions, numbers of rows and seeds."""

import json
import math
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean, median
from typing import Any, Protocol

from torch import Tensor

from infoknife.measure.candidates import Effort
from infoknife.measure.quantities import mutual_information

Record = dict[str, Any]
IDENTITY = ("case", "n", "seed", "effort")


class Known(Protocol):
    """A distribution of x and y, perhaps given z, that knows its mutual information."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def information(self) -> float:
        """The truth, in nats."""

    def sample(self, n: int, *, seed: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """Draw n rows of x, y and z."""


def measured(case: Known, n: int, seed: int, effort: Effort) -> Record:
    """Return what is measured on one sample, with the truth and the 95 % interval."""
    x, y, given = case.sample(n, seed=seed)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimate = mutual_information(x, y, given, effort=effort, seed=seed)
    low, high = estimate.interval()
    return {
        "case": case.name,
        "n": n,
        "seed": seed,
        "effort": effort,
        "truth": case.information,
        "value": estimate.value,
        "stderr": estimate.stderr,
        "low": low,
        "high": high,
        "method": estimate.diagnostics.method,
        "seconds": round(time.process_time() - start, 2),
    }


def run(
    cases: Sequence[Known],
    sizes: Iterable[int],
    seeds: Iterable[int],
    effort: Effort,
    path: Path,
    on_progress: Callable[[float, str], None],
) -> list[Record]:
    """Measure all that is not on record in the file, one JSON line each, and return the records of all."""
    wanted = [(case, n, seed) for n, case, seed in product(sizes, cases, seeds)]
    there = {tuple(record[key] for key in IDENTITY): record for record in read(path)}
    for i, (case, n, seed) in enumerate(wanted):
        on_progress(i / len(wanted), f"{case.name}, n={n:,}, seed {seed}")
        if (case.name, n, seed, effort) not in there:
            record = measured(case, n, seed, effort)
            there[case.name, n, seed, effort] = record
            with path.open("a") as file:
                file.write(json.dumps(record) + "\n")
    on_progress(1.0, "done")
    return [there[case.name, n, seed, effort] for case, n, seed in wanted]


def read(path: Path) -> list[Record]:
    """Return the records of a file; none of one that is not there."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(records: Sequence[Record]) -> str:
    """Return the coverage as markdown: a row for each case and number of rows, and one for all.

    Examples:
        >>> one = {"case": "sine", "n": 300, "effort": "quick", "truth": 0.8, "value": 0.7, "low": 0.6, "high": 0.9}
        >>> print(table([one]).splitlines()[-1])
        | **all** | | | 1 of 1 (100 %) | 0 | 0.100 | 0.150 |
    """
    head = ("case", "rows", "truth", "held", "one-sided", "median error", "median half-width")
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    keys = dict.fromkeys((record["case"], record["n"]) for record in records)
    for case, n in sorted(keys, key=lambda key: (key[1], key[0])):
        own = [record for record in records if (record["case"], record["n"]) == (case, n)]
        lines.append(f"| {case} | {n:,} | {own[0]['truth']:.3f} | {_summary(own)} |")
    return "\n".join([*lines, f"| **all** | | | {_summary(records)} |"])


def _summary(records: Sequence[Record]) -> str:
    held = [record["low"] <= record["truth"] <= record["high"] for record in records]
    sided = sum(math.isinf(record["high"] - record["low"]) for record in records)
    error = median(abs(record["value"] - record["truth"]) for record in records)
    width = median((record["high"] - record["low"]) / 2 for record in records)
    return f"{sum(held)} of {len(held)} ({fmean(held):.0%}) | {sided} | {error:.3f} | {width:.3f}".replace("%)", " %)")
