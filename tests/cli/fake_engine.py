"""Measuring functions with the true ones' signatures that answer at once, by one Gaussian."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from infoknife import measure
from infoknife.measure import pairs
from infoknife.measure.estimate import CandidateScore, Diagnostics, Estimate
from infoknife.measure.table import Table, read_table


class FakeTest(NamedTuple):
    p_value: float
    statistic: float
    null: NDArray[np.float64]


class Engine:
    """What the commands call; it keeps the arguments of its calls, and fails and says what tests tell it to."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.error: Callable[[dict[str, Any]], BaseException | None] = lambda arguments: None
        self.value: float | None = None  # NaN or infinite
        self.messages: tuple[str, ...] = ()

    def install(self, patch: pytest.MonkeyPatch) -> None:
        for name in ("entropy", "mutual_information", "permutation_test"):
            for module in (measure, pairs) if name != "entropy" else (measure,):
                patch.setattr(module, name, getattr(self, name))

    def entropy(self, x: Any, given: Any = None, **options: Any) -> Estimate:
        table, rows = self._read(x=x, given=given, **options)
        joint = _surprise(np.concatenate(rows, 1))
        pointwise = joint - _surprise(rows[1]) if len(rows) == 2 else joint
        return self._estimate("entropy", pointwise, table, options)

    def mutual_information(self, x: Any, y: Any, given: Any = None, **options: Any) -> Estimate:
        table, (left, right, *_) = self._read(x=x, y=y, given=given, **options)
        pointwise = _surprise(left) + _surprise(right) - _surprise(np.concatenate([left, right], 1))
        return self._estimate("mutual information", pointwise, table, options)

    def permutation_test(self, x: Any, y: Any, *, permutations: int, **options: Any) -> FakeTest:
        self._read(x=x, y=y, permutations=permutations, **options)
        return FakeTest(0.002, 0.5, np.linspace(-0.1, 0.1, permutations))

    def _read(self, **arguments: Any) -> tuple[Table, list[NDArray[np.float64]]]:
        self.calls.append(arguments)
        if (error := self.error(arguments)) is not None:
            raise error
        sides = {side: arguments[side] for side in ("x", "y", "given") if arguments.get(side) is not None}
        about: dict[str, Any] = {key: arguments.get(key) for key in ("discrete", "groups", "blocks")}
        table = read_table(sides, main="x", missing=arguments["missing"], **about)
        if (watch := arguments.get("progress")) is not None:
            watch(0.5, "half of it")
        return table, [np.stack([table.columns[i].values for i in table.of(side)], 1) for side in sides]

    def _estimate(
        self, quantity: str, pointwise: NDArray[np.float64], table: Table, options: dict[str, Any]
    ) -> Estimate:
        rows, kinds = len(pointwise), table.kinds
        messages = (*self.messages, *table.notes)
        if self.value is not None:
            why = Diagnostics("none", rows, messages=messages, columns=kinds)
            return Estimate(self.value, math.nan, options["unit"], quantity, np.full(rows, self.value), why)
        score = float(pointwise.mean())
        tried = (
            CandidateScore("gaussian", score + 0.2, 0.0),
            CandidateScore("mixture", score, 0.7),
            CandidateScore("k", score + 0.1, 0.3),
        )
        told = Diagnostics("stack", rows, tried, folds=4, messages=messages, columns=kinds)
        stderr = float(pointwise.std() / rows**0.5)
        return Estimate(score, stderr, "nats", quantity, pointwise, told).to(options["unit"])


def _surprise(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """-log of the Gaussian density with the sample's moments, for every row."""
    centred = rows - rows.mean(0)
    covariance = np.atleast_2d(np.cov(rows.T)) + 1e-9 * np.eye(rows.shape[1])
    distance = np.einsum("ni,ij,nj->n", centred, np.linalg.inv(covariance), centred)
    result: NDArray[np.float64] = 0.5 * (distance + np.linalg.slogdet(2 * np.pi * covariance)[1])
    return result
