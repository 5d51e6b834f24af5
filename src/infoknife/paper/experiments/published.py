"""The paper's numbers: nats from the published PDF, curves from its vector graphics, percents from its LaTeX source.

G. Pichler, P. Colombo, M. Boudiaf, G. Koliander, P. Piantanida,
*A Differential Entropy Estimator for Training Neural Networks*, ICML 2022.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

__all__ = [
    "FAIR_METHODS",
    "GLUE",
    "KNIFE_BIAS",
    "PAIRS",
    "WEIGHTS",
    "Cell",
    "Pair",
    "Staircase",
    "Tradeoff",
    "accuracy",
    "error",
    "fine_tuned",
    "source",
    "staircase",
    "tradeoff",
]

Pair = tuple[str, str]  # of data sets: labelled source, unlabelled target


class Cell(NamedTuple):
    """A published mean over runs, and the deviation beside it: of |error| in nats, or of a metric in percent."""

    mean: float
    std: float
    runs: int


class Staircase(NamedTuple):
    """Published means of the estimate at the end of each level, in nats; ``None`` where the figure is off its scale."""

    truth: tuple[float, ...]
    mean: tuple[float | None, ...]
    best_run: bool  # the figure shows the best of the runs


class Tradeoff(NamedTuple):
    """Published accuracies of one run, in percent: of the label, and of a classifier of the private attribute."""

    main: float
    private: float


_SOURCES: Mapping[str, str] = MappingProxyType(
    {
        "table1": "Table 1, read from the published PDF",
        "fig1-shrinking": "Figure 1; its values are not printed",
        "fig2-pdf": "Figure 2, left; its values are not printed",
        "fig2-triangle8": "appendix A.2 (Figure 2, right, is one of the runs), read from the published PDF",
        "triangle20": "appendix, triangle mixture with d=20, read from the published PDF",
        "fig3-gaussian": "Figure 3, top, read from the published PDF's vector graphics",
        "fig3-cubic": "Figure 3, middle, read from the published PDF's vector graphics",
        "fig3-uniform": "Figure 3, bottom (best of 10 runs), read from the published PDF's vector graphics",
        "tuba-gaussian": "appendix, figure of TUBA, left, read from the published PDF's vector graphics",
        "fig4": "Figure 4, read from the published PDF's vector graphics; MINE did not converge there",
        "table2": "Table 2 (BERT, 10 seeds), read from the paper's LaTeX source",
        "table3": "Table 3 (3 seeds), read from the paper's LaTeX source",
    }
)

_ERRORS: Mapping[tuple[str, str, int], Cell] = MappingProxyType(
    {
        ("table1", "doe", 10): Cell(0.8388, 1.0045, 20),
        ("table1", "schraudolph", 10): Cell(0.7301, 0.0428, 20),
        ("table1", "knife", 10): Cell(0.0461, 0.0139, 20),
        ("table1", "doe", 64): Cell(3.3170, 1.8281, 20),
        ("table1", "schraudolph", 64): Cell(9.8919, 0.1604, 20),
        ("table1", "knife", 64): Cell(2.8045, 0.0796, 20),
        ("fig2-triangle8", "knife", 8): Cell(1.6563, 0.8528, 10),
        ("fig2-triangle8", "schraudolph", 8): Cell(2.4445, 0.5439, 10),
        ("fig2-triangle8", "doe", 8): Cell(7.1070, 2.7984, 10),
        ("triangle20", "knife", 20): Cell(10.6270, 8.2179, 10),
        ("triangle20", "schraudolph", 20): Cell(13.1660, 8.2651, 10),
    }
)

_TRUTH = 2.0, 4.0, 6.0, 8.0, 10.0

_LEVELS: Mapping[tuple[str, str], tuple[float | None, ...]] = MappingProxyType(
    {
        ("fig3-gaussian", "club"): (1.38, 3.45, 5.99, 8.97, 12.48),
        ("fig3-gaussian", "doe"): (1.81, 3.56, 5.28, 6.94, 8.54),
        ("fig3-gaussian", "infonce"): (0.98, 1.92, 2.74, 3.42, 3.91),
        ("fig3-gaussian", "mine"): (0.56, 1.18, 1.69, 2.18, 2.90),
        ("fig3-gaussian", "nwj"): (0.49, 0.88, 1.22, 1.52, 1.79),
        ("fig3-gaussian", "knife"): (1.98, 3.99, 5.94, 7.99, 9.96),
        ("fig3-cubic", "club"): (3.74, 7.09, 9.92, 12.13, 14.23),
        ("fig3-cubic", "doe"): (None, 2.91, 4.32, 6.54, 8.36),
        ("fig3-cubic", "infonce"): (0.73, 1.54, 2.29, 2.93, 3.45),
        ("fig3-cubic", "mine"): (0.40, 0.77, 1.16, 1.47, 1.87),
        ("fig3-cubic", "nwj"): (0.38, 0.76, 1.15, 1.55, 1.82),
        ("fig3-cubic", "knife"): (1.30, 2.55, 4.17, 5.45, 6.63),
        ("fig3-uniform", "club"): (0.79, 3.09, 6.94, 12.40, 19.51),
        ("fig3-uniform", "doe"): (0.37, 1.46, 3.04, 4.90, 6.90),
        ("fig3-uniform", "infonce"): (0.31, 1.49, 4.02, 4.67, 4.80),
        ("fig3-uniform", "mine"): (0.36, 1.37, 2.84, 4.58, 6.51),
        ("fig3-uniform", "nwj"): (0.39, 1.41, 2.89, 4.47, 5.83),
        ("fig3-uniform", "knife"): (4.01, 5.55, 7.04, 8.73, 10.67),
        ("tuba-gaussian", "tuba"): (1.47, 2.96, 4.52, 6.12, 7.75),
    }
)

KNIFE_BIAS: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "fig3-gaussian": (0.011, 0.016, 0.032, 0.004, 0.017),
        "fig3-cubic": (0.67, 1.63, 1.85, 2.52, 3.36),
        "fig3-uniform": (2.03, 1.30, 1.01, 0.85, 0.71),
    }
)
"""Absolute bias of KNIFE over the last 500 steps of each level, from the same graphics as Figure 3, in nats."""


PAIRS: tuple[Pair, ...] = (
    ("mnist", "mnistm"),
    ("stl10", "cifar10"),
    ("usps", "mnist"),
    ("mnist", "usps"),
    ("cifar10", "stl10"),
    ("svhn", "mnist"),
)
"""Source and target of Table 3, in its order."""

_ACCURACIES: Mapping[str, tuple[tuple[float, float], ...]] = MappingProxyType(
    {  # in the order of PAIRS, and the mean of all as it is printed
        "source-only": ((51.9, 0.8), (58.3, 0.2), (91.1, 0.7), (93.5, 0.6), (72.3, 0.5), (54.7, 2.8), (70.3, 0.9)),
        "club": ((79.1, 2.2), (59.9, 1.9), (96.0, 0.2), (96.8, 0.5), (71.6, 1.3), (83.8, 3.4), (81.2, 1.7)),
        "doe": ((82.2, 2.6), (58.9, 0.8), (97.2, 0.3), (94.2, 0.9), (68.8, 1.4), (86.4, 5.4), (81.3, 1.9)),
        "infonce": ((77.3, 0.5), (61.0, 0.1), (97.4, 0.2), (97.0, 0.3), (70.6, 0.8), (89.2, 4.1), (82.1, 1.0)),
        "mine": ((76.7, 0.4), (61.2, 0.3), (97.7, 0.1), (97.3, 0.1), (70.8, 1.0), (91.8, 0.8), (82.6, 0.4)),
        "nwj": ((77.1, 0.6), (61.2, 0.3), (97.6, 0.1), (97.3, 0.5), (72.1, 0.7), (91.4, 0.8), (82.8, 0.5)),
        "knife": ((78.7, 0.7), (61.8, 0.5), (97.7, 0.3), (97.4, 0.4), (71.2, 1.8), (93.2, 0.2), (83.4, 0.6)),
    }
)

GLUE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"mrpc": ("f1", "accuracy"), "stsb": ("pearson", "spearman"), "rte": ("accuracy",)}
)
"""The tasks of Table 2 and their metrics, in its order."""

_FINE_TUNED: Mapping[str, tuple[tuple[float, float], ...]] = MappingProxyType(
    {  # in the order of GLUE, as printed: F1 of MRPC is usually above the accuracy, here it is below
        "none": ((83.4, 0.9), (88.2, 0.7), (89.2, 0.4), (88.8, 0.4), (69.4, 0.4)),
        "club": ((85.0, 0.4), (89.0, 0.7), (89.7, 0.2), (89.4, 0.1), (70.7, 0.1)),
        "infonce": ((84.9, 0.8), (88.9, 0.6), (89.4, 0.4), (89.7, 0.6), (70.6, 0.1)),
        "mine": ((80.0, 2.5), (85.0, 0.9), (88.0, 0.7), (88.0, 0.6), (69.0, 0.9)),
        "nwj": ((84.6, 0.8), (88.1, 0.7), (89.8, 0.1), (89.6, 0.2), (69.6, 0.7)),
        "vub": ((85.1, 0.5), (89.1, 0.3), (90.0, 0.2), (89.5, 0.3), (70.9, 0.1)),
        "doe": ((84.1, 0.2), (88.3, 0.2), (89.6, 0.2), (89.5, 0.2), (69.6, 0.2)),
        "knife": ((85.3, 0.1), (90.1, 0.1), (90.3, 0.0), (90.1, 0.0), (72.3, 0.2)),
    }
)

WEIGHTS: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "dial-sentiment": (0.01, 0.1, 1.0, 10.0, 100.0),
        "dial-mention": (0.001, 0.01, 0.1, 1.0, 10.0),
    }
)
"""Lambda of Figure 4, from left to right; each corpus has its own."""

FAIR_METHODS = "knife", "club", "infonce", "nwj", "doe", "adv"
"""The methods of Figure 4."""

_UNREGULARIZED: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"dial-sentiment": (71.0, 64.0), "dial-mention": (84.0, 66.0)}  # the dashed lines
)
_TRADEOFFS: Mapping[tuple[str, str], tuple[tuple[float, float], ...]] = MappingProxyType(
    {  # main and private accuracy in percent, in the order of WEIGHTS
        ("dial-sentiment", "knife"): ((70.9, 61.5), (69.8, 57.1), (70.6, 57.9), (69.9, 55.2), (70.4, 50.0)),
        ("dial-sentiment", "club"): ((70.6, 54.5), (70.4, 56.5), (70.0, 56.9), (69.9, 56.2), (67.3, 54.8)),
        ("dial-sentiment", "infonce"): ((70.4, 64.0), (70.4, 63.7), (69.6, 53.4), (65.8, 50.0), (61.4, 50.0)),
        ("dial-sentiment", "nwj"): ((70.4, 60.3), (67.6, 58.8), (50.0, 59.1), (52.8, 50.0), (50.0, 58.4)),
        ("dial-sentiment", "doe"): ((70.8, 59.8), (69.6, 61.6), (60.0, 60.8), (57.6, 60.0), (58.1, 60.9)),
        ("dial-sentiment", "adv"): ((72.0, 60.3), (72.0, 61.1), (50.0, 53.0), (51.6, 65.0), (52.9, 65.0)),
        ("dial-mention", "knife"): ((82.0, 61.2), (82.9, 61.6), (82.9, 57.3), (83.1, 53.0), (83.2, 50.0)),
        ("dial-mention", "club"): ((82.4, 60.3), (82.6, 55.3), (81.6, 50.1), (82.1, 50.1), (83.0, 56.6)),
        ("dial-mention", "infonce"): ((63.7, 50.0), (63.6, 50.0), (79.9, 61.9), (50.1, 50.0), (68.8, 56.5)),
        ("dial-mention", "nwj"): ((57.0, 63.6), (50.0, 63.8), (50.0, 60.3), (52.9, 61.9), (50.1, 62.8)),
        ("dial-mention", "doe"): ((82.2, 62.6), (82.0, 59.7), (81.6, 59.7), (80.4, 61.5), (65.1, 58.6)),
        ("dial-mention", "adv"): ((80.8, 62.8), (80.6, 59.0), (80.8, 56.7), (54.8, 52.7), (53.0, 67.0)),
    }
)


def error(experiment: str, method: str, dim: int | None) -> Cell | None:
    """The published mean of |error| of a method, in nats; ``None`` where the paper has none.

    Example:
        >>> error("table1", "knife", 64)
        Cell(mean=2.8045, std=0.0796, runs=20)
    """
    return None if dim is None else _ERRORS.get((experiment, method, dim))


def staircase(experiment: str, method: str) -> Staircase | None:
    """The published means of a method by level, in nats; ``None`` where the paper has none.

    Example:
        >>> staircase("fig3-cubic", "doe").mean
        (None, 2.91, 4.32, 6.54, 8.36)
    """
    mean = _LEVELS.get((experiment, method))
    return None if mean is None else Staircase(_TRUTH, mean, best_run=experiment == "fig3-uniform")


def accuracy(method: str, pair: Pair | None = None) -> Cell | None:
    """The published accuracy on the target (tab:da_results), in percent; ``None`` where the paper has none.

    Args:
        method: The method, ``"source-only"`` among them.
        pair: Source and target; the printed mean over all six if not given.

    Example:
        >>> accuracy("knife", ("svhn", "mnist")), accuracy("knife")
        (Cell(mean=93.2, std=0.2, runs=3), Cell(mean=83.4, std=0.6, runs=3))
    """
    if method not in _ACCURACIES or (pair is not None and pair not in PAIRS):
        return None
    return Cell(*_ACCURACIES[method][-1 if pair is None else PAIRS.index(pair)], runs=3)


def fine_tuned(method: str, task: str, metric: str) -> Cell | None:
    """The published metric of a fine-tuned BERT (tab:result_glue), in percent; ``None`` where the paper has none.

    Args:
        method: The method; ``"none"`` is BERT by cross-entropy alone, ``"vub"`` is VIBERT.
        task: One of ``GLUE``.
        metric: One of the task's.

    Example:
        >>> fine_tuned("knife", "rte", "accuracy")
        Cell(mean=72.3, std=0.2, runs=10)
    """
    columns = [(name, each) for name, metrics in GLUE.items() for each in metrics]
    if method not in _FINE_TUNED or (task, metric) not in columns:
        return None
    return Cell(*_FINE_TUNED[method][columns.index((task, metric))], runs=10)


def tradeoff(corpus: str, method: str, weight: float = 0.0) -> Tradeoff | None:
    """The published accuracies (fig:fair_classification_main), in percent; ``None`` where the paper has none.

    Args:
        corpus: One of ``WEIGHTS``.
        method: The method; ``"none"`` is training without a regularizer, whatever the weight.
        weight: Lambda.

    Example:
        >>> tradeoff("dial-mention", "knife", 10.0), tradeoff("dial-mention", "none")
        (Tradeoff(main=83.2, private=50.0), Tradeoff(main=84.0, private=66.0))
    """
    if method == "none":
        found = _UNREGULARIZED.get(corpus)
    else:
        curve = zip(WEIGHTS.get(corpus, ()), _TRADEOFFS.get((corpus, method), ()), strict=False)
        found = dict(curve).get(weight)
    return None if found is None else Tradeoff(*found)


def source(experiment: str) -> str | None:
    """Where the paper has an experiment's numbers.

    Example:
        >>> source("table1")
        'Table 1, read from the published PDF'
    """
    return _SOURCES.get(experiment)
