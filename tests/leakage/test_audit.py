import json
import math
import pickle
import random
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm

from infoknife.leakage import Grade, audit, probes
from tests.leakage.conftest import PRIOR, SHIFT, Leaky


def channel() -> tuple[float, float, float]:
    """I(Z; S), Bayes' accuracy and Bayes' balanced accuracy of the leaky features, by quadrature."""
    grid = np.linspace(-8, 8 + 2 * SHIFT, 20_001)
    likelihood = norm.pdf(grid[:, None] - SHIFT * np.arange(3))
    joint, step = likelihood * PRIOR, grid[1] - grid[0]
    mixed = joint.sum(1, keepdims=True)
    information = float((joint * np.log(likelihood / mixed)).sum() * step)
    return information, float(joint.max(1).sum() * step), float(likelihood.max(1).sum() * step / 3)


def some_probes(patch: pytest.MonkeyPatch, *names: str) -> None:
    """Audit with these probes alone; all of them are in ``leaky``."""
    patch.setattr(probes, "KINDS", tuple(kind for kind in probes.KINDS if kind.name in names))


def test_information_is_true(leaky: Leaky) -> None:
    truth = channel()[0]
    found = leaky.found.information
    assert found.value == pytest.approx(truth, abs=3 * found.stderr)
    assert found.stderr < 0.03
    low, high = leaky.found.interval(0.999)
    assert 0 <= low < truth < high <= leaky.found.entropy
    assert channel()[1] < leaky.found.allowed.upper < 1
    assert leaky.found.allowed.value <= leaky.found.allowed.upper
    assert leaky.found.grade is Grade.CLEAR


def test_probes_reach_what_can_be_reached(leaky: Leaky) -> None:
    truth, accuracy, balanced = channel()
    best = leaky.found.strongest
    assert best.accuracy == pytest.approx(accuracy, abs=0.05)
    assert best.balanced_accuracy == pytest.approx(balanced, abs=0.05)
    assert best.balanced_accuracy == pytest.approx(np.mean(best.recalls))
    assert [probe.name for probe in leaky.found.probes] == ["linear", "network", "kernel", "boosting"]
    for probe in leaky.found.probes:
        assert probe.balanced_accuracy > balanced - 0.12
        assert truth - 0.3 < probe.information < truth + 0.08
        assert 0.01 < probe.stderr < 0.03
        assert len(probe.settings) == 3


def test_classes_leak_what_all_leak_on_average(leaky: Leaky) -> None:
    classes = leaky.found.classes
    rows = np.array([one.rows for one in classes])
    leakage = np.array([one.leakage for one in classes])
    assert [one.name for one in classes] == ["north", "south", "west"]
    assert rows.sum() == 600
    assert (rows * leakage).sum() / 600 == pytest.approx(leaky.found.information.value)
    assert leakage.argmax() == 0  # the class at the end with the fewest rows
    assert tuple(one.recall for one in classes) == leaky.found.strongest.recalls


def test_features_that_add_nothing_are_named(leaky: Leaky) -> None:
    notes = " ".join(leaky.found.notes)
    assert leaky.found.left_out == {"z[:, 3]": "constant"}
    assert leaky.found.about_features == ("4 features.", "Left out: z[:, 3] (constant).")
    assert "1 feature follows linearly from the others and adds no information." in notes
    assert leaky.found.features == ("z[:, 0]", "z[:, 1]", "z[:, 2]", "z[:, 4]")


def test_label(leaky: Leaky) -> None:
    label = leaky.found.label
    assert label is not None
    assert label.strongest.balanced_accuracy == pytest.approx(norm.cdf(1.5), abs=0.05)
    assert label.entropy == pytest.approx(math.log(2), abs=0.01)
    assert label.shared < 0.02
    assert (label.name, label.chance) == ("sick", 0.5)


def test_nothing_is_found_where_nothing_is() -> None:
    generator = np.random.default_rng(1)
    found = audit(generator.normal(size=(200, 3)), generator.integers(2, size=200), folds=3)
    assert found.grade is Grade.NONE
    assert found.information.value < 0.02
    assert found.interval()[0] == 0.0
    assert "This does not prove" in found.verdict


def test_what_only_some_probes_see(monkeypatch: pytest.MonkeyPatch) -> None:
    some_probes(monkeypatch, "linear", "boosting")
    generator = np.random.default_rng(2)
    z = generator.normal(size=(1100, 2))
    s = (z[:, 0] * z[:, 1] > 0) ^ (generator.random(1100) < 0.05)
    states = _states()
    said: list[float] = []
    found = audit(torch.from_numpy(z), s, folds=3, progress=lambda part, words: said.append(part))
    reached = {probe.name: probe for probe in found.probes}
    assert reached["linear"].balanced_accuracy < 0.6
    assert reached["boosting"].balanced_accuracy > 0.88
    truth = math.log(2) + 0.05 * math.log(0.05) + 0.95 * math.log(0.95)
    assert found.information.value == pytest.approx(truth, abs=0.06)
    assert said == sorted(said)
    assert said[-1] == 1.0
    assert _states() == states


