"""Libraries that not everyone needs, imported where they are used."""

import importlib
from typing import Any

__all__ = ["library"]


def library(name: str, extra: str | None = None) -> Any:
    """Import an optional library by its name; where it is missing say how to get it.

    Args:
        name: The module, such as ``"PIL.Image"``.
        extra: The extra of infoknife that installs it; without one it is installed by its own name.

    Example:
        >>> library("json").loads("[1, 2]")
        [1, 2]
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        install = package if extra is None else f"'infoknife[{extra}]'"
        raise ModuleNotFoundError(
            f"these data need {package}; install it with: pip install {install}", name=error.name
        ) from error
