"""The table of ``docs/guide/which-estimator.md``: estimators at their own defaults on relations in 3 + 3 dimensions.

``python -m benchmarks.which_estimator run results.jsonl --methods infonce,mine`` appends a JSON line for each method
and relation and skips those that are there; ``table results.jsonl`` prints the Markdown table.
"""

import json
import time
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import torch
import typer

from infoknife import fit, mi
from infoknife.tasks.relations import RELATIONS, Relation

app = typer.Typer(add_completion=False)
Results = Annotated[Path, typer.Argument(help="A file of JSON lines.")]
METHODS = "knife,infonce,mine,nwj,smile,club,doe"
ROWS, BLOCK = 8192, 512  # fresh rows that are measured, so many at a time: they are each other's negatives


@app.command()
def run(
    results: Results, methods: str = METHODS, relations: str = "", copies: int = 3, steps: int = 5000, seed: int = 0
) -> None:
    """Train every method on fresh batches of 128 rows of every relation, and measure on fresh rows."""
    done = {(line["name"], line["task"]) for line in _read(results)}
    for kind in relations.split(",") if relations else sorted(RELATIONS):
        task = Relation(kind, copies=copies)
        for name in methods.split(","):
            key = f"{kind}-{copies}d"
            if (name, key) not in done:
                line = {"name": name, "task": key, "steps": steps, "seed": seed, **measure(name, task, steps, seed)}
                with results.open("a") as file:
                    file.write(json.dumps(line) + "\n")


def measure(name: str, task: Relation, steps: int, seed: int) -> dict[str, Any]:
    """Truth, value and seconds of processor time of one method on one task."""
    torch.manual_seed(seed)
    start = time.process_time()
    estimator = mi(name, task.x_dim, task.y_dim).initialize(*task.sample(4096, 3 * seed + 10), seed=seed)
    batches = task.batches(128, 3 * seed + 11)
    fit(estimator, batches, steps=steps, lr=estimator.rate, seed=seed, initialize=False)
    seconds = time.process_time() - start
    estimator.eval()
    x, y = task.sample(ROWS, 3 * seed + 12)
    with torch.no_grad():
        value = fmean(float(estimator(*block)) for block in zip(x.split(BLOCK), y.split(BLOCK), strict=True))
    return {"truth": task.mutual_information(), "value": value, "seconds": round(seconds, 1)}


@app.command()
def table(results: Results) -> None:
    """Print the Markdown table: errors in nats, and their mean size over the relations that all methods did."""
    typer.echo(markdown(_read(results)))


def markdown(lines: list[dict[str, Any]]) -> str:
    """Put the errors of all methods side by side, a row for each relation."""
    errors: dict[str, dict[str, float]] = defaultdict(dict)
    truths = {line["task"]: line["truth"] for line in lines}
    for line in lines:
        if line["value"] is not None:
            errors[line["task"]][line["name"]] = line["value"] - line["truth"]
    methods = list(dict.fromkeys(line["name"] for line in lines))
    rows = [["relation", "truth", *methods], ["---", *["---:"] * (1 + len(methods))]]
    for task in sorted(truths):
        cells = [f"{errors[task][name]:+.2f}" if name in errors[task] else "–" for name in methods]
        rows.append([task, f"{truths[task]:.2f}", *cells])
    complete = [task for task in truths if len(errors[task]) == len(methods)]
    if complete:
        means = [f"**{fmean(abs(errors[task][name]) for task in complete):.2f}**" for name in methods]
        rows.append([f"mean size, {len(complete)} relations", "", *means])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _read(results: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []


if __name__ == "__main__":
    app()
