import math

import pytest

from infoknife.leakage.probes import Probe
from infoknife.leakage.verdict import Grade, Numbers, grade, words


def about(balanced: float, information: float, low: float, stderr: float = 0.01) -> Numbers:
    probe = Probe("linear", balanced, balanced, stderr, information, (balanced, balanced), ())
    return Numbers("sex", information, (low, information + 0.02), 0.69, probe, 4, 0.5, 0.9)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        (about(0.50, 0.0, 0.0), Grade.NONE),
        (about(0.524, 0.0, 0.0), Grade.NONE),  # the best of four is lucky
        (about(0.527, 0.0, 0.0), Grade.SLIGHT),
        (about(0.50, 0.01, 0.005), Grade.SLIGHT),
        (about(0.59, 0.02, 0.01), Grade.SLIGHT),
        (about(0.59, 0.10, 0.08), Grade.CLEAR),
        (about(0.80, 0.25, 0.2), Grade.CLEAR),
        (about(0.96, 0.45, 0.4), Grade.NEARLY),
        (about(0.80, 0.50, 0.4), Grade.NEARLY),
    ],
)
def test_grades(numbers: Numbers, expected: Grade) -> None:
    assert grade(numbers) is expected
    assert words(numbers).lower().startswith(expected.value)


def test_words() -> None:
    assert words(about(0.85, 0.31, 0.29)) == (
        "A clear leak. An attacker who sees the features guesses sex right 85 times out of 100 (balanced accuracy), "
        "against 50 without the features. The features hold 0.31 of the 0.69 nats about it (0.29 to 0.33). By Fano's "
        "inequality no attacker is right more than 90 times out of 100."
    )


def test_nothing_found_is_no_proof() -> None:
    said = words(about(0.5, 0.0, 0.0))
    assert said.startswith("No leak found. The best probe guesses sex right 50 times out of 100")
    assert "The features hold less than 0.01 of the 0.69 nats about it, at most 0.02." in said
    assert said.endswith("This does not prove that there is no leak.")


def test_no_sentence_is_empty_of_meaning() -> None:
    said = words(about(1.0, 0.69, 0.69)._replace(ceiling=0.999, interval=(0.6899, 0.6901)))
    assert "guesses sex right every time; without the features, 50 times out of 100" in said
    assert "100 times" not in said
    assert "Fano" not in said
    assert "(" not in said
    assert "nearly every time" in words(about(0.997, 0.6, 0.5))
    assert "0.00" not in words(about(0.5, 0.0, 0.0)._replace(interval=(0.0, 0.001)))


def quantity(r2: float, information: float, low: float) -> Numbers:
    probe = Probe("linear", math.nan, math.nan, 0.01, math.nan, (), (), r2, 1.0)
    return Numbers("age", information, (low, information + 0.02), math.nan, probe, 4, 0.0, math.nan)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        (quantity(-0.02, 0.0, 0.0), Grade.NONE),
        (quantity(0.02, 0.0, 0.0), Grade.NONE),  # the best of four is lucky
        (quantity(0.03, 0.0, 0.0), Grade.SLIGHT),
        (quantity(0.0, 0.02, 0.01), Grade.SLIGHT),
        (quantity(0.0, 0.08, 0.06), Grade.CLEAR),  # explains 15 % of a Gaussian variance
        (quantity(0.2, math.nan, math.nan), Grade.CLEAR),
        (quantity(0.5, 0.35, 0.3), Grade.CLEAR),
        (quantity(0.91, 0.9, 0.8), Grade.NEARLY),
        (quantity(0.5, 1.2, 1.1), Grade.NEARLY),
        (quantity(0.5, math.inf, math.inf), Grade.NEARLY),
    ],
)
def test_grades_of_a_quantity(numbers: Numbers, expected: Grade) -> None:
    assert grade(numbers) is expected


def test_words_about_a_quantity() -> None:
    assert words(quantity(0.496, 0.34, 0.28)) == (
        "A clear leak. An attacker who sees the features explains 50 % of the variance of age. The features hold 0.34 "
        "nats about it (0.28 to 0.36)."
    )
    assert "explains none of the variance of age" in words(quantity(-0.02, 0.0, 0.0))
    assert "explains more than 99 % of" in words(quantity(0.9999, math.inf, math.inf))
    assert words(quantity(0.99, math.inf, math.inf)).endswith("The features determine age, exact to rounding.")
    assert "nats" not in words(quantity(0.5, math.nan, math.nan))
