"""A training run that can be killed: one state that is written whole, the best model, curves, and a folder."""

import copy
import json
import math
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from infoknife import Regularizer, distributed
from infoknife._version import __version__
from infoknife.atomic import write_text, written_whole
from infoknife.paper.applications.settings import RunSettings, hashed

CHECKPOINT, SETTINGS, METRICS, PAGE = "checkpoint.pt", "settings.json", "metrics.json", "index.html"
STATE = ("step", "stopped", "seconds", "curves", "kept_models")  # of a run
FORMAT = 4  # of a checkpoint; another number means that its parts have other meanings
WARM, LEFT = 0.2, 0.01  # the part of a cycle in which the learning rate rises, and what is left of it in the end

Facts = Mapping[str, float]
OnProgress = Callable[[int, Facts], None]  # called at every step, with what is known by then at some


class SelectionRule(NamedTuple):
    """How a model is chosen among those of several steps or settings: by one fact about rows of the selection split.

    Examples:
        >>> rule = SelectionRule("low-loss", "loss", -1, "labels")
        >>> rule.value({"loss": 0.5}), rule.value({})
        (-0.5, None)
    """

    name: str  # what settings and reports call it
    fact: str  # the name of what evaluate says; where it never says that, the last model is chosen
    sign: int  # 1 where more is better, -1 where less is
    needs: str  # what it takes to know the fact

    def value(self, facts: Facts) -> float | None:
        """Return what is to be as large as possible; None where the model is not to be chosen."""
        return self.sign * facts[self.fact] if self.fact in facts else None


class RunResult(NamedTuple):
    """What a run gives: the model that was kept, numbers for tables, curves (lists of equal length) for figures."""

    model: Any
    results: dict[str, Any]
    curves: dict[str, list[float]]


