"""What a run of domain adaptation is: two domains, a method, a seed, and the numbers of a preset."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from typing_extensions import override

from infoknife.paper.applications.run import SCHEDULES, SelectionRule
from infoknife.paper.applications.settings import Count, Fields, NotNegative, OpenShare, Rule, RunSettings
from infoknife.paper.engine import methods

METHODS = methods.names(methods.DOMAINS)
RULES = (
    SelectionRule("target-validation", "target_accuracy", 1, "labels of the target, though few: the paper's rule"),
    SelectionRule("source-validation", "source_accuracy", 1, "labels of the source"),
    SelectionRule("prediction-entropy", "prediction_entropy", -1, "no labels"),
    SelectionRule("neighbourhood-density", "neighbourhood_density", 1, "no labels"),
)
HIDDEN = 64  # of the paper's MI networks

CPU: dict[str, Any] = {
    **{"channels": 16, "sigma": 0.2, "dropout": 0.3, "size": 16, "steps": 600, "batch_size": 32, "every": 100},
    **{"lr": 1.5e-3, "schedule": "cycle", "weight": 0.5, "ramp": True, "noise": 0.2, "domain_noise": 1.0},
    **{"estimator_lr": 0.01},
}
DENSITY: dict[str, Any] = {"preset": "paper", "hidden": HIDDEN, "marginal_rate": 1.0, "init": "data"}
CRITIC: dict[str, Any] = {"preset": "paper", "hidden": HIDDEN}
PAPER: dict[str, dict[str, Any]] = {  # the MI networks of tab:da_architectures, each with one hidden layer
    "knife": {**DENSITY, "components": 128, "given": "y"},
    "doe": DENSITY,
    "club": {"preset": "paper", "hidden": 2 * HIDDEN},  # halves it, for means and scales
    **dict.fromkeys(("infonce", "mine", "nwj"), CRITIC),
}
OWN: dict[str, dict[str, Any]] = {  # where others suit a method better, by validation accuracy with seed 0
    "knife": {"weight": 1.0, "estimator_lr": 0.03},
    "club": {"weight": 0.1},
    "doe": {"weight": 0.1},
    "dann": {"weight": 1.0},
    "coral": {"weight": 1.0},
}


Pixels = Annotated[int, Rule(lambda size: size >= 4, "at least 4 pixels, as they are halved twice")]


@dataclass(frozen=True, kw_only=True)
class AdaptationSettings(RunSettings):
    """What ``RunSettings`` has, and what stands here.

    The method is ``"source-only"``, an estimator's name for ``mi``, ``"dann"``, whose ``weight`` is that of the
    reversed gradient, or ``"coral"``. ``RULES`` are those that ``select`` names.

    Examples:
        >>> AdaptationSettings.preset("paper", "knife", source="mnist", target="mnistm").steps
        25000
    """

    APPLICATION: ClassVar[str] = "domain-adaptation"
    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "method": METHODS,
        "schedule": tuple(SCHEDULES),
        "select": tuple(rule.name for rule in RULES),
    }
    PRESETS: ClassVar[Mapping[str, Fields]] = {
        "paper": {"joint": True},  # and what the class has
        "cpu": CPU,
        "quick": CPU | {"steps": 100, "every": 50},
    }
    METHOD_PRESETS: ClassVar[Mapping[str, Mapping[str, Fields]]] = {
        "paper": {name: {"estimator": options} for name, options in PAPER.items()},
        "cpu": OWN,
        "quick": OWN,
    }

    source: str = "digits"  # name of the domain with labels
    target: str = "mnist5k"  # name of the domain without
    channels: Count = 64  # of the encoders, and the number of their features
    sigma: NotNegative = 1.0  # deviation of the noise that the encoders add after each down-sampling
    dropout: OpenShare = 0.5  # part of the numbers that they drop there
    size: Pixels = 32  # images are brought to size x size pixels
    steps: Count = 25_000  # of training, with batch_size images of each domain
    # of Adam's lr: "constant", or "cycle": up over the first fifth, then down as a cosine
    schedule: str = "constant"
    # whether the term is multiplied by what is known of the class: 1 - CE / log K, beyond a first tenth
    ramp: bool = False
    noise: NotNegative = 0.0  # Gaussian noise on the class features that are measured, in units of each one's deviation
    domain_noise: NotNegative = 0.0  # the same on the domain features
    # whether one optimiser moves encoders and estimator, as in the paper; else the estimator has its own
    joint: bool = False
    every: Count = 500  # steps between two evaluations on validation images, and between checkpoints
    select: str = "target-validation"

    @property
    @override
    def title(self) -> str:
        return f"{self.method}, {self.source} -> {self.target}, seed {self.seed}"

    @property
    @override
    def progress(self) -> int:
        return self.steps
