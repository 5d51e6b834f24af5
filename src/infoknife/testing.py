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
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from infoknife.densities.base import Density
from infoknife.estimators.base import MutualInformation

Module = Density | MutualInformation
Rows = tuple[Tensor, Tensor | None]
MakeData = Callable[[int, torch.Generator], Rows]

START = 256  # rows that a module is started from
SCALES = (1e-6, 1e6)
SYNCHRONISING = ("item", "__bool__", "__float__", "__int__", "__index__", "tolist")


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

    Example:
        >>> from infoknife import Gaussian
        >>> check_density(lambda: Gaussian(2), checks=["shapes", "rows"])
        >>> check_density(lambda: Gaussian(2, init="paper"), checks=["units"])
        Traceback (most recent call last):
        AssertionError: check_density, units: ...
    """
    sample = make()
    case = _Case(
        make, (sample.dim, sample.given_dim, sample.given_classes), "given", "log_prob", ("forward", "log_prob"), data
    )
    _run("check_density", DENSITY_CHECKS, case, checks, skip)


def check_estimator(
    make: Callable[[], MutualInformation],
    *,
    checks: Collection[str] | None = None,
    skip: Collection[str] = (),
    data: MakeData | None = None,
) -> None:
    """Check that an estimator does what the library expects of one; raise ``AssertionError`` where it does not.

    Args:
        make: Returns a new estimator that has not seen data.
        checks: The names of the checks to run, of ``ESTIMATOR_CHECKS``; all of them if not given.
        skip: The names of checks to leave out: ``"gradient_x"`` for an estimator whose value does not look at x, say.
        data: Makes n rows of x and y from a generator; correlated normals, or classes with a shift, if not given.

    Example:
        >>> from infoknife import mi
        >>> check_estimator(lambda: mi("club", 3, 2), checks=["shapes", "groups"])
    """
    sample = make()
    methods = ("forward", "pointwise", "loss", "penalty")
    case = _Case(make, (sample.x_dim, sample.y_dim, sample.y_classes), "y", "pointwise", methods, data)
    _run("check_estimator", ESTIMATOR_CHECKS, case, checks, skip)


def _run(
    title: str,
    known: dict[str, Callable[["_Case"], None]],
    case: "_Case",
    checks: Collection[str] | None,
    skip: Collection[str],
) -> None:
    for name in (*(checks or ()), *skip):
        if name not in known:
            raise ValueError(f"{name!r} is no check; expected some of {', '.join(known)}")
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
    """What is checked, with data for it.

    Args:
        new: Makes the module.
        dims: Dimension of x, and dimension or number of classes of the second variable.
        second: The name of the second variable, ``"given"`` or ``"y"``.
        by_row: The method that has one value per row.
        methods: All methods that change nothing.
        make_data: Makes rows, or ``None`` for those made here.
    """

    new: Callable[[], Module]
    dims: tuple[int, int | None, int | None]
    second: str
    by_row: str
    methods: tuple[str, ...]
    make_data: MakeData | None
    starts: dict[torch.dtype, Module] = field(default_factory=dict)

    @property
    def is_density(self) -> bool:
        return self.second == "given"

    def make(self, seed: int = 0) -> Any:
        """A module that has seen nothing; networks that start at random do so from the seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self.new()

    def data(self, n: int = 40, seed: int = 1, dtype: torch.dtype = torch.float32) -> Rows:
        """Rows of x and of the second variable, which depend on each other."""
        generator = torch.Generator().manual_seed(seed)
        x, y = (self.make_data or self._rows)(n, generator)
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
        if dtype not in self.starts:
            self.starts[dtype] = self.make().initialize(*self.data(START, 0, dtype), seed=0)
        return copy.deepcopy(self.starts[dtype])

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
        values: Tensor = getattr(module.eval(), self.by_row)(*rows)
        return values

    def trained(self, module: Any, rows: Rows, steps: int = 3, lr: float = 1e-3) -> Any:
        """The module after a few steps of Adam."""
        module.train()
        if any(True for _ in module.parameters()):
            groups = module.parameters() if self.is_density else module.parameter_groups(lr)
            optimizer = torch.optim.Adam(groups, lr)
            for _ in range(steps):
                optimizer.zero_grad()
                self.loss(module, rows).backward()
                optimizer.step()
        return module


def _expect(fine: Any, found: str) -> None:
    if not bool(fine):
        raise AssertionError(found)


def _finite(value: Tensor | None, what: str) -> None:
    _expect(value is not None, f"{what} is None")
    assert value is not None
    _expect(torch.isfinite(value).all(), f"{what} is not finite")


