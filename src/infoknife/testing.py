"""The conformance suite of densities and of estimators of mutual information, for a user's own classes too.

``check_density`` and ``check_estimator`` make their own data, run one small check after another, and raise an
``AssertionError`` that names the check and what was found. They keep what the library relies on: estimates that change
nothing, exact gradients, answers that do not depend on units, states that can be saved, errors that name the argument.
"""

import copy
import io
import math
import pickle
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from infoknife.densities.base import Density
from infoknife.estimators.base import MutualInformation

Rows = tuple[Tensor, Tensor | None]
MakeData = Callable[[int, torch.Generator], Rows]
Check = Callable[["_Case"], None]

START = 256  # rows that a module is started from
SCALES = (1e-6, 1e6)
SYNCHRONISING = ("item", "__bool__", "__float__", "__int__", "__index__", "tolist")
DENSITY_CHECKS: dict[str, Check] = {}
ESTIMATOR_CHECKS: dict[str, Check] = {}


def check_density(
    make: Callable[[], Density],
    *,
    checks: Collection[str] | None = None,
    skip: Collection[str] = (),
    data: MakeData | None = None,
) -> None:
    """Check that a density does what the library expects of one; raise ``AssertionError`` where it does not.

    Args:
        make: Returns a new density that has not seen data.
        checks: The names of the checks to run, of ``DENSITY_CHECKS``; all of them if not given.
        skip: The names of checks to leave out: ``"units"`` for a density in the coordinates of the data, say.
        data: Makes n rows of x and of the condition, or ``None``, from a generator; correlated normals if not given.

    Examples:
        >>> from infoknife import Gaussian
        >>> check_density(lambda: Gaussian(2), checks=["shapes", "rows"])
        >>> check_density(lambda: Gaussian(2, init="paper"), checks=["units"])
        Traceback (most recent call last):
        AssertionError: check_density, units: ...
    """
    sizes = {name: getattr(make(), name) for name in ("dim", "given_dim", "given_classes")}
    case = _Case(make, sizes, "given", "log_prob", ("forward", "log_prob"), data)
    _run("check_density", DENSITY_CHECKS, case, checks, skip)


def check_estimator(
    make: Callable[[], MutualInformation],
    *,
    checks: Collection[str] | None = None,
    skip: Collection[str] = (),
    data: MakeData | None = None,
) -> None:
    """Check that an estimator does what the library expects of one; raise ``AssertionError`` where it does not.

    The arguments are those of ``check_density``, with names of ``ESTIMATOR_CHECKS``; without ``data``, rows are
    correlated normals, or classes with a shift. An estimator whose value ignores x may skip ``"gradient_x"``.

    Examples:
        >>> from infoknife import mi
        >>> check_estimator(lambda: mi("club", 3, 2), checks=["shapes", "groups"])
    """
    sizes = {name: getattr(make(), name) for name in ("x_dim", "y_dim", "y_classes")}
    case = _Case(make, sizes, "y", "pointwise", ("forward", "pointwise", "loss", "penalty"), data)
    _run("check_estimator", ESTIMATOR_CHECKS, case, checks, skip)


def _run(
    title: str, known: dict[str, Check], case: "_Case", checks: Collection[str] | None, skip: Collection[str]
) -> None:
    for name in (*(checks or ()), *skip):
        if name not in known:
            raise ValueError(f"{name!r} is not a check; expected some of {', '.join(known)}")
    for name, check in known.items():
        if name in skip or (checks is not None and name not in checks):
            continue
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                check(case)
        except AssertionError as error:
            raise AssertionError(f"{title}, {name}: {error}") from None
        except Exception as error:
            raise AssertionError(f"{title}, {name}: {type(error).__name__}: {error}") from error


