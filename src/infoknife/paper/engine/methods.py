"""One table of methods: names, titles, colours, markers, where each applies, and a line of help."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from infoknife.pictures import Colour

ENTROPY, MI, CLASSES = "entropy", "mutual information", "classes"
DOMAINS, FAIR, BOTTLENECK = "domain adaptation", "fair text", "information bottleneck"


class Method(NamedTuple):
    """A method as reports show it."""

    name: str  # what records and the command line call it
    title: str  # as papers write it
    colour: Colour  # the same in every figure, told apart with any kind of colour vision
    marker: str  # matplotlib's
    where: frozenset[str]  # what it applies to
    help: str  # what it is, in a line


def _method(name: str, title: str, light: str, dark: str, marker: str, where: tuple[str, ...], words: str) -> Method:
    return Method(name, title, Colour(light, dark), marker, frozenset(where), words)


ALL = (ENTROPY, MI, CLASSES, DOMAINS, FAIR, BOTTLENECK)
SCORES = (MI, CLASSES, DOMAINS, FAIR, BOTTLENECK)
METHODS = (  # in the order of tables
    _method("knife", "KNIFE", "#c8401f", "#ff8360", "o", ALL, "learned Gaussian kernels; by default a chain of them"),
    _method("knife-joint", "KNIFE, joint", "#d98a00", "#ffbf4d", "D", (MI,), "h(X) + h(Y) - h(X, Y), kernels for each"),
    _method(
        "autoregressive", "Autoregressive", "#b07600", "#f5cd79", "D", (ENTROPY,), "each coordinate given those before"
    ),
    _method(
        "schraudolph", "Schraudolph", "#0072b2", "#5fb2ea", "s", (ENTROPY, MI, CLASSES), "kernels that stand on samples"
    ),
    _method("doe", "DoE", "#008f68", "#3fcf9f", "^", ALL, "difference of entropies with one Gaussian each"),
    _method("doe-logistic", "DoE, logistic", "#5a8f29", "#a6d96a", "<", (ENTROPY, MI, CLASSES), "the same, logistic"),
    _method("parzen", "Parzen", "#7b5ea7", "#cdb4f5", "p", (ENTROPY,), "a kernel on every sample, nothing learned"),
    _method("club", "CLUB", "#3a9ad0", "#9bd5f7", "v", SCORES, "contrastive upper bound"),
    _method("club-sample", "CLUBSample", "#2f6fde", "#8fb4ff", ">", (MI, CLASSES), "CLUB with one negative per row"),
    _method("l1out", "L1Out", "#a0308f", "#e79be0", "h", (MI, CLASSES), "leave-one-out upper bound"),
    _method("vub", "VUB", "#4f7f7a", "#9fd0ca", "d", (MI, CLASSES, BOTTLENECK), "variational upper bound"),
    _method(
        "infonce", "InfoNCE", "#c2649a", "#f0a6cc", "P", SCORES, "contrastive lower bound, at most log of the batch"
    ),
    _method("mine", "MINE", "#857300", "#e6d84a", "X", SCORES, "Donsker-Varadhan lower bound with a critic"),
    _method("nwj", "NWJ", "#5b4ba0", "#b3a6f7", "*", SCORES, "f-divergence lower bound with a critic"),
    _method("tuba", "TUBA", "#9a4a1c", "#eba578", "8", (MI, CLASSES), "NWJ with a learned baseline"),
    _method("smile", "SMILE", "#b5495b", "#f49aa8", "H", (MI, CLASSES), "MINE with clipped scores"),
    _method("adv", "Adversary", "#6a6a2a", "#d3d38a", "p", (CLASSES, FAIR), "a classifier that is to fail"),
    _method("dann", "DANN", "#7d5a3c", "#d8b08c", "d", (DOMAINS,), "gradients of a domain classifier, reversed"),
    _method("coral", "CORAL", "#9c6b30", "#e3b981", ">", (DOMAINS,), "equal means and covariances of both domains"),
    _method("leace", "LEACE", "#7a6230", "#d9c28a", "D", (FAIR,), "what is linear is erased from trained features"),
    _method("source-only", "Source only", "#6f7782", "#b9c2cc", "s", (DOMAINS,), "training without a regularizer"),
    _method("none", "Label only", "#3f4a57", "#cfd6de", "s", (FAIR, BOTTLENECK), "training without a regularizer"),
    _method("plain", "Plain fine-tuning", "#8a8f98", "#a5adb8", "h", (BOTTLENECK,), "a head on the features: BERT"),
)
BY_NAME: Mapping[str, Method] = {method.name: method for method in METHODS}
KNIFE_CHAIN = "KNIFE, autoregressive"  # knife, where its density is the autoregressive one
OTHERS = (
    Colour("#117733", "#6fce8d"),
    Colour("#882255", "#e58abb"),
    Colour("#2b8a80", "#7ee0d4"),
    Colour("#46627f", "#9fbbd8"),
)


def get(name: str) -> Method:
    """The method of a name; one that is not in the table gets one of a few colours, always the same.

    Examples:
        >>> get("infonce").title, get("ksg").title, get("ksg") == get("ksg")
        ('InfoNCE', 'ksg', True)
    """
    return BY_NAME.get(name) or Method(name, name, OTHERS[sum(name.encode()) % 4], "o", frozenset(), "")


def title(name: str) -> str:
    """The name of a method as papers write it."""
    return get(name).title


def names(where: str) -> tuple[str, ...]:
    """The methods that apply somewhere.

    Examples:
        >>> names(ENTROPY)[:3]
        ('knife', 'autoregressive', 'schraudolph')
    """
    return tuple(method.name for method in METHODS if where in method.where)


def rank(name: str) -> int:
    """Where a method stands in tables; those that are not known last."""
    return list(BY_NAME).index(name) if name in BY_NAME else len(BY_NAME)


def is_ours(name: str) -> bool:
    """Whether a method is KNIFE in one of its forms, the chain of its kernels included."""
    return name.startswith("knife") or name == "autoregressive"


def family(name: str) -> str:
    """KNIFE in any of its forms is KNIFE to the paper."""
    return "knife" if is_ours(name) else name


def ours(titles: Iterable[str]) -> tuple[int, ...]:
    """Which of some titles are KNIFE's.

    Examples:
        >>> ours(["MINE", "KNIFE, autoregressive", "DoE"])
        (1,)
    """
    own = {method.title for method in METHODS if is_ours(method.name)}
    return tuple(place for place, text in enumerate(titles) if text in own or text == KNIFE_CHAIN)


def estimator_title(name: str, options: Mapping[str, Any]) -> str:
    """The title of what ``mi`` makes with these options: where KNIFE is the autoregressive density, it says so.

    Examples:
        >>> estimator_title("knife", {}), estimator_title("knife", {"preset": "paper"})
        ('KNIFE, autoregressive', 'KNIFE')
    """
    kernels = options.get("preset") == "paper" or options.get("density", "autoregressive") != "autoregressive"
    return KNIFE_CHAIN if name == "knife" and not kernels and "shared" not in options else title(name)
