"""The global random state, borrowed by one thread at a time and given back as it was."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_LENT = threading.RLock()


@contextmanager
def borrowed(seed: int | None = None, device: str = "cpu") -> Iterator[None]:
    """Seed torch's generators inside, and restore them afterwards.

    Modules and losses draw from the global generator. Another thread that wants it seeded waits, so that what a seed
    gives does not depend on what else is running.

    Args:
        seed: What the generators start from inside; if not given they go on as they are.
        device: A kind of device whose generators are borrowed too.

    Examples:
        >>> before = torch.get_rng_state()
        >>> with borrowed(3):
        ...     first = torch.rand(2)
        >>> with borrowed(3):
        ...     again = torch.rand(2)
        >>> torch.equal(first, again), torch.equal(torch.get_rng_state(), before)
        (True, True)
    """
    devices = () if device == "cpu" else range(getattr(torch, device).device_count())
    with _LENT, torch.random.fork_rng(devices=devices, device_type=device):
        if seed is not None:
            (torch.manual_seed if devices else torch.default_generator.manual_seed)(seed)
        yield
