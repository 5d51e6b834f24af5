"""The measuring tool for scikit-learn: an estimator of entropy, a selector of features, a score for ``SelectKBest``.

It needs scikit-learn: ``pip install "infoknife[sklearn]"``. What scikit-learn calls X is numbers, one row a sample.

A column counts as *discrete* or *continuous* by its dtype, as everywhere in infoknife: floats are continuous, booleans
discrete, and integers discrete if they look like labels, few values for the number of rows. The columns of a frame have
dtypes of their own; an array has one for all, so a table that became an array of floats is continuous throughout unless
``discrete_features`` says otherwise. A target y of floats that are all whole numbers is looked at as integers, since
that is how classes often arrive.
"""

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state, check_X_y
from sklearn.utils.validation import check_is_fitted, validate_data

from infoknife import measure
from infoknife.inputs import check_whole
from infoknife.measure.candidates.catalogue import Effort
from infoknife.measure.columns import MIN_ROWS

__all__ = ["EntropyEstimator", "InformationSelector", "mutual_info"]

Columns = Literal["auto"] | bool | Sequence[int] | Sequence[bool] | NDArray[Any]
Target = Literal["auto"] | bool
Values = NDArray[np.float64]

NUMBERS = "numeric"  # scikit-learn's word for: leave numbers as they are, make numbers of objects


class EntropyEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The entropy of X in nats, measured on rows that nothing was fitted to; see ``infoknife.entropy``.

    ``fit`` measures. There is no ``score``: an entropy belongs to the rows that it was measured on.

    Args:
        method: ``"auto"`` or the name of a density.
        effort: ``"quick"``, ``"standard"`` or ``"thorough"``.
        discrete_features: Which columns are discrete: ``"auto"`` decides by dtype, ``True`` or ``False`` is for all, a
            list has positions or a truth value for each column.
        random_state: A number makes the measurement repeatable.

    Attributes:
        entropy_: The entropy in nats; it may be infinite.
        stderr_: Its standard error.
        estimate_: The whole answer: interval, bound, pointwise values, diagnostics.
        n_features_in_: Number of columns.

    Example:
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
        columns = _columns(X, checked, self.discrete_features)
        self.estimate_ = measure.entropy(
            _table(columns), method=self.method, effort=self.effort, seed=_seed(self.random_state)
        )
        self.entropy_, self.stderr_ = self.estimate_.value, self.estimate_.stderr
        return self


class InformationSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Keep the k columns of X that each tell most about y: the largest I(x_j; y), see ``infoknife.mutual_information``.

    Columns are looked at one by one: two that say the same are both kept, and two that only together tell something
    are both missed.

    Args:
        k: How many columns to keep at most, or ``"all"``.
        method: ``"auto"`` or the name of a density.
        effort: ``"quick"``, ``"standard"`` or ``"thorough"``.
        discrete_features: Which columns are discrete: ``"auto"`` decides by dtype, ``True`` or ``False`` is for all, a
            list has positions or a truth value for each column.
        discrete_target: Whether y has classes; ``"auto"`` decides by dtype.
        random_state: A number makes the measurements repeatable.

    Attributes:
        scores_: Mutual information in nats for each column, (columns,). It may be a little below zero where there is
            none, is infinite where y is a function of a continuous column, and zero for a constant column.
        stderrs_: Their standard errors, (columns,); NaN where the score is infinite.
        n_features_in_: Number of columns.

    Example:
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> y = X[:, 1] + 0.5 * X[:, 0] ** 2
        >>> InformationSelector(k=1, method="gaussian").fit(X, y).get_support()
        array([False,  True, False])
    """

    def __init__(
        self,
        k: int | Literal["all"] = 10,
        *,
        method: str = "auto",
        effort: Effort = "quick",
        discrete_features: Columns = "auto",
        discrete_target: Target = "auto",
        random_state: Any = 0,
    ) -> None:
        self.k = k
        self.method = method
        self.effort = effort
        self.discrete_features = discrete_features
        self.discrete_target = discrete_target
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Measure what each column of X (N, columns) tells about y (N,)."""
        _check_k(self.k)
        checked, target = validate_data(self, X, y, dtype=NUMBERS, ensure_min_samples=MIN_ROWS)
        columns, seed = _columns(X, checked, self.discrete_features), _seed(self.random_state)
        target = _target(target, self.discrete_target)
        self.scores_, self.stderrs_ = _informations(columns, target, self.method, self.effort, seed)
        return self

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        kept = len(self.scores_) if self.k == "all" else self.k
        best = np.argsort(-self.scores_, kind="stable")[:kept]  # of equals the first
        return np.isin(np.arange(len(self.scores_)), best)

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
    """Give I(x_j; y) in nats for every column of X (N, columns), as a score for ``SelectKBest``.

    It takes the place of scikit-learn's ``mutual_info_classif`` and ``mutual_info_regression``: whether y has classes
    is decided by its dtype.

    Args:
        X: Samples, numbers.
        y: The target (N,): numbers, classes or strings.
        discrete_features: Which columns are discrete: ``"auto"`` decides by dtype, ``True`` or ``False`` is for all, a
            list has positions or a truth value for each column.
        discrete_target: Whether y has classes; ``"auto"`` decides by dtype.
        method: ``"auto"`` or the name of a density.
        effort: ``"quick"``, ``"standard"`` or ``"thorough"``.
        seed: Makes the measurements repeatable.

    Example:
        >>> from functools import partial
        >>> from sklearn.feature_selection import SelectKBest
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> y = X[:, 1] + X[:, 2] > 0
        >>> SelectKBest(partial(mutual_info, method="gaussian"), k=2).fit(X, y).get_support()
        array([False,  True,  True])
    """
    checked, target = check_X_y(X, y, dtype=NUMBERS, ensure_min_samples=MIN_ROWS, estimator="mutual_info")
    columns = _columns(X, checked, discrete_features)
    return _informations(columns, _target(target, discrete_target), method, effort, seed)[0]


