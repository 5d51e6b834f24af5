"""The answer of a measurement: intervals, units, and how it is shown."""

import json
import math
import pickle
from dataclasses import FrozenInstanceError
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from scipy import stats

from infoknife.measure.estimate import CandidateScore, Diagnostics, Estimate

TOLD = Diagnostics(
    "knife",
    rows=4,
    candidates=(CandidateScore("gaussian", 2.5, 0.25), CandidateScore("knife", 2.0, 0.75)),
    folds=2,
    parameters=1200,
    gap=0.1,
    correction=-0.02,
    tail=0.015,
    messages=("x[:, 1] has 3 different integers",),
)


def estimate(value: float = 0.6931, stderr: float = 0.0112, **changes: Any) -> Estimate:
    parts: dict[str, Any] = {"unit": "nats", "quantity": "mutual information", "pointwise": np.arange(4.0)}
    parts |= {"diagnostics": TOLD} | changes
    return Estimate(value, stderr, **parts)


def infinite(value: float = math.inf) -> Estimate:
    why = Diagnostics("none", rows=3, messages=("y is a linear function of x",))
    return Estimate(value, math.nan, "nats", "mutual information", np.full(3, value), why)


def rendered(one: Estimate) -> str:
    console = Console(width=100, force_terminal=False)
    with console.capture() as shown:
        console.print(one)
    return shown.get()


# what it holds


def test_pointwise_is_a_frozen_numpy_array_of_doubles() -> None:
    rows = torch.arange(4, dtype=torch.float32, requires_grad=True)
    one = estimate(pointwise=rows)
    assert isinstance(one.pointwise, np.ndarray)
    assert one.pointwise.dtype == np.float64
    assert one.pointwise.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        one.pointwise[0] = 1
    with pytest.raises(FrozenInstanceError):
        one.value = 1.0  # type: ignore[misc]


def test_it_is_a_float() -> None:
    one, two = estimate(), estimate(value=2.0)
    assert (f"{one:.2f}", f"{one:6.1f}", f"{one}") == ("0.69", "   0.7", str(one))
    assert [float(e) for e in sorted([two, one])] == [one.value, 2.0]
    assert one == estimate() == 0.6931
    assert hash(one) == hash(0.6931)
    assert all(type(result) is float for result in (two + one, two**2, -two, abs(two), round(two, 1), float(two)))
    assert np.mean([two, two]) == json.loads(json.dumps(two)) == 2
    again = pickle.loads(pickle.dumps(one))
    assert (again, again.stderr, again.diagnostics) == (one, one.stderr, one.diagnostics)


@pytest.mark.parametrize(
    "changes",
    [
        {"unit": "hartleys"},
        {"quantity": "energy"},
        {"bound": "both"},
        {"pointwise": np.zeros(3)},
        {"pointwise": np.zeros((4, 1))},
    ],
    ids=["unit", "quantity", "bound", "rows", "shape"],
)
def test_what_it_does_not_hold(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"^{next(iter(changes))}"):
        estimate(**changes)


# intervals


@given(st.floats(-50, 50), st.floats(0, 10), st.floats(0.001, 0.999))
def test_interval_is_that_of_scipy(value: float, stderr: float, level: float) -> None:
    expected = stats.norm.interval(level, value, stderr) if stderr else (value, value)
    assert estimate(value, stderr).interval(level) == pytest.approx(expected)


# units


@given(st.floats(-100, 100), st.floats(0, 10))
def test_bits(value: float, stderr: float) -> None:
    one, bits = estimate(value, stderr), estimate(value, stderr).to("bits")
    assert [bits.value, bits.stderr, *bits.interval()] == pytest.approx(
        [part / math.log(2) for part in (one.value, one.stderr, *one.interval())], abs=1e-12
    )
    assert bits.pointwise == pytest.approx(np.arange(4) / math.log(2))
    told = bits.diagnostics
    assert told.candidates[1] == pytest.approx(("knife", 2 / math.log(2), 0.75))
    assert (told.gap, told.correction) == pytest.approx((0.1 / math.log(2), -0.02 / math.log(2)))
    assert told.tail == TOLD.tail
    back = bits.to("nats")
    assert (back.value, back.stderr) == pytest.approx((value, stderr))
    assert (one.to("nats").value, bits.unit) == (value, "bits")


