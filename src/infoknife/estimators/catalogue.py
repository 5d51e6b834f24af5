"""The estimators of mutual information by name."""

from collections.abc import Callable
from functools import partial
from typing import Any

from infoknife.estimators.base import MutualInformation
from infoknife.estimators.classes import ClassDifference
from infoknife.estimators.contrastive import MINE, NWJ, SMILE, TUBA, InfoNCE
from infoknife.estimators.difference import Difference, JointDifference
from infoknife.estimators.encoder import EncoderDifference, EncoderKernels, EncoderPrior
from infoknife.estimators.variational import CLUB, VUB, Adversary, CLUBSample, L1Out
from infoknife.inputs import one_of
from infoknife.nn import ACTIVATIONS

Make = Callable[..., MutualInformation]


def _knife(x_dim: int, y_dim: int | None = None, *, preset: str = "default", **options: Any) -> MutualInformation:
    """Make the default form, or the paper's: h(Y) - h(Y|X) of the data as they are, 128 kernels, three tanh networks.

    The marginal's kernels start around zero and learn at a thousand times the rate of the networks (section A.3).
    """
    one_of("preset", preset, ("default", "paper"))
    network = _taken(options, "activation", "layer_norm")
    if preset == "default":
        if network:
            raise ValueError(
                f"{' and '.join(network)} came for 'knife' in its default form, whose masked network has no such "
                "choice; expected none, or preset='paper' with its three networks"
            )
        return Difference(x_dim, y_dim, **options)
    conditional = {"network": "paper", "hidden": options.pop("hidden", 64), **network}
    paper: dict[str, Any] = {"components": 128, "init": "zero", "marginal_rate": 1000.0, "given": "x"}
    chosen: dict[str, Any] = {"density": "knife", "ranks": False} | paper | options
    return Difference(x_dim, y_dim, conditional_options=conditional, **chosen)


def _joint(x_dim: int, y_dim: int | None = None, *, preset: str = "default", **options: Any) -> MutualInformation:
    """Make the default form, or the paper's: three densities of 21 kernels."""
    one_of("preset", preset, ("default", "paper"))
    paper: dict[str, Any] = {"components": 21, "init": "paper", "ranks": False} if preset == "paper" else {}
    return JointDifference(x_dim, y_dim, **{"components": 16} | paper | options)


def _doe(density: str) -> Make:
    def make(x_dim: int, y_dim: int | None = None, *, preset: str = "default", **options: Any) -> MutualInformation:
        one_of("preset", preset, ("default", "paper"))
        conditional = {"hidden": 64} | _taken(options, "hidden", "activation", "layer_norm")
        paper: dict[str, Any] = (
            {"init": "paper", "marginal_rate": 10.0} if preset == "paper" else {}
        )  # it starts far away
        chosen: dict[str, Any] = {"density": density, "ranks": False, "given": "y"} | paper | options
        return Difference(x_dim, y_dim, conditional_options=conditional, **chosen)

    return make


def _classes(density: str) -> Make:
    def make(x_dim: int, *, preset: str = "default", **options: Any) -> MutualInformation:
        one_of("preset", preset, ("default", "paper"))
        paper: dict[str, Any] = {"density": density, "init": "paper"} if preset == "paper" else {}
        return ClassDifference(x_dim, **{"density": density} | paper | options)

    return make


def _class_knife(x_dim: int, *, preset: str = "default", **options: Any) -> MutualInformation:
    """Make the default form, or the paper's: a mixture of 128 full kernels for each class."""
    one_of("preset", preset, ("default", "paper"))
    if _taken(options, "activation", "layer_norm"):
        raise ValueError(
            "activation or layer_norm is set, but there is no continuous condition; leave it out for classes"
        )
    paper: dict[str, Any] = {"density": "knife", "components": 128, "init": "paper"} if preset == "paper" else {}
    return ClassDifference(x_dim, **paper | options)


CONTINUOUS: dict[str, Make] = {
    "knife": _knife,
    "knife-joint": _joint,
    "doe": _doe("doe"),
    "doe-logistic": _doe("doe-logistic"),
    "schraudolph": _doe("schraudolph"),
    "mine": MINE,
    "nwj": NWJ,
    "tuba": TUBA,
    "infonce": InfoNCE,
    "smile": SMILE,
    "club": CLUB,
    "club-sample": CLUBSample,
    "l1out": L1Out,
    "vub": VUB,
}
CLASSES: dict[str, Make] = {
    "knife": _class_knife,
    "doe": _classes("doe"),
    "doe-logistic": _classes("doe-logistic"),
    "schraudolph": _classes("schraudolph"),
    **{
        name: CONTINUOUS[name]
        for name in ("mine", "nwj", "tuba", "infonce", "smile", "club", "club-sample", "l1out", "vub")
    },
    "adv": Adversary,
}
ENCODERS: dict[str, Make] = {
    "knife": EncoderKernels,
    "doe": partial(EncoderDifference, density="doe"),
    "doe-logistic": partial(EncoderDifference, density="doe-logistic"),
    "schraudolph": partial(EncoderDifference, density="schraudolph"),
    "vub": EncoderPrior,
}


