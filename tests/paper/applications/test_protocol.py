"""The fair protocol: equal draws, a rule that chooses, one reading of the test split, and paired differences."""

from collections.abc import Mapping
from typing import Any

import pytest
import scipy.stats

from infoknife.paper.applications.protocol import (
    LogUniform,
    by_seed,
    compare,
    comparison,
    draws,
    paired,
)
from infoknife.paper.applications.run import SelectionRule
from infoknife.pictures.tables import markdown

GRID = {"lr": LogUniform(1e-3, 1e-1), "weight": LogUniform(0.1, 10.0)}
RULES = (SelectionRule("score", "score", 1, "labels"), SelectionRule("loss", "loss", -1, "nothing"))


class Toy:
    """A run whose score and loss on the selection split are its learning rate, and whose test is its weight."""

    tested: list[tuple[str, int]] = []  # noqa: RUF012

    def __init__(self, method: str, seed: int, changes: Mapping[str, float]) -> None:
        self.method, self.seed, self.changes = method, seed, dict(changes)

    def train(self) -> None:
        if self.method == "diverging" and self.changes["lr"] > 0.01:
            raise FloatingPointError("the loss of step 1 is nan")
        value = self.changes["lr"]
        self.kept_models: dict[str, dict[str, Any]] = {
            "score": {"value": value, "step": 3},
            "loss": {"value": None if self.method == "silent" else -value, "step": 3},
        }

    def test(self, rule: SelectionRule) -> dict[str, float]:
        self.tested.append((self.method, self.seed))
        return {"accuracy": self.changes["weight"] / 100}


def run(*methods: str, number: int = 4, **changes: Any) -> list[dict[str, Any]]:
    Toy.tested.clear()
    make: Any = Toy
    return list(compare(make, methods, range(3), GRID, number, RULES, changes))


def test_every_method_has_the_same_draws_and_they_are_log_uniform() -> None:
    found = [each["lr"] for seed in range(500) for each in draws(GRID, 2, seed)]
    assert 1e-3 <= min(found) < 2e-3
    assert 5e-2 < max(found) <= 1e-1
    assert sum(lr < 1e-2 for lr in found) / len(found) == pytest.approx(0.5, abs=0.06)
    ours, theirs = ([r["chosen"] for r in run("a", "b", number=3) if r["method"] == name] for name in "ab")
    assert ours == theirs


def test_each_rule_chooses_by_the_selection_split_alone() -> None:
    for record in run("a"):
        rates = [each["lr"] for each in draws(GRID, 4, record["seed"])]
        assert record["chosen"]["score"]["draw"] == rates.index(max(rates))
        assert record["chosen"]["loss"]["draw"] == rates.index(min(rates))
        assert record["chosen"]["score"]["settings"]["lr"] == max(rates)


def test_the_test_split_is_read_once_for_what_was_chosen() -> None:
    run("a", number=1)
    assert Toy.tested == [("a", seed) for seed in range(3)], "two rules that choose the same model share its test"


def test_a_rule_that_says_nothing_takes_the_first_draw_and_divergence_is_counted() -> None:
    assert [record["chosen"]["loss"]["draw"] for record in run("silent")] == [0, 0, 0]
    records = run("diverging", number=8)
    above = [sum(each["lr"] > 0.01 for each in draws(GRID, 8, seed)) for seed in range(3)]
    assert [record["failed"] for record in records] == above
    for record in records:
        assert not record["chosen"] or record["chosen"]["score"]["settings"]["lr"] <= 0.01


def test_differences_are_students() -> None:
    ours, theirs = {0: 3.0, 1: 5.0, 2: 4.5, 7: 1.0}, {0: 1.0, 1: 2.5, 2: 3.0, 8: 0.0}
    found = paired(ours, theirs)
    expected = scipy.stats.ttest_rel([3.0, 5.0, 4.5], [1.0, 2.5, 3.0]).confidence_interval()
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert (found.mean, found.pairs) == (2.0, 3)
    with pytest.raises(ValueError, match="ours and theirs"):
        paired({0: 1.0}, {1: 1.0})


def record(method: str, seed: int, place: str, accuracy: float) -> dict[str, Any]:
    chosen = {"score": {"results": {"accuracy": accuracy}}}
    return {"method": method, "seed": seed, "place": place, "chosen": chosen}


def test_means_are_over_places_that_all_methods_have() -> None:
    records = [record("a", 0, "x", 0.5), record("a", 0, "y", 0.7), record("b", 0, "x", 0.4), record("a", 1, "x", 0.6)]
    assert by_seed(records, "score", "accuracy") == {"a": {0: 50.0, 1: 60.0}, "b": {0: 40.0}}
    table = comparison("all", records, "score", {"accuracy": "accuracy"}, base="a")
    assert table.rows == (("a", "2", "55.0 ± 7.1", ""), ("b", "1", "40.0", "-10.0"))
    assert "minus a" in markdown(table)
