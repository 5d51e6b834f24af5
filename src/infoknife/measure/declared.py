"""Which columns a caller declares discrete, for each argument."""

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

import numpy as np

from infoknife.measure.tables import Discrete

__all__ = ["declared"]


def declared(discrete: Any, arguments: Mapping[str, Any], main: str) -> dict[str, Discrete]:
    """Give what ``tables.table`` is told about each argument.

    Args:
        discrete: ``None``: decided by the values. ``True`` or ``False``: about the main argument. Names of arguments
            or of columns, or positions of columns of the main argument: these are discrete. A dictionary has any of
            this for each argument.
        arguments: What was passed, by name; ``None`` was not.
        main: The argument that a bare answer is about.

    Example:
        >>> declared(["y"], {"x": [0.5], "y": [1]}, "y")
        {'x': None, 'y': True}
    """
    told: dict[str, Discrete] = dict.fromkeys(arguments)
    if discrete is None:
        return told
    if isinstance(discrete, (bool, np.bool_)):
        return told | {main: bool(discrete)}
    if isinstance(discrete, Mapping):
        _known(discrete, tuple(arguments))
        return told | dict(discrete)
    if not isinstance(discrete, (str, Integral, Iterable)):
        raise TypeError(
            f"discrete is a {type(discrete).__name__}; expected None, True, False, names of arguments or columns, "
            f"or a dictionary with one of these for each argument"
        )
    keys: list[Any] = [discrete] if isinstance(discrete, (str, Integral)) else list(discrete)
    for key in keys:
        _check_key(key)
        if key in arguments:
            told[key] = True
            continue
        for name in _owners(key, arguments, main):
            told[name] = _with(told[name], key)
    return told


def _check_key(key: Any) -> None:
    if isinstance(key, (bool, np.bool_)) or not isinstance(key, (str, Integral)):
        raise TypeError(
            f"discrete has {key!r}; expected names of arguments or columns, or positions from 0. For a mask pass the "
            f"positions where it is true"
        )


def _with(before: Discrete, key: Any) -> Discrete:
    return before if before is True else [*(before or []), key]


def _owners(key: Any, arguments: Mapping[str, Any], main: str) -> list[str]:
    """The arguments that have a column of this name; positions are those of the main argument."""
    if isinstance(key, Integral):
        return [main]
    owners = [name for name, value in arguments.items() if key in _columns(value)]
    if owners:
        return owners
    columns = [column for value in arguments.values() for column in _columns(value)]
    there = ", ".join([*(name for name, value in arguments.items() if value is not None), *columns])
    raise ValueError(f"discrete has {key!r}; expected names of arguments or columns: {there}, or positions from 0")


def _columns(value: Any) -> list[str]:
    if hasattr(value, "columns"):
        return [str(column) for column in value.columns]
    name = getattr(value, "name", None)
    return [] if name is None else [str(name)]


def _known(discrete: Mapping[str, Any], names: tuple[str, ...]) -> None:
    unknown = [str(name) for name in discrete if name not in names]
    if unknown:
        raise ValueError(f"discrete has {', '.join(unknown)}; expected {', '.join(names)}")
