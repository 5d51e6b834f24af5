"""The classes for scikit-learn: its own checks, and what they measure."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.integrate import trapezoid
from scipy.sparse import csr_array
from scipy.stats import norm
from sklearn.base import clone
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from infoknife import measure
from infoknife.integrations.scikit_learn import EntropyEstimator, InformationSelector, mutual_info
from infoknife.measure.estimate import Diagnostics, Estimate

Array = NDArray[Any]
RHO = np.array([0.9, 0.0, 0.6])
gaussian_info = partial(mutual_info, method="gaussian")


def rows(n: int = 2000, seed: int = 0) -> tuple[Array, Array]:
    """Three columns with correlations RHO to y."""
    generator = np.random.default_rng(seed)
    y = generator.normal(size=n)
    return RHO * y[:, None] + np.sqrt(1 - RHO**2) * generator.normal(size=(n, 3)), y


class Told:
    """Stands in for a measuring function, keeps what it was told, and counts distinct values."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.declared: list[dict[str, bool]] = []
        self.options: dict[str, Any] = {}

    def __call__(self, *data: Any, **options: Any) -> Estimate:
        self.calls.append(data)
        self.declared.append(options.pop("discrete"))
        self.options = options
        column = np.asarray(next(iter(data[0].values())))
        diagnostics = Diagnostics("told", rows=len(column))
        return Estimate(float(len(np.unique(column))), 0.1, "nats", "entropy", np.zeros(len(column)), diagnostics)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    stand_in = Told()
    monkeypatch.setattr(measure, "mutual_information", stand_in)
    monkeypatch.setattr(measure, "entropy", stand_in)
    return stand_in


# scikit-learn's own checks


