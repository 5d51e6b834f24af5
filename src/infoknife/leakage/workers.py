"""Fits at the same time: as many at once as torch has threads, each in one thread."""

import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch

__all__ = ["workers"]


@contextmanager
def workers() -> Iterator[ThreadPoolExecutor]:
    """Yield a pool of threads in which no library starts threads of its own, and none warns.

    Threads within a fit wait for each other. Where the machine has other work they wait long.
    """
    from threadpoolctl import threadpool_limits

    count = torch.get_num_threads()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # held-out rows judge what few iterations reach
        with ThreadPoolExecutor(count, initializer=_alone, initargs=(threadpool_limits,)) as pool:
            yield pool


def _alone(limit: Any) -> None:
    """Limit OpenMP in this thread; torch must have set its own limit before."""
    torch.get_num_threads()
    limit(1, "openmp")