@dataclass(frozen=True, eq=False)
class _Case:
    """What is checked, with data for it."""

    new: Callable[[], Density | MutualInformation]
    sizes: dict[str, Any]  # dimension of x, and dimension and number of classes of the second variable
    second: str  # the name of the second variable, "given" or "y"
    by_row: str  # the method that has one value per row
    methods: tuple[str, ...]  # all that change nothing
    make_data: MakeData | None

    @property
    def is_density(self) -> bool:
        return self.second == "given"

    @property
    def dims(self) -> tuple[int, int | None, int | None]:
        x, other, classes = self.sizes.values()
        return x, other, classes

    def make(self, seed: int = 0) -> Any:
        """A module that has seen nothing; networks that start at random do so from the seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self.new()

    def data(self, n: int = 40, seed: int = 1, dtype: torch.dtype = torch.float32) -> Rows:
        """Rows of x and of the second variable, which depend on each other."""
        x, y = (self.make_data or self._rows)(n, torch.Generator().manual_seed(seed))
        return x.to(dtype), y.to(dtype) if y is not None and y.is_floating_point() else y

    def _rows(self, n: int, generator: torch.Generator) -> Rows:
        dim, other, classes = self.dims
        x = 0.5 * torch.randn(n, dim, generator=generator, dtype=torch.double)
        if classes is not None:
            label = torch.randperm(n, generator=generator) % classes
            return x + 0.5 * label.unsqueeze(1), label
        if other is None:
            return x.cumsum(1), None
        y = torch.randn(n, other, generator=generator, dtype=torch.double)
        return x + y @ torch.linspace(-1, 1, other * dim, dtype=torch.double).view(other, dim), y

    def started(self, dtype: torch.dtype = torch.float32) -> Any:
        """A module that was started from data."""
        return self.make().initialize(*self.data(START, 0, dtype), seed=0)

    def shaken(self, dtype: torch.dtype = torch.float32) -> Any:
        """A started module with every parameter moved a little, so that none of them is zero."""
        module, generator = self.started(dtype), torch.Generator().manual_seed(1)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator).to(parameter))
        return module

    def loss(self, module: Any, rows: Rows) -> Tensor:
        return module(*rows) if self.is_density else module.loss(*rows)

    def values(self, module: Any, rows: Rows) -> Tensor:
        """One value per row, in evaluation mode."""
        return getattr(module.eval(), self.by_row)(*rows)

    def trained(self, module: Any, rows: Rows, steps: int = 3, lr: float = 1e-3) -> Any:
        """The module after a few steps of Adam."""
        module.train()
        if any(True for _ in module.parameters()):
            optimizer = torch.optim.Adam(module.parameters() if self.is_density else module.parameter_groups(lr), lr)
            for _ in range(steps):
                optimizer.zero_grad()
                self.loss(module, rows).backward()
                optimizer.step()
        return module


def _in(*suites: dict[str, Check]) -> Callable[[Check], Check]:
    """Register a check in some suites under its name."""

    def register(check: Check) -> Check:
        for suite in suites:
            suite[check.__name__.strip("_")] = check
        return check

    return register


def _of_each(x_name: str, name: str, check: Callable[[_Case, int], None]) -> None:
    """Register a check of x, and of the second variable where that is numbers."""

    def of_second(case: _Case) -> None:
        if _continuous(case.data()):
            check(case, 1)

    for suite, second in ((DENSITY_CHECKS, "given"), (ESTIMATOR_CHECKS, "y")):
        suite[x_name], suite[f"{name}_{second}"] = lambda case: check(case, 0), of_second


_of_both = _in(DENSITY_CHECKS, ESTIMATOR_CHECKS)


def _expect(fine: Any, found: str) -> None:
    if not bool(fine):
        raise AssertionError(found)


def _finite(value: Tensor | None, what: str) -> None:
    _expect(value is not None and torch.isfinite(value).all(), f"{what} is {'None' if value is None else 'not finite'}")


def _close(value: Tensor, expected: Tensor, what: str, tolerance: float = 1e-4) -> None:
    _expect(value.shape == expected.shape, f"{what}: shape {tuple(value.shape)}, not {tuple(expected.shape)}")
    gap = float((value.double() - expected.double()).abs().max().detach())
    _expect(gap <= tolerance * (1 + float(expected.detach().abs().max())), f"{what} by up to {gap:.3g}")


def _refused(call: str, function: Callable[..., Any], arguments: Any, kind: type[Exception], name: str = "") -> None:
    """A call raises an error of the kind that begins with the argument's name."""
    try:
        function(*arguments)
    except (ValueError, TypeError) as error:
        right = isinstance(error, kind) and re.match(rf"{name}\b" if name else "", str(error))
        found = f"{call} raises '{type(error).__name__}: {error}'; expected {kind.__name__} that begins with {name}"
        _expect(right, found)
    else:
        raise AssertionError(f"{call} raises nothing; expected {kind.__name__} that names {name}")


def _works(case: _Case, module: Any, rows: Rows, when: str) -> None:
    _finite(module(*rows), f"forward {when}")
    _finite(case.loss(module, rows), f"the loss {when}")


def _snapshot(module: Any) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def _unmoved(module: Any, before: dict[str, Tensor], what: str) -> None:
    """The state is what it was, to the bit; NaN equals NaN."""
    after, buffers = module.state_dict(), {name for name, _ in module.named_buffers()}
    _expect(after.keys() == before.keys(), f"{what} adds or removes entries of state_dict")
    for name, value in after.items():
        same = value.shape == before[name].shape and torch.equal(value.nan_to_num(7.5), before[name].nan_to_num(7.5))
        _expect(same, f"{what} changes state: {'buffer' if name in buffers else 'entry'} {name} moved")