def _informations(columns: list[Any], y: Any, method: str, effort: Effort, seed: int | None) -> tuple[Values, Values]:
    """Mutual information of each column with y, and standard errors; what is constant tells nothing."""
    values, errors = np.zeros(len(columns)), np.zeros(len(columns))
    for j, column in enumerate(columns):
        if _varies(column) and _varies(y):
            estimate = measure.mutual_information(column, y, method=method, effort=effort, seed=seed)
            values[j], errors[j] = estimate.value, estimate.stderr
    return values, errors


# from what scikit-learn checked to columns whose dtype says what they are


def _columns(X: Any, checked: NDArray[Any], discrete: Columns) -> list[Any]:
    """The columns of X with the dtypes they came with; where ``discrete`` decides, strings or floats."""
    columns = [np.asarray(X[name]) for name in X.columns] if hasattr(X, "columns") else list(checked.T)
    chosen = _chosen(discrete, len(columns))
    return [_declared(*pair) for pair in zip(columns, chosen, strict=True)]


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


def _declared(column: NDArray[Any], discrete: bool | None) -> NDArray[Any]:
    """A column whose dtype says what it is: strings are discrete, floats continuous."""
    if discrete is None:
        return column
    return np.unique(column, return_inverse=True)[1].astype(str) if discrete else column.astype(np.float64)


def _target(y: NDArray[Any], discrete: Target) -> NDArray[Any]:
    if isinstance(discrete, str) and discrete == "auto":
        is_whole = y.dtype.kind == "f" and bool(np.all(y == np.rint(y))) and bool(np.all(np.abs(y) < 2**53))
        return y.astype(np.int64) if is_whole else y
    if not isinstance(discrete, (bool, np.bool_)):
        raise ValueError(f"discrete_target is {discrete!r}; expected 'auto', True or False")
    return _declared(y, bool(discrete))


def _table(columns: list[Any]) -> Any:
    """Columns side by side, each with its own dtype."""
    if len({column.dtype for column in columns}) == 1:
        return np.stack(columns, 1)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _varies(column: NDArray[Any]) -> bool:
    return bool(np.any(column != column[0]))


def _check_k(k: int | Literal["all"]) -> None:
    if k != "all" and check_whole("k", k) < 1:
        raise ValueError(f"k is {k}; expected at least 1, or 'all'")


def _seed(random_state: Any) -> int:
    return int(check_random_state(random_state).randint(2**31 - 1))
