"""What the tests of the audit share: one audit of features that leak."""

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from infoknife.leakage import Audit, audit


class Leaky(NamedTuple):
    """Features of three classes that are shifted along the first column, a label along the second, and their audit."""

    z: NDArray[np.float64]
    s: NDArray[np.str_]
    y: NDArray[np.bool_]
    found: Audit


PRIOR, SHIFT = np.array([0.2, 0.3, 0.5]), 2.0


@pytest.fixture(scope="session")
def leaky() -> Leaky:
    generator = np.random.default_rng(0)
    s = generator.choice(3, size=600, p=PRIOR)
    y = generator.random(600) < 0.5
    z = generator.normal(size=(600, 3))
    z[:, 0] += SHIFT * s
    z[:, 1] += 3 * y
    z = np.concatenate([z, np.full((600, 1), 7.0), z[:, :1] - z[:, 2:]], 1)
    names = np.array(["north", "south", "west"])[s]
    return Leaky(z, names, y, audit(z, names, y, folds=3, names=("region", "sick")))
