"""The forty distributions of the "Beyond Normal" benchmark as tasks (Czyz et al., NeurIPS 2023; package bmi).

Definitions and parameters are those of the benchmark's public task list; code, names and truths are our own.
The benchmark can rescale its samples, which leaves the information as it is; we do not.
"""

from functools import partial

from infoknife.tasks.base import PairTask
from infoknife.tasks.elliptical import EllipticalPair
from infoknife.tasks.pairs import AdditiveUniform, GaussianPair
from infoknife.tasks.transformed import (
    Asinh,
    MixtureQuantile,
    NormalCDF,
    Power,
    Spiral,
    SwissRoll,
    Transformed,
    Wiggly,
)

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
    """The forty tasks by name.

    Example:
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
