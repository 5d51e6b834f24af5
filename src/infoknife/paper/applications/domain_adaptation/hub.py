"""The six image sets of the paper from the Hugging Face hub, through its library ``datasets``."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from infoknife.paper.applications.domain_adaptation.files import Arrays
from infoknife.paper.applications.optional import library

__all__ = ["HUB", "Repository", "read_hub"]


class Repository(NamedTuple):
    """Where a domain is on the hub.

    Args:
        path: The repository.
        name: Its configuration, if it has several.
        image: The column of images.
        label: The column of labels.
        mode: What Pillow calls the images: "L" for grey ones.
    """

    path: str
    name: str | None = None
    image: str = "image"
    label: str = "label"
    mode: str = "RGB"


HUB = {
    "mnist": Repository("ylecun/mnist", mode="L"),
    "mnistm": Repository("Mike0307/MNIST-M"),
    "usps": Repository("flwrlabs/usps", mode="L"),
    "svhn": Repository("ufldl-stanford/svhn", "cropped_digits"),
    "cifar10": Repository("uoft-cs/cifar10", image="img"),
    "stl10": Repository("tanganke/stl10"),
}


def read_hub(domain: str) -> Arrays:
    """Load a domain of the table by its name: downloaded once, then from the library's own cache.

    Returns:
        ``x_train``, ``x_test``: uint8, (N, H, W) or (N, H, W, 3); ``y_train``, ``y_test``: int64 (N,).
    """
    datasets, where = library("datasets"), HUB[domain]
    try:
        found = datasets.load_dataset(where.path, where.name)
        return _split(found["train"], where, "train") | _split(found["test"], where, "test")
    except Exception as error:  # the library lets through whatever its network layers raise
        raise ConnectionError(
            f"{domain} cannot be loaded from the Hugging Face repository {where.path!r} ({type(error).__name__}: "
            f"{error}). Check the network, give a folder with {domain}.npz (--data DIR), or take the domains digits "
            f"and mnist5k, which need neither"
        ) from error


def _split(rows: Any, where: Repository, split: str) -> Arrays:
    def pixels(row: Any) -> NDArray[np.uint8]:
        return np.asarray(row[where.image].convert(where.mode))

    dtype = np.dtype((np.uint8, pixels(rows[0]).shape))  # one array from the start: no list of 73,257 images beside it
    x = np.fromiter(map(pixels, rows), dtype, len(rows))
    return {f"x_{split}": x, f"y_{split}": np.fromiter(rows[where.label], np.int64, len(rows))}
