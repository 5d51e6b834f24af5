"""Training: the label's cross-entropy and the private attribute's information; then an audit of held-out texts."""

import math
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from typing_extensions import override

from infoknife import Audit, Regularizer, annealed, audit, distributed, mi
from infoknife.atomic import write_text, written_whole
from infoknife.paper.applications.fair_text.data import Corpus, load_corpus, synthetic
from infoknife.paper.applications.fair_text.model import TextClassifier, encode, erase_private_attribute
from infoknife.paper.applications.fair_text.settings import RULES, FairTextSettings
from infoknife.paper.applications.pretrained import library
from infoknife.paper.applications.run import (
    SCHEDULES,
    Facts,
    OnProgress,
    Run,
    RunResult,
    SelectionRule,
    evaluating,
    local_rows,
    read_model,
    seeded,
    write_state,
)

START = 0.1  # of the weight, where the multiplier of a limit begins: a limit that is not kept yet counts eleven times
MOST, FOLDS = 4000, 5  # held-out texts that are audited, and folds of the audit
TREES, BINS = 50, 63  # of the probe that a rule of selection asks; bins as the audit has them


def corpus_of(settings: FairTextSettings, data: Path | str | None = None) -> Corpus:
    """Load the corpus that settings name, from a file or folder of the user's, the hub, or out of nothing.

    A private class with too few held-out texts to be audited is a ``ValueError``: better before training than after.
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
    """Train an encoder for the label whose features say little of the private attribute (eq:all_loss); see ``Run.run``.

    The audit's probes see features of validation and test texts alone, which the encoder was not trained on. The folder
    has ``model.pt``, the held-out features and the page of the audit. A corpus may be given instead of its ``data``,
    the user's table or a folder with it.
    """
    corpus = corpus or corpus_of(settings, data)
    check_held_out(corpus)
    with seeded(settings.seed, device):
        return FairTextTrainer(settings, corpus, device).run(folder, on_progress)


def private_regularizer(settings: FairTextSettings, classes: int) -> Regularizer | None:
    r"""Make what keeps $\lambda I(\Phi(X); S)$ in the loss (``eq:all_loss``), or the information at most somewhere.

    Without one an encoder leaks what nobody keeps from it, or what LEACE erases once it is trained.
    """
    if settings.method in ("none", "leace"):
        return None
    weight: float | annealed = settings.weight
    if settings.at_most is not None:
        weight = START * settings.weight
    elif settings.ramp > 0:
        weight = annealed(settings.weight, max(1, int(settings.ramp * settings.steps)))
    return Regularizer(
        mi(settings.method, settings.features, y_classes=classes, **settings.estimator),
        lr=settings.estimator_lr,
        weight=weight,
        at_most=settings.at_most,
        warn=False,  # the results say it
        seed=settings.seed,
    )


def load_model(folder: Path) -> TextClassifier:
    """Load the model that a run has left in its folder, ready to classify texts."""
    state = read_model(folder)
    model = TextClassifier(state["words"], FairTextSettings.of(state["settings"]), len(state["labels"]))
    model.load_state_dict(state["model"])
    return model.eval()


@final
class FairTextTrainer(Run):
    """A run of fair text."""

    MODULES = ("model", "kept", "regularizer", "optimizer")
    STATE = ("order",)
    CURVES = ("step", "main_accuracy", "information")
    RULES = RULES

    def __init__(
        self,
        settings: FairTextSettings,
        corpus: Corpus,
        device: str = "cpu",
        rules: tuple[SelectionRule, ...] = (),
    ) -> None:
        how: dict[str, Any] = {"steps": settings.steps, "every": settings.every, "device": device, "rules": rules}
        super().__init__(settings, corpus.digest, **how)
        self.settings, self.corpus = settings, corpus
        self.classifier = TextClassifier.of(corpus.train.texts, settings, len(corpus.labels)).to(self.device)
        self.model = self.classifier
        self.rows = {
            name: self.classifier.encoder.read(getattr(corpus, name).texts).to(self.device)
            for name in ("train", "validation", "test")
        }
        self.y, self.s = corpus.train.y.to(self.device), corpus.train.s.to(self.device)
        self.kept: TextClassifier | AveragedModel = self.classifier
        if settings.average:
            self.kept = AveragedModel(self.classifier, multi_avg_fn=get_ema_multi_avg_fn(settings.average))
        if (regularizer := private_regularizer(settings, len(corpus.privates))) is not None:
            self.regularizer = regularizer.to(self.device)
        moving = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.AdamW(moving, lr=settings.lr, weight_decay=settings.weight_decay, fused=True)
        self.rates = [settings.lr]
        self.order = torch.empty(0, dtype=torch.int64)

    @override
    def loss(self) -> Tensor:
        rows = self._batch()
        texts, model = self.rows["train"][rows], self.classifier
        z = model.noisy(texts)
        loss = cross_entropy(model.head(z), self.y[rows]) * distributed.share(len(rows), self.device)
        if self.regularizer is None:
            return loss
        if self.settings.clean:
            with evaluating(model.encoder):
                z = model.noisy(texts)
        self.regularizer.step(z, self.s[rows])
        return loss + self.regularizer(z, self.s[rows])

    @override
    def update(self) -> None:
        super().update()
        if isinstance(self.kept, AveragedModel):
            self.kept.update_parameters(self.model)

    @override
    def rate(self) -> float:
        settings = self.settings
        warm = min(1.0, self.step / settings.warm_up) if settings.warm_up else 1.0
        return warm * SCHEDULES[settings.schedule](self.step / settings.steps)

    @override
    def evaluated_model(self) -> TextClassifier:
        model = self.kept.module if isinstance(self.kept, AveragedModel) else self.kept
        assert isinstance(model, TextClassifier)
        return model

    @override
    def evaluate(self) -> Facts:
        model, part, last = self.evaluated_model(), self.corpus.validation, self.step == self.steps
        if last and self.settings.method == "leace":
            erase_private_attribute(model, self.rows["train"], self.y, self.s)
        z = encode(model, self.rows["validation"])
        facts = {"main_accuracy": accuracy(model, z, part.y.to(self.device)), **self.health()}
        if self.regularizer is not None and (last or self.step > self.settings.warm_up):
            measured = self.regularizer.measure(z, part.s.to(self.device))
            facts["held_out_information"] = measured if math.isfinite(measured) else math.inf
        if last and any(rule.fact == "margin" for rule in self.rules):
            seen = encode(model, self.rows["train"], seed=1).cpu()
            facts["probe_accuracy"] = probe_accuracy(seen, self.corpus.train.s, z.cpu(), part.s)
            facts["margin"] = facts["main_accuracy"] - facts["probe_accuracy"]
        return facts

    @override
    def finish(self) -> dict[str, Any]:
        self.restore()
        model, (validation, test) = self.evaluated_model(), (self.corpus.validation, self.corpus.test)
        z, z_test = (encode(model, self.rows[name], seed).cpu() for seed, name in enumerate(("validation", "test")))
        self.held_out = {
            **{"z": torch.cat([z, z_test]), "s": torch.cat([validation.s, test.s])},
            "y": torch.cat([validation.y, test.y]),
        }
        self.audit = _audit(self.held_out["z"], self.held_out["s"], self.corpus, self.settings.seed)
        counts = torch.bincount(test.y)
        return {
            "main_accuracy": accuracy(model.cpu(), z_test, test.y),
            "majority": (counts.max() / counts.sum()).item(),
            "validation_accuracy": accuracy(model, z, validation.y),
            **group_gaps(predicted(model, z_test), test.y, test.s),
            **_leakage(self.audit, min(MOST, len(z) + len(z_test))),
            "truth": self.corpus.information,
            "best_step": self.best["step"],
            "seconds_per_step": self.seconds / self.settings.steps,
            "labels": list(self.corpus.labels),
            "privates": list(self.corpus.privates),
            "notes": list(self.corpus.notes),
            "messages": [],
            **self.about_regularizer(),
        }

    @override
    def test(self, rule: SelectionRule) -> dict[str, Any]:
        self.restore(rule)
        model, test = self.evaluated_model(), self.corpus.test
        z = encode(model, self.rows["test"], seed=1).cpu()
        found = _audit(z, test.s, self.corpus, self.settings.seed)
        gaps = group_gaps(predicted(model, z), test.y, test.s)
        return {"main_accuracy": accuracy(model, z, test.y), **gaps, **_leakage(found, min(MOST, len(z)))}

    @override
    def save_model(self, folder: Path) -> None:
        model = self.evaluated_model()
        about = {"words": model.encoder.words, "settings": self.settings.arguments()}
        labels = {"labels": list(self.corpus.labels)}
        write_state(folder / "model.pt", {**about, **labels, "model": model.state_dict()})
        write_text(folder / "audit.html", self.audit.to_html())
        with written_whole(folder / "features.npz", private=True) as file:  # rows, and their private classes
            z, s, y = (self.held_out[name].numpy() for name in "zsy")
            np.savez_compressed(file, z=z, s=s, y=y)

    def _batch(self) -> Tensor:
        """Return this rank's numbers of training texts: all of them in random order, then again."""
        size = min(self.settings.batch_size, len(self.y))
        if len(self.order) < size:
            self.order = torch.randperm(len(self.y), generator=self.generator)
        rows, self.order = self.order[:size], self.order[size:]
        return local_rows(rows).to(self.device)


