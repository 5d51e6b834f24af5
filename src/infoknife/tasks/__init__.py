"""Distributions that know their truth: entropies and mutual informations to judge estimators by, in nats.

Examples:
    >>> from infoknife import tasks
    >>> task = tasks.get("gaussian-20x20-4nats")
    >>> round(task.mutual_information(), 6)
    4.0
    >>> x, y = task.sample(1000, seed=0)

``infoknife.tasks.judging.cases()`` has relations that nothing was tuned for, to judge measurements by.
"""

from infoknife.tasks.base import EntropyTask, PairTask, Task
from infoknife.tasks.catalogue import beyond_normal, get, names
from infoknife.tasks.elliptical import EllipticalPair, Gaussian, Student
from infoknife.tasks.independent import Independent, TriangleMixture
from infoknife.tasks.mixtures import Components, GaussianClasses, GaussianMixture, MixturePair
from infoknife.tasks.pairs import AdditiveUniform, GaussianPair, UniformPair
from infoknife.tasks.shapes import Rings, TwoMoons, UniformBall
from infoknife.tasks.staircase import Staircase
from infoknife.tasks.transformed import (
    Asinh,
    Map,
    MixtureQuantile,
    NormalCDF,
    Power,
    Spiral,
    SwissRoll,
    Transformed,
    Unbent,
    Wiggly,
)

__all__ = [
    "AdditiveUniform",
    "Asinh",
    "Components",
    "EllipticalPair",
    "EntropyTask",
    "Gaussian",
    "GaussianClasses",
    "GaussianMixture",
    "GaussianPair",
    "Independent",
    "Map",
    "MixturePair",
    "MixtureQuantile",
    "NormalCDF",
    "PairTask",
    "Power",
    "Rings",
    "Spiral",
    "Staircase",
    "Student",
    "SwissRoll",
    "Task",
    "Transformed",
    "TriangleMixture",
    "TwoMoons",
    "Unbent",
    "UniformBall",
    "UniformPair",
    "Wiggly",
    "beyond_normal",
    "get",
    "names",
]