def _each(rows: Rows, function: Callable[[Tensor], Any]) -> Any:
    """A function of x and of the second variable if there is one."""
    return tuple(None if part is None else function(part) for part in rows)


def _continuous(rows: Rows) -> bool:
    return rows[1] is not None and rows[1].is_floating_point()


def _spoilt(part: Tensor, value: float) -> Tensor:
    part = part.clone()
    part[3, -1] = value
    return part


# checks of both


@_of_both
def _shapes(case: _Case) -> None:
    for state, module in (("before", case.make()), ("after", case.started())):
        for n in (2, 7):
            for name in case.methods:
                value, expected = getattr(module, name)(*case.data(n)), (n,) if name == case.by_row else ()
                shape = tuple(value.shape)
                _expect(shape == expected, f"{name} {state} initialize has shape {shape}; expected {expected}")
                _finite(value, f"{name} {state} initialize")
    for name, size in case.sizes.items():
        _expect(size is None or f"{name}={size}" in repr(module), f"repr does not say {name}={size}")


@_of_both
def _initialized(case: _Case) -> None:
    module = case.make()
    _expect(module.initialized is False, "initialized is not False for a new module")
    case.loss(module, case.data())
    _expect(module.initialized is False, "evaluating a new module sets initialized")
    _expect(module.initialize(*case.data(START, 0)) is module, "initialize does not return the module")
    _expect(module.initialized is True, "initialized is not True after initialize")
    module.initialize(3 * case.data(START)[0] + 1, case.data(START)[1], seed=1)
    again = case.values(module.initialize(*case.data(START, 0), seed=0), case.data())
    _close(again, case.values(case.started(), case.data()), "a second initialize and the first of a new module differ")


@_of_both
def _mean(case: _Case) -> None:
    module, rows = case.shaken().eval(), case.data()
    mean = case.values(module, rows).mean() * (-1 if case.is_density else 1)
    what = "-log_prob(x).mean()" if case.is_density else "pointwise(x, y).mean()"
    _close(module(*rows), mean, f"forward in eval mode differs from {what}", 1e-5)


@_of_both
def _purity(case: _Case) -> None:
    """Many calls of each method leave the state as it is to the bit, and give the same value."""
    rows = case.data(8)
    for what, module in (("a new module", case.make()), ("a started module", case.started())):
        before = _snapshot(module)
        for training in (True, False):
            module.train(training)
            for name in case.methods:
                values = [getattr(module, name)(*rows) for _ in range(20)]
                _unmoved(module, before, f"{name} of {what} in {'train' if training else 'eval'} mode")
                same = training or all(torch.equal(value, values[0]) for value in values)
                _expect(same, f"{name} of {what} differs from itself")


@_of_both
def _dtypes(case: _Case) -> None:
    for dtype in (torch.float32, torch.float64):
        for module in (case.make(), case.started(torch.float32), case.started(torch.float64)):
            for name in case.methods:
                found = getattr(module, name)(*case.data(dtype=dtype)).dtype
                _expect(found == dtype, f"{name} of {dtype} is {found}")
        kinds = {parameter.dtype for parameter in case.started(dtype).parameters()}
        _expect(kinds <= {dtype}, f"after initialize with {dtype}, parameters are {kinds}")
    module, rows = case.shaken(), case.data()
    single, double = case.values(module, rows), case.values(module, case.data(dtype=torch.float64))
    _close(single, double, "single and double precision differ", 1e-3)
    _close(case.values(module.double(), rows), single, "moving the module to double precision changes its values", 1e-3)
    for dtype in (torch.float16, torch.bfloat16):
        half = case.data(dtype=dtype)
        value = case.values(case.shaken(), half)
        _expect(value.dtype == torch.float32, f"{case.by_row} of {dtype} is {value.dtype}; expected torch.float32")
        whole = _each(half, lambda part: part.float() if part.is_floating_point() else part)
        _close(value, case.values(case.shaken(), whole), f"values of {dtype} and of the same rows in float32 differ")
    started = case.make().initialize(*case.data(START, dtype=torch.float16), seed=0)
    _finite(case.values(started, case.data()), "after initialize with float16, the value")


@_of_both
def _autocast(case: _Case) -> None:
    module, plain = case.make(), case.values(case.started(), case.data())
    with torch.autocast("cpu", torch.bfloat16):
        module.initialize(*case.data(START, 0), seed=0)
        value = case.values(module, case.data())
    _expect(value.dtype == torch.float32, f"{case.by_row} under autocast is {value.dtype}; expected torch.float32")
    _close(value, plain, "autocast changes the values", 1e-5)


