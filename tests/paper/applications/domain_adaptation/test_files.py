import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from infoknife.paper.applications.domain_adaptation.files import read_arrays

X = np.arange(4 * 6 * 5, dtype=np.uint8).reshape(4, 6, 5)
Y = np.array([0, 1, 2, 1], np.uint8)
GOOD = {"x_train": X, "y_train": Y, "x_test": X[:2], "y_test": Y[:2]}


def saved(folder: Path, without: str = "", **arrays: Any) -> Path:
    np.savez(folder / "set.npz", **{name: array for name, array in (GOOD | arrays).items() if name != without})
    return folder / "set.npz"


def sheet(width: int = 3200, height: int = 64, seed: int = 0) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def webp(pixels: np.ndarray[Any, np.dtype[np.uint8]]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "WEBP", lossless=True, quality=0, method=0)
    return np.frombuffer(file.getvalue(), np.uint8)


def packed(folder: Path, blob: Any, rows: int = 130) -> Path:
    return saved(folder, "x_train", webp_train=blob, y_train=np.zeros(rows, int))


def test_arrays_come_back(tmp_path: Path) -> None:
    arrays = read_arrays(saved(tmp_path, index=np.arange(3)))
    assert list(arrays) == ["x_train", "y_train", "x_test", "y_test"]
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, GOOD[name])
    assert arrays["x_train"].dtype == np.uint8
    assert arrays["y_train"].dtype == np.int64


def test_colour(tmp_path: Path) -> None:
    x = np.stack([X, X, X], -1)
    assert read_arrays(saved(tmp_path, x_train=x))["x_train"].shape == (4, 6, 5, 3)


def test_compressed(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "set.npz", allow_pickle=False, **GOOD)
    np.testing.assert_array_equal(read_arrays(tmp_path / "set.npz")["x_train"], X)


# sprite sheets


def test_a_sprite_sheet_is_cut_row_by_row(tmp_path: Path) -> None:
    pixels = sheet()
    x = read_arrays(packed(tmp_path, webp(pixels)))["x_train"]
    assert x.shape == (130, 32, 32, 3)
    for image in (0, 1, 99, 100, 129):
        top, left = 32 * (image // 100), 32 * (image % 100)
        np.testing.assert_array_equal(x[image], pixels[top : top + 32, left : left + 32])


def test_plain_images_go_before_packed_ones(tmp_path: Path) -> None:
    np.testing.assert_array_equal(read_arrays(saved(tmp_path, webp_train=np.zeros(3, np.uint8)))["x_train"], X)


def test_no_sheet_is_beyond_the_limit_of_pixels(tmp_path: Path) -> None:
    limit = Image.MAX_IMAGE_PIXELS
    assert limit is not None
    assert limit > 3200 * 16383  # WebP has no longer sides
    read_arrays(packed(tmp_path, webp(sheet())))
    assert limit == Image.MAX_IMAGE_PIXELS


def test_a_lowered_limit_of_pixels_is_obeyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(ValueError, match=r"webp_train is too large: .* Expected a width of 3200; .*MAX_IMAGE_PIXELS"):
        read_arrays(packed(tmp_path, webp(sheet())))
    assert Image.MAX_IMAGE_PIXELS == 100


@pytest.mark.parametrize(
    ("blob", "message"),
    [
        (webp(sheet())[:5000], "is truncated or no WebP image"),
        (webp(sheet())[:20], "is truncated or no WebP image"),
        (np.zeros(100, np.uint8), "is truncated or no WebP image"),
        (np.zeros(0, np.uint8), "is truncated or no WebP image"),
        (np.concatenate([webp(sheet())[:4000], np.zeros(300000, np.uint8)]), "is truncated or no WebP image"),
        (webp(sheet(height=32)), "has room for 100 images; expected at least 130, one a label"),
        (webp(sheet(width=3168)), "has 3168 x 64 pixels; expected a width of 3200"),
        (webp(sheet(height=70)), r"has 3200 x 70 pixels; expected .*a multiple of 32"),
        (np.zeros(100), r"has dtype float64 and shape \(100,\); expected the bytes of a WebP file as uint8"),
        (np.zeros((10, 10), np.uint8), r"has dtype uint8 and shape \(10, 10\); expected the bytes of a WebP file"),
    ],
    ids=["half", "head", "zeros", "nothing", "spoilt", "few", "narrow", "uneven", "float", "matrix"],
)
def test_sprite_sheets_that_are_none(tmp_path: Path, blob: Any, message: str) -> None:
    with pytest.raises(ValueError, match=rf"set\.npz: webp_train {message}"):
        read_arrays(packed(tmp_path, blob))


def test_pillow_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed(tmp_path, webp(sheet()))
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(ModuleNotFoundError, match=r"need PIL; .*pip install 'infoknife\[domain-adaptation\]'"):
        read_arrays(path)


# files that are none


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.npz: there is no such file; expected an NPZ file"):
        read_arrays(tmp_path / "none.npz")
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        read_arrays(tmp_path)


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.9])
def test_truncated(tmp_path: Path, kept: float) -> None:
    path = saved(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole))])
    with pytest.raises(ValueError, match=r"set\.npz: is truncated or no NPZ file; .*save it again"):
        read_arrays(path)


