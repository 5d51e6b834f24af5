"""The three parts of the demo: measure a relation, train a code that hides a class, learn a density."""

import math
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.special import digamma
from torch import Tensor, nn

from infoknife import KNIFE, Audit, Estimate, Regularizer, audit, fit, mi, mutual_information, tasks
from infoknife.demo.drawing import Drawing, knife
from infoknife.tasks.relations import Relation
from infoknife.training import cosine

NEIGHBOURS = 5
CODE = 8  # dimensions of the code
TRAINING = 1000  # rows of the digits that the encoder learns from; the others are audited
POINTS = 6_000  # rows of the picture that are drawn

Say = Callable[[str], None]


class Budget(NamedTuple):
    """How much work goes into the parts: rows that are measured, and steps of the code and of the density."""

    rows: int
    code_steps: int
    density_steps: int


FULL, QUICK = Budget(2000, 300, 1200), Budget(300, 30, 60)


class MeasuredRelation(NamedTuple):
    """A relation of known information, measured twice from the same rows."""

    title: str
    truth: float
    estimate: Estimate
    ksg: float
    x: Tensor
    y: Tensor


class Codes(NamedTuple):
    """What attackers read from codes of rows that were not trained on, without a regularizer and with it."""

    plain: Audit
    hidden: Audit


class LearnedDensity(NamedTuple):
    """A density that was learned from rows of a picture, and its entropy on fresh ones, in nats."""

    picture: Drawing
    density: KNIFE
    estimate: float
    stderr: float


def relations() -> dict[str, tasks.PairTask]:
    """What is measured, by title; the first one is drawn."""
    return {
        "a wave": Relation("sine"),
        "a parabola": Relation("parabola"),
        "a cross": Relation("cross"),
        "the radius of three columns": Relation("radius"),
        "a line, correlation 0.8": tasks.GaussianPair(1, 0.8),
        "nothing": tasks.GaussianPair(1, 0.0),
    }


def measured(budget: Budget, seed: int, say: Say) -> list[MeasuredRelation]:
    """Measure every relation by ``mutual_information`` and by its usual rival."""
    found = []
    for title, task in relations().items():
        say(f"measuring {title}")
        x, y = task.sample(budget.rows, seed)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "at least ")  # the table says it
            estimate = mutual_information(x, y, effort="quick", seed=seed)
        found.append(MeasuredRelation(title, task.mutual_information(), estimate, ksg(x.numpy(), y.numpy()), x, y))
    return found


def ksg(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """I(X; Y) in nats by k nearest neighbours, as most people measure it (Kraskov et al., 2004, the first of two)."""
    sides = [(one - one.mean(0)) / one.std(0) for one in (x, y)]
    points = np.concatenate(sides, 1)
    reach = np.nextafter(cKDTree(points).query(points, NEIGHBOURS + 1, p=math.inf)[0][:, -1], 0)
    counts = [cKDTree(side).query_ball_point(side, reach, p=math.inf, return_length=True) for side in sides]
    return float(digamma(NEIGHBOURS) + digamma(len(x)) - sum(digamma(count).mean() for count in counts))


def trained(budget: Budget, seed: int, say: Say) -> Codes:
    """Train codes of handwritten digits that keep whether a digit is five or more, and audit whether it is odd."""
    x, digits = _digits()
    s, y = digits % 2, (digits >= 5).long()
    found = []
    for words, hide in (("a plain code", False), ("a code that hides a class", True)):
        say(f"training {words}")
        z = _code(x, s, y, budget.code_steps, seed, hide=hide)
        say(f"attacking {words}")
        found.append(audit(z, s[TRAINING:], y[TRAINING:], folds=3, seed=seed, names=("odd or even", "five or more")))
    return Codes(*found)


def _digits() -> tuple[Tensor, Tensor]:
    """The 32 first principal axes of scikit-learn's digits, and the digits."""
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA

    pixels, digits = load_digits(return_X_y=True)
    return torch.from_numpy(PCA(32, random_state=0).fit_transform(pixels / 16)).float(), torch.from_numpy(digits)


def _code(x: Tensor, s: Tensor, y: Tensor, steps: int, seed: int, *, hide: bool) -> Tensor:
    """The code of the rows that were not trained on."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = nn.Sequential(nn.Linear(x.shape[1], 64), nn.ReLU(), nn.Linear(64, CODE))
        head = nn.Linear(CODE, 2)
        regularizer = Regularizer(mi("knife", CODE, y_classes=2), seed=seed) if hide else None
        optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=1e-3)
        for _ in range(steps):
            rows = torch.randint(TRAINING, (256,))
            z = encoder(x[rows]) + 0.1 * torch.randn(256, CODE)
            loss = nn.functional.cross_entropy(head(z), y[rows])
            if regularizer is not None:
                regularizer.step(z, s[rows])
                loss = loss + regularizer(z, s[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            z = encoder(x[TRAINING:])
            return z + 0.1 * torch.randn(z.shape)


def learned(budget: Budget, seed: int, say: Say) -> LearnedDensity:
    """Learn the density of a picture, and evaluate it on rows that it has not seen."""
    say("learning the density of a picture")
    picture = knife()
    density = KNIFE(2, 128)
    rows = picture.sample(20 * budget.rows, seed)
    fit(density, rows, steps=budget.density_steps, batch_size=256, schedule=cosine, seed=seed)
    fresh = picture.sample(10 * budget.rows, seed + 1)
    with torch.no_grad():
        surprise = -torch.cat([density.log_prob(block) for block in fresh.split(4096)])
    return LearnedDensity(picture, density, float(surprise.mean()), float(surprise.std()) / math.sqrt(len(surprise)))
