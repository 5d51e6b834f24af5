"""Every candidate by name, and how much is tried for how much effort."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Literal, NamedTuple

from infoknife.densities import KNIFE, Autoregressive, Flow
from infoknife.inputs import one_of
from infoknife.measure.candidates.base import Candidate
from infoknife.measure.candidates.coordinates import normal, standard
from infoknife.measure.candidates.mixtures import Counts, GaussianKernel, MixtureCandidate, StudentKernel
from infoknife.measure.candidates.neighbours import Neighbours
from infoknife.measure.candidates.networks import ClassifierCandidate, NetworkDensity, NetworkDifference
from infoknife.measure.candidates.selected import Selected

Effort = Literal["quick", "standard", "thorough"]


class Plan(NamedTuple):
    """How much is done."""

    steps: int  # of a network's training; 0 for no networks
    networks: tuple[str, ...]  # which kinds are tried, in this order
    folds: int  # into how many parts the rows are divided if no network takes part
    network_folds: int  # and if one does


EFFORTS: dict[str, Plan] = {
    "quick": Plan(400, (), 5, 3),
    "standard": Plan(1000, ("difference", "autoregressive", "classifier"), 10, 3),
    "thorough": Plan(4000, ("difference", "autoregressive", "classifier", "knife", "flow"), 10, 5),
}

CLOSED: tuple[Candidate, ...] = (
    GaussianKernel("independent", standard, together=True),
    Counts(),
    GaussianKernel("gaussian", standard),
    GaussianKernel("gaussian-ranks", normal),
    GaussianKernel("gaussian-own", standard, prior=1.0),
    GaussianKernel("gaussian-own-ranks", normal, prior=1.0),
    GaussianKernel("gaussian-shrunk", standard, is_shrunk=True),
    GaussianKernel("gaussian-shrunk-ranks", normal, is_shrunk=True),
    StudentKernel("student", ranked=False),
    StudentKernel("student-ranks", ranked=True),
    MixtureCandidate("mixture", standard),
    MixtureCandidate("mixture-ranks", normal),
    Selected(),
)

NETWORKS: dict[str, Callable[[int], Candidate]] = {
    "difference": NetworkDifference,
    "autoregressive": lambda steps: NetworkDensity(
        "autoregressive", lambda d, v: Autoregressive(d, 16, given_dim=v, hidden=96), steps
    ),
    "classifier": ClassifierCandidate,
    "knife": lambda steps: NetworkDensity("knife", lambda d, v: KNIFE(d, 32, given_dim=v), steps),
    "flow": lambda steps: NetworkDensity("flow", lambda d, v: Flow(d, given_dim=v), steps),
}


def methods() -> tuple[str, ...]:
    """Return what ``method`` may be, apart from ``"auto"``.

    Examples:
        >>> methods()[:3]
        ('independent', 'counts', 'gaussian')
    """
    return tuple(dict.fromkeys([one.family for one in CLOSED] + [Neighbours.name, *NETWORKS]))


def candidates(method: str, effort: str) -> list[Candidate]:
    """What is tried for ``"auto"`` and an effort, or for one of ``methods()``, the cheap ones first."""
    one_of("effort", effort, tuple(EFFORTS))
    one_of("method", method, ("auto", *methods()))
    plan = EFFORTS[effort]
    if method in NETWORKS:
        return [NETWORKS[method](plan.steps)]
    if method != "auto":
        return [one for one in (*CLOSED, Neighbours()) if one.family == method]
    there = [name for name in plan.networks if name != "flow" or find_spec("zuko") is not None]
    return [*CLOSED, *(NETWORKS[name](plan.steps) for name in there)]
