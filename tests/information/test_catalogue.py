"""Estimators by name, the table of the documentation, and bounds that keep their side."""

import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from infoknife import fit, mi
from infoknife.information import catalogue, names
from infoknife.tasks import GaussianClasses, GaussianPair

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "estimators.md"
PAIR, CLASSES = GaussianPair.of_information(3, 1), GaussianClasses.draw(classes=4, dim=2, seed=0, spread=2.0)

CRITICS = ("mine", "nwj", "tuba", "infonce", "adv")


def test_names_are_those_of_the_contract() -> None:
    promised = (
        "knife knife-joint doe doe-logistic schraudolph mine nwj tuba infonce smile club club-sample l1out vub adv"
    )
    assert names() == promised.split()


def test_the_page_holds_the_table() -> None:
    assert catalogue.table() in PAGE.read_text(encoding="utf-8")


def test_the_table_has_a_line_for_each_estimator() -> None:
    head, rule, *lines = catalogue.table().splitlines()
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in (head, rule, *lines)]
    assert {len(row) for row in cells} == {7}
    assert all(cell for row in cells for cell in row)
    assert {(row[0].strip("`"), row[1]) for row in cells[2:]} == {
        *((name, "continuous") for name in catalogue.CONTINUOUS),
        *((name, "classes") for name in catalogue.CLASSES),
    }
    assert {row[2] for row in cells[2:]} <= {"lower", "upper", "none"}


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("knive", {"y_dim": 2}, r"name is 'knive'; expected one of 'knife'"),
        ("knife", {}, r"y_dim is None and y_classes is None; expected exactly one"),
        ("knife", {"y_dim": 2, "y_classes": 2}, r"y_dim is 2 and y_classes is 2; expected exactly one"),
        ("knife-joint", {"y_classes": 2}, r"name is 'knife-joint', which does not exist for classes"),
        ("adv", {"y_dim": 2}, r"name is 'adv', which does not exist for a continuous y"),
        ("mine", {"encoder": "gaussian"}, r"name is 'mine', which does not exist with encoder='gaussian'"),
        ("knife", {"encoder": "logistic"}, r"encoder is 'logistic'; expected one of 'gaussian'"),
        ("knife", {"encoder": "gaussian", "y_classes": 2}, r"y_classes is set with encoder='gaussian'"),
        ("knife", {"encoder": "gaussian", "y_dim": 5}, r"y_dim is 5; expected 4"),
        ("knife", {"y_dim": 2, "preset": "papers"}, r"preset is 'papers'; expected one of 'default', 'paper'"),
        ("doe", {"y_dim": 2, "preset": "papers"}, r"preset is 'papers'"),
        ("mine", {"y_dim": 2, "preset": "papers"}, r"preset is 'papers'"),
        ("club", {"y_dim": 2, "preset": "papers"}, r"preset is 'papers'"),
        ("knife", {"y_dim": 2, "given": "z"}, r"given is 'z'"),
        ("knife", {"y_dim": 0}, r"y_dim is 0; expected at least 1"),
        ("doe", {"y_classes": 0}, r"y_classes is 0; expected at least 1"),
    ],
)
def test_what_does_not_exist_is_refused(name: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mi(name, 2, **arguments)


@pytest.mark.parametrize("value", [2.0, "2", True])
def test_dimensions_are_whole_numbers(value: Any) -> None:
    with pytest.raises(TypeError, match=r"x_dim is .*; expected a whole number"):
        mi("knife", value, 2)


def test_options_reach_the_estimator() -> None:
    assert mi("knife", 2, 3, components=5).kernels.means.shape == (6, 5)  # type: ignore[union-attr]
    assert mi("knife", 2, 3, given="y").given == "y"
    assert mi("knife", 2, y_classes=3, components=5).conditional.components == 5  # type: ignore[union-attr]
    with pytest.raises(TypeError, match="colour"):
        mi("knife", 2, 3, colour="red")


def test_the_papers_form_of_knife() -> None:
    estimator = mi("knife", 2, 3, preset="paper", hidden=32)
    conditional, marginal = estimator.parameter_groups(1e-5)
    assert conditional["lr"] == 1e-5
    assert marginal["lr"] == pytest.approx(1e-2)
    densities = estimator.marginal, estimator.conditional
    assert all(density.components == 128 for density in densities)  # type: ignore[union-attr]
    assert any(tuple(p.shape) == (32, 2) for p in estimator.parameters())
    assert any(isinstance(module, torch.nn.Tanh) for module in estimator.modules())


@pytest.mark.parametrize("name", [name for name in catalogue.CONTINUOUS if mi(name, 1, 1).bound == "lower"])
def test_lower_bounds_stay_below(name: str) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        estimator = mi(name, 3, 3, hidden=32)
    fit(estimator, PAIR.batches(64, seed=0), steps=150, lr=3e-3, seed=0)
    with torch.no_grad():
        values = estimator.pointwise(*PAIR.sample(1000, seed=1))
    mean, error = float(values.mean()), float(values.std()) / math.sqrt(1000)
    assert 0.4 < mean < PAIR.mutual_information() + 3 * error


@pytest.mark.parametrize("name", [name for name in catalogue.CLASSES if mi(name, 1, y_classes=2).bound == "lower"])
def test_lower_bounds_for_classes_stay_below(name: str) -> None:
    options: dict[str, Any] = {"hidden": 32} if name in CRITICS else {}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        estimator = mi(name, 2, y_classes=4, **options)
    fit(estimator, CLASSES.batches(64, seed=0), steps=80, lr=3e-3, seed=0)
    with torch.no_grad():
        values = estimator.pointwise(*CLASSES.sample(1000, seed=1))
    mean, error = float(values.mean()), float(values.std()) / math.sqrt(1000)
    assert 0.3 < mean < CLASSES.mutual_information() + 3 * error
