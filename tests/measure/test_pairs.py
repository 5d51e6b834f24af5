"""All pairs: what is written of them. Measuring itself is tested through the command line."""

import csv
import json
import math
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from infoknife.measure import pairs as room
from infoknife.measure.pairs import Pair, Pairs, appended, identity, measurable, measure_pairs, read_pairs, screen_pairs


def rows(pairs: Pairs, path: Path) -> list[list[str]]:
    pairs.write_csv(path)
    return list(csv.reader(path.read_text().splitlines()))


def test_infinity_and_what_is_not_there(tmp_path: Path) -> None:
    found = (
        Pair(("a", "b"), math.inf, rows=40, messages=("b rises with a", "3 rows left out")),
        Pair(("a", "c"), messages=("odd",)),
    )
    pairs = Pairs(("a", "b", "c", "d"), found, "nats", {"d": "d is constant"})
    content = json.loads(json.dumps(pairs.as_dict(), allow_nan=False))
    assert content["value"][0] == [None, "inf", None, None]
    assert content["rows"][0] == [None, 40, 0, None]
    assert "p_value" not in content
    assert content["notes"][0] == {"columns": ["a", "b"], "messages": ["b rises with a", "3 rows left out"]}
    assert [one["columns"] for one in content["failed"]] == [["d"], ["a", "c"]]
    found_rows = rows(pairs, tmp_path / "pairs.csv")
    assert found_rows[0] == ["column_a", "column_b", "value", "stderr", "p_value", "rows", "note", "run"]
    assert found_rows[1] == ["a", "b", "inf", "", "", "40", "b rises with a. 3 rows left out", ""]
    assert found_rows[2] == ["a", "c", "", "", "", "", "odd", ""]
    assert found_rows[3] == ["a", "d", "", "", "", "", "d is constant", ""]
    assert len(found_rows) == 7


def test_no_name_is_a_formula(tmp_path: Path) -> None:
    names = ("=0+1", "@1")
    pairs = Pairs(names, tuple(Pair(pair, 0.25, 0.025, 0.5, 40) for pair in combinations(names, 2)), "nats")
    assert rows(pairs, tmp_path / "pairs.csv")[1] == ["'=0+1", "'@1", "0.25", "0.025", "0.5", "40", "", ""]


def test_columns_that_cannot_be_measured_say_why() -> None:
    rng = np.random.default_rng(0)
    columns = {"a": rng.normal(size=40), "b": np.ones(40), "c": [None, *range(39)], "d": ["x", "y"] * 20}
    found, left_out = measurable(columns, discrete={"d": False})
    assert (list(found), list(left_out)) == (["a"], ["b", "c", "d"])
    assert list(measurable(columns, missing="drop")[0]) == ["a", "c", "d"]


def test_pairs_are_measured_and_failures_have_messages() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=1100)
    found, _ = measurable({"a": a, "b": 0.8 * a + 0.6 * rng.normal(size=1100), "c": rng.normal(size=1100)})
    pairs = {pair.names: pair for pair in measure_pairs(found, method="gaussian", effort="quick")}
    assert pairs["a", "b"].value == pytest.approx(-math.log(0.6), abs=0.1)
    assert abs(pairs["a", "c"].value) < 0.01
    assert pairs["a", "b"].stderr < 0.05
    (failed, *_) = measure_pairs(found, method="gaussian", effort="nope")
    assert math.isnan(failed.value)
    assert "nope" in failed.messages[0]


def test_screening_keeps_what_depends() -> None:
    rng = np.random.default_rng(0)
    n = 2000
    x, kind = rng.normal(size=n), rng.integers(0, 4, n)
    columns = {
        "x": x,
        "square": x**2 + 0.5 * rng.normal(size=n),
        "weak": 0.1 * x + rng.normal(size=n),
        "wave": np.sin(3 * x) + 0.3 * rng.normal(size=n),
        "kind": np.array(list("abcd"))[kind],
        "of_kind": 0.3 * (kind == 2) + rng.normal(size=n),
        **{f"noise{i}": rng.normal(size=n) for i in range(20)},
    }
    found, _ = measurable(columns)
    screened = screen_pairs(found)
    assert not {("x", "square"), ("x", "weak"), ("x", "wave"), ("kind", "of_kind")} & screened.keys()
    noise = [names for names in screened if all(name.startswith("noise") for name in names)]
    assert 0.85 < len(noise) / 190 <= 1  # at a level of 0.05
    assert abs(np.mean([screened[names].value for names in noise])) < 0.005
    assert screen_pairs(found, 1.0) == {}


def test_gaps_do_not_count_when_pairs_are_screened() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=2000)
    a[:500] = np.nan
    found, _ = measurable({"a": a, "b": rng.normal(size=2000)}, missing="drop")
    assert screen_pairs(found, 0.0001)["a", "b"].rows == 1500


def test_what_was_measured_is_read_again(tmp_path: Path) -> None:
    path, pairs = tmp_path / "pairs.csv", [Pair(("=a", "b"), 0.25, 0.1, rows=7), Pair(("=a", "c"), messages=("odd",))]
    with appended(path, "run1") as append:
        append(pairs[0])
        append(pairs[1])
        assert path.read_bytes().count(b"\n") == 3  # at once
    again = read_pairs(path, "run1")
    assert list(again) == [("=a", "b")]  # what failed is measured again
    assert again["=a", "b"].value == 0.25
    assert read_pairs(path, "run2") == {}
    assert read_pairs(tmp_path / "none.csv", "run1") == {}


def test_other_data_or_options_are_another_run() -> None:
    (found, _), (other, _) = (measurable({"a": np.arange(20.0), "b": list("xy") * 5 + [last] * 10}) for last in "xy")
    runs = {identity(found, {"seed": 0}), identity(found, {"seed": 1}), identity(other, {"seed": 0})}
    assert len(runs) == 3
    assert identity(found, {"seed": 0}) in runs


@pytest.mark.filterwarnings("ignore")  # of a cluster that ends while it is asked
def test_a_cluster_measures_the_same_and_its_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pair whose workers are killed costs that pair alone; without a scheduler nothing goes on."""
    distributed = pytest.importorskip("distributed")
    found, _ = measurable(dict(zip("abcd", np.random.default_rng(0).normal(size=(4, 60)), strict=True)))
    options: dict[str, Any] = {"method": "gaussian", "effort": "quick"}
    expected = {pair.names: pair.value for pair in measure_pairs(found, **options)}
    monkeypatch.setattr(room, "AT_ONCE", 2)
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster:
        options |= {"scheduler": cluster.scheduler_address}
        assert {pair.names: pair.value for pair in measure_pairs(found, **options)} == expected
        measured = room._measured

        def deadly(a: Any, b: Any, *rest: Any) -> Pair:
            if (a.name, b.name) == ("a", "c"):
                raise distributed.KilledWorker("its task", SimpleNamespace(address="tcp://gone"), 3)
            return measured(a, b, *rest)

        monkeypatch.setattr(room, "_measured", deadly)
        pairs = {pair.names: pair for pair in measure_pairs(found, **options)}
        assert pairs.keys() == expected.keys()
        assert [names for names, pair in pairs.items() if math.isnan(pair.value)] == [("a", "c")]
        assert "killed" in pairs["a", "c"].messages[0]
        left = measure_pairs(found, **options)
        next(left)
        cluster.scheduler.stop()
        cluster.sync(cluster.scheduler.close)
        with pytest.raises(ConnectionError, match=f"{cluster.scheduler_address} is gone"):
            list(left)
