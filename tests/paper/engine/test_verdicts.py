"""Three kinds of verdict, by hand."""

import pytest

from infoknife.paper.engine.records import Mean
from infoknife.paper.engine.verdicts import Point, compared, reproduced, spread


def one(mean: float | None, std: float | None = None, runs: int = 1, failures: int = 0) -> Mean:
    return Mean(mean, std, runs, failures)


def test_the_spread_is_two_deviations_or_a_tenth() -> None:
    assert spread(one(1.0, 0.3)) == 0.6
    assert spread(one(-1.0, 0.01)) == 0.1


@pytest.mark.parametrize(
    ("ours", "goal", "kind"),
    [(1.05, 0.0, "reproduced"), (0.5, 0.0, "ahead"), (1.5, 0.0, "behind"), (1.5, 2.0, "ahead"), (0.5, 2.0, "behind")],
)
def test_a_number_beside_a_published_one(ours: float, goal: float, kind: str) -> None:
    assert reproduced("x", [Point("", ours, 1.0, 0.1, goal)], "").kind == kind


def test_of_several_numbers_all_that_are_off_must_be_better() -> None:
    good, bad, same = Point("a", 0.5, 1.0, 0.1), Point("b", 2.0, 1.0, 0.1), Point("c", 1.0, 1.0, 0.1)
    assert reproduced("x", [same, same], "").kind == "reproduced"
    assert reproduced("x", [good, same], "").kind == "ahead"
    verdict = reproduced("x", [good, bad, same], "numbers")
    assert verdict.kind == "behind"
    assert verdict.text.startswith("numbers: 1.0000 apart at b")
    assert "1 of 3 within" in verdict.text


def test_the_best_rival_is_named() -> None:
    verdict = compared("x", one(0.1), {"a": one(0.3), "b": one(0.2)}, "error")
    assert verdict is not None
    assert (verdict.kind, verdict.against) == ("ahead", "b")
    verdict = compared("x", one(0.25), {"a": one(0.3), "b": one(0.2), "c": one(None, runs=2, failures=2)}, "error")
    assert verdict is not None
    assert (verdict.kind, verdict.against) == ("behind", "b")
    assert "by 0.05" in verdict.text
    assert "1 of 2 are ahead" in verdict.text


def test_the_goal_decides_what_is_better() -> None:
    for goal, kind in ((0.0, "behind"), (100.0, "ahead")):
        verdict = compared("x", one(80.0), {"a": one(70.0)}, "accuracy", goal=goal)
        assert verdict is not None
        assert verdict.kind == kind


def test_a_difference_within_the_noise_is_told() -> None:
    texts = []
    for std in (0.01, 1.0):
        verdict = compared("x", one(0.1, std, 4), {"a": one(0.2, std, 4)}, "error")
        assert verdict is not None
        texts.append("standard errors" in verdict.text)
    assert texts == [False, True]


def test_nothing_to_compare() -> None:
    assert compared("x", one(0.1), {}, "error") is None
    assert compared("x", one(0.1), {"a": one(None)}, "error") is None
    lost = compared("x", one(None, runs=3, failures=3), {"a": one(0.1)}, "error")
    assert lost is not None
    assert lost.kind == "behind"
