"""``python -m benchmarks.kills``: a reproduction that is killed at random moments, again and again, and goes on."""

import os
import random
import signal
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from infoknife.cli import app
from infoknife.paper.engine import read_records

COMMAND = ("reproduce", "table1", "--preset", "quick", "--methods", "doe", "--jobs", "1")


def main(
    kills: Annotated[int, typer.Option(help="How many.")] = 200,
    longest: Annotated[float, typer.Option(help="Seconds of processor time after which a run is killed.")] = 2.0,
    seed: Annotated[int, typer.Option(help="Of the moments.")] = 0,
) -> None:
    """Count records that were lost, that changed, and that differ from those of an undisturbed run."""
    draw, begin, rounds, killed = random.Random(seed), time.perf_counter(), 0, 0
    lost = changed = different = 0
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        undisturbed = Path(folder) / "undisturbed"
        _reproduce(undisturbed)  # in this process: those that are killed have all modules from the start
        truth = _results(undisturbed)
        while killed < kills:
            out, before = Path(folder) / str(rounds), dict[Path, bytes]()
            while _run(out, draw.uniform(0.01, longest)):
                killed += 1
                now = {path: path.read_bytes() for path in out.glob("*/record.jsonl")}
                lost += len(before.keys() - now.keys())
                changed += sum(now.get(path, raw) != raw for path, raw in before.items())
                before = now
            rounds += 1
            found = _results(out)
            lost += len(truth.keys() - found.keys())
            different += sum(found[name] != truth[name] for name in truth.keys() & found.keys())
    typer.echo(f"{killed} kills in {rounds} runs of {len(truth)} trials, {time.perf_counter() - begin:.0f} s")
    typer.echo(f"records lost: {lost}, changed: {changed}, different from the undisturbed run: {different}")


def _reproduce(out: Path) -> None:
    app([*COMMAND, "--out", str(out)], standalone_mode=False)


def _run(out: Path, seconds: float) -> bool:
    """Run the command in a process that ends without a word after so much processor time; whether it was killed."""
    if (child := os.fork()) == 0:
        silence, status = os.open(os.devnull, os.O_WRONLY), 1
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        signal.setitimer(signal.ITIMER_PROF, seconds)  # whose signal nothing handles
        try:
            _reproduce(out)
            status = 0
        finally:
            os._exit(status)  # what the parent holds is not the child's to clean up
    ended = os.waitpid(child, 0)[1]
    if os.WIFEXITED(ended) and os.WEXITSTATUS(ended):
        raise RuntimeError(f"the command ended with {os.WEXITSTATUS(ended)}; expected 0")
    return os.WIFSIGNALED(ended)


def _results(out: Path) -> dict[str, Any]:
    return {record["id"]: (record["results"], record["curves"]) for record in read_records(out)}


if __name__ == "__main__":
    typer.run(main)
