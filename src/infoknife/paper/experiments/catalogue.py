"""The experiments by name: a new one is a file, and a line here."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from infoknife.inputs import one_of
from infoknife.paper.engine.trial import PRESETS, Experiment, Trial
from infoknife.paper.experiments import bench, fig1, fig2, fig3, fig4, table1, table2, table3

ESTIMATORS = (
    table1.TABLE1,
    fig1.SHRINKING,
    fig2.PDF,
    fig2.TRIANGLE8,
    fig2.TRIANGLE20,
    fig3.GAUSSIAN,
    fig3.CUBIC,
    fig3.UNIFORM,
    fig3.TUBA,
)
APPLICATIONS = (  # of the user's data; "paper" takes days
    table2.TABLE2,
    fig4.FIG4,
    table3.TABLE3,
    table3.NETWORKS,
)
EXPERIMENTS: dict[str, Experiment] = {each.name: each for each in (*ESTIMATORS, *APPLICATIONS, bench.BENCH)}
GROUPS: dict[str, tuple[str, ...]] = {
    "bias-variance": ("fig3-gaussian", "fig3-cubic", "fig3-uniform"),  # their report has bias and variance
    "all": tuple(experiment.name for experiment in ESTIMATORS),
}


def names() -> list[str]:
    """Names that ``select`` knows: single experiments, then groups.

    Examples:
        >>> names()[0], names()[-1]
        ('table1', 'all')
    """
    return [*(name for name in EXPERIMENTS if name != bench.BENCH.name), *GROUPS]


def get(name: str) -> Experiment:
    """The experiment of a name; ``"bench"``, which is not the paper's, is known here alone."""
    one_of("experiment", name, tuple(EXPERIMENTS))
    return EXPERIMENTS[name]


def select(
    name: str,
    preset: str = "paper",
    *,
    data: Path | None = None,
    only: Mapping[str, Iterable[object] | None] | None = None,
) -> list[Trial]:
    """List the trials of an experiment or a group, of ``names()``.

    The preset is ``"paper"``: the published protocol; ``"ours"``: our best on the same samples; ``"quick"``: minutes.
    Applications have ``"cpu"``, what two cores can do, instead of ``"ours"``. What is in the folder of the user's data
    is part of a trial's identity. ``only`` has the values that are wanted by the name of an argument: ``"method"``,
    ``"seed"``; ``"corpus"``, ``"weight"``, ``"task"``, ``"train_size"`` (a number or ``"all"``) and ``"pair"``, as
    ``"mnist-mnistm"``, where an experiment has such.

    Examples:
        >>> len(select("table1", "paper", only={"method": ["knife"], "seed": [0, 1]}))  # two dimensions
        4
    """
    one_of("experiment", name, tuple(names()))
    one_of("preset", preset, PRESETS)
    trials = [trial for part in GROUPS.get(name, (name,)) for trial in get(part).trials(preset, data)]
    for argument, wanted in (only or {}).items():
        if wanted is not None:
            values, found = tuple(wanted), {trial: _argument(trial, argument) for trial in trials}
            for value in values:
                if value not in found.values():
                    known = ", ".join(map(str, dict.fromkeys(found.values())))
                    raise ValueError(f"{argument} is {value!r}; expected one of {known}")
            trials = [trial for trial in trials if found[trial] in values]
    return trials


def _argument(trial: Trial, name: str) -> object:
    """What a trial has under a name; a pair is two arguments."""
    names = ("source", "target") if name == "pair" else (name,)
    parts = [trial.arguments[part] for part in names if part in trial.arguments]
    if not parts:
        raise ValueError(f"{name} is chosen, and {trial.experiment.name} has none; leave it out")
    if name == "train_size" and parts[0] is None:
        return "all"
    return parts[0] if len(parts) == 1 else "-".join(map(str, parts))
