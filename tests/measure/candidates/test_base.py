"""What every candidate shares, and what is tried for what is asked."""

import pytest
import torch
from torch import Tensor

from infoknife.measure import candidates as catalogue
from infoknife.measure.candidates import CLOSED, EFFORTS, NETWORKS, base, candidates, methods
from infoknife.measure.candidates.base import Fitted
from infoknife.measure.candidates.networks import ClassifierCandidate, NetworkDensity, NetworkDifference
from infoknife.measure.question import Sample


def test_terms_come_in_pieces_and_need_no_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Sample(torch.arange(10).double().unsqueeze(1), torch.empty(10, 0, dtype=torch.long), ())
    scale, pieces = torch.ones((), dtype=torch.float64, requires_grad=True), []

    def twice(data: Sample) -> Tensor:
        pieces.append(len(data))
        return torch.stack([data.continuous[:, 0], 2 * data.continuous[:, 0]]) * scale

    monkeypatch.setattr(base, "PIECE", 4)
    found = Fitted(twice, parameters=1).terms(rows)
    assert found.tolist() == [list(range(10)), list(range(0, 20, 2))]
    assert not found.requires_grad
    assert pieces == [4, 4, 2]


def names(method: str, effort: str) -> list[str]:
    return [one.name for one in candidates(method, effort)]


def test_methods_are_families_and_networks() -> None:
    closed, networks = methods()[: -len(NETWORKS)], methods()[-len(NETWORKS) :]
    assert set(closed) == {
        "counts",
        "gaussian",
        "independent",
        "student",
        "mixture",
        "neighbours",
        "selected",
    }
    assert networks == ("difference", "autoregressive", "classifier", "knife", "flow")
    assert len(set(methods())) == len(methods())


def test_names_are_unique_and_say_the_family() -> None:
    everyone = [*CLOSED, *(build(1) for build in NETWORKS.values())]
    assert len({one.name for one in everyone}) == len(everyone)
    assert all(one.family in methods() for one in everyone)


@pytest.mark.parametrize("effort", EFFORTS)
def test_the_cheap_ones_come_first(effort: str) -> None:
    is_network = [one.is_network for one in candidates("auto", effort)]
    assert is_network == sorted(is_network)
    assert names("auto", effort)[len(CLOSED) :] == list(EFFORTS[effort].networks)


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("method", NETWORKS)
def test_a_network_is_trained_for_the_effort_s_steps(method: str, effort: str) -> None:
    (one,) = candidates(method, effort)
    assert isinstance(one, NetworkDensity | NetworkDifference | ClassifierCandidate)
    assert one.steps == EFFORTS[effort].steps > 0


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("gaussian", {"gaussian", "gaussian-ranks", "gaussian-own", "gaussian-own-ranks"}),
        ("mixture", {"mixture", "mixture-ranks"}),
    ],
)
def test_a_family_is_tried_in_all_its_coordinates(method: str, expected: set[str]) -> None:
    found = candidates(method, "quick")
    assert {one.name for one in found} >= expected
    assert [one for one in CLOSED if one.family == method] == found


def test_flow_is_left_out_where_zuko_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "find_spec", lambda name: None)
    assert "flow" not in names("auto", "thorough")
    assert "knife" in names("auto", "thorough")
