"""Images and labels from an NPZ file, with errors that name the file and what was expected of it."""

import io
import zlib
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, is_zipfile

import numpy as np
from numpy.typing import NDArray

from infoknife.paper.applications.optional import library

__all__ = ["Arrays", "read_arrays"]

TILE, COLUMNS = 32, 100  # pixels a side of an image on a sprite sheet, and images in a row of it

Arrays = dict[str, NDArray[Any]]


def read_arrays(path: Path) -> Arrays:
    """Read and check the images and labels of one domain.

    Args:
        path: An NPZ file with ``x_train``, ``x_test``: uint8 images, (N, H, W) or (N, H, W, 3), and ``y_train``,
            ``y_test``: whole labels (N,). Images of 32 x 32 pixels may be packed instead, as the bytes of a lossless
            WebP sprite sheet with 100 images a row, ``webp_train`` and ``webp_test``.

    Returns:
        The four arrays; labels as int64. Other arrays of the file are not read.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "dots.npz"
        >>> x, y = np.zeros((4, 8, 8), np.uint8), np.array([0, 1, 0, 1])
        >>> np.savez(path, x_train=x, y_train=y, x_test=x[:2], y_test=y[:2])
        >>> {name: array.shape for name, array in read_arrays(path).items()}
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
        found = ", ".join(file.files) or "none"
        packed = f" (or {name.replace('x_', 'webp_')})" if name.startswith("x_") else ""
        raise ValueError(f"{path}: there is no array {name}{packed}; found: {found}")
    try:
        return file[name]
    except ValueError as error:
        raise ValueError(
            f"{path}: {name} cannot be read: {error} Python objects are refused, for they can run code; "
            f"save plain numbers"
        ) from None


def _images(x: NDArray[Any], what: str) -> NDArray[Any]:
    """Check images (N, H, W) or (N, H, W, 3)."""
    if x.dtype != np.uint8:
        scaled = "(255 * x).round()" if x.dtype.kind == "f" and x.size and x.max() <= 1 else "x"
        raise ValueError(f"{what} has dtype {x.dtype}; expected uint8, 0 to 255. Save {scaled}.astype('uint8')")
    if x.ndim not in (3, 4) or x.shape[3:] not in ((), (3,)):
        raise ValueError(
            f"{what} has shape {x.shape}; expected (N, H, W) or (N, H, W, 3). Move channels to the last axis, "
            f"and drop an axis of length one"
        )
    if x.size == 0:
        raise ValueError(f"{what} is empty, shape {x.shape}; expected at least one image")
    return x


def _labels(y: NDArray[Any], what: str) -> NDArray[np.int64]:
    """Check labels (N,)."""
    if y.dtype.kind not in "iu":
        raise ValueError(f"{what} has dtype {y.dtype}; expected whole numbers, such as y.astype('int64')")
    if y.ndim != 1:
        raise ValueError(f"{what} has shape {y.shape}; expected (N,), one label an image")
    if len(y) == 0:
        raise ValueError(f"{what} is empty; expected at least one label")
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
        _check_sheet(image.size, n, what)
        sheet = np.asarray(image.convert("RGB"))
    except pillow.DecompressionBombError as error:  # WebP ends at 16,383 pixels: no right sheet is beyond the default
        raise ValueError(
            f"{what} is too large: {error} Expected a width of {COLUMNS * TILE}; if it has that, raise "
            f"PIL.Image.MAX_IMAGE_PIXELS, which was lowered"
        ) from None
    except OSError as error:
        raise ValueError(f"{what} is truncated or no WebP image ({error}); copy the file again") from None
    tiles = sheet.reshape(-1, TILE, COLUMNS, TILE, 3).swapaxes(1, 2)  # (rows, COLUMNS, TILE, TILE, 3)
    return tiles.reshape(-1, TILE, TILE, 3)[:n]


def _check_sheet(size: tuple[int, int], n: int, what: str) -> None:
    width, height = size
    if width != COLUMNS * TILE or height % TILE:
        raise ValueError(
            f"{what} has {width} x {height} pixels; expected a width of {COLUMNS * TILE}, which is {COLUMNS} images of "
            f"{TILE} pixels, and a height that is a multiple of {TILE}"
        )
    if (held := COLUMNS * (height // TILE)) < n:
        raise ValueError(f"{what} has room for {held} images; expected at least {n}, one a label")