def _close(value: Tensor, expected: Tensor, what: str, tolerance: float = 1e-4) -> None:
    _expect(value.shape == expected.shape, f"{what}: shape {tuple(value.shape)}, not {tuple(expected.shape)}")
    gap = float((value.double() - expected.double()).abs().max().detach())
    size = 1 + float(expected.detach().abs().max())
    _expect(gap <= tolerance * size, f"{what} by up to {gap:.3g}")


def _snapshot(module: Any) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def _unmoved(module: Any, before: dict[str, Tensor], what: str) -> None:
    """The state is what it was, to the bit; NaN equals NaN."""
    after, buffers = module.state_dict(), {name for name, _ in module.named_buffers()}
    _expect(after.keys() == before.keys(), f"{what} adds or removes entries of state_dict")
    for name, value in after.items():
        old = before[name]
        same = value.shape == old.shape and torch.equal(value.nan_to_num(7.5), old.nan_to_num(7.5))
        _expect(same, f"{what} changes state: {'buffer' if name in buffers else 'entry'} {name} moved")


def _both(rows: Rows, function: Callable[[Tensor], Tensor]) -> Rows:
    """A function of x and of the second variable if there is one."""
    x, y = rows
    return function(x), None if y is None else function(y)


def _continuous(rows: Rows) -> bool:
    return rows[1] is not None and rows[1].is_floating_point()


# checks of both


def _shapes(case: _Case) -> None:
    for state, module in (("before", case.make()), ("after", case.started())):
        for n in (2, 7):
            for name in case.methods:
                value = getattr(module, name)(*case.data(n))
                expected = (n,) if name == case.by_row else ()
                shape = tuple(value.shape)
                _expect(shape == expected, f"{name} {state} initialize has shape {shape}; expected {expected}")
                _finite(value, f"{name} {state} initialize")
    names = ("dim", "given_dim", "given_classes") if case.is_density else ("x_dim", "y_dim", "y_classes")
    for name, size in zip(names, case.dims, strict=True):
        _expect(size is None or f"{name}={size}" in repr(module), f"repr does not say {name}={size}")


def _initialized(case: _Case) -> None:
    module = case.make()
    _expect(module.initialized is False, "initialized is not False for a new module")
    module.loss(*case.data()) if not case.is_density else module(*case.data())
    _expect(module.initialized is False, "evaluating a new module sets initialized")
    _expect(module.initialize(*case.data(START, 0)) is module, "initialize does not return the module")
    _expect(module.initialized is True, "initialized is not True after initialize")


def _dtypes(case: _Case) -> None:
    for dtype in (torch.float32, torch.float64):
        for module in (case.make(), case.started(torch.float32), case.started(torch.float64)):
            for name in case.methods:
                found = getattr(module, name)(*case.data(dtype=dtype)).dtype
                _expect(found == dtype, f"{name} of {dtype} is {found}")
        kinds = {parameter.dtype for parameter in case.started(dtype).parameters()}
        _expect(kinds <= {dtype}, f"after initialize with {dtype}, parameters are {kinds}")
    module = case.shaken()
    single, double = (case.values(module, case.data(dtype=dtype)) for dtype in (torch.float32, torch.float64))
    _close(single, double, "single and double precision differ", 1e-3)
    for dtype in (torch.float16, torch.bfloat16):
        half = case.data(dtype=dtype)
        value = case.values(module, half)
        _expect(value.dtype == torch.float32, f"{case.by_row} of {dtype} is {value.dtype}; expected torch.float32")
        whole = half[0].float(), half[1].float() if half[1] is not None and _continuous(half) else half[1]
        _close(value, case.values(module, whole), f"values of {dtype} and of the same rows in float32 differ", 1e-6)
    started = case.make().initialize(*case.data(START, dtype=torch.float16), seed=0)
    _finite(case.values(started, case.data()), "after initialize with float16, the value")


def _autocast(case: _Case) -> None:
    module, rows, plain = case.make(), case.data(START, 0), case.values(case.started(), case.data())
    with torch.autocast("cpu", torch.bfloat16):
        module.initialize(*rows, seed=0)
        value = case.values(module, case.data())
    _expect(value.dtype == torch.float32, f"{case.by_row} under autocast is {value.dtype}; expected torch.float32")
    _close(value, plain, "autocast changes the values", 1e-5)


def _inference_mode(case: _Case) -> None:
    module = case.make()
    with torch.inference_mode():
        module.initialize(*case.data(START, 0), seed=0)
        module.observe(*case.data(START))
    inside = [name for name, value in module.state_dict().items() if value.is_inference()]
    _expect(not inside, f"initialize in inference mode leaves tensors that cannot be trained: {', '.join(inside)}")
    _finite(case.loss(case.trained(module, case.data()), case.data()), "the loss after training")


