"""What an attacker may try: four kinds of probes, with settings that inner folds choose and outer folds judge.

They are classifiers where the target has classes, and regressors where it is a quantity.

They need scikit-learn: ``pip install "infoknife[sklearn]"``.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import log_softmax

from infoknife.leakage.rows import Codes, Floats, Target

Matrix = NDArray[Any]  # features (N, d), in single precision
Values = Codes | Floats  # codes of classes, or numbers of a quantity (N,)
Parts = Sequence[tuple[Codes, Codes]]  # of every fold, the rows to learn from and those to predict
Settings = Mapping[str, float]
Progress = Callable[[float, str], None]

INNER = 3  # folds that choose
TRAINING, CHOOSING = 16_000, 4_000  # rows that a probe learns from, and that choose its settings, at most
LANDMARKS = 256  # rows that the kernel compares with
ROUNDS, TREES = 60, 120  # of boosting; trees over all classes
BLOCKS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)  # of the rows, of a code that learns as it goes
EARLY, ENOUGH = 10, 50  # rows of every class, or of a quantity, from which on some can be spared to stop early
TEMPERATURES = np.geomspace(1, 16, 25)  # less confident, never more: a strong penalty is no virtue


class ProbeContext(NamedTuple):
    """What a probe is made for: its training rows, features, classes (0: a quantity), seed, and early stopping."""

    rows: int
    dim: int
    classes: int
    seed: int
    early: bool


class ProbeKind(NamedTuple):
    """A kind of probe: its name, what it is in words, settings to choose from, its maker, and words for a quantity."""

    name: str
    words: str
    grid: tuple[Settings, ...]
    make: Callable[[Settings, ProbeContext], Any]
    regressor_words: str = ""

    def describe(self, *, is_quantity: bool) -> str:
        """Return its name, and what it is for classes or for a quantity."""
        return f"{self.name} ({self.regressor_words if is_quantity and self.regressor_words else self.words})"


@dataclass(frozen=True)
class Probe:
    """What a kind of probe reached on rows that it was not fitted to; NaN where a number does not apply.

    Args:
        name: The kind.
        accuracy: Of a classifier: the part of all rows that it names correctly.
        balanced_accuracy: Of a classifier: the mean of the recalls, by guesses that take all classes as equally likely.
        stderr: The standard error of ``score``.
        information: Of a classifier: $H(S)$ minus its held-out cross-entropy, in nats: what this kind of attacker can
            use (V-information; Xu et al., 2020), a lower bound of $I(Z; S)$ in expectation.
        recalls: Of a classifier: the part of every class that it names correctly, by the same guesses as the balanced
            accuracy.
        settings: What the inner folds chose, for every outer fold.
        r2: Of a regressor: the part of the variance that it explains; below 0 it is worse than the mean.
        error: Of a regressor: the root of its mean squared error, in the unit of the quantity.
        description_length: Of a classifier: nats per row of a code of the classes that learns as it goes; see
            ``code_length``.
    """

    name: str
    accuracy: float
    balanced_accuracy: float
    stderr: float
    information: float
    recalls: tuple[float, ...]
    settings: tuple[Settings, ...]
    r2: float = math.nan
    error: float = math.nan
    description_length: float = math.nan

    @property
    def score(self) -> float:
        """What it is judged by: the balanced accuracy, or the part of the variance that it explains."""
        return self.balanced_accuracy if self.recalls else self.r2

    @property
    def spread(self) -> float:
        """The standard deviation of the quantity, which is the error of a guess without features."""
        return self.error / math.sqrt(1 - self.r2) if self.r2 < 1 else math.nan

    def to_dict(self) -> dict[str, Any]:
        """All of it that applies in lists and numbers, for JSON."""
        lists = {"recalls": list(self.recalls), "settings": [dict(one) for one in self.settings]}
        numbers = {key: one for key, one in self.__dict__.items() if not (isinstance(one, float) and math.isnan(one))}
        return {key: value for key, value in (numbers | lists).items() if value != []}


class HeldOut(NamedTuple):
    """A probe, and what it tells about the class of every held-out row in nats (N,); of a quantity nothing."""

    probe: Probe
    pointwise: Floats


def require_sklearn() -> None:
    """Raise where scikit-learn, an extra, is not installed."""
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise ImportError('an audit needs scikit-learn; install it with: pip install "infoknife[sklearn]"') from error


def _linear(settings: Settings, context: ProbeContext) -> Any:
    from sklearn.linear_model import LogisticRegression, Ridge

    if not context.classes:
        return Ridge(alpha=1 / settings["C"])
    return LogisticRegression(C=settings["C"], max_iter=200)


def _network(settings: Settings, context: ProbeContext) -> Any:
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    return (MLPClassifier if context.classes else MLPRegressor)(
        hidden_layer_sizes=(64,),
        alpha=settings["alpha"],
        batch_size=min(256, max(32, context.rows // 10)),
        learning_rate_init=5e-3,
        max_iter=40,
        early_stopping=context.early,
        n_iter_no_change=8,
        random_state=context.seed,
    )


def _kernel(settings: Settings, context: ProbeContext) -> Any:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline

    gamma = settings["width"] / (2 * context.dim)  # 2 d is the mean squared distance of standardised rows
    landmarks = min(LANDMARKS, context.rows)
    model = LogisticRegression(C=10, max_iter=200) if context.classes else Ridge(alpha=0.1)
    return make_pipeline(Nystroem(gamma=gamma, n_components=landmarks, random_state=context.seed), model)


def _boosting(settings: Settings, context: ProbeContext) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    rounds = min(ROUNDS, max(10, TREES // max(context.classes, 1)))
    return (HistGradientBoostingClassifier if context.classes else HistGradientBoostingRegressor)(
        max_iter=rounds,
        learning_rate=min(0.3, 10 / rounds),
        max_leaf_nodes=int(settings["leaves"]),
        max_bins=63,
        early_stopping=context.early,
        validation_fraction=0.15,
        n_iter_no_change=5,
        random_state=context.seed,
    )


KINDS = (
    ProbeKind(
        "linear", "logistic regression", tuple({"C": C} for C in (1e-3, 1e-2, 1e-1, 10.0)), _linear, "ridge regression"
    ),
    ProbeKind("network", "a network with one hidden layer", tuple({"alpha": a} for a in (0.1, 3.0)), _network),
    ProbeKind("kernel", "Gaussian kernels on landmarks", tuple({"width": w} for w in (0.25, 1.0, 4.0)), _kernel),
    ProbeKind("boosting", "gradient-boosted trees", tuple({"leaves": n} for n in (7, 31)), _boosting),
)


def attacks(z: Matrix, s: Target, parts: Parts, pool: Executor, *, seed: int, on_progress: Progress) -> list[HeldOut]:
    """Let every kind of probe predict every row after it has learned from other rows: nested cross-validation."""
    values = (s.values - s.values.mean()) / s.values.std() if s.is_quantity else s.values
    jobs = [(kind, *part) for kind in KINDS for part in parts]
    predictions = np.empty((len(KINDS), len(z), max(len(s.classes), 1)))
    chosen: dict[str, list[Settings]] = {kind.name: [] for kind in KINDS}
    for i, (predicted, settings) in enumerate(pool.map(partial(_predicted, z, values, seed), jobs)):
        kind, _, test = jobs[i]
        predictions[i // len(parts), test] = predicted
        chosen[kind.name].append(settings)
        on_progress((i + 1) / len(jobs), f"{kind.name}, fold {i % len(parts) + 1} of {len(parts)}")
    named = [(name, tuple(settings)) for name, settings in chosen.items()]
    if s.is_quantity:
        return [_explained(*one, predicted, s) for one, predicted in zip(named, predictions, strict=True)]
    codes = values.astype(np.int64)
    lengths = pool.map(lambda kind: code_length(kind, chosen[kind.name][0], z, codes, seed), KINDS)
    found = zip(named, predictions, lengths, strict=True)
    return [_scored(*one, log_probs, s, parts, length) for one, log_probs, length in found]


def fold_rows(s: Values, count: int, seed: int, groups: Codes | None = None) -> Parts:
    """Divide rows into pairs of training and held-out ones, with the classes' shares; groups (N,) stay together."""
    from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

    kinds = (KFold, GroupKFold) if _is_quantity(s) else (StratifiedKFold, StratifiedGroupKFold)
    return list(kinds[groups is not None](count, shuffle=True, random_state=seed).split(s, s, groups))


