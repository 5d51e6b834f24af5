"""Training: the label's cross-entropy and the private attribute's information, Algorithm 1 or a fit in closed form."""

import copy
import math
import time
from pathlib import Path
from typing import Any, NamedTuple, final

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from infoknife.paper.applications.checkpoint import read_checkpoint, write_checkpoint
from infoknife.paper.applications.fair_text.corpus import Corpus, Texts
from infoknife.paper.applications.fair_text.data import load_corpus
from infoknife.paper.applications.fair_text.judge import accuracy, check_held_out, leak, write_audit
from infoknife.paper.applications.fair_text.methods import make
from infoknife.paper.applications.fair_text.model import TextClassifier, encoded, quiet
from infoknife.paper.applications.fair_text.settings import Settings
from infoknife.paper.applications.run import CHECKPOINT, Facts, Run, Tell, seeded
from infoknife.paper.applications.schedules import SCHEDULES

__all__ = ["Learned", "check_corpus", "corpus_of", "learn", "load_model"]

MODEL = "model.pt"
CURVES = ("step", "main_accuracy", "information")
MODULES = ("model", "kept", "method", "optimizer")
MOVING = ("seconds", "curves", "best", "order")


class Learned(NamedTuple):
    """What a run gives: the model, numbers for tables, curves for figures."""

    model: TextClassifier
    results: dict[str, Any]
    curves: dict[str, list[float]]


def corpus_of(settings: Settings, data: Path | str | None = None) -> Corpus:
    """Load the corpus that settings name, from a file or folder of the user's, the hub, or out of nothing."""
    if settings.columns is None:
        return load_corpus(seed=settings.seed)
    return load_corpus(settings.columns, data=data, hub=settings.hub, seed=settings.seed)


def check_corpus(settings: Settings, data: Path | str | None = None) -> None:
    """Raise what would stop a run, before it begins: a missing file, a missing column, an empty class."""
    if settings.columns is not None and settings.hub is None:
        check_held_out(corpus_of(settings, data))


def learn(
    settings: Settings,
    *,
    data: Path | str | None = None,
    folder: Path | None = None,
    device: str = "cpu",
    tell: Tell | None = None,
    corpus: Corpus | None = None,
) -> Learned:
    """Train an encoder for the label whose features say little of the private attribute (eq:all_loss).

    The audit's probes see features of validation and test texts alone, which the encoder was not trained on.

    Args:
        settings: What is run.
        data: The user's table, or a folder with it.
        folder: Where checkpoints are written, whole or not at all; a run that was killed goes on from there to the
            same result. Model, held-out features and the audit's page are left there in the end.
        device: Where the networks are, as ``"cuda"``.
        tell: Told of every step, and at every look of accuracy, information (nats) and the regularizer's health.
        corpus: Instead of loading one.

    Raises:
        FloatingPointError: The loss is not finite.
        ValueError: The corpus cannot be used, or the folder holds another run's checkpoint.
    """
    corpus = corpus or corpus_of(settings, data)
    check_held_out(corpus)
    with seeded(settings.seed, device):
        run = Learning(settings, corpus, device)
        run.train(folder, tell)
        return run.finish(folder)


def load_model(folder: Path) -> TextClassifier:
    """Load the model that a run has left in its folder, ready to classify texts."""
    state = read_checkpoint(folder / MODEL)
    if state is None:
        raise FileNotFoundError(f"there is no {folder / MODEL}; expected the folder of a run that has ended")
    model = TextClassifier.of_words(state["words"], Settings.of(state["settings"]), len(state["labels"]))
    model.load_state_dict(state["model"])
    return model.eval()


