"""Cases for judging: truths in closed form and by nearest neighbours, and the halves."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats
from scipy.spatial import cKDTree
from scipy.special import digamma

from infoknife.tasks.judging import Case, cases
from infoknife.tasks.relations import RELATIONS

Array = NDArray[np.float64]
ALL = cases()
ONE = {case.kind: case for case in reversed(ALL)}  # the one with the fewest columns


def test_truths_in_closed_form() -> None:
    line = np.sinh(np.linspace(-14, 14, 20_001))
    wide = stats.cauchy(scale=2).pdf(line)
    gain = -np.trapezoid(wide * np.log(wide), line) - math.log(4 * math.pi)
    assert ONE["cauchy"].information == pytest.approx(gain, abs=1e-3)
    assert ONE["shell-line"].information == pytest.approx(0.5 * math.log(1 + (0.5 / 0.3) ** 2), abs=1e-4)
    sigma = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 2.25]])  # of X, Y and their sum with noise

    def log_det(*columns: int) -> float:
        return float(np.linalg.slogdet(sigma[np.ix_(columns, columns)])[1])

    collider = 0.5 * (log_det(0, 2) + log_det(1, 2) - log_det(2) - log_det(0, 1, 2))
    assert ONE["collider"].information == pytest.approx(collider)
    by_kind = {case.name: case.information for case in ALL if case.kind in ("sinh", "exp")}
    assert by_kind["sinh-32x32"] == pytest.approx(-16 * math.log(1 - 0.45**2))
    assert by_kind["exp-8x8"] == pytest.approx(-4 * math.log(1 - 0.5**2))
    assert all(ONE[kind].information == 0 for kind in ("cauchy-apart", "ties-apart", "chain", "chain-line"))


def nearest_neighbours(x: Array, y: Array, k: int = 5) -> float:
    """The estimate of Kraskov, Stögbauer and Grassberger (2004)."""
    radius = cKDTree(np.hstack([x, y])).query(np.hstack([x, y]), k + 1, p=math.inf)[0][:, -1] - 1e-12
    inside = [cKDTree(side).query_ball_point(side, radius, p=math.inf, return_length=True) for side in (x, y)]
    return float(digamma(k) + digamma(len(x)) - digamma(inside[0]).mean() - digamma(inside[1]).mean())


TIES = ("clock", "levels", "counts", "votes", "hurdle", "censored", "ties-apart", "switched", "xor")
PLAIN = [case for case in ONE.values() if case.kind not in TIES and case.sample(1, 0)[2] is None]


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in PLAIN if case.sample(1, 0)[0].shape[1] < 3], ids=lambda c: c.name)
def test_truth_by_nearest_neighbours(case: Case) -> None:
    x, y = (stats.rankdata(side, axis=0) / 1e5 for side in case.sample(100_000, 0)[:2])
    found = nearest_neighbours(x, y)
    assert found == pytest.approx(case.information, abs=0.03)


def test_conditions_matter() -> None:
    """Given z the chain's ends are apart, and the partners and the collider's causes are not."""
    for kind, low, high in (("chain", 0.2, 0.6), ("partner", -0.05, 0.05), ("collider", -0.05, 0.05)):
        case = ONE[kind]
        x, y, z = (stats.rankdata(side, axis=0) / 20_000 for side in case.sample(20_000, 1) if side is not None)
        assert low < nearest_neighbours(x, y) < high, kind
        beyond = nearest_neighbours(np.hstack([x, z]), y) - nearest_neighbours(z, y)
        assert beyond == pytest.approx(case.information, abs=0.12), kind


def test_halves_are_fixed_and_share_no_kind() -> None:
    develop, report = cases("development"), cases("reporting")
    assert len(develop) + len(report) == len(ALL)
    assert not {case.kind for case in develop} & {case.kind for case in report}
    assert abs(len(develop) - len(report)) <= 3
    assert len({case.kind for case in ALL}) >= 35
    assert len({case.name for case in ALL}) == len(ALL)
    formulas = {law.formula for law in RELATIONS.values()}
    assert not formulas & {case.pair.formula for case in ALL if case.kind not in ("radius",)}
    for half in (develop, report):
        assert {1, 3, 8, 32} <= {max(side.shape[1] for side in case.sample(1, 0)[:2]) for case in half}
        assert any(case.sample(1, 0)[2] is not None for case in half)


def test_samples_repeat_and_copies_are_rotated_alike() -> None:
    case = next(case for case in ALL if case.kind == "vee" and case.copies == 3)
    (x, y, given), (again, _, _) = case.sample(5000, 3, dtype=torch.float64), case.sample(5000, 3, dtype=torch.float64)
    assert given is None
    assert torch.equal(x, again)
    assert (x.shape, y.shape) == ((5000, 3), (5000, 3))
    partners = torch.corrcoef(torch.cat([x, y], 1).square().T)[:3, 3:].abs()
    assert int((partners > 0.08).sum()) > 3  # a column has more than one
    tied = next(case for case in ALL if case.kind == "levels" and case.copies == 3)
    assert set(tied.sample(1000, 0)[0].unique().tolist()) == {0.0, 1.0, 2.0, 3.0, 4.0}