@_of_both
def _inference_mode(case: _Case) -> None:
    module = case.make()
    with torch.inference_mode():
        module.initialize(*case.data(START, 0), seed=0)
        module.observe(*case.data(START))
    inside = [name for name, value in module.state_dict().items() if value.is_inference()]
    _expect(not inside, f"initialize in inference mode leaves tensors that cannot be trained: {', '.join(inside)}")
    _finite(case.loss(case.trained(module, case.data()), case.data()), "the loss after training")


@_of_both
def _learns(case: _Case) -> None:
    module, rows = case.shaken(), case.data(START, 0)
    if not list(module.parameters()):
        return
    before = float(case.loss(module.eval(), rows).detach())
    case.loss(module.train(), rows).backward()
    grads = {name: parameter.grad for name, parameter in module.named_parameters()}
    for name, grad in grads.items():
        _expect(grad is None or torch.isfinite(grad).all(), f"the gradient of {name} is not finite")
    dead = [name for name, grad in grads.items() if grad is None or not bool((grad != 0).any())]
    _expect(len(dead) < len(grads), "the loss reaches no parameter")
    may_be_idle = not case.is_density or case.dims[0] == 1  # what relates columns has nothing to do for a single one
    _expect(may_be_idle or not dead, f"the loss does not reach {', '.join(dead)}")
    after = float(case.loss(case.trained(module, rows, 5).eval(), rows).detach())
    _expect(after < before, f"five steps of Adam take the loss from {before:.6g} to {after:.6g}")


@_of_both
def _graphs(case: _Case) -> None:
    """Several graphs at once, second derivatives, and a graph that is older than the last observe."""
    module, (x, second) = case.shaken().train(), case.data()
    x.requires_grad_()
    losses = [case.loss(module, case.data(seed=seed)) for seed in range(3)]
    (slope,) = torch.autograd.grad(case.values(module, (x, second)).sum() + 0 * x.sum(), x, create_graph=True)
    module.observe(*case.data(START, 5))
    (torch.stack(losses).sum() + 0 * x.sum() + slope.square().sum()).backward()
    _finite(x.grad, "the second derivative in x")


@_of_both
def _seeds(case: _Case) -> None:
    rows, before = case.data(START, 0), torch.get_rng_state()
    one, two = (case.make().initialize(*rows, seed=3).eval() for _ in range(2))
    _unmoved(one, _snapshot(two), "initialize with the same seed")
    for name in case.methods:
        getattr(one, name)(*rows)
    one.observe(*rows)
    _expect(torch.equal(torch.get_rng_state(), before), "the global random state was used though a seed was given")


@_of_both
def _state(case: _Case) -> None:
    rows, trained = case.data(), case.trained(case.started(), case.data())
    trained.observe(*case.data(START, 5))
    for what, module in (("new", case.make()), ("trained", trained), ("double", case.started(torch.double))):
        value, file = case.values(module, rows), io.BytesIO()
        torch.save(module.state_dict(), file)
        file.seek(0)
        loaded = case.make(2).to(next((value.dtype for value in module.parameters()), torch.float32))
        loaded.load_state_dict(torch.load(file, weights_only=True))
        twins = {"state_dict": loaded, "deepcopy": copy.deepcopy(module), "pickle": pickle.loads(pickle.dumps(module))}
        for way, twin in twins.items():
            _expect(twin.initialized == module.initialized, f"{way} of a {what} module loses initialized")
            same = torch.equal(case.values(twin, rows), value)
            _expect(same, f"{case.by_row} of a {what} module differs after {way}")
            case.trained(twin, rows, 2)
        _expect(torch.equal(case.values(module, rows), value), f"training a copy of a {what} module changes it")


@_of_both
def _devices(case: _Case) -> None:
    state = case.started().to("meta").state_dict()
    stays = [name for name, value in state.items() if value.device.type != "meta" and not name.endswith("_extra_state")]
    _expect(not stays, f"{', '.join(stays)} stays on its device")


@_of_both
def _first_observe(case: _Case) -> None:
    rows = case.data(START, 0)
    missing = _each(rows, lambda part: _spoilt(part, math.nan) if part.is_floating_point() else part)
    for some, what in ((rows, ""), (missing, " with NaN rows")):
        module = case.make()
        _expect(module.observe(*some) is None, "observe returns something")
        _expect(module.initialized is True, f"the first observe{what} does not start the module")
        _finite(case.values(module, case.data()), f"after a first observe{what} the value")
    module.observe(*_each(case.data(), lambda part: part[:1]))
    _finite(case.values(module, case.data()), "after observe with a single row the value")


