"""Training: both domains in one batch, a look at the validation images at times, the best model by the paper's rule."""

import copy
import math
import time
from pathlib import Path
from typing import Any, NamedTuple, final

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from infoknife.paper.applications.checkpoint import read_checkpoint, write_checkpoint
from infoknife.paper.applications.domain_adaptation.data import Domain, Images
from infoknife.paper.applications.domain_adaptation.judge import accuracy, confusion, principal_components
from infoknife.paper.applications.domain_adaptation.methods import make
from infoknife.paper.applications.domain_adaptation.model import Adapter
from infoknife.paper.applications.domain_adaptation.settings import Settings
from infoknife.paper.applications.run import CHECKPOINT, Facts, Run, Tell, seeded
from infoknife.paper.applications.schedules import SCHEDULES

__all__ = ["Adapted", "adapt", "load_model"]

BETAS = (0.5, 0.999)  # of Adam, as the authors ran it
FIRST = 0.1  # of the class to be known before anything is to be forgotten
SMOOTHING = 0.05  # of the running cross-entropy of the class
MODEL = "model.pt"

MODULES = ("model", "method", "optimizer")
MOVING = ("seconds", "class_loss", "curves", "best", "before")


class Adapted(NamedTuple):
    """What a run gives: the model with the best target validation accuracy, numbers for tables, curves for figures."""

    model: Adapter
    results: dict[str, Any]
    curves: dict[str, list[float]]


def adapt(
    settings: Settings,
    source: Domain,
    target: Domain,
    *,
    folder: Path | None = None,
    tell: Tell | None = None,
    device: str = "cpu",
) -> Adapted:
    """Train on labelled images of the source and unlabelled ones of the target (eq:domaine).

    Labels of the target's validation images choose the model, as in the paper; its training labels are never read, and
    its test images are looked at once, when all is over.

    Args:
        settings: What is run.
        source: The domain with labels.
        target: The domain without.
        folder: Where checkpoints are written, whole or not at all; a run that was killed goes on from there to the
            same result. The model is left there in the end.
        tell: Told of every step, and at every look of accuracies, information (nats) and the regularizer's health.
        device: Where the networks are, as ``"cuda"``.

    Raises:
        FloatingPointError: The loss is not finite.
        ValueError: The domains do not have the same classes, or the folder holds another run's checkpoint.
    """
    if source.classes != target.classes:
        raise ValueError(f"source has classes {source.classes}, target {target.classes}; expected the same ones")
    with seeded(settings.seed, device):
        run = Adapting(settings, source, target, device)
        run.train(folder, tell)
        return run.finish(folder)


def load_model(folder: Path) -> Adapter:
    """Load the model that a run has left in its folder, ready to classify."""
    state = read_checkpoint(folder / MODEL)
    if state is None:
        raise FileNotFoundError(f"there is no {folder / MODEL}; expected the folder of a run that has ended")
    model = Adapter(state["channels"], state["classes"])
    model.load_state_dict(state["model"])
    return model.eval()


