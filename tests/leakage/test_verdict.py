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
        "A clear leak. An attacker who sees the features guesses sex right 85 times in 100 (balanced); without the "
        "features 50. The features hold 0.31 of 0.69 nats about it (0.29 to 0.33). By Fano's inequality no attacker is "
        "right in more than 90 of 100 rows."
    )


def test_nothing_found_is_no_proof() -> None:
    said = words(about(0.5, 0.0, 0.0))
    assert said.startswith("No leak found. The best probe guesses sex right 50 times in 100")
    assert said.endswith("This is no proof that there is none.")