def _purity(case: _Case) -> None:
    """A hundred calls of each method, half of them in training mode, leave the state as it is to the bit."""
    batches = case.data(8), case.data(8, 2)
    for what, module, calls in (("a new module", case.make(), 3), ("a started module", case.started(), 50)):
        before = _snapshot(module)
        for training in (True, False):
            module.train(training)
            for name in case.methods:
                for i in range(calls):
                    getattr(module, name)(*batches[i % 2])
                _unmoved(module, before, f"{name} of {what} in {'train' if training else 'eval'} mode")


def _repeats(case: _Case) -> None:
    module, rows = case.started().eval(), case.data()
    for name in case.methods:
        _expect(torch.equal(getattr(module, name)(*rows), getattr(module, name)(*rows)), f"{name} differs from itself")


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
    may_be_idle = (
        not case.is_density or case.dims[0] == 1
    )  # what relates coordinates has nothing to do for a single one
    _expect(may_be_idle or not dead, f"the loss does not reach {', '.join(dead)}")
    after = float(case.loss(case.trained(module, rows, 5).eval(), rows).detach())
    _expect(after < before, f"five steps of Adam take the loss from {before:.6g} to {after:.6g}")


def _graphs(case: _Case) -> None:
    """Several graphs at once, second derivatives, and a graph that is older than the last observe."""
    module, (x, second) = case.shaken().train(), case.data()
    x.requires_grad_()
    losses = [case.loss(module, case.data(seed=seed)) for seed in range(3)]
    (slope,) = torch.autograd.grad(case.values(module, (x, second)).sum() + 0 * x.sum(), x, create_graph=True)
    module.observe(*case.data(START, 5))
    (torch.stack(losses).sum() + 0 * x.sum() + slope.square().sum()).backward()
    _finite(x.grad, "the second derivative in x")


def _gradient_x(case: _Case) -> None:
    _gradient(case, 0, "x")


def _gradient_second(case: _Case) -> None:
    if _continuous(case.data()):
        _gradient(case, 1, case.second)


def _gradient(case: _Case, which: int, name: str) -> None:
    for frozen, training in ((False, True), (False, False), (True, False)):
        rows, module = list(case.data()), case.shaken().train(training).requires_grad_(not frozen)
        leaf = rows[which].requires_grad_()  # type: ignore[union-attr]
        value = module(*rows)
        if value.requires_grad:
            value.backward()
        mode = f"in {'train' if training else 'eval'} mode{' when frozen' if frozen else ''}"
        _expect(leaf.grad is not None and bool((leaf.grad != 0).any()), f"forward {mode} does not reach {name}")
        _finite(leaf.grad, f"the gradient of forward {mode} in {name}")
    _derivative(case, which, name)


def _derivative(case: _Case, which: int, name: str) -> None:
    """The gradient along a direction is the slope of the values, in double precision."""
    module, rows = case.shaken(torch.double).eval(), list(case.data(9, dtype=torch.double))
    point = rows[which]
    assert point is not None
    generator = torch.Generator().manual_seed(3)
    ahead = torch.randn(point.shape, generator=generator, dtype=torch.double)
    weights = torch.randn(len(point), generator=generator, dtype=torch.double)

    def value(moved: Tensor) -> Tensor:
        return (weights * case.values(module, (moved, rows[1]) if which == 0 else (rows[0], moved))).sum()  # type: ignore[arg-type]

    leaf = point.clone().requires_grad_()
    value(leaf).backward()
    assert leaf.grad is not None
    slope, step = float((leaf.grad * ahead).sum()), 1e-6
    with torch.no_grad():
        found = float(value(point + step * ahead) - value(point - step * ahead)) / (2 * step)
    fine = abs(slope - found) <= 1e-4 * (1 + abs(found))
    _expect(fine, f"the gradient of {case.by_row} in {name} is {slope:.6g}, finite differences have {found:.6g}")


def _seeds(case: _Case) -> None:
    rows, before = case.data(START, 0), torch.get_rng_state()
    one, two = (case.make().initialize(*rows, seed=3).eval() for _ in range(2))
    _unmoved(one, _snapshot(two), "initialize with the same seed")
    for name in case.methods:
        getattr(one, name)(*rows)
    one.observe(*rows)
    _expect(torch.equal(torch.get_rng_state(), before), "the global random state was used though a seed was given")


def _restart(case: _Case) -> None:
    """A second start forgets the first."""
    rows, module = case.data(START, 0), case.make()
    x, second = rows
    module.initialize(3 * x + 1, second, seed=1)
    if case.is_density:
        case.trained(module, rows)
    _close(
        case.values(module.initialize(*rows, seed=0), rows),
        case.values(case.started(), rows),
        "a second initialize and the first one of a new module differ",
    )


