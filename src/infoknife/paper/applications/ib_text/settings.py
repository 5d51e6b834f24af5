"""What a run is: a task, a method, a seed, and the numbers of a preset."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Self

from infoknife.inputs import check_count, one_of
from infoknife.paper.applications.ib_text.tasks import TASKS, Columns
from infoknife.paper.applications.presets import Identified, chosen

__all__ = ["METHODS", "PRECISIONS", "PRESETS", "Settings"]

METHODS = ("none", "vub", "knife", "club", "infonce", "mine", "nwj", "doe")
PRECISIONS = ("float32", "bfloat16")
POOLINGS = ("pair", "mean", "first")


@dataclass(frozen=True)
class Settings(Identified):
    r"""All that decides what a run gives, beside the texts and the pretrained encoder themselves.

    Args:
        task: One of ``TASKS``, or ``"own"`` with the names of your columns.
        method: ``"none"``: cross-entropy alone; ``"vub"``: the variational bound; or an estimator's name for ``mi``.
        seed: Of everything random.
        label: With ``"own"``: the column Y to learn.
        first: With ``"own"``: the column of the first text.
        second: With ``"own"``: the column of the second one; None if there is one text alone.
        split: With ``"own"``: the column that says train, validation or test.
        regression: With ``"own"``: whether Y is a number instead of a class.
        hub: A repository of the Hugging Face hub, instead of a file.
        train_size: Training pairs that are used, chosen by the seed; all if None.
        encoder: ``"minilm"``, the package's; or a name on the hub, or a folder.
        layers: Upper layers of the encoder that learn; all, and the embeddings, if None.
        pooling: What of the encoder's states are the features: their ``"mean"``, the ``"first"``, or what tells apart a
            ``"pair"`` of texts, see ``BottleneckConfig``; the mean where there is one text.
        dropout: Of the encoder.
        length: Tokens of a pair that are kept.
        test: Whether the kept epoch is judged on test pairs as well, where there are labelled ones.
        bottleneck: Dimension K of z.
        samples: Of the posterior, for each text in training.
        noise: Standard deviation of the posterior before training, of the means' own.
        epochs: Of training.
        least_steps: Batches of training at least: few pairs are seen in more epochs.
        looks: Looks at validation pairs at most, after whole epochs.
        patience: Epochs without a better validation score after which training stops; all epochs if 0.
        batch_size: Pairs of a step.
        accumulate: Steps whose gradients make one step of the optimiser.
        lr: Of AdamW for the encoder.
        head_lr: For what is new.
        weight_decay: Of AdamW.
        warm_up: Part of the training over which the learning rate rises; it falls to zero after that.
        clip: Largest norm of the gradient.
        precision: ``"float32"``, or ``"bfloat16"`` for mixed precision.
        weight: $\lambda$ of ``eq:bottleneck``, in front of I(Z; X) in nats.
        ramp: Part of the training over which $\lambda$ rises in a line from zero.
        estimator: Options of ``mi`` for the method.
        estimator_lr: Learning rate of the estimator; what suits it if None.

    Example:
        >>> Settings.preset("paper", "mrpc", "knife").weight
        1e-05
    """

    task: str = "mrpc"
    method: str = "knife"
    seed: int = 0
    label: str | None = None
    first: str = "sentence1"
    second: str | None = "sentence2"
    split: str = "split"
    regression: bool = False
    hub: str | None = None
    train_size: int | None = None
    encoder: str = "minilm"
    layers: int | None = None
    pooling: str = "first"
    dropout: float = 0.0
    length: int = 128
    test: bool = False
    bottleneck: int = 144
    samples: int = 5
    noise: float = 0.5
    epochs: int = 6
    least_steps: int = 0
    looks: int = 6
    patience: int = 0
    batch_size: int = 32
    accumulate: int = 1
    lr: float = 2e-5
    head_lr: float = 2e-5
    weight_decay: float = 0.01
    warm_up: float = 0.0
    clip: float = 1.0
    precision: str = "float32"
    weight: float = 1e-5
    ramp: float = 1.0
    estimator: Mapping[str, Any] = field(default_factory=dict, hash=False)
    estimator_lr: float | None = None

    def __post_init__(self) -> None:
        known = {"task": (*TASKS, "own"), "method": METHODS, "pooling": POOLINGS, "precision": PRECISIONS}
        for name, names in known.items():
            one_of(name, getattr(self, name), names)
        for name in ("length", "bottleneck", "samples", "epochs", "batch_size", "accumulate", "looks"):
            check_count(name, getattr(self, name))
        for name in ("train_size", "layers"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        for name in ("warm_up", "ramp", "dropout"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; expected a part from 0 to 1")
        for name in ("weight", "weight_decay", "patience", "least_steps"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is {getattr(self, name)}; expected at least 0")
        for name in ("lr", "head_lr", "clip", "noise"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}; expected a number above 0")
        if (self.task == "own") != (self.label is not None):
            raise ValueError(
                f"task is {self.task!r} with label {self.label!r}; expected a label column with task 'own', and none "
                "with a task that has a name"
            )

    @property
    def columns(self) -> Columns | None:
        """The columns of the user's own table; None for a task that has a name."""
        if self.label is None:
            return None
        return Columns(self.label, self.first, self.second, self.split, self.regression)

    @classmethod
    def preset(cls, name: str, task: str, method: str, seed: int = 0, **changes: Any) -> Self:
        """Give the settings of a preset, with changes.

        Args:
            name: ``"paper"``, ``"cpu"`` or ``"quick"``.
            task: One of ``TASKS``, or ``"own"``.
            method: One of ``METHODS``.
            seed: Of everything random.
            **changes: Any field that is not None, in place of the preset's; options of ``estimator`` are added to them.
        """
        one_of("method", method, METHODS)
        return cls(task=task, method=method, seed=seed, **chosen(PRESETS, PRESET_METHODS, name, method, changes))


PAPER: dict[str, Any] = {}  # what the class has
CPU: dict[str, Any] = {
    **{"layers": 2, "pooling": "pair", "lr": 5e-4, "head_lr": 1e-3, "warm_up": 0.1, "noise": 0.3},
    **{"weight": 0.1, "epochs": 2, "least_steps": 96},
}
PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {"paper": PAPER, "cpu": CPU, "quick": CPU | {"epochs": 1, "least_steps": 0, "train_size": 64, "layers": 1}}
)
PLAIN = {"none": {"pooling": "mean", "lr": 1e-3}}  # the best of what was tried for a linear head
PRESET_METHODS: Mapping[str, Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {"paper": {}, "cpu": PLAIN, "quick": PLAIN}
)
