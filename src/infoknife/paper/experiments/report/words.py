"""How a report calls things and writes numbers."""

import math
import re

from infoknife.paper.experiments import published

__all__ = [
    "accuracy",
    "cell",
    "corpus",
    "dimension",
    "method",
    "metric",
    "minutes",
    "number",
    "pair",
    "percent",
    "place",
    "plus_minus",
    "preset",
    "several",
    "short",
    "slug",
    "task",
    "title",
]

_METHODS = {
    "knife": "KNIFE",
    "knife-joint": "KNIFE, joint",
    "autoregressive": "Autoregressive",
    "schraudolph": "Schraudolph",
    "doe": "DoE",
    "doe-logistic": "DoE, logistic",
    "club": "CLUB",
    "club-sample": "CLUBSample",
    "infonce": "InfoNCE",
    "mine": "MINE",
    "nwj": "NWJ",
    "smile": "SMILE",
    "tuba": "TUBA",
    "l1out": "L1Out",
    "vub": "VUB",
    "parzen": "Parzen",
    "adv": "Adversary",
    "ksg": "KSG",
    "cca": "CCA",
    "dann": "DANN",
    "source-only": "Source only",
    "none": "Label only",
}
_PRESETS = {"paper": "As in the paper", "ours": "Ours", "quick": "Quick", "standard": "Standard", "cpu": "CPU"}
_DOMAINS = {"mnist": "M", "mnistm": "MM", "usps": "U", "svhn": "SV", "stl10": "S", "cifar10": "C"}
_CORPORA = {
    "dial-sentiment": "DIAL sentiment",
    "dial-mention": "DIAL mention",
    "pan16-mention": "PAN16 mention",
    "synthetic": "Synthetic",
}
_TASKS = {"mrpc": "MRPC", "stsb": "STS-B", "rte": "RTE"}
_METRICS = {"f1": "F1", "pearson": "Pearson", "spearman": "Spearman"}
_TITLES = {  # in the order of a report: short, and in full
    "table1": ("Table 1", "Entropy of a standard normal"),
    "fig1-shrinking": ("Figure 1", "Entropy of a shrinking Gaussian"),
    "fig2-pdf": ("Figure 2, left", "A mixture of ten triangles"),
    "fig2-triangle8": ("Figure 2, right", "Triangle mixtures in 8 dimensions"),
    "triangle20": ("Triangles, d=20", "Triangle mixtures in 20 dimensions"),
    "fig3-gaussian": ("Figure 3, top", "Mutual information of Gaussians"),
    "fig3-cubic": ("Figure 3, middle", "Mutual information, y cubed"),
    "fig3-uniform": ("Figure 3, bottom", "Mutual information, sums of uniforms"),
    "bias-variance": ("Bias and variance", "Bias, variance and mean squared error"),
    "tuba": ("TUBA", "TUBA on two staircases"),
    "tuba-gaussian": ("TUBA, Gaussian", "TUBA on the Gaussian staircase"),
    "tuba-cubic": ("TUBA, cubic", "TUBA on the cubic staircase"),
    "table2": ("Table 2", "Fine-tuning through an information bottleneck"),
    "fig4": ("Figure 4", "Texts whose features hide a private attribute"),
    "table3": ("Table 3", "Domain adaptation by disentanglement"),
    "bench": ("Benchmark", "Many distributions with known truth"),
    "bench-entropy": ("Benchmark, entropy", "Densities with a known entropy"),
    "bench-mutual information": ("Benchmark, MI", "Tasks that are not in the catalogue"),
    "bench-mutual information with a continuous y": ("Benchmark, MI", "Mutual information with a continuous y"),
    "bench-mutual information with classes": ("Benchmark, MI of classes", "Mutual information with classes"),
    "runs": ("Runs", "What was run, where, and how long it took"),
}


def method(name: str) -> str:
    """The name of a method as papers write it.

    Example:
        >>> method("infonce"), method("something-new")
        ('InfoNCE', 'something-new')
    """
    return _METHODS.get(name, name)


def preset(name: str) -> str:
    """The heading of a preset."""
    return _PRESETS.get(name, name)


