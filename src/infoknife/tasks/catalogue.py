"""The catalogue: every task that has a name, and how to find it.

Forty of them are the "Beyond Normal" benchmark's (Czyz et al., NeurIPS 2023; package bmi): definitions and parameters
are those of its public task list; code, names and truths are our own. It can rescale its samples, which leaves the
information as it is; we do not.
"""

import dataclasses
import difflib
from functools import cache, partial

from scipy import stats

from infoknife.tasks.base import EntropyTask, PairTask, Task
from infoknife.tasks.elliptical import EllipticalPair, Gaussian, Student
from infoknife.tasks.independent import Independent, TriangleMixture
from infoknife.tasks.mixtures import GaussianClasses, GaussianMixture, MixturePair
from infoknife.tasks.pairs import AdditiveUniform, GaussianPair, UniformPair
from infoknife.tasks.relations import Relation
from infoknife.tasks.shapes import Rings, TwoMoons, UniformBall
from infoknife.tasks.staircase import NATS
from infoknife.tasks.transformed import (
    Asinh,
    MixtureQuantile,
    NormalCDF,
    Power,
    Spiral,
    SwissRoll,
    Transformed,
    Wiggly,
    cubed,
)


def names() -> list[str]:
    """Names of all tasks, entropies first.

    Examples:
        >>> "gaussian-20x20-10nats" in names()
        True
    """
    return list(_catalogue())


def get(name: str) -> Task:
    """The task of a name; the same object every time, so that its truth is worked out once.

    Examples:
        >>> get("moons").entropy() < get("rings").entropy()
        True
    """
    tasks = _catalogue()
    if not isinstance(name, str):
        raise TypeError(f"name is {name!r}; expected the name of a task, such as 'moons'")
    if name not in tasks:
        close = difflib.get_close_matches(name, tasks, n=1, cutoff=0)
        raise ValueError(f"there is no task {name!r}; did you mean {close[0]!r}? There are: {', '.join(tasks)}")
    return tasks[name]


@cache
def _catalogue() -> dict[str, Task]:
    families = (_smooth, _edged, _dependent, _mixed, _bent, _related, beyond_normal)
    return {name: dataclasses.replace(task, name=name) for family in families for name, task in family().items()}


def _smooth() -> dict[str, EntropyTask]:
    return {
        "gaussian-1d": Gaussian.standard(1),
        "gaussian-10d": Gaussian.standard(10),
        "gaussian-64d": Gaussian.standard(64),
        "gaussian-8d-condition-100": Gaussian.of_condition(8, 100, seed=0),
        "gaussian-64d-condition-10000": Gaussian.of_condition(64, 10_000, seed=0),
        "student-1d-df1": Student(1, df=1),
        "student-3d-df3": Student(3, df=3),
        "student-8d-df2": Student(8, df=2),
        "lognormal-1d": Independent(stats.lognorm(1)),
        "lognormal-4d": Independent(stats.lognorm(0.5), 4),
        "laplace-1d": Independent(stats.laplace()),
        "laplace-8d": Independent(stats.laplace(), 8),
        "mixture-1d": GaussianMixture.draw(3, 1, seed=0),
        "mixture-2d": GaussianMixture.draw(5, 2, seed=0),
        "mixture-8d": GaussianMixture.draw(4, 8, seed=0),
        "moons": TwoMoons(noise=0.1),
        "rings": Rings(radii=(1.0, 2.0, 3.0), noise=0.1),
    }


def _edged() -> dict[str, EntropyTask]:
    balls = {f"ball-{d}d": UniformBall(d) for d in (2, 8, 20)}
    cubes = {f"cube-{d}d": Independent(stats.uniform(-0.5, 1), d) for d in (2, 8, 20)}
    triangles = {
        "triangles-1d": TriangleMixture.draw(10, 1, seed=0),
        "triangles-8d": TriangleMixture.draw(2, 8, seed=0),
        "triangles-20d": TriangleMixture.draw(2, 20, seed=0),
    }
    return {**balls, **cubes, **triangles}


