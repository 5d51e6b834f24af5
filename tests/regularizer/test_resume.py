"""A run that is saved, loaded into new objects and gone on with is the run that was not interrupted, to the bit."""

import io
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from infoknife import KNIFE, Regularizer, annealed, mi
from infoknife.densities import Autoregressive, Gaussian, Parzen

Rows = tuple[Tensor, ...]
Make = Callable[[], Regularizer]


def alone(x: Tensor) -> Rows:
    return (x,)


def with_classes(x: Tensor) -> Rows:
    return x, (x[:, 0] + x[:, 1].abs() > 0.5).long()


def with_numbers(x: Tensor) -> Rows:
    return x, x.flip(1) + 0.5 * x.square()


RUNS: dict[str, tuple[Make, Callable[[Tensor], Rows]]] = {
    "knife marginal": (lambda: Regularizer(KNIFE(2, 6), seed=1), alone),
    "knife classes": (lambda: Regularizer(mi("knife", 2, y_classes=2, components=4), seed=1), with_classes),
    "knife continuous": (
        lambda: Regularizer(mi("knife", 2, 2, given="y", components=4, hidden=16), seed=1),
        with_numbers,
    ),
    "mine": (lambda: Regularizer(mi("mine", 2, 2, hidden=16), lr=0.01, seed=1), with_numbers),
    "club-sample": (lambda: Regularizer(mi("club-sample", 2, 2, hidden=16), seed=1), with_numbers),
    "knife-joint": (lambda: Regularizer(mi("knife-joint", 2, 2, components=4), seed=1), with_numbers),
    "autoregressive": (lambda: Regularizer(Autoregressive(2, components=3, hidden=8), seed=1), alone),
    "a limit": (lambda: Regularizer(mi("doe", 2, y_classes=2), at_most=0.05, seed=1), with_classes),
    "a schedule": (lambda: Regularizer(KNIFE(2, 4), weight=annealed(1.0, 16), maximize=True, seed=1), alone),
    "more inner steps": (lambda: Regularizer(KNIFE(2, 4), inner_steps=3, max_inner_steps=12, seed=1), alone),
    "momentum": (lambda: Regularizer(KNIFE(2, 4), optimizer=_momentum, lr=0.01, seed=1), alone),
    "no parameters": (lambda: Regularizer(Parzen(2), seed=1), alone),
    "rows left out": (lambda: Regularizer(Gaussian(2), seed=1, warn=False), lambda x: (x.where(x < 2.0, math.nan),)),
}


def _momentum(groups: Any, lr: float) -> torch.optim.Optimizer:
    return torch.optim.SGD(groups, lr, momentum=0.9)


class Run:
    """An encoder, its optimiser and a regularizer in front of batches that drift."""

    def __init__(self, name: str, seed: int) -> None:
        make, self.rows = RUNS[name]
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.encoder = nn.Linear(2, 2)
            self.regularizer = make()
        self.regularizer.warn = False
        self.optimizer = torch.optim.Adam(self.encoder.parameters(), 0.01)

    def go(self, start: int, end: int) -> list[Tensor]:
        trace = []
        for step in range(start, end):
            x = torch.randn(48, 2, generator=torch.Generator().manual_seed(step)) + 0.05 * step
            z, *s = self.rows(self.encoder(x))
            trace.append(self.regularizer.step(z, *s))
            term = self.regularizer(z, *s)
            self.optimizer.zero_grad()
            (term + (self.encoder(x) - x).square().mean()).backward()
            self.optimizer.step()
            trace.append(term.detach())
            trace += [torch.tensor(list(self.regularizer.health().scalars().values()), dtype=torch.double)]
        return [*trace, *(p.detach().clone() for p in self.encoder.parameters()), *self.everything()]

    def everything(self) -> list[Tensor]:
        values = self.regularizer.estimator.state_dict().values()
        return [value.clone() for value in values if isinstance(value, Tensor)]

    def saved(self) -> io.BytesIO:
        file = io.BytesIO()
        states = (self.encoder.state_dict(), self.regularizer.state_dict(), self.optimizer.state_dict())
        torch.save(list(states), file)
        file.seek(0)
        return file

    def loaded(self, file: io.BytesIO) -> None:
        encoder, regularizer, optimizer = torch.load(file, weights_only=True)
        self.encoder.load_state_dict(encoder)
        self.regularizer.load_state_dict(regularizer)
        self.optimizer.load_state_dict(optimizer)