@_of_both
def _follows(case: _Case) -> None:
    """Observe moves what follows the data; a density finds rows that moved more likely."""
    module, before = case.started(), _snapshot(case.started())
    moved = [(2 * x + 5, second) for x, second in (case.data(START, seed) for seed in range(2, 9))]
    at_first = float(case.loss(module.eval(), moved[-1]).detach())
    for rows in moved[:-1]:
        module.observe(*rows)
    state = module.state_dict()
    _expect(any(not torch.equal(state[name], old) for name, old in before.items()), "observe moves nothing")
    at_last = float(case.loss(module.eval(), moved[-1]).detach())
    lower = at_last < at_first or not case.is_density
    _expect(lower, f"after observing rows that moved their loss is {at_last:.6g}; it was {at_first:.6g}")


@_of_both
def _missing_rows(case: _Case) -> None:
    """Observe leaves out rows that are not finite, and counts them."""
    clean, spoilt, rows = case.started(), case.started(), case.data(START, 3)
    bad_x, bad_second = _each(rows, torch.clone)
    bad_x[2], bad_x[5, 0], bad = math.nan, math.inf, torch.tensor([2, 5])
    if _continuous(rows):
        bad_second[7, 0], bad = math.nan, torch.tensor([2, 5, 7])
    keep = torch.ones(START, dtype=torch.bool).index_fill(0, bad, False)
    clean.observe(*_each(rows, lambda part: part[keep]))
    spoilt.observe(bad_x, bad_second)
    moved, expected = (case.values(module, case.data()) for module in (spoilt, clean))
    _close(moved, expected, "rows with NaN move the values", 1e-5)
    found = spoilt.outliers - clean.outliers
    _expect(found == len(bad), f"{len(bad)} rows with NaN or infinity are {found} more outliers")


@_of_both
def _few_rows(case: _Case) -> None:
    for n in (2, 3, 9):
        _works(case, case.make().initialize(*case.data(n, 0), seed=0), case.data(), f"after a start from {n} rows")
    _refused("initialize with a single row", case.make().initialize, case.data(1), ValueError, "x")


@_of_both
def _absent_classes(case: _Case) -> None:
    """A class that a batch, or the start, lacks does no harm."""
    x, second = case.data(START, 0)
    if second is None or second.is_floating_point():
        return
    one = torch.zeros_like(second)
    started, module = case.started(), case.make().initialize(x, one, seed=0)
    started.observe(x, one)
    for what, each in (("observe", started), ("initialize", module)):
        for rows in ((x, one), (x, second)):
            _works(case, each, rows, f"after {what} without some classes")


@_of_both
def _arrays(case: _Case) -> None:
    """Arrays are as good as tensors; the second variable may have another precision."""
    x, second = case.data(START, 0)
    module = case.make().initialize(*_each((x, second), lambda part: part.numpy()), seed=0)
    value = case.values(module, (x, second))
    _close(value, case.values(case.started(), (x, second)), "a start from arrays differs from one from tensors")
    if second is not None:
        other = second.double() if second.is_floating_point() else second.int()
        found = case.values(module, (x, other))
        _expect(found.dtype == x.dtype, f"{case.by_row} with {case.second} in {other.dtype} is {found.dtype}")
        _close(found, value, f"another precision of {case.second} changes the values")


@_of_both
def _bad_input(case: _Case) -> None:
    """Input that cannot be used raises an error that begins with the argument's name, and changes nothing."""
    module, before, (x, y), name = case.started(), _snapshot(case.started()), case.data(10), case.second
    wrong: list[tuple[str, Any, Any, type[Exception], str]] = [
        ("an empty x", x[:0], y if y is None else y[:0], ValueError, "x"),
        ("x of booleans", x > 0, y, TypeError, "x"),
        ("x of strings", [["a"] * x.shape[1]] * 10, y, TypeError, "x"),
        ("no x", None, y, TypeError, "x"),
        *((f"x {what}", bad, y, kind, "x") for what, bad, kind in _bad_numbers(x)),
    ]
    if y is None:
        wrong.append((f"{name} without a condition", x, torch.zeros(10, 3), ValueError, name))
    else:
        bad_values = _bad_numbers(y) if y.is_floating_point() else _bad_classes(y, case.dims[2] or 0)
        wrong += [
            (f"fewer rows of {name}", x, y[:9], ValueError, name),
            (f"no {name}", x, None, ValueError if case.is_density else TypeError, name),
            *((f"{name} {what}", x, bad, kind, name) for what, bad, kind in bad_values),
        ]
    for what, some_x, some_y, kind, culprit in wrong:
        for method in (*case.methods, "initialize"):
            _refused(f"{method} of {what}", getattr(module, method), (some_x, some_y), kind, culprit)
            _unmoved(module, before, f"{method} of {what}")


def _bad_numbers(part: Tensor) -> Iterator[tuple[str, Tensor, type[Exception]]]:
    yield "with NaN", _spoilt(part, math.nan), ValueError
    yield "with infinity", _spoilt(part, -math.inf), ValueError
    yield "with three axes", part[None], ValueError
    yield "with too many columns", torch.cat([part, part], 1), ValueError
    yield "of integers", part.long(), TypeError


