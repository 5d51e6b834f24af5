import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from infoknife.theory import confidence_bound, is_informative, sufficient_conditions

GOOD: dict[str, Any] = {"N": 100, "M": 1e20, "w": 1e-5, "d": 1, "delta": 0.1, "lipschitz": 4.0}


def by_hand(*, N: float, M: float, w: float, d: int, delta: float, C1: float, C2: float, K_max: float) -> float:
    """The theorem term by term with 60 digits, where nothing under- or overflows."""
    with localcontext() as context:
        context.prec = 60
        n, m, width, p, c1, c2, k = (Decimal(float(v)) for v in (N, M, w, delta, C1, C2, K_max))
        scatter = 3 * n * k / (width**d * p) * ((6 * n / p).ln() / (2 * m)).sqrt()
        argument = 1 - scatter - 3 * n * c2 * width / p
        return float(-argument.ln() + (3 * c1 / (n * p)).sqrt()) if argument > 0 else math.inf


# the value


@given(
    N=st.integers(1, 1000),
    M=st.floats(0.0, 40.0).map(lambda e: 10.0**e),
    w=st.floats(-6.0, -1.0).map(lambda e: 10.0**e),
    d=st.integers(1, 4),
    delta=st.floats(0.01, 0.99),
    C1=st.floats(0.0, 5.0),
    C2=st.floats(0.0, 5.0),
    K_max=st.floats(1.0, 3.0),
)
def test_value_against_exact_arithmetic(**arguments: Any) -> None:
    truth = by_hand(**arguments)
    assert confidence_bound(**arguments) == pytest.approx(truth, rel=1e-9)
    assert is_informative(**arguments) == math.isfinite(truth)


def test_constants_follow_from_the_lipschitz_constant() -> None:
    L, d = 8.0, 3
    p_max = L / 2
    C1, C2 = max(p_max * math.log(p_max) ** 2, 4 * math.exp(-2)), L * d / 2
    explicit = confidence_bound(10, 1e40, 1e-5, d, 0.2, C1=C1, C2=C2)
    assert confidence_bound(10, 1e40, 1e-5, d, 0.2, lipschitz=L) == explicit < math.inf
    assert confidence_bound(10, 1e40, 1e-5, d, 0.2, C2=C2, p_max=p_max) == explicit
    assert confidence_bound(10, 1e40, 1e-5, d, 0.2, lipschitz=L, kernel_moment=d / 2, p_max=p_max) == explicit
    assert confidence_bound(10, 1e40, 1e-5, d, 0.2, lipschitz=1.0, kernel_moment=1.0, C1=C1, C2=C2) == explicit


@pytest.mark.parametrize("p_max", [1.0, 1.5, 2.0, 2.5, 10.0])
def test_bound_on_c1_is_the_largest_value_of_t_log_squared_t(p_max: float) -> None:
    free = minimize_scalar(lambda t: -t * math.log(t) ** 2, bounds=(1e-9, 1.0), method="bounded")
    largest = max(-free.fun, p_max * math.log(p_max) ** 2)
    assert largest >= max(t * math.log(t) ** 2 for t in np.linspace(1e-9, p_max, 10_001))
    expected = math.sqrt(3 * largest / (2 * 0.5))
    # without kernels' scatter and bias nothing but the term of C1 remains
    assert confidence_bound(2, 1e300, 0.5, 1, 0.5, C2=0.0, p_max=p_max) == pytest.approx(expected, rel=1e-6)


def test_bound_on_c1_holds_for_the_triangle() -> None:
    def p(x: float) -> float:
        return 2.0 - 4.0 * abs(x - 0.5)

    c1 = 2.0 * quad(lambda x: p(x) * math.log(p(x)) ** 2, 0.0, 0.5)[0]
    assert c1 == pytest.approx(math.log(2.0) ** 2 - math.log(2.0) + 0.5)  # p(X) / 2 has density 2 v on [0, 1]
    with_truth = confidence_bound(100, 1e20, 1e-5, 1, 0.1, C1=c1, C2=2.0)
    assert with_truth < confidence_bound(100, 1e20, 1e-5, 1, 0.1, lipschitz=4.0)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_no_density_is_flatter_than_documented(d: int) -> None:
    # |p(x)| <= L dist(x, faces), and the mean distance is that of the least of d uniforms on [0, 1/2]
    mean_distance = quad(lambda t: (1.0 - 2.0 * t) ** d, 0.0, 0.5)[0]
    assert 1.0 / mean_distance == pytest.approx(2.0 * (d + 1))


def test_error_of_a_real_estimate_stays_below_the_bound() -> None:
    rng = np.random.default_rng(0)
    M, w, delta, trials = 100_000, 0.04, 0.8, 100
    bound = confidence_bound(1, M, w, 1, delta, lipschitz=4.0)
    assert bound < math.inf
    truth, errors = 0.5 - math.log(2.0), []
    for _ in range(trials):
        kernels = np.sort(rng.triangular(0.0, 0.5, 1.0, M))
        x = rng.triangular(0.0, 0.5, 1.0)
        inside = np.searchsorted(kernels, x) - np.searchsorted(kernels, x - w)  # uniform kernel on [0, 1]
        errors.append(abs(truth + math.log(inside / (M * w))) if inside else math.inf)
    assert np.mean(np.array(errors) > bound) <= delta


# its shape


