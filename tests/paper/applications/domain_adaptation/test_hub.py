import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

from infoknife.paper.applications.domain_adaptation.hub import HUB, read_hub


class Rows:
    """As much of a `datasets.Dataset` as is asked for: rows by number, columns by name."""

    def __init__(self, *columns: str, images: list[Any]) -> None:
        image, label = columns
        self.rows = [{image: Image.fromarray(x), label: i % 10} for i, x in enumerate(images)]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __getitem__(self, key: int | str) -> Any:
        return self.rows[key] if isinstance(key, int) else [row[key] for row in self.rows]


def images(n: int, *shape: int) -> list[Any]:
    return list(np.random.default_rng(n).integers(0, 256, (n, *shape), dtype=np.uint8))


def install(monkeypatch: pytest.MonkeyPatch, answer: Any) -> list[Any]:
    """Put a library `datasets` in place whose answer is fixed; what it was asked for is in the list."""
    asked: list[Any] = []

    def load_dataset(path: str, name: str | None = None) -> Any:
        asked.append((path, name))
        if isinstance(answer, Exception):
            raise answer
        return answer

    module = ModuleType("datasets")
    module.load_dataset = load_dataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", module)
    return asked


def test_grey_images(monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = images(12, 28, 28), images(3, 28, 28)
    splits = {"train": Rows("image", "label", images=train), "test": Rows("image", "label", images=test)}
    asked = install(monkeypatch, splits)
    arrays = read_hub("mnist")
    assert asked == [("ylecun/mnist", None)]
    np.testing.assert_array_equal(arrays["x_train"], train)
    np.testing.assert_array_equal(arrays["x_test"], test)
    assert arrays["y_train"].tolist() == [*range(10), 0, 1]
    assert arrays["x_train"].dtype == np.uint8
    assert arrays["y_train"].dtype == np.int64


def test_colour_images_in_a_column_of_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    train = images(4, 32, 32, 3)
    install(monkeypatch, dict.fromkeys(("train", "test"), Rows("img", "label", images=train)))
    np.testing.assert_array_equal(read_hub("cifar10")["x_train"], train)


def test_a_configuration_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = install(monkeypatch, dict.fromkeys(("train", "test"), Rows("image", "label", images=images(2, 32, 32, 3))))
    read_hub("svhn")
    assert asked == [("ufldl-stanford/svhn", "cropped_digits")]


def test_modes_are_made_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, dict.fromkeys(("train", "test"), Rows("image", "label", images=images(2, 16, 16, 3))))
    assert read_hub("usps")["x_train"].shape == (2, 16, 16)
    assert read_hub("stl10")["x_train"].shape == (2, 16, 16, 3)


def test_the_paper_s_six_are_there() -> None:
    assert set(HUB) == {"mnist", "mnistm", "usps", "svhn", "cifar10", "stl10"}


@pytest.mark.parametrize("answer", [OSError("no route"), RuntimeError("client closed"), {}], ids=["os", "other", "key"])
def test_what_cannot_be_loaded(answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, answer)
    with pytest.raises(ConnectionError, match=r"^usps cannot be loaded from .*'flwrlabs/usps'") as caught:
        read_hub("usps")
    for way in ("Check the network", "usps.npz (--data DIR)", "digits and mnist5k"):
        assert way in str(caught.value)
    assert caught.value.__cause__ is not None


def test_the_library_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ModuleNotFoundError, match=r"need datasets; .*pip install datasets$"):
        read_hub("mnist")