def _state(case: _Case) -> None:
    rows = case.data()
    trained = case.trained(case.started(), rows)
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


def _devices(case: _Case) -> None:
    module, rows = case.shaken(), case.data()
    value = case.values(module, rows)
    _close(case.values(module.double(), rows), value, "moving the module to double precision changes its values", 1e-3)
    stays = [name for name, value in module.to("meta").state_dict().items() if value.device.type != "meta"]
    stays = [name for name in stays if not name.endswith("_extra_state")]  # bytes, wherever the module is
    _expect(not stays, f"{', '.join(stays)} stays on its device")


def _first_observe(case: _Case) -> None:
    x, second = case.data(START, 0)
    for module, what in ((case.make(), ""), (case.make(), " with NaN rows")):
        if what:
            x, second = x.clone(), None if second is None else second.clone()
            x[3, 0] = math.nan
            if second is not None and second.is_floating_point():
                second[5, 0] = math.nan
        _expect(module.observe(x, second) is None, "observe returns something")
        _expect(module.initialized is True, f"the first observe{what} does not start the module")
        _finite(case.values(module, case.data()), f"after a first observe{what} the value")
    module.observe(*_both(case.data(), lambda part: part[:1]))
    _finite(case.values(module, case.data()), "after observe with a single row the value")


def _follows(case: _Case) -> None:
    """Observe moves what follows the data; a density finds rows that moved more likely."""
    module, before = case.started(), _snapshot(case.started())

    def moved(seed: int) -> Rows:
        x, second = case.data(START, seed)
        return 2 * x + 5, second

    at_first = float(case.loss(module.eval(), moved(9)).detach())
    for seed in range(2, 8):
        module.observe(*moved(seed))
    state = module.state_dict()
    _expect(any(not torch.equal(state[name], old) for name, old in before.items()), "observe moves nothing")
    at_last = float(case.loss(module.eval(), moved(9)).detach())
    lower = at_last < at_first or not case.is_density
    _expect(lower, f"after observing rows that moved their loss is {at_last:.6g}; it was {at_first:.6g}")


def _missing_rows(case: _Case) -> None:
    """Observe leaves out rows that are not finite, and counts them."""
    clean, spoilt = case.started(), case.started()
    x, second = case.data(START, 3)
    bad_x, bad_second = x.clone(), second
    bad_x[2], bad_x[5, 0], keep = math.nan, math.inf, torch.ones(len(x), dtype=torch.bool)
    keep[[2, 5]] = False
    if second is not None and second.is_floating_point():
        bad_second = second.clone()
        bad_second[7, 0] = math.nan
        keep[7] = False
    clean.observe(x[keep], None if second is None else second[keep])
    spoilt.observe(bad_x, bad_second)
    rows = case.data()
    _close(case.values(spoilt, rows), case.values(clean, rows), "rows with NaN move the values", 1e-5)
    found, expected = spoilt.outliers - clean.outliers, int((~keep).sum())
    _expect(found == expected, f"{expected} rows with NaN or infinity are {found} more outliers")


def _degenerate(case: _Case, spoil: Callable[[Tensor], Tensor], what: str, which: int) -> None:
    """Values and gradients are finite where rows are spoilt, from the start or later."""
    (x, second), name = case.data(START, 0), ("x", case.second)[which]
    rows = (spoil(x), second) if which == 0 else (x, spoil(second) if second is not None else None)
    for when in ("initialize", "observe"):
        module = case.make().initialize(*rows, seed=0) if when == "initialize" else case.started()
        module.observe(*rows)
        for kind, some in (("such", rows), ("usual", case.data())):
            at = _both(some, lambda part: part.clone().requires_grad_(part.is_floating_point()))
            value = module(*at)
            label = f"{what} of {name}, after {when}, with {kind} rows"
            _finite(value, f"{label}: forward")
            (value + 0 * at[0].sum()).backward()
            _finite(at[0].grad, f"{label}: the gradient in x")
            loss = case.loss(module, at)
            _finite(loss, f"{label}: the loss")
            module.zero_grad()
            loss.backward() if loss.requires_grad else None
            bad = [n for n, p in module.named_parameters() if p.grad is not None and not p.grad.isfinite().all()]
            _expect(not bad, f"{label}: the gradient of {', '.join(bad)} is not finite")


def _constant(case: _Case, which: int) -> None:
    _degenerate(
        case, lambda part: torch.cat([torch.full_like(part[:, :1], 3.0), part[:, 1:]], 1), "a constant column", which
    )


