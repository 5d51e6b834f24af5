"""The estimators of mutual information by name."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from torch import nn

from infoknife.estimators.base import MutualInformation
from infoknife.estimators.classes import ClassDifference
from infoknife.estimators.contrastive import MINE, NWJ, SMILE, TUBA, InfoNCE
from infoknife.estimators.difference import Difference, JointDifference
from infoknife.estimators.encoder import EncoderDifference, EncoderKernels, EncoderPrior
from infoknife.estimators.variational import CLUB, VUB, Adversary, CLUBSample, L1Out
from infoknife.inputs import one_of

Name = Literal[  # editors offer these; any other string is refused when it is passed
    "knife",
    "knife-joint",
    "doe",
    "doe-logistic",
    "schraudolph",
    "mine",
    "nwj",
    "tuba",
    "infonce",
    "smile",
    "club",
    "club-sample",
    "l1out",
    "vub",
    "adv",
]
Make = Callable[..., MutualInformation]
ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh}  # those that the paper chose from


def _two(density: str, given: str, **paper: Any) -> Make:
    """Differences of two such densities, of which the conditional alone has a network; paper: what its preset adds."""

    def make(x_dim: int, y_dim: int | None = None, *, preset: str = "default", **options: Any) -> MutualInformation:
        one_of("preset", preset, ("default", "paper"))
        conditional = {"hidden": 64} | _taken(options, "hidden", "activation", "layer_norm")
        chosen: dict[str, Any] = {"density": density, "ranks": False, "given": given}
        chosen |= (paper if preset == "paper" else {}) | options
        return Difference(x_dim, y_dim, conditional_options=conditional, **chosen)

    return make


def _knife(x_dim: int, y_dim: int | None = None, *, preset: str = "default", **options: Any) -> MutualInformation:
    """Make the default form, or the paper's: h(Y) - h(Y|X) of the data as they are, 128 kernels, three tanh networks.

    The marginal's kernels start around zero and learn at a thousand times the rate of the networks (section A.3).
    """
    if preset == "paper":
        make = _two("knife", "x", components=128, init="zero", marginal_rate=1000.0)
        return make(x_dim, y_dim, preset=preset, **options)
    one_of("preset", preset, ("default", "paper"))
    if network := _taken(options, "activation", "layer_norm"):
        raise ValueError(
            f"{' and '.join(network)} came for 'knife' in its default form, whose masked network has no such "
            "choice; expected none, or preset='paper' with its three networks"
        )
    return Difference(x_dim, y_dim, **options)


def _with_preset(kind: Make, default: dict[str, Any], paper: dict[str, Any]) -> Make:
    """Estimators of a kind with these options, and with further ones under ``preset="paper"``."""

    def make(*dims: int | None, preset: str = "default", **options: Any) -> MutualInformation:
        one_of("preset", preset, ("default", "paper"))
        return kind(*dims, **default | (paper if preset == "paper" else {}) | options)

    return make


def _class_knife(x_dim: int, *, preset: str = "default", **options: Any) -> MutualInformation:
    """Make the default form, or the paper's: a mixture of 128 full kernels for each class."""
    if _taken(options, "activation", "layer_norm"):
        raise ValueError("activation or layer_norm is set, but y is classes and there is no network; leave them out")
    paper = {"density": "knife", "components": 128, "init": "paper"}
    return _with_preset(ClassDifference, {}, paper)(x_dim, preset=preset, **options)