def _bad_classes(part: Tensor, classes: int) -> Iterator[tuple[str, Tensor, type[Exception]]]:
    yield "of floats", part.float(), TypeError
    yield "with a class that is too large", torch.full_like(part, classes), ValueError
    yield "with a negative class", part - 1 - int(part.min()), ValueError
    yield "with two axes", part[:, None], ValueError


# checks of each variable


def _gradient(case: _Case, which: int) -> None:
    """Forward reaches the variable, and the gradient along a direction is the slope of the values."""
    name = ("x", case.second)[which]
    for frozen, training in ((False, True), (False, False), (True, False)):
        rows: list[Any] = list(case.data())
        rows[which].requires_grad_()
        (case.shaken().train(training).requires_grad_(not frozen)(*rows) + 0 * rows[0].sum()).backward()
        mode, grad = f"in {'train' if training else 'eval'} mode{' when frozen' if frozen else ''}", rows[which].grad
        _expect(grad is not None and bool((grad != 0).any()), f"forward {mode} does not reach {name}")
        _finite(grad, f"the gradient of forward {mode} in {name}")
    module, exact = case.shaken(torch.double), list(case.data(9, dtype=torch.double))
    point: Any = exact[which]
    ahead, weights = torch.randn_like(point), torch.randn(9, dtype=torch.double)

    def value_at(step: Tensor) -> Tensor:
        exact[which] = point + step * ahead
        return (weights * case.values(module, (exact[0], exact[1]))).sum()  # type: ignore[arg-type]

    step = torch.zeros((), dtype=torch.double, requires_grad=True)
    (slope,) = torch.autograd.grad(value_at(step), step)
    found = float((value_at(step + 1e-6) - value_at(step - 1e-6)).detach()) / 2e-6
    fine = abs(float(slope) - found) <= 1e-4 * (1 + abs(found))
    _expect(fine, f"the gradient of {case.by_row} in {name} is {float(slope):.6g}, finite differences have {found:.6g}")


def _units(case: _Case, which: int) -> None:
    """Answers do not depend on the units: h(aX + b) = h(X) + d log a, and nothing else moves with them."""

    def answer(scale: float, dtype: torch.dtype, steps: int) -> float:
        """The mean value of fresh rows after a start and a few steps, less what the units explain."""
        some: list[list[Any]] = [list(case.data(START, seed, dtype)) for seed in (0, 1)]
        for rows in some:
            rows[which] = scale * (rows[which] + 0.7)
        torch.manual_seed(0)
        old, new = ((rows[0], rows[1]) for rows in some)
        module = case.trained(case.make().initialize(*old, seed=0), old, steps)
        volume = case.dims[0] * math.log(scale) if case.is_density and which == 0 else 0.0
        return float(case.values(module, new).mean().detach()) + volume

    for dtype, steps in ((torch.float32, 0), (torch.float64, 3)):  # Adam's first steps turn rounding into signs
        expected = answer(1.0, dtype, steps)
        for scale in SCALES:
            gap, name = abs(answer(scale, dtype, steps) - expected), ("x", case.second)[which]
            _expect(gap < 2e-3, f"with {name} times {scale:g} the value moves by {gap:.3g} nats more than it should")


def _degenerate(what: str, *spoils: Callable[[Tensor], Tensor]) -> Callable[[_Case, int], None]:
    """Values and gradients are finite where rows are spoilt, from the start or later."""

    def check(case: _Case, which: int) -> None:
        for spoil in spoils:
            rows: list[Any] = list(case.data(START, 0))
            rows[which] = spoil(rows[which])
            for when in ("initialize", "observe"):
                module = case.make().initialize(*rows, seed=0) if when == "initialize" else case.started()
                module.observe(*rows)
                for kind, some in (("such", rows), ("usual", case.data())):
                    label = f"{what} of {('x', case.second)[which]}, after {when}, with {kind} rows"
                    _finite_everywhere(case, module, (some[0], some[1]), label)

    return check


def _finite_everywhere(case: _Case, module: Any, rows: Rows, label: str) -> None:
    at = _each(rows, lambda part: part.clone().requires_grad_(part.is_floating_point()))
    value = module(*at)
    _finite(value, f"{label}: forward")
    (value + 0 * at[0].sum()).backward()
    _finite(at[0].grad, f"{label}: the gradient in x")
    module.zero_grad()
    loss = case.loss(module, at)
    _finite(loss, f"{label}: the loss")
    (loss + 0 * at[0].sum()).backward()
    bad = [name for name, p in module.named_parameters() if p.grad is not None and not p.grad.isfinite().all()]
    _expect(not bad, f"{label}: the gradient of {', '.join(bad)} is not finite")