def test_what_no_probe_sees_is_not_ruled_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parity of eight signs determines s, and neither densities nor a linear probe find it."""
    some_probes(monkeypatch, "linear")
    z = np.random.default_rng(5).normal(size=(300, 8))
    found = audit(z, np.prod(np.sign(z), 1) > 0, folds=3)
    assert found.allowed.upper < 0.9  # an attacker who knows is always right
    assert found.grade is Grade.NONE
    assert "If no more than this leaks, no attacker" in found.verdict
    assert "This does not prove that there is no leak." in found.verdict
    assert "certificate" in found.to_html()


def test_a_radius_and_a_rare_feature_are_found() -> None:
    """What linear attackers miss: a class inside a ring, and one that is known in one row of twenty-five."""
    generator = np.random.default_rng(6)
    z = generator.normal(size=(500, 2))
    ring = audit(z, np.square(z).sum(1) > 2 * math.log(2), folds=3)
    assert ring.grade is Grade.NEARLY
    assert ring.probes[0].balanced_accuracy < 0.6
    s = generator.integers(2, size=2000)
    rare = np.where(generator.random(2000) < 0.04, s, -1).astype(float)[:, None]
    found = audit(rare, s, folds=3)
    low, high = found.interval(0.999)
    assert low < 0.04 * math.log(2) < high
    assert found.grade is not Grade.NONE


def test_a_constant_feature_of_a_rare_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred positives among many rows, and features that say nothing about them."""
    some_probes(monkeypatch, "linear")
    s = np.arange(20_000) < 100
    found = audit(np.random.default_rng(7).normal(size=(20_000, 1)), s, folds=3)
    assert found.interval()[0] <= 0.001
    assert found.information.value < 0.001


def test_a_quantity_of_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    some_probes(monkeypatch, "linear", "kernel")
    rng = np.random.default_rng(3)
    age = rng.integers(18, 80, size=300)
    frame = pd.DataFrame({"pay": 40.0 * age + 500 * rng.normal(size=300), "city": rng.choice(list("abc"), 300)})
    found = audit(frame, pd.Series(age, name="age"), frame["city"] == "a", folds=3, names=("age", "in town"))
    assert found.is_quantity
    assert found.features == ("pay", "city")
    explained = (40 * age.std()) ** 2 / ((40 * age.std()) ** 2 + 500**2)
    assert found.strongest.r2 == pytest.approx(explained, abs=0.06)
    assert found.information.value > 0.5
    assert found.grade is Grade.CLEAR
    assert "of the variance of age" in found.verdict
    assert math.isnan(found.allowed.upper)
    assert found.label is not None
    assert found.label.strongest.balanced_accuracy > 0.95
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (content["kind"], content["classes"], content["entropy"]) == ("quantity", [], None)
    assert content["probes"][0]["r2"] == found.probes[0].r2
    page = found.to_html()
    assert "The part of the variance of age that a probe explains" in page
    assert "Fano" not in page
    assert "nan" not in page


def test_what_the_features_determine(monkeypatch: pytest.MonkeyPatch) -> None:
    some_probes(monkeypatch, "linear")
    z = np.random.default_rng(4).normal(size=(150, 1))
    found = audit(z, 3 * z[:, 0] + 1, z[:, 0] ** 3, folds=3)
    assert found.grade is Grade.NEARLY
    assert found.interval() == (math.inf, math.inf)
    assert found.label is not None
    assert found.label.is_quantity
    json.dumps(found.to_dict(), allow_nan=False)
    assert "determine the private attribute, exact to rounding" in found.to_html()


def test_one_row_does_not_blind_the_probes() -> None:
    z = np.random.default_rng(0).normal(size=(200, 2))
    s = z[:, 0] > 0
    z[3, 0] = 1e12
    found = audit(z, s, folds=3)
    assert all(probe.balanced_accuracy > 0.85 for probe in found.probes)
    assert "far from all others" in " ".join(found.notes)


def _states() -> tuple[bytes, bytes, object]:
    """What the global generators are about to give."""
    return bytes(torch.random.get_rng_state()), pickle.dumps(np.random.get_state()), random.getstate()  # noqa: NPY002


def test_few_rows_of_few_values() -> None:
    s = np.tile([0, 1], 15)
    found = audit(s[:, None], s, folds=3)
    assert found.grade is Grade.NEARLY
    assert found.strongest.balanced_accuracy == 1.0
    assert found.information.value <= found.entropy
    assert found.interval()[1] <= found.entropy


def test_scikit_learn_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match=r"infoknife\[sklearn\]"):
        audit(np.arange(20.0), [0, 1] * 10)