LARGER: dict[str, tuple[Callable[[float], float], int]] = {  # arguments by a factor, and how the bound follows
    "M": (lambda f: 1e20 * f, -1),
    "delta": (lambda f: min(0.1 * f, 0.99), -1),
    "lipschitz": (lambda f: 4.0 * f, 1),
    "kernel_moment": (lambda f: 0.5 * f, 1),
    "K_max": (lambda f: f, 1),
    "p_max": (lambda f: 2.0 * f, 1),
    "C1": (lambda f: f, 1),
    "C2": (lambda f: f, 1),
    "d": (lambda f: float(math.ceil(f)), 1),
}


@pytest.mark.parametrize("name", LARGER)
@given(f=st.floats(1.0, 20.0), g=st.floats(1.0, 100.0))
def test_what_makes_the_bound_larger(name: str, f: float, g: float) -> None:
    value, sign = LARGER[name]
    before, after = (confidence_bound(**{**GOOD, name: value(factor)}) for factor in (f, f * g))
    assert before <= after if sign > 0 else after <= before


@given(N=st.integers(1, 10**6))
def test_logarithm_grows_with_samples_while_the_rest_falls(N: int) -> None:
    rest = confidence_bound(**{**GOOD, "N": N, "M": 1e300, "C2": 0.0})
    assert confidence_bound(**{**GOOD, "N": N + 1, "M": 1e300, "C2": 0.0}) <= rest
    alone = confidence_bound(**{**GOOD, "N": N, "C1": 0.0})
    assert confidence_bound(**{**GOOD, "N": N + 1, "C1": 0.0}) >= alone


def test_bandwidth_has_a_best_value() -> None:
    wide, best, narrow = (confidence_bound(**{**GOOD, "w": w}) for w in (1e-4, 1e-5, 1e-7))
    assert best < wide
    assert best < narrow


# infinite


SILENT: tuple[dict[str, Any], ...] = (
    *({"M": 1}, {"w": 1.0}, {"w": 1e-300}, {"d": 64, "w": 1e-6}),
    *({"d": 10_000, "w": 1e-300}, {"N": 10**9}, {"C2": 1e300}),
)


@pytest.mark.parametrize("change", SILENT)
def test_infinite_where_the_theorem_is_silent(change: dict[str, float]) -> None:
    assert confidence_bound(**{**GOOD, **change}) == math.inf
    assert not is_informative(**{**GOOD, **change})


def test_wide_kernels_in_high_dimension_do_not_overflow() -> None:
    # w**d overflows, the scatter vanishes: the bias alone decides
    assert confidence_bound(1, 1, 1e10, 500, 0.5, C1=0.0, C2=0.0) == 0.0
    assert confidence_bound(1, 1, 1e10, 500, 0.5, C1=0.0, C2=1.0) == math.inf


# the conditions


@pytest.mark.parametrize("d", [1, 2, 7])
@pytest.mark.parametrize("w_rate", [0.5, 1.0, 1.25, 2.0])
@pytest.mark.parametrize("extra", [-1.0, 0.0, 1.0])
def test_conditions_are_the_limits(d: int, w_rate: float, extra: float) -> None:
    M_rate = 2.0 + 2.0 * d * w_rate + extra

    def log_terms(log_N: float) -> tuple[float, float]:
        log_w, log_M = -w_rate * log_N, M_rate * log_N
        return log_N + log_w, 2.0 * log_N + math.log(log_N) - 2.0 * d * log_w - log_M

    near, far = log_terms(1e3), log_terms(1e6)
    to_zero = all(later < earlier and later < -100.0 for earlier, later in zip(near, far, strict=True))
    assert sufficient_conditions(w_rate, M_rate, d) == to_zero


def test_bound_vanishes_where_the_conditions_hold() -> None:
    bounds = [confidence_bound(N, N**10.0, N**-2.0, 1, 0.1, lipschitz=4.0) for N in (1e4, 1e6, 1e8, 1e10)]
    assert sufficient_conditions(2.0, 10.0, 1)
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < 1e-4


# errors


BAD_VALUES = {
    "N": (0,),
    "M": (math.nan, 0.5),
    "w": (math.inf, 0.0),
    "d": (0, 1.5),
    "delta": (0.0, 1.0),
    "lipschitz": (-1.0, None),
    **dict.fromkeys(("kernel_moment", "K_max", "p_max"), (0.0, -2.0)),
    **dict.fromkeys(("C1", "C2"), (-1.0,)),
}
BAD: list[tuple[dict[str, Any], type[Exception]]] = [
    *(({name: value}, ValueError) for name, values in BAD_VALUES.items() for value in values),
    ({"lipschitz": None, "C1": 1.0}, ValueError),
    ({"N": "10"}, TypeError),
    ({"lipschitz": [4.0]}, TypeError),
]


@pytest.mark.parametrize(("change", "error"), BAD, ids=str)
def test_errors_name_the_argument(change: dict[str, Any], error: type[Exception]) -> None:
    for function in (confidence_bound, is_informative):
        with pytest.raises(error, match=f"^{next(iter(change))} is "):
            function(**{**GOOD, **change})


@pytest.mark.parametrize(("name", "rates"), [("w_rate", (math.nan, 5.0, 1)), ("d", (1.5, 5.0, 0))])
def test_errors_of_the_rates(name: str, rates: tuple[float, float, int]) -> None:
    with pytest.raises(ValueError, match=f"^{name} is "):
        sufficient_conditions(*rates)