DOE = ("doe", "doe-logistic", "schraudolph")  # names of estimators and of their densities
EITHER: dict[str, Make] = {  # y is continuous or classes
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
CONTINUOUS: dict[str, Make] = {
    "knife": _knife,
    "knife-joint": _with_preset(
        JointDifference, {"components": 16}, {"components": 21, "init": "paper", "ranks": False}
    ),
    **{name: _two(name, "y", init="paper", marginal_rate=10.0) for name in DOE},
    **EITHER,
}
CLASSES: dict[str, Make] = {
    "knife": _class_knife,
    **{name: _with_preset(ClassDifference, {"density": name}, {"init": "paper"}) for name in DOE},
    **EITHER,
    "adv": Adversary,
}
ENCODERS: dict[str, Make] = {
    "knife": EncoderKernels,
    **{name: partial(EncoderDifference, density=name) for name in DOE},
    "vub": EncoderPrior,
}


def names() -> list[str]:
    """Return the names that ``mi`` knows.

    Examples:
        >>> names()[:3]
        ['knife', 'knife-joint', 'doe']
    """
    return list(CONTINUOUS | CLASSES)


def mi(
    name: Name | str,
    x_dim: int,
    y_dim: int | None = None,
    *,
    y_classes: int | None = None,
    encoder: Literal["gaussian"] | None = None,
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
        **options: Options of the estimator, such as ``components``, ``hidden`` or ``preset="paper"``. The page "All
            estimators" of the guide lists them (``docs/guide/estimators.md``).

    Examples:
        >>> import torch
        >>> estimator = mi("knife", 3, 5)
        >>> x, y = torch.randn(64, 3), torch.randn(64, 5)
        >>> estimator.initialize(x, y)(x, y).shape
        torch.Size([])
        >>> mi("knife", 3, y_classes=7).bound
        'lower'
    """
    one_of("name", name, tuple(names()))
    if not isinstance(layer_norm, bool):
        raise TypeError(f"layer_norm is {layer_norm!r}, a {type(layer_norm).__name__}; expected True or False")
    if layer_norm:
        options["layer_norm"] = True
    if activation is not None:
        one_of("activation", activation, tuple(ACTIVATIONS))
        options["activation"] = ACTIVATIONS[activation]
    if encoder is not None:
        one_of("encoder", encoder, ("gaussian",))
        if y_classes is not None:
            raise ValueError("y_classes is set with encoder='gaussian'; expected none, y is the posterior's parameters")
        return _made(_of(ENCODERS, name, "with encoder='gaussian'"), name, x_dim, y_dim, **options)
    if (y_dim is None) == (y_classes is None):
        raise ValueError(f"y_dim is {y_dim} and y_classes is {y_classes}; expected exactly one: continuous or classes")
    if y_classes is not None:
        return _made(_of(CLASSES, name, "for classes, y_classes"), name, x_dim, y_classes=y_classes, **options)
    return _made(_of(CONTINUOUS, name, "for a continuous y, y_dim"), name, x_dim, y_dim, **options)


def table() -> str:
    """Return the documentation's table of estimators in Markdown, from what their classes say of themselves."""
    head = ["name", "y", "bound", "trains by", "negatives", "memory", "paper"]
    rows = [head, ["---"] * len(head)]
    for name in names():
        made = {"continuous": mi(name, 1, 1)} if name in CONTINUOUS else {}
        made |= {"classes": mi(name, 1, y_classes=2)} if name in CLASSES else {}
        rows += [[f"`{name}`", kind, one.bound or "none", *one.facts] for kind, one in made.items()]
    cells = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def _taken(options: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Take what is there of some options."""
    return {key: options.pop(key) for key in keys if key in options}


def _made(make: Make, name: str, *dims: int | None, **options: Any) -> MutualInformation:
    """Make an estimator; an option that none of its parts knows is named as the caller's."""
    try:
        return make(*dims, **options)
    except TypeError as error:
        unknown = [option for option in options if str(error).endswith(f"unexpected keyword argument '{option}'")]
        if not unknown:
            raise
        raise TypeError(f"{unknown[0]} is not an option of mi({name!r}); expected one that its class takes") from None


def _of(makes: dict[str, Make], name: str, where: str) -> Make:
    if name not in makes:
        raise ValueError(f"name is {name!r}, which does not exist {where}; expected one of {', '.join(makes)}")
    return makes[name]
