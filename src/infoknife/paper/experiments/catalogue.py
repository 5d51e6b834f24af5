"""The experiments by name."""

from collections.abc import Iterable

from infoknife.inputs import one_of
from infoknife.paper.experiments.bench import BENCH
from infoknife.paper.experiments.experiment import PRESETS, Experiment
from infoknife.paper.experiments.paper import adaptation, fair_text, gaussian, ib_text, staircases, triangles
from infoknife.paper.experiments.trial import Trial

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
APPLICATIONS = (  # of the user's data; "paper" takes days
    ib_text.TABLE2,
    fair_text.FIG4,
    adaptation.TABLE3,
    adaptation.NETWORKS,
)
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in (*ESTIMATORS, *APPLICATIONS)}
GROUPS: dict[str, tuple[str, ...]] = {
    "bias-variance": ("fig3-gaussian", "fig3-cubic", "fig3-uniform"),  # another view of the same trials
    "all": tuple(experiment.name for experiment in ESTIMATORS),
}
PLURALS = {"corpus": "corpora"}
NOTHING = {"train_size": "all"}  # what a choice of None is called
MADE_OF = {"pair": ("source", "target")}  # what is chosen by one name and is several arguments


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
    corpora: Iterable[str] | None = None,
    weights: Iterable[float] | None = None,
    tasks: Iterable[str] | None = None,
    train_sizes: Iterable[int | str] | None = None,
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
        corpora: The corpora that are wanted, as ``"dial-mention"``, where an experiment has such; all if not given.
        weights: The weights of the information, lambda, that are wanted, where an experiment has them; all if not
            given.
        tasks: The tasks of pairs of texts that are wanted, as ``"mrpc"``, where an experiment has such; all if not
            given.
        train_sizes: How many training pairs, as 500 or ``"all"``, where an experiment cuts them; every size if not
            given.

    Example:
        >>> len(select("table1", "paper", methods=["knife"], seeds=[0, 1]))  # two dimensions
        4
    """
    one_of("experiment", name, tuple(names()))
    one_of("preset", preset, PRESETS)
    trials = [trial for part in GROUPS.get(name, (name,)) for trial in get(part).trials(preset)]
    wishes: dict[str, Iterable[object] | None] = {
        **{"method": methods, "seed": seeds, "pair": pairs, "corpus": corpora, "weight": weights},
        **{"task": tasks, "train_size": train_sizes},
    }
    for argument, wanted in wishes.items():
        if wanted is not None:
            trials = _with(trials, argument, tuple(wanted))
    return trials


def _with(trials: list[Trial], name: str, wanted: tuple[object, ...]) -> list[Trial]:
    """Keep the trials whose argument is one of those that are wanted."""
    known = tuple(dict.fromkeys(_argument(trial, name) for trial in trials))
    for value in wanted:
        if value not in known:
            raise ValueError(f"{name} is {value!r}; expected one of {', '.join(map(str, known))}")
    return [trial for trial in trials if _argument(trial, name) in wanted]


def _argument(trial: Trial, name: str) -> object:
    """What a trial has under a name; a pair is two arguments."""
    parts = [trial.arguments[part] for part in MADE_OF.get(name, (name,)) if part in trial.arguments]
    if not parts:
        several = PLURALS.get(name, f"{name}s")
        raise ValueError(f"{several} are given, and {trial.experiment} has none; leave them out")
    found = parts[0] if len(parts) == 1 else "-".join(parts)
    return NOTHING.get(name) if found is None else found
