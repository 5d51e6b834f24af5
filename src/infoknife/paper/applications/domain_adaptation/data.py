"""Two domains of images with the same classes: for a classifier that learns on one and works on the other."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import interpolate

from infoknife.inputs import check_count
from infoknife.paper.applications.domain_adaptation.sources import EMBEDDED, HUB, Arrays, download, read_images
from infoknife.paper.applications.optional import library
from infoknife.paper.applications.settings import digest

BLOCK = 2048  # images that are floats at once
SEED = 0  # of the rows that are held out for validation

DIGITS = tuple("0123456789")
CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
STL10 = ("airplane", "bird", "automobile", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")
UNSHARED = {"frog", "monkey"}  # each is in one of the two sets alone, and left out
NAMES = {
    **dict.fromkeys(("mnist", "mnistm", "usps"), DIGITS),
    "svhn": (*DIGITS, "0"),  # the original files call a zero 10
    **{"cifar10": CIFAR10, "stl10": STL10, "digits": DIGITS, "mnist5k": DIGITS},
}  # the class behind each label
DOMAINS = tuple(NAMES)
FILES = {"stl10": ("stl10_32.npz", "stl10.npz")}  # where it is not NAME.npz


class Images(NamedTuple):
    """Images x, uint8 (N, 3, size, size), with classes y, int64 (N,).

    The three channels of grey images are one in memory, so ``x`` is not to be written to.
    """

    x: Tensor
    y: Tensor


@dataclass(frozen=True, eq=False)
class Domain:
    """Images of one kind.

    Args:
        name: What it is called.
        train: For learning, in a random order.
        validation: Held out of the training split, in a random order.
        test: The test split, in the order of the file.
        classes: The name of class 0, 1, ...
    """

    name: str
    train: Images
    validation: Images
    test: Images
    classes: tuple[str, ...]

    @cached_property
    def digest(self) -> str:
        """What tells these images from others."""
        parts = [part for images in (self.train, self.validation, self.test) for part in (_once(images.x), images.y)]
        return digest(list(self.classes), *parts)


def load_pair(
    source: str, target: str, *, folder: Path | None = None, size: int = 32, validation: int = 1000
) -> tuple[Domain, Domain]:
    """Load two domains with common classes.

    Args:
        source: One of ``DOMAINS``, or the name of your own ``NAME.npz`` in the folder.
        target: Another one, with the same classes. CIFAR-10 and STL-10 keep the nine that both have.
        folder: Where the files are, see ``sources.read_images``. Without it images come from the Hugging Face hub;
            "digits" and "mnist5k" need neither.
        size: Images become size x size pixels.
        validation: Rows to hold out of the training split, at most a tenth of it. The same ones every time.

    Example:
        >>> source, target = load_pair("digits", "mnist5k", size=16)
        >>> source.train.x.shape, len(target.validation.y), target.classes[:3]
        (torch.Size([1294, 3, 16, 16]), 400, ('0', '1', '2'))
    """
    size, validation = check_count("size", size), check_count("validation", validation)
    check_pair(source, target, folder)
    (first, classes), (second, others) = (_named(name, _read(name, folder)) for name in (source, target))
    _check_same(source, classes, target, others)
    return _domain(source, first, classes, size, validation), _domain(target, second, classes, size, validation)


def check_pair(source: str, target: str, folder: Path | None = None) -> None:
    """Raise what ``load_pair`` would, as far as can be told before anything is read or downloaded."""
    if source == target:
        raise ValueError(f"source and target are both {source!r}; expected two different domains")
    if source in NAMES and target in NAMES:
        _check_same(source, _classes(source), target, _classes(target))
    for name in (each for each in (source, target) if each not in EMBEDDED):
        if folder is not None:
            _file(name, Path(folder))
        elif name in HUB:
            library("datasets")
        else:
            raise ValueError(
                f"{name!r} is none of {', '.join(DOMAINS)}; for your own {name}.npz give the folder that it is in "
                f"(--data DIR)"
            )


def _classes(name: str) -> tuple[str, ...]:
    return tuple(sorted(set(NAMES[name]) - UNSHARED))


def _check_same(source: str, classes: tuple[str, ...], target: str, others: tuple[str, ...]) -> None:
    if classes != others:
        raise ValueError(
            f"{source} has the classes {', '.join(classes)} and {target} has {', '.join(others)}; expected the same "
            f"ones in both. Choose another pair, or renumber the labels in your own files"
        )


def _read(name: str, folder: Path | None) -> Arrays:
    if name in EMBEDDED:
        return EMBEDDED[name]()
    return download(name) if folder is None else read_images(_file(name, Path(folder)))


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


def _named(name: str, arrays: Arrays) -> tuple[Arrays, tuple[str, ...]]:
    """Return labels as codes of the classes, without the rows of classes that are left out, and the classes."""
    labels = np.concatenate([arrays["y_train"], arrays["y_test"]])
    if name in NAMES:
        names, classes = dict(enumerate(NAMES[name])), _classes(name)
    else:
        names = {label: str(label) for label in np.unique(labels).tolist()}
        classes = tuple(names.values())
    if labels.max() not in names:
        raise ValueError(
            f"{name} has the label {labels.max()}; expected 0 to {max(names)}: {', '.join(names.values())}"
        )
    code = {label: classes.index(known) for label, known in names.items() if known in classes}
    found: Arrays = {}
    for split in ("train", "test"):
        labels, places = np.unique(arrays[f"y_{split}"], return_inverse=True)
        y = np.array([code.get(label, -1) for label in labels.tolist()])[places]
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
    train, held_out = (_images(arrays, "train", part, size) for part in (order[held:], order[:held]))
    return Domain(name, train, held_out, _images(arrays, "test", slice(None), size), classes)


def _images(arrays: Arrays, split: str, rows: NDArray[np.int64] | slice, size: int) -> Images:
    x, y = arrays[f"x_{split}"][rows], arrays[f"y_{split}"][rows]
    return Images(_resized(x, size), torch.from_numpy(y.copy()))


def _resized(images: NDArray[np.uint8], size: int) -> Tensor:
    """Scale images (N, H, W) or (N, H, W, 3) to uint8 (N, 3, size, size), grey ones without a copy a channel."""
    channels = 1 if images.ndim == 3 else 3
    x = torch.empty(len(images), channels, size, size, dtype=torch.uint8)
    for start in range(0, len(images), BLOCK):
        block = torch.tensor(images[start : start + BLOCK])
        block = block.unsqueeze(1) if channels == 1 else block.permute(0, 3, 1, 2)  # (n, channels, H, W)
        if block.shape[2:] != (size, size):
            block = interpolate(block.float(), size=(size, size), mode="bilinear", antialias=True).round_()
        x[start : start + BLOCK] = block
    return x.expand(-1, 3, -1, -1)


def _once(x: Tensor) -> Tensor:
    """Return images (N, 3, H, W) without channels that are one in memory."""
    return x[:, :1] if x.stride(1) == 0 else x
