"""Three kinds of verdict, by hand."""

import pytest

from infoknife.paper.engine.records import Mean
from infoknife.paper.engine.verdicts import Point, Verdict, compared, reproduced, spread


def compare(ours: Mean, rivals: dict[str, Mean], goal: float = 0.0) -> Verdict:
    (verdict,) = compared("x", ours, rivals, "error", goal=goal)
    return verdict


def reproduce(*points: tuple[str, float, float, float, float]) -> Verdict:
    """From points as (where, ours, the paper's, spread, goal)."""
    (verdict,) = reproduced("x", [Point(at, Mean(ours), Mean(paper), *more) for at, ours, paper, *more in points])
    return verdict


def test_the_spread_is_two_deviations_or_a_tenth() -> None:
    assert spread(Mean(1.0, 0.3)) == 0.6
    assert spread(Mean(-1.0, 0.01)) == 0.1


@pytest.mark.parametrize(
    ("ours", "goal", "kind"),
    [(1.05, 0.0, "reproduced"), (0.5, 0.0, "ahead"), (1.5, 0.0, "behind"), (1.5, 2.0, "ahead"), (0.5, 2.0, "behind")],
)
def test_a_number_beside_a_published_one(ours: float, goal: float, kind: str) -> None:
    assert reproduce(("", ours, 1.0, 0.1, goal)).kind == kind


def test_of_several_numbers_all_that_are_off_must_be_better() -> None:
    good, bad, same = ("a", 0.5, 1.0, 0.1, 0.0), ("b", 2.0, 1.0, 0.1, 0.0), ("c", 1.0, 1.0, 0.1, 0.0)
    assert reproduce(same, same).kind == "reproduced"
    assert reproduce(good, same).kind == "ahead"
    verdict = reproduce(good, bad, same)
    assert verdict.kind == "behind"
    assert verdict.text.startswith("0.5000 against 1.0000 (a), 2.0000 against 1.0000 (b)")
    assert ": 1.0000 apart at b" in verdict.text
    assert "1 of 3 within" in verdict.text


def test_the_best_rival_is_named() -> None:
    rivals = {"a": Mean(0.3), "b": Mean(0.2), "c": Mean(None, None, 2, 2)}
    ahead, behind = compare(Mean(0.1), rivals), compare(Mean(0.25), rivals)
    assert (ahead.kind, ahead.against) == ("ahead", "b")
    assert (behind.kind, behind.against) == ("behind", "b")
    assert "by 0.05" in behind.text
    assert "1 of 2 are ahead" in behind.text


def test_the_goal_decides_what_is_better() -> None:
    assert compare(Mean(80.0), {"a": Mean(70.0)}).kind == "behind"
    assert compare(Mean(80.0), {"a": Mean(70.0)}, goal=100.0).kind == "ahead"


def test_a_difference_within_the_noise_and_failures_are_told() -> None:
    texts = [compare(Mean(0.1, std, 4), {"a": Mean(0.2, std, 4)}).text for std in (0.01, 1.0)]
    assert ["standard errors" in text for text in texts] == [False, True]
    assert compare(Mean(0.1, None, 3, 2), {"a": Mean(0.2)}).text.endswith("2 of 3 runs failed")


def test_nothing_to_compare() -> None:
    assert [*compared("x", Mean(0.1), {}, "error"), *compared("x", Mean(0.1), {"a": Mean(None)}, "error")] == []
    assert list(reproduced("x", [Point("", Mean(None), Mean(1.0))])) == []
    assert compare(Mean(None, None, 3, 3), {"a": Mean(0.1)}).kind == "behind"