@torch.no_grad()
def predicted(model: TextClassifier, z: Tensor) -> Tensor:
    """Return the labels (N,) that the head finds in features z (N, d)."""
    with evaluating(model):
        return model.head(z).argmax(1)


def accuracy(model: TextClassifier, z: Tensor, y: Tensor) -> float:
    """Return the part of features z (N, d) whose label y (N,) the head finds."""
    return (predicted(model, z) == y).double().mean().item()


def group_gaps(found: Tensor, y: Tensor, s: Tensor) -> dict[str, float]:
    r"""Return how differently groups are treated: the largest difference between two of them, over all labels c.

    For predicted labels ``found``, labels y and groups s, all (N,), ``parity_gap`` is that of
    $P(\hat y = c \mid s)$ (demographic parity), ``true_positive_gap`` that of $P(\hat y = c \mid y = c, s)$ (equal
    opportunity), where a group has such rows.

    Examples:
        >>> group_gaps(torch.tensor([1, 1, 0, 1]), torch.tensor([1, 1, 1, 1]), torch.tensor([0, 0, 1, 1]))
        {'parity_gap': 0.5, 'true_positive_gap': 0.5}
    """
    gaps = {"parity_gap": 0.0, "true_positive_gap": 0.0}
    groups = s.unique().tolist()
    for label in y.unique().tolist():
        for name, inside in (("parity_gap", torch.ones_like(y, dtype=torch.bool)), ("true_positive_gap", y == label)):
            rows = [inside & (s == group) for group in groups]
            rates = [(found[mask] == label).double().mean().item() for mask in rows if mask.any()]
            gaps[name] = max(gaps[name], max(rates) - min(rates))
    return gaps


