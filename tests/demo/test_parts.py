import math

import pytest
import torch

from infoknife import tasks
from infoknife.demo import FULL, QUICK, parts
from infoknife.demo.parts import Budget, ksg, learned, measured


def silent(words: str) -> None:
    pass


def test_the_rival_is_right_about_normal_variables() -> None:
    x, y = tasks.GaussianPair(1, 0.8).sample(3000, 0)
    assert ksg(x.numpy(), y.numpy()) == pytest.approx(-0.5 * math.log(1 - 0.64), abs=0.05)
    assert ksg(1e6 * x.numpy(), y.numpy()) == pytest.approx(ksg(x.numpy(), y.numpy()))
    assert abs(ksg(x.numpy(), y[torch.randperm(3000)].numpy())) < 0.05


def test_relations_are_measured_against_their_truths(monkeypatch: pytest.MonkeyPatch) -> None:
    all_of_them = parts.relations()
    monkeypatch.setattr(parts, "relations", lambda: {"line": all_of_them["a line, correlation 0.8"]})
    before = torch.get_rng_state()
    (found,) = measured(Budget(400, 1, 1), 3, silent)
    assert torch.equal(before, torch.get_rng_state())
    assert found.truth == pytest.approx(0.511, abs=0.001)
    assert found.estimate.value == pytest.approx(found.truth, abs=4 * found.estimate.stderr)
    assert all(task.mutual_information() >= 0 for task in all_of_them.values())


def test_a_code_is_that_of_unseen_rows_and_follows_its_seed() -> None:
    x, digits = parts._digits()
    s, y = digits % 2, (digits >= 5).long()
    first, second, other = (parts._code(x, s, y, 5, seed, hide=True) for seed in (0, 0, 1))
    assert first.shape == (len(x) - parts.TRAINING, parts.CODE)
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    assert not torch.equal(first, parts._code(x, s, y, 5, 0, hide=False))


def test_a_density_is_evaluated_on_other_rows() -> None:
    found = learned(Budget(50, 1, 20), 0, silent)
    assert found.estimate == pytest.approx(found.picture.entropy(), abs=0.8)
    assert 0 < found.stderr < 0.1
    assert all(quick < full for quick, full in zip(QUICK, FULL, strict=True))