def _duplicated(case: _Case, which: int) -> None:
    _degenerate(
        case,
        lambda part: torch.cat([part[:, :1], part[:, :1], part[:, 2:]], 1)[:, : part.shape[1]],
        "a duplicated column",
        which,
    )


def _outlier(case: _Case, which: int) -> None:
    row = torch.arange(START).unsqueeze(1) == 4
    _degenerate(case, lambda part: torch.where(row, 1e6, part), "an outlier of 1e6", which)
    _degenerate(case, lambda part: torch.where(row, 1e12, part), "an outlier of 1e12", which)


def _few_rows(case: _Case) -> None:
    for n in (2, 3, 9):
        module, rows = case.make().initialize(*case.data(n, 0), seed=0), case.data()
        _finite(module(*rows), f"forward after a start from {n} rows")
        _finite(case.loss(module, rows), f"the loss after a start from {n} rows")
    try:
        case.make().initialize(*case.data(1))
    except ValueError as error:
        _expect(str(error).startswith("x "), f"initialize with one row says {str(error)!r}, which does not name x")
    else:
        raise AssertionError("initialize takes a single row; expected ValueError")


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
            _finite(each(*rows), f"forward after {what} without some classes")
            _finite(case.loss(each, rows), f"the loss after {what} without some classes")


def _arrays(case: _Case) -> None:
    """Arrays are as good as tensors; the second variable may have another precision."""
    rows = case.data(START, 0)
    module = case.make().initialize(*_both(rows, lambda part: part.numpy()), seed=0)  # type: ignore[arg-type, return-value]
    value = case.values(module, rows)
    _close(value, case.values(case.started(), rows), "a start from arrays differs from one from tensors")
    x, second = rows
    if second is not None:
        other = (x, second.double() if second.is_floating_point() else second.int())
        found = case.values(module, other)
        _expect(found.dtype == x.dtype, f"{case.by_row} with {case.second} in {other[1].dtype} is {found.dtype}")
        _close(found, value, f"another precision of {case.second} changes the values")


Bad = tuple[str, Any, Any, type[Exception], str]


def _bad_input(case: _Case) -> None:
    """Input that cannot be used raises an error that begins with the argument's name, and changes nothing."""
    module, before = case.started(), _snapshot(case.started())
    for what, x, second, kind, name in (*_bad_x(case), *_bad_second(case)):
        for method in (*case.methods, "initialize"):
            call = f"{method} of {what}"
            try:
                getattr(module, method)(x, second)
            except (ValueError, TypeError) as error:
                right = isinstance(error, kind) and re.match(rf"{name}\b", str(error))
                told = f"{type(error).__name__}: {error}"
                _expect(right, f"{call} raises {told!r}; expected {kind.__name__} that begins with {name}")
            except Exception as error:
                found = f"{call} raises {type(error).__name__}: {error}; expected {kind.__name__}"
                raise AssertionError(found) from error
            else:
                raise AssertionError(f"{call} raises nothing; expected {kind.__name__} that names {name}")
            _unmoved(module, before, call)


def _spoilt(part: Tensor, value: float) -> Tensor:
    part = part.clone()
    part[3, -1] = value
    return part


def _bad_x(case: _Case) -> Iterator[Bad]:
    x, y = case.data(10)
    yield "x with NaN", _spoilt(x, math.nan), y, ValueError, "x"
    yield "x with infinity", _spoilt(x, -math.inf), y, ValueError, "x"
    yield "an empty x", x[:0], y if y is None else y[:0], ValueError, "x"
    yield "x with three axes", x[None], y, ValueError, "x"
    yield "x with too many columns", torch.cat([x, x], 1), y, ValueError, "x"
    yield "x of integers", x.long(), y, TypeError, "x"
    yield "x of booleans", x > 0, y, TypeError, "x"
    yield "x of strings", [["a"] * x.shape[1]] * 10, y, TypeError, "x"
    yield "no x", None, y, TypeError, "x"


def _bad_second(case: _Case) -> Iterator[Bad]:
    (x, y), name, classes = case.data(10), case.second, case.dims[2]
    if y is None:
        yield f"{name} without a condition", x, torch.zeros(10, 3), ValueError, name
        return
    yield f"fewer rows of {name}", x, y[:9], ValueError, name
    yield f"no {name}", x, None, ValueError if case.is_density else TypeError, name
    if classes is not None:
        yield f"{name} of floats", x, y.float(), TypeError, name
        yield f"a class of {name} that is too large", x, torch.full_like(y, classes), ValueError, name
        yield f"a negative class of {name}", x, y - 1 - int(y.min()), ValueError, name
        yield f"{name} with two axes", x, y[:, None], ValueError, name
        return
    yield f"{name} with NaN", x, _spoilt(y, math.nan), ValueError, name
    yield f"{name} with infinity", x, _spoilt(y, math.inf), ValueError, name
    yield f"{name} with three axes", x, y[None], ValueError, name
    yield f"{name} with too many columns", x, torch.cat([y, y], 1), ValueError, name
    yield f"{name} of integers", x, y.long(), TypeError, name


