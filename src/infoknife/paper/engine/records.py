"""Records as a frame, means over runs, and numbers as text."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import pandas as pd

from infoknife.paper.engine import methods

Record = Mapping[str, Any]
Frame: TypeAlias = pd.DataFrame
Write = Callable[[float | None], str]

PRESET_TITLES = {  # in the order of reports
    "ours": "Ours",
    "paper": "As in the paper",
    "cpu": "CPU",
    "standard": "Standard",
    "quick": "Quick",
}


# numbers as text


def number(value: float | None) -> str:
    """Four decimals as in the paper, fewer for the large, two significant ones for the tiny; a dash for nothing.

    Examples:
        >>> [number(value) for value in (0.04612, 13.166, 2.1e-5, -12345.6, 0.0, None)]
        ['0.0461', '13.17', '2.1e-05', '-12346', '0', '–']
    """
    if value is None or not math.isfinite(value):
        return "–"
    size = abs(value)
    if size < 1e-3:
        return f"{value:.2g}" if size else "0"
    return f"{value:.4f}" if size < 10 else f"{value:.2f}" if size < 1e3 else f"{value:.0f}"


def decimals(count: int) -> Write:
    """Write numbers with so many decimals, a dash for nothing.

    Examples:
        >>> decimals(1)(61.24), decimals(2)(None)
        ('61.2', '–')
    """
    return lambda value: "–" if value is None or not math.isfinite(value) else f"{value:.{count}f}"


percents = decimals(1)


def signed(value: float | None) -> str:
    """A number with its sign.

    Examples:
        >>> signed(0.5), signed(-0.5), signed(None)
        ('+0.5000', '-0.5000', '–')
    """
    return number(value) if value is None or not value > 0 else f"+{number(value)}"


def several(count: int, what: str) -> str:
    """A number of things.

    Examples:
        >>> several(1, "task"), several(1200, "trial")
        ('1 task', '1,200 trials')
    """
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def minutes(seconds: float) -> str:
    """A time for people.

    Examples:
        >>> minutes(0.52), minutes(75), minutes(7290)
        ('0.5 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def preset_title(name: str) -> str:
    """The heading of a preset."""
    return PRESET_TITLES.get(name, name)


# records and frames


class Mean(NamedTuple):
    """A mean over runs and its sample deviation, ``None`` where runs are too few; and how many runs there were."""

    mean: float | None = None
    std: float | None = None
    runs: int = 0
    failures: int = 0

    def text(self, write: Write = number) -> str:
        """The mean ± the deviation, and failures; a dash where there is nothing.

        Examples:
            >>> Mean(0.0461, 0.0139, 20).text(), Mean(0.5, None, 3, 2).text(), Mean(None, None, 1, 1).text()
            ('0.0461 ± 0.0139', '0.5000 (2 of 3 failed)', 'failed')
        """
        if self.mean is None:
            return "failed" if self.failures else "–"
        lost = f" ({self.failures} of {self.runs} failed)" if self.failures else ""
        return write(self.mean) + (f" ± {write(self.std)}" if self.std is not None else "") + lost


NOTHING = Mean()


def method_of(record: Record) -> str:
    """The method of a record, a dash where it has none."""
    return str(record["arguments"].get("method", "–"))


def failed(record: Record) -> bool:
    """Whether a trial has no result to count: it failed, or its numbers are not finite."""
    return record["status"] != "done" or not finite(record["results"])


def finite(value: Any) -> bool:
    """Whether all numbers in mappings and lists are finite."""
    if isinstance(value, Mapping | list):
        return all(map(finite, value.values() if isinstance(value, Mapping) else value))
    return not isinstance(value, float) or math.isfinite(value)


def place(record: Record) -> tuple[Any, ...]:
    """Where a record stands in tables: by preset, dimension, method and seed."""
    arguments, preset, method = record["arguments"], str(record["preset"]), method_of(record)
    dim, seed = (value if isinstance(value := arguments.get(name), int | float) else 0 for name in ("dim", "seed"))
    rank = [*PRESET_TITLES, preset].index(preset)
    return rank, preset, dim, methods.rank(method), method, seed, str(record.get("id", ""))


def frame(records: Iterable[Record], columns: Sequence[str] = ()) -> Frame:
    """One row per record, a column for all that was set and all that came out; results of failures are missing.

    Rows are in the order of tables: by preset, dimension, method and seed, whatever order the records came in.

    Examples:
        >>> runs = [{"preset": "ours", "arguments": {"method": m, "seed": 0}, "status": "done",
        ...     "results": {"error": 0.1}, "curves": {}} for m in ("doe", "knife")]
        >>> frame(runs)[["method", "seed", "error"]].values.tolist()
        [['knife', 0, 0.1], ['doe', 0, 0.1]]
    """
    rows = []
    for record in sorted(records, key=place):
        lost, method = failed(record), method_of(record)
        settings = {**record["results"].get("settings", {}), **record["arguments"]}
        about = {"preset": str(record["preset"]), "method": method, "seed": settings.get("seed", 0), "failed": lost}
        about |= {"title": methods.title(method), "seconds": record.get("seconds") or 0.0}
        found = {"curves": {}} if lost else {**record["results"], "curves": record["curves"]}
        rows.append({**settings, **found, **about})
    needed = ("preset", "method", "seed", "failed", "seconds", "curves", "title", *columns)
    whole = pd.DataFrame(rows, dtype=object)
    whole = whole.reindex(columns=list(dict.fromkeys([*whole.columns, *needed])))
    return whole.astype({"failed": bool, "seconds": float})


def numeric(runs: Frame, column: str) -> Any:
    """A column as numbers; what is none is missing."""
    return pd.to_numeric(runs[column] if column in runs else pd.Series(math.nan, runs.index), errors="coerce")


def grouped(runs: Frame, by: str | list[str]) -> Any:
    """Pandas' groups in the order of the rows, those of a missing value among them."""
    return runs.groupby(by, sort=False, dropna=False)


def mean_of(runs: Frame, column: str, scale: float = 1.0) -> Mean:
    """Mean and sample deviation of a column over the runs that have a number there.

    Examples:
        >>> mean_of(pd.DataFrame({"error": [1.0, 3.0, None], "failed": [False, False, True]}), "error")
        Mean(mean=2.0, std=1.4142135623730951, runs=3, failures=1)
    """
    values = scale * numeric(runs, column).dropna()
    std = float(values.std()) if len(values) > 1 else None
    return Mean(float(values.mean()) if len(values) else None, std, len(runs), int(runs["failed"].sum()))


def means(runs: Frame, by: str | list[str], column: str, scale: float = 1.0) -> dict[Any, Mean]:
    """The mean of a column by group, in the order of the rows."""
    return {at: mean_of(group, column, scale) for at, group in grouped(runs, by)}
