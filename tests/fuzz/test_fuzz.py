"""Generated input to all public functions: a right answer or one of our own errors, whatever comes.

`make test` makes about 1,000 calls, `make fuzz` 20,000 in slices: ``FUZZ_EXAMPLES`` per test, from ``FUZZ_SEED``.
"""

import inspect
import math
import os
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from infoknife import (
    KNIFE,
    Autoregressive,
    Gaussian,
    Logistic,
    Parzen,
    Regularizer,
    Schraudolph,
    annealed,
    audit,
    compare,
    coordinates,
    entropy,
    erasure,
    fit,
    interaction_information,
    lagged,
    mi,
    mutual_information,
    normalized_mutual_information,
    permutation_test,
    tasks,
    theory,
    total_correlation,
    transfer_entropy,
)
from tests.fuzz.conftest import outcome
from tests.fuzz.values import Rows, codes, rows

EXAMPLES, SEED = int(os.environ.get("FUZZ_EXAMPLES", "9")), int(os.environ.get("FUZZ_SEED", "0"))
GOOD = torch.randn(64, 2, generator=torch.Generator().manual_seed(0), dtype=torch.double)
LABELS = torch.arange(64) % 3

DENSITIES: dict[str, Any] = {
    "gaussian": lambda: Gaussian(2),
    "knife": lambda: KNIFE(2, 4),
    "knife given": lambda: KNIFE(2, 4, given_dim=2),
    "knife classes": lambda: KNIFE(2, 4, given_classes=3),
    "autoregressive": lambda: Autoregressive(2, 3),
    "parzen": lambda: Parzen(2),
}
ESTIMATORS: dict[str, Any] = {
    name: lambda name=name: mi(name, 2, 2) for name in ("knife", "club", "mine", "infonce", "vub", "doe", "l1out")
}
ESTIMATORS |= {"knife classes": lambda: mi("knife", 2, y_classes=3), "adv classes": lambda: mi("adv", 2, y_classes=3)}
METHODS = {"density": ("log_prob", "forward"), "estimator": ("pointwise", "forward", "loss")}
MODULES = [("density", make) for make in DENSITIES.values()] + [("estimator", make) for make in ESTIMATORS.values()]
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [0, -1, 1, 2, 0.5, 1e20, 10**400, 5e-324, 1e308, float("nan"), float("inf"), "x", None, [], True]
)
ANY: st.SearchStrategy[Any] = ODD | st.sampled_from(
    ["", b"x", 1j, (), [1], {"x": True}, len, False, -math.inf, np.float32(2), np.int64(3), torch.tensor(1.5)]
)


def fuzzed(test: Any) -> Any:
    """Generated examples from the seed, as many as were asked for."""
    options = settings(
        max_examples=EXAMPLES,
        database=None,
        derandomize=False,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],  # the story of a failure is short enough as it is
    )
    return pytest.mark.filterwarnings("ignore")(seed(SEED)(options(test)))


def second(module: Any, numbers: Any, labels: Any) -> tuple[Any, ...]:
    """What a module takes besides x."""
    if getattr(module, "given_classes", None) or getattr(module, "y_classes", None):
        return (labels,)
    return (numbers,) if getattr(module, "given_dim", None) or getattr(module, "y_dim", None) else ()


@pytest.mark.parametrize(("kind", "make"), MODULES, ids=[*DENSITIES, *ESTIMATORS])
@fuzzed
@given(data=st.data(), start=st.sampled_from(["usual", "generated", "none"]))
def test_modules(kind: str, make: Any, data: st.DataObject, start: str) -> None:
    """Start, observe and evaluate on generated rows; then the module still answers for usual ones."""
    torch.manual_seed(0)
    module, story = make(), start
    usual = (GOOD, *second(module, GOOD.flip(0), LABELS))
    if start == "usual":
        module.initialize(*usual, seed=0)
    for call in (*(("initialize",) if start == "generated" else ()), "observe", *METHODS[kind]):
        x, other, labels = data.draw(rows(2)), data.draw(rows(2)), data.draw(codes(3))
        story += f"; {call} of {x.what}" + (f" and {other.what}" if second(module, 1, None) == (1,) else "")
        outcome(story, getattr(module, call), x.given, *second(module, other.given, labels))
    for call in METHODS[kind]:
        answer = outcome(f"{story}; {call} of usual rows", getattr(module, call), *usual)
        assert isinstance(answer, torch.Tensor), f"{story}; {call} of usual rows: {answer}"