def _units(case: _Case, which: int) -> None:
    """Answers do not depend on the units: h(aX + b) = h(X) + d log a, and nothing else moves with them."""
    name = ("x", case.second)[which]
    for dtype, steps in ((torch.float32, 0), (torch.float64, 3)):  # Adam's first steps turn rounding into signs
        expected = _in_units(case, which, 1.0, dtype, steps)
        for scale in SCALES:
            gap = abs(_in_units(case, which, scale, dtype, steps) - expected)
            _expect(gap < 2e-3, f"with {name} times {scale:g} the value moves by {gap:.3g} nats more than it should")


def _in_units(case: _Case, which: int, scale: float, dtype: torch.dtype, steps: int) -> float:
    """The mean value of fresh rows after a start and a few steps, all in other units, less what these explain."""

    def rows(seed: int) -> Rows:
        x, second = case.data(START, seed, dtype)
        if which == 0 or second is None:
            return scale * (x + 0.7), second
        return x, scale * (second + 0.7)

    torch.manual_seed(0)
    module = case.trained(case.make().initialize(*rows(0), seed=0), rows(0), steps)
    volume = case.dims[0] * math.log(scale) if case.is_density and which == 0 else 0.0
    return float(case.values(module, rows(1)).mean().detach()) + volume


# checks of densities


def _per_row(case: _Case) -> None:
    module, rows = case.shaken(torch.double), case.data(9, dtype=torch.double)
    together, order = case.values(module, rows), torch.randperm(9, generator=torch.Generator().manual_seed(0))
    _close(
        case.values(module, _both(rows, lambda part: part[order])), together[order], "the order of rows matters", 1e-9
    )
    each = zip(*(part.split(1) for part in rows if part is not None), strict=True)
    alone = torch.cat([case.values(module, row) for row in each])
    _close(alone, together, "rows alone and rows in a batch differ", 1e-9)


def _mean(case: _Case) -> None:
    module, rows = case.shaken().eval(), case.data()
    mean = case.values(module, rows).mean()
    what = "-log_prob(x).mean()" if case.is_density else "pointwise(x, y).mean()"
    _close(module(*rows), -mean if case.is_density else mean, f"forward in eval mode differs from {what}", 1e-5)


def _functional(case: _Case) -> None:
    """Transforms of torch.func see the same function and leave no trace."""
    module, (x, given) = case.shaken(torch.double).eval(), case.data(12, dtype=torch.double)
    parameters, before = dict(module.named_parameters()), _snapshot(module)

    def entropy(values: dict[str, Tensor], points: Tensor) -> Tensor:
        result: Tensor = torch.func.functional_call(module, values, (points, given))
        return result

    gradients, of_x = torch.func.grad(entropy, (0, 1))(parameters, x)
    expected = torch.autograd.grad(module(x.requires_grad_(), given), [*parameters.values(), x])
    for name, ours, truth in zip((*gradients, "x"), (*gradients.values(), of_x), expected, strict=True):
        _close(ours, truth, f"torch.func.grad and autograd differ in {name}", 1e-6)
    batches = _both((x.detach(), given), lambda part: part.unflatten(0, (3, 4)))
    mapped = torch.func.vmap(module.log_prob, in_dims=(0, None if given is None else 0))(*batches)
    _close(mapped.flatten(), module.log_prob(x, given), "vmap over batches changes log_prob", 1e-6)
    _unmoved(module, before, "torch.func")


def _one_condition(case: _Case, n: int) -> Tensor | None:
    given = case.data(1, dtype=torch.double)[1]
    return None if given is None else given.expand(n, *given.shape[1:])


