"""Training: both domains in one batch, evaluated on validation images at times, the best model by the paper's rule."""

import math
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from typing_extensions import override

from infoknife import distributed
from infoknife.paper.applications.domain_adaptation.data import Domain, Images
from infoknife.paper.applications.domain_adaptation.methods import InformationTerm, domain_term
from infoknife.paper.applications.domain_adaptation.model import (
    Adapter,
    accuracy,
    confusion,
    entropy_of_predictions,
    logits,
    neighbourhood_density,
    principal_components,
)
from infoknife.paper.applications.domain_adaptation.settings import RULES, AdaptationSettings
from infoknife.paper.applications.run import (
    SCHEDULES,
    Facts,
    OnProgress,
    Run,
    RunResult,
    SelectionRule,
    local_rows,
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
    """Train on labelled images of the source and unlabelled ones of the target (eq:domaine); see ``Run.run``.

    Labels of the target's validation images choose the model, as in the paper; its training labels are never read, and
    its test images are used once, at the very end. The model is left in ``model.pt`` of the folder.
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
    RULES = RULES

    def __init__(
        self,
        settings: AdaptationSettings,
        source: Domain,
        target: Domain,
        device: str = "cpu",
        rules: tuple[SelectionRule, ...] = (),
    ) -> None:
        data = f"{source.digest}-{target.digest}"
        super().__init__(settings, data, steps=settings.steps, every=settings.every, device=device, rules=rules)
        self.settings, self.source, self.target = settings, source, target
        self.adapter = Adapter(settings.channels, len(source.classes), settings.sigma, settings.dropout).to(self.device)
        self.model = self.adapter
        self.method = domain_term(settings).to(self.device)
        if isinstance(self.method, InformationTerm):
            self.regularizer = self.method.regularizer
        groups = [{"params": list(self.model.parameters())}, *self.method.parameter_groups(settings.lr)]
        self.optimizer = torch.optim.Adam(groups, lr=settings.lr, betas=BETAS, fused=True)
        self.rates = [group["lr"] for group in self.optimizer.param_groups]
        self.class_loss = math.log(len(source.classes))  # of one who knows nothing
        self.before = self._features()

    @override
    def loss(self) -> Tensor:
        (x, y), (others, _) = self._draw_batch(self.source.train), self._draw_batch(self.target.train)
        images, y, model = torch.cat([x, others]).to(self.device), y.to(self.device), self.adapter
        z = model.features(images)  # both domains in one batch share the statistics of BatchNorm
        loss = cross_entropy(model.head(z[: len(y)]), y) * (share := distributed.share(len(y), self.device))
        domain = torch.arange(2, device=self.device).repeat_interleave(len(y))
        self.class_loss += SMOOTHING * (distributed.batch_mean(loss.detach()[None]).item() - self.class_loss)
        z_domain = None
        if self.method.needs_domain_features:
            z_domain = model.domain_features(images)
            loss = loss + cross_entropy(model.domain_head(z_domain), domain) * share
        term: Tensor = self.method(z, z_domain, domain, self.learned)
        return loss + term

    @property
    def learned(self) -> float:
        """How much of the class is known by now, from 0 to 1; a first tenth is taken for nothing."""
        known = 1 - self.class_loss / math.log(len(self.source.classes))
        return min(1.0, max(0.0, (known - FIRST) / (1 - FIRST)))

    @override
    def rate(self) -> float:
        return SCHEDULES[self.settings.schedule](self.step / self.settings.steps)

    @override
    def evaluate(self) -> Facts:
        source, target = self.source.validation, self.target.validation
        found = logits(self.adapter, target)
        return {
            "source_accuracy": accuracy(logits(self.adapter, source), source.y),
            "target_accuracy": accuracy(found, target.y),
            "prediction_entropy": entropy_of_predictions(found),
            "neighbourhood_density": neighbourhood_density(found),
            **self.health(),
        }

    @override
    def finish(self) -> dict[str, Any]:
        source, target = self.source.test, self.target.test
        last = accuracy(logits(self.adapter, target), target.y)
        self.restore()
        found = logits(self.adapter, target)
        return {
            "accuracy": accuracy(found, target.y),
            "last_accuracy": last,
            "best_step": self.best["step"],
            "validation_accuracy": self.best["facts"]["target_accuracy"],
            "source_accuracy": accuracy(logits(self.adapter, source), source.y),
            "seconds_per_step": self.seconds / self.settings.steps,
            "classes": list(self.source.classes),
            "confusion": confusion(found, target.y),
            "features": {"before": self.before, "after": self._features()},
            **self.about_regularizer(),
        }

    @override
    def test(self, rule: SelectionRule) -> dict[str, Any]:
        self.restore(rule)
        return {"accuracy": accuracy(logits(self.adapter, self.target.test), self.target.test.y)}

    @override
    def save_model(self, folder: Path) -> None:
        size = {"channels": self.settings.channels, "classes": len(self.source.classes)}
        write_state(folder / "model.pt", {**size, "model": self.model.state_dict()})

    def _draw_batch(self, images: Images) -> Images:
        rows = local_rows(torch.randint(len(images.y), (self.settings.batch_size,), generator=self.generator))
        return Images(images.x[rows], images.y[rows])

    def _features(self) -> dict[str, list[float]]:
        return principal_components(self.adapter, self.source.test, self.target.test)
