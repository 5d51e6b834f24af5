"""What becomes of a call with generated input: an answer that is right in kind, or an error of our own."""

import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

SOURCE = Path(__file__).parents[2] / "src" / "infoknife"
COUNTS: Counter[str] = Counter()


def outcome(what: str, call: Callable[..., Any], *arguments: Any, finite: bool = True, **options: Any) -> Any:
    """Return the answer of a call, or the error that it raised where that is ours; fail where it is neither.

    An error is ours if it is a ValueError or a TypeError, or says that training diverged, and a ``raise`` of the
    library's own code made it. An answer is right in kind if its numbers are numbers, and finite where they have to be.
    """
    try:
        answer = call(*arguments, **options)
    except Exception as error:
        answer = error
    if isinstance(answer, Exception):
        last = traceback.extract_tb(answer.__traceback__)[-1]
        raised_in, kinds = Path(last.filename), ValueError | TypeError | FloatingPointError
        ours = isinstance(answer, kinds) and raised_in.is_relative_to(SOURCE) and str(last.line).startswith("raise ")
        COUNTS["refused" if ours else "foreign messages"] += 1
        assert ours, f"{what}: {type(answer).__name__} of {raised_in.name}: {answer}"
        return answer
    for numbers in _numbers(answer):
        fine = not bool(torch.isnan(numbers).any()) and (not finite or bool(torch.isfinite(numbers).all()))
        COUNTS["silent NaN"] += not fine
        assert fine, f"{what}: the answer is {numbers.flatten()[:5].tolist()}"
    COUNTS["answered"] += 1
    return answer


def _numbers(answer: Any) -> Iterator[torch.Tensor]:
    if isinstance(answer, torch.Tensor):
        yield answer.detach().double() if answer.is_floating_point() else answer
    elif isinstance(answer, float):
        yield torch.tensor(answer, dtype=torch.double)
    elif isinstance(answer, np.ndarray) and answer.dtype.kind == "f":
        yield torch.as_tensor(answer)
    elif isinstance(answer, tuple | list):
        for part in answer:
            yield from _numbers(part)


@pytest.fixture(scope="session", autouse=True)
def counted() -> Iterator[None]:
    """Print what became of all calls; the docs' table of reliability is filled from here."""
    yield
    if COUNTS:
        total = sum(COUNTS.values())
        print(f"\nfuzz: {total} calls, " + ", ".join(f"{name} {count}" for name, count in sorted(COUNTS.items())))
