"""``infoknife doctor``: what is installed here, and whether a measurement comes out right."""

import os
import platform
import re
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Annotated, Any

import typer

from infoknife.cli.terminal import print_json

PACKAGES = ("torch", "numpy", "scipy", "typer", "rich")
TOLERANCE = 0.1  # nats, six standard errors of the self-check


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout, and nothing else.")] = False,
) -> None:
    """Show versions, threads, devices and extras, and measure something known: for bug reports.

    The exit code is 1 where the self-check fails.
    """
    import torch

    from infoknife._version import __version__

    found: dict[str, Any] = {"infoknife": __version__, "python": platform.python_version()}
    found |= {name: _installed(name) or "missing" for name in PACKAGES}
    found["system"] = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    threads = os.environ.get("OMP_NUM_THREADS")
    found["threads"] = f"{torch.get_num_threads()}{f' (OMP_NUM_THREADS={threads})' if threads else ''}"
    found["devices"] = ", ".join(_devices(torch))
    found["extras"] = {name: "ready" if not lacks else f"needs {', '.join(lacks)}" for name, lacks in _extras()}
    error, seconds = _self_check()
    is_right = abs(error) < TOLERANCE
    found["self-check"] = f"{'passed' if is_right else 'FAILED'}: {error:+.3f} nats off in {seconds:.1f} s"
    if as_json:
        print_json(found)
    else:
        extras = found.pop("extras")
        for name, value in (found | {f"extra {name}": state for name, state in extras.items()}).items():
            typer.echo(f"{name:24} {value}")
    if not is_right:
        raise typer.Exit(1)


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _devices(torch: Any) -> Iterator[str]:
    yield "cpu"
    for i in range(torch.cuda.device_count()):
        yield f"cuda:{i} ({torch.cuda.get_device_name(i)})"
    if torch.backends.mps.is_available():
        yield "mps"


def _extras() -> Iterator[tuple[str, list[str]]]:
    """Yield every extra for users, and the packages that it lacks."""
    found: dict[str, list[str]] = {}
    for requirement in (requires("infoknife") or []) if _installed("infoknife") else []:
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        extra = requirement.partition("extra == ")[2].strip("'\"")
        if extra and extra not in ("test", "docs", "dev"):
            found.setdefault(extra, []).extend([name] * (_installed(name) is None))
    yield from sorted(found.items())


def _self_check() -> tuple[float, float]:
    """The error of the entropy of two thousand rows of a Gaussian, and the seconds that it took."""
    import math

    import torch

    from infoknife import entropy

    start = time.perf_counter()
    x = torch.randn(2000, 2, generator=torch.Generator().manual_seed(0))
    estimate = entropy(x, method="gaussian", effort="quick")
    return float(estimate) - math.log(2 * math.pi * math.e), time.perf_counter() - start
