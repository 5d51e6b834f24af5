"""The measuring tool for scikit-learn: an estimator of entropy, a selector of features, a score for ``SelectKBest``.

It needs scikit-learn: ``pip install "infoknife[sklearn]"``. What scikit-learn calls X is numbers, one row per sample.

Whether a column is *discrete* or *continuous* is decided by its values, as everywhere in infoknife, unless
``discrete_features`` says otherwise: numbers with few different values can be counted, and are taken in their order as
well; booleans are discrete.
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state, check_X_y
from sklearn.utils.validation import check_is_fitted, validate_data

from infoknife import measure
from infoknife.inputs import check_whole, one_of
from infoknife.measure.candidates import Effort
from infoknife.measure.columns import MIN_ROWS

__all__ = ["EntropyEstimator", "InformationSelector", "mutual_info"]

Columns = Literal["auto"] | bool | Sequence[int] | Sequence[bool] | NDArray[Any]
Target = Literal["auto"] | bool
Values = NDArray[np.float64]

Z_SCORE = 1.96
NUMBERS = "numeric"  # scikit-learn's word for: leave numbers as they are, make numbers of objects


@dataclass(repr=False, eq=False)
class EntropyEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The entropy of X in nats, measured on rows that nothing was fitted to; see ``infoknife.entropy``.

    ``fit`` measures. There is no ``score``: an entropy belongs to the rows that it was measured on.

    Args:
        method: ``"auto"`` or the name of a density.
        effort: ``"quick"``, ``"standard"`` or ``"thorough"``.
        discrete_features: Which columns are discrete: ``"auto"`` decides by the values, ``True`` or ``False`` is for
            all, a list has positions or a truth value for each column.
        random_state: A number makes the measurement repeatable.

    Attributes:
        entropy_: The entropy in nats; it may be infinite.
        stderr_: Its standard error.
        estimate_: The whole answer: interval, bound, pointwise values, diagnostics.
        n_features_in_: Number of columns.

    Examples:
        >>> X = np.random.default_rng(0).normal(size=(1000, 1))
        >>> round(EntropyEstimator(method="gaussian").fit(X).entropy_, 1)  # 1/2 log(2 pi e) = 1.42 nats
        1.4
    """

    _: KW_ONLY
    method: str = "auto"
    effort: Effort = "quick"
    discrete_features: Columns = "auto"
    random_state: Any = 0

    def fit(self, X: Any, y: Any = None) -> Self:
        """Measure the entropy of the rows of X (N, columns); y is not looked at."""
        checked = validate_data(self, X, dtype=NUMBERS, ensure_min_samples=MIN_ROWS)
        found = _columns(X, checked, self.discrete_features)
        columns, declared = _declared({str(j): one for j, one in enumerate(found)})
        options: dict[str, Any] = {"method": self.method, "effort": self.effort, "seed": _seed(self.random_state)}
        self.estimate_ = measure.entropy(columns, discrete=declared, **options)
        self.entropy_, self.stderr_ = self.estimate_.value, self.estimate_.stderr
        return self