@pytest.mark.parametrize("compressed", [False, True])
def test_spoilt_bytes(tmp_path: Path, compressed: bool) -> None:
    path = tmp_path / "set.npz"
    x = np.random.default_rng(0).integers(0, 256, (4, 40, 40), dtype=np.uint8)
    save = np.savez_compressed if compressed else np.savez
    save(path, allow_pickle=False, **GOOD | {"x_train": x})
    whole = bytearray(path.read_bytes())
    whole[2000:2100] = bytes(100)
    path.write_bytes(whole)
    with pytest.raises(ValueError, match=r"set\.npz: is truncated or no NPZ file"):
        read_arrays(path)


@pytest.mark.parametrize("content", [b"x,y\n1,2\n", b"\x80\x04N."], ids=["text", "pickle"])
def test_other_formats(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "set.npz").write_bytes(content)
    with pytest.raises(ValueError, match="is truncated or no NPZ file"):
        read_arrays(tmp_path / "set.npz")


def test_a_single_array(tmp_path: Path) -> None:
    with (tmp_path / "set.npz").open("wb") as file:
        np.save(file, X)
    with pytest.raises(ValueError, match="is truncated or no NPZ file"):
        read_arrays(tmp_path / "set.npz")


# arrays that do not fit


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x_train", r"no array x_train \(or webp_train\); found: y_train, x_test, y_test"),
        ("y_train", "no array y_train; found: x_train, x_test, y_test"),
        ("x_test", r"no array x_test \(or webp_test\); found: x_train, y_train, y_test"),
        ("y_test", "no array y_test; found: x_train, y_train, x_test"),
    ],
)
def test_a_missing_array(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(ValueError, match=rf"set\.npz: there is {message}$"):
        read_arrays(saved(tmp_path, without=name))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (X / 255, r"has dtype float64; expected uint8, 0 to 255. Save \(255 \* x\)\.round\(\)\.astype\('uint8'\)"),
        (X.astype(np.float32), r"has dtype float32; expected uint8, 0 to 255. Save x\.astype\('uint8'\)"),
        (X.astype(np.int64), r"has dtype int64; expected uint8, 0 to 255. Save x\.astype"),
        (X.reshape(4, 30), r"has shape \(4, 30\); expected \(N, H, W\) or \(N, H, W, 3\)"),
        (X[:, None], r"has shape \(4, 1, 6, 5\); expected .* Move channels to the last axis, and drop an axis"),
        (X[..., None], r"has shape \(4, 6, 5, 1\); expected"),
        (X[:, None, ..., None], r"has shape \(4, 1, 6, 5, 1\); expected"),
        (X[:0], r"is empty, shape \(0, 6, 5\); expected at least one image"),
        (X[:, :0], r"is empty, shape \(4, 0, 5\)"),
    ],
)
def test_images_that_do_not_fit(tmp_path: Path, x: Any, message: str) -> None:
    with pytest.raises(ValueError, match=rf"set\.npz: x_train {message}"):
        read_arrays(saved(tmp_path, x_train=x))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (Y - 1.5, "has dtype float64; expected whole numbers"),
        (np.array(["a", "b", "a", "b"]), "has dtype <U1; expected whole numbers"),
        (Y[:, None], r"has shape \(4, 1\); expected \(N,\), one label an image"),
        (Y[:0], "is empty; expected at least one label"),
        (Y.astype(int) - 2, "has the label -2; expected none below 0"),
    ],
)
def test_labels_that_do_not_fit(tmp_path: Path, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=rf"set\.npz: y_train {message}"):
        read_arrays(saved(tmp_path, y_train=y))


def test_lengths_that_differ(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"set\.npz: x_test has 3 images and y_test 2 labels; expected one an image"):
        read_arrays(saved(tmp_path, x_test=X[:3]))


def test_objects_are_refused(tmp_path: Path) -> None:
    objects = np.array([{}, None, 1, 2], dtype=object)
    with pytest.raises(ValueError, match=r"set\.npz: x_train cannot be read: .*objects are refused.*run code"):
        read_arrays(saved(tmp_path, x_train=objects))
