"""What a run is: a corpus, a method, a seed, and the numbers of a preset."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Self

from infoknife.inputs import check_count, one_of
from infoknife.paper.applications.fair_text.corpus import Columns
from infoknife.paper.applications.fair_text.data import CORPORA
from infoknife.paper.applications.presets import Identified, chosen
from infoknife.paper.applications.schedules import SCHEDULES

__all__ = ["METHODS", "PRESETS", "Settings"]

METHODS = ("none", "knife", "club", "infonce", "nwj", "doe", "mine", "adv")
NAMES = ("synthetic", *CORPORA, "own")
PARTS = ("dropout", "word_dropout", "average", "ramp")  # from 0 to less than 1
SELECT = ("last", "lowest-information")


@dataclass(frozen=True)
class Settings(Identified):
    r"""All that decides what a run gives, beside the texts themselves.

    Args:
        corpus: ``"synthetic"``, one of ``CORPORA``, or ``"own"`` with the names of your columns.
        method: ``"none"``, or an estimator's name for ``mi``; ``"adv"`` is the adversary.
        seed: Of everything random.
        label: With ``"own"``: the column Y to learn.
        private: With ``"own"``: the column S to hide.
        text: With ``"own"``: the column of texts.
        split: With ``"own"``: the column that says train, validation or test.
        strip: With ``"own"``: tokens to take out of every text.
        balance: With ``"own"``: whether all pairs (y, s) get the same number of rows.
        hub: With ``"own"``: a repository of the Hugging Face hub, instead of a file.
        encoder: ``"gru"``, ``"bag"`` or ``"minilm"``.
        fine_tune: Whether a pretrained encoder learns as well.
        embedding: Numbers of an embedding of words or pieces.
        features: Numbers of the features Z.
        hidden: Width of the head's hidden layer.
        dropout: Part of the numbers that are dropped in the head, and between the layers of the encoder.
        word_dropout: Part of the pieces of a text that a bag leaves out in training.
        noise: Deviation of the Gaussian noise that is a part of the features, in training and ever after.
        steps: Of training.
        batch_size: Texts of a step.
        lr: Of AdamW; the largest of a cycle.
        weight_decay: Of AdamW.
        schedule: Of the learning rate: ``"constant"`` or ``"cycle"``.
        warm_up: Steps over which the learning rate rises from zero, beside the schedule.
        average: Momentum of the running average of the model that is kept; 0 for the model itself.
        weight: $\lambda$ of ``eq:all_loss``, in front of the information in nats.
        at_most: Nats that I(Z; S) may have, instead of a weight: a multiplier sees to it.
        ramp: Part of the training over which $\lambda$ rises from zero.
        estimator: Options of ``mi`` for the method.
        estimator_lr: Learning rate of the estimator; what suits it if None.
        clean: Whether the information is that of features without dropout, as they are used later.
        select: The model that is kept: the ``"last"``, or that of ``"lowest-information"`` on validation texts.
        every: Steps between two looks at the validation texts, and between checkpoints.

    Example:
        >>> Settings.preset("paper", "dial-sentiment", "knife").steps
        30000
    """

    corpus: str = "synthetic"
    method: str = "knife"
    seed: int = 0
    label: str | None = None
    private: str | None = None
    text: str = "text"
    split: str = "split"
    strip: tuple[str, ...] = ()
    balance: bool = False
    hub: str | None = None
    encoder: str = "gru"
    fine_tune: bool = False
    embedding: int = 128
    features: int = 256
    hidden: int = 256
    dropout: float = 0.2
    word_dropout: float = 0.0
    noise: float = 0.0
    steps: int = 30_000
    batch_size: int = 128
    lr: float = 1e-4
    weight_decay: float = 0.01
    schedule: str = "constant"
    warm_up: int = 0
    average: float = 0.0
    weight: float = 1.0
    at_most: float | None = None
    ramp: float = 0.0
    estimator: Mapping[str, Any] = field(default_factory=dict, hash=False)
    estimator_lr: float | None = None
    clean: bool = False
    select: str = "last"
    every: int = 500

    def __post_init__(self) -> None:
        for name, known in (("corpus", NAMES), ("method", METHODS), ("schedule", tuple(SCHEDULES)), ("select", SELECT)):
            one_of(name, getattr(self, name), known)
        one_of("encoder", self.encoder, ("gru", "bag", "minilm"))
        for name in ("embedding", "features", "hidden", "steps", "batch_size", "every"):
            check_count(name, getattr(self, name))
        for name in PARTS:
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; expected a part from 0 to less than 1")
        for name in ("noise", "weight", "weight_decay", "warm_up", "at_most"):
            if (getattr(self, name) or 0) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; expected at least 0")
        if self.lr <= 0:
            raise ValueError(f"lr is {self.lr}; expected a number above 0")
        self._check_columns()
        object.__setattr__(self, "strip", tuple(self.strip))

    def _check_columns(self) -> None:
        named = self.label is not None and self.private is not None
        if (self.corpus == "own") != named:
            raise ValueError(
                f"corpus is {self.corpus!r} with label {self.label!r} and private {self.private!r}; expected both "
                "columns with corpus 'own', and none with a corpus that has a name"
            )
        if self.fine_tune and self.encoder != "minilm":
            raise ValueError(f"fine_tune is True with encoder {self.encoder!r}; expected 'minilm', which is pretrained")

    @property
    def columns(self) -> Columns | None:
        """The columns of the corpus; None for the synthetic one."""
        if self.corpus != "own":
            return CORPORA.get(self.corpus)
        assert self.label is not None
        assert self.private is not None
        return Columns(self.label, self.private, self.text, self.split, self.strip, self.balance)

    @classmethod
    def preset(cls, name: str, corpus: str, method: str, seed: int = 0, **changes: Any) -> Self:
        """Give the settings of a preset, with changes.

        Args:
            name: ``"paper"``, ``"cpu"`` or ``"quick"``.
            corpus: ``"synthetic"``, one of ``CORPORA``, or ``"own"``.
            method: One of ``METHODS``.
            seed: Of everything random.
            **changes: Any field that is not None, in place of the preset's; options of ``estimator`` are added to them.
        """
        one_of("method", method, METHODS)
        own = chosen(PRESETS, PRESET_METHODS, name, method, changes)
        return cls(corpus=corpus, method=method, seed=seed, **own)


PAPER: dict[str, Any] = {"warm_up": 1000, "select": "lowest-information"}  # and what the class has
CPU: dict[str, Any] = {
    **{"encoder": "bag", "embedding": 384, "features": 64, "hidden": 128, "word_dropout": 0.5, "noise": 0.2},
    **{"steps": 500, "batch_size": 64, "lr": 1e-3, "weight_decay": 0.1, "schedule": "cycle", "every": 100},
    **{"average": 0.98, "ramp": 0.2, "clean": True},
}
PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {"paper": PAPER, "cpu": CPU, "quick": CPU | {"steps": 100, "every": 50}}
)
OWN: dict[str, dict[str, Any]] = {
    "knife": {"weight": 3.0},
}
PRESET_METHODS: Mapping[str, Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "paper": {name: {"estimator": {"preset": "paper"}} for name in ("knife", "doe")},
        "cpu": OWN,
        "quick": OWN,
    }
)