def _outlier(value: float) -> Callable[[Tensor], Tensor]:
    return lambda part: torch.where(torch.arange(len(part)).unsqueeze(1) == 4, value, part)


def _constant(part: Tensor) -> Tensor:
    return torch.cat([torch.full_like(part[:, :1], 3.0), part[:, 1:]], 1)


def _duplicated(part: Tensor) -> Tensor:
    return part[:, [0, 0, *range(2, part.shape[1])][: part.shape[1]]]


_of_each("gradient_x", "gradient", _gradient)
_of_each("units", "units", _units)
_of_each("constant", "constant", _degenerate("a constant column", _constant))
_of_each("duplicated", "duplicated", _degenerate("a duplicated column", _duplicated))
_of_each("outlier", "outlier", _degenerate("an outlier", _outlier(1e6), _outlier(1e12)))


# checks of densities


@_in(DENSITY_CHECKS)
def _rows(case: _Case) -> None:
    module, rows = case.shaken(torch.double), case.data(9, dtype=torch.double)
    values, order = case.values(module, rows), torch.randperm(9)
    mixed = case.values(module, _each(rows, lambda part: part[order]))
    _close(mixed, values[order], "the order of rows matters", 1e-9)
    alone = torch.cat([case.values(module, _each(rows, lambda part, i=i: part[i : i + 1])) for i in range(9)])  # type: ignore[misc]
    _close(alone, values, "rows alone and rows in a batch differ", 1e-9)


@_in(DENSITY_CHECKS)
def _functional(case: _Case) -> None:
    """Transforms of torch.func see the same function and leave no trace."""
    module, (x, given) = case.shaken(torch.double).eval(), case.data(12, dtype=torch.double)
    parameters, before = dict(module.named_parameters()), _snapshot(module)

    def entropy(values: dict[str, Tensor], points: Tensor) -> Tensor:
        return torch.func.functional_call(module, values, (points, given))

    gradients, of_x = torch.func.grad(entropy, (0, 1))(parameters, x)
    expected = torch.autograd.grad(module(x.requires_grad_(), given), [*parameters.values(), x])
    for name, ours, truth in zip((*gradients, "x"), (*gradients.values(), of_x), expected, strict=True):
        _close(ours, truth, f"torch.func.grad and autograd differ in {name}", 1e-6)
    batches = _each((x.detach(), given), lambda part: part.unflatten(0, (3, 4)))
    mapped = torch.func.vmap(module.log_prob, in_dims=(0, None if given is None else 0))(*batches)
    _close(mapped.flatten(), module.log_prob(x, given), "vmap over batches changes log_prob", 1e-6)
    _unmoved(module, before, "torch.func")


@_in(DENSITY_CHECKS)
@torch.no_grad()
def _integral(case: _Case) -> None:
    """The density integrates to one, and its samples have its mean, its variances and its entropy."""
    given, heavy, dim = case.data(1, dtype=torch.double)[1], torch.distributions.StudentT(4.0), case.dims[0]
    for what, module in (("before", case.make().double()), ("after", case.shaken(torch.double))):
        samples = module.sample(4000, given, seed=0)
        factor = torch.linalg.cholesky(1.5 * samples.T.cov().reshape(dim, dim))
        t = heavy.sample((20_000, dim)).double()  # importance sampling, with tails that are heavier than most
        log_prob, of_points = _features(module, samples.mean(0) + t @ factor.T, given, samples)
        weights = (log_prob - heavy.log_prob(t).sum(1) + factor.logdet()).exp()
        parts, own = weights[:, None] * of_points, _features(module, samples, given, samples)[1]
        noise = 5 * (parts.var(0) / len(parts) + own.var(0) / len(own)).sqrt() + 1e-3
        integral, mean = parts.mean(0), own.mean(0)
        worst = int(((integral - mean).abs() / noise).argmax())
        name = ("mass", "entropy", *["mean"] * dim, *["square"] * dim)[worst]
        found = f"{float(integral[worst]):.4g}, that of its samples {float(mean[worst]):.4g}"
        fine = (integral - mean).abs() < noise
        _expect(fine.all(), f"{what} initialize the {name} of the density by an integral is {found}")


def _features(module: Any, x: Tensor, given: Tensor | None, samples: Tensor) -> tuple[Tensor, Tensor]:
    """Log-density of x, and what is averaged under it: one, minus the log-density, standardised x and its square."""
    log_prob = module.log_prob(x, None if given is None else given.expand(len(x), *given.shape[1:]))
    z = (x - samples.mean(0)) / samples.std(0)
    return log_prob, torch.cat([torch.ones_like(z[:, :1]), -log_prob.clamp_min(-1e4)[:, None], z, z * z], 1)


