"""Distributions that know their truth: entropies and mutual informations to judge estimators by, in nats.

Example:
    >>> from infoknife import tasks
    >>> task = tasks.get("gaussian-20x20-4nats")
    >>> round(task.mutual_information(), 6)
    4.0
    >>> x, y = task.sample(1000, seed=0)
"""

from infoknife.tasks.base import Task
from infoknife.tasks.bends import MixtureQuantile, Spiral, SwissRoll, Wiggly
from infoknife.tasks.beyond_normal import beyond_normal
from infoknife.tasks.catalogue import get, names
from infoknife.tasks.classes import GaussianClasses
from infoknife.tasks.components import Components
from infoknife.tasks.cubic_pair import CubicPair
from infoknife.tasks.entropy_task import EntropyTask
from infoknife.tasks.gaussian import Gaussian
from infoknife.tasks.gaussian_pair import GaussianPair
from infoknife.tasks.heavy_tails import Laplace, LogNormal
from infoknife.tasks.maps import Asinh, Cube, HalfCube, Identity, Map, NormalCDF
from infoknife.tasks.mixtures import GaussianMixture, MixturePair
from infoknife.tasks.moons import TwoMoons
from infoknife.tasks.multinormal import Multinormal, dense_correlation, sparse_correlation
from infoknife.tasks.pair_task import PairTask
from infoknife.tasks.rings import Rings
from infoknife.tasks.staircase import Staircase
from infoknife.tasks.student import Student
from infoknife.tasks.student_pair import StudentPair
from infoknife.tasks.transformed import Transformed
from infoknife.tasks.triangle import TriangleMixture
from infoknife.tasks.uniform import UniformBall, UniformCube
from infoknife.tasks.uniform_pairs import AdditiveUniform, UniformPair

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
