"""How far a kernel estimate of an entropy can be off: the paper's confidence bound as a function.

The theorem (``thm:confidence_bound``, in short ``thm:convergence``) is about the Parzen-Rosenblatt estimate
with M kernels of bandwidth w, averaged over N other samples. It assumes that

- the density p lives on the unit cube [0, 1]^d and is L-Lipschitz in the 1-norm on all of R^d, so that it
  falls to zero at the faces of the cube;
- the kernel is a density on the same cube.

The bound is honest and loose: it asks for many more kernels than samples, and for astronomically many in high
dimension. It says nothing about a trained KNIFE. Everything is in nats.
"""

import math
from numbers import Real
from typing import NamedTuple, TypedDict, Unpack

__all__ = ["Constants", "confidence_bound", "is_informative", "kernels_needed", "sufficient_conditions"]


class Constants(TypedDict, total=False):
    """What the theorem needs to know of the density and the kernel: keywords of every function here."""

    lipschitz: float | None
    kernel_moment: float | None
    C1: float | None
    C2: float | None
    K_max: float
    p_max: float | None


def confidence_bound(
    N: float,
    M: float,
    w: float,
    d: int,
    delta: float,
    *,
    lipschitz: float | None = None,
    kernel_moment: float | None = None,
    C1: float | None = None,
    C2: float | None = None,
    K_max: float = 1.0,
    p_max: float | None = None,
) -> float:
    """Bound the error of the Parzen-Rosenblatt entropy, with probability greater than ``1 - delta``.

    The formula is the paper's ``thm:confidence_bound``:

        |h(X) - h_hat| <= -log(1 - 3 N K_max / (w^d delta) sqrt(log(6 N / delta) / (2 M)) - 3 N C2 w / delta)
                          + sqrt(3 C1 / (N delta))

    Where the argument of the logarithm is not positive the theorem is silent and the bound is infinite.
    A constant that is given is used as it is. One that is not given follows from the Lipschitz constant L:
    p_max <= L / 2; C1 <= max(p_max log^2 p_max, 4 / e^2), the largest value of t log^2 t for 0 < t <= p_max;
    C2 = L E||U||_1 for U from the kernel.

    Args:
        N: The number of samples in the average, at least 1.
        M: The number of kernels, at least 1.
        w: The bandwidth.
        d: The dimension of x.
        delta: The probability of a larger error, between 0 and 1.
        lipschitz: L, in the 1-norm. No density on the cube has one below 2 (d + 1).
        kernel_moment: E||U||_1 for U from the kernel; if not given d / 2, the uniform kernel's.
        C1: The integral of p log^2 p.
        C2: L E||U||_1.
        K_max: The kernel's largest value; 1 for the uniform kernel.
        p_max: The density's largest value, at least 1 for a density on the cube.

    Returns:
        An upper bound on the absolute error in nats, or ``math.inf``.

    Raises:
        TypeError: An argument is not a real number.
        ValueError: An argument is out of its range, or neither ``lipschitz`` nor what replaces it is given.

    Example:
        >>> round(confidence_bound(100, 1e20, 1e-5, 1, 0.1, lipschitz=4.0), 3)
        0.668
        >>> confidence_bound(100, 1000, 0.1, 1, 0.1, lipschitz=4.0)  # too few kernels, too wide
        inf
    """
    constants = Constants(lipschitz=lipschitz, kernel_moment=kernel_moment, C1=C1, C2=C2, K_max=K_max, p_max=p_max)
    terms = _terms(N, w, d, delta, **constants)
    gap = terms.gap(M)
    return -math.log1p(-gap) + terms.oracle if gap < 1.0 else math.inf


def is_informative(N: float, M: float, w: float, d: int, delta: float, **constants: Unpack[Constants]) -> bool:
    """Tell whether the theorem says anything: the argument of its logarithm is positive.

    Args:
        N: The number of samples in the average.
        M: The number of kernels.
        w: The bandwidth.
        d: The dimension of x.
        delta: The probability of a larger error.
        **constants: As in `confidence_bound`.

    Example:
        >>> is_informative(100, 1e20, 1e-5, 1, 0.1, lipschitz=4.0)
        True
    """
    return _terms(N, w, d, delta, **constants).gap(M) < 1.0


def kernels_needed(N: float, w: float, d: int, delta: float, epsilon: float, **constants: Unpack[Constants]) -> float:
    """Count the kernels that bring the bound down to ``epsilon`` nats; infinite if no number of them does.

    The theorem solved for M. As a float, because the count soon leaves the range of everyday integers.

    Args:
        N: The number of samples in the average.
        w: The bandwidth.
        d: The dimension of x.
        delta: The probability of a larger error.
        epsilon: The error that is allowed, in nats.
        **constants: As in `confidence_bound`.

    Example:
        >>> f"{kernels_needed(100, 1e-5, 1, 0.1, 0.65, lipschitz=4.0):.1e}"
        '1.8e+20'
    """
    terms = _terms(N, w, d, delta, **constants)
    room = -math.expm1(min(0.0, terms.oracle - _positive("epsilon", epsilon))) - terms.bias
    if room <= 0.0:
        return math.inf
    return max(1.0, _ceil(_exp(2.0 * (terms.log_scatter - math.log(room)))))


