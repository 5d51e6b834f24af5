"""Cases for judging: truths by integrals and nearest neighbours that know nothing of the library, and the halves."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats
from scipy.spatial import cKDTree
from scipy.special import digamma

from infoknife.tasks.judging import LAWS, Case, _wide, cases
from infoknife.tasks.laws import Law, information
from infoknife.tasks.relations import RELATIONS
from tests.tasks.conftest import Grid

Array = NDArray[np.float64]
ALL = cases()
ONE = {case.kind: case for case in reversed(ALL)}  # the one with the fewest columns
OF_LAWS = [*LAWS.values(), *_wide(8).values()]
X = np.linspace(-6, 6, 1201)


def bell(e: Any, spread: Any = 1.0) -> Any:
    return np.exp(-0.5 * (e / spread) ** 2) / (spread * math.sqrt(2 * math.pi))


def triplet(x: Any, y: Any) -> Any:
    odds = np.exp(-2 * x), np.exp(2 * x), np.ones_like(x)
    places = zip(odds, (-2, 2, 0), strict=True)
    return sum(share * bell(y - place, 0.4) for share, place in places) / sum(odds)


GIVEN: dict[str, tuple[Callable[[Any, Any], Any], Array]] = {  # p(y | x) of a standard normal x, and a grid of y
    "triplet": (triplet, np.linspace(-5, 5, 801)),
    "split": (
        lambda x, y: 0.5 * sum(bell(y - s * 1.5 * (np.abs(x) > 0.64), 0.3) for s in (-1, 1)),
        np.linspace(-5, 5, 801),
    ),
    "gate": (lambda x, y: bell(y - np.maximum(x, 0), np.where(x > 0, 0.2, 1.0)), np.linspace(-7, 7, 1401)),
    "stairs": (lambda x, y: bell(y - np.floor(x / 0.48 + 1e-9) / 2, 0.4), np.linspace(-8, 8, 1601)),
    "vee": (lambda x, y: stats.laplace(scale=0.3).pdf(y - np.abs(x)), np.linspace(-7, 14, 2101)),
    "ripples": (lambda x, y: bell(y - np.sin(12 * x), 0.3), np.linspace(-3, 3, 301)),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_truth_by_a_grid(kind: str, grid_information: Grid) -> None:
    given, y = GIVEN[kind]
    expected = grid_information(lambda x, y: bell(x) * given(x, y), X, y)
    assert ONE[kind].information == pytest.approx(expected, abs=5e-3)


def by_mass(mass: Array) -> float:
    """Information of a table of probabilities."""
    alone = mass.sum(0) * mass.sum(1, keepdims=True)
    return float(np.sum(mass[mass > 0] * np.log(mass[mass > 0] / alone[mass > 0])))


def test_truths_of_whole_numbers_by_their_tables() -> None:
    weights = bell(X)[:, None] / bell(X).sum()
    votes = stats.binom(8, 1 / (1 + np.exp(-2 * np.sin(2 * X)))[:, None]).pmf(np.arange(9))
    counts = stats.poisson(np.exp(0.5 + 0.7 * np.abs(X))[:, None]).pmf(np.arange(400))
    assert ONE["votes"].information == pytest.approx(by_mass(weights * votes), abs=1e-4)
    assert ONE["counts"].information == pytest.approx(by_mass(weights * counts), abs=1e-3)
    assert ONE["clock"].information == pytest.approx(math.log(4) + 0.8 * math.log(0.8) + 0.2 * math.log(0.2 / 3))


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
    assert ONE["xor"].information == pytest.approx(information(RELATIONS["xor"]).value)
    assert all(ONE[kind].information == 0 for kind in ("cauchy-apart", "ties-apart", "chain", "chain-line"))


def by_samples(law: Law, n: int) -> tuple[float, float]:
    """The mean of the oracle over samples, and its standard error."""
    generator = torch.Generator().manual_seed(0)
    x = law.source.draw(n, generator)
    y = law.channel.draw(x, 1.0, generator)
    values = law.channel.log_prob(y, x, 1.0) - law.log_prob_y(y, 1.0)
    return float(values.mean()), float(values.std()) / n**0.5


@pytest.mark.parametrize("law", [LAWS["hurdle"], LAWS["clock"], LAWS["gusts"]], ids=lambda law: law.formula)
def test_truth_by_samples(law: Law) -> None:
    mean, error = by_samples(law, 2000)
    assert information(law).value == pytest.approx(mean, abs=4 * error + 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("law", OF_LAWS, ids=lambda law: law.formula)
def test_truth_of_every_law_by_samples(law: Law) -> None:
    mean, error = by_samples(law, 20_000)
    assert information(law).value == pytest.approx(mean, abs=4 * error + 2e-3)
    assert information(law).error < 0.03


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
    with pytest.raises(ValueError, match="n is"):
        case.sample(0, 0)