@pytest.mark.parametrize("name", ["Standardize", "RankNormal", "Regression"])
@fuzzed
@given(first=rows(2), then=rows(2, odd=False, sizes=(1, 2, 17)))
def test_coordinates(name: str, first: Rows, then: Rows) -> None:
    transform = getattr(coordinates, name)(2)
    started = outcome(f"{name}.initialize of {first.what}", transform.initialize, first.given)
    if not isinstance(started, Exception) and bool(then.plain.isfinite().all()):
        outcome(f"{name} of {then.what}, after {first.what}", transform, then.plain, finite=False)


@fuzzed
@given(z=rows(2), s=st.one_of(rows(2).map(lambda one: one.given), codes(3)))
def test_erasure(z: Rows, s: Any) -> None:
    outcome(f"LEACE of {z.what}", lambda: erasure.LEACE().fit(z.given, s)(z.given))
    outcome(f"QuadraticErasure of {z.what}", lambda: erasure.QuadraticErasure().fit(z.given, s)(z.given, s))


@fuzzed
@given(
    x=rows(2),
    y=rows(2),
    odd=st.dictionaries(
        st.sampled_from(["batch_size", "lr", "seed", "clip", "average", "validation", "patience", "callbacks"]),
        ODD,
        max_size=2,
    ),
)
def test_fit(x: Rows, y: Rows, odd: dict[str, Any]) -> None:
    options: dict[str, Any] = {"steps": 2, "seed": 0} | odd
    outcome(f"fit of {x.what} with {odd}", lambda: fit(Gaussian(2), x.given, **options).loss)
    outcome(f"fit of {x.what} and {y.what}", lambda: fit(mi("club", 2, 2), (x.given, y.given), steps=2, seed=0).loss)


@fuzzed
@given(
    name=st.sampled_from(["knife", "club", "infonce"]),
    z=rows(2),
    s=rows(2),
    call=st.sampled_from(["step", "__call__", "measure"]),
)
def test_regularizer(name: str, z: Rows, s: Rows, call: str) -> None:
    regularizer = Regularizer(mi(name, 2, 2), seed=0)
    regularizer.step(GOOD, GOOD.flip(0))
    story = f"{name}: {call} of {z.what} and {s.what}"
    outcome(story, getattr(regularizer, call), z.given, s.given, finite=False)
    usual = GOOD.clone().requires_grad_(), GOOD.flip(0)
    for then in ("step", "__call__", "measure"):
        answer = outcome(f"{story}; {then} of usual rows", getattr(regularizer, then), *usual)
        assert not isinstance(answer, Exception), f"{story}; {then} of usual rows: {answer}"


@fuzzed
@given(x=rows(2), y=rows(1), same=st.integers(0, 9))
def test_measure(x: Rows, y: Rows, same: int) -> None:
    """One in ten is measured; what is refused is refused at once."""
    if same and x.plain.dim() == 2 and len(x.plain) > 17:
        return
    outcome(f"entropy of {x.what}", lambda: float(entropy(x.given, seed=0, effort="quick")), finite=False)
    outcome(
        f"information of {x.what} and {y.what}",
        lambda: float(mutual_information(x.given, y.given, seed=0, effort="quick")),
        finite=False,
    )


RELATIONS: dict[Any, int] = {  # and how many arguments with rows each has
    **{entropy: 1, total_correlation: 1, mutual_information: 2, normalized_mutual_information: 2},
    **{permutation_test: 2, lagged: 2, transfer_entropy: 2, interaction_information: 3},
}


@fuzzed
@given(
    function=st.sampled_from([*RELATIONS]),
    columns=st.tuples(*(rows(1) for _ in range(3))),
    is_usual=st.booleans(),
    options=st.data(),
)
def test_options_of_measurements(function: Any, columns: tuple[Rows, ...], is_usual: bool, options: Any) -> None:
    """Usual rows with odd options, and odd rows: what is refused is refused at once."""
    wanted = {"method", "discrete", "unit", "missing", "groups", "blocks", "weights", "by"}
    known = sorted(wanted & inspect.signature(function).parameters.keys())
    odd = options.draw(st.dictionaries(st.sampled_from(known or ["method"]), ANY, min_size=1, max_size=2))
    given = [GOOD[:17, :1] if is_usual else one.given for one in columns[: RELATIONS[function]]]
    if not is_usual and (given[0] is None or all(one.plain.dim() in (1, 2) and len(one.plain) > 9 for one in columns)):
        return  # no argument, or rows that would be measured
    what = ", ".join(one.what for one in columns) if not is_usual else "usual rows"
    usual = {"effort": "quick"} if function in (entropy, mutual_information, total_correlation) else {}
    outcome(f"{function.__name__} of {what} with {odd}", lambda: function(*given, **usual, **odd), finite=False)


