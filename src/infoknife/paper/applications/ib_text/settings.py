"""What a run of the information bottleneck is: a task, a method, a seed, and the numbers of a preset."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from infoknife.paper.applications.ib_text.data import TASKS, PairColumns
from infoknife.paper.applications.settings import Count, Fields, Natural, NotNegative, Positive, RunSettings, Share
from infoknife.paper.engine import methods

METHODS = methods.names(methods.BOTTLENECK)

CPU: dict[str, Any] = {
    **{"layers": 2, "pooling": "pair", "lr": 5e-4, "head_lr": 1e-3, "warm_up": 0.1, "noise": 0.3},
    **{"weight": 0.1, "epochs": 2, "least_steps": 96},
}
PLAIN: dict[str, Fields] = {"plain": {"pooling": "mean", "lr": 1e-3}}  # the best of what was tried for a linear head


@dataclass(frozen=True, kw_only=True)
class BottleneckSettings(RunSettings):
    r"""What ``RunSettings`` has and, for a table of your own, ``PairColumns``; and what stands here.

    The method is ``"plain"``: a head on the features, the paper's BERT; ``"none"``: the same network and noise as the
    others, and no term; ``"vub"``: the variational bound; or an estimator's name for ``mi``.

    Examples:
        >>> BottleneckSettings.preset("paper", "knife", task="mrpc").weight
        1e-05
    """

    APPLICATION: ClassVar[str] = "ib-text"
    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "method": METHODS,
        "task": (*TASKS, "own"),
        "pooling": ("pair", "mean", "first"),
        "precision": ("float32", "bfloat16"),
        "select": ("validation",),
    }
    PRESETS: ClassVar[Mapping[str, Fields]] = {
        "paper": {},  # what the class has
        "cpu": CPU,
        "quick": CPU | {"epochs": 1, "least_steps": 0, "train_size": 64, "layers": 1},
    }
    METHOD_PRESETS: ClassVar[Mapping[str, Mapping[str, Fields]]] = {"paper": {}, "cpu": PLAIN, "quick": PLAIN}

    batch_size: Count = 32
    lr: Positive = 2e-5
    weight: NotNegative = 1e-5
    task: str = "mrpc"  # one of TASKS, or "own" with the names of your columns
    label: str | None = None
    first: str = "sentence1"
    second: str | None = "sentence2"
    split: str = "split"
    regression: bool = False
    hub: str | None = None  # a repository of the Hugging Face hub, instead of a file
    train_size: Count | None = None  # training pairs that are used, chosen by the seed; all if None
    # where no test pairs have labels: so many training pairs choose, and validation pairs are the test, so that no pair
    # does both
    selection_size: Count | None = None
    encoder: str = "minilm"  # "minilm", the package's; or a name on the hub, or a folder
    layers: Count | None = None  # upper layers of the encoder that learn; all, and the embeddings, if None
    # what of the encoder's states are the features: their "mean", the "first", or what distinguishes a "pair"
    # of texts, see BottleneckConfig; the mean where there is one text
    pooling: str = "first"
    dropout: Share = 0.0  # of the encoder
    length: Count = 128  # tokens of a pair that are kept
    test: bool = False  # whether the kept epoch is judged on test pairs as well, where there are labelled ones
    bottleneck: Count = 144  # dimension K of z
    samples: Count = 5  # of the posterior, for each text in training
    noise: Positive = 0.5  # standard deviation of the posterior before training, of the means' own
    epochs: Count = 6  # of training
    least_steps: Natural = 0  # batches of training at least: few pairs are seen in more epochs
    looks: Count = 6  # evaluations on validation pairs at most, after whole epochs
    patience: Natural = 0  # epochs without a better validation score after which training stops; all epochs if 0
    accumulate: Count = 1  # steps whose gradients make one step of the optimiser
    head_lr: Positive = 2e-5  # learning rate for what is new
    weight_decay: NotNegative = 0.01  # of AdamW
    warm_up: Share = 0.0  # part of the training over which the learning rate rises; it falls to zero after that
    clip: Positive = 1.0  # largest norm of the gradient
    precision: str = "float32"  # "float32", or "bfloat16" for mixed precision
    ramp: Share = 1.0  # part of the training over which $\lambda$ rises in a line from zero
    select: str = "validation"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.own_columns("task", PairColumns, ("label",))

    @property
    @override
    def title(self) -> str:
        rows = "" if self.train_size is None else f", {self.train_size} pairs"
        return f"{self.method}, {self.task}{rows}, seed {self.seed}"

    @property
    @override
    def progress(self) -> int:
        return 100 * self.epochs  # hundredths of epochs

    @property
    def columns(self) -> PairColumns | None:
        """The columns of the user's own table; None for a task that has a name."""
        return self.own_columns("task", PairColumns, ("label",))
