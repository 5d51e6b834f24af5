from typing import Any

import pytest

from infoknife.paper.experiments.report.verdicts import Verdict, verdicts
from tests.paper.experiments.record_factory import Record
from tests.paper.experiments.report.fair import learned, lost

BASE = 0.84, 0.66


def runs(method: str, *points: tuple[float, float], preset: str = "cpu", **more: Any) -> list[Record]:
    """Main and private accuracy at λ = 0.1, 1, 10."""
    weights = (0.0,) if method == "none" else (0.1, 1.0, 10.0)
    return [
        learned(preset, "dial-mention", method, w, main_accuracy=main, private_accuracy=private, **more)
        for w, (main, private) in zip(weights, points, strict=False)
    ]


def judged(*records: Record) -> list[tuple[str, bool | None]]:
    return [(verdict.word, verdict.good) for verdict in verdicts(records)]


def first(*records: Record) -> Verdict:
    return verdicts(records)[0]


def test_hidden_at_one_weight() -> None:
    verdict = first(*runs("none", BASE), *runs("knife", (0.84, 0.6), (0.83, 0.55), (0.81, 0.5)))
    assert (verdict.experiment, verdict.method) == ("fig4", "KNIFE, DIAL mention")
    assert (verdict.word, verdict.good) == ("hides it: at most 56 %", True)
    assert verdict.text == "private 55.0, main 83.0 against 84.0 without, λ = 1"  # λ = 10 loses 3 points


@pytest.mark.parametrize(("private", "good"), [(0.56, True), (0.561, False)])
def test_56_per_cent_is_enough(private: float, good: bool) -> None:
    assert judged(*runs("none", BASE), *runs("knife", (0.84, private)))[0][1] is good


def test_more_classes_have_another_chance() -> None:
    more: dict[str, Any] = {"private_chance": 0.25}
    verdict = first(*runs("none", BASE, **more), *runs("knife", (0.84, 0.4), **more))
    assert (verdict.word, verdict.good) == ("does not reach 31 %", False)


def test_the_label_is_lost_at_every_weight() -> None:
    verdict = first(*runs("none", BASE), *runs("knife", (0.81, 0.5), (0.7, 0.5)))
    assert (verdict.word, verdict.good) == ("loses the label", False)
    assert "84.0 without" in verdict.text


def test_without_a_run_without_there_is_nothing_to_compare_with() -> None:
    assert judged(*runs("knife", (0.8, 0.5))) == [("nothing to compare with", None)]


def test_a_rival_that_is_better_in_both_is_named() -> None:
    knife = runs("knife", (0.825, 0.55))
    rivals = [*runs("club", (0.84, 0.6), (0.836, 0.52)), *runs("doe", (0.83, 0.5), (0.9, 0.56))]
    _, verdict = verdicts([*runs("none", BASE), *knife, *rivals])
    assert (verdict.word, verdict.good) == ("beaten by CLUB", False)
    assert verdict.text == "main 82.5, private 55.0 (λ = 0.1) against CLUB main 83.6, private 52.0 (λ = 1)"


def test_one_point_is_not_clearly_better() -> None:
    rivals = [*runs("club", (0.839, 0.55)), *runs("doe", (0.83, 0.5))]
    records = [*runs("none", BASE), *runs("knife", (0.83, 0.555)), *rivals]
    assert judged(*records)[1] == ("not beaten", True)
    assert "no point of 2 rivals" in verdicts(records)[1].text


def test_the_best_weight_is_by_the_mean_over_seeds() -> None:
    seeds = [
        learned("cpu", "dial-mention", "knife", w, seed, main_accuracy=0.84, private_accuracy=private)
        for w, pair in ((0.1, (0.5, 0.6)), (1.0, (0.54, 0.54)))
        for seed, private in enumerate(pair)
    ]
    assert first(*runs("none", BASE), *seeds).text.startswith("private 54.0,")


def test_limits_are_not_judged() -> None:
    limited = learned("cpu", "dial-mention", "knife", 1.0, limit=0.1, main_accuracy=0.84, private_accuracy=0.5)
    assert judged(*runs("none", BASE), limited) == []


def test_failures_are_told() -> None:
    failed = [lost("cpu", "dial-mention", method, 0.1, 1) for method in ("knife", "mine")]
    found = verdicts([*runs("none", BASE), *runs("knife", (0.84, 0.5)), *failed])
    assert [(v.method, v.word) for v in found] == [
        ("MINE, DIAL mention", "all runs failed"),
        ("KNIFE, DIAL mention", "hides it: at most 56 %"),
    ]
    assert found[1].text.endswith("; 1 of 2 runs failed")
    assert found[0].text == "none of 1 run ended well"


def test_quick_runs_are_not_judged() -> None:
    assert judged(*runs("none", BASE, preset="quick"), *runs("knife", (0.84, 0.5), preset="quick")) == []