def _integral(case: _Case) -> None:
    """The density integrates to one, and its samples have its mean, its variances and its entropy."""
    for what, module in (("before", case.make().double()), ("after", case.shaken(torch.double))):
        samples = module.sample(4000, _one_condition(case, 1), seed=0)
        points, log_weights = _nodes(samples)
        mean, scale = samples.mean(0), samples.std(0)

        def features(x: Tensor) -> tuple[Tensor, Tensor]:
            with torch.no_grad():
                log_prob = module.log_prob(x, _one_condition(case, len(x)))  # noqa: B023  # used in this round alone
            z = (x - mean) / scale  # noqa: B023
            return log_prob, torch.cat([torch.ones_like(z[:, :1]), -log_prob.clamp_min(-1e4)[:, None], z, z * z], 1)

        log_prob, of_points = features(points)
        parts, own = (log_prob + log_weights).exp().unsqueeze(1) * of_points, features(samples)[1]
        noise = parts.std(0) * len(parts) ** 0.5 if samples.shape[1] > 1 else torch.zeros_like(parts[0])
        gap = (parts.sum(0) - own.mean(0)).abs() / (5 * (noise + own.std(0) / len(own) ** 0.5) + 1e-3)
        total, worst = parts.sum(0), int(gap.argmax())
        name = ("mass", "entropy", *["mean"] * len(mean), *["square"] * len(mean))[worst]
        found = f"{float(total[worst]):.4g}, that of its samples {float(own.mean(0)[worst]):.4g}"
        _expect(gap.max() < 1, f"{what} initialize the {name} of the density by an integral is {found}")


def _nodes(samples: Tensor) -> tuple[Tensor, Tensor]:
    """Points and the logarithms of their weights for an integral: a grid for one column, a Student's t for more."""
    n, dim = samples.shape
    if dim == 1:
        reach = 20 * float(samples.std())
        grid = torch.linspace(float(samples.min()) - reach, float(samples.max()) + reach, 40_001, dtype=torch.double)
        return grid[:, None], (grid[1] - grid[0]).log().expand(len(grid))
    generator, freedom, n = torch.Generator().manual_seed(0), 4, 20_000
    factor = torch.linalg.cholesky(samples.T.cov() * 1.5)
    normal = torch.randn(n, dim, generator=generator, dtype=torch.double)
    spread = freedom / torch.randn(n, freedom, generator=generator, dtype=torch.double).square().sum(1)
    points = normal * spread.sqrt()[:, None]
    log_q = math.lgamma((freedom + dim) / 2) - math.lgamma(freedom / 2) - 0.5 * dim * math.log(freedom * math.pi)
    log_q = log_q - 0.5 * (freedom + dim) * (points.square().sum(1) / freedom).log1p() - factor.logdet()
    return points @ factor.T + samples.mean(0), -log_q - math.log(n)


def _samples(case: _Case) -> None:
    module, (x, given) = case.started(), case.data(6)
    samples = module.sample(6, given, seed=0)
    _expect(samples.shape == x.shape, f"6 samples have shape {tuple(samples.shape)}; expected {tuple(x.shape)}")
    _expect(samples.dtype == x.dtype and not samples.requires_grad, "samples have another dtype than x, or a gradient")
    _expect(torch.equal(module.sample(6, given, seed=0), samples), "samples with the same seed differ")
    _expect(not torch.equal(module.sample(6, given, seed=1), samples), "samples with different seeds are equal")
    one = None if given is None else given[:1]
    many = None if given is None else given[:1].expand_as(given)
    same = torch.equal(module.sample(6, one, seed=0), module.sample(6, many, seed=0))
    _expect(same, "one condition does not serve all samples")
    before = torch.get_rng_state()
    module.sample(6, given, seed=0)
    _expect(torch.equal(torch.get_rng_state(), before), "sample with a seed uses the global random state")
    first = module.sample(6, given)
    _expect(not torch.equal(module.sample(6, given), first), "samples without a seed repeat")
    torch.set_rng_state(before)
    _expect(torch.equal(module.sample(6, given), first), "samples without a seed do not follow the global random state")
    for n, kind in ((0, ValueError), (2.0, TypeError)):
        try:
            module.sample(n, given)
        except (ValueError, TypeError) as error:
            right = isinstance(error, kind) and str(error).startswith("n ")
            _expect(right, f"sample({n}) raises {error!r}; expected {kind.__name__} that names n")
        else:
            raise AssertionError(f"sample({n}) raises nothing; expected {kind.__name__}")


def _all_classes(case: _Case) -> None:
    module, classes = case.shaken().eval(), case.dims[2]
    x, label = case.data()
    if classes is None:
        try:
            module.log_prob_all(x)
        except ValueError:
            return
        raise AssertionError("log_prob_all of a density without classes raises nothing; expected ValueError")
    each = torch.stack([module.log_prob(x, torch.full_like(label, c)) for c in range(classes)], 1)  # type: ignore[arg-type]
    _close(module.log_prob_all(x), each, "log_prob_all and log_prob of each class differ", 1e-5)


