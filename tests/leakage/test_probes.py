import math
import warnings
from collections.abc import Iterator
from concurrent.futures import Executor

import numpy as np
import pytest
import torch
from scipy.stats import norm
from threadpoolctl import threadpool_info

from infoknife.leakage import probes
from infoknife.leakage.probes import KINDS, HeldOut, attacks, fold_rows, workers
from infoknife.leakage.rows import Floats, Target


def silent(part: float, words: str) -> None:
    pass


def rows(count: int, prior: float = 0.5) -> tuple[Floats, Target]:
    """Two classes one standard deviation from the middle each."""
    generator = np.random.default_rng(0)
    s = (generator.random(count) < prior).astype(np.int64)
    z = generator.normal(size=(count, 2))
    z[:, 0] += 2.0 * s
    return z, Target("s", s, ("no", "yes"))


@pytest.fixture
def pool() -> Iterator[Executor]:
    with workers() as found:
        yield found


def attack(z: Floats, s: Target, pool: Executor, kinds: tuple[int, ...], patch: pytest.MonkeyPatch) -> list[HeldOut]:
    patch.setattr(probes, "KINDS", tuple(KINDS[i] for i in kinds))
    return attacks(z, s, fold_rows(s.values, 3, 0), pool, seed=0, on_progress=silent)