def _dependent() -> dict[str, PairTask]:
    tasks: dict[str, PairTask] = {
        "independent-5x5": GaussianPair(5, 0.0),
        "gaussian-1x1": GaussianPair(1, 0.6),
    }
    for nats in NATS:
        tasks[f"gaussian-20x20-{nats:g}nats"] = GaussianPair.of_information(20, nats)
        tasks[f"cubic-20x20-{nats:g}nats"] = cubed(GaussianPair.of_information(20, nats))
        tasks[f"uniform-20x20-{nats:g}nats"] = UniformPair.of_information(20, nats)
    return tasks | {
        "uniform-1x1": UniformPair(1, 0.8),
        "additive-uniform-0.25": AdditiveUniform(0.25),
        "additive-uniform-1": AdditiveUniform(1.0),
        "dense-3x5": EllipticalPair.dense(3, 5, correlation=0.4),
        "dense-10x10": EllipticalPair.dense(10, 10, correlation=0.3),
        "sparse-3x5": EllipticalPair.sparse(3, 5, pairs=2, correlation=0.7),
        "sparse-15x15": EllipticalPair.sparse(15, 15, pairs=5, correlation=0.6),
        "student-1x1-df2": EllipticalPair.dense(1, 1, correlation=0.6, df=2),
        "student-3x5-df4": EllipticalPair.dense(3, 5, correlation=0.3, df=4),
    }


def _mixed() -> dict[str, PairTask]:
    return {
        "cross-1x1": MixturePair.cross(rho=0.9),
        "mixture-1x1": MixturePair.draw(4, 1, 1, seed=7),
        "mixture-3x2": MixturePair.draw(3, 3, 2, seed=0),
        "classes-2-1d": GaussianClasses.draw(2, 1, seed=0),
        "classes-10-1d": GaussianClasses.draw(10, 1, seed=0, spread=3.0),
        "classes-2-8d": GaussianClasses.draw(2, 8, seed=0, spread=0.5),
        "classes-10-8d": GaussianClasses.draw(10, 8, seed=0),
        "classes-2-32d": GaussianClasses.draw(2, 32, seed=0, spread=0.3, common=True),
        "classes-10-32d": GaussianClasses.draw(10, 32, seed=0, spread=0.3, common=True),
    }


def _related() -> dict[str, PairTask]:
    """Three rotated copies of pairs whose relation is no line, and but for the last not monotone."""
    kinds = (
        *("sine", "parabola", "cross", "steps", "checkerboard", "bands", "hills", "wobble", "switch", "branches"),
        *("chirp", "fork", "window", "radius", "xor", "columns", "cauchy", "warped"),
    )
    tasks = {kind: Relation(kind, copies=3) for kind in kinds}
    return {f"relation-{kind}-{task.x_dim}x{task.y_dim}": task for kind, task in tasks.items()}


def _bent() -> dict[str, PairTask]:
    normal, pairs, planes = GaussianPair(1, 0.8), GaussianPair(2, 0.7), GaussianPair(3, 0.7)
    uniform = Transformed(normal, NormalCDF(), NormalCDF())
    two, three = MixtureQuantile((0.5, 0.5), (-2.0, 2.0)), MixtureQuantile((0.2, 0.5, 0.3), (-4.0, 0.0, 4.0))
    waves_x = Wiggly(((0.3, 2.0, 0.5), (0.1, 3.0, 0.0)))
    waves_y = Wiggly(((-0.5, 1.2, 0.0), (0.05, 5.0, 1.0)))
    return {
        "halfcube-2x2": Transformed(pairs, Power(1.5), Power(1.5)),
        "asinh-student-2x2-df2": Transformed(EllipticalPair.dense(2, 2, df=2), Asinh(), Asinh()),
        "wiggly-2x2": Transformed(pairs, waves_x, waves_y),
        "normalcdf-2x2": Transformed(pairs, NormalCDF(), NormalCDF()),
        "bimodal-1x1": Transformed(uniform, two, three),
        "swissroll-2x1": Transformed(uniform, SwissRoll()),
        "spiral-3x3": Transformed(planes, Spiral((0, 1), speed=0.5), Spiral((1, 2), speed=0.5)),
        "halfcube-classes-3-4d": Transformed(GaussianClasses.draw(3, 4, seed=1), Power(1.5)),
    }