def _is_quantity(s: Values) -> bool:
    return s.dtype.kind == "f"


def _predicted(z: Matrix, s: Values, seed: int, job: tuple[ProbeKind, Codes, Codes]) -> tuple[Floats, Settings]:
    """The predictions for the rows of a fold, log-probabilities or numbers, and the settings behind them."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import Pipeline

    kind, train, test = job
    train = _subsample(train, s, TRAINING, seed)
    few = _subsample(train, s, CHOOSING, seed)
    inner = fold_rows(s[few], INNER, seed + 1)
    search = GridSearchCV(
        Pipeline([("probe", None)]),
        {"probe": [_made(kind, settings, z, s, few[inner[0][0]], seed) for settings in kind.grid]},
        scoring="neg_mean_squared_error" if _is_quantity(s) else _log_likelihood,
        refit=False,
        cv=inner,
        error_score="raise",
    )
    settings = kind.grid[search.fit(z[few], s[few]).best_index_]
    model = _made(kind, settings, z, s, train, seed).fit(z[train], s[train])
    if _is_quantity(s):
        return np.clip(model.predict(z[test]), s[train].min(), s[train].max())[:, None], settings
    prior = np.bincount(s[train], minlength=int(s.max()) + 1) / len(train)
    return _smoothed(_log_probs(model, z[test], len(prior)), prior, len(train)), settings


def code_length(kind: ProbeKind, settings: Settings, z: Matrix, s: Codes, seed: int) -> float:
    """Return the nats per row of the shortest code of the classes that a kind of probe gives, learned as it goes.

    A first part of the rows is coded without features; each further part by what was learned from those before
    (prequential coding; Voita and Titov, 2020). Below the entropy, features help; the fewer rows a kind of attacker
    needs, the shorter the code. An attacker who needs many rows is less of a threat than one who reaches the same
    accuracy with few.

    Args:
        kind: The kind of probe.
        settings: Its settings.
        z: Features (N, d).
        s: Classes (N,).
        seed: Of the order of the rows.
    """
    classes, rows = int(s.max()) + 1, np.random.default_rng(seed).permutation(len(s))[:TRAINING]
    ends = [round(part * len(rows)) for part in BLOCKS]
    length = ends[0] * math.log(classes)
    for start, end in pairwise(ends):
        before, now = rows[:start], rows[start:end]
        log_probs = np.zeros((len(now), classes))
        if len(np.unique(s[before])) > 1:
            model = _made(kind, settings, z, s, before, seed).fit(z[before], s[before])
            log_probs = _log_probs(model, z[now], classes)
        smoothed = _smoothed(log_softmax(log_probs, 1), np.full(classes, 1 / classes), start)
        length -= float(np.take_along_axis(smoothed, s[now, None], 1).sum())
    return length / len(rows)


def _made(kind: ProbeKind, settings: Settings, z: Matrix, s: Values, rows: Codes, seed: int) -> Any:
    """A probe of standardised features, for these rows to learn from."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    counts = np.zeros(0, dtype=np.int64) if _is_quantity(s) else np.bincount(s[rows], minlength=int(s.max()) + 1)
    early = bool(counts[counts > 0].min() >= EARLY) if len(counts) else len(rows) >= ENOUGH
    context = ProbeContext(len(rows), z.shape[1], len(counts), seed, early)
    return make_pipeline(StandardScaler(), kind.make(settings, context))