@parametrize_with_checks([EntropyEstimator(), InformationSelector()])  # type: ignore[untyped-decorator]
def test_scikit_learn_checks(estimator: Any, check: Callable[[Any], None], told: Told) -> None:
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::infoknife.measure.MeasurementWarning")  # a check has about twenty rows
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [kind(method="gaussian", discrete_features=False) for kind in (EntropyEstimator, InformationSelector)]
)
def test_scikit_learn_checks_of_measured_values(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::infoknife.measure.MeasurementWarning")
@parametrize_with_checks([EntropyEstimator(), InformationSelector()])  # type: ignore[untyped-decorator]
def test_scikit_learn_checks_with_all_densities(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


# entropy


def test_entropy_of_a_normal() -> None:
    X, _ = rows()
    estimator = EntropyEstimator(method="gaussian").fit(1000 * X[:, [0, 2]])
    covariance = np.array([[1, 0.54], [0.54, 1]]) * 1e6
    assert estimator.entropy_ == pytest.approx(0.5 * np.linalg.slogdet(2 * math.pi * math.e * covariance)[1], abs=0.1)
    assert 0 < estimator.stderr_ < 0.05
    assert estimator.estimate_.bound == "upper"
    assert (estimator.entropy_, estimator.n_features_in_) == (estimator.estimate_.value, 2)


def test_entropy_has_no_score_and_stands_at_the_end_of_a_pipeline() -> None:
    X, _ = rows()
    pipeline = make_pipeline(StandardScaler(), EntropyEstimator(method="gaussian")).fit(X[:, :1] * 100)
    assert pipeline[-1].entropy_ == pytest.approx(0.5 * math.log(2 * math.pi * math.e), abs=0.05)
    assert not hasattr(pipeline[-1], "score")
    assert not hasattr(pipeline[-1], "score_samples")


def test_entropy_of_classes() -> None:
    labels = np.arange(1000) % 4
    assert EntropyEstimator().fit(labels[:, None]).entropy_ == pytest.approx(math.log(4), abs=0.01)


def test_entropy_of_mixed_columns(told: Told) -> None:
    frame = pd.DataFrame({"label": np.arange(20) % 2, "value": np.linspace(0, 1, 20)})
    EntropyEstimator().fit(frame)
    assert {name: column.dtype.kind for name, column in told.calls[0][0].items()} == {"0": "i", "1": "f"}
    EntropyEstimator(discrete_features=[0]).fit(frame.to_numpy())
    assert told.declared == [{}, {"0": True, "1": False}]


# columns that tell


@pytest.mark.parametrize(
    "measure", [gaussian_info, lambda X, y: InformationSelector(method="gaussian").fit(X, y).scores_]
)
def test_scores_of_a_normal(measure: Callable[[Array, Array], Array]) -> None:
    assert measure(*rows(5000)) == pytest.approx(-0.5 * np.log(1 - RHO**2), abs=0.05)


def test_selector_keeps_the_best() -> None:
    X, y = rows()
    selector = InformationSelector(k=2, method="gaussian").fit(X, y)
    assert selector.get_support().tolist() == [True, False, True]
    assert np.array_equal(selector.transform(X), X[:, [0, 2]])
    assert ((selector.stderrs_ > 0) & (selector.stderrs_ < 0.1)).all()


@pytest.mark.parametrize(("k", "kept"), [(1, 1), (3, 3), (10, 3), ("all", 3), (np.int64(2), 2)])
def test_selector_keeps_as_many_as_there_are(k: Any, kept: int, told: Told) -> None:
    assert InformationSelector(k).fit(*rows(20)).get_support().sum() == kept


def test_of_equals_the_first_is_kept() -> None:
    X, y = rows(50)
    assert InformationSelector(k=2, method="gaussian").fit(np.zeros_like(X), y).get_support().tolist() == [
        True,
        True,
        False,
    ]


def test_selector_in_a_pipeline_with_a_search(told: Told) -> None:
    X, y = rows(300)
    pipeline = make_pipeline(InformationSelector(), LogisticRegression())
    search = GridSearchCV(pipeline, {"informationselector__k": [1, 3]}, cv=2).fit(X, y > 0)
    assert search.best_score_ > 0.7
    assert clone(search.best_estimator_[0]).k in {1, 3}


def test_names_of_the_kept_columns() -> None:
    X, y = rows()
    selector = InformationSelector(k=1, method="gaussian").fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    assert selector.get_feature_names_out().tolist() == ["a"]


def test_score_for_select_k_best() -> None:
    X, y = rows()
    best = SelectKBest(gaussian_info, k=2).fit(X, y)
    assert best.get_support().tolist() == [True, False, True]
    assert np.array_equal(best.scores_, gaussian_info(X, y))


def test_classes() -> None:
    """Two classes, normal around -1 and 1: I = h(x) - h(x | y) by integration."""
    generator = np.random.default_rng(0)
    sign = np.tile([-1, 1], 2000)
    x, grid = sign + generator.normal(size=4000), np.linspace(-9, 9, 2001)
    mixture = (norm.pdf(grid, -1) + norm.pdf(grid, 1)) / 2
    truth = -trapezoid(mixture * np.log(mixture), grid) - 0.5 * math.log(2 * math.pi * math.e)
    X = np.column_stack([x, generator.normal(size=4000)])
    assert gaussian_info(X, np.where(sign > 0, "high", "low")) == pytest.approx([truth, 0], abs=0.04)


def test_what_is_constant_tells_nothing() -> None:
    X, y = rows(50)
    X[:, 1] = 3.0
    selector = InformationSelector(method="gaussian").fit(X, y)
    assert (selector.scores_[1], selector.stderrs_[1]) == (0, 0)
    assert gaussian_info(X, np.ones(50)).tolist() == [0, 0, 0]


def test_a_function_of_a_column_comes_first() -> None:
    X, y = rows(200)
    X[:, 1] = 2 * y + 1
    with pytest.warns(measure.MeasurementWarning, match="the answer is probably inf"):
        selector = InformationSelector(k=1, method="gaussian").fit(X, y)
    assert selector.scores_[1] == math.inf
    assert math.isnan(selector.stderrs_[1])
    assert selector.get_support().tolist() == [False, True, False]


def test_mrmr_leaves_out_what_was_said_and_jmi_finds_pairs() -> None:
    generator = np.random.default_rng(0)
    a, b, noise, other = generator.normal(size=(4, 800))
    X = np.column_stack([a, a + 0.1 * noise, b, other])
    y = a + 0.7 * b + 0.3 * generator.normal(size=800)
    assert InformationSelector(2, method="gaussian").fit(X, y).order_.tolist() == [0, 1]
    for criterion in ("mrmr", "jmi"):
        found = InformationSelector(2, criterion=criterion, method="gaussian", n_jobs=2).fit(X, y)
        assert found.order_.tolist() == [0, 2], criterion
        assert ((found.intervals_[:, 0] < found.gains_) & (found.gains_ < found.intervals_[:, 1])).all()
        assert found.get_support().tolist() == [True, False, True, False]


@pytest.mark.filterwarnings("ignore::infoknife.measure.MeasurementWarning")
@pytest.mark.parametrize("criterion", ["mrmr", "jmi"])
def test_copies_are_chosen_last_and_once(criterion: Any) -> None:
    a, b = np.random.default_rng(2).normal(size=(2, 300))
    X = np.column_stack([a, 2 * a, b])
    found = InformationSelector("all", criterion=criterion, method="gaussian").fit(X, a + b)
    assert sorted(found.order_.tolist()) == [0, 1, 2]
    assert InformationSelector("all", criterion=criterion, method="gaussian").fit(X, a).order_[0] == 0


def test_criteria_of_a_normal() -> None:
    """I(x1; y) - I(x1; x0), and I(x0, x1; y), in closed form for three normal variables."""
    generator = np.random.default_rng(1)
    covariance = np.array([[1, 0.3, 0.6], [0.3, 1, 0.5], [0.6, 0.5, 1]])
    x0, x1, y = np.linalg.cholesky(covariance) @ generator.normal(size=(3, 4000))
    X = np.column_stack([x0, x1])
    info = -0.5 * np.log(1 - covariance**2, where=covariance < 1, out=np.zeros((3, 3)))
    joint = 0.5 * np.log(np.linalg.det(covariance[:2, :2]) / np.linalg.det(covariance))
    mrmr, jmi = (InformationSelector(2, criterion=name, method="gaussian").fit(X, y) for name in ("mrmr", "jmi"))
    assert mrmr.gains_ == pytest.approx([info[0, 2], info[1, 2] - info[0, 1]], abs=0.04)
    assert jmi.gains_ == pytest.approx([info[0, 2], joint], abs=0.04)


# what is discrete


@pytest.mark.parametrize(
    ("discrete", "expected"),
    [
        ("auto", [None, None, None]),
        (True, [True, True, True]),
        (False, [False, False, False]),
        ([1], [False, True, False]),
        ([-1], [False, False, True]),
        ([True, False, True], [True, False, True]),
        ([], [False, False, False]),
    ],
    ids=str,
)
def test_discrete_features(discrete: Any, expected: list[bool | None], told: Told) -> None:
    X, y = rows(20)
    mutual_info(X, y, discrete_features=discrete)
    InformationSelector(discrete_features=discrete).fit(X, y)
    assert [one.get("x") for one in told.declared] == expected * 2
    assert all("y" not in one for one in told.declared)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_columns_of_a_frame_have_their_own_dtypes(kind: Any, told: Told) -> None:
    n = np.arange(20)
    frame = kind({"a": n % 3, "b": n / 7, "c": n % 2 == 0})
    InformationSelector().fit(frame, n % 2)
    mutual_info(frame, n % 2)
    assert "".join(np.asarray(call[0]["x"]).dtype.kind for call in told.calls) == "ifb" * 2


@pytest.mark.parametrize(("discrete", "expected"), [("auto", {}), (True, {"y": True}), (False, {"y": False})])
@pytest.mark.parametrize("y", [np.arange(20) % 2, np.arange(20) / 2, np.array(["a", "b"] * 10)])
def test_target(y: Array, discrete: Any, expected: dict[str, bool], told: Told) -> None:
    mutual_info(rows(20)[0], y, discrete_target=discrete)
    assert told.declared[-1] == expected


# seeds and options


def test_options_arrive(told: Told) -> None:
    X, y = rows(20)
    mutual_info(X, y, method="knife", effort="thorough", seed=7)
    assert told.options == {"method": "knife", "effort": "thorough", "seed": 7}
    for estimator in (
        InformationSelector(method="knife", effort="standard"),
        EntropyEstimator(method="knife", effort="standard"),
    ):
        seeds = []
        for state in (0, 0, 1, np.random.RandomState(0), None):
            estimator.set_params(random_state=state).fit(X, y)
            assert (told.options["method"], told.options["effort"]) == ("knife", "standard")
            seeds.append(told.options["seed"])
        assert seeds[0] == seeds[1] == seeds[3] != seeds[2]


# bad input


@pytest.mark.parametrize("fit", [EntropyEstimator().fit, InformationSelector().fit, mutual_info])
def test_bad_rows(fit: Callable[..., Any]) -> None:
    X, y = rows(20)
    with pytest.raises(ValueError, match=r"9 sample\(s\) .* while a minimum of 10 is required"):
        fit(X[:9], y[:9])
    with pytest.raises(TypeError, match=r"[Ss]parse data"):
        fit(csr_array(X), y)


BAD_OPTIONS: list[tuple[str, Any, type[Exception]]] = [
    ("criterion", "most", ValueError),
    *(("k", value, ValueError) for value in (0, -1)),
    *(("k", value, TypeError) for value in (1.5, True, "few")),
    *(("discrete_features", value, ValueError) for value in ("none", [3], [-4], [True, False], [0.5], [[0]], None)),
    *(("discrete_target", value, ValueError) for value in ("none", None, [True])),
]


@pytest.mark.parametrize(("name", "value", "error"), BAD_OPTIONS)
def test_bad_options(name: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=rf"^{name} is .*; expected"):
        InformationSelector(**{name: value}).fit(*rows(20))