def _far_away(case: _Case) -> None:
    """Rows that are far away are neither NaN nor likely."""
    _, given = case.data(4)
    x = torch.tensor([[1e3], [-1e5], [1e8], [1e15]]).expand(4, case.dims[0])
    value = case.values(case.started(), (x, given))
    _expect((value < -50).all(), f"log_prob of x = 1e3, -1e5, 1e8, 1e15 is {value.tolist()}")


# checks of estimators


def _bound(case: _Case) -> None:
    bound = case.make().bound
    _expect(bound in ("lower", "upper", None), f"bound is {bound!r}; expected 'lower', 'upper' or None")


def _detached(case: _Case) -> None:
    module, rows = case.shaken().train(), case.data()
    leaves = _both(rows, lambda part: part.clone().requires_grad_(part.is_floating_point()))
    loss = module.loss(*leaves)
    if loss.requires_grad:
        loss.backward()
    for name, leaf in zip(("x", "y"), leaves, strict=True):
        _expect(leaf is None or leaf.grad is None, f"the gradient of loss reaches {name}")


def _groups(case: _Case) -> None:
    module = case.started()
    groups = module.parameter_groups(1e-3)
    held = [id(parameter) for group in groups for parameter in group["params"]]
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    lost = [name for key, name in names.items() if key not in held]
    _expect(not lost, f"parameter_groups leaves out {', '.join(lost)}")
    twice = [names.get(key, "a parameter that is not the module's") for key in set(held) if held.count(key) > 1]
    _expect(
        len(held) == len(names), f"parameter_groups has {', '.join(twice) or 'a parameter of another module'} twice"
    )
    _expect(all(group["lr"] > 0 for group in groups), "parameter_groups has a rate that is not positive")


def _synchronisations(case: _Case) -> None:
    """A step waits for the device at most twice: to check what loss and forward were given."""
    module, rows = case.started().train(), case.data()
    module.observe(*rows)  # a copy looks once at what it remembers
    with _counted() as waits:
        module.observe(*rows)
        module.loss(*rows)
        module(*rows)
    _expect(len(waits) <= 2, f"observe, loss and forward wait {len(waits)} times for the device: {', '.join(waits)}")


@contextmanager
def _counted() -> Iterator[list[str]]:
    """Collect the names of the methods that bring a tensor's value to the host."""
    calls: list[str] = []

    def counting(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Tensor, *args: Any) -> Any:
            if not any(inside):
                calls.append(name)
            inside.append(True)
            try:
                return original(self, *args)
            finally:
                inside.pop()

        return method

    inside: list[bool] = []
    patches = [mock.patch.object(Tensor, name, counting(name, getattr(Tensor, name))) for name in SYNCHRONISING]
    for patch in patches:
        patch.start()
    try:
        yield calls
    finally:
        for patch in patches:
            patch.stop()


def _of(check: Callable[[_Case, int], None], which: int) -> Callable[[_Case], None]:
    """A check of one of the two variables, where there is one with numbers."""

    def of_one(case: _Case) -> None:
        if which == 0 or _continuous(case.data()):
            check(case, which)

    return of_one


def _common(second: str) -> dict[str, Callable[[_Case], None]]:
    return {
        "shapes": _shapes,
        "initialized": _initialized,
        "mean": _mean,
        "purity": _purity,
        "repeats": _repeats,
        "dtypes": _dtypes,
        "autocast": _autocast,
        "inference_mode": _inference_mode,
        "learns": _learns,
        "graphs": _graphs,
        "gradient_x": _gradient_x,
        f"gradient_{second}": _gradient_second,
        "seeds": _seeds,
        "restart": _restart,
        "state": _state,
        "devices": _devices,
        "first_observe": _first_observe,
        "follows": _follows,
        "missing_rows": _missing_rows,
        "few_rows": _few_rows,
        "absent_classes": _absent_classes,
        "arrays": _arrays,
        "bad_input": _bad_input,
        "units": _of(_units, 0),
        f"units_{second}": _of(_units, 1),
        "constant": _of(_constant, 0),
        f"constant_{second}": _of(_constant, 1),
        "duplicated": _of(_duplicated, 0),
        f"duplicated_{second}": _of(_duplicated, 1),
        "outlier": _of(_outlier, 0),
        f"outlier_{second}": _of(_outlier, 1),
    }


DENSITY_CHECKS: dict[str, Callable[[_Case], None]] = {
    **_common("given"),
    "rows": _per_row,
    "functional": _functional,
    "integral": _integral,
    "samples": _samples,
    "all_classes": _all_classes,
    "far_away": _far_away,
}
ESTIMATOR_CHECKS: dict[str, Callable[[_Case], None]] = {
    **_common("y"),
    "bound": _bound,
    "detached": _detached,
    "groups": _groups,
    "synchronisations": _synchronisations,
}