def _smoothed(log_probs: Floats, prior: Floats, rows: int) -> Floats:
    """Log-probabilities that are no surer than so many training rows allow."""
    return np.log((rows * np.exp(log_probs) + prior) / (rows + 1))


def _scored(
    name: str, settings: tuple[Settings, ...], log_probs: Floats, s: Target, parts: Parts, length: float
) -> HeldOut:
    """What held-out log-probabilities (N, K) are worth."""
    codes: Codes = s.values.astype(np.int64)
    right = (log_probs - np.log(s.prior)).argmax(1) == codes  # as if all classes were equally likely
    hits = np.bincount(codes, weights=right, minlength=len(s.classes))
    recalls, smooth = hits / s.counts, (hits + 1) / (s.counts + 2)  # no class is known without error
    stderr = math.sqrt(float((smooth * (1 - smooth) / s.counts).sum())) / len(hits)
    pointwise = np.take_along_axis(_tempered(log_probs, codes, parts), codes[:, None], 1)[:, 0] - np.log(s.prior)[codes]
    accuracy = float((log_probs.argmax(1) == codes).mean())
    shown, balanced, information = tuple(map(float, recalls)), float(recalls.mean()), float(pointwise.mean())
    probe = Probe(name, accuracy, balanced, stderr, information, shown, settings, description_length=length)
    return HeldOut(probe, pointwise)


