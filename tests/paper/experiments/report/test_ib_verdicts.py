from collections.abc import Iterable
from typing import Any

import pytest

from infoknife.paper.experiments.published import GLUE
from infoknife.paper.experiments.report.verdicts import Verdict, verdicts
from tests.paper.experiments.record_factory import Record
from tests.paper.experiments.report.bottled import OWN, lost, tuned

FEW, ALL, GAP = "KNIFE, 500 pairs", "KNIFE, all pairs", "KNIFE"


def runs(method: str, score: float, size: int | None = None, tasks: Iterable[str] = GLUE, **more: Any) -> list[Record]:
    """Two seeds of the same score."""
    return [tuned(task, method, seed, size, score=score, **more) for task in tasks for seed in (0, 1)]


def judged(records: Iterable[Record], where: str) -> list[Verdict]:
    return [verdict for verdict in verdicts(records) if verdict.method == where]


def few(knife: float, none: float = 0.7, vub: float = 0.7) -> list[Verdict]:
    return judged([*runs("knife", knife, 500), *runs("none", none, 500), *runs("vub", vub, 500)], FEW)


@pytest.mark.parametrize(
    ("knife", "word", "good", "points"),
    [(0.71, "ahead of Label only", True, "+1.00"), (0.7099, "not 1 point ahead of Label only", False, "+0.99")],
)
def test_few_pairs_against_no_bottleneck(knife: float, word: str, good: bool, points: str) -> None:
    verdict = few(knife)[0]
    assert (verdict.experiment, verdict.word, verdict.good) == ("table2", word, good)
    assert verdict.text == (
        f"{points} ± 0.00 points against Label only, mean of 3 tasks, 2 seeds: "
        f"MRPC {points}, STS-B {points}, RTE {points}"
    )


@pytest.mark.parametrize(("vub", "word", "good"), [(0.72, "not behind VUB", True), (0.73, "behind VUB", False)])
def test_few_pairs_against_the_variational_bound(vub: float, word: str, good: bool) -> None:
    verdict = few(0.72, vub=vub)[1]
    assert (verdict.word, verdict.good) == (word, good)


def whole(**by_task: float) -> Verdict:
    """KNIFE against 0.7 everywhere."""
    knife = [record for task, score in by_task.items() for record in runs("knife", score, tasks=[task])]
    (verdict,) = judged([*knife, *runs("none", 0.7)], ALL)
    return verdict


def test_all_pairs() -> None:
    verdict = whole(mrpc=0.697, stsb=0.705, rte=0.7)
    assert (verdict.word, verdict.good) == ("ahead of Label only", True)
    assert verdict.text.endswith("MRPC −0.30, STS-B +0.50, RTE +0.00")
    verdict = whole(mrpc=0.696, stsb=0.9, rte=0.7)
    assert (verdict.word, verdict.good) == ("loses more than 0.3 points on MRPC", False)
    verdict = whole(mrpc=0.7, stsb=0.7, rte=0.7)
    assert (verdict.word, verdict.good) == ("not ahead of Label only", False)


def test_what_is_missing_is_not_judged() -> None:
    verdict = whole(mrpc=0.8, rte=0.8)
    assert (verdict.word, verdict.good) == ("not all run", None)
    assert verdict.text.endswith("mean of 2 tasks, 2 seeds: MRPC +10.00, RTE +10.00; STS-B not run")
    found = judged(runs("knife", 0.8), FEW)
    assert [(verdict.word, verdict.good) for verdict in found] == [("not run", None)] * 2
    assert "reproduce table2 --preset cpu --methods knife,none --train-sizes 500" in found[0].text
    (verdict,) = judged(runs("knife", 0.8), ALL)
    assert verdict.word == "not run"
    assert verdict.text.endswith("--train-sizes all")


def test_the_papers_grid_has_no_few_pairs() -> None:
    records = [*runs("knife", 0.8, preset="paper"), *runs("none", 0.7, preset="paper")]
    assert judged(records, FEW) == []
    assert judged(records, ALL)[0].good


def test_tables_of_ones_own_are_not_judged() -> None:
    own = [tuned("own", method, arguments=OWN, score=0.8) for method in ("knife", "none")]
    assert [verdict.word for verdict in judged(own, ALL)] == ["not run"]


def test_only_seeds_that_both_have_are_compared() -> None:
    records = [*runs("knife", 0.8), *runs("none", 0.7), *(tuned(task, "knife", 7, score=0.1) for task in GLUE)]
    records += [tuned("rte", method, 2, score=0.7) for method in ("knife", "none")]
    (verdict,) = judged(records, ALL)
    assert verdict.text.startswith("+8.89 ± 1.11 points against Label only, mean of 3 tasks, 2 to 3 seeds")


@pytest.mark.parametrize(
    ("mean", "most", "good"), [(-0.1, 0.1, True), (-0.1, 0.11, False), (0.0, 0.0, False), (-3.0, -2.0, True)]
)
def test_the_gap_to_the_variational_bound(mean: float, most: float, good: bool) -> None:
    records = [*runs("knife", 0.7, gap_mean=mean, gap_most=most), *runs("vub", 0.7, gap_mean=0.0, gap_most=5.0)]
    (verdict,) = judged(records, GAP)
    assert verdict.good is good
    assert verdict.word == ("tighter than" if good else "not below") + " the variational bound"
    signed = [f"{value:+.2f}".replace("-", "−") for value in (mean, most)]
    assert verdict.text.endswith(f"batches of 6 runs: {signed[0]} in the mean, {signed[1]} at most")


def test_without_a_run_of_knife_there_is_no_gap() -> None:
    (verdict,) = judged(runs("vub", 0.7), GAP)
    assert (verdict.word, verdict.good) == ("not run", None)


def test_failures_are_told() -> None:
    records = [*runs("knife", 0.8), *runs("none", 0.7), lost("rte", "knife", 2), lost("rte", "mine")]
    (verdict,) = judged(records, ALL)
    assert verdict.text.endswith("; 1 of 13 runs failed")
    (verdict,) = judged(records, "MINE")
    assert (verdict.word, verdict.good, verdict.text) == ("all runs failed", False, "none of 1 run ended well")


def test_encoders_are_judged_apart() -> None:
    other: dict[str, Any] = {"arguments": {"encoder": "bert-base-uncased", "layers": None}}
    records = [*runs("knife", 0.8), *runs("none", 0.7), *runs("knife", 0.7, **other), *runs("none", 0.8, **other)]
    found = {verdict.method: verdict.good for verdict in verdicts(records) if "all pairs" in verdict.method}
    assert found == {"KNIFE, all pairs, minilm": True, "KNIFE, all pairs, bert-base-uncased": False}


def test_quick_runs_are_not_judged() -> None:
    assert verdicts([*runs("knife", 0.8, preset="quick"), *runs("none", 0.7, preset="quick")]) == []
