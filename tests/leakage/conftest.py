"""What the tests of the audit share: one audit of features that leak, and audits made of numbers."""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from infoknife.leakage import Audit, ClassLeak, Probe, audit
from infoknife.measure import Diagnostics, Estimate, quantities


class Leaky(NamedTuple):
    """Features of three classes that are shifted along the first column, a label along the second, and their audit."""

    z: NDArray[np.float64]
    s: NDArray[np.str_]
    y: NDArray[np.bool_]
    found: Audit


PRIOR, SHIFT = np.array([0.2, 0.3, 0.5]), 2.0


@pytest.fixture(autouse=True)
def measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are measured once instead of three times: that is of ``measure``, and tested there."""
    monkeypatch.setattr(quantities, "REPEATS", 1)


@pytest.fixture(scope="package")
def leaky() -> Leaky:
    generator = np.random.default_rng(0)
    s = generator.choice(3, size=600, p=PRIOR)
    y = generator.random(600) < 0.5
    z = generator.normal(size=(600, 3))
    z[:, 0] += SHIFT * s
    z[:, 1] += 3 * y
    z = np.concatenate([z, np.full((600, 1), 7.0), z[:, :1] - z[:, 2:]], 1)
    names = np.array(["north", "south", "west"])[s]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantities, "REPEATS", 1)
        return Leaky(z, names, y, audit(z, names, y, folds=3, names=("region", "sick")))


def estimate(value: float, stderr: float, pointwise: Any = None) -> Estimate:
    told = Diagnostics("densities", rows=40)
    values = np.full(40, value) if pointwise is None else pointwise
    return Estimate(value, stderr, "nats", "mutual information", values, told)


def made(score: float, information: float, stderr: float, **options: Any) -> Audit:
    """An audit of two classes whose four probes reach a balanced accuracy."""
    probe = Probe("linear", score, score, 0.01, information, (score, score), ())
    classes = tuple(ClassLeak(name, 20, information, score) for name in "ab")
    numbers: dict[str, Any] = {"name": "sex", "entropy": math.log(2), "majority": 0.5, "chance": 0.5}
    numbers |= {"probes": (probe,) * 4, "classes": classes, "rows": 40, "features": ("z",)}
    return Audit(**(numbers | {"information": estimate(information, stderr)} | options))


def made_quantity(r2: float, information: float, stderr: float) -> Audit:
    """An audit of a quantity of which four probes explain a part."""
    nan = math.nan
    probe = Probe("linear", nan, nan, 0.01, nan, (), (), r2, 1.0)
    numbers = {"name": "age", "entropy": nan, "majority": nan, "chance": 0.0}
    return made(0.5, information, stderr, probes=(probe,) * 4, classes=(), **numbers)