def _explained(name: str, settings: tuple[Settings, ...], predicted: Floats, s: Target) -> HeldOut:
    r"""What held-out predictions (N, 1) of a standardised quantity are worth: $R^2$, with the error of a ratio."""
    standard = (s.values - s.values.mean()) / s.values.std()
    total, missed = np.square(standard), np.square(standard - predicted[:, 0])
    r2 = 1 - float(missed.mean())
    stderr = math.hypot(float((missed - (1 - r2) * total).std()) / math.sqrt(len(total)), 1 / len(total))
    error = float(s.values.std()) * math.sqrt(1 - r2)
    probe = Probe(name, math.nan, math.nan, stderr, math.nan, (), settings, r2, error)
    return HeldOut(probe, np.full(len(total), math.nan))


def _log_probs(model: Any, z: Matrix, classes: int) -> Floats:
    """Log-probabilities (N, K), also of classes that the model has not met."""
    probabilities = np.zeros((len(z), classes))
    probabilities[:, model.classes_] = model.predict_proba(z)
    return np.log(np.clip(probabilities, 1e-12, None))


def _log_likelihood(model: Any, z: Matrix, s: Codes) -> float:
    classes = int(max(s.max(), model.classes_.max())) + 1
    return float(np.take_along_axis(_log_probs(model, z, classes), s[:, None], 1).mean())


def _tempered(log_probs: Floats, codes: Codes, parts: Parts) -> Floats:
    """Log-probabilities (N, K) that are as confident as they should be: in every fold, by what helps in the others."""

    def scaled(rows: Codes, temperature: float) -> Floats:
        return log_softmax(log_probs[rows] / temperature, axis=1)

    tempered = np.empty_like(log_probs)
    for rest, test in parts:
        gains = [np.take_along_axis(scaled(rest, t), codes[rest, None], 1).mean() for t in TEMPERATURES]
        tempered[test] = scaled(test, TEMPERATURES[int(np.argmax(gains))])
    return tempered


def _subsample(rows: Codes, s: Values, most: int, seed: int) -> Codes:
    """At most so many rows, about, with the classes' shares; rare classes keep what they need."""
    if len(rows) <= most:
        return rows
    order = np.random.default_rng(seed).permutation(rows)
    if _is_quantity(s):
        return np.sort(order[:most])
    kept = []
    for code in np.unique(s):
        members = order[s[order] == code]
        kept.append(members[: max(EARLY, math.ceil(len(members) * most / len(rows)))])
    return np.sort(np.concatenate(kept))


@contextmanager
def workers() -> Iterator[ThreadPoolExecutor]:
    """Yield a pool of as many threads as torch has, in which no library starts threads of its own, and none warns.

    Threads within a fit wait for each other. Where the machine has other work they wait long.
    """
    from threadpoolctl import threadpool_limits

    count = torch.get_num_threads()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # held-out rows judge what few iterations reach
        with ThreadPoolExecutor(count, initializer=_limit_openmp, initargs=(threadpool_limits,)) as pool:
            yield pool


def _limit_openmp(limit: Any) -> None:
    """Limit OpenMP in this thread; torch must have set its own limit before."""
    torch.get_num_threads()
    limit(1, "openmp")