def probe_accuracy(z: Tensor, s: Tensor, z_new: Tensor, s_new: Tensor) -> float:
    """Return the balanced accuracy of the stronger of two probes, linear and boosted trees, on rows of their own."""
    ensemble, linear = library("sklearn.ensemble", "fair-text"), library("sklearn.linear_model", "fair-text")
    score = library("sklearn.metrics").balanced_accuracy_score
    trees = ensemble.HistGradientBoostingClassifier(
        max_iter=TREES, max_bins=BINS, class_weight="balanced", random_state=0
    )
    probes = (linear.LogisticRegression(max_iter=200, class_weight="balanced"), trees)
    return max(float(score(s_new, probe.fit(z.numpy(), s).predict(z_new.numpy()))) for probe in probes)


def _audit(z: Tensor, s: Tensor, corpus: Corpus, seed: int) -> Audit:
    """Audit features z (N, d) of texts that the encoder was not trained on, or some thousands of them."""
    rows = torch.randperm(len(z), generator=torch.Generator().manual_seed(seed))[:MOST].sort().values
    privates = np.array(corpus.privates)[s[rows].numpy()]
    return audit(z[rows].numpy(), privates, folds=FOLDS, seed=seed, names=("the private attribute", "the label"))


def _leakage(found: Audit, rows: int) -> dict[str, Any]:
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
