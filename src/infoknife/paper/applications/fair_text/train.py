"""Training: the label's cross-entropy and the private attribute's information; then an audit of held-out texts."""

import math
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from infoknife import Audit, audit
from infoknife.atomic import written_whole
from infoknife.paper.applications.fair_text.corpus import Corpus, Texts, load_corpus
from infoknife.paper.applications.fair_text.methods import privacy_term
from infoknife.paper.applications.fair_text.model import TextClassifier, encoded, quiet
from infoknife.paper.applications.fair_text.settings import FairTextSettings
from infoknife.paper.applications.fair_text.synthetic import synthetic
from infoknife.paper.applications.run import (
    SCHEDULES,
    Facts,
    OnProgress,
    Run,
    RunResult,
    read_model,
    seeded,
    write_state,
)

MOST, FOLDS = 4000, 5  # held-out texts that are audited, and folds of the audit


def corpus_of(settings: FairTextSettings, data: Path | str | None = None) -> Corpus:
    """Load the corpus that settings name, from a file or folder of the user's, the hub, or out of nothing.

    Raises:
        ValueError: It cannot be used; also where a private class has too few held-out texts to be audited, which is
            better said before training than after.
    """
    if settings.columns is None:
        return synthetic(seed=settings.seed)
    corpus = load_corpus(settings.columns, data=data, hub=settings.hub, seed=settings.seed)
    check_held_out(corpus)
    return corpus


def check_corpus(settings: FairTextSettings, data: Path | str | None = None) -> None:
    """Raise what would stop a run, before it begins; what is on the hub is not downloaded for that."""
    if settings.hub is None:
        corpus_of(settings, data)


def check_held_out(corpus: Corpus) -> None:
    """Raise where a private class has too few held-out texts to be audited."""
    held = torch.cat([corpus.validation.s, corpus.test.s])
    for name, rows in zip(corpus.privates, torch.bincount(held, minlength=len(corpus.privates)).tolist(), strict=True):
        if rows < FOLDS:
            raise ValueError(
                f"{corpus.name}: {rows} held-out texts are of the private class {name!r}; expected at least {FOLDS} in "
                "validation and test together, so that the audit has one for each fold. Hold out more, or join classes"
            )


def learn(
    settings: FairTextSettings,
    *,
    data: Path | str | None = None,
    folder: Path | None = None,
    device: str = "cpu",
    on_progress: OnProgress | None = None,
    corpus: Corpus | None = None,
) -> RunResult:
    """Train an encoder for the label whose features say little of the private attribute (eq:all_loss).

    The audit's probes see features of validation and test texts alone, which the encoder was not trained on.

    Args:
        settings: What is run.
        data: The user's table, or a folder with it.
        folder: Where checkpoints are written, whole or not at all; a run that was killed goes on from there to the
            same result. Settings, metrics, model, held-out features and pages are left there in the end.
        device: Where the networks are, as ``"cuda"``.
        on_progress: Called after every step; after an evaluation with accuracy, information (nats) and the
            regularizer's health.
        corpus: Instead of loading one.

    Raises:
        FloatingPointError: The loss is not finite.
        ValueError: The corpus cannot be used, or the folder holds another run's checkpoint.
    """
    corpus = corpus or corpus_of(settings, data)
    check_held_out(corpus)
    with seeded(settings.seed, device):
        return FairTextTrainer(settings, corpus, device).run(folder, on_progress)


def load_model(folder: Path) -> TextClassifier:
    """Load the model that a run has left in its folder, ready to classify texts."""
    state = read_model(folder)
    model = TextClassifier(state["words"], FairTextSettings.of(state["settings"]), len(state["labels"]))
    model.load_state_dict(state["model"])
    return model.eval()


