"""The experiments by name."""

from collections.abc import Callable, Iterable

from infoknife.experiments.bench import BENCH
from infoknife.experiments.experiment import PRESETS, Experiment
from infoknife.experiments.paper import adaptation, gaussian, staircases, triangles
from infoknife.experiments.trial import Trial
from infoknife.inputs import one_of

__all__ = ["get", "names", "select"]

ESTIMATORS = (
    gaussian.TABLE1,
    gaussian.SHRINKING,
    triangles.PDF,
    triangles.TRIANGLE8,
    triangles.TRIANGLE20,
    staircases.GAUSSIAN,
    staircases.CUBIC,
    staircases.UNIFORM,
    staircases.TUBA,
)
APPLICATIONS = (adaptation.TABLE3, adaptation.NETWORKS)  # which need the user's data, and days for the paper's preset
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in (*ESTIMATORS, *APPLICATIONS)}
GROUPS: dict[str, tuple[str, ...]] = {
    "bias-variance": ("fig3-gaussian", "fig3-cubic", "fig3-uniform"),  # another view of the same trials
    "all": tuple(experiment.name for experiment in ESTIMATORS),
}


def names() -> list[str]:
    """Names that ``select`` knows: single experiments, then groups.

    Example:
        >>> names()[0], names()[-1]
        ('table1', 'all')
    """
    return [*EXPERIMENTS, *GROUPS]


def get(name: str) -> Experiment:
    """The experiment of a name; ``"bench"``, which is not the paper's, is known here alone."""
    known = {**EXPERIMENTS, BENCH.name: BENCH}
    one_of("experiment", name, tuple(known))
    return known[name]


def select(
    name: str,
    preset: str = "paper",
    *,
    methods: Iterable[str] | None = None,
    seeds: Iterable[int] | None = None,
    pairs: Iterable[str] | None = None,
) -> list[Trial]:
    """List the trials of an experiment or a group.

    Args:
        name: One of ``names()``.
        preset: ``"paper"``: the published protocol; ``"ours"``: our best on the same samples; ``"quick"``: minutes.
            Applications have ``"cpu"``, what two cores can do, instead of ``"ours"``.
        methods: The methods that are wanted; all if not given.
        seeds: The runs that are wanted, counted from 0; all if not given.
        pairs: The pairs of domains that are wanted, as ``"mnist-mnistm"``, where an experiment has such; all if not
            given.

    Example:
        >>> len(select("table1", "paper", methods=["knife"], seeds=[0, 1]))  # two dimensions
        4
    """
    one_of("experiment", name, tuple(names()))
    one_of("preset", preset, PRESETS)
    trials = [trial for part in GROUPS.get(name, (name,)) for trial in get(part).trials(preset)]
    for argument, wanted, of in (("method", methods, _argument), ("seed", seeds, _argument), ("pair", pairs, _pair)):
        if wanted is not None:
            trials = _with(trials, argument, tuple(wanted), of)
    return trials


def _with(
    trials: list[Trial], name: str, wanted: tuple[object, ...], of: Callable[[Trial, str], object]
) -> list[Trial]:
    """Keep the trials whose argument is one of those that are wanted."""
    known = tuple(dict.fromkeys(of(trial, name) for trial in trials))
    for value in wanted:
        if value not in known:
            raise ValueError(f"{name} is {value!r}; expected one of {', '.join(map(str, known))}")
    return [trial for trial in trials if of(trial, name) in wanted]


def _argument(trial: Trial, name: str) -> object:
    return trial.arguments[name]


def _pair(trial: Trial, name: str) -> object:
    if "source" not in trial.arguments:
        raise ValueError(f"{name}s are given, and {trial.experiment} has none; leave them out")
    return f"{trial.arguments['source']}-{trial.arguments['target']}"
