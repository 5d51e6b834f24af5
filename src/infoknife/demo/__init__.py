"""What ``infoknife demo`` shows: a density learns a picture, and known entropies are found."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from infoknife.demo import page
from infoknife.demo.cases import FULL, QUICK, Budget, Case, Result, cases, measure, steps
from infoknife.demo.drawing import knife
from infoknife.demo.figures import FIGURES, Gallery
from infoknife.training import Callback

__all__ = ["FILES", "FULL", "QUICK", "Budget", "Case", "Result", "show", "steps"]

FILES = ("index.html", *FIGURES)
Measured = Callable[[Case], tuple[Callback, Callable[[Result], None]]]


def show(folder: Path, budget: Budget, seed: int, watch: Measured) -> list[Result]:
    """Measure every case, and write the figures and the page into a folder.

    Args:
        folder: Where ``FILES`` go; it must be there.
        budget: Rows and steps.
        seed: Where all randomness comes from.
        watch: Called with every case before it is measured; returns what is called after every step, and with the
            result.
    """
    picture, results = knife(), []
    with _one_thread():
        for case in cases(picture):
            on_step, on_result = watch(case)
            results.append(measure(case, budget, seed, on_step))
            on_result(results[-1])
        Gallery.of(picture, results, seed).write(folder)
    command = f"infoknife demo --seed {seed}" + (" --quick" if budget is QUICK else "")
    (folder / "index.html").write_text(page.html(results, budget, seed, command), encoding="utf-8")
    return results


@contextmanager
def _one_thread() -> Iterator[None]:
    """Products this small gain nothing from more threads, and lose much where cores are shared."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
