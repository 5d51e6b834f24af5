"""Training: the head's loss and the compression term, one optimiser for all (joint update), the best epoch kept."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor
from typing_extensions import override

from infoknife import distributed, mi
from infoknife.paper.applications.ib_text.data import GLUE, PairData, load_pairs
from infoknife.paper.applications.ib_text.metrics import draw_plane, plane, predict, score
from infoknife.paper.applications.ib_text.model import (
    Bottleneck,
    TokenRows,
    batches,
    can_split,
    read,
    with_lower_states,
)
from infoknife.paper.applications.ib_text.settings import BottleneckSettings
from infoknife.paper.applications.pretrained import quiet, tokenizer_of
from infoknife.paper.applications.run import Facts, OnProgress, Run, RunResult, SelectionRule, local_rows, seeded

MODEL, PICTURE = "model", "plane.png"


def data_of(settings: BottleneckSettings, data: Path | str | None = None) -> PairData:
    """Load the pairs that settings name, and cut them to size.

    They come from a file or folder of the user's or the hub; a task of GLUE without either from the hub.
    """
    hub = settings.hub or (GLUE if data is None and settings.columns is None else None)
    pairs = load_pairs(settings.columns or settings.task, data=data, hub=hub, seed=settings.seed)
    if settings.selection_size is not None:
        pairs = pairs.separated(settings.selection_size, settings.seed)
    return pairs if settings.train_size is None else pairs.cut(settings.train_size, settings.seed)


def tune(
    settings: BottleneckSettings,
    *,
    data: Path | str | None = None,
    folder: Path | None = None,
    device: str = "cpu",
    on_progress: OnProgress | None = None,
    pairs: PairData | None = None,
) -> RunResult:
    """Fine-tune an encoder with a bottleneck (eq:bottleneck); the epoch that is best on validation pairs is kept.

    As ``Run.run``, but ``on_progress`` counts hundredths of one of ``settings.epochs``; the folder has the model in
    Hugging Face's form and the information plane. Pairs may be given instead of their ``data``, the user's table or a
    folder with it.
    """
    pairs = pairs or data_of(settings, data)
    with seeded(settings.seed, device):
        trainer = BottleneckTrainer(settings, pairs, device)
        tell = on_progress
        return trainer.run(folder, None if tell is None else lambda step, facts: tell(trainer.hundredths(step), facts))


def load_model(folder: Path) -> tuple[Bottleneck, Any]:
    """Load the model that a run has left in its folder, ready for use, and its tokenizer."""
    if not (folder / MODEL).is_dir():
        raise FileNotFoundError(f"there is no {folder / MODEL}; expected the folder of a run that has ended")
    return Bottleneck.from_pretrained(folder / MODEL).train(False), tokenizer_of(str(folder / MODEL))


@final
class BottleneckTrainer(Run):
    """A run of fine-tuning through a bottleneck; a step is a batch."""

    MODULES = ("model", "optimizer")
    STATE = ("waiting", "gaps")
    CURVES = ("epoch", "loss", "score", "relevance", "information", "information_vub", "calibration_error")
    RULES = (SelectionRule("validation", "score", 1, "labels of validation pairs"),)

    def __init__(
        self,
        settings: BottleneckSettings,
        pairs: PairData,
        device: str = "cpu",
        rows: dict[str, TokenRows] | None = None,
    ) -> None:
        self.per_epoch = sum(1 for _ in batches(torch.ones(len(pairs.train)), settings.batch_size, torch.Generator()))
        epochs = max(settings.epochs, -(-settings.least_steps // self.per_epoch))
        every = self.per_epoch * -(-epochs // settings.looks)
        super().__init__(settings, pairs.digest, steps=self.per_epoch * epochs, every=every, device=device)
        self.settings, self.pairs = settings, pairs
        self.tokenizer = tokenizer_of(settings.encoder)
        self.bottleneck = _bottleneck(settings, pairs, self.steps)
        self.model = self.bottleneck
        if self.bottleneck.compression is not None:
            self.regularizer = self.bottleneck.compression.regularizer
        torch.nn.Module.to(self.model, self.device)
        self.rows = {} if rows is None else rows  # those that are given were read by a run with the same frozen layers
        for name in ("train", "validation"):
            self._rows(name)
        groups = self.bottleneck.parameter_groups(settings.lr, settings.head_lr, settings.estimator_lr)
        self.optimizer = torch.optim.AdamW(groups, weight_decay=settings.weight_decay, fused=True)
        self.rates = [group["lr"] for group in groups]
        self.vub = mi("vub", settings.bottleneck, encoder="gaussian")
        self.waiting: list[Tensor] = []  # batches that are left of this epoch
        self.gaps: list[float] = []  # how far the estimate is above the variational bound, batch by batch
        self.known: list[Tensor] = []  # posteriors of this epoch
        self.losses: list[float] = []

    @override
    def loss(self) -> Tensor:
        train = self.rows["train"]
        if not self.waiting:
            self.waiting = list(batches(train.lengths, self.settings.batch_size, self.generator))
        rows = local_rows(self.waiting.pop())
        half = self.settings.precision == "bfloat16"
        with torch.autocast(self.device.type, dtype=torch.bfloat16) if half else nullcontext():
            out = self.model(**train.batch(rows, self.device), labels=train.y[rows].to(self.device))
        self.losses.append(distributed.batch_mean(out.loss.detach()[None]).item())
        if out.mean is not None:
            posterior = torch.cat([out.mean, out.log_variance], -1).detach().float()
            self.known.append(distributed.all_rows(posterior)[0].cpu())
        if out.information is not None:
            bound = self.vub(self.known[-1][:, : self.settings.bottleneck], self.known[-1]).item()
            self.gaps.append(out.information.item() - bound)
        return out.loss / self.settings.accumulate

    @override
    def update(self) -> None:
        if self.step % self.settings.accumulate == 0 or not self.waiting:
            moving = [parameter for group in self.optimizer.param_groups[:2] for parameter in group["params"]]
            torch.nn.utils.clip_grad_norm_(moving, self.settings.clip)
            super().update()

    @override
    def rate(self) -> float:
        warm = self.settings.warm_up * self.steps
        return min(1.0, self.step / warm if warm else 1.0) * (1 - (self.step - 1) / self.steps)

    @override
    def evaluate(self) -> Facts:
        predicted = predict(self.bottleneck, self.rows["validation"])
        known = torch.cat(self.known) if self.known else None
        facts = {
            **{"epoch": float(self.step // self.per_epoch), "loss": sum(self.losses) / len(self.losses)},
            **score(predicted, self.pairs.metrics),
            **plane(self.bottleneck, known, predicted, self.settings.seed),
        }
        self.known, self.losses = [], []
        return facts

    @override
    def should_stop(self) -> bool:
        patience = self.settings.patience
        return patience > 0 and (self.step - self.best["step"]) // self.per_epoch >= patience

    def hundredths(self, step: int) -> int:
        """Return steps in hundredths of one of the epochs that the settings have."""
        return 100 * self.settings.epochs * step // self.steps

    @override
    def finish(self) -> dict[str, Any]:
        self.restore()
        epochs = (self.stopped or self.steps) // self.per_epoch
        best = {name: value for name, value in self.best["facts"].items() if name not in ("loss", "epoch")}
        parts = [self.rows[name] for name in ("train", "validation")]
        total, longer = sum(len(part.y) for part in parts), sum(part.truncated for part in parts)
        cut = [f"cut {longer} of {total} pairs to {self._length()} tokens"] if longer else []
        results = {
            **best,
            "best_epoch": self.best["step"] // self.per_epoch,
            "epochs": epochs,
            "test": None,
            "train_rows": len(self.pairs.train),
            "encoder_name": self.bottleneck.config.encoder_name,
            "seconds_per_epoch": self.seconds / epochs,
            "notes": [*self.pairs.notes, *cut],
            "messages": self.about_regularizer().get("messages", []),
        }
        if self.gaps:
            results |= {"gap_mean": sum(self.gaps) / len(self.gaps), "gap_most": max(self.gaps)}
        if self.pairs.test is not None and self.settings.test:
            results["test"] = self._tested()
        return results

    @override
    def test(self, rule: SelectionRule) -> dict[str, Any]:
        if self.pairs.test is None:
            raise ValueError(f"{self.pairs.name} has no labelled test pairs; set selection_size, or give some")
        self.restore(rule)
        return self._tested()

    def _tested(self) -> dict[str, float]:
        return score(predict(self.bottleneck, self._rows("test")), self.pairs.metrics)

    @override
    def save_model(self, folder: Path) -> None:
        with quiet():
            self.bottleneck.save_pretrained(folder / MODEL)
            self.tokenizer.save_pretrained(folder / MODEL)
        draw_plane(self.curves, folder / PICTURE)

    def _rows(self, name: str) -> TokenRows:
        """Read the texts of a split, once, with what the layers that do not learn make of them."""
        if name not in self.rows:
            rows = read(getattr(self.pairs, name), self.tokenizer, self._length())
            layers, encoder = self.settings.layers, self.bottleneck.encoder
            if layers is not None and not self.settings.dropout and can_split(encoder, layers):
                rows = with_lower_states(rows, encoder, layers, self.device)
            self.rows[name] = rows
        return self.rows[name]

    def _length(self) -> int:
        most = getattr(self.bottleneck.encoder.config, "max_position_embeddings", self.settings.length)
        return min(self.settings.length, most)


def _bottleneck(settings: BottleneckSettings, pairs: PairData, steps: int) -> Bottleneck:
    """A new bottleneck for the task."""
    y = pairs.train.y
    if pairs.labels is None:
        about: dict[str, Any] = {"num_labels": 1, "problem_type": "regression"}
        about |= {"shift": y.mean().item(), "scale": max(y.std().item(), 1e-6)}
    else:
        about = {"num_labels": len(pairs.labels), "id2label": dict(enumerate(pairs.labels))}
        about |= {"label2id": {label: code for code, label in enumerate(pairs.labels)}}
    own = ("method", "bottleneck", "samples", "noise", "weight", "layers", "pooling", "dropout", "seed")
    fields = {name: getattr(settings, name) for name in own}
    if settings.pooling == "pair" and pairs.train.second is None:
        fields["pooling"] = "mean"
    ramp = max(1, round(settings.ramp * steps)) if settings.ramp else 0
    return Bottleneck.over(settings.encoder, **fields, ramp_steps=ramp, estimator=settings.estimator, **about)
