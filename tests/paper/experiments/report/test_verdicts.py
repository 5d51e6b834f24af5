import pytest

from infoknife.paper.experiments.report.verdicts import Verdict, verdicts
from infoknife.paper.experiments.summary import Record
from tests.paper.experiments import record_factory as factory
from tests.paper.experiments.record_factory import LEVELS, entropy, failure, record, staircase
from tests.paper.experiments.report.adapted import adapted

FIGURE = (1.98, 3.99, 5.94, 7.99, 9.96)  # KNIFE on the Gaussian staircase, as published


def entropies(preset: str, method: str, *errors: float, dim: int = 10) -> list[Record]:
    return [entropy("table1", preset, method, dim, seed, error=error) for seed, error in enumerate(errors)]


def climb(preset: str, method: str, *means: float, stairs: str = "gaussian", seed: int = 0) -> Record:
    return staircase(f"fig3-{stairs}", preset, method, seed, means=means, staircase=stairs)


def only(records: list[Record]) -> Verdict:
    (verdict,) = verdicts(records)
    return verdict


def words(records: list[Record]) -> list[str]:
    return [verdict.word for verdict in verdicts(records)]


def test_within_two_deviations_is_reproduced() -> None:
    verdict = only(entropies("paper", "knife", 0.07, -0.07))
    assert (verdict.word, verdict.good, verdict.method) == ("reproduces the paper", True, "KNIFE, d=10")
    assert verdict.text == "0.0700 ± 0 against 0.0461 ± 0.0139"


def test_within_ten_per_cent_is_reproduced() -> None:
    assert words(entropies("paper", "knife", 2.60, 2.61, dim=64)) == ["reproduces the paper"]  # 2.5 deviations, 7 %


def test_above_says_how_far() -> None:
    verdict = only(entropies("paper", "knife", 0.10))
    assert (verdict.word, verdict.good) == ("above the paper", False)
    assert verdict.text == (
        "0.1000 against 0.0461 ± 0.0139: 3.9 of the paper's deviations above it, 2.17 times as large"
    )


def test_below_is_no_reproduction_and_no_harm() -> None:
    verdict = only(entropies("paper", "schraudolph", 0.1))
    assert (verdict.word, verdict.good) == ("below the paper", None)
    assert "7.3 times smaller" in verdict.text


def test_ours_beats_the_paper_and_its_rivals() -> None:
    records = [*entropies("ours", "knife", 0.010, 0.012), *entropies("paper", "doe", 0.5, 0.6)]
    judged = verdicts(records)
    assert [(v.word, v.good) for v in judged if v.preset == "ours"] == [
        ("beats the paper", True),
        ("ahead of all rivals", True),
    ]
    assert "4.19 times smaller" in judged[0].text
    assert judged[1].text == "mean |error| 0.0110; the next has 0.5500 (DoE, preset paper)"


def test_ours_worse_than_the_paper_and_than_a_rival() -> None:
    records = [*entropies("ours", "knife", 0.9, 1.1), *entropies("ours", "doe", 0.01, 0.02)]
    judged = [(v.word, v.good) for v in verdicts(records) if v.method.startswith("KNIFE")]
    assert judged == [("worse than the paper", False), ("worse than rival DoE", False)]


def test_a_rival_may_be_better_as_published() -> None:
    records = [*entropies("ours", "knife", 0.8), *entropies("ours", "schraudolph", 0.9)]
    verdict = verdicts(records)[1]
    assert verdict.word == "worse than rival Schraudolph"
    assert verdict.text == "mean |error| 0.8000 against 0.7301 (Schraudolph, as published)"


def test_close_ones_are_called_close() -> None:
    verdict = only(entropies("ours", "doe", 0.3, 1.2))
    assert (verdict.word, verdict.good) == ("beats the paper", True)
    assert verdict.text.endswith("less than two standard errors apart")


def test_failures_are_told() -> None:
    lost = failure("table1", "paper", "nan", method="knife", dim=10, seed=7)
    assert only([*entropies("paper", "knife", 0.05), lost]).text.endswith("; 1 of 2 runs failed")
    assert words([lost]) == []  # nothing is known of such an experiment
    assert "all runs failed" in words([lost, *entropies("paper", "doe", 0.5)])


def test_the_figure_is_reproduced() -> None:
    verdict = only([climb("paper", "knife", *FIGURE)])
    assert (verdict.word, verdict.good, verdict.method) == ("reproduces the figure", True, "KNIFE")
    assert verdict.text == "1.98 / 3.99 / 5.94 / 7.99 / 9.96 against 1.98 / 3.99 / 5.94 / 7.99 / 9.96"


def test_far_from_the_figure() -> None:
    verdict = only([climb("paper", "knife", 1.98, 3.99, 5.94, 7.99, 7.0)])
    assert (verdict.word, verdict.good) == ("far from the figure", False)
    assert verdict.text == "from the figure at 1 of 5 levels, most at 10 nats: 7.00 against 9.96, 2.96 apart"


