"""What a run of fair text is: a corpus, a method, a seed, and the numbers of a preset."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from infoknife.paper.applications.fair_text.data import CORPORA, CorpusColumns
from infoknife.paper.applications.run import SCHEDULES, SelectionRule
from infoknife.paper.applications.settings import Count, Fields, Natural, NotNegative, OpenShare, Positive, RunSettings
from infoknife.paper.engine import methods

METHODS = methods.names(methods.FAIR)
RULES = (
    SelectionRule("last", "step", 1, "nothing"),
    SelectionRule("lowest-information", "held_out_information", -1, "private classes"),
    SelectionRule("label-minus-probe", "margin", 1, "labels and private classes"),
)

CPU: dict[str, Any] = {
    **{"encoder": "bag", "embedding": 384, "features": 64, "hidden": 128, "word_dropout": 0.5, "noise": 0.2},
    **{"steps": 500, "batch_size": 64, "lr": 1e-3, "weight_decay": 0.1, "schedule": "cycle", "every": 100},
    **{"average": 0.98, "ramp": 0.2, "clean": True},
}
OWN: dict[str, Fields] = {"knife": {"weight": 3.0}}


@dataclass(frozen=True, kw_only=True)
class FairTextSettings(RunSettings):
    r"""What ``RunSettings`` has and, for a table of your own, ``CorpusColumns``; and what stands here.

    The method is ``"none"``, or an estimator's name for ``mi``; ``"adv"`` is the adversary, ``"leace"`` erases what is
    linear from the trained features and retrains the head. ``RULES`` are those that ``select`` names.

    Examples:
        >>> FairTextSettings.preset("paper", "knife", corpus="dial-sentiment").steps
        30000
    """

    APPLICATION: ClassVar[str] = "fair-text"
    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "method": METHODS,
        "corpus": ("synthetic", *CORPORA, "own"),
        "encoder": ("gru", "bag", "minilm"),
        "schedule": tuple(SCHEDULES),
        "select": tuple(rule.name for rule in RULES),
    }
    PRESETS: ClassVar[Mapping[str, Fields]] = {
        "paper": {"warm_up": 1000, "select": "lowest-information"},  # and what the class has
        "cpu": CPU,
        "quick": CPU | {"steps": 100, "every": 50},
    }
    METHOD_PRESETS: ClassVar[Mapping[str, Mapping[str, Fields]]] = {
        "paper": {name: {"estimator": {"preset": "paper"}} for name in ("knife", "doe")},
        "cpu": OWN,
        "quick": OWN,
    }

    lr: Positive = 1e-4
    weight: NotNegative = 1.0
    corpus: str = "synthetic"  # "synthetic", one of CORPORA, or "own" with the names of your columns
    label: str | None = None
    private: str | None = None
    text: str = "text"
    split: str = "split"
    strip: tuple[str, ...] = ()
    balance: bool = False
    hub: str | None = None  # a repository of the Hugging Face hub, instead of a file
    encoder: str = "gru"  # "gru", "bag" or "minilm"
    fine_tune: bool = False  # whether a pretrained encoder learns as well
    embedding: Count = 128  # numbers of an embedding of words or pieces
    features: Count = 256  # numbers of the features Z
    hidden: Count = 256  # width of the head's hidden layer
    dropout: OpenShare = 0.2  # part of the numbers that are dropped in the head, and between the layers of the encoder
    word_dropout: OpenShare = 0.0  # part of the pieces of a text that a bag leaves out in training
    noise: NotNegative = 0.0  # deviation of the Gaussian noise on the features, in training and ever after
    steps: Count = 30_000  # of training
    weight_decay: NotNegative = 0.01  # of AdamW
    schedule: str = "constant"  # of the learning rate: "constant" or "cycle"
    warm_up: Natural = 0  # steps over which the learning rate rises from zero, on top of the schedule
    average: OpenShare = 0.0  # momentum of the running average of the model that is kept; 0 for the model itself
    at_most: NotNegative | None = None  # nats that I(Z; S) may have, instead of a weight: a multiplier sees to it
    ramp: OpenShare = 0.0  # part of the training over which $\lambda$ rises from zero
    clean: bool = False  # whether the information is that of features without dropout, as they are used later
    every: Count = 500  # steps between two evaluations on validation texts, and between checkpoints

    def __post_init__(self) -> None:
        if isinstance(self.strip, list):
            object.__setattr__(self, "strip", tuple(self.strip))
        super().__post_init__()
        if self.fine_tune and self.encoder != "minilm":
            raise ValueError(f"fine_tune is True with encoder {self.encoder!r}; expected 'minilm', which is pretrained")
        if self.encoder == "gru" and self.features % 2:
            raise ValueError(f"features is {self.features}; expected an even number, half of them from each direction")
        self._own_columns()

    @property
    @override
    def title(self) -> str:
        strength = f"λ={self.weight:g}" if self.at_most is None else f"≤{self.at_most:g}"
        return f"{self.method}, {self.corpus}, {strength}, seed {self.seed}"

    @property
    @override
    def progress(self) -> int:
        return self.steps

    @property
    def columns(self) -> CorpusColumns | None:
        """The columns of the corpus; None for the synthetic one."""
        return self._own_columns() or CORPORA.get(self.corpus)

    def _own_columns(self) -> CorpusColumns | None:
        return self.own_columns("corpus", CorpusColumns, ("label", "private"))
