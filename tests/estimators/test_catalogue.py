"""Estimators by name, the table of the documentation, and bounds that keep their side."""

import math
import re
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from torch import Tensor, nn

from infoknife import KNIFE, fit, mi
from infoknife.estimators import MutualInformation, catalogue, names
from infoknife.estimators.catalogue import ACTIVATIONS
from infoknife.estimators.difference import Difference, TwoDensities
from infoknife.nn import LayerNorm
from infoknife.tasks import GaussianClasses, GaussianPair

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "estimators.md"
PAIR, CLASSES = GaussianPair.of_information(3, 1), GaussianClasses.draw(classes=4, dim=2, seed=0, spread=2.0)

CRITICS = ("mine", "nwj", "tuba", "infonce", "adv")
FOR_CLASSES = ("mine", "nwj", "tuba", "infonce", "smile", "club", "club-sample", "l1out", "adv")
NETWORKS = ("knife", "doe", "doe-logistic", *FOR_CLASSES[:-1], "vub")
PRESETS = ({"preset": "default"}, {"preset": "paper"})
FORMS = [("knife", PRESETS[1]), *((name, preset) for name in NETWORKS[1:-1] for preset in PRESETS), ("vub", {})]


def test_names_are_those_of_the_contract() -> None:
    promised = (
        "knife knife-joint doe doe-logistic schraudolph mine nwj tuba infonce smile club club-sample l1out vub adv"
    )
    assert names() == promised.split() == list(get_args(catalogue.Name))


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


def test_options_reach_the_estimator() -> None:
    assert mi("knife", 2, 3, given="x", components=5).sides["x"].columns.components == 5  # type: ignore
    assert mi("knife", 2, 3, given="y").given == "y"
    assert mi("knife", 2, y_classes=3, components=5).conditional.components == 5  # type: ignore
    assert mi("knife", 3, 5, layer_norm=False).bound is None


def test_the_papers_form_of_knife() -> None:
    estimator = mi("knife", 2, 3, preset="paper", hidden=32)
    conditional, marginal = estimator.parameter_groups(1e-5)
    assert conditional["lr"] == 1e-5
    assert marginal["lr"] == pytest.approx(1e-2)
    assert isinstance(estimator, Difference)
    pair = estimator._pair
    assert isinstance(pair, TwoDensities)
    densities = pair.marginal, pair.conditional
    assert all(density.components == 128 for density in densities)
    assert any(tuple(p.shape) == (32, 2) for p in estimator.parameters())
    assert any(isinstance(module, torch.nn.Tanh) for module in estimator.modules())


def test_the_papers_form_of_knife_sees_the_data_as_they_are(generator: torch.Generator) -> None:
    """No coordinates: neither start nor ``observe`` looks at the data, and densities are those of the raw rows."""
    x, y = torch.randn(200, 2, generator=generator), torch.randn(200, 3, generator=generator)
    near, far = (mi("knife", 2, 3, preset="paper", hidden=8).initialize(x * s + s, y * s, seed=0) for s in (1.0, 30.0))
    before = {name: value.clone() for name, value in far.state_dict().items()}
    far.observe(x, y)
    for name, value in near.state_dict().items():
        assert torch.equal(value, before[name]), name
        assert torch.equal(value, far.state_dict()[name]), name
    assert isinstance(near, Difference)
    pair = near._pair
    assert isinstance(pair, TwoDensities)
    conditional, marginal = (terms.squeeze(1) for terms in pair.log_probs(y, x))
    standard = -0.5 * y.square().sum(1) - 1.5 * math.log(2 * math.pi)  # kernels of about unit width around zero
    torch.testing.assert_close(marginal, standard, rtol=0, atol=0.1)
    assert isinstance(pair.conditional, KNIFE)
    torch.testing.assert_close(conditional, pair.conditional.bank.log_prob(y, x))


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize(("name", "form"), FORMS)
def test_the_four_networks_of_domain_adaptation(
    name: str, form: dict[str, str], activation: str, layer_norm: bool
) -> None:
    """The table of section C.4: they have the layers that were asked for, train, and have a gradient for x."""
    with torch.random.fork_rng():
        estimator = _trained(name, activation=activation, layer_norm=layer_norm, **form)
    x, y = _rows()
    (gradient,) = torch.autograd.grad(estimator(x.requires_grad_(), y), x)
    assert gradient.dtype == torch.double
    assert bool(gradient.isfinite().all())
    assert float(gradient.abs().sum()) > 0
    kinds = {type(module) for module in estimator.modules()}
    assert (kinds & {*ACTIVATIONS.values(), nn.SiLU}, LayerNorm in kinds) == ({ACTIVATIONS[activation]}, layer_norm)


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("name", FOR_CLASSES)
def test_the_four_networks_for_classes(name: str, activation: str, layer_norm: bool) -> None:
    (x, _), s = _rows(), torch.randint(4, (64,), generator=torch.Generator().manual_seed(0))  # no period to roll by
    estimator = mi(name, 3, y_classes=4, activation=activation, layer_norm=layer_norm).initialize(x, s, seed=0)
    (gradient,) = torch.autograd.grad(estimator(x.requires_grad_(), s), x)
    assert bool(gradient.isfinite().all())
    assert float(gradient.abs().sum()) > 0
    assert any(isinstance(module, LayerNorm) for module in estimator.modules()) == layer_norm


@pytest.mark.parametrize("name", ["doe", "club", "mine"])
def test_the_estimators_own_choice_may_be_said(name: str) -> None:
    own = {"mine": "relu"}.get(name, "tanh")
    with torch.random.fork_rng():
        said, unsaid = (_trained(name, **options) for options in ({"activation": own, "layer_norm": False}, {}))
    assert torch.equal(said.eval()(*_rows()), unsaid.eval()(*_rows()))


def _rows() -> tuple[Tensor, Tensor]:
    x, noise = (torch.randn(64, d, generator=torch.Generator().manual_seed(s)).double() for s, d in ((1, 3), (2, 5)))
    return x, x @ torch.linspace(-1, 1, 15).double().view(3, 5) + noise


def _trained(name: str, **options: Any) -> MutualInformation:
    """Made with a seed, started from the rows, and three steps of Adam."""
    torch.manual_seed(0)
    estimator = mi(name, 3, 5, **options).initialize(*_rows(), seed=0)
    optimizer = torch.optim.Adam(estimator.parameter_groups(1e-3), 1e-3)
    for _ in range(3):
        optimizer.zero_grad()
        loss = estimator.loss(*_rows())
        assert bool(loss.isfinite())
        loss.backward()
        optimizer.step()
    return estimator


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