@fuzzed
@given(
    z=rows(2),
    s=st.one_of(rows(1).map(lambda one: one.given), codes(3)),
    odd=st.dictionaries(st.sampled_from(["discrete", "missing", "folds", "seed", "names", "y"]), ANY, max_size=2),
)
def test_audit_and_compare(z: Rows, s: Any, odd: dict[str, Any]) -> None:
    """What is refused is refused at once; whole audits are tested elsewhere."""
    if z.plain.dim() != 2 or len(z.plain) < 9 or not bool(z.plain.to(torch.complex128).abs().isfinite().all()):
        outcome(f"audit of {z.what}", lambda: audit(z.given, s, folds=2))
        outcome(f"compare of {z.what}", lambda: compare(z.given, GOOD))
    outcome(f"audit with {odd} and one label", lambda: audit(GOOD, [1] * len(GOOD), **odd))


@fuzzed
@given(
    make=st.sampled_from([KNIFE, Autoregressive, Gaussian, Logistic, Parzen, Schraudolph]),
    options=st.data(),
    n=ANY,
    seed=ANY,
    odd=ANY,
)
def test_options_of_densities(make: Any, options: Any, n: Any, seed: Any, odd: Any) -> None:
    known = sorted(inspect.signature(make).parameters)
    given = options.draw(st.dictionaries(st.sampled_from(known), ANY, min_size=1, max_size=2))
    outcome(f"{make.__name__} with {given}", lambda: make(**({"dim": 2} | given)))
    density = make(2)
    outcome(f"{make.__name__}.initialize with seed {seed!r}", density.initialize, GOOD, seed=seed)
    density.initialize(GOOD, seed=0)
    outcome(f"{make.__name__}.sample({n!r}, given={odd!r}, seed={seed!r})", density.sample, n, given=odd, seed=seed)


@fuzzed
@given(options=st.data(), weight=ANY, steps=ANY, start=ANY)
def test_options_of_regularizers(options: Any, weight: Any, steps: Any, start: Any) -> None:
    known = sorted(inspect.signature(Regularizer).parameters)
    odd = options.draw(st.dictionaries(st.sampled_from(known), ANY, min_size=1, max_size=2))
    outcome(f"annealed({weight!r}, {steps!r}, {start!r})", annealed, weight, steps, start)
    outcome(f"Regularizer with {odd}", lambda: Regularizer(**({"estimator": mi("club", 2, 2)} | odd)))


@fuzzed
@given(
    data=st.data(),
    name=st.sampled_from(["gaussian-10d", "moons", "ball-2d", "laplace-1d", "triangles-1d"]),
    n=ODD,
    number=ODD,
)
def test_tasks(data: st.DataObject, name: str, n: Any, number: Any) -> None:
    task: Any = tasks.get(name)
    x = data.draw(rows(task.x_dim))
    dtype: Any = data.draw(st.sampled_from([torch.float32, torch.int64, "float32", None]))
    outcome(f"log_prob of {name} at {x.what}", task.log_prob, x.given, finite=False)
    if n != 10**400:
        outcome(f"sample({n!r}, {number!r}, dtype={dtype})", task.sample, n, number, dtype=dtype)


@fuzzed
@given(
    odd=st.dictionaries(
        st.sampled_from(["N", "M", "w", "d", "delta", "lipschitz", "K_max", "p_max", "C1", "C2"]), ODD, max_size=4
    )
)
def test_theory(odd: dict[str, Any]) -> None:
    usual: dict[str, Any] = {"N": 100, "M": 1e20, "w": 1e-5, "d": 1, "delta": 0.1, "lipschitz": 4.0}
    outcome(f"confidence_bound with {odd}", lambda: theory.confidence_bound(**usual | odd), finite=False)


@fuzzed
@given(
    name=st.sampled_from(["club", "knife", "nwj", "mine", "vub", "infonce", "l1out", "adv", "doe", "nothing", 3]),
    odd=st.dictionaries(
        st.sampled_from(["hidden", "components", "preset", "nonsense", "y_classes", "x_dim", "y_dim"]),
        st.sampled_from([-1, 0, 1, 2, 1.5, "x", None, [], True]),
        max_size=2,
    ),
)
def test_options_of_estimators(name: Any, odd: dict[str, Any]) -> None:
    arguments: dict[str, Any] = {"x_dim": 2, "y_dim": 2} | odd
    outcome(f"mi({name!r}) with {odd}", lambda: mi(name, **arguments))
