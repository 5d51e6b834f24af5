"""What the cells of a column are: numbers in their many spellings, booleans, dates, or strings."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np

from infoknife.files.base import Column, Mask, Values, printable

__all__ = ["CLASSIC", "MISSING", "is_number", "plain", "recognised", "typed"]

CLASSIC = frozenset({"", "NA", "N/A", "na", "n/a", "NaN", "nan", "NAN", "null", "NULL", "None", "<NA>", r"\N"})
ODD = frozenset({"-", "--", "?", ".", "..", "nat", "missing", "#n/a", "#div/0!", "#value!", "#ref!", "#name?", "#num!"})
MISSING = (
    ODD | {"#null!"} | {word.lower() for word in CLASSIC}
)  # in lower case, where the other cells are numbers or dates


def plain(cells: list[str], decimal: str, *, clean: bool = False) -> Values | None:
    """Return cells as integers or floats as Python writes them, if all are such; clean ones have no underscores."""
    if not clean and "_" in "".join(cells):  # Python reads 1_2 as a number, nobody else does
        return None
    try:
        return np.fromiter(map(int, cells), np.int64, len(cells))
    except ValueError:
        pass
    except OverflowError:
        return None
    if decimal == ",":
        return None
    try:
        values = np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        return None
    return None if np.isnan(values).any() else values


def recognised(name: str, cells: list[str], decimal: str, where: Callable[[int], str]) -> Column:
    """Return a column of the first kind that all its cells are: numbers, booleans, dates, strings."""
    label = printable(name)
    absent = np.fromiter((cell.lower() in MISSING for cell in cells), bool, len(cells))
    classic = np.fromiter((cell in CLASSIC for cell in cells), bool, len(cells))
    present = [cell for cell, gone in zip(cells, absent, strict=True) if not gone]
    marks = int((absent & ~classic).sum())
    if not present and not marks:
        return Column(name, np.full(len(cells), np.nan), absent, f"{label}: all cells are missing")
    found = (_numbers(present, decimal) or _truths(present) or _dates(present)) if present else None
    if found is not None:
        values, words = found
        if marks:
            said = f"{marks} cell{'s' * (marks > 1)} with a mark such as - or #N/A count as missing"
            words = f"{words}; {said}" if words else said
        return Column(name, _filled(values, absent), absent, f"{label}: {words}" if words else "")
    strings = np.array(cells, dtype=object)
    strings[classic] = ""
    return Column(name, strings, classic, _almost(label, cells, absent, where))


def _filled(values: Values, missing: Mask) -> Values:
    filled = np.full(len(missing), np.nan) if values.dtype.kind == "f" else np.zeros(len(missing), values.dtype)
    filled[~missing] = values
    return filled


def _almost(label: str, cells: list[str], absent: Mask, where: Callable[[int], str]) -> str:
    """Say so where nearly all cells are numbers, and which are not."""
    count, odd = int((~absent).sum()), []
    for i, cell in enumerate(cells):
        if not absent[i] and not (is_number(cell, ".") or is_number(cell, ",")):
            odd.append(i)
            if count - len(odd) < max(10, 0.95 * count):
                return ""
    if not odd and count < 10:
        return ""
    places = " and ".join(map(where, odd[:3])) + f" and {len(odd) - 3} more" * (len(odd) > 3)
    what = f"{places} {'is' if len(odd) == 1 else 'are'} not: mend {'it' if len(odd) == 1 else 'them'}"
    if not odd:
        what = "but not all written the same way: mend them"
    return f"{label}: {count - len(odd)} of {count} cells are numbers; {what}, or the column is labels"


_SPACE = " \u00a0\u2007\u2009\u202f"
_CODES = "USD EUR GBP JPY CHF CNY INR AUD CAD NZD SEK NOK DKK PLN CZK HUF RON RUB TRY BRL MXN ZAR KRW SGD HKD ILS THB"
_CURRENCY = f"[$€£¥₹₽₩₺₪฿₫₦₴]|{_CODES.replace(' ', '|')}"


def _number_pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    whole = rf"\d{{1,3}}(?:(?P<mark>[{thousands}{_SPACE}'’])\d{{3}})(?:(?P=mark)\d{{3}})*|\d+"
    core = rf"(?P<whole>{whole})(?:{decimal}(?P<part>\d*))?|{decimal}(?P<only>\d+)"
    gap = f"[{_SPACE}]?"
    return re.compile(
        rf"(?P<open>\()?(?P<sign>[+−-])?{gap}(?:(?P<before>{_CURRENCY}){gap}(?P<late>[+−-])?)?(?:{core})(?P<power>[eE][+-]?\d+)?"
        rf"{gap}(?P<after>%|{_CURRENCY})?(?P<close>\))?",
        re.ASCII,
    )


_NUMBER = {".": _number_pattern(r"\.", ","), ",": _number_pattern(",", ".")}
_INFINITE = re.compile("[+-]?inf(inity)?", re.IGNORECASE)


def is_number(cell: str, decimal: str) -> bool:
    """Return whether a cell is a number in any spelling, with this decimal mark."""
    return _NUMBER[decimal].fullmatch(cell) is not None or _INFINITE.fullmatch(cell) is not None


def _numbers(cells: list[str], decimal: str) -> tuple[Values, str] | None:
    """Return all cells as numbers, and how they were written; None if they are not all numbers."""
    other = "," if decimal == "." else "."
    values = plain(cells, decimal)
    if values is not None:
        return values, ""
    for mark in (decimal, other):
        matches = _matched(cells, _NUMBER[mark], _INFINITE)
        words = _written(matches, mark, decimal) if matches else None
        if words is None:
            continue
        marked = words and re.search("[.,]", "".join(cells))
        if mark == decimal and marked and all(is_number(cell, other) for cell in cells):
            words += f" (if that is wrong, say --decimal '{other}')"
        return _array([_value(match) for match in matches]), words
    return None


def _matched(cells: list[str], *patterns: re.Pattern[str]) -> list[re.Match[str]]:
    """Return a match of every cell with one of some patterns, or none at all."""
    found = []
    for cell in cells:
        match = next((match for pattern in patterns if (match := pattern.fullmatch(cell))), None)
        if match is None:
            return []
        found.append(match)
    return found


def _written(matches: list[re.Match[str]], mark: str, decimal: str) -> str | None:
    """Say how numbers were written; None if their units differ."""
    parts = [match.groupdict() for match in matches]
    units = {(one.get("before") or "") + (one.get("after") or "") for one in parts}
    if len(units - {""}) > 1 or ("%" in units and "" in units):
        return None
    if any((one.get("open") is None) != (one.get("close") is None) for one in parts):
        return None
    unit = max(units, default="")
    decimals = any(one.get("part") or one.get("only") for one in parts)
    said = [
        "thousands separators" * any(one.get("mark") for one in parts),
        "decimal commas" * (decimals and mark == ","),
        "decimal points" * (decimals and mark == "." and decimal == ","),
        "parentheses for minus" * any(one.get("open") for one in parts),
        "percent signs" if unit == "%" else f"the currency {unit}" * bool(unit),
    ]
    said = [words for words in said if words]
    return "numbers with " + " and ".join([", ".join(said[:-1])] * (len(said) > 1) + said[-1:]) if said else ""


def _value(match: re.Match[str]) -> int | float:
    parts = match.groupdict()
    if "power" not in parts:
        return float(match[0])
    digits = re.sub(r"\D", "", parts["whole"] or "")
    signs = (parts["sign"] or "") + (parts["late"] or "")
    minus = -1 if (parts["open"] is not None) != ("-" in signs or "−" in signs) else 1
    fraction = parts["part"] if parts["part"] is not None else parts["only"]
    if fraction is None and not parts["power"] and len(digits) < 30:
        return minus * int(digits)
    return minus * float(f"{digits}.{fraction or '0'}{parts['power'] or ''}")


def _array(values: list[int | float]) -> Values:
    """Return numbers as 64-bit integers where they are such, otherwise as floats."""
    if all(isinstance(value, int) for value in values):
        for kind in (np.int64, np.uint64):
            if np.iinfo(kind).min <= min(values) and max(values) <= np.iinfo(kind).max:
                return np.array(values, kind)
    return np.array(values, np.float64)


def _truths(cells: list[str]) -> tuple[Values, str] | None:
    truths = [{"true": True, "false": False}.get(cell.lower()) for cell in cells]
    return None if None in truths else (np.array(truths, bool), "")


_CLOCK = r"\d{1,2}:[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?"
_TIME = rf"(?:[T ](?P<clock>{_CLOCK})(?P<zone>Z|[+-]\d\d(?::?\d\d)?)?)?"
_ISO = re.compile(rf"(?P<date>\d{{4}}-\d\d-\d\d){_TIME}", re.ASCII)
_LOCAL = re.compile(rf"(?P<a>\d{{1,2}})(?P<mark>[./-])(?P<b>\d{{1,2}})(?P=mark)(?P<year>\d{{4}}){_TIME}", re.ASCII)


def _dates(cells: list[str]) -> tuple[Values, str] | None:
    """Return all cells as days, and since when; None if they are not all dates or times of the same kind."""
    if all(re.fullmatch(_CLOCK, cell, re.ASCII) for cell in cells):
        parts = [cell.replace(",", ".").split(":") for cell in cells]
        spans = [sum(float(part) / size for part, size in zip(one, (24, 1440, 86400), strict=False)) for one in parts]
        return np.array(spans), "times, as days since midnight"
    pattern = _ISO if _ISO.fullmatch(cells[0]) else _LOCAL
    matches = _matched(cells, pattern)
    if not matches or len({match["zone"] is None for match in matches}) > 1:
        return None
    day_first, words = _order(matches) if pattern is _LOCAL else (True, "")
    try:
        moments = np.array([_moment(match, day_first) for match in matches], "M8[us]")
    except (ValueError, OverflowError):
        return None
    values, since = days(moments)
    return values, since + words


def _order(matches: list[re.Match[str]]) -> tuple[bool, str]:
    """Return whether the day stands before the month, with words on it where no cell tells."""
    first, second = (max(int(match[part]) for match in matches) for part in "ab")
    mark = matches[0]["mark"]
    if first > 12 or second > 12:
        return first > 12, ""
    day_first = mark != "/"
    order = f"day{mark}month" if day_first else f"month{mark}day"
    return day_first, f" (taken as {order}{mark}year; no cell shows the order)"


def _moment(match: re.Match[str], day_first: bool) -> datetime:
    parts = match.groupdict()
    date = parts.get("date")
    if date is None:
        day, month = (parts["a"], parts["b"]) if day_first else (parts["b"], parts["a"])
        date = f"{parts['year']}-{month:0>2}-{day:0>2}"
    clock = (parts["clock"] or "00:00").replace(",", ".")
    found = datetime.fromisoformat(f"{date}T{'0' * (clock[1] == ':')}{clock}{parts['zone'] or ''}")
    return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)


def days(moments: Values) -> tuple[Values, str]:
    """Return dates as days since the earliest, NaN where there is none, and words on it."""
    if np.datetime_data(moments.dtype)[0] in "YMW":
        moments = moments.astype("M8[D]")
    known = moments[~np.isnat(moments)]
    if not len(known):
        return np.full(len(moments), np.nan), "dates, all of them missing"
    first = known.min()
    since = str(first.astype("M8[s]")).replace("T00:00:00", "").replace("T", " ")
    return (moments - first) / np.timedelta64(1, "D"), f"dates, as days since {since}"


# typed values


def typed(name: str, values: Values) -> Column:
    """Return a column of an array of any of numpy's types."""
    words = ""
    if values.dtype.kind == "M":
        values, words = days(values)
    elif values.dtype.kind == "m":
        unit = np.datetime_data(values.dtype)[0]
        values, words = values.astype("m8[D]" if unit in "YMW" else values.dtype) / np.timedelta64(1, "D"), "in days"
    elif values.dtype.kind == "S":
        values = np.array([cell.decode("utf-8", "backslashreplace") for cell in values.tolist()], dtype=object)
    kinds: dict[str, Any] = {"b": bool, "i": np.int64, "u": np.int64, "f": np.float64}
    kind = np.uint64 if values.dtype == np.uint64 else kinds.get(values.dtype.kind, object)
    values = values.astype(kind)
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool)
    return Column(name, values, missing, f"{printable(name)}: {words}" if words else "")
