import math

import pytest
import torch

from infoknife import tasks
from infoknife.demo import _one_thread
from infoknife.demo.cases import FULL, QUICK, Budget, Case, cases, measure, steps
from infoknife.demo.drawing import knife
from infoknife.training import Callback

TINY = Budget(rows=1000, fresh=2000, part=0.02)
ALL = cases(knife())


def ignore(step: int, loss: float, module: torch.nn.Module) -> None:
    """Do nothing."""


def test_truths_are_those_of_the_tasks() -> None:
    for case in ALL:
        x, *given = case.sample(20_000, 7)
        task = case.task
        if isinstance(task, tasks.PairTask):
            surprise = task.log_prob_y(given[0]) - task.log_prob(x, given[0])
        else:
            assert isinstance(task, tasks.EntropyTask)
            surprise = -task.log_prob(x)
        stderr = float(surprise.std()) / math.sqrt(len(x))
        assert case.truth == pytest.approx(float(surprise.mean()), abs=4 * stderr + 1e-6), case.title


def test_both_starts_and_both_kinds_of_conditions_are_there() -> None:
    densities = [case.density() for case in ALL]
    assert [density.init for density in densities[:2]] == ["data", "paper"]
    assert ALL[0].task is ALL[1].task
    assert any(density.given_dim for density in densities)
    assert any(density.given_classes for density in densities)


@pytest.mark.parametrize("case", [ALL[2], ALL[-1]], ids=lambda case: case.title)
def test_a_seed_gives_one_result_and_leaves_the_global_generator(case: Case) -> None:
    before = torch.get_rng_state()
    first, second = (measure(case, TINY, 3, ignore) for _ in range(2))
    assert torch.equal(before, torch.get_rng_state())
    assert (first.estimate, first.stderr) == (second.estimate, second.stderr)
    assert first.error == pytest.approx(0, abs=0.6)
    assert measure(case, TINY, 4, ignore).estimate != first.estimate


def test_the_callback_sees_every_step() -> None:
    seen: list[int] = []
    record: Callback = lambda step, loss, module: seen.append(step)  # noqa: E731
    result = measure(ALL[5], TINY, 0, record)
    assert seen == list(range(1, steps(ALL[5], TINY) + 1))
    assert len(result.history) == len(seen)


def test_values_come_from_fresh_rows() -> None:
    drawn: list[tuple[int, int]] = []

    class Listening:
        x_dim = 1

        def sample(self, n: int, seed: int) -> torch.Tensor:
            drawn.append((n, seed))
            return torch.randn(n, 1, generator=torch.Generator().manual_seed(seed))

    case = Case("normal", "h(X)", Listening(), 1.42, ALL[5].density, 100)  # type: ignore[arg-type]
    result = measure(case, TINY, 5, ignore)
    assert drawn == [(1000, 10), (2000, 11)]
    assert result.stderr == pytest.approx(0.5**0.5 / 2000**0.5, rel=0.2)  # -log p has variance 1/2


def test_quick_is_less_work() -> None:
    assert QUICK.rows < FULL.rows
    assert QUICK.fresh < FULL.fresh
    assert all(1 <= steps(case, QUICK) < steps(case, FULL) == case.steps for case in ALL)


def test_it_works_in_one_thread_and_puts_the_number_back() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with _one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
