"""From records to means over runs: grouping, order, failures, and numbers as text."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any, NamedTuple, TypeVar

from infoknife.paper.engine import methods

Record = Mapping[str, Any]
Value = Callable[[Record], float | None]
Key = TypeVar("Key")

PRESETS = {  # in the order of reports
    "ours": "Ours",
    "paper": "As in the paper",
    "cpu": "CPU",
    "standard": "Standard",
    "quick": "Quick",
}


class Mean(NamedTuple):
    """A mean over runs and its sample deviation, ``None`` where runs are too few; and how many runs there were."""

    mean: float | None
    std: float | None
    runs: int
    failures: int = 0

    def text(self, write: "Callable[[float | None], str] | None" = None) -> str:
        """The mean ± the deviation, and failures.

        Example:
            >>> Mean(0.0461, 0.0139, 20).text(), Mean(0.5, None, 3, 2).text(), Mean(None, None, 1, 1).text()
            ('0.0461 ± 0.0139', '0.5000 (2 of 3 failed)', 'failed')
        """
        write = write or number
        if self.mean is None:
            return "failed" if self.failures else "–"
        lost = f" ({self.failures} of {self.runs} failed)" if self.failures else ""
        return write(self.mean) + (f" ± {write(self.std)}" if self.std is not None else "") + lost


def published(mean: float, std: float | None, runs: int = 1) -> Mean:
    """A published number."""
    return Mean(mean, std, runs)


def method_of(record: Record) -> str:
    """The method of a record, a dash where it has none."""
    return str(record["arguments"].get("method", "–"))


def preset_of(record: Record) -> str:
    """The preset of a record."""
    return str(record["preset"])


def by(records: Iterable[Record], key: Callable[[Record], Key]) -> dict[Key, list[Record]]:
    """Group records by a key, in the order of their first appearance.

    Example:
        >>> by([{"id": 1}, {"id": 2}, {"id": 1}], lambda record: record["id"] > 1)
        {False: [{'id': 1}, {'id': 1}], True: [{'id': 2}]}
    """
    groups: dict[Key, list[Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups


def in_order(records: Iterable[Record]) -> list[Record]:
    """Sort by preset, dimension, method and seed: the same whatever order they were read in."""
    presets = list(PRESETS)

    def place(record: Record) -> tuple[Any, ...]:
        arguments, preset = record["arguments"], preset_of(record)
        rank = presets.index(preset) if preset in presets else len(presets)
        numbers = (value if isinstance(value := arguments.get(name), int | float) else 0 for name in ("dim", "seed"))
        dim, seed = numbers
        return rank, preset, dim, methods.rank(method_of(record)), method_of(record), seed, str(record.get("id", ""))

    return sorted(records, key=place)


def failed(record: Record) -> bool:
    """Whether a trial has no result to count: it failed, or its numbers are not finite."""
    return record["status"] != "done" or not _finite(record["results"])


def result(name: str, scale: float = 1.0) -> Value:
    """A function that gives one of a record's results, scaled; ``None`` where it has no such number."""

    def value(record: Record) -> float | None:
        found = record["results"].get(name)
        return scale * found if isinstance(found, int | float) else None

    return value


def percent_of(name: str) -> Value:
    """A function that gives one of a record's results, a part, in percent."""
    return result(name, 100.0)


def error(record: Record) -> float | None:
    """The |error| of a record."""
    found = record["results"].get("error")
    return None if found is None else abs(found)


def mean_of(records: Sequence[Record], value: Value) -> Mean:
    """Mean and sample deviation over the records that have a value and did not fail.

    Example:
        >>> runs = [{"status": "done", "results": {"error": e}} for e in (-1.0, 3.0)]
        >>> mean_of(runs, error)
        Mean(mean=2.0, std=1.4142135623730951, runs=2, failures=0)
    """
    values = [v for record in records if not failed(record) and (v := value(record)) is not None]
    mean, std = fmean(values) if values else None, stdev(values) if len(values) > 1 else None
    return Mean(mean, std, len(records), sum(map(failed, records)))


def seconds_of(records: Iterable[Record]) -> float:
    """The time of all."""
    return math.fsum(record.get("seconds") or 0.0 for record in records)


# numbers as text


def number(value: float | None) -> str:
    """Four decimals as in the paper, fewer for the large, two significant ones for the tiny; a dash for nothing.

    Example:
        >>> [number(value) for value in (0.04612, 13.166, 2.1e-5, -12345.6, 0.0, None)]
        ['0.0461', '13.17', '2.1e-05', '-12346', '0', '–']
    """
    if value is None or not math.isfinite(value):
        return "–"
    size = abs(value)
    if size < 1e-3:
        return f"{value:.2g}" if size else "0"
    return f"{value:.4f}" if size < 10 else f"{value:.2f}" if size < 1e3 else f"{value:.0f}"


def percents(value: float | None) -> str:
    """A number of percents, with one decimal.

    Example:
        >>> percents(61.24), percents(None)
        ('61.2', '–')
    """
    return "–" if value is None else f"{value:.1f}"


def signed(value: float | None) -> str:
    """A number with its sign.

    Example:
        >>> signed(0.5), signed(-0.5), signed(None)
        ('+0.5000', '-0.5000', '–')
    """
    return number(value) if value is None or value <= 0 else f"+{number(value)}"


def several(count: int, what: str) -> str:
    """A number of things.

    Example:
        >>> several(1, "task"), several(1200, "trial")
        ('1 task', '1,200 trials')
    """
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def minutes(seconds: float) -> str:
    """A time for people.

    Example:
        >>> minutes(0.52), minutes(75), minutes(7290)
        ('0.5 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def preset_title(name: str) -> str:
    """The heading of a preset."""
    return PRESETS.get(name, name)


def _finite(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(map(_finite, value.values()))
    if isinstance(value, list):
        return all(map(_finite, value))
    return not isinstance(value, float) or math.isfinite(value)
