"""How far a kernel estimate of an entropy can be off: the paper's confidence bound as a function.

The theorem (`thm:confidence_bound`, in short `thm:convergence`) is about the Parzen-Rosenblatt estimate with M
kernels of bandwidth w, averaged over N other samples. It assumes that

- the density p lives on the unit cube [0, 1]^d and is L-Lipschitz in the 1-norm on all of R^d, so that it falls
  to zero at the faces of the cube;
- the kernel is a density on the same cube.

The bound is loose: it asks for astronomically many kernels in high dimension. It says nothing about a trained KNIFE.
"""

import math
import sys
from collections.abc import Callable
from numbers import Real
from typing import TypedDict, Unpack

__all__ = ["Constants", "confidence_bound", "is_informative", "sufficient_conditions"]


class Constants(TypedDict, total=False):
    """What the theorem needs to know about the density and the kernel, as in ``confidence_bound``.

    Examples:
        >>> known = Constants(lipschitz=4.0)
        >>> round(confidence_bound(N=100, M=1e20, w=1e-5, d=1, delta=0.1, **known), 3)
        0.668
    """

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
    r"""Bound the error of the Parzen-Rosenblatt entropy, with probability greater than 1 - delta.

    $$-\log\Bigl(1 - \frac{3 N K_{\max}}{w^d \delta} \sqrt{\frac{\log(6N/\delta)}{2M}} - \frac{3 N C_2 w}{\delta}\Bigr)
    + \sqrt{\frac{3 C_1}{N \delta}},$$

    which is `thm:confidence_bound`. Where the logarithm's argument is not positive the theorem is silent and the bound
    is infinite. A constant that is given is used as it is. One that is not given follows from the Lipschitz constant:
    $p_{\max} \le L/2$; $C_1 \le \max\{p_{\max} \log^2 p_{\max}, 4e^{-2}\}$, the largest $t \log^2 t$ for
    $0 < t \le p_{\max}$; $C_2 = L\,\mathrm E\lVert U\rVert_1$ for U from the kernel.

    Args:
        N: Number of samples in the average, at least 1.
        M: Number of kernels, at least 1.
        w: Bandwidth.
        d: Dimension of x.
        delta: Probability of a larger error, between 0 and 1.
        lipschitz: L, in the 1-norm. No density on the cube has one below 2 (d + 1).
        kernel_moment: Mean 1-norm of a draw from the kernel; if not given d / 2, the uniform kernel's.
        C1: Integral of p log^2 p.
        C2: L times the kernel's moment.
        K_max: Largest value of the kernel; 1 for the uniform kernel.
        p_max: Largest value of p, at least 1 for a density on the cube.

    Returns:
        An upper bound of the absolute error in nats, perhaps ``math.inf``.

    Examples:
        >>> round(confidence_bound(100, 1e20, 1e-5, 1, 0.1, lipschitz=4.0), 3)
        0.668
        >>> confidence_bound(100, 1000, 0.1, 1, 0.1, lipschitz=4.0)  # too few kernels, too wide
        inf
    """
    N, M, w, delta = _checked("N", N), _checked("M", M), _checked("w", w), _checked("delta", delta)
    c1 = _bound_on_c1(lipschitz, p_max) if C1 is None else _checked("C1", C1)
    c2 = _implied_c2(lipschitz, kernel_moment, _checked("d", d)) if C2 is None else _checked("C2", C2)
    # w**d leaves the range of floats long before its logarithm does
    log_scatter = math.log(3.0 * N) + math.log(_checked("K_max", K_max)) - _checked("d", d) * math.log(w)
    log_scatter += 0.5 * math.log((math.log(6.0 * N) - math.log(delta)) / 2.0 / M) - math.log(delta)
    bias = 3.0 * N * c2 * w / delta
    if log_scatter >= 0.0 or (gap := math.exp(log_scatter) + bias) >= 1.0:
        return math.inf
    return -math.log1p(-gap) + math.sqrt(3.0 * c1 / (N * delta))


def is_informative(N: float, M: float, w: float, d: int, delta: float, **constants: Unpack[Constants]) -> bool:
    """Return whether the theorem says anything: the logarithm's argument is positive. Arguments of `confidence_bound`.

    Examples:
        >>> is_informative(100, 1e20, 1e-5, 1, 0.1, lipschitz=4.0)
        True
    """
    return math.isfinite(confidence_bound(N, M, w, d, delta, **constants))


def sufficient_conditions(w_rate: float, M_rate: float, d: int) -> bool:
    r"""Return whether the bound goes to zero with growing N, for $w = N^{-a}$ and $M = N^b$.

    The conditions of `thm:convergence`: $N w \to 0$ and $N^2 \log N / (w^{2d} M) \to 0$, or $a > 1$ and $b > 2 + 2da$.

    Args:
        w_rate: a, how fast the bandwidth falls.
        M_rate: b, how fast the number of kernels grows.
        d: Dimension of x.

    Examples:
        >>> sufficient_conditions(1.1, 5.0, d=1), sufficient_conditions(1.1, 5.0, d=2)
        (True, False)
    """
    a, b = _checked("w_rate", w_rate), _checked("M_rate", M_rate)
    return a > 1.0 and b > 2.0 + 2.0 * _checked("d", d) * a


def _bound_on_c1(lipschitz: float | None, p_max: float | None) -> float:
    top = _lipschitz(lipschitz, "C1 or p_max") / 2.0 if p_max is None else _checked("p_max", p_max)
    return max(top * math.log(top) ** 2 if top else 0.0, 4.0 * math.exp(-2.0))


def _implied_c2(lipschitz: float | None, kernel_moment: float | None, d: float) -> float:
    moment = d / 2.0 if kernel_moment is None else _checked("kernel_moment", kernel_moment)
    return _lipschitz(lipschitz, "C2") * moment


def _lipschitz(value: float | None, instead: str) -> float:
    if value is None:
        raise ValueError(f"lipschitz is None; expected the density's Lipschitz constant, or give {instead}")
    return _checked("lipschitz", value)


_LARGEST = sys.float_info.max
_Range = tuple[str, Callable[[float], bool]]
_POSITIVE: _Range = "a finite number above 0", lambda v: v > 0.0
_NOT_NEGATIVE: _Range = "a finite number from 0 on", lambda v: v >= 0.0
_FROM_ONE: _Range = "a finite number from 1 on", lambda v: v >= 1.0
_ANY: _Range = "a finite number", lambda v: True
_RANGES: dict[str, _Range] = {"N": _FROM_ONE, "M": _FROM_ONE, "C1": _NOT_NEGATIVE, "C2": _NOT_NEGATIVE}
_RANGES |= {"w_rate": _ANY, "M_rate": _ANY, "d": ("a whole number from 1 on", lambda v: v >= 1.0 and v.is_integer())}
_RANGES |= {"delta": ("a probability above 0 and below 1", lambda v: 0.0 < v < 1.0)}


def _checked(name: str, value: float) -> float:
    expected, inside = _RANGES.get(name, _POSITIVE)
    if not isinstance(value, Real):
        raise TypeError(f"{name} is a {type(value).__name__}; expected {expected}")
    if not (-_LARGEST <= value <= _LARGEST and inside(float(value))):
        shown = value if isinstance(value, float) or abs(value) < _LARGEST else "beyond all floats"
        raise ValueError(f"{name} is {shown}; expected {expected}")
    return float(value)
