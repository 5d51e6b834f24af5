"""Training: the head's loss and the compression term, one optimiser for all (joint update), the best epoch kept."""

import copy
import math
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple, final

import torch
from torch import Tensor

from infoknife import mi
from infoknife.paper.applications.ib_text.data import load_pairs
from infoknife.paper.applications.ib_text.judge import judged, plane, see
from infoknife.paper.applications.ib_text.layers import splits
from infoknife.paper.applications.ib_text.model import Bottleneck
from infoknife.paper.applications.ib_text.pairs import PairData
from infoknife.paper.applications.ib_text.picture import draw
from infoknife.paper.applications.ib_text.settings import Settings
from infoknife.paper.applications.ib_text.tokens import Rows, batches, read, remembered
from infoknife.paper.applications.pretrained import quiet, tokenizer_of
from infoknife.paper.applications.run import CHECKPOINT, Facts, Run, Tell, seeded

__all__ = ["Tuned", "data_of", "load_model", "tune"]

MODEL, PICTURE = "model", "plane.png"
MODULES = ("model", "optimizer")
MOVING = ("seconds", "curves", "best", "waiting", "stopped", "gaps")
CURVES = ("epoch", "loss", "score", "relevance", "information", "information_vub", "calibration_error")


class Tuned(NamedTuple):
    """What a run gives: the model, numbers for tables, curves for figures."""

    model: Bottleneck
    results: dict[str, Any]
    curves: dict[str, list[float]]


class Plan(NamedTuple):
    """How long a run is."""

    seed: int
    steps: int
    every: int
    identity: dict[str, Any]

    def arguments(self) -> dict[str, Any]:
        """The identity of the run."""
        return self.identity


def data_of(settings: Settings, data: Path | str | None = None) -> PairData:
    """Load the pairs that settings name, from a file or folder of the user's or the hub, and cut them to size."""
    pairs = load_pairs(settings.columns or settings.task, data=data, hub=settings.hub, seed=settings.seed)
    return pairs if settings.train_size is None else pairs.cut(settings.train_size, settings.seed)


def tune(
    settings: Settings,
    *,
    data: Path | str | None = None,
    folder: Path | None = None,
    device: str = "cpu",
    tell: Tell | None = None,
    pairs: PairData | None = None,
) -> Tuned:
    """Fine-tune an encoder with a bottleneck (eq:bottleneck); the epoch that is best on validation pairs is kept.

    Args:
        settings: What is run.
        data: The user's table, or a folder with it.
        folder: Where checkpoints are written, whole or not at all; a run that was killed goes on from there to the
            same result. The model, in Hugging Face's form, and the information plane are left there in the end.
        device: Where the networks are, as ``"cuda"``.
        tell: Told of every step, in hundredths of one of ``settings.epochs``, and at every look of score and
            information (nats).
        pairs: Instead of loading them.

    Raises:
        FloatingPointError: The loss is not finite.
        ValueError: The table cannot be used, or the folder holds another run's checkpoint.
        OSError: The encoder cannot be loaded.
    """
    pairs = pairs or data_of(settings, data)
    with seeded(settings.seed, device):
        run = Tuning(settings, pairs, device)
        run.train(folder, None if tell is None else lambda step, facts: tell(run.hundredths(step), facts))
        return run.finish(folder)


def load_model(folder: Path) -> tuple[Bottleneck, Any]:
    """Load the model that a run has left in its folder, ready for use, and its tokenizer."""
    if not (folder / MODEL).is_dir():
        raise FileNotFoundError(f"there is no {folder / MODEL}; expected the folder of a run that has ended")
    return Bottleneck.from_pretrained(folder / MODEL).train(False), tokenizer_of(str(folder / MODEL))


