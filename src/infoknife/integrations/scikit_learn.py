"""The measuring tool for scikit-learn: an estimator of entropy, a selector of features, a score for ``SelectKBest``.

It needs scikit-learn: ``pip install "infoknife[sklearn]"``. What scikit-learn calls X is numbers, one row per sample.

Whether a column is *discrete* or *continuous* is decided by its values, as everywhere in infoknife, unless
``discrete_features`` says otherwise: numbers with few different values can be counted, and are taken in their order as
well; booleans are discrete.
"""

from collections.abc import Callable, Iterable, Sequence
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

    def __init__(
        self,
        *,
        method: str = "auto",
        effort: Effort = "quick",
        discrete_features: Columns = "auto",
        random_state: Any = 0,
    ) -> None:
        self.method = method
        self.effort = effort
        self.discrete_features = discrete_features
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Measure the entropy of the rows of X (N, columns); y is not looked at."""
        checked = validate_data(self, X, dtype=NUMBERS, ensure_min_samples=MIN_ROWS)
        columns = _columns(X, checked)
        named = {str(j): column for j, column in enumerate(columns)}
        declared = _declared(named, _chosen(self.discrete_features, len(columns)))
        options: dict[str, Any] = {"method": self.method, "effort": self.effort, "seed": _seed(self.random_state)}
        self.estimate_ = measure.entropy(named, discrete=declared, **options)
        self.entropy_, self.stderr_ = self.estimate_.value, self.estimate_.stderr
        return self


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
        method: ``"auto"`` or the name of a density.
        effort: ``"quick"``, ``"standard"`` or ``"thorough"``.
        discrete_features: Which columns are discrete: ``"auto"`` decides by the values, ``True`` or ``False`` is for
            all, a list has positions or a truth value for each column.
        discrete_target: Whether y has classes; ``"auto"`` decides by the values.
        random_state: A number makes the measurements repeatable.
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

    def __init__(
        self,
        k: int | Literal["all"] = 10,
        *,
        criterion: Literal["relevance", "mrmr", "jmi"] = "relevance",
        method: str = "auto",
        effort: Effort = "quick",
        discrete_features: Columns = "auto",
        discrete_target: Target = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.k = k
        self.criterion = criterion
        self.method = method
        self.effort = effort
        self.discrete_features = discrete_features
        self.discrete_target = discrete_target
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> Self:
        """Measure what the columns of X (N, columns) tell about y (N,)."""
        _check_k(self.k)
        one_of("criterion", self.criterion, tuple(CRITERIA))
        checked, target = validate_data(self, X, y, dtype=NUMBERS, ensure_min_samples=MIN_ROWS)
        columns = _columns(X, checked)
        declared = _chosen(self.discrete_features, len(columns)), _target(target, self.discrete_target)
        options: dict[str, Any] = {"method": self.method, "effort": self.effort, "seed": _seed(self.random_state)}
        asked = _Asked(columns, declared[0], target, declared[1], options, self.n_jobs)
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
        discrete_features: Which columns are discrete: ``"auto"`` decides by the values, ``True`` or ``False`` is for
            all, a list has positions or a truth value for each column.
        discrete_target: Whether y has classes; ``"auto"`` decides by the values.
        method: ``"auto"`` or the name of a density.
        effort: ``"quick"``, ``"standard"`` or ``"thorough"``.
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
    columns = _columns(X, checked)
    chosen = _chosen(discrete_features, len(columns))
    options: dict[str, Any] = {"method": method, "effort": effort, "seed": seed}
    return _Asked(columns, chosen, target, _target(target, discrete_target), options).relevance()[0]


class _Asked(NamedTuple):
    """Columns and a target, their kinds, and how they are measured; what is constant tells nothing."""

    columns: list[Any]
    kinds: list[bool | None]
    y: Any
    target: bool | None
    options: dict[str, Any]
    n_jobs: int | None = None

    def relevance(self) -> tuple[Values, Values]:
        """I(x_j; y) of every column and its standard error."""
        told = {"y": self.target}
        return self._all(
            [({"x": x}, self.y, {"x": kind} | told) for x, kind in zip(self.columns, self.kinds, strict=True)]
        )

    def redundancy(self, i: int) -> tuple[Values, Values]:
        """I(x_j; x_i) of every column j with one of them."""
        told = {"y": self.kinds[i]}
        pairs = zip(self.columns, self.kinds, strict=True)
        return self._all([({"x": x}, self.columns[i], {"x": kind} | told) for x, kind in pairs], without=i)

    def jointly(self, i: int) -> tuple[Values, Values]:
        """I(x_j, x_i; y) of every column j together with one of them."""
        told = {"other": self.kinds[i], "y": self.target}
        pairs = zip(self.columns, self.kinds, strict=True)
        other = {"other": self.columns[i]}
        return self._all([({"x": x} | other, self.y, {"x": kind} | told) for x, kind in pairs], without=i)

    def _all(self, questions: list[tuple[dict[str, Any], Any, dict[str, bool | None]]], without: int = -1) -> Any:
        """Values and standard errors, measured at the same time."""
        found = Parallel(self.n_jobs)(
            delayed(_measured)(*question, self.options if i != without else None)
            for i, question in enumerate(questions)
        )
        return tuple(np.array(found, dtype=float).reshape(-1, 2).T)


def _measured(x: dict[str, Any], y: Any, kinds: dict[str, bool | None], options: Any) -> tuple[float, float]:
    varying = {name: column for name, column in x.items() if _varies(column)}
    if options is None or not varying or not _varies(y):
        return 0.0, 0.0
    told = {name: one for name, one in kinds.items() if one is not None and (name == "y" or name in varying)}
    estimate = measure.mutual_information(varying, y, discrete=told, **options)
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


def _columns(X: Any, checked: NDArray[Any]) -> list[Any]:
    """The columns of X with the dtypes they came with."""
    return [np.asarray(X[name]) for name in X.columns] if hasattr(X, "columns") else list(checked.T)


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
    if listed.ndim != 1 or (listed.size and listed.dtype.kind not in "iu") or not _within(listed, count):
        raise ValueError(
            f"discrete_features is {discrete!r}; expected positions from 0 to {count - 1}, or {count} truth values, "
            f"one for each column"
        )
    return [j in listed % count for j in range(count)]


def _within(positions: NDArray[Any], count: int) -> bool:
    return bool(np.all((-count <= positions) & (positions < count)))


def _declared(names: Iterable[str], chosen: list[bool | None]) -> dict[str, bool]:
    return {name: one for name, one in zip(names, chosen, strict=True) if one is not None}


def _target(y: NDArray[Any], discrete: Target) -> bool | None:
    """Whether y has classes; ``None`` leaves it to its values."""
    if isinstance(discrete, str) and discrete == "auto":
        return None
    if not isinstance(discrete, (bool, np.bool_)):
        raise ValueError(f"discrete_target is {discrete!r}; expected 'auto', True or False")
    return bool(discrete)


def _varies(column: NDArray[Any]) -> bool:
    return bool(np.any(column != column[0]))


def _check_k(k: int | Literal["all"]) -> None:
    if k != "all" and check_whole("k", k) < 1:
        raise ValueError(f"k is {k}; expected at least 1, or 'all'")


def _seed(random_state: Any) -> int:
    return int(check_random_state(random_state).randint(2**31 - 1))
