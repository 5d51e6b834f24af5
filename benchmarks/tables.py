"""``python -m benchmarks.tables``: ordinary tables with exactly known mutual information, and what cannot be true.

``develop`` and ``report`` are two families of sixty tables that have none in common. An estimator is developed with the
first and judged by the second. ``absurd`` draws small random tables and counts answers that no table can have.
"""

import math
import time
from typing import Annotated

import numpy as np
import torch
import typer

from benchmarks.judging import Answer, absurdities, measure
from benchmarks.random_tables import random_table
from benchmarks.table_tasks import Array, TableTask

__all__ = ["develop", "report"]

MANY = 1000  # rows from which an answer should be right and not only possible

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Measure tables with known mutual information.")

Only = Annotated[str | None, typer.Option(help="Only tables whose name contains this.")]
Effort = Annotated[str, typer.Option(help="quick, standard or thorough.")]
Seed = Annotated[int, typer.Option(help="Of the rows.")]


def develop() -> list[TableTask]:
    """Sixty tables to develop an estimator with."""
    from benchmarks import tables_develop

    return tables_develop.tasks()


def report() -> list[TableTask]:
    """Sixty other tables to judge it by."""
    from benchmarks import tables_report

    return tables_report.tasks()


@app.command("develop")
def _develop(only: Only = None, effort: Effort = "quick", seed: Seed = 0) -> None:
    """The tables that an estimator may be developed with."""
    _measure_all(develop(), only, effort, seed)


@app.command("report")
def _report(only: Only = None, effort: Effort = "quick", seed: Seed = 0) -> None:
    """The tables that judge it."""
    _measure_all(report(), only, effort, seed)


@app.command()
def absurd(
    draws: Annotated[int, typer.Option(help="How many random tables.")] = 2000,
    seed: Annotated[int, typer.Option(help="The first table's seed; the next ones follow it.")] = 0,
    effort: Effort = "quick",
    minutes: Annotated[float, typer.Option(help="Stop after so long, and say how many tables are left.")] = 20.0,
) -> None:
    """Answers about small random tables that no table can have, with the seeds of the tables."""
    torch.set_num_threads(1)
    found, refused, done, begin = [], [], 0, time.perf_counter()
    for number in range(seed, seed + draws):
        if time.perf_counter() - begin > 60 * minutes:
            print(f"\nSTOPPED after {minutes:g} minutes; the next table has seed {number}")
            break
        done += 1
        x, y = random_table(number)
        answer = measure(x, y, effort)
        if reasons := absurdities(answer, x, y):
            found.append(number)
            print(f"seed {number}, n={len(x)}, {_kind(x)} and {_kind(y)}: {'; '.join(reasons)}", flush=True)
        elif answer.error is not None:
            refused.append(number)
            print(f"seed {number}, n={len(x)}, refused: {answer.error}", flush=True)
    took = time.perf_counter() - begin
    print(
        f"\n{done} of {draws} tables in {took:.0f} s, absurd: {len(found)} {found}, refused: {len(refused)} {refused}"
    )


def _measure_all(tasks: list[TableTask], only: str | None, effort: str, seed: int) -> None:
    """Measure and print one row per table, and the summary."""
    torch.set_num_threads(1)
    print(f"{'table':<50}{'n':>6}{'truth':>8}{'value':>8}{'stderr':>8}{'error':>8}{'s':>7}{'warnings':>10}  kinds")
    answers: list[tuple[TableTask, Answer, list[str]]] = []
    for task in tasks:
        if only is None or only in task.name:
            x, y = task.sample(task.rows, seed)
            answer = measure(x, y, effort, seed)
            answers.append((task, answer, absurdities(answer, x, y)))
            print(_line(*answers[-1]), flush=True)
    print(_summary(answers))


def _line(task: TableTask, answer: Answer, reasons: list[str]) -> str:
    error = answer.value - task.truth
    numbers = f"{task.rows:>6}{task.truth:>8.3f}{answer.value:>8.3f}{answer.stderr:>8.3f}{error:>+8.3f}"
    raised = f"{answer.seconds:>7.2f}{answer.warnings:>10}"
    why = "" if answer.error is None else f"  {type(answer.error).__name__}: {answer.error}"
    absurd = "  ABSURD: " + "; ".join(reasons) if reasons else ""
    return f"{task.name:<50}{numbers}{raised}  {answer.kinds}{why}{absurd}"


def _summary(answers: list[tuple[TableTask, Answer, list[str]]]) -> str:
    """Mean and worst absolute error, where an answer that is missing or infinite counts as infinitely wrong."""
    errors = [(abs(answer.value - task.truth), task) for task, answer, _ in answers]
    errors = [(error if math.isfinite(error) else math.inf, task) for error, task in errors]
    many = [error for error, task in errors if task.rows >= MANY]
    within = [error <= 2 * answer.stderr for (error, _), (_, answer, _) in zip(errors, answers, strict=True)]
    worst = sorted(errors, key=lambda pair: -pair[0])[:5]
    lines = [
        "",
        f"mean absolute error, n >= {MANY}: {np.mean(many) if many else math.nan:.4f} ({len(many)} tables)",
        f"mean absolute error, all: {np.mean([error for error, _ in errors]):.4f} ({len(errors)} tables)",
        f"truth within 2 standard errors: {sum(within)} of {len(within)}",
        *(f"worst: {error:.4f} {task.name}, n={task.rows}" for error, task in worst),
        f"absurd answers: {sum(bool(reasons) for *_, reasons in answers)}",
        f"seconds: {sum(answer.seconds for _, answer, _ in answers):.0f}",
    ]
    return "\n".join(lines)


def _kind(column: Array) -> str:
    return f"{column.dtype} of {len(np.unique(column))} values"


if __name__ == "__main__":
    app()
