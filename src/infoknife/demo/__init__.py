"""What ``infoknife demo`` shows: information is measured, trained with, and stands on densities that are learned."""

from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import torch

from infoknife.atomic import write_text
from infoknife.demo.page import Learning, codes_table, density_table, html, relations_table
from infoknife.demo.parts import FULL, QUICK, Budget, learned, measured, relations, trained
from infoknife.pictures import Table
from infoknife.pictures.style import styled

__all__ = ["FILES", "FULL", "QUICK", "Budget", "show"]

FILES = ("index.html", "density.png")
CODES, DENSITY = (1, 8, 5, 8), (2, 2)  # about how long it takes to train and attack each code; to learn and to draw


def show(folder: Path, budget: Budget, seed: int, on_progress: Callable[[float, str], None]) -> list[Table]:
    """Run the three parts, write ``FILES`` into a folder that is there, and return the tables."""
    seconds = (*(1 for _ in relations()), *CODES, *DENSITY)
    done = accumulate(seconds, initial=0)

    def say(words: str) -> None:
        on_progress(next(done) / sum(seconds), words)

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # all of it is small: on a busy machine, more threads mostly wait for each other
    try:
        found, codes, density = measured(budget, seed, say), trained(budget, seed, say), learned(budget, seed, say)
    finally:
        torch.set_num_threads(threads)
    say("drawing")
    command = f"infoknife demo --seed {seed}" + (" --quick" if budget == QUICK else "")
    text = html(found, codes, density, seed, command)
    write_text(folder / FILES[0], text)
    with styled("density"):
        Learning(density, seed).draw().savefig(folder / FILES[1], dpi=150)
    return [relations_table(found), codes_table(codes), density_table(density)]
