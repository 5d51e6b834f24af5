"""What an attacker may try: classifiers of four kinds, with settings that inner folds choose and outer folds judge.

They need scikit-learn: ``pip install "infoknife[sklearn]"``.
"""

import math
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from infoknife.leakage.rows import Attribute, Codes

__all__ = ["KINDS", "Floats", "Held", "Kind", "Probe", "Tell", "attacks", "require_sklearn"]

Floats = NDArray[np.float64]
Settings = Mapping[str, float]
Tell = Callable[[float, str], None]

INNER = 3  # folds that choose
TRAINING, CHOOSING = 16_000, 4_000  # rows that a probe learns from, and that choose its settings, at most
LANDMARKS = 256  # rows that the kernel compares with
ROUNDS, TREES = 60, 120  # of boosting; trees over all classes
EARLY = 10  # rows of every class, from which on some can be spared to stop early
TEMPERATURES = np.geomspace(1, 16, 25)  # less sure, never surer: a strong penalty is no virtue


class Scene(NamedTuple):
    """What a probe is made for: its training rows, features, classes, seed, and whether to stop early."""

    rows: int
    dim: int
    classes: int
    seed: int
    early: bool


class Kind(NamedTuple):
    """A kind of probe: its name, what it is in words, the settings to choose from, and how it is made."""

    name: str
    words: str
    grid: tuple[Settings, ...]
    make: Callable[[Settings, Scene], Any]


class Job(NamedTuple):
    """A kind of probe, the rows that it learns from, and those that it guesses."""

    kind: Kind
    train: Codes
    test: Codes


@dataclass(frozen=True)
class Probe:
    """What a kind of classifier reached on rows that it was not fitted to.

    Args:
        name: The kind.
        accuracy: The part of all rows that it names right.
        balanced_accuracy: The mean of the recalls, by guesses that take all classes for equally likely.
        stderr: The standard error of the balanced accuracy.
        information: $H(S)$ less its held-out cross-entropy, in nats: a lower bound of $I(Z; S)$ in expectation.
        recalls: The part of every class that it names right, by the same guesses as the balanced accuracy.
        settings: What the inner folds chose, for every outer fold.
    """

    name: str
    accuracy: float
    balanced_accuracy: float
    stderr: float
    information: float
    recalls: tuple[float, ...]
    settings: tuple[Settings, ...]

    def to_dict(self) -> dict[str, Any]:
        """All of it in lists and numbers, for JSON."""
        return self.__dict__ | {"recalls": list(self.recalls), "settings": [dict(one) for one in self.settings]}


class Held(NamedTuple):
    """A probe, and what it tells of the class of every held-out row in nats (N,)."""

    probe: Probe
    pointwise: Floats


def require_sklearn() -> None:
    """Stop where there are no probes without the extra."""
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise ImportError('an audit needs scikit-learn; install it with: pip install "infoknife[sklearn]"') from error


def _linear(settings: Settings, scene: Scene) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=settings["C"], max_iter=200)


