"""Measurements of sources larger than memory, and of no more rows than a precision needs."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import ParamSpec

from infoknife.files import RawColumn
from infoknife.measure.columns import read_argument
from infoknife.measure.estimate import Estimate
from infoknife.streams import MAX_ROWS, as_stream, draw_rows

FIRST_LOOK = 10_000  # rows that show how much pointwise values vary
RESERVE = 1.2  # the standard error of another sample differs a little
SIDES = ("x", "y", "given", "groups", "weights")

P = ParamSpec("P")


def streamed(function: Callable[P, Estimate]) -> Callable[P, Estimate]:
    """Let a measuring function take sources larger than memory, and ask for a standard error.

    Of a source a uniform sample of ``MAX_ROWS`` rows is drawn in one pass; the same rows of all arguments. With
    ``stderr`` a first look at ``FIRST_LOOK`` rows says how many are enough, and no more are measured.
    """
    parameters = signature(function)

    @wraps(function)
    def measured(*args: P.args, **kwargs: P.kwargs) -> Estimate:
        bound = parameters.bind(*args, **kwargs)
        bound.apply_defaults()
        asked = bound.arguments
        wanted, asked["stderr"] = asked["stderr"], None
        sources = {side: as_stream(asked[side], side) for side in SIDES if asked.get(side) is not None}
        came = {len(source) for source in sources.values() if source is not None}
        if not came and wanted is None:
            return function(*bound.args, **bound.kwargs)
        if len(came) > 1:
            counts = " and ".join(f"{count:,}" for count in sorted(came))
            raise ValueError(f"the sources have {counts} rows; expected as many rows in all of them")
        columns: dict[str, list[RawColumn]] = {}
        for side, source in sources.items():
            if source is not None:
                columns[side] = list(source.draw(rows=MAX_ROWS, progress=asked.get("progress")).values())
            else:
                columns[side] = read_argument(asked[side], side)
        (count,) = came or {len(next(iter(columns.values()))[0])}
        chosen = draw_rows(count, MAX_ROWS)
        for side, source in sources.items():
            if source is None and len(columns[side][0]) == count:
                columns[side] = [column.rows(chosen) for column in columns[side]]

        def estimate(rows: int) -> Estimate:
            kept = draw_rows(len(chosen), rows)
            part = {side: [one.rows(kept) for one in found] for side, found in columns.items()}
            return function(**(asked | part))  # type: ignore[call-arg]

        found = estimate(MAX_ROWS) if wanted is None else _precise(estimate, wanted, len(chosen))
        rows = found.diagnostics.rows
        if rows < count:
            words = f"measured on {rows:,} of {count:,} rows, drawn at random"
            told = replace(found.diagnostics, messages=(words, *found.diagnostics.messages))
            found = replace(found, diagnostics=told)
        return found

    return measured


def _precise(estimate: Callable[[int], Estimate], wanted: float, most: int) -> Estimate:
    """Measure on as many rows as a standard error needs, in the unit of the answer."""
    if not (isinstance(wanted, (int, float)) and wanted > 0):
        raise ValueError(f"stderr is {wanted!r}; expected a positive number, the standard error that is wanted")
    first = estimate(FIRST_LOOK)
    if most <= FIRST_LOOK or not math.isfinite(first.stderr) or first.stderr <= wanted:
        return first
    needed = math.ceil(RESERVE * first.diagnostics.rows * (first.stderr / wanted) ** 2)
    found = estimate(min(needed, most))
    if needed > most:
        words = f"a standard error of {wanted:g} needs about {needed:,} rows; {most:,} were there to measure on"
        found = replace(found, diagnostics=replace(found.diagnostics, messages=(words, *found.diagnostics.messages)))
    return found