def test_quick_kinds_reach_bayes(pool: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    z, s = rows(1500)
    for probe, pointwise in attack(z, s, pool, (0, 2), monkeypatch):
        assert probe.balanced_accuracy == pytest.approx(norm.cdf(1), abs=3 * probe.stderr)
        assert probe.stderr == pytest.approx(math.sqrt(norm.cdf(1) * norm.cdf(-1) / 1500), rel=0.1)
        assert probe.information == pytest.approx(pointwise.mean())
        assert probe.information == pytest.approx(0.337, abs=0.05)  # by quadrature


def test_a_rare_class_counts_as_much_as_another(pool: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    z, s = rows(1500, prior=0.1)
    (probe, _), *_ = attack(z, s, pool, (0,), monkeypatch)
    assert probe.accuracy > s.majority
    assert probe.recalls == pytest.approx((norm.cdf(1), norm.cdf(1)), abs=0.08)


def test_inner_folds_choose_the_settings(pool: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression

    makers = (DummyClassifier, LogisticRegression, DummyClassifier)
    grid = tuple({"which": i} for i in range(3))
    kind = probes.ProbeKind("any", "any", grid, lambda settings, scene: makers[int(settings["which"])]())
    monkeypatch.setattr(probes, "KINDS", (kind,))
    z, s = rows(150)
    ((probe, _),) = attacks(z, s, fold_rows(s.values, 3, 0), pool, seed=0, on_progress=silent)
    assert probe.settings == ({"which": 1},) * 3


def test_the_same_seed_gives_the_same(pool: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    z, s = rows(60)
    first, second = (attack(z, s, pool, (0, 1, 2, 3), monkeypatch) for _ in range(2))
    assert [one.probe for one in first] == [one.probe for one in second]


def test_probes_are_never_surer_than_their_rows_allow(pool: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    s = np.tile([0, 1], 60)
    for _, pointwise in attack(s[:, None].astype(float), Target("s", s, ("a", "b")), pool, (0, 3), monkeypatch):
        assert np.isfinite(pointwise).all()
        assert pointwise.max() < math.log(2)


def test_many_rows_are_thinned_by_class() -> None:
    s = np.repeat([0, 1, 2], [9000, 990, 10])
    kept = probes._subsample(np.arange(10_000), s, 1000, seed=0)
    assert np.bincount(s[kept]).tolist() == [900, 99, 10]
    assert len(set(kept.tolist())) == len(kept)
    assert probes._subsample(np.arange(10), s, 1000, seed=0).tolist() == list(range(10))
    assert len(probes._subsample(np.arange(1000), np.linspace(0, 1, 1000), 100, seed=0)) == 100


def test_more_rows_than_a_probe_learns_from_are_all_judged(pool: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "TRAINING", 200)
    z, s = rows(900)
    (probe, pointwise), *_ = attack(z, s, pool, (0,), monkeypatch)
    assert pointwise.shape == (900,)
    assert probe.balanced_accuracy > 0.8


def test_temperature_mends_what_is_too_sure() -> None:
    codes = (np.random.default_rng(0).random(4000) < 0.7).astype(np.int64)
    sure = np.log(np.tile([0.01, 0.99], (4000, 1)))
    found = np.exp(probes._tempered(sure, codes, fold_rows(codes, 3, 0)))
    assert found[:, 1] == pytest.approx(np.full(4000, 0.7), abs=0.03)


def test_a_code_is_short_where_few_rows_teach_enough() -> None:
    generator = np.random.default_rng(0)
    s = generator.integers(2, size=1600)
    plain, noise = generator.normal(size=(2, 1600, 2))
    plain[:, 0] += 6.0 * s
    linear = KINDS[0]

    def length(kind: probes.ProbeKind, z: Floats, settings: dict[str, float]) -> float:
        return probes.code_length(kind, settings, z, s, 0)

    first = math.log(2) / 16  # the first part is coded without features
    assert first < length(linear, plain, {"C": 1.0}) < first + 0.04
    assert length(linear, noise, {"C": 0.001}) == pytest.approx(math.log(2), abs=0.02)
    rare = np.arange(1600) == 1599  # a class that most parts have not met
    assert np.isfinite(probes.code_length(linear, {"C": 1.0}, noise, rare.astype(np.int64), 0))


def test_groups_stay_together_and_a_class_that_was_not_met_is_possible(pool: Executor) -> None:
    z, s = rows(90)
    groups = np.arange(90) // 3
    for train, test in fold_rows(s.values, 3, 0, groups):
        assert not set(groups[train]) & set(groups[test])
    model = KINDS[0].make({"C": 1.0}, probes.ProbeContext(90, 2, 2, 0, False)).fit(z, s.values)
    assert probes._log_probs(model, z, 3)[:, 2].max() < -20


def test_regressors_explain_what_can_be_explained(pool: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    z = np.random.default_rng(0).normal(size=(600, 2))
    s = 100 + 10 * (z[:, 0] + np.random.default_rng(1).normal(size=600))
    for probe, _ in attack(z, Target("s", s), pool, (0, 1, 2, 3), monkeypatch):
        assert probe.r2 == pytest.approx(0.5, abs=4 * probe.stderr)
        assert probe.score == probe.r2
        assert 0.01 < probe.stderr < 0.05
        assert probe.error == pytest.approx(10, rel=0.15)
        assert probe.spread == pytest.approx(s.std())
        assert set(probe.to_dict()) == {"name", "stderr", "settings", "r2", "error"}


def test_regressors_find_curves_and_nothing_in_noise(pool: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    z = np.random.default_rng(0).normal(size=(400, 2))
    linear, boosting = attack(z, Target("s", z[:, 0] ** 2), pool, (0, 3), monkeypatch)
    assert linear.probe.r2 < 0.1
    assert boosting.probe.r2 > 0.5
    noise = Target("s", np.random.default_rng(1).normal(size=400))
    assert all(abs(one.probe.r2) < 0.06 for one in attack(z, noise, pool, (0, 2), monkeypatch))


def threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info()}


def test_fits_have_one_thread_each_and_all_is_as_before_afterwards() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        outside, filters = threads(), list(warnings.filters)
        with workers() as pool:
            assert pool._max_workers == 2
            assert pool.submit(torch.get_num_threads).result() == 1
            assert pool.submit(threads).result() == {1}
            pool.submit(warnings.warn, "few iterations").result()
            assert list(pool.map(np.square, range(5))) == [0, 1, 4, 9, 16]
        assert (threads(), torch.get_num_threads(), list(warnings.filters)) == (outside, 2, filters)
    finally:
        torch.set_num_threads(before)
