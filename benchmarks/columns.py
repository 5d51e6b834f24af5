"""Columns that are hard to measure: needles among many, outliers, repeated rows; and known data in every format."""

import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
import typer

import infoknife
from benchmarks.judging import Answer, measure
from benchmarks.needles import OneNeedle, TwoNeedles
from benchmarks.table_tasks import Array, Column, TableTask, constant

__all__ = ["needle", "outliers", "repeats", "sklearn"]

OUTLIERS = (1e3, 1e6, 1e30)
OUTLIER_CELLS = ("outlier", "truth", "clean", "value", "stderr", "moved")
SINGLE = 12  # columns of a dataset that are measured one by one
DATASETS = ("iris", "wine", "breast_cancer", "diabetes", "digits")

Effort = Annotated[str, typer.Option(help="quick, standard or thorough.")]
Seed = Annotated[int, typer.Option(help="Of the rows.")]


class Family(StrEnum):
    """Relations to develop an estimator with, and others to judge it by."""

    DEVELOP = "develop"
    REPORT = "report"


def relations(rows: int) -> list[TableTask]:
    """Four relations of two continuous columns."""
    return [
        TableTask("Gaussian", rows, Column(), Column(lambda u: 0.8 * u, 0.6)),
        TableTask("sine", rows, Column(), Column(lambda u: np.sin(2 * u), 0.3)),
        TableTask("square", rows, Column(), Column(np.square, 0.5)),
        TableTask("spread grows", rows, Column(), Column(constant, lambda u: np.exp(0.8 * u))),
    ]


def needle(
    family: Annotated[Family, typer.Argument(help="Which relations.")] = Family.DEVELOP,
    effort: Effort = "quick",
    seed: Seed = 0,
) -> None:
    """One informative column of 20, and two of 50."""
    torch.set_num_threads(1)
    print(f"{'relation':<24}{'n':>6}{'columns':>9}{'truth':>8}{'value':>8}{'stderr':>8}{'ratio':>7}{'s':>8}")
    ratios = []
    for task in _needles(family):
        answer = measure(*task.sample(seed), effort, seed)
        ratios.append(answer.value / task.truth)
        sizes = f"{task.rows:>6}{task.columns:>9}"
        numbers = f"{task.truth:>8.3f}{answer.value:>8.3f}{answer.stderr:>8.3f}{ratios[-1]:>7.2f}{answer.seconds:>8.1f}"
        print(f"{task.name:<24}{sizes}{numbers}{_failure(answer)}", flush=True)
    print(f"\nmean of value / truth: {np.mean(ratios):.3f}, smallest: {np.min(ratios):.3f}")


def _needles(family: Family) -> tuple[OneNeedle | TwoNeedles, ...]:
    if family is Family.DEVELOP:
        from benchmarks.tables_develop import NEEDLES, PAIRS
    else:
        from benchmarks.tables_report import NEEDLES, PAIRS
    return *NEEDLES, *PAIRS


def outliers(effort: Effort = "quick", seed: Seed = 0) -> None:
    """One wild value among 1,500 rows: how far it moves mutual information and entropy."""
    torch.set_num_threads(1)
    print(f"{'relation':<16}{'where':>8}" + "".join(f"{name:>10}" for name in OUTLIER_CELLS))
    moved = []
    for task in relations(1500):
        x, y = task.sample(task.rows, seed)
        clean = measure(x, y, effort, seed)
        for where, outlier in ((where, outlier) for where in "xy" for outlier in OUTLIERS):
            pair = (_spoiled(x, outlier), y) if where == "x" else (x, _spoiled(y, outlier))
            answer = measure(*pair, effort, seed)
            moved.append(abs(answer.value - clean.value))
            print(_moved_line(task.name, where, outlier, task.truth, clean, answer), flush=True)
    column = relations(1500)[0].sample(1500, seed)[0]
    clean = _entropy(column, effort, seed)
    for outlier in OUTLIERS:
        answer, truth = _entropy(_spoiled(column, outlier), effort, seed), 0.5 * np.log(2 * np.pi * np.e)
        print(_moved_line("entropy", "x", outlier, truth, clean, answer), flush=True)
    print(f"\nmutual information moved by {_short(np.median(moved))} in the median, {_short(np.max(moved))} at most")