@_in(DENSITY_CHECKS)
def _samples(case: _Case) -> None:
    module, (x, given) = case.started(), case.data(6)
    samples, before = module.sample(6, given, seed=0), torch.get_rng_state()
    _expect(samples.shape == x.shape, f"6 samples have shape {tuple(samples.shape)}; expected {tuple(x.shape)}")
    _expect(samples.dtype == x.dtype and not samples.requires_grad, "samples have another dtype than x, or a gradient")
    _expect(torch.equal(module.sample(6, given, seed=0), samples), "samples with the same seed differ")
    _expect(not torch.equal(module.sample(6, given, seed=1), samples), "samples with different seeds are equal")
    _expect(torch.equal(torch.get_rng_state(), before), "sample with a seed uses the global random state")
    one, many = (None, None) if given is None else (given[:1], given[:1].expand_as(given))
    same = torch.equal(module.sample(6, one, seed=0), module.sample(6, many, seed=0))
    _expect(same, "one condition does not serve all samples")
    first = module.sample(6, given)
    _expect(not torch.equal(module.sample(6, given), first), "samples without a seed repeat")
    torch.set_rng_state(before)
    _expect(torch.equal(module.sample(6, given), first), "samples without a seed do not follow the global random state")
    _refused("sample(0)", module.sample, (0, given), ValueError, "n")
    _refused("sample(2.0)", module.sample, (2.0, given), TypeError, "n")


@_in(DENSITY_CHECKS)
def _all_classes(case: _Case) -> None:
    module, classes, (x, label) = case.shaken().eval(), case.dims[2], case.data()
    if classes is None or label is None:
        _refused("log_prob_all of a density without classes", module.log_prob_all, (x,), ValueError)
        return
    each = torch.stack([module.log_prob(x, torch.full_like(label, c)) for c in range(classes)], 1)
    _close(module.log_prob_all(x), each, "log_prob_all and log_prob of each class differ", 1e-5)


@_in(DENSITY_CHECKS)
def _far_away(case: _Case) -> None:
    """Rows that are far away are neither NaN nor likely."""
    x = torch.tensor([[1e3], [-1e5], [1e8], [1e15]]).expand(4, case.dims[0])
    value = case.values(case.started(), (x, case.data(4)[1]))
    _expect((value < -50).all(), f"log_prob of x = 1e3, -1e5, 1e8, 1e15 is {value.tolist()}")


# checks of estimators


@_in(ESTIMATOR_CHECKS)
def _bound(case: _Case) -> None:
    bound = case.make().bound
    _expect(bound in ("lower", "upper", None), f"bound is {bound!r}; expected 'lower', 'upper' or None")


@_in(ESTIMATOR_CHECKS)
def _detached(case: _Case) -> None:
    module = case.shaken().train()
    leaves = _each(case.data(), lambda part: part.clone().requires_grad_(part.is_floating_point()))
    loss = module.loss(*leaves)
    if loss.requires_grad:
        loss.backward()
    for name, leaf in zip(("x", "y"), leaves, strict=True):
        _expect(leaf is None or leaf.grad is None, f"the gradient of loss reaches {name}")


@_in(ESTIMATOR_CHECKS)
def _groups(case: _Case) -> None:
    module = case.started()
    groups = module.parameter_groups(1e-3)
    held = [id(parameter) for group in groups for parameter in group["params"]]
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    lost = [name for key, name in names.items() if key not in held]
    _expect(not lost, f"parameter_groups leaves out {', '.join(lost)}")
    twice = [names.get(key, "a parameter that is not the module's") for key in set(held) if held.count(key) > 1]
    found = ", ".join(twice) or "a parameter of another module"
    _expect(len(held) == len(names), f"parameter_groups has {found} twice")
    _expect(all(group["lr"] > 0 for group in groups), "parameter_groups has a rate that is not positive")


@_in(ESTIMATOR_CHECKS)
def _synchronisations(case: _Case) -> None:
    """A step waits for the device at most twice, to check what loss and forward were given; once more for classes."""
    module, rows = case.started().train(), case.data()
    module.observe(*rows)  # the first one looks once at what it remembers
    with _Waits() as waits:
        module.observe(*rows)
        module.loss(*rows)
        module(*rows)
    count, most = len(waits.calls), 2 + (module.classes is not None)  # rows sorted by class are divided on the host
    _expect(count <= most, f"observe, loss and forward wait {count} times for the device: {', '.join(waits.calls)}")


class _Waits(TorchFunctionMode):
    """Collect the names of the methods that bring a tensor's value to the host; those that they call do not count."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in SYNCHRONISING:
            self.calls.append(func.__name__)
        return func(*args, **(kwargs or {}))