@dataclass(repr=False, eq=False)
class InformationSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""Keep k columns of X that tell most about y, alone or together; see ``infoknife.mutual_information``.

    With ``criterion="relevance"`` columns are looked at one by one, by $I(X_j; Y)$: two that say the same are both
    kept, and two that only together tell something are both missed. The others choose one column after another, given
    those S that are chosen, by the largest

    - ``"mrmr"``: $I(X_j; Y) - \frac1{|S|} \sum_{i \in S} I(X_j; X_i)$, which leaves out what was said already (Peng et
      al., 2005);
    - ``"jmi"``: $\frac1{|S|} \sum_{i \in S} I(X_j, X_i; Y)$, which also sees pairs that tell something only together
      (Yang and Moody, 1999). It measures k (columns - 1) pairs at most.

    Args:
        k: How many columns to keep at most, or ``"all"``.
        criterion: ``"relevance"``, ``"mrmr"`` or ``"jmi"``.
        method, effort, discrete_features, random_state: As ``EntropyEstimator`` takes them.
        discrete_target: Whether y has classes; ``"auto"`` decides by the values.
        n_jobs: How many measurements run at once, as everywhere in scikit-learn.

    Attributes:
        scores_: Mutual information in nats for each column, (columns,). It may be a little below zero where there is
            none, is infinite where y is a function of a continuous column, and zero for a constant column.
        stderrs_: Their standard errors, (columns,); NaN where the score is infinite.
        order_: The columns that were chosen, the first one first.
        gains_: The criterion of each of them when it was chosen, in nats.
        intervals_: Where ``gains_`` may lie, 95 % intervals (chosen, 2).
        n_features_in_: Number of columns.

    Examples:
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> y = X[:, 1] + 0.5 * X[:, 0]
        >>> InformationSelector(k=1, method="gaussian").fit(X, y).get_support()
        array([False,  True, False])
    """

    k: int | Literal["all"] = 10
    _: KW_ONLY
    criterion: Literal["relevance", "mrmr", "jmi"] = "relevance"
    method: str = "auto"
    effort: Effort = "quick"
    discrete_features: Columns = "auto"
    discrete_target: Target = "auto"
    random_state: Any = 0
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any) -> Self:
        """Measure what the columns of X (N, columns) tell about y (N,)."""
        if self.k != "all" and check_whole("k", self.k) < 1:
            raise ValueError(f"k is {self.k}; expected at least 1, or 'all'")
        one_of("criterion", self.criterion, tuple(CRITERIA))
        checked, target = validate_data(self, X, y, dtype=NUMBERS, ensure_min_samples=MIN_ROWS)
        columns = _columns(X, checked, self.discrete_features)
        options: dict[str, Any] = {"method": self.method, "effort": self.effort, "seed": _seed(self.random_state)}
        asked = _Asked(columns, _target(target, self.discrete_target), options, self.n_jobs)
        self.scores_, self.stderrs_ = asked.relevance()
        count = len(columns) if self.k == "all" else min(int(self.k), len(columns))
        self.order_, self.gains_, errors = CRITERIA[self.criterion](asked, self.scores_, self.stderrs_, count)
        self.intervals_ = self.gains_[:, None] + Z_SCORE * errors[:, None] * np.array([-1, 1])
        return self

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return np.isin(np.arange(len(self.scores_)), self.order_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def mutual_info(
    X: Any,
    y: Any,
    *,
    discrete_features: Columns = "auto",
    discrete_target: Target = "auto",
    method: str = "auto",
    effort: Effort = "quick",
    seed: int | None = 0,
) -> Values:
    """Return I(x_j; y) in nats for every column of X (N, columns), as a score for ``SelectKBest``.

    It takes the place of scikit-learn's ``mutual_info_classif`` and ``mutual_info_regression``: whether y has classes
    is decided by its values.

    Args:
        X: Samples, numbers.
        y: The target (N,): numbers, classes or strings.
        discrete_features, discrete_target, method, effort: As ``InformationSelector`` takes them.
        seed: Makes the measurements repeatable.

    Examples:
        >>> from functools import partial
        >>> from sklearn.feature_selection import SelectKBest
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> y = X[:, 1] + X[:, 2] > 0
        >>> SelectKBest(partial(mutual_info, method="gaussian"), k=2).fit(X, y).get_support()
        array([False,  True,  True])
    """
    checked, target = check_X_y(X, y, dtype=NUMBERS, ensure_min_samples=MIN_ROWS, estimator="mutual_info")
    columns, y = _columns(X, checked, discrete_features), _target(target, discrete_target)
    return _Asked(columns, y, {"method": method, "effort": effort, "seed": seed}).relevance()[0]


class _Variable(NamedTuple):
    """A column, and whether it is discrete; ``None`` leaves that to its values."""

    values: NDArray[Any]
    discrete: bool | None

    @property
    def varies(self) -> bool:
        return bool(np.any(self.values != self.values[0]))


class _Asked(NamedTuple):
    """Columns and a target, and how they are measured; what is constant tells nothing."""

    columns: list[_Variable]
    y: _Variable
    options: dict[str, Any]
    n_jobs: int | None = None

    def relevance(self) -> tuple[Values, Values]:
        """I(x_j; y) of every column and its standard error."""
        return self._all([([x], self.y) for x in self.columns])

    def redundancy(self, i: int) -> tuple[Values, Values]:
        """I(x_j; x_i) of every column j with one of them."""
        return self._all([([x] if j != i else [], self.columns[i]) for j, x in enumerate(self.columns)])

    def jointly(self, i: int) -> tuple[Values, Values]:
        """I(x_j, x_i; y) of every column j together with one of them."""
        return self._all([([x, self.columns[i]] if j != i else [], self.y) for j, x in enumerate(self.columns)])

    def _all(self, questions: list[tuple[list[_Variable], _Variable]]) -> Any:
        """Values and standard errors, measured at the same time."""
        found = Parallel(self.n_jobs)(delayed(_measured)(*question, self.options) for question in questions)
        return tuple(np.array(found, dtype=float).reshape(-1, 2).T)


def _measured(x: list[_Variable], y: _Variable, options: dict[str, Any]) -> tuple[float, float]:
    columns, declared = _declared({name: one for name, one in zip(("x", "other"), x, strict=False) if one.varies})
    if not columns or not y.varies:
        return 0.0, 0.0
    declared |= {} if y.discrete is None else {"y": y.discrete}
    estimate = measure.mutual_information(columns, y.values, discrete=declared, **options)
    return estimate.value, estimate.stderr


def _relevant(asked: _Asked, scores: Values, errors: Values, count: int) -> tuple[Any, Values, Values]:
    """The columns with the largest relevance; of equals the first."""
    order = np.argsort(-scores, kind="stable")[:count]
    return order, scores[order], errors[order]


def _greedy(
    pairs: Callable[[_Asked, int], tuple[Values, Values]], by_relevance: float, sign: float
) -> Callable[[_Asked, Values, Values, int], tuple[Any, Values, Values]]:
    """Choose one column after another by its relevance, if that counts, and the mean over its pairs with the chosen."""

    def choose(asked: _Asked, scores: Values, errors: Values, count: int) -> tuple[Any, Values, Values]:
        order, (total, variance) = [int(np.argmax(scores))], np.zeros((2, len(scores)))
        gains, doubts = [scores[order[0]]], [errors[order[0]]]
        while len(order) < count:
            values, deviations = pairs(asked, order[-1])
            total, variance = total + values, variance + deviations**2
            with np.errstate(invalid="ignore"):  # infinite relevance less infinite redundancy: a copy
                gain = np.nan_to_num(
                    by_relevance * scores + sign * total / len(order), nan=-np.inf, posinf=np.inf, neginf=-np.inf
                )
            rest = np.setdiff1d(np.arange(len(scores)), order)
            order.append(int(rest[np.argmax(gain[rest])]))
            gains.append(gain[order[-1]])
            doubts.append(np.sqrt(by_relevance * errors**2 + variance / (len(order) - 1) ** 2)[order[-1]])
        return np.array(order), np.array(gains), np.array(doubts)

    return choose


CRITERIA = {
    "relevance": _relevant,
    "mrmr": _greedy(_Asked.redundancy, by_relevance=1.0, sign=-1.0),
    "jmi": _greedy(_Asked.jointly, by_relevance=0.0, sign=1.0),
}


def _columns(X: Any, checked: NDArray[Any], discrete: Columns) -> list[_Variable]:
    """The columns of X with the dtypes they came with."""
    columns = [np.asarray(X[name]) for name in X.columns] if hasattr(X, "columns") else list(checked.T)
    return list(map(_Variable, columns, _chosen(discrete, len(columns))))


def _chosen(discrete: Columns, count: int) -> list[bool | None]:
    """For each column whether it is discrete; ``None`` leaves it to the dtype."""
    if isinstance(discrete, str):
        if discrete != "auto":
            raise ValueError(f"discrete_features is {discrete!r}; expected 'auto', True, False or a list of columns")
        return [None] * count
    if isinstance(discrete, bool):
        return [discrete] * count
    listed = np.asarray(discrete)
    if listed.dtype == bool and listed.shape == (count,):
        return listed.tolist()
    is_positions = listed.ndim == 1 and (listed.dtype.kind in "iu" or not listed.size)
    if not is_positions or not np.all((-count <= listed) & (listed < count)):
        raise ValueError(
            f"discrete_features is {discrete!r}; expected positions from 0 to {count - 1}, or {count} truth values, "
            f"one for each column"
        )
    return [j in listed % count for j in range(count)]


def _declared(named: dict[str, _Variable]) -> tuple[dict[str, Any], dict[str, bool]]:
    """The values of columns by name, and those that are declared to be discrete or not."""
    declared = {name: one.discrete for name, one in named.items() if one.discrete is not None}
    return {name: one.values for name, one in named.items()}, declared


def _target(y: NDArray[Any], discrete: Target) -> _Variable:
    if isinstance(discrete, str) and discrete == "auto":
        return _Variable(y, None)
    if not isinstance(discrete, (bool, np.bool_)):
        raise ValueError(f"discrete_target is {discrete!r}; expected 'auto', True or False")
    return _Variable(y, bool(discrete))


def _seed(random_state: Any) -> int:
    return int(check_random_state(random_state).randint(2**31 - 1))