@final
class Tuning(Run):
    """A run on its way."""

    def __init__(self, settings: Settings, pairs: PairData, device: str = "cpu") -> None:
        self.per_epoch = sum(1 for _ in batches(torch.ones(len(pairs.train)), settings.batch_size, torch.Generator()))
        epochs = max(settings.epochs, -(-settings.least_steps // self.per_epoch))
        every = self.per_epoch * -(-epochs // settings.looks)
        self.plan = Plan(settings.seed, self.per_epoch * epochs, every, settings.arguments())
        super().__init__(self.plan, device, MODULES, MOVING)
        self.settings, self.pairs = settings, pairs
        self.tokenizer = tokenizer_of(settings.encoder)
        self.model = _model(settings, pairs, self.plan.steps)
        torch.nn.Module.to(self.model, self.device)
        self.rows = self._read()
        groups = self.model.parameter_groups(settings.lr, settings.head_lr, settings.estimator_lr)
        self.optimizer = torch.optim.AdamW(groups, weight_decay=settings.weight_decay, fused=True)
        self.rates = [group["lr"] for group in groups]
        self.vub = mi("vub", settings.bottleneck, encoder="gaussian")
        self.seconds, self.stopped = 0.0, 0
        self.curves: dict[str, list[float]] = {name: [] for name in CURVES}
        self.best: dict[str, Any] = {"score": -math.inf, "epoch": 0}
        self.waiting: list[Tensor] = []  # batches that are left of this epoch
        self.gaps: list[float] = []  # how far the estimate is above the variational bound, batch by batch
        self.known: list[Tensor] = []  # posteriors of this epoch
        self.losses: list[float] = []

    def advance(self) -> None:
        """Take one batch, and with the last of some a step of the optimiser."""
        begin = time.perf_counter()
        if not self.waiting:
            self.waiting = list(batches(self.rows["train"].lengths, self.settings.batch_size, self.generator))
        rows = self.waiting.pop()
        train = self.rows["train"]
        self.model.train()
        with self._precision():
            out = self.model(**train.batch(rows, self.device), labels=train.y[rows].to(self.device))
        if not math.isfinite(out.loss.item()):
            raise FloatingPointError(f"the loss of step {self.step + 1} is {out.loss.item()}; a smaller lr may help")
        (out.loss / self.settings.accumulate).backward()
        self.step += 1
        if self.step % self.settings.accumulate == 0 or not self.waiting:
            self._move()
        self._note(out)
        self.seconds += time.perf_counter() - begin

    def look(self) -> Facts:
        """Judge the model on validation pairs, and keep it if its score is the best so far."""
        epoch, seen = self.step // self.per_epoch, see(self.model, self.rows["validation"])
        known = torch.cat(self.known) if self.known else None
        facts = judged(seen, self.pairs.metrics) | plane(self.model, known, seen, self.settings.seed)
        facts = {"epoch": float(epoch), "loss": sum(self.losses) / len(self.losses), **facts}
        for name in CURVES:
            self.curves[name].append(facts.get(name, math.nan))
        if facts["score"] > self.best["score"]:
            self.best = {**facts, "epoch": epoch, "model": copy.deepcopy(self.model.state_dict())}
        elif self.settings.patience and epoch - self.best["epoch"] >= self.settings.patience:
            self.stopped, self.step = epoch, self.plan.steps
        self.known, self.losses = [], []
        return facts

    def hundredths(self, step: int) -> int:
        """Steps in hundredths of one of the epochs that the settings have."""
        return 100 * self.settings.epochs * step // self.plan.steps

    def finish(self, folder: Path | None) -> Tuned:
        """Judge the epoch that was kept, and leave it in the folder."""
        self.model.load_state_dict(self.best.pop("model"))
        self.model.train(False)
        epochs = self.stopped or self.plan.steps // self.per_epoch
        best = {name: value for name, value in self.best.items() if name not in ("loss", "epoch")}
        results = {
            **best,
            "best_epoch": self.best["epoch"],
            "epochs": epochs,
            "test": None,
            "train_rows": len(self.pairs.train),
            "encoder_name": self.model.config.encoder_name,
            "seconds_per_epoch": self.seconds / epochs,
            "notes": [*self.pairs.notes, *self._cut()],
            "messages": [] if self.model.plain else self.model.compression.messages(),
        }
        if self.gaps:
            results |= {"gap_mean": sum(self.gaps) / len(self.gaps), "gap_most": max(self.gaps)}
        if self.pairs.test is not None and self.settings.test:
            rows = read(self.pairs.test, self.tokenizer, self._length())
            results["test"] = judged(see(self.model, rows), self.pairs.metrics)
        if folder is not None:
            with quiet():
                self.model.save_pretrained(folder / MODEL)
                self.tokenizer.save_pretrained(folder / MODEL)
            draw(self.curves, folder / PICTURE)
            (folder / CHECKPOINT).unlink(missing_ok=True)
        return Tuned(self.model, results, self.curves)

    def _read(self) -> dict[str, Rows]:
        parts = {"train": self.pairs.train, "validation": self.pairs.validation}
        rows = {name: read(part, self.tokenizer, self._length()) for name, part in parts.items()}
        layers, encoder = self.settings.layers, self.model.encoder
        if layers is None or self.settings.dropout or not splits(encoder, layers):
            return rows
        return {name: remembered(part, encoder, layers, self.device) for name, part in rows.items()}

    def _length(self) -> int:
        most = getattr(self.model.encoder.config, "max_position_embeddings", self.settings.length)
        return min(self.settings.length, most)

    def _cut(self) -> list[str]:
        total, cut = (sum(found) for found in zip(*((len(r.y), r.truncated) for r in self.rows.values()), strict=True))
        return [f"cut {cut} of {total} pairs to {self._length()} tokens"] if cut else []

    def _move(self) -> None:
        """Take a step of the optimiser."""
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate * self._rate()
        moving = [parameter for group in self.optimizer.param_groups[:2] for parameter in group["params"]]
        torch.nn.utils.clip_grad_norm_(moving, self.settings.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def _rate(self) -> float:
        """Rise in a line, then fall to zero in one."""
        warm = self.settings.warm_up * self.plan.steps
        return min(1.0, self.step / warm if warm else 1.0) * (1 - (self.step - 1) / self.plan.steps)

    def _note(self, out: Any) -> None:
        """Remember the loss, the posteriors, and the estimate beside the variational bound of the same batch."""
        self.losses.append(out.loss.item())
        if out.mean is None:
            return
        posterior = torch.cat([out.mean, out.log_variance], -1).detach().float().cpu()
        self.known.append(posterior)
        self.gaps.append(out.information.item() - self.vub(posterior[:, : self.settings.bottleneck], posterior).item())

    def _precision(self) -> Any:
        if self.settings.precision == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)


def _model(settings: Settings, pairs: PairData, steps: int) -> Bottleneck:
    """A new bottleneck for the task."""
    y = pairs.train.y
    if pairs.regression:
        about: dict[str, Any] = {"num_labels": 1, "problem_type": "regression"}
        about |= {"shift": y.mean().item(), "scale": max(y.std().item(), 1e-6)}
    else:
        assert pairs.labels is not None
        about = {"num_labels": len(pairs.labels), "id2label": dict(enumerate(pairs.labels))}
        about |= {"label2id": {label: code for code, label in enumerate(pairs.labels)}}
    own = ("method", "bottleneck", "samples", "noise", "weight", "layers", "pooling", "dropout", "seed")
    fields = {name: getattr(settings, name) for name in own}
    if settings.pooling == "pair" and pairs.train.second is None:
        fields["pooling"] = "mean"
    ramp = max(1, round(settings.ramp * steps)) if settings.ramp else 0
    return Bottleneck.over(settings.encoder, **fields, ramp_steps=ramp, estimator=settings.estimator, **about)