class Run(ABC):
    """A run of an application on its way: a subclass says what is learned, how it is evaluated, and what is kept.

    Where ``torch.distributed`` is initialised, all ranks draw the same batches, each learns from its part of the rows,
    and gradients are averaged. All evaluate; the first one alone writes, and is the only one that finishes.

    A run has so many ``steps`` of training, and ``every`` so many an evaluation and a checkpoint. By ``rules`` models
    are kept, the first one for ``finish``; by the settings' own rule if not given. ``data`` is the data's digest.
    """

    MODULES: ClassVar[tuple[str, ...]]  # attributes with a state_dict that a checkpoint has; None has none
    STATE: ClassVar[tuple[str, ...]] = ()  # plain ones, in addition to those that all runs have
    CURVES: ClassVar[tuple[str, ...]]  # what of evaluate is drawn
    RULES: ClassVar[tuple[SelectionRule, ...]]  # what a model may be chosen by; the settings' select names one

    model: nn.Module
    optimizer: torch.optim.Optimizer
    rates: list[float]
    regularizer: Regularizer | None = None  # with the information that is in the loss

    def __init__(
        self,
        settings: RunSettings,
        data: str,
        *,
        steps: int,
        every: int,
        device: str,
        rules: tuple[SelectionRule, ...] = (),
    ) -> None:
        self.identity, self._arguments, self.seed = settings.identity(data), settings.arguments(), settings.seed
        self.device = torch.device(device)
        self.generator = torch.Generator().manual_seed(settings.seed)
        self.steps, self.every = steps, every
        self.rules = rules or tuple(rule for rule in self.RULES if rule.name == settings.select)
        self.step, self.stopped, self.seconds = 0, 0, 0.0
        self.curves: dict[str, list[float]] = {name: [] for name in self.CURVES}
        self.kept_models: dict[str, dict[str, Any]] = {}  # by the name of a rule

    @abstractmethod
    def loss(self) -> Tensor:
        """Return the loss of the next batch."""

    @abstractmethod
    def evaluate(self) -> Facts:
        """Evaluate the model on the selection split."""

    @abstractmethod
    def finish(self) -> dict[str, Any]:
        """Evaluate the model that was chosen on test data, once."""

    @abstractmethod
    def test(self, rule: SelectionRule) -> dict[str, Any]:
        """Evaluate the model that a rule has kept on test data alone."""

    @abstractmethod
    def save_model(self, folder: Path) -> None:
        """Leave the model, and what else the application has, in a folder."""

    def rate(self) -> float:
        """Return the learning rate of this step as a part of the largest one."""
        return 1.0

    def evaluated_model(self) -> nn.Module:
        """Return the model that is evaluated and kept."""
        return self.model

    def about_regularizer(self) -> dict[str, Any]:
        """Return the running estimate of the information in nats, on rows not learned from, and its health in words."""
        if self.regularizer is None:
            return {}
        return {"information": self.regularizer.estimate, "messages": list(self.regularizer.health().messages)}

    def health(self) -> dict[str, float]:
        """Return the information, 0 if there is no regularizer, and the numbers of its health."""
        if self.regularizer is None:
            return {"information": 0.0}
        scalars = {f"regularizer/{name}": value for name, value in self.regularizer.health().scalars().items()}
        return {"information": self.regularizer.estimate or 0.0, **scalars}

    def should_stop(self) -> bool:
        """Whether training is to stop before its last step."""
        return False

    def run(self, folder: Path | None = None, on_progress: OnProgress | None = None) -> RunResult:
        """Train, evaluate the model that was chosen, and leave settings, metrics, model and a page in the folder.

        Checkpoints are written to the folder, whole or not at all; a run that was killed goes on from there to the same
        result. ``on_progress`` is called after every step; after an evaluation with what was found. Results are those
        of the first rank; the others have none.

        Raises:
            FloatingPointError: The loss is not finite.
            ValueError: The folder holds another run's checkpoint.
        """
        self.train(folder, on_progress)
        self.curves = {name: curve for name, curve in self.curves.items() if all(map(math.isfinite, curve))}
        if distributed.rank():
            self.restore()
            return RunResult(self.evaluated_model(), {}, self.curves)
        with distributed.alone():
            results = self.finish()
            if folder is not None:
                self.save_model(folder)
                write_run_folder(folder, self.identity, self._arguments, results, self.curves)
                (folder / CHECKPOINT).unlink(missing_ok=True)
        return RunResult(self.evaluated_model(), results, self.curves)

    def train(self, folder: Path | None = None, on_progress: OnProgress | None = None) -> None:
        """Take all steps that are left, from the checkpoint in the folder if there is one; see ``run``."""
        distributed.agree("what is run", self.identity)
        self.resume(folder)
        self._seed_rank()
        while self.step < self.steps:
            self.take_step()
            facts: Facts = {}
            if self.step % self.every == 0 or self.step == self.steps:
                facts = self._evaluated()
                self.save(folder)
                self._seed_rank()
            if on_progress is not None:
                on_progress(self.step, facts)

    def take_step(self) -> None:
        """Take one step of all."""
        begin = time.perf_counter()
        self.model.train()
        loss = self.loss()
        loss.backward()
        learning = (parameter for group in self.optimizer.param_groups for parameter in group["params"])
        if not math.isfinite(value := distributed.average_gradients(learning, loss.detach()).item()):
            raise FloatingPointError(f"the loss of step {self.step + 1} is {value}; a smaller lr may help")
        self.step += 1
        self.update()
        self.seconds += time.perf_counter() - begin

    def update(self) -> None:
        """Let the optimiser take a step."""
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate * self.rate()
        self.optimizer.step()
        self.optimizer.zero_grad()

    @property
    def best(self) -> dict[str, Any]:
        """The model of the first rule: its ``value``, ``step``, ``facts`` and ``model``; empty if none is kept."""
        return self.kept_models.get(self.rules[0].name, {})

    def restore(self, rule: SelectionRule | None = None) -> None:
        """Load the model that was kept by a rule, the first one if not given."""
        self.evaluated_model().load_state_dict(self.kept_models[(rule or self.rules[0]).name]["model"])
        self.evaluated_model().eval()

    def save(self, folder: Path | None) -> None:
        """Write all that moves, on the first rank."""
        if folder is not None and not distributed.rank():
            modules = {name: module.state_dict() for name, module in self._modules().items()}
            plain = {name: getattr(self, name) for name in (*STATE, *self.STATE)}
            about = {"format": FORMAT, "version": __version__, "identity": self.identity}
            random = {"generator": self.generator.get_state(), "random": random_states(self.device)}
            write_state(folder / CHECKPOINT, {**about, **modules, **plain, **random})

    def resume(self, folder: Path | None) -> None:
        """Take over what a run that was killed has written, if there is any.

        A checkpoint of another version of the library is set aside, with a warning, and the run starts again.
        """
        path = None if folder is None else folder / CHECKPOINT
        state = None if path is None else read_state(path)
        if path is None or state is None:
            return
        if (version := (state.get("format"), state.get("version"))) != (FORMAT, __version__):
            if not distributed.rank():
                warnings.warn(_set_aside(path, str(version[1] or "unknown")), UserWarning, stacklevel=3)
            return
        for what in ("application", "settings", "data"):
            if state["identity"][what] != self.identity[what]:
                raise ValueError(f"{folder} holds a checkpoint of other {what}; choose another folder, or remove it")
        for name, module in self._modules().items():
            module.load_state_dict(state[name])
        self.generator.set_state(state["generator"])
        set_random_states(state["random"], self.device)
        for name in (*STATE, *self.STATE):
            setattr(self, name, state[name])

    def _evaluated(self) -> Facts:
        """Evaluate the model, and keep it where it is the best so far."""
        distributed.synchronize(self.model)  # the statistics of BatchNorm
        with distributed.alone():
            facts: Facts = self.evaluate()
        facts = distributed.said_by_first(facts)
        for name, curve in self.curves.items():
            curve.append(float({"step": self.step, **facts}.get(name, math.nan)))
        for rule in self.rules:
            value, kept = rule.value({"step": self.step, **facts}), self.kept_models.get(rule.name)
            last = kept is None and self.step == self.steps
            if last or (value is not None and (kept is None or value > kept["value"])):
                state = copy.deepcopy(self.evaluated_model().state_dict())
                self.kept_models[rule.name] = {"value": value, "step": self.step, "facts": dict(facts), "model": state}
        if self.should_stop():
            self.stopped, self.step = self.step, self.steps
        return facts

    def _modules(self) -> dict[str, Any]:
        return {name: module for name in self.MODULES if (module := getattr(self, name)) is not None}

    def _seed_rank(self) -> None:
        """Let every rank but the first draw other noise, which the step decides, so that a restart draws it again."""
        if rank := distributed.rank():
            torch.manual_seed(self.seed + (rank << 32) + self.step)


