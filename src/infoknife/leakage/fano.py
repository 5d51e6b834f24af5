"""Fano's inequality: how often a guess must be wrong, given what there is left to know."""

import math

from infoknife.inputs import check_whole

__all__ = ["accuracy_ceiling", "least_error"]

HALVINGS = 60  # of an interval: the rest is rounding


def least_error(conditional_entropy: float, classes: int) -> float:
    r"""Return the least probability of error of any guess of S from Z.

    It solves $H(S \mid Z) = h_b(P_e) + P_e \log(K - 1)$ with $h_b(p) = -p \log p - (1 - p) \log(1 - p)$: no guess has a
    smaller $P_e$ (Fano's inequality). A symmetric channel meets it with equality.

    Args:
        conditional_entropy: $H(S \mid Z)$ in nats, between 0 and $\log K$; values beyond are taken as the nearer end.
        classes: $K$, at least two.

    Example:
        >>> round(least_error(math.log(2), 2), 3), least_error(0.0, 2)
        (0.5, 0.0)
        >>> round(least_error(0.3250829733914482, 2), 6)  # a binary channel that flips one bit in ten
        0.1
    """
    K = check_whole("classes", classes)
    if K < 2:
        raise ValueError(f"classes is {K}; expected at least 2, to guess between")
    if math.isnan(conditional_entropy):
        raise ValueError("conditional_entropy is nan; expected nats between 0 and log(classes)")
    if conditional_entropy <= 0:
        return 0.0
    low, high = 0.0, 1 - 1 / K  # the right side rises between these ends
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _uncertainty(middle, K) < conditional_entropy else (low, middle)
    return high


def accuracy_ceiling(information: float, entropy: float, classes: int) -> float:
    r"""Return the highest accuracy that any guess of S from Z can have, $1 - P_e$ at $H(S \mid Z) = H(S) - I(Z; S)$.

    Args:
        information: $I(Z; S)$ in nats.
        entropy: $H(S)$ in nats.
        classes: How many classes S has.

    Example:
        >>> accuracy_ceiling(math.log(2), math.log(2), 2)
        1.0
    """
    return 1 - least_error(entropy - information, classes)


def _uncertainty(error: float, classes: int) -> float:
    """Fano's right side, in nats."""
    return sum(-p * math.log(p) for p in (error, 1 - error) if p > 0) + error * math.log(classes - 1)