RHO = 0.75  # correlation behind the one-dimensional tasks

WIGGLY_X = Wiggly(((0.4, 1.0, 0.0), (0.2, 1.7, 1.0), (0.03, 3.3, -2.5)))
WIGGLY_Y = Wiggly(((-0.4, 0.4, 0.0), (0.17, 1.3, 3.5), (0.02, 4.3, -2.5)))
BIMODAL_X = MixtureQuantile(weights=(0.3, 0.7), means=(0.0, 5.0))
BIMODAL_Y = MixtureQuantile(weights=(0.5, 0.5), means=(-1.0, 3.0))

_uniform = partial(Transformed, x_map=NormalCDF(), y_map=NormalCDF())
_half_cube = partial(Transformed, x_map=Power(1.5), y_map=Power(1.5))
_asinh = partial(Transformed, x_map=Asinh(), y_map=Asinh())
_spiral = partial(Transformed, x_map=Spiral((0, 1), speed=1 / 3), y_map=Spiral((1, 2), speed=1 / 3))


def _sparse(dim: int) -> PairTask:
    return EllipticalPair.sparse(dim, dim, pairs=2, correlation=0.8)


def _student(dim: int, df: int) -> PairTask:
    return EllipticalPair.dense(dim, dim, correlation=0.0, df=df)


def beyond_normal() -> dict[str, PairTask]:
    """The forty tasks of the "Beyond Normal" benchmark by name.

    Examples:
        >>> forty = beyond_normal()
        >>> len(forty), round(forty["bmi-dense-50x50"].mutual_information(), 3)
        (40, 1.624)
    """
    normal, student = GaussianPair(1, RHO), _student(1, 1)
    uniform = _uniform(normal)
    tasks: dict[str, PairTask] = {
        "bmi-normal-1x1": normal,
        "bmi-uniform-1x1": uniform,
        "bmi-additive-0.1": AdditiveUniform(0.1),
        "bmi-additive-0.75": AdditiveUniform(0.75),
        "bmi-bimodal-1x1": Transformed(uniform, BIMODAL_X, BIMODAL_Y),
        "bmi-wiggly-1x1": Transformed(normal, WIGGLY_X, WIGGLY_Y),
        "bmi-halfcube-1x1": _half_cube(normal),
        "bmi-student-1x1-df1": student,
        "bmi-asinh-student-1x1-df1": _asinh(student),
        "bmi-swissroll-2x1": Transformed(uniform, SwissRoll()),
    }
    for d in (2, 3, 5, 25, 50):
        tasks[f"bmi-dense-{d}x{d}"] = EllipticalPair.dense(d, d, correlation=0.5)
    for d in (2, 3, 5, 25):
        tasks[f"bmi-sparse-{d}x{d}"] = _sparse(d)
    for d, df in ((2, 1), (2, 2), (3, 2), (3, 3), (5, 2), (5, 3)):
        tasks[f"bmi-student-{d}x{d}-df{df}"] = _student(d, df)
    for d, df in ((2, 1), (3, 2), (5, 2)):
        tasks[f"bmi-asinh-student-{d}x{d}-df{df}"] = _asinh(_student(d, df))
    for d in (3, 5, 25):
        tasks[f"bmi-uniform-{d}x{d}"] = _uniform(_sparse(d))
        tasks[f"bmi-halfcube-{d}x{d}"] = _half_cube(_sparse(d))
        tasks[f"bmi-spiral-{d}x{d}"] = _spiral(_sparse(d))
        tasks[f"bmi-spiral-uniform-{d}x{d}"] = _spiral(_uniform(_sparse(d)))
    return tasks
