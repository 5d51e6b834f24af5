"""``python -m benchmarks``: measure everything in one run and print it beside its bars."""

import json
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.adaptation import knife_against_source_only
from benchmarks.bottleneck import knife_against_cross_entropy
from benchmarks.durations import leakage_audit, measurement
from benchmarks.growth import exponents
from benchmarks.information import Pair, knife_against_mine, knife_against_textbook
from benchmarks.memory import peak_memory
from benchmarks.regularizer import round_against_marginal
from benchmarks.rows import Row
from benchmarks.speed import Size, against_product, against_textbook, classes_against_marginal


def full() -> Iterator[Row]:
    """The sizes that have bars. The textbook formula needs about 7 GB of memory at the largest."""
    yield against_textbook(Size(128, 128, 8), rounds=15, least=8)
    yield against_textbook(Size(128, 128, 20), rounds=15, least=20)
    yield against_textbook(Size(128, 128, 64), rounds=10, least=80)
    yield against_textbook(Size(1024, 128, 64), rounds=4, least=90)
    yield from against_product(Size(1024, 128, 64), rounds=15, least=40)
    yield peak_memory(Size(4096, 128, 64), processes=3, most=400)
    yield classes_against_marginal(Size(128, 128, 20), classes=2, rounds=15, most=2)
    yield from exponents(Size(256, 64, 16), factors=(1, 2, 4, 8), rounds=10)
    yield knife_against_mine(Pair(128, 128, 20), rounds=15, most=4)
    yield knife_against_textbook(Pair(128, 128, 20), rounds=10, least=15)
    yield round_against_marginal(Size(128, 128, 64), rounds=3, most=3)
    yield knife_against_source_only("cpu", rounds=3, most=1.25)
    yield knife_against_cross_entropy(53, rounds=5, most=1.1)
    yield measurement(10_000, 5, "quick", most=8)
    yield measurement(10_000, 5, "standard", most=60)
    yield measurement(1_000_000, 1, "standard", most=180)
    yield leakage_audit(10_000, 128, 5, most=90)


def quick() -> Iterator[Row]:
    """Everything at sizes that are quickly done and have no bars."""
    size = Size(16, 8, 4)
    yield against_textbook(size, rounds=1, least=0)
    yield from against_product(size, rounds=1, least=0)
    yield peak_memory(size, processes=1, most=0)
    yield classes_against_marginal(size, classes=2, rounds=1, most=0)
    yield from exponents(size, factors=(1, 2), rounds=1)
    yield knife_against_mine(Pair(*size), rounds=1, most=0)
    yield knife_against_textbook(Pair(*size), rounds=1, least=0)
    yield round_against_marginal(size, rounds=1, most=0)
    yield knife_against_source_only("quick", rounds=1, most=0)
    yield knife_against_cross_entropy(4, rounds=1, most=0)
    yield measurement(50, 1, "quick", most=0)
    yield leakage_audit(60, 2, 3, most=0)


def main(
    small: Annotated[bool, typer.Option("--quick", help="Small sizes, without bars.")] = False,
    file: Annotated[Path | None, typer.Option("--json", help="Write the records to this file too.")] = None,
) -> None:
    """Measure speed, memory and growth of KNIFE, in one thread unless a row says otherwise."""
    torch.set_num_threads(1)
    rows = []
    with Console(stderr=True).status("measuring") as status:
        for row in quick() if small else full():
            rows.append(row.without_bar() if small else row)
            status.update(f"measured {len(rows)}: {row.what}")
    Console().print(_table(rows))
    if file is not None:
        about = {"torch": torch.__version__, "python": platform.python_version(), "threads": 1}
        records = about | {"rows": [row.record() for row in rows]}
        file.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")


def _table(rows: list[Row]) -> Table:
    table = Table(box=SIMPLE_HEAD, title="Forward + backward, float32, one thread", title_justify="left")
    for name in ("measured", "N, M, d"):
        table.add_column(name, no_wrap=True)
    for name in ("value", "bar", "met"):
        table.add_column(name, no_wrap=True, justify="right")
    for row in rows:
        table.add_row(*row.cells(), style="red" if row.met is False else None)
    return table


if __name__ == "__main__":
    typer.run(main)
