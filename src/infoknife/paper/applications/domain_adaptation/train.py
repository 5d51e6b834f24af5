"""Training: both domains in one batch, evaluated on validation images at times, the best model by the paper's rule."""

import math
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from infoknife.paper.applications.domain_adaptation.data import Domain, Images
from infoknife.paper.applications.domain_adaptation.methods import domain_term
from infoknife.paper.applications.domain_adaptation.metrics import accuracy, confusion, principal_components
from infoknife.paper.applications.domain_adaptation.model import Adapter
from infoknife.paper.applications.domain_adaptation.settings import AdaptationSettings
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

BETAS = (0.5, 0.999)  # of Adam, as the authors ran it
FIRST = 0.1  # of the class to be known before anything is to be forgotten
SMOOTHING = 0.05  # of the running cross-entropy of the class


def adapt(
    settings: AdaptationSettings,
    source: Domain,
    target: Domain,
    *,
    folder: Path | None = None,
    on_progress: OnProgress | None = None,
    device: str = "cpu",
) -> RunResult:
    """Train on labelled images of the source and unlabelled ones of the target (eq:domaine).

    Labels of the target's validation images choose the model, as in the paper; its training labels are never read, and
    its test images are looked at once, when all is over.

    Args:
        settings: What is run.
        source: The domain with labels.
        target: The domain without.
        folder: Where checkpoints are written, whole or not at all; a run that was killed goes on from there to the
            same result. Settings, metrics, model and a page are left there in the end.
        on_progress: Called after every step; after an evaluation with accuracies, information (nats) and the
            regularizer's health.
        device: Where the networks are, as ``"cuda"``.

    Raises:
        FloatingPointError: The loss is not finite.
        ValueError: The domains do not have the same classes, or the folder holds another run's checkpoint.
    """
    if source.classes != target.classes:
        raise ValueError(f"source has classes {source.classes}, target {target.classes}; expected the same ones")
    with seeded(settings.seed, device):
        return AdaptationTrainer(settings, source, target, device).run(folder, on_progress)


def load_model(folder: Path) -> Adapter:
    """Load the model that a run has left in its folder, ready to classify."""
    state = read_model(folder)
    model = Adapter(state["channels"], state["classes"])
    model.load_state_dict(state["model"])
    return model.eval()


@final
class AdaptationTrainer(Run):
    """A run of domain adaptation."""

    MODULES = ("model", "method", "optimizer")
    STATE = ("class_loss", "before")
    CURVES = ("step", "source_accuracy", "target_accuracy", "information")

    def __init__(self, settings: AdaptationSettings, source: Domain, target: Domain, device: str = "cpu") -> None:
        data = f"{source.digest}-{target.digest}"
        super().__init__(settings, data, steps=settings.steps, every=settings.every, device=device)
        self.settings, self.source, self.target = settings, source, target
        self.adapter = Adapter(settings.channels, len(source.classes), settings.sigma, settings.dropout).to(self.device)
        self.model = self.adapter
        self.method = domain_term(settings).to(self.device)
        groups = [{"params": list(self.model.parameters())}, *self.method.parameter_groups(settings.lr)]
        self.optimizer = torch.optim.Adam(groups, lr=settings.lr, betas=BETAS, fused=True)
        self.rates = [group["lr"] for group in self.optimizer.param_groups]
        self.domain = torch.arange(2, device=self.device).repeat_interleave(settings.batch_size)
        self.class_loss = math.log(len(source.classes))  # of one who knows nothing
        self.before = self._features()

    def loss(self) -> Tensor:
        """Return the loss of the next batch."""
        images, y = self._batch()
        model = self.adapter
        z = model.features(images)  # both domains in one batch share the statistics of BatchNorm
        loss = cross_entropy(model.head(z[: len(y)]), y)
        self.class_loss += SMOOTHING * (loss.item() - self.class_loss)
        z_domain = None
        if self.method.needs_domain_features:
            z_domain = model.domain_features(images)
            loss = loss + cross_entropy(model.domain_head(z_domain), self.domain)
        term: Tensor = self.method(z, z_domain, self.domain, self.learned)
        return loss + term

    @property
    def learned(self) -> float:
        """How much of the class is known by now, from 0 to 1; a first tenth is taken for nothing."""
        known = 1 - self.class_loss / math.log(len(self.source.classes))
        return min(1.0, max(0.0, (known - FIRST) / (1 - FIRST)))

    def rate(self) -> float:
        """Return the part of the learning rate that this step has."""
        return SCHEDULES[self.settings.schedule](self.step / self.settings.steps)

    def evaluate(self) -> Facts:
        """Judge the model on validation data."""
        return {
            "source_accuracy": accuracy(self.adapter, self.source.validation),
            "target_accuracy": accuracy(self.adapter, self.target.validation),
            "information": self.method.information() or 0.0,
            **self.method.health(),
        }

    def selection(self, facts: Facts) -> float:
        """Return by what the model is chosen."""
        return facts["target_accuracy"]

    def finish(self) -> dict[str, Any]:
        """Judge the model that was chosen, once."""
        last = accuracy(self.adapter, self.target.test)
        self.restore()
        results = {
            "accuracy": accuracy(self.adapter, self.target.test),
            "last_accuracy": last,
            "best_step": self.best["step"],
            "validation_accuracy": self.best["value"],
            "source_accuracy": accuracy(self.adapter, self.source.test),
            "seconds_per_step": self.seconds / self.settings.steps,
            "classes": list(self.source.classes),
            "confusion": confusion(self.adapter, self.target.test, len(self.source.classes)),
            "features": {"before": self.before, "after": self._features()},
        }
        if (information := self.method.information()) is not None:
            results |= {"information": information, "messages": self.method.messages()}
        return results

    def save_model(self, folder: Path) -> None:
        """Leave the model in a folder."""
        size = {"channels": self.settings.channels, "classes": len(self.source.classes)}
        write_state(folder / "model.pt", {**size, "model": self.model.state_dict()})

    def _batch(self) -> tuple[Tensor, Tensor]:
        """Return images of both domains (2 batch_size, 3, H, W), and the labels of the source's."""
        (x, y), (others, _) = self._drawn(self.source.train), self._drawn(self.target.train)
        return torch.cat([x, others]).to(self.device), y.to(self.device)

    def _drawn(self, images: Images) -> Images:
        rows = torch.randint(len(images.y), (self.settings.batch_size,), generator=self.generator)
        return Images(images.x[rows], images.y[rows])

    def _features(self) -> dict[str, list[float]]:
        return principal_components(self.adapter, self.source.test, self.target.test)