def test_nearer_the_truth_than_the_figure() -> None:
    assert (verdict := only([climb("paper", "knife", *LEVELS, stairs="cubic")])).word == "nearer the truth"
    assert verdict.good is None


def test_a_level_off_the_scale_is_not_compared() -> None:
    verdict = only([climb("paper", "doe", 1e6, 2.91, 4.32, 6.54, 8.36, stairs="cubic")])
    assert verdict.word == "reproduces the figure"


def test_the_uniform_figure_is_compared_with_the_best_run() -> None:
    paper = (4.01, 5.55, 7.04, 8.73, 10.67)
    runs = [climb("paper", "knife", *(9 * m for m in paper), stairs="uniform", seed=s) for s in range(1, 9)]
    best = climb("paper", "knife", *paper, stairs="uniform", seed=0)
    assert only([*runs, best]).word == "reproduces the figure"


def test_ours_on_a_staircase() -> None:
    truth, rival = climb("ours", "knife", *LEVELS), climb("paper", "club", *(2 * t for t in LEVELS))
    judged = [v for v in verdicts([truth, rival]) if v.preset == "ours"]
    assert [v.word for v in judged] == ["beats the paper", "ahead of all rivals"]
    worse = climb("ours", "knife-joint", *(t - 1 for t in LEVELS))
    near = climb("ours", "doe", *LEVELS)
    judged = [v for v in verdicts([worse, near]) if v.method == "KNIFE, joint"]
    assert [(v.word, v.good) for v in judged] == [("worse than the paper", False), ("worse than rival DoE", False)]


def test_a_level_where_the_paper_is_better_is_named() -> None:
    verdict = verdicts([climb("ours", "knife", 2.0, 4.0, 6.0, 8.02, 10.0)])[0]
    assert verdict.word == "beats the paper"
    assert "worse at 8 nats" in verdict.text


def test_all_runs_of_a_method_failed_on_a_staircase() -> None:
    lost = failure("fig3-gaussian", "paper", "nan", method="mine", seed=0)
    judged = verdicts([lost, climb("paper", "knife", *FIGURE)])
    assert [(v.method, v.word) for v in judged if v.good is False] == [("MINE", "all runs failed")]


def test_quick_runs_and_unknown_experiments_are_not_judged() -> None:
    assert verdicts([*entropies("quick", "knife", 5.0), record("table3", "ours", {}, results={"accuracy": 0.9})]) == []


def trial(method: str, task: str, error: float, quantity: str = "entropy", preset: str = "standard") -> Record:
    arguments = {"method": method, "task": task, "quantity": quantity, "n": 100, "seed": 0}
    return record("bench", preset, arguments, results={"error": error})


def test_the_benchmark_names_the_next() -> None:
    verdict = only(list(factory.bench()))
    assert (verdict.experiment, verdict.word) == ("bench-mutual information", "ahead of all rivals")
    assert verdict.text == "mean |error| 0.0470 on 3 tasks; the next of 3 rivals has 0.0705 (MINE)"


def test_the_benchmark_ranks_on_shared_trials() -> None:
    verdict = only([trial("knife", "a", 0.2), trial("knife", "b", 9.0), trial("ksg", "a", 0.1)])  # b is not shared
    assert (verdict.word, verdict.good) == ("worse than rival KSG", False)
    assert verdict.text == "mean |error| 4.6000 on 2 tasks; smaller: KSG 0.1000 (against 0.2000 on 1 shared trial)"


def test_every_rival_ahead_in_the_benchmark_is_named() -> None:
    rivals = {"doe": 0.3, "mine": 0.1, "doe-logistic": 0.2, "club": 5.0}
    verdict = only([trial("knife", "a", 1.0), *(trial(name, "a", error) for name, error in rivals.items())])
    assert (verdict.word, verdict.good) == ("worse than 3 of 4 rivals", False)
    assert verdict.text.endswith("smaller: MINE 0.1000; DoE, logistic 0.2000; DoE 0.3000")


def test_kinds_of_tasks_are_judged_apart() -> None:
    """KNIFE wins on classes by more than it loses on pairs; still it is told that it loses."""
    rows = [("classes-2-1d", 0.0, 9.0), ("gaussian-1x1", 0.2, 0.1)]
    records = [
        trial(m, t, e, "mutual_information") for t, *es in rows for m, e in zip(("knife", "doe"), es, strict=True)
    ]
    assert [(v.experiment.split(" with ")[1], v.word) for v in verdicts(records)] == [
        ("a continuous y", "worse than rival DoE"),
        ("classes", "ahead of all rivals"),
    ]


def test_forms_of_knife_are_no_rivals() -> None:
    entropies_ = [trial("knife", "moons", 0.2), trial("autoregressive", "moons", 0.1), trial("doe", "moons", 0.3)]
    assert [(v.method, v.word) for v in verdicts(entropies_)] == [
        ("KNIFE", "ahead of all rivals"),
        ("Autoregressive", "ahead of all rivals"),
    ]
    pairs = [
        trial(m, "sparse-3x5", e, "mutual_information")
        for m, e in (("knife", 0.2), ("knife-joint", 0.1), ("l1out", 0.15))
    ]
    assert [(v.method, v.good) for v in verdicts(pairs)] == [("KNIFE", False), ("KNIFE, joint", True)]