def _spoiled(column: Array, outlier: float) -> Array:
    column = column.copy()
    column[len(column) // 3] = outlier
    return column


def _entropy(x: Array, effort: Any, seed: int) -> Answer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimate = infoknife.entropy(x, effort=effort, seed=seed)
    return Answer(estimate.value, estimate.stderr, 0.0)


def _moved_line(name: str, where: str, outlier: float, truth: float, clean: Answer, answer: Answer) -> str:
    numbers = (truth, clean.value, answer.value, answer.stderr, answer.value - clean.value)
    cells = "".join(f"{_short(number):>10}" for number in numbers)
    return f"{name:<16}{where:>8}{outlier:>10.0e}{cells}{_failure(answer)}"


def _short(number: float) -> str:
    """Three decimals, or a power of ten where they would be lost in digits."""
    return f"{number:.3f}" if not abs(number) >= 1e4 else f"{number:.1e}"


def repeats(effort: Effort = "quick", seed: Seed = 0) -> None:
    """Rows that occur again: a bootstrap sample of 500 rows, and 500 rows three times."""
    torch.set_num_threads(1)
    print(f"{'relation':<16}{'rows':>14}{'truth':>8}{'value':>9}{'stderr':>8}{'error':>9}  messages")
    for task in relations(500):
        x, y = task.sample(task.rows, seed)
        index = np.random.default_rng(seed).integers(task.rows, size=task.rows)
        for how, rows in (
            ("once", slice(None)),
            ("bootstrapped", index),
            ("tripled", np.tile(np.arange(task.rows), 3)),
        ):
            answer = measure(x[rows], y[rows], effort, seed)
            numbers = f"{task.truth:>8.3f}{answer.value:>9.3f}{answer.stderr:>8.3f}{answer.value - task.truth:>+9.3f}"
            print(f"{task.name:<16}{how:>14}{numbers}  {' | '.join(answer.messages)}{_failure(answer)}", flush=True)


class Dataset(NamedTuple):
    """A dataset of scikit-learn: features (N, d) with names, and a class or a number for each row."""

    name: str
    x: Array
    y: Array
    names: list[str]

    @property
    def is_classes(self) -> bool:
        return self.name != "diabetes"


def sklearn(effort: Effort = "quick", only: Annotated[str | None, typer.Option(help="One dataset.")] = None) -> None:
    """Five datasets in five formats, and single columns beside the estimates of scikit-learn."""
    torch.set_num_threads(1)
    for name in DATASETS:
        if only is None or name == only:
            data = _load(name)
            values = dict(_formats(data, effort))
            told = ", ".join(
                f"{form} {value if isinstance(value, str) else f'{value:.6f}'}" for form, value in values.items()
            )
            numbers = [value for value in values.values() if not isinstance(value, str)]
            apart = f"{max(numbers) - min(numbers):.2e}" if numbers else "no answers"
            print(
                f"{name}, {len(data.y)} rows, {len(data.names)} columns: {told}; largest difference {apart}", flush=True
            )
            _print_single_columns(data, effort)


def _load(name: str) -> Dataset:
    from sklearn import datasets

    loaded = getattr(datasets, f"load_{name}")()
    names = [str(column).replace(" ", "_") for column in loaded.feature_names]
    varies = np.ptp(loaded.data, axis=0) > 0
    return Dataset(name, loaded.data[:, varies], loaded.target, [names[i] for i in np.flatnonzero(varies)])


def _formats(data: Dataset, effort: str) -> Iterator[tuple[str, float | str]]:
    """The answer, or the error, for every format."""
    import pandas as pd
    import polars as pl

    frame = pd.DataFrame(data.x, columns=data.names)
    yield "numpy", _value(measure(data.x, data.y, effort))
    yield "pandas", _value(measure(frame, pd.Series(data.y, name="target"), effort))
    polars = pl.DataFrame({name: data.x[:, i] for i, name in enumerate(data.names)})
    yield "polars", _value(measure(polars, pl.Series("target", data.y), effort))
    frame["target"] = data.y
    with tempfile.TemporaryDirectory() as folder:
        frame.to_csv(csv := Path(folder) / "data.csv", index=False)
        frame.to_parquet(parquet := Path(folder) / "data.parquet")
        for file in (csv, parquet):
            yield file.suffix[1:], _from_command_line(file, data.names, effort)


def _from_command_line(file: Path, names: list[str], effort: str) -> float | str:
    command = [sys.executable, "-c", "from infoknife.cli import app; app()", "mi", str(file)]
    options = ["--x", ",".join(names), "--y", "target", "--effort", effort, "--json"]
    done = subprocess.run(command + options, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit code {done.returncode}"
    return float(json.loads(done.stdout)["value"])


def _value(answer: Answer) -> float | str:
    return answer.value if answer.error is None else f"{type(answer.error).__name__}: {answer.error}"


def _print_single_columns(data: Dataset, effort: str) -> None:
    """Some columns one by one, beside the nearest neighbours of scikit-learn."""
    from sklearn.feature_selection import mutual_info_classif, mutual_info_regression

    estimator = mutual_info_classif if data.is_classes else mutual_info_regression
    chosen = np.unique(np.linspace(0, len(data.names) - 1, SINGLE).round().astype(int))
    few = np.array([len(np.unique(data.x[:, i])) <= 20 for i in chosen])
    theirs = estimator(data.x[:, chosen], data.y, discrete_features=few, n_neighbors=3, random_state=0)
    ours = [measure(data.x[:, i], data.y, effort) for i in chosen]
    for i, answer, value in zip(chosen, ours, theirs, strict=True):
        numbers = f"{answer.value:>8.3f} ± {answer.stderr:.3f}, scikit-learn {value:.3f}"
        print(f"    {data.names[i]:<28}{numbers}, difference {answer.value - value:+.3f}{_failure(answer)}", flush=True)
    apart = np.abs([answer.value - value for answer, value in zip(ours, theirs, strict=True)])
    print(f"    difference to scikit-learn: {np.mean(apart):.3f} in the mean, {np.max(apart):.3f} at most")


def _failure(answer: Answer) -> str:
    return "" if answer.error is None else f"  {type(answer.error).__name__}: {answer.error}"