def sufficient_conditions(w_rate: float, M_rate: float, d: int) -> bool:
    """Tell whether the bound goes to zero with growing N, for w = N^-a and M = N^b.

    The conditions of ``thm:convergence`` are N w -> 0 and N^2 log N / (w^(2 d) M) -> 0. They hold if and only
    if a > 1 and b > 2 + 2 d a.

    Args:
        w_rate: a, how fast the bandwidth falls.
        M_rate: b, how fast the number of kernels grows.
        d: The dimension of x.

    Example:
        >>> sufficient_conditions(1.1, 5.0, d=1), sufficient_conditions(1.1, 5.0, d=2)
        (True, False)
    """
    a, b = _real("w_rate", w_rate), _real("M_rate", M_rate)
    return a > 1.0 and b > 2.0 + 2.0 * _dimension(d) * a


class _Terms(NamedTuple):
    """The three sources of error, each at its share of a third of delta."""

    log_scatter: float  # log of what one kernel would scatter; M kernels scatter 1/sqrt(M) of it
    bias: float  # of kernels as wide as w
    oracle: float  # of an average over N samples, had the density been known

    def gap(self, M: float) -> float:
        """What the theorem takes away from one inside the logarithm."""
        return _exp(self.log_scatter - 0.5 * math.log(_count("M", M))) + self.bias


def _terms(
    N: float,
    w: float,
    d: int,
    delta: float,
    *,
    lipschitz: float | None = None,
    kernel_moment: float | None = None,
    C1: float | None = None,
    C2: float | None = None,
    K_max: float = 1.0,
    p_max: float | None = None,
) -> _Terms:
    N, w, d, delta = _count("N", N), _positive("w", w), _dimension(d), _probability("delta", delta)
    c1 = _bound_on_c1(lipschitz, p_max) if C1 is None else _positive("C1", C1, zero=True)
    c2 = _implied_c2(lipschitz, kernel_moment, d) if C2 is None else _positive("C2", C2, zero=True)
    # w**d leaves the range of floats long before its logarithm does
    log_scatter = math.log(3.0 * N) + math.log(_positive("K_max", K_max)) - d * math.log(w) - math.log(delta)
    log_scatter += 0.5 * math.log(0.5 * (math.log(6.0 * N) - math.log(delta)))
    return _Terms(log_scatter, 3.0 * N * c2 * w / delta, math.sqrt(3.0 * c1 / (N * delta)))


def _bound_on_c1(lipschitz: float | None, p_max: float | None) -> float:
    top = _lipschitz(lipschitz, "C1 or p_max") / 2.0 if p_max is None else _positive("p_max", p_max)
    return max(top * math.log(top) ** 2, 4.0 * math.exp(-2.0))


def _implied_c2(lipschitz: float | None, kernel_moment: float | None, d: int) -> float:
    moment = d / 2.0 if kernel_moment is None else _positive("kernel_moment", kernel_moment)
    return _lipschitz(lipschitz, "C2") * moment


def _lipschitz(lipschitz: float | None, instead: str) -> float:
    if lipschitz is None:
        raise ValueError(f"lipschitz is None; expected the density's Lipschitz constant, or give {instead}")
    return _positive("lipschitz", lipschitz)


def _real(name: str, value: float) -> float:
    if not isinstance(value, Real):
        raise TypeError(f"{name} is a {type(value).__name__}; expected a number")
    if not math.isfinite(value):
        raise ValueError(f"{name} is {value}; expected a finite number")
    return float(value)


def _positive(name: str, value: float, *, zero: bool = False) -> float:
    number = _real(name, value)
    if number < 0.0 or (number == 0.0 and not zero):
        raise ValueError(f"{name} is {value}; expected a number {'from zero on' if zero else 'above zero'}")
    return number


def _count(name: str, value: float) -> float:
    number = _real(name, value)
    if number < 1.0:
        raise ValueError(f"{name} is {value}; expected at least 1")
    return number


def _dimension(d: int) -> int:
    if not _count("d", d).is_integer():
        raise ValueError(f"d is {d}; expected a whole number of dimensions")
    return int(d)


def _probability(name: str, value: float) -> float:
    number = _real(name, value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} is {value}; expected a probability above 0 and below 1")
    return number


def _exp(v: float) -> float:
    return math.exp(v) if v < 709.0 else math.inf


def _ceil(v: float) -> float:
    return float(math.ceil(v)) if math.isfinite(v) else v
