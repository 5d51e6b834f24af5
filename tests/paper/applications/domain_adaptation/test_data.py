from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from infoknife.paper.applications.domain_adaptation.data import Images, load_pair

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
        assert domain.train.x.shape == (45, 3, 12, 12)
        assert domain.validation.x.shape == (5, 3, 12, 12)
        assert domain.test.x.shape == (50, 3, 12, 12)
        assert domain.train.x.dtype == torch.uint8
        assert domain.train.y.dtype == torch.int64


def test_images_keep_their_labels(folder: Path) -> None:
    for domain in load_pair("mnist", "mnistm", folder=folder, size=5):
        for images in (domain.train, domain.validation, domain.test):
            assert [row % 10 for row in rows(images)] == images.y.tolist()


def test_validation_is_held_out_of_the_training_split(folder: Path) -> None:
    source, _ = load_pair("mnist", "usps", folder=folder, size=8)
    assert sorted(rows(source.train) + rows(source.validation)) == list(range(50))
    assert rows(source.test) == list(range(50))


def test_validation_rows_are_always_the_same(folder: Path) -> None:
    torch.manual_seed(3)
    state = torch.get_rng_state()
    first, again = (load_pair("mnist", "usps", folder=folder, size=size)[0] for size in (8, 4))
    assert rows(first.validation) == rows(again.validation)
    assert rows(first.train) == rows(again.train)
    assert torch.equal(torch.get_rng_state(), state)


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


def test_one_domain_is_no_pair() -> None:
    with pytest.raises(ValueError, match="source and target are both 'mnist'; expected two different domains"):
        load_pair("mnist", "mnist")


@pytest.mark.parametrize(("source", "target"), [("mnist", "cifar10"), ("stl10", "digits")])
def test_other_classes(source: str, target: str) -> None:
    with pytest.raises(ValueError, match=rf"{source} has the classes .* and {target} has .*expected the same ones"):
        load_pair(source, target)


def test_other_classes_in_own_files(folder: Path) -> None:
    save(folder, "mine", [0, 1, 2, 3])
    with pytest.raises(ValueError, match=r"mine has the classes 0, 1, 2, 3 and mnist has 0, 1, .*renumber the labels"):
        load_pair("mine", "mnist", folder=folder)


def test_an_unknown_name_without_a_folder() -> None:
    with pytest.raises(ValueError, match=r"'mine' is none of mnist, mnistm.*own mine\.npz give the folder.*--data DIR"):
        load_pair("mine", "digits")


def test_a_missing_file(folder: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"svhn: there is no svhn\.npz in .*there is mnist\.npz, mnistm\.npz"
    ) as e:
        load_pair("svhn", "mnist", folder=folder)
    assert "leave out --data" in str(e.value)
    with pytest.raises(FileNotFoundError, match=r"no stl10_32\.npz or stl10\.npz in .*no NPZ file"):
        load_pair("stl10", "cifar10", folder=folder / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"mine: there is no mine\.npz") as e:
        load_pair("mine", "mnist", folder=folder)
    assert "Hugging Face" not in str(e.value)


def test_a_label_too_large(folder: Path) -> None:
    save(folder, "svhn", np.arange(50) % 12)
    with pytest.raises(ValueError, match="svhn has the label 11; expected 0 to 10: 0, 1, 2"):
        load_pair("svhn", "mnist", folder=folder)


@pytest.mark.parametrize(("train", "test"), [([0, 6, 6, 6], [0]), ([0, 1, 2, 3], [6, 6])])
def test_too_few_rows_of_the_classes(tmp_path: Path, train: list[int], test: list[int]) -> None:
    save(tmp_path, "stl10", tens())
    save(tmp_path, "cifar10", train, test=test)
    with pytest.raises(ValueError, match=r"cifar10 has \d training and \d test images of the classes airplane"):
        load_pair("cifar10", "stl10", folder=tmp_path)


@pytest.mark.parametrize("option", ["size", "validation"])
def test_counts(option: str) -> None:
    with pytest.raises(ValueError, match=f"{option} is 0; expected at least 1"):
        load_pair("digits", "mnist5k", **{option: 0})  # type: ignore[arg-type]
