"""What an attacker may try: four kinds of probes, with settings that inner folds choose and outer folds judge.

They are classifiers where the target has classes, and regressors where it is a quantity.

They need scikit-learn: ``pip install "infoknife[sklearn]"``.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from infoknife.leakage.rows import Attribute, Codes, Floats, Quantity, Target

Matrix = NDArray[Any]  # features (N, d), in single precision
Values = Codes | Floats  # codes of classes, or numbers of a quantity (N,)
Settings = Mapping[str, float]
Progress = Callable[[float, str], None]

INNER = 3  # folds that choose
TRAINING, CHOOSING = 16_000, 4_000  # rows that a probe learns from, and that choose its settings, at most
LANDMARKS = 256  # rows that the kernel compares with
ROUNDS, TREES = 60, 120  # of boosting; trees over all classes
EARLY, ENOUGH = 10, 50  # rows of every class, or of a quantity, from which on some can be spared to stop early
TEMPERATURES = np.geomspace(1, 16, 25)  # less confident, never more: a strong penalty is no virtue


class Scene(NamedTuple):
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
    make: Callable[[Settings, Scene], Any]
    regressor_words: str = ""

    def describe(self, *, is_quantity: bool) -> str:
        """Return its name, and what it is for classes or for a quantity."""
        return f"{self.name} ({self.regressor_words if is_quantity and self.regressor_words else self.words})"


class Job(NamedTuple):
    """A kind of probe, the rows that it learns from, and those that it predicts."""

    kind: ProbeKind
    train: Codes
    test: Codes


@dataclass(frozen=True)
class Probe:
    """What a kind of probe reached on rows that it was not fitted to; NaN where a number does not apply.

    Args:
        name: The kind.
        accuracy: Of a classifier: the part of all rows that it names correctly.
        balanced_accuracy: Of a classifier: the mean of the recalls, by guesses that take all classes as equally likely.
        stderr: The standard error of ``score``.
        information: Of a classifier: $H(S)$ minus its held-out cross-entropy, in nats: a lower bound of $I(Z; S)$ in
            expectation.
        recalls: Of a classifier: the part of every class that it names correctly, by the same guesses as the balanced
            accuracy.
        settings: What the inner folds chose, for every outer fold.
        r2: Of a regressor: the part of the variance that it explains; below 0 it is worse than the mean.
        error: Of a regressor: the root of its mean squared error, in the unit of the quantity.
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


class Held(NamedTuple):
    """A probe, and what it tells about the class of every held-out row in nats (N,); of a quantity nothing."""

    probe: Probe
    pointwise: Floats


def require_sklearn() -> None:
    """Raise where scikit-learn, an extra, is not installed."""
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise ImportError('an audit needs scikit-learn; install it with: pip install "infoknife[sklearn]"') from error


def _linear(settings: Settings, scene: Scene) -> Any:
    from sklearn.linear_model import LogisticRegression, Ridge

    if not scene.classes:
        return Ridge(alpha=1 / settings["C"])
    return LogisticRegression(C=settings["C"], max_iter=200)