@final
class Adapting(Run):
    """A run on its way."""

    def __init__(self, settings: Settings, source: Domain, target: Domain, device: str = "cpu") -> None:
        super().__init__(settings, device, MODULES, MOVING)
        self.settings, self.source, self.target = settings, source, target
        self.model = Adapter(settings.channels, len(source.classes), settings.sigma, settings.dropout).to(self.device)
        self.method = make(settings).to(self.device)
        groups = [{"params": list(self.model.parameters())}, *self.method.parameter_groups(settings.lr)]
        self.optimizer = torch.optim.Adam(groups, lr=settings.lr, betas=BETAS, fused=True)
        self.rates = [group["lr"] for group in self.optimizer.param_groups]
        self.domain = torch.arange(2, device=self.device).repeat_interleave(settings.batch_size)
        self.seconds = 0.0
        self.class_loss = math.log(len(source.classes))  # of one who knows nothing
        self.curves: dict[str, list[float]] = {
            name: [] for name in ("step", "source_accuracy", "target_accuracy", "information")
        }
        self.best: dict[str, Any] = {"accuracy": -1.0}
        self.before = self._features()

    def advance(self) -> None:
        """Take one step of all."""
        begin, settings = time.perf_counter(), self.settings
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate * SCHEDULES[settings.schedule]((self.step + 1) / settings.steps)
        self.model.train()
        self.optimizer.zero_grad()  # first, as a joint update leaves gradients in the estimator on the way
        loss = self._loss(*self._batch())
        if not math.isfinite(loss.item()):
            raise FloatingPointError(f"the loss of step {self.step + 1} is {loss.item()}; a smaller lr may help")
        loss.backward()
        self.optimizer.step()
        self.step += 1
        self.seconds += time.perf_counter() - begin

    @property
    def learned(self) -> float:
        """How much of the class is known by now, from 0 to 1; a first tenth is taken for nothing."""
        known = 1 - self.class_loss / math.log(len(self.source.classes))
        return min(1.0, max(0.0, (known - FIRST) / (1 - FIRST)))

    def _batch(self) -> tuple[Tensor, Tensor]:
        """Images of both domains (2 batch_size, 3, H, W), and the labels of the source's."""
        x, y = self._drawn(self.source.train)
        others, _ = self._drawn(self.target.train)
        return torch.cat([x, others]).to(self.device), y.to(self.device)

    def _drawn(self, images: Images) -> Images:
        rows = torch.randint(len(images.y), (self.settings.batch_size,), generator=self.generator)
        return Images(images.x[rows], images.y[rows])

    def _loss(self, images: Tensor, y: Tensor) -> Tensor:
        model = self.model
        z = model.features(images)  # both domains in one batch share the statistics of BatchNorm
        loss = cross_entropy(model.head(z[: len(y)]), y)
        self.class_loss += SMOOTHING * (loss.item() - self.class_loss)
        z_domain = None
        if self.method.needs_domain_features:
            z_domain = model.domain_features(images)
            loss = loss + cross_entropy(model.domain_head(z_domain), self.domain)
        return loss + self.method(z, z_domain, self.domain, self.learned)

    def look(self) -> Facts:
        """Judge the model on validation images, and keep it if it is the best so far."""
        facts = {
            "source_accuracy": accuracy(self.model, self.source.validation),
            "target_accuracy": accuracy(self.model, self.target.validation),
            "information": self.method.information() or 0.0,
        }
        for name, value in {"step": self.step, **facts}.items():
            self.curves[name].append(float(value))
        if facts["target_accuracy"] > self.best["accuracy"]:
            state = copy.deepcopy(self.model.state_dict())
            self.best = {"accuracy": facts["target_accuracy"], "step": self.step, "model": state}
        return facts | self.method.health()

    def finish(self, folder: Path | None) -> Adapted:
        """Judge the last and the best model on test images, and leave the best one."""
        last = accuracy(self.model, self.target.test)
        self.model.load_state_dict(self.best["model"])
        self.model.eval()
        results = {
            "accuracy": accuracy(self.model, self.target.test),
            "last_accuracy": last,
            "best_step": self.best["step"],
            "validation_accuracy": self.best["accuracy"],
            "source_accuracy": accuracy(self.model, self.source.test),
            "seconds_per_step": self.seconds / self.settings.steps,
            "classes": list(self.source.classes),
            "confusion": confusion(self.model, self.target.test, len(self.source.classes)),
            "features": {"before": self.before, "after": self._features()},
        }
        if (information := self.method.information()) is not None:
            results |= {"information": information, "messages": self.method.messages()}
        if folder is not None:
            size = {"channels": self.settings.channels, "classes": len(self.source.classes)}
            write_checkpoint(folder / MODEL, {**size, "model": self.model.state_dict()})
            (folder / CHECKPOINT).unlink(missing_ok=True)
        return Adapted(self.model, results, self.curves)

    def _features(self) -> dict[str, list[float]]:
        return principal_components(self.model, self.source.test, self.target.test)