@final
class Learning(Run):
    """A run on its way."""

    def __init__(self, settings: Settings, corpus: Corpus, device: str = "cpu") -> None:
        super().__init__(settings, device, MODULES, MOVING)
        self.settings, self.corpus = settings, corpus
        self.model = TextClassifier.of(corpus.train.texts, settings, len(corpus.labels)).to(self.device)
        self.rows = {name: self._read(getattr(corpus, name)) for name in ("train", "validation", "test")}
        self.y, self.s = corpus.train.y.to(self.device), corpus.train.s.to(self.device)
        self.kept = _average(self.model, settings.average)
        self.method = make(settings, len(corpus.privates)).to(self.device)
        moving = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.AdamW(moving, lr=settings.lr, weight_decay=settings.weight_decay, fused=True)
        self.seconds, self.order = 0.0, torch.empty(0, dtype=torch.int64)
        self.curves: dict[str, list[float]] = {name: [] for name in CURVES}
        self.best: dict[str, Any] = {"information": math.inf, "step": 0}

    def advance(self) -> None:
        """Take one step of all."""
        begin = time.perf_counter()
        self.optimizer.param_groups[0]["lr"] = self._rate()
        self.model.train()
        rows = self._batch()
        loss = self._loss(self.rows["train"][rows], self.y[rows], self.s[rows])
        if not math.isfinite(loss.item()):
            raise FloatingPointError(f"the loss of step {self.step + 1} is {loss.item()}; a smaller lr may help")
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if isinstance(self.kept, AveragedModel):
            self.kept.update_parameters(self.model)
        self.step += 1
        self.seconds += time.perf_counter() - begin

    def look(self) -> Facts:
        """Judge the model on validation texts, and keep it if its information is the lowest so far."""
        model, part = self._model(), self.corpus.validation
        z = encoded(model, self.rows["validation"])
        information = self.method.measure(z, part.s.to(self.device))
        information = math.inf if information is not None and not math.isfinite(information) else information
        facts = {
            "main_accuracy": accuracy(model, z, part.y.to(self.device)),
            "information": self.method.information() or 0.0,
        }
        for name, value in {"step": self.step, **facts}.items():
            self.curves[name].append(float(value))
        if self._better(information):
            state = copy.deepcopy(model.state_dict())
            self.best = {"information": information, "step": self.step, "model": state}
        return facts | self.method.health()

    def finish(self, folder: Path | None) -> Learned:
        """Judge the chosen model on test texts, and audit what its features tell."""
        model = self._model()
        model.load_state_dict(self.best["model"])
        model.eval()
        held = [getattr(self.corpus, name) for name in ("validation", "test")]
        z, test = (encoded(model, self.rows[name], seed).cpu() for seed, name in enumerate(("validation", "test")))
        z, s, y = torch.cat([z, test]), torch.cat([part.s for part in held]), torch.cat([part.y for part in held])
        found, numbers = leak(z, s, self.corpus, self.settings.seed)
        counts = torch.bincount(held[1].y)
        results = {
            "main_accuracy": accuracy(model.cpu(), test, held[1].y),
            "majority": (counts.max() / counts.sum()).item(),
            "validation_accuracy": accuracy(model, z[: len(held[0])], held[0].y),
            **numbers,
            "truth": self.corpus.information,
            "best_step": self.best["step"],
            "seconds_per_step": self.seconds / self.settings.steps,
            "labels": list(self.corpus.labels),
            "privates": list(self.corpus.privates),
            "notes": list(self.corpus.notes),
            "messages": self.method.messages(),
        }
        if (information := self.method.information()) is not None:
            results["information"] = information
        if folder is not None:
            about = {"words": model.encoder.words(), "settings": self.settings.arguments()}
            write_checkpoint(folder / MODEL, {**about, "labels": results["labels"], "model": model.state_dict()})
            write_audit(folder, found, z, s, y)
            (folder / CHECKPOINT).unlink(missing_ok=True)
        return Learned(model, results, self.curves)

    def _read(self, part: Texts) -> Any:
        return self.model.encoder.read(part.texts).to(self.device)

    def _model(self) -> TextClassifier:
        """The model that is judged: the running average, where there is one."""
        model = self.kept.module if isinstance(self.kept, AveragedModel) else self.kept
        assert isinstance(model, TextClassifier)
        return model

    def _better(self, information: float | None) -> bool:
        """Whether the model of now is to be kept."""
        if self.settings.select == "last" or information is None:
            return self.step == self.settings.steps
        settled = self.step > self.settings.warm_up or self.step == self.settings.steps
        return settled and (information < self.best["information"] or "model" not in self.best)

    def _rate(self) -> float:
        settings = self.settings
        warm = min(1.0, (self.step + 1) / settings.warm_up) if settings.warm_up else 1.0
        return settings.lr * warm * SCHEDULES[settings.schedule]((self.step + 1) / settings.steps)

    def _batch(self) -> Tensor:
        """Numbers of training texts: all of them in random order, then again."""
        size = min(self.settings.batch_size, len(self.y))
        if len(self.order) < size:
            self.order = torch.randperm(len(self.y), generator=self.generator)
        rows, self.order = self.order[:size], self.order[size:]
        return rows.to(self.device)

    def _loss(self, rows: Any, y: Tensor, s: Tensor) -> Tensor:
        z = self.model.noisy(rows)
        loss = cross_entropy(self.model.head(z), y)
        if self.settings.clean and self.settings.method != "none":
            with quiet(self.model.encoder):
                z = self.model.noisy(rows)
        return loss + self.method(z, s)


def _average(model: TextClassifier, momentum: float) -> TextClassifier | AveragedModel:
    """A running average of a model; the model itself where there is no momentum."""
    return AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(momentum)) if momentum else model
