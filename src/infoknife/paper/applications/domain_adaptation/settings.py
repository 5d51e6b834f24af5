"""What a run is: two domains, a method, a seed, and the numbers of a preset."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Self

from infoknife.inputs import check_count, one_of
from infoknife.paper.applications.presets import Identified, chosen
from infoknife.paper.applications.schedules import SCHEDULES

__all__ = ["METHODS", "PRESETS", "Settings"]

METHODS = ("source-only", "knife", "club", "doe", "infonce", "mine", "nwj", "dann")
HIDDEN = 64  # of the paper's MI networks


@dataclass(frozen=True)
class Settings(Identified):
    r"""All that decides what a run gives, beside the images themselves.

    Args:
        source: Name of the domain with labels.
        target: Name of the domain without.
        method: ``"source-only"``, an estimator's name for ``mi``, or ``"dann"``.
        seed: Of everything random.
        channels: Of the encoders, and the number of their features.
        sigma: Deviation of the noise that the encoders add after each down-sampling.
        dropout: Part of the numbers that they drop there.
        size: Images are brought to size x size pixels.
        steps: Of training.
        batch_size: Images of each domain in a step.
        lr: Of Adam, for the encoders and heads; the largest of a cycle.
        schedule: ``"constant"``, or ``"cycle"``: up over the first fifth, then down to nothing as a cosine.
        weight: $\lambda$ of ``eq:domaine``, in front of the information in nats; for DANN of the reversed gradient.
        estimator: Options of ``mi`` for the method.
        estimator_lr: Learning rate of the estimator; what suits it if None.
        ramp: Whether the term is multiplied by what is known of the class: 1 - CE / log K, beyond a first tenth.
        noise: Gaussian noise on the class features that are measured, in units of each one's deviation.
        domain_noise: The same on the domain features.
        joint: Whether one optimiser moves encoders and estimator, as in the paper; else the estimator has its own.
        every: Steps between two looks at the validation images, and between checkpoints.

    Example:
        >>> Settings.preset("paper", "mnist", "mnistm", "knife").steps
        25000
    """

    source: str = "digits"
    target: str = "mnist5k"
    method: str = "knife"
    seed: int = 0
    channels: int = 64
    sigma: float = 1.0
    dropout: float = 0.5
    size: int = 32
    steps: int = 25_000
    batch_size: int = 128
    lr: float = 1e-3
    schedule: str = "constant"
    weight: float = 0.1
    estimator: Mapping[str, Any] = field(default_factory=dict, hash=False)
    estimator_lr: float | None = None
    ramp: bool = False
    noise: float = 0.0
    domain_noise: float = 0.0
    joint: bool = False
    every: int = 500

    def __post_init__(self) -> None:
        one_of("method", self.method, METHODS)
        one_of("schedule", self.schedule, tuple(SCHEDULES))
        for name in ("channels", "steps", "batch_size", "every"):
            check_count(name, getattr(self, name))
        if check_count("size", self.size) < 4:
            raise ValueError(f"size is {self.size}; expected at least 4 pixels, as they are halved twice")
        for name in ("sigma", "noise", "domain_noise"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; expected 0 or more deviations")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout}; expected a part from 0 to less than 1")
        if self.lr <= 0 or self.weight < 0:
            raise ValueError(f"lr is {self.lr} and weight {self.weight}; expected lr above 0 and weight at least 0")

    @classmethod
    def preset(cls, name: str, source: str, target: str, method: str, seed: int = 0, **changes: Any) -> Self:
        """Give the settings of a preset, with changes.

        Args:
            name: ``"paper"``, ``"cpu"`` or ``"quick"``.
            source: Name of the domain with labels.
            target: Name of the domain without.
            method: One of ``METHODS``.
            seed: Of everything random.
            **changes: Any field that is not None, in place of the preset's; options of ``estimator`` are added to them.
        """
        one_of("method", method, METHODS)
        own = chosen(PRESETS, PRESET_METHODS, name, method, changes)
        return cls(source=source, target=target, method=method, seed=seed, **own)


CPU: dict[str, Any] = {
    **{"channels": 16, "sigma": 0.2, "dropout": 0.3, "size": 16, "steps": 600, "batch_size": 32, "every": 100},
    **{"lr": 1.5e-3, "schedule": "cycle", "weight": 0.5, "ramp": True, "noise": 0.2, "domain_noise": 1.0},
    **{"estimator_lr": 0.01},
}
PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "paper": {"joint": True},  # and what the class has
        "cpu": CPU,
        "quick": CPU | {"steps": 100, "every": 50},
    }
)
DENSITY: dict[str, Any] = {"preset": "paper", "hidden": HIDDEN, "marginal_rate": 1.0, "init": "data"}
CRITIC: dict[str, Any] = {"preset": "paper", "hidden": HIDDEN}
PAPER: dict[str, dict[str, Any]] = {  # the MI networks of tab:da_architectures, each with one hidden layer
    "knife": {**DENSITY, "components": 128, "given": "y"},
    "doe": DENSITY,
    "club": {"preset": "paper", "hidden": 2 * HIDDEN},  # halves it, for means and scales
    "infonce": CRITIC,
    "mine": CRITIC,
    "nwj": CRITIC,
}
OWN: dict[str, dict[str, Any]] = {  # where others suit a method better, by validation accuracy with seed 0
    "knife": {"weight": 1.0, "estimator_lr": 0.03},
    "club": {"weight": 0.1},
    "doe": {"weight": 0.1},
    "dann": {"weight": 1.0},
}
PRESET_METHODS: Mapping[str, Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "paper": {name: {"estimator": options} for name, options in PAPER.items()},
        "cpu": OWN,
        "quick": OWN,
    }
)