def pair(domains: published.Pair) -> str:
    """Source and target: with the letters of the paper for its own pairs, in full for others.

    Example:
        >>> pair(("mnist", "mnistm")), pair(("digits", "mnist5k"))
        ('M → MM', 'digits → mnist5k')
    """
    return " → ".join(_DOMAINS[name] if domains in published.PAIRS else name for name in domains)


def corpus(name: str) -> str:
    """The name of a corpus as a report writes it.

    Example:
        >>> corpus("dial-mention"), corpus("mood from age")
        ('DIAL mention', 'mood from age')
    """
    return _CORPORA.get(name, name)


def task(name: str) -> str:
    """The name of a task of texts as papers write it.

    Example:
        >>> task("stsb"), task("posts.csv: mood")
        ('STS-B', 'posts.csv: mood')
    """
    return _TASKS.get(name, name)


def metric(name: str) -> str:
    """The name of a metric.

    Example:
        >>> metric("f1"), metric("accuracy")
        ('F1', 'accuracy')
    """
    return _METRICS.get(name, name)


def title(experiment: str) -> str:
    """The heading of an experiment; its name where it is not known."""
    return _TITLES.get(experiment, (experiment, experiment))[1]


def short(experiment: str) -> str:
    """What the paper calls it, as ``Table 1``; its name where it is not known."""
    return _TITLES.get(experiment, (experiment, experiment))[0]


def place(experiment: str) -> int:
    """Where an experiment stands in a report: in the paper's order, those that are not known last."""
    return list(_TITLES).index(experiment) if experiment in _TITLES else len(_TITLES)


def slug(name: str) -> str:
    """A name that can be that of a file and of an element, whatever the records say.

    Example:
        >>> slug("../fig 3")
        '..-fig-3'
    """
    return re.sub(r"[^\w.-]", "-", name)


def dimension(dim: int | None) -> str:
    """A dimension, or a dash."""
    return "–" if dim is None else str(dim)


def number(value: float | None) -> str:
    """Four decimals as in the paper, fewer for the large, two significant ones for the tiny; a dash for nothing.

    Example:
        >>> [number(value) for value in (0.04612, 13.166, 2.1e-5, -12345.6, 0.0, None)]
        ['0.0461', '13.17', '2.1e-05', '-12346', '0', '–']
    """
    if value is None or not math.isfinite(value):
        return "–"
    size = abs(value)
    if size == 0:
        return "0"
    if size < 1e-3:
        return f"{value:.2g}"
    return f"{value:.4f}" if size < 10 else f"{value:.2f}" if size < 1e3 else f"{value:.0f}"


def percent(value: float | None) -> str:
    """A part of a whole, or a dash.

    Example:
        >>> [percent(value) for value in (0.00213, 0.1234, 25.0, None)]
        ['0.2 %', '12.3 %', '2,500 %', '–']
    """
    if value is None or not math.isfinite(value):
        return "–"
    return f"{100 * value:,.1f} %" if value < 1 else f"{100 * value:,.0f} %"


def several(number: int, what: str) -> str:
    """A number of things.

    Example:
        >>> several(1, "task"), several(1200, "trial")
        ('1 task', '1,200 trials')
    """
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def plus_minus(mean: float | None, std: float | None) -> str:
    """A mean with its deviation, where there is one.

    Example:
        >>> plus_minus(0.0461, 0.0139), plus_minus(0.0461, None)
        ('0.0461 ± 0.0139', '0.0461')
    """
    return number(mean) if std is None else f"{number(mean)} ± {number(std)}"


def accuracy(mean: float | None, std: float | None = None) -> str:
    """Percents with their deviation, where there is one.

    Example:
        >>> accuracy(61.24, 0.78), accuracy(61.24), accuracy(None)
        ('61.2 ± 0.8', '61.2', '–')
    """
    if mean is None:
        return "–"
    return f"{mean:.1f}" if std is None else f"{mean:.1f} ± {std:.1f}"


def cell(entry: published.Cell | None) -> str:
    """A published cell, or a dash."""
    return "–" if entry is None else plus_minus(entry.mean, entry.std)


def minutes(seconds: float) -> str:
    """A time for people.

    Example:
        >>> minutes(0.52), minutes(75), minutes(7290)
        ('0.5 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