def test_quick_benchmarks_are_judged_by_themselves() -> None:
    records = [
        trial(m, "moons", e, preset=p)
        for p, m, e in (("quick", "knife", 0.2), ("quick", "doe", 0.1), ("standard", "doe", 0.0))
    ]
    assert [(v.preset, v.word) for v in verdicts(records)] == [("quick", "worse than rival DoE")]


def test_all_runs_of_the_benchmark_failed() -> None:
    lost = failure("bench", "standard", "nan", method="knife", task="moons", quantity="entropy", n=100, seed=0)
    verdict = only([lost, trial("doe", "moons", 0.1)])
    assert (verdict.word, verdict.good, verdict.text) == ("all runs failed", False, "none of 1 run ended well")


@pytest.mark.parametrize("error", [0.0, 1e-300])
def test_a_perfect_score_has_no_ratio(error: float) -> None:
    assert only(entropies("ours", "knife", error)).word == "beats the paper"


def test_runs_that_scatter_wildly_reproduce_nothing() -> None:
    runs = [climb("paper", "knife", *FIGURE[:4], end, seed=seed) for seed, end in enumerate((500.0, -500.0))]
    assert only(runs).word == "far from the figure"


UM, MU = ("usps", "mnist"), ("mnist", "usps")


def on_target(method: str, *accuracies: float, preset: str = "cpu") -> list[Record]:
    return [adapted(preset, method, pair, accuracy=a) for pair, a in zip((UM, MU), accuracies, strict=False)]


def plain(verdict: Verdict) -> str:
    return verdict.text.replace("\N{NO-BREAK SPACE}", " ")


def test_adaptation_gains_over_training_without_it() -> None:
    verdict = only([*on_target("knife", 0.9, 0.7), *on_target("source-only", 0.8, 0.75)])
    assert (verdict.experiment, verdict.word, verdict.good) == ("table3", "ahead of source only", True)
    assert plain(verdict) == "+2.5 points, mean of 2 pairs: 80.0 against 77.5; behind on M → U"


def test_adaptation_is_compared_with_the_best_rival_on_the_pairs_that_all_have() -> None:
    rivals = [*on_target("mine", 0.95, 0.99), *on_target("nwj", 0.96), *on_target("dann", 0.9, 0.9)]
    judged = verdicts([*on_target("knife", 0.9, 0.7), *rivals])
    assert [(v.word, v.good) for v in judged] == [("behind NWJ", False), ("behind DANN", False)]
    assert plain(judged[0]) == "−6.0 points, U → M: 90.0 against 96.0 (the best of 2 rivals)"
    assert plain(judged[1]) == "−10.0 points, mean of 2 pairs: 80.0 against 90.0; behind on M → U"


@pytest.mark.parametrize(("accuracy", "good"), [(0.91, True), (0.8951, None), (0.89, False)])
def test_half_a_point_behind_is_level(accuracy: float, good: bool | None) -> None:
    assert only([*on_target("knife", accuracy), *on_target("mine", 0.9)]).good is good


def test_adaptation_reproduces_the_paper_within_two_deviations() -> None:
    judged = verdicts(
        [
            *on_target("knife", 0.975, 0.97, preset="paper"),
            *on_target("mine", 0.977, 0.98, preset="paper"),
            *on_target("nwj", 0.976, 0.9, preset="paper"),
        ]
    )
    words_ = {v.method: (v.word, v.good, plain(v)) for v in judged if "paper" in v.word}
    assert words_["KNIFE"] == ("reproduces the paper", True, "2 of 2 pairs within two of the paper's deviations")
    assert words_["MINE"][:2] == ("above the paper", None)
    assert words_["NWJ"][:2] == ("below the paper", False)
    assert words_["NWJ"][2].endswith(
        "1 of 2 pairs within two of the paper's deviations; not M → U 90.0 against 97.3 ± 0.5"
    )


def test_the_cpu_preset_is_not_compared_with_the_paper() -> None:
    assert verdicts([*on_target("knife", 0.1), *on_target("knife", 0.9, preset="quick")]) == []


def test_failures_of_adaptation_are_told() -> None:
    lost = [failure("table3", "cpu", "nan", method=m, source="usps", target="mnist", seed=9) for m in ("knife", "mine")]
    judged = verdicts([*lost, *on_target("knife", 0.9), *on_target("source-only", 0.8)])
    assert [(v.method, v.word) for v in judged] == [("KNIFE", "ahead of source only"), ("MINE", "all runs failed")]
    assert plain(judged[0]).endswith("90.0 against 80.0; 1 of 2 runs failed")
    assert [v.method for v in verdicts([lost[0], *on_target("dann", 0.9)])] == ["KNIFE"]