def _network(settings: Settings, scene: Scene) -> Any:
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    return (MLPClassifier if scene.classes else MLPRegressor)(
        hidden_layer_sizes=(64,),
        alpha=settings["alpha"],
        batch_size=min(256, max(32, scene.rows // 10)),
        learning_rate_init=5e-3,
        max_iter=40,
        early_stopping=scene.early,
        n_iter_no_change=8,
        random_state=scene.seed,
    )


def _kernel(settings: Settings, scene: Scene) -> Any:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline

    gamma = settings["width"] / (2 * scene.dim)  # 2 d is the mean squared distance of standardised rows
    landmarks = min(LANDMARKS, scene.rows)
    model = LogisticRegression(C=10, max_iter=200) if scene.classes else Ridge(alpha=0.1)
    return make_pipeline(Nystroem(gamma=gamma, n_components=landmarks, random_state=scene.seed), model)


def _boosting(settings: Settings, scene: Scene) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    rounds = min(ROUNDS, max(10, TREES // max(scene.classes, 1)))
    return (HistGradientBoostingClassifier if scene.classes else HistGradientBoostingRegressor)(
        max_iter=rounds,
        learning_rate=min(0.3, 10 / rounds),
        max_leaf_nodes=int(settings["leaves"]),
        max_bins=63,
        early_stopping=scene.early,
        validation_fraction=0.15,
        n_iter_no_change=5,
        random_state=scene.seed,
    )


KINDS = (
    ProbeKind(
        "linear", "logistic regression", tuple({"C": C} for C in (1e-3, 1e-2, 1e-1, 10.0)), _linear, "ridge regression"
    ),
    ProbeKind("network", "a network with one hidden layer", tuple({"alpha": a} for a in (0.1, 3.0)), _network),
    ProbeKind("kernel", "Gaussian kernels on landmarks", tuple({"width": w} for w in (0.25, 1.0, 4.0)), _kernel),
    ProbeKind("boosting", "gradient-boosted trees", tuple({"leaves": n} for n in (7, 31)), _boosting),
)


def attacks(z: Matrix, s: Target, pool: Executor, *, folds: int, seed: int, on_progress: Progress) -> list[Held]:
    """Let every kind of probe predict every row after it has learned from other rows: nested cross-validation.

    Args:
        z: Features (N, d).
        s: Classes or a quantity of the N rows.
        pool: What runs fits at the same time.
        folds: How many outer folds.
        seed: Of everything random.
        on_progress: Called after every fold with the part that is done and the kind.
    """
    values: Values = s.values if isinstance(s, Attribute) else (s.values - s.values.mean()) / s.values.std()
    parts = list(_folds(values, folds, seed))
    jobs = [Job(kind, _some(train, values, TRAINING, seed), test) for kind in KINDS for train, test in parts]
    predictions = np.empty((len(KINDS), len(z), max(len(s.classes), 1)))
    chosen: dict[str, list[Settings]] = {kind.name: [] for kind in KINDS}
    for i, (predicted, settings) in enumerate(pool.map(partial(_predicted, z, values, seed), jobs)):
        kind, _, test = jobs[i]
        predictions[i // folds, test] = predicted
        chosen[kind.name].append(settings)
        on_progress((i + 1) / len(jobs), f"{kind.name}, fold {i % folds + 1} of {folds}")
    return [
        _scored(name, one, s, tuple(found)) if isinstance(s, Attribute) else _explained(name, one, s, tuple(found))
        for (name, found), one in zip(chosen.items(), predictions, strict=True)
    ]


def _predicted(z: Matrix, s: Values, seed: int, job: Job) -> tuple[Floats, Settings]:
    """The predictions for the rows of a fold, log-probabilities or numbers, and the settings behind them."""
    kind, train, test = job
    few = _some(train, s, CHOOSING, seed)
    settings, temperature = _choose(kind, z[few], s[few], seed)
    model = _model(kind, settings, s[train], z.shape[1], seed).fit(z[train], s[train])
    if _is_quantity(s):
        return np.clip(model.predict(z[test]), s[train].min(), s[train].max())[:, None], settings
    return _tempered(_log_probs(model, z[test]), temperature, np.bincount(s[train])), settings


def _scored(name: str, log_probs: Floats, s: Attribute, settings: tuple[Settings, ...]) -> Held:
    """What held-out log-probabilities (N, K) are worth."""
    right = (log_probs - np.log(s.prior)).argmax(1) == s.codes  # as if all classes were equally likely
    hits = np.bincount(s.codes, weights=right, minlength=len(s.classes))
    recalls, smooth = hits / s.counts, (hits + 1) / (s.counts + 2)  # no class is known without error
    stderr = math.sqrt(float((smooth * (1 - smooth) / s.counts).sum())) / len(hits)
    pointwise = np.take_along_axis(log_probs, s.codes[:, None], 1)[:, 0] - np.log(s.prior)[s.codes]
    accuracy = float((log_probs.argmax(1) == s.codes).mean())
    shown = tuple(map(float, recalls))
    return Held(
        Probe(name, accuracy, float(recalls.mean()), stderr, float(pointwise.mean()), shown, settings), pointwise
    )


def _explained(name: str, predicted: Floats, s: Quantity, settings: tuple[Settings, ...]) -> Held:
    r"""What held-out predictions (N, 1) of a standardised quantity are worth: $R^2$, with the error of a ratio."""
    standard = (s.values - s.values.mean()) / s.values.std()
    total, missed = np.square(standard), np.square(standard - predicted[:, 0])
    r2 = 1 - float(missed.mean())
    stderr = math.hypot(float((missed - (1 - r2) * total).std()) / math.sqrt(len(total)), 1 / len(total))
    error = float(s.values.std()) * math.sqrt(1 - r2)
    probe = Probe(name, math.nan, math.nan, stderr, math.nan, (), settings, r2, error)
    return Held(probe, np.full(len(total), math.nan))


def _choose(kind: ProbeKind, z: Matrix, s: Values, seed: int) -> tuple[Settings, float]:
    """The settings and the temperature that predict inner held-out rows best."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import Pipeline

    inner = list(_folds(s, INNER, seed + 1))
    models = [_model(kind, settings, s[inner[0][0]], z.shape[1], seed) for settings in kind.grid]
    search = GridSearchCV(
        Pipeline([("probe", models[0])]),
        {"probe": models},
        scoring=_squared_error if _is_quantity(s) else _cross_entropy,
        refit=False,
        cv=inner,
        error_score="raise",
    )
    results = search.fit(z, s).cv_results_
    best = int(np.argmax(results["mean_test_score"]))
    return kind.grid[best], math.exp(results["mean_test_log_temperature"][best])


def _model(kind: ProbeKind, settings: Settings, s: Values, dim: int, seed: int) -> Any:
    """A probe on standardised features, for training rows with these targets."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    counts = np.zeros(0, dtype=np.int64) if _is_quantity(s) else np.bincount(s)
    early = bool(counts.min() >= EARLY) if len(counts) else len(s) >= ENOUGH
    return make_pipeline(StandardScaler(), kind.make(settings, Scene(len(s), dim, len(counts), seed, early)))


def _log_probs(model: Any, z: Matrix) -> Floats:
    return np.log(np.clip(model.predict_proba(z), 1e-12, None))


def _squared_error(model: Any, z: Matrix, s: Floats) -> dict[str, float]:
    return {"score": -float(np.square(model.predict(z) - s).mean()), "log_temperature": 0.0}


def _cross_entropy(model: Any, z: Matrix, s: Codes) -> dict[str, float]:
    """What log-probabilities are worth at the best temperature, and that temperature."""
    log_probs = _log_probs(model, z)
    losses = [_loss(log_probs, s, t) for t in TEMPERATURES]
    best = int(np.argmin(losses))
    return {"score": -losses[best], "log_temperature": math.log(TEMPERATURES[best])}


def _is_quantity(s: Values) -> bool:
    return s.dtype.kind == "f"


def _tempered(log_probs: Floats, temperature: float, counts: Codes) -> Floats:
    """Log-probabilities that are as confident as they should be, never more than the training rows allow."""
    n, prior = counts.sum(), counts / counts.sum()
    return np.log((n * np.exp(_scaled(log_probs, temperature)) + prior) / (n + 1))


def _scaled(log_probs: Floats, temperature: float) -> Floats:
    powers = log_probs / temperature
    powers = powers - powers.max(1, keepdims=True)
    return powers - np.log(np.exp(powers).sum(1, keepdims=True))


def _loss(log_probs: Floats, codes: Codes, temperature: float) -> float:
    return -float(np.take_along_axis(_scaled(log_probs, temperature), codes[:, None], 1).mean())


def _folds(s: Values, count: int, seed: int) -> Any:
    from sklearn.model_selection import KFold, StratifiedKFold

    return (KFold if _is_quantity(s) else StratifiedKFold)(count, shuffle=True, random_state=seed).split(s, s)


def _some(rows: Codes, s: Values, most: int, seed: int) -> Codes:
    """At most so many rows, about, with the classes' shares; rare classes keep what they need."""
    if len(rows) <= most:
        return rows
    order = np.random.default_rng(seed).permutation(rows)
    if _is_quantity(s):
        return np.sort(order[:most])
    kept = []
    for code in np.unique(s):
        mine = order[s[order] == code]
        kept.append(mine[: max(EARLY, math.ceil(len(mine) * most / len(rows)))])
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
        with ThreadPoolExecutor(count, initializer=_alone, initargs=(threadpool_limits,)) as pool:
            yield pool


def _alone(limit: Any) -> None:
    """Limit OpenMP in this thread; torch must have set its own limit before."""
    torch.get_num_threads()
    limit(1, "openmp")
