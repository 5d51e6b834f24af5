"""What representations tell about each other: linear maps of normal latent variables, whose truth is in closed form."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infoknife import compare

RNG = np.random.default_rng(0)
LATENT, ROWS = 4, 3000


def rotated(z: Any, dim: int) -> Any:
    """The same information on other axes, among columns that say nothing new."""
    return z @ np.linalg.qr(RNG.normal(size=(dim, dim)))[0][: z.shape[1]]


def test_the_truth_of_normal_variables_whatever_the_axes() -> None:
    latent, noise = RNG.normal(size=(2, ROWS, LATENT))
    a, b = rotated(latent, 32), rotated(latent + noise, 64) * 100
    found = compare(a, b)["z1", "z2"]
    low, high = found.interval(0.999)
    truth = LATENT / 2 * math.log(2)
    assert low < truth < high
    assert found.value == pytest.approx(truth, abs=0.1)
    heavy = compare(np.sinh(2 * latent), np.sinh(2 * (latent + noise)))["z1", "z2"]  # monotone maps of the columns
    assert heavy.value > 0.6 * truth


@pytest.mark.filterwarnings("ignore:at least")
def test_copies_come_first_and_noise_last(tmp_path: Path) -> None:
    latent = RNG.normal(size=(1500, LATENT))
    label = np.where(latent[:, 0] > 0, "up", "down")
    base = np.tanh(rotated(latent, 64)) + 0.1 * RNG.normal(size=(1500, 64))
    given = {
        "noisy": base + 0.5 * RNG.normal(size=(1500, 64)),
        "random": RNG.normal(size=(1500, 96)),
        "base": base,
        "copy": base + 0.1 * RNG.normal(size=(1500, 64)),
    }
    found = compare(given)
    assert found.ranking[2:] == ("noisy", "random")
    ends = [found.about(name).interval() for name in found.ranking]
    assert ends[1][0] > ends[2][1] > ends[2][0] > ends[3][1]
    assert found["random", "base"].value == pytest.approx(0, abs=0.02)
    assert found["base", "copy"].value == found["copy", "base"].value
    assert np.array_equal(np.isnan(found.matrix), np.eye(4, dtype=bool))
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["ranking"] == list(found.ranking)
    found.plot(tmp_path / "matrix.png")
    assert (tmp_path / "matrix.png").stat().st_size > 5000
    labelled = compare(base=base, random=given["random"], label=label)
    assert labelled.ranking == ("base", "random")
    assert labelled.label["base"] > 0.2
    assert labelled.label["random"] < 0.05
    assert "random" in repr(labelled)


@pytest.mark.parametrize("seed", range(3))
def test_wide_independent_representations_tell_nothing(seed: int) -> None:
    found = compare(*np.random.default_rng(seed).normal(size=(2, 2000, 200)))["z1", "z2"]
    assert abs(found.value) < 2 * found.stderr < 0.01


def test_what_compression_loses_is_told() -> None:
    z = RNG.normal(size=(300, 40))
    kept = compare(z, z + 1, rank=10).kept
    assert 0.25 < kept["z1"] < 0.55
    assert compare(z, z + 1).kept["z1"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ((np.eye(200),), "representations has 1"),
        ((np.ones((200, 2)) * np.arange(200)[:, None], np.ones((200, 2))), "z2 is constant"),
        ((np.eye(200), np.eye(150)), "z2 has 150 rows"),
        ((np.eye(20), np.eye(20)), "z1 has 20 rows"),
    ],
)
def test_wrong_input(given: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        compare(*given)


def test_wrong_options() -> None:
    z = RNG.normal(size=(200, 2))
    for error, named, options in (
        (TypeError, "seed is 'x'", {"seed": "x"}),
        (ValueError, "seed is -1", {"seed": -1}),
        (ValueError, "label has 1 columns and 3 rows; expected one value for each of 200", {"label": [1, 2, 3]}),
        (ValueError, "label has 2 columns", {"label": z}),
    ):
        with pytest.raises(error, match=named):
            compare(z, z, **options)
    with pytest.raises(ValueError, match="level is 2"):
        compare(z, z).about("z1").interval(2)


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e200, 1e307])
def test_units_do_not_matter(scale: float) -> None:
    z, noise = RNG.normal(size=(2, 400, 3))
    assert compare(z * scale, z + noise)["z1", "z2"] == pytest.approx(compare(z, z + noise)["z1", "z2"], abs=0.02)


def test_one_outlier_does_not_blind() -> None:
    z, noise = RNG.normal(size=(2, 400, 3))
    clean, spoilt = compare(z, z + noise)["z1", "z2"], z.copy()
    spoilt[7, 0] = 1e12
    found = compare(spoilt, z + noise)["z1", "z2"]
    assert found == pytest.approx(clean, abs=0.1)
    assert found.diagnostics.messages[0].startswith("z1: 1 of its numbers lie")
