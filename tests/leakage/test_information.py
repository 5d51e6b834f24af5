import math
from typing import Any

import numpy as np
import pytest

from infoknife.leakage.information import measure_densities, shared_information, with_probes
from infoknife.leakage.probes import HeldOut, Probe, fold_rows
from infoknife.leakage.rows import AuditedRows, Floats, Target, read_rows
from infoknife.measure import Diagnostics, Estimate

N = 1200  # above which a measurement is not repeated
S = Target("s", np.tile([0, 1], N // 2), ("a", "b"))
PARTS = fold_rows(S.values, 3, 0)


def rows(z: Any, s: Target = S) -> AuditedRows:
    return read_rows(z, s.values, discrete=not s.is_quantity)


def densities(pointwise: Floats, correction: float = 0.0) -> Estimate:
    told = Diagnostics("gaussian", len(pointwise), correction=correction)
    return Estimate(float(pointwise.mean()), 0.01, "nats", "mutual information", pointwise, told)


def held(pointwise: Floats) -> HeldOut:
    return HeldOut(Probe("linear", 0.5, 0.5, 0.01, float(pointwise.mean()), (0.5, 0.5), ()), pointwise)


def test_a_probe_that_knows_more_is_heard() -> None:
    found = with_probes(densities(np.full(N, 0.1), 0.05), [held(np.full(N, 0.4))], S, PARTS)
    assert found.value == pytest.approx(0.4)
    assert found.diagnostics.method == "linear"
    assert found.diagnostics.correction == 0.0


def test_the_correction_stays_where_probes_know_no_more() -> None:
    found = with_probes(densities(np.full(N, 0.3), 0.05), [held(np.full(N, 0.28))], S, PARTS)  # above 0.25, below 0.3
    assert found.value == pytest.approx(0.3)
    assert (found.diagnostics.method, found.diagnostics.correction) == ("densities", 0.05)
    scores = {one.name: one.score for one in found.diagnostics.candidates}
    assert scores == pytest.approx({"nothing": S.entropy, "densities": S.entropy - 0.25, "linear": S.entropy - 0.28})


def test_values_stay_between_nothing_and_all() -> None:
    assert with_probes(densities(np.full(N, -0.2), 0.3), [], S, PARTS).value == 0.0
    assert with_probes(densities(np.full(N, 0.9)), [], S, PARTS).value == S.entropy


def test_weights_of_a_fold_come_from_the_others() -> None:
    """What a probe tells about the rows of one fold alone is not believed there."""
    lucky = np.full(N, -0.1)
    lucky[PARTS[0][1]] = 0.6
    found = with_probes(densities(np.zeros(N)), [held(lucky)], S, PARTS)
    assert found.pointwise[PARTS[0][1]].max() == 0.0


def test_luck_of_a_probe_is_not_believed() -> None:
    noise = np.random.default_rng(0).normal(size=N) / 10
    found = with_probes(densities(np.zeros(N)), [held(noise - noise.mean() - 0.005)], S, PARTS)
    assert found.value < 0.005


def test_where_no_density_fits() -> None:
    found = measure_densities(rows(np.eye(N)[:, :2]), seed=0)
    assert found.value == 0.0
    assert found.diagnostics.messages[-1] == "No density fits these features: the probes alone measure."


def test_a_copy_of_the_classes() -> None:
    assert measure_densities(rows(S.values.astype(float)[:, None]), seed=0).value == pytest.approx(S.entropy, abs=0.01)


def test_features_that_add_nothing_change_nothing() -> None:
    z = np.random.default_rng(0).normal(size=(N, 2))
    z[:, 0] += 2.0 * S.values
    rare = np.zeros((N, 2))
    rare[0] = 1.0
    beside = measure_densities(rows(np.concatenate([z, 3 * z[:, :1], rare], 1)), seed=0)
    alone = measure_densities(rows(z), seed=0)
    assert beside.value == pytest.approx(alone.value)
    assert beside.diagnostics.messages[:2] == (
        "2 features have the same value in nearly all rows: left to the probes.",
        "1 feature follows linearly from the others and adds no information.",
    )


def test_shared_information_of_labels() -> None:
    y = Target("y", np.where(np.arange(N) % 10 < 2, 1 - S.values, S.values), ("c", "d"))
    assert shared_information(y, S, seed=0) == pytest.approx(
        math.log(2) + 0.2 * math.log(0.2) + 0.8 * math.log(0.8), abs=0.01
    )


def test_information_about_a_quantity() -> None:
    z, noise = np.random.default_rng(0).normal(size=(2, N))
    found = measure_densities(rows({"z": z, "pet": ["cat", "dog"] * (N // 2)}, Target("s", z + noise)), seed=0)
    assert found.value == pytest.approx(0.5 * math.log(2), abs=3 * found.stderr)
    assert with_probes(found, [], Target("s", z), PARTS).value == found.value
    assert shared_information(S, Target("s", S.values + 0.1 * noise), seed=0) == pytest.approx(math.log(2), abs=0.02)


@pytest.mark.filterwarnings("ignore::infoknife.measure.MeasurementWarning")
def test_a_quantity_that_the_features_determine() -> None:
    z = np.random.default_rng(0).normal(size=N)
    assert measure_densities(rows(z, Target("s", 2 * z + 1)), seed=0).value == math.inf


def test_a_quantity_that_no_density_fits() -> None:
    rare = np.zeros(N)
    rare[0] = 1.0
    assert math.isnan(measure_densities(rows(rare, Target("s", np.linspace(0.0, 1.0, N))), seed=0).value)