def _network(settings: Settings, scene: Scene) -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(
        (64,),
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
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    gamma = settings["width"] / (2 * scene.dim)  # 2 d is the mean squared distance of standardised rows
    landmarks = min(LANDMARKS, scene.rows)
    return make_pipeline(
        Nystroem(gamma=gamma, n_components=landmarks, random_state=scene.seed), LogisticRegression(C=10, max_iter=200)
    )


def _boosting(settings: Settings, scene: Scene) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    rounds = min(ROUNDS, max(10, TREES // scene.classes))
    return HistGradientBoostingClassifier(
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
    Kind("linear", "logistic regression", tuple({"C": C} for C in (1e-3, 1e-2, 1e-1, 10.0)), _linear),
    Kind("network", "a network with a hidden layer", tuple({"alpha": a} for a in (0.1, 3.0)), _network),
    Kind("kernel", "Gaussian kernels on landmarks", tuple({"width": w} for w in (0.25, 1.0, 4.0)), _kernel),
    Kind("boosting", "gradient-boosted trees", tuple({"leaves": n} for n in (7, 31)), _boosting),
)


def attacks(z: Floats, s: Attribute, pool: Executor, *, folds: int, seed: int, tell: Tell) -> list[Held]:
    """Let every kind of probe guess every row after it has learned from other rows: nested cross-validation.

    Args:
        z: Features (N, d).
        s: Classes of the N rows.
        pool: What fits side by side.
        folds: How many outer folds.
        seed: Of everything random.
        tell: Called after every fold with the part that is done and the kind.
    """
    parts = list(_folds(s.codes, folds, seed))
    jobs = [Job(kind, _some(train, s.codes, TRAINING, seed), test) for kind in KINDS for train, test in parts]
    guesses = np.empty((len(KINDS), len(z), len(s.classes)))
    chosen: dict[str, list[Settings]] = {kind.name: [] for kind in KINDS}
    for i, (log_probs, settings) in enumerate(pool.map(partial(_guessed, z, s.codes, seed), jobs)):
        kind, _, test = jobs[i]
        guesses[i // folds, test] = log_probs
        chosen[kind.name].append(settings)
        tell((i + 1) / len(jobs), f"{kind.name}, fold {i % folds + 1} of {folds}")
    return [_judged(name, one, s, tuple(found)) for (name, found), one in zip(chosen.items(), guesses, strict=True)]


def _guessed(z: Floats, s: Codes, seed: int, job: Job) -> tuple[Floats, Settings]:
    """The log-probabilities of the rows of a fold, and the settings behind them."""
    kind, train, test = job
    few = _some(train, s, CHOOSING, seed)
    settings, temperature = _choose(kind, z[few], s[few], seed)
    guess = _fitted(kind, settings, z[train], s[train], seed)
    return _tempered(guess(z[test]), temperature, np.bincount(s[train])), settings


def _judged(name: str, log_probs: Floats, s: Attribute, settings: tuple[Settings, ...]) -> Held:
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


def _choose(kind: Kind, z: Floats, s: Codes, seed: int) -> tuple[Settings, float]:
    """The settings and the temperature under which inner held-out rows are most likely."""
    best = (math.inf, kind.grid[0], 1.0)
    inner = list(_folds(s, INNER, seed + 1))
    for settings in kind.grid:
        held = [(_fitted(kind, settings, z[train], s[train], seed)(z[test]), s[test]) for train, test in inner]
        log_probs, codes = (np.concatenate(part) for part in zip(*held, strict=True))
        losses = [_loss(log_probs, codes, t) for t in TEMPERATURES]
        i = int(np.argmin(losses))
        best = min(best, (losses[i], settings, float(TEMPERATURES[i])), key=lambda one: one[0])
    return best[1], best[2]


def _fitted(kind: Kind, settings: Settings, z: Floats, s: Codes, seed: int) -> Callable[[Floats], Floats]:
    """What gives log-probabilities (n, K) of rows, after a fit to others in standardised columns."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    counts = np.bincount(s)
    scene = Scene(len(z), z.shape[1], len(counts), seed, bool(counts.min() >= EARLY))
    model = make_pipeline(StandardScaler(), kind.make(settings, scene)).fit(z, s)
    return lambda rows: np.log(np.clip(model.predict_proba(rows), 1e-12, None))


def _tempered(log_probs: Floats, temperature: float, counts: Codes) -> Floats:
    """Log-probabilities that are as sure as they should be, and never surer than the training rows allow."""
    n, prior = counts.sum(), counts / counts.sum()
    return np.log((n * np.exp(_scaled(log_probs, temperature)) + prior) / (n + 1))


def _scaled(log_probs: Floats, temperature: float) -> Floats:
    powers = log_probs / temperature
    powers = powers - powers.max(1, keepdims=True)
    return powers - np.log(np.exp(powers).sum(1, keepdims=True))


def _loss(log_probs: Floats, codes: Codes, temperature: float) -> float:
    return -float(np.take_along_axis(_scaled(log_probs, temperature), codes[:, None], 1).mean())


def _folds(s: Codes, count: int, seed: int) -> Any:
    from sklearn.model_selection import StratifiedKFold

    return StratifiedKFold(count, shuffle=True, random_state=seed).split(s, s)


def _some(rows: Codes, s: Codes, most: int, seed: int) -> Codes:
    """At most so many rows, about, with the classes' shares; rare classes keep what they need."""
    if len(rows) <= most:
        return rows
    order = np.random.default_rng(seed).permutation(rows)
    kept = []
    for code in np.unique(s):
        mine = order[s[order] == code]
        kept.append(mine[: max(EARLY, math.ceil(len(mine) * most / len(rows)))])
    return np.sort(np.concatenate(kept))