def local_rows(rows: Tensor) -> Tensor:
    """Return this rank's part of the rows (N, ...) of a batch that all ranks have drawn alike.

    Examples:
        >>> local_rows(torch.arange(3))
        tensor([0, 1, 2])
    """
    return rows.tensor_split(distributed.ranks())[distributed.rank()]


def run_page(title: str, settings: Mapping[str, Any], results: Mapping[str, Any], curves: Mapping[str, Any]) -> str:
    """Write the page of a run: what was found, the curves over the first of them, and what was set."""
    from infoknife.pictures import Chart, Panel, Section, Series, Table, page
    from infoknife.pictures.charts import BLUE

    over, *others = curves
    charts = tuple(
        Chart(name, name.replace("_", " "), over, "", (Panel("", (Series(name, BLUE, "line", curves[over], y),)),))
        for name in others
        if len(y := curves[name]) > 1
    )

    def table(caption: str, rows: Mapping[str, Any]) -> Table:
        cells = ((name.replace("_", " "), f"{v:.6g}" if isinstance(v, float) else str(v)) for name, v in rows.items())
        return Table(caption, ("name", "value"), tuple(cells), 2)

    results_part = Section("results", "Results", "Results", "", (table("What came out", _flat(results)), *charts))
    settings_part = Section("settings", "Settings", "Settings", "", (table("What was set", settings),))
    return page(title, "", [results_part, settings_part])


def write_run_folder(folder: Path, identity: Mapping[str, Any], arguments: Any, results: Any, curves: Any) -> None:
    """Leave settings, metrics and, where there is what it is drawn with, a page in a run's folder.

    The metrics come last, as they say that the run has ended.
    """
    folder.mkdir(parents=True, exist_ok=True)
    whole = {"identity": identity, "version": __version__, "results": results, "curves": curves}
    try:
        metrics = json.dumps(whole, allow_nan=False)
    except ValueError:
        raise FloatingPointError("a number among the results or curves is not finite") from None
    files = {SETTINGS: json.dumps(arguments, indent=1)}
    try:
        files[PAGE] = run_page(str(identity["application"]), arguments, results, curves)
    except ModuleNotFoundError:  # matplotlib or jinja2
        warnings.warn("there is no page without infoknife[plot]", UserWarning, stacklevel=2)
    for name, text in (*files.items(), (METRICS, metrics)):
        write_text(folder / name, text)