@final
class FairTextTrainer(Run):
    """A run of fair text."""

    MODULES = ("model", "kept", "method", "optimizer")
    STATE = ("order",)
    CURVES = ("step", "main_accuracy", "information")

    def __init__(self, settings: FairTextSettings, corpus: Corpus, device: str = "cpu") -> None:
        super().__init__(settings, corpus.digest, steps=settings.steps, every=settings.every, device=device)
        self.settings, self.corpus = settings, corpus
        self.classifier = TextClassifier.of(corpus.train.texts, settings, len(corpus.labels)).to(self.device)
        self.model = self.classifier
        self.rows = {name: self._read(getattr(corpus, name)) for name in ("train", "validation", "test")}
        self.y, self.s = corpus.train.y.to(self.device), corpus.train.s.to(self.device)
        self.kept = _average(self.classifier, settings.average)
        self.method = privacy_term(settings, len(corpus.privates)).to(self.device)
        moving = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.AdamW(moving, lr=settings.lr, weight_decay=settings.weight_decay, fused=True)
        self.rates = [settings.lr]
        self.order = torch.empty(0, dtype=torch.int64)

    def loss(self) -> Tensor:
        """Return the loss of the next batch."""
        rows = self._batch()
        texts, model = self.rows["train"][rows], self.classifier
        z = model.noisy(texts)
        loss = cross_entropy(model.head(z), self.y[rows])
        if self.settings.clean and self.settings.method != "none":
            with quiet(model.encoder):
                z = model.noisy(texts)
        term: Tensor = self.method(z, self.s[rows])
        return loss + term

    def update(self) -> None:
        """Let the optimiser take a step, and the average follow."""
        super().update()
        if isinstance(self.kept, AveragedModel):
            self.kept.update_parameters(self.model)

    def rate(self) -> float:
        """Return the part of the learning rate that this step has."""
        settings = self.settings
        warm = min(1.0, self.step / settings.warm_up) if settings.warm_up else 1.0
        return warm * SCHEDULES[settings.schedule](self.step / settings.steps)

    def judged(self) -> TextClassifier:
        """Return the running average, where there is one."""
        model = self.kept.module if isinstance(self.kept, AveragedModel) else self.kept
        assert isinstance(model, TextClassifier)
        return model

    def evaluate(self) -> Facts:
        """Judge the model on validation texts."""
        model, part = self.judged(), self.corpus.validation
        z = encoded(model, self.rows["validation"])
        measured = self.method.measure(z, part.s.to(self.device))
        self.measured = math.inf if measured is not None and not math.isfinite(measured) else measured
        return {
            "main_accuracy": accuracy(model, z, part.y.to(self.device)),
            "information": self.method.information() or 0.0,
            **self.method.health(),
        }

    def selection(self, facts: Facts) -> float | None:
        """Return the step, so that the last is kept, or how low the information of validation texts is."""
        if self.settings.select == "last" or self.measured is None:
            return float(self.step)
        settled = self.step > self.settings.warm_up or self.step == self.steps
        return -self.measured if settled else None

    def finish(self) -> dict[str, Any]:
        """Judge the chosen model on test texts, and audit what its features tell."""
        self.restore()
        model, (validation, test) = self.judged(), (self.corpus.validation, self.corpus.test)
        z, z_test = (encoded(model, self.rows[name], seed).cpu() for seed, name in enumerate(("validation", "test")))
        self.held_out = {
            **{"z": torch.cat([z, z_test]), "s": torch.cat([validation.s, test.s])},
            "y": torch.cat([validation.y, test.y]),
        }
        self.audit = _audited(self.held_out["z"], self.held_out["s"], self.corpus, self.settings.seed)
        counts = torch.bincount(test.y)
        results = {
            "main_accuracy": accuracy(model.cpu(), z_test, test.y),
            "majority": (counts.max() / counts.sum()).item(),
            "validation_accuracy": accuracy(model, z, validation.y),
            **_leak(self.audit, min(MOST, len(z) + len(z_test))),
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
        return results

    def save_model(self, folder: Path) -> None:
        """Leave the model, the audit's page, and the features for whoever wants to look at them; no text."""
        model = self.judged()
        about = {
            "words": model.encoder.words,
            "settings": self.settings.arguments(),
            "labels": list(self.corpus.labels),
        }
        write_state(folder / "model.pt", {**about, "model": model.state_dict()})
        with written_whole(folder / "audit.html") as file:
            file.write(self.audit.to_html().encode())
        with written_whole(folder / "features.npz") as file:
            z, s, y = (self.held_out[name].numpy() for name in "zsy")
            np.savez_compressed(file, z=z, s=s, y=y)

    def _read(self, part: Texts) -> Any:
        return self.classifier.encoder.read(part.texts).to(self.device)

    def _batch(self) -> Tensor:
        """Return numbers of training texts: all of them in random order, then again."""
        size = min(self.settings.batch_size, len(self.y))
        if len(self.order) < size:
            self.order = torch.randperm(len(self.y), generator=self.generator)
        rows, self.order = self.order[:size], self.order[size:]
        return rows.to(self.device)


@torch.no_grad()
def accuracy(model: TextClassifier, z: Tensor, y: Tensor) -> float:
    """Return the part of features z (N, d) whose label y (N,) the head finds."""
    with quiet(model):
        return (model.head(z).argmax(1) == y).double().mean().item()


def _average(model: TextClassifier, momentum: float) -> TextClassifier | AveragedModel:
    """A running average of a model; the model itself where there is no momentum."""
    return AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(momentum)) if momentum else model


def _audited(z: Tensor, s: Tensor, corpus: Corpus, seed: int) -> Audit:
    """Audit features z (N, d) of texts that the encoder was not trained on, or some thousands of them."""
    rows = torch.randperm(len(z), generator=torch.Generator().manual_seed(seed))[:MOST].sort().values
    privates = np.array(corpus.privates)[s[rows].numpy()]
    return audit(z[rows].numpy(), privates, folds=FOLDS, seed=seed, names=("the private attribute", "the label"))


def _leak(found: Audit, rows: int) -> dict[str, Any]:
    """Return the numbers of an audit of so many rows."""
    return {
        "private_accuracy": found.strongest.balanced_accuracy,
        "private_chance": found.chance,
        "probe": found.strongest.name,
        "probes": {probe.name: probe.balanced_accuracy for probe in found.probes},
        "leak": found.information.value,
        "leak_stderr": found.information.stderr,
        "leak_interval": list(found.interval()),
        "private_entropy": found.entropy,
        "held_out": rows,
    }
