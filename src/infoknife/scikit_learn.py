"""The measuring tool for scikit-learn: an estimator of entropy, a selector of features, a score for ``SelectKBest``.

It needs scikit-learn: ``pip install "infoknife[sklearn]"``. What scikit-learn calls X is numbers, one row per sample.

Whether a column is *discrete* or *continuous* is decided by its values, as everywhere in infoknife, unless
``discrete_features`` says otherwise: numbers with few different values can be counted, and are taken in their order as
well; booleans are discrete.
"""

from collections.abc import Iterable, Sequence
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
        discrete_features: Which columns are discrete: ``"auto"`` decides by the values, ``True`` or ``False`` is for
            all, a list has positions or a truth value for each column.
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
        columns = _columns(X, checked)
        named = {str(j): column for j, column in enumerate(columns)}
        declared = _declared(named, _chosen(self.discrete_features, len(columns)))
        options: dict[str, Any] = {"method": self.method, "effort": self.effort, "seed": _seed(self.random_state)}
        self.estimate_ = measure.entropy(named, discrete=declared, **options)
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
        discrete_features: Which columns are discrete: ``"auto"`` decides by the values, ``True`` or ``False`` is for
            all, a list has positions or a truth value for each column.
        discrete_target: Whether y has classes; ``"auto"`` decides by the values.
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
        columns = _columns(X, checked)
        declared = _chosen(self.discrete_features, len(columns)), _target(target, self.discrete_target)
        options: dict[str, Any] = {"method": self.method, "effort": self.effort, "seed": _seed(self.random_state)}
        self.scores_, self.stderrs_ = _informations(columns, declared[0], target, declared[1], **options)
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

    Example:
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
    return _informations(columns, chosen, target, _target(target, discrete_target), **options)[0]


def _informations(
    columns: list[Any], declared: list[bool | None], y: Any, target: bool | None, **options: Any
) -> tuple[Values, Values]:
    """Mutual information of each column with y, and standard errors; what is constant tells nothing."""
    values, errors = np.zeros(len(columns)), np.zeros(len(columns))
    for j, (column, discrete) in enumerate(zip(columns, declared, strict=True)):
        if _varies(column) and _varies(y):
            told = {name: one for name, one in (("x", discrete), ("y", target)) if one is not None}
            estimate = measure.mutual_information(column, y, discrete=told, **options)
            values[j], errors[j] = estimate.value, estimate.stderr
    return values, errors


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