def run_folder(out: Path, settings: RunSettings, data: str) -> Path:
    """Return the folder of a run: names for people, its identity for the program."""
    return out / f"{settings.APPLICATION}-{settings.method}-{hashed(settings.identity(data))}"


def read_results(folder: Path) -> dict[str, Any] | None:
    """Return the results that a run has left in its folder; None where it has not ended.

    Metrics of another version of the library are set aside, with a warning.
    """
    try:
        metrics = json.loads((folder / METRICS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    if metrics["version"] != __version__:
        warnings.warn(_set_aside(folder / METRICS, str(metrics["version"])), UserWarning, stacklevel=2)
        return None
    return metrics["results"]


@contextmanager
def seeded(seed: int, device: str) -> Iterator[None]:
    """Let the global generators, which noise and dropout draw from, be those of a seed inside."""
    others = (torch.device(device),) if torch.device(device).type == "cuda" else ()
    with torch.random.fork_rng(devices=others):
        torch.manual_seed(seed)
        yield


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Let a module be in evaluation mode, without dropout, inside."""
    was = module.training
    module.train(False)
    try:
        yield
    finally:
        module.train(was)


def write_state(path: Path, state: Mapping[str, Any]) -> None:
    """Write tensors, numbers, text, and lists and dicts of these: whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as file:
        torch.save(dict(state), file)


def read_state(path: Path) -> dict[str, Any] | None:
    """Read what ``write_state`` wrote; None if there is no such file."""
    if not path.exists():
        return None
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds, by what is damaged
        raise ValueError(f"{path} cannot be read as a checkpoint ({error}); remove it to start again") from error
    return state


def read_model(folder: Path) -> dict[str, Any]:
    """Read the model that a run has left in its folder."""
    state = read_state(folder / "model.pt")
    if state is None:
        raise FileNotFoundError(f"there is no {folder / 'model.pt'}; expected the folder of a run that has ended")
    return state


def random_states(device: torch.device) -> list[Tensor]:
    """Return the states of the global generators that noise and dropout draw from."""
    states = [torch.get_rng_state()]
    return states if device.type != "cuda" else [*states, torch.cuda.get_rng_state(device)]


def set_random_states(states: list[Tensor], device: torch.device) -> None:
    """Put the global generators back to what ``random_states`` gave."""
    torch.set_rng_state(states[0])
    if device.type == "cuda" and len(states) > 1:
        torch.cuda.set_rng_state(states[1], device)


def cycle(progress: float) -> float:
    """Rise in a line over the first fifth, then fall as a cosine.

    Examples:
        >>> [round(cycle(progress), 2) for progress in (0.1, 0.2, 0.6, 1.0)]
        [0.5, 1.01, 0.51, 0.01]
    """
    if progress < WARM:
        return progress / WARM
    return 0.5 * (1 + math.cos(math.pi * (progress - WARM) / (1 - WARM))) + LEFT


SCHEDULES: Mapping[str, Callable[[float], float]] = {"constant": lambda progress: 1.0, "cycle": cycle}


def _flat(results: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers, text, and what is in mappings of these; lists of text line by line."""
    found: dict[str, Any] = {}
    for name, value in results.items():
        if isinstance(value, Mapping):
            found |= {f"{name}: {inner}": each for inner, each in _flat(value).items()}
        elif isinstance(value, bool | int | float | str):
            found[name] = value
        elif isinstance(value, list) and all(isinstance(each, str) for each in value) and value:
            found[name] = "; ".join(value)
    return found


def _set_aside(path: Path, version: str) -> str:
    """Move a file away, and say so."""
    folder = path.parent / "set-aside"
    folder.mkdir(exist_ok=True)
    moved = folder / f"{path.stem}-{version.replace('/', '_')}{path.suffix}"
    path.replace(moved)
    return f"{path.name} of another version ({version}) was set aside in {moved}; the run starts again"
