"""Distributions that know their truth: entropies and mutual informations to judge estimators by, in nats.

Example:
    >>> from infoknife import tasks
    >>> task = tasks.get("gaussian-20x20-4nats")
    >>> round(task.mutual_information(), 6)
    4.0
    >>> x, y = task.sample(1000, seed=0)
"""

from infoknife.tasks.base import EntropyTask, PairTask, Task
from infoknife.tasks.beyond_normal import beyond_normal
from infoknife.tasks.catalogue import get, names
from infoknife.tasks.components import Components
from infoknife.tasks.elliptical import Multinormal, StudentPair, dense_correlation, sparse_correlation
from infoknife.tasks.gaussian import Gaussian
from infoknife.tasks.heavy_tails import Laplace, LogNormal, Student
from infoknife.tasks.maps import (
    Asinh,
    Cube,
    HalfCube,
    Identity,
    Map,
    MixtureQuantile,
    NormalCDF,
    Spiral,
    SwissRoll,
    Wiggly,
)
from infoknife.tasks.mixtures import GaussianClasses, GaussianMixture, MixturePair
from infoknife.tasks.pairs import AdditiveUniform, GaussianPair, UniformPair
from infoknife.tasks.pictures import Rings, TwoMoons
from infoknife.tasks.staircase import Staircase
from infoknife.tasks.transformed import CubicPair, Transformed
from infoknife.tasks.triangle import TriangleMixture
from infoknife.tasks.uniform import UniformBall, UniformCube

__all__ = [
    "AdditiveUniform",
    "Asinh",
    "Components",
    "Cube",
    "CubicPair",
    "EntropyTask",
    "Gaussian",
    "GaussianClasses",
    "GaussianMixture",
    "GaussianPair",
    "HalfCube",
    "Identity",
    "Laplace",
    "LogNormal",
    "Map",
    "MixturePair",
    "MixtureQuantile",
    "Multinormal",
    "NormalCDF",
    "PairTask",
    "Rings",
    "Spiral",
    "Staircase",
    "Student",
    "StudentPair",
    "SwissRoll",
    "Task",
    "Transformed",
    "TriangleMixture",
    "TwoMoons",
    "UniformBall",
    "UniformCube",
    "UniformPair",
    "Wiggly",
    "beyond_normal",
    "dense_correlation",
    "get",
    "names",
    "sparse_correlation",
]