@pytest.mark.parametrize(("parameters", "rows"), [(None, None), (0, None), (5, 20.0), (400, 0.25)])
def test_rows_per_parameter(parameters: int | None, rows: float | None) -> None:
    assert Diagnostics("knife", rows=100, parameters=parameters).rows_per_parameter == rows


# infinite answers


def test_infinite_answers() -> None:
    one = infinite()
    assert float(one) == math.inf
    assert math.isnan(one.stderr)
    assert one.pointwise.tolist() == [math.inf] * 3
    assert all(map(math.isnan, one.interval()))
    assert float(one.to("bits")) == math.inf
    assert repr(one) == "inf nats (mutual information, none, n=3): y is a linear function of x"


# how it is shown


@pytest.mark.parametrize(
    ("value", "stderr", "shown"),
    [
        (0.6931, 0.0112, "0.693 ± 0.011"),
        (-0.0001, 0.0112, "-0.000 ± 0.011"),
        (0.69314718, 0.00012, "0.69315 ± 0.00012"),
        (12345.678, 23.4, "12346 ± 23"),
        (0.69314718, 1.5e-9, "0.693147 ± 1.5e-09"),
        (0.69314718, 0.0, "0.6931 ± 0"),
        (0.69314718, math.nan, "0.6931 ± nan"),
    ],
)
def test_repr_has_the_digits_that_count(value: float, stderr: float, shown: str) -> None:
    assert repr(estimate(value, stderr)) == f"{shown} nats (mutual information, knife, n=4)"


def test_rich_table() -> None:
    assert repr(estimate(quantity="entropy", bound="upper")).endswith("nats (entropy, upper bound, knife, n=4)")
    shown = rendered(estimate(bound="lower"))
    for text in (
        *("mutual information", "0.693 ± 0.011 nats", "0.671 to 0.715", "lower, in expectation", "4 in 2 folds"),
        *("1,200, for 4 rows", "+0.1 nats", "-0.02 nats", "1.5%", "candidate gaussian", "weight 0.75"),
        "x[:, 1] has 3 different integers",
    ):
        assert text in shown


def test_what_does_not_apply_is_not_shown() -> None:
    for correction in (None, 0.0):
        shown = rendered(estimate(diagnostics=Diagnostics("counts", rows=4, parameters=0, correction=correction)))
        assert "corrected" not in shown
        assert "parameters" not in shown
    shown = rendered(infinite())
    assert "inf nats" in shown
    assert "y is a linear function of x" in shown
    assert not any(word in shown for word in ("interval", "folds", "tails", "None", "nan"))


def test_html_is_whole_escaped_and_without_colours_of_its_own() -> None:
    told = Diagnostics("<script>", rows=4, messages=("x['a&b'] < 3",))
    html = estimate(diagnostics=told)._repr_html_()
    tree = ElementTree.fromstring(html)
    assert {one.tag for one in tree.iter()} == {"table", "thead", "tbody", "tr", "th", "td"}
    assert {"<script>", "x['a&b'] < 3", "0.693 ± 0.011 nats"} <= set(tree.itertext())
    assert "#" not in html.replace("&#x27;", "")
    assert "http" not in html


# for programs


def test_as_dict_is_json() -> None:
    one = estimate(bound="upper")
    parts = json.loads(one.to_json())
    assert parts == json.loads(json.dumps(one.as_dict(), allow_nan=False))
    told = parts.pop("diagnostics")
    assert parts.pop("interval") == pytest.approx([0.6711, 0.7151], abs=1e-4)
    facts = {"value": 0.6931, "stderr": 0.0112, "unit": "nats", "bound": "upper", "level": 0.95}
    assert parts == facts | {"quantity": "mutual information", "reliability": "good"}
    assert told["candidates"][1] == {"name": "knife", "score": 2.0, "weight": 0.75}
    assert told["messages"] == ["x[:, 1] has 3 different integers"]
    assert (told["rows"], told["folds"], told["gap"], told["correction"]) == (4, 2, 0.1, -0.02)


def test_as_dict_of_an_infinite_answer() -> None:
    parts = json.loads(json.dumps(infinite(-math.inf).as_dict(pointwise=True), allow_nan=False))
    assert float(parts["value"]) == -math.inf
    assert (parts["stderr"], parts["interval"], parts["pointwise"]) == (None, [None, None], ["-inf"] * 3)
    assert (parts["diagnostics"]["gap"], parts["diagnostics"]["correction"]) == (None, None)