def names() -> list[str]:
    """Return the names that ``mi`` knows.

    Example:
        >>> names()[:3]
        ['knife', 'knife-joint', 'doe']
    """
    return list(CONTINUOUS | CLASSES)


def mi(
    name: str,
    x_dim: int,
    y_dim: int | None = None,
    *,
    y_classes: int | None = None,
    encoder: str | None = None,
    activation: str | None = None,
    layer_norm: bool = False,
    **options: Any,
) -> MutualInformation:
    """Make an estimator of the mutual information of x and y, in nats.

    Args:
        name: ``"knife"``, ``"knife-joint"``, ``"doe"``, ``"doe-logistic"``, ``"schraudolph"``, ``"mine"``, ``"nwj"``,
            ``"tuba"``, ``"infonce"``, ``"smile"``, ``"club"``, ``"club-sample"``, ``"l1out"``, ``"vub"`` or ``"adv"``.
        x_dim: Dimension of x.
        y_dim: Dimension of a continuous y.
        y_classes: Number of classes of a discrete y, instead of ``y_dim``.
        encoder: ``"gaussian"`` where x is drawn from a Gaussian whose parameters are known: y is then its means and
            log-variances (N, 2 x_dim), and the conditional entropy is in closed form (section 4.1).
        activation: ``"relu"`` or ``"tanh"`` in the estimator's networks; the estimator's own if it is not given.
        layer_norm: Whether a LayerNorm stands in front of every linear layer of them (`tab:da_architectures`).
        **options: Options of the estimator, ``preset="paper"`` among them where the paper has a form of its own.

    Example:
        >>> import torch
        >>> estimator = mi("knife", 3, 5)
        >>> x, y = torch.randn(64, 3), torch.randn(64, 5)
        >>> estimator.initialize(x, y)(x, y).shape
        torch.Size([])
        >>> mi("knife", 3, y_classes=7).bound
        'lower'
    """
    one_of("name", name, tuple(names()))
    options |= _network(activation, layer_norm)
    if encoder is not None:
        one_of("encoder", encoder, ("gaussian",))
        if y_classes is not None:
            raise ValueError("y_classes is set with encoder='gaussian'; expected none, y is the posterior's parameters")
        return _of(ENCODERS, name, "with encoder='gaussian'")(x_dim, y_dim, **options)
    if y_classes is not None and y_dim is None:
        return _of(CLASSES, name, "for classes, y_classes")(x_dim, y_classes=y_classes, **options)
    if y_dim is None or y_classes is not None:
        raise ValueError(f"y_dim is {y_dim} and y_classes is {y_classes}; expected exactly one: continuous or classes")
    return _of(CONTINUOUS, name, "for a continuous y, y_dim")(x_dim, y_dim, **options)


def table() -> str:
    """Return the documentation's table of estimators in Markdown, from what their classes say of themselves."""
    head = ["name", "y", "bound", "trains by", "negatives", "memory", "paper"]
    lines = [_line(head), _line(["---"] * len(head))]
    for name in names():
        made = {}
        if name in CONTINUOUS:
            made["continuous"] = mi(name, 1, 1)
        if name in CLASSES:
            made["classes"] = mi(name, 1, y_classes=2)
        lines += [_line([f"`{name}`", kind, one.bound or "none", *one.facts]) for kind, one in made.items()]
    return "\n".join(lines)


def _line(cells: list[str]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def _network(activation: str | None, layer_norm: bool) -> dict[str, Any]:
    """What is said about the networks: nothing for what an estimator has anyway."""
    if not isinstance(layer_norm, bool):
        raise TypeError(f"layer_norm is {layer_norm!r}, a {type(layer_norm).__name__}; expected True or False")
    said: dict[str, Any] = {"layer_norm": True} if layer_norm else {}
    if activation is not None:
        one_of("activation", activation, tuple(ACTIVATIONS))
        said["activation"] = ACTIVATIONS[activation]
    return said


def _taken(options: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Take what is there of some options."""
    return {key: options.pop(key) for key in keys if key in options}


def _of(makes: dict[str, Make], name: str, where: str) -> Make:
    if name not in makes:
        raise ValueError(f"name is {name!r}, which does not exist {where}; expected one of {', '.join(makes)}")
    return makes[name]