def equal(left: list[Tensor], right: list[Tensor]) -> None:
    assert len(left) == len(right)
    for number, (a, b) in enumerate(zip(left, right, strict=True)):
        assert torch.equal(a.nan_to_num(7.5), b.nan_to_num(7.5)), (number, a, b)


@pytest.mark.parametrize(
    ("name", "at"),
    [*((name, 13) for name in RUNS), ("knife marginal", 1), ("knife marginal", 15), ("mine", 14), ("a limit", 8)],
)
def test_a_resumed_run_is_the_run(name: str, at: int) -> None:
    whole = Run(name, seed=0)
    whole.go(0, at)
    file = whole.saved()
    resumed = Run(name, seed=5)  # another start, which must not matter
    resumed.loaded(file)
    equal(resumed.go(at, at + 8), whole.go(at, at + 8))


def test_a_saved_state_stays_as_it_was() -> None:
    """Random state and counts of a state dictionary do not follow the run."""
    run = Run("mine", seed=0)
    run.go(0, 5)
    state = run.regularizer.state_dict()["_extra_state"]
    before = state.clone()
    run.go(5, 10)
    assert torch.equal(state, before)
    fresh = Run("mine", seed=1).regularizer
    fresh.set_extra_state(state)
    assert fresh.steps == 5


@pytest.mark.parametrize("name", RUNS)
def test_no_row_is_in_a_checkpoint(name: str) -> None:
    """Neither as they came nor in another precision: no three numbers of a row of z or s follow each other."""
    run = Run(name, seed=0)
    if name == "no parameters":
        return  # Parzen's kernels are rows by definition
    x = torch.randn(48, 2, generator=torch.Generator().manual_seed(123)) + 3
    z, *s = run.rows(run.encoder(x))
    for _ in range(3):
        run.regularizer.step(z, *s)
    saved = run.saved().getvalue()
    for rows in (z, *s):
        if rows.is_floating_point():
            for row in rows.detach():
                for kind in (torch.float32, torch.float64):
                    assert row.to(kind).numpy().tobytes() not in saved
        else:
            assert rows.numpy().tobytes() not in saved


def test_a_state_of_another_version_says_so() -> None:
    old = io.BytesIO()
    torch.save({"counts": [1, 2]}, old)
    with pytest.raises(ValueError, match=r"written by infoknife 0\.1"):
        Regularizer(KNIFE(2, 4)).set_extra_state(torch.frombuffer(bytearray(old.getvalue()), dtype=torch.uint8))


def test_a_double_run() -> None:
    """A run in double precision goes on in it."""

    def make() -> Regularizer:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return Regularizer(KNIFE(2, 4), seed=0)

    def go(regularizer: Regularizer, start: int, end: int) -> list[Tensor]:
        batches = (torch.randn(32, 2, generator=torch.Generator().manual_seed(n)).double() for n in range(start, end))
        return [regularizer.step(batch) for batch in batches]

    whole, resumed, file = make(), make(), io.BytesIO()
    go(whole, 0, 5)
    torch.save(whole.state_dict(), file)
    file.seek(0)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    equal(go(resumed, 5, 10), go(whole, 5, 10))


def test_a_joint_run() -> None:
    traces = []
    for interrupted in (False, True):
        torch.manual_seed(0)
        made = [_joint()]
        trace = []
        for step in range(12):
            if interrupted and step == 5:
                encoder, regularizer, optimizer = made[-1]
                states = [part.state_dict() for part in (encoder, regularizer, optimizer)]
                made.append(_joint())
                for part, state in zip(made[-1], states, strict=True):
                    part.load_state_dict(state)
            encoder, regularizer, optimizer = made[-1]
            z = encoder(torch.randn(48, 2, generator=torch.Generator().manual_seed(step)))
            optimizer.zero_grad()
            loss = regularizer(z, z.detach().flip(1)) + regularizer.loss(z, z.flip(1))
            loss.backward()
            optimizer.step()
            trace.append(loss.detach())
        traces.append([*trace, *(p.detach() for p in made[-1][0].parameters())])
    equal(*traces)


def _joint() -> tuple[Any, Any, Any]:
    encoder, regularizer = nn.Linear(2, 2), Regularizer(mi("mine", 2, 2, hidden=8), mode="joint", seed=0)
    return encoder, regularizer, torch.optim.Adam([*encoder.parameters(), *regularizer.parameters()], 0.01)
