import itertools
from dataclasses import FrozenInstanceError

import pytest
import torch

from infoknife import tasks


def test_seeds_repeat_and_generators_go_on() -> None:
    task = tasks.GaussianPair(2, 0.5)
    first, again = task.sample(10, 7), task.sample(10, 7)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    source = torch.Generator().manual_seed(7)
    x, _ = task.sample(10, source)
    more, _ = task.sample(10, source)
    assert torch.equal(x, first[0])
    assert not torch.equal(more, x)


def test_dtypes_agree_to_rounding() -> None:
    for task in (tasks.Student(3, df=2), tasks.UniformBall(4)):
        single, double = task.sample(50, 0), task.sample(50, 0, dtype=torch.float64)
        assert single.dtype == torch.float32
        assert double.dtype == torch.float64
        assert torch.equal(single, double.float())
        assert task.log_prob(single).dtype == torch.float32
        assert task.log_prob(double).dtype == torch.float64


def test_global_randomness_is_untouched() -> None:
    before = torch.get_rng_state()
    for name in (
        "mixture-8d",
        "moons",
        "triangles-8d",
        "classes-2-8d",
        "bmi-bimodal-1x1",
        "bmi-student-2x2-df1",
    ):
        tasks.get(name).sample(10, 0)
        assert tasks.get(name).error >= 0
    assert torch.equal(before, torch.get_rng_state())


def test_batches_are_fresh_and_endless() -> None:
    source = torch.Generator().manual_seed(0)
    batches = list(itertools.islice(tasks.UniformCube(3).batches(5, source), 4))
    assert [x.shape for (x,) in batches] == [(5, 3)] * 4
    assert len({float(x[0, 0]) for (x,) in batches}) == 4
    x, y = next(tasks.GaussianPair(2, 0.5).batches(6, seed=0, dtype=torch.float64))
    assert (x.shape, y.shape, x.dtype) == ((6, 2), (6, 2), torch.float64)


def test_tasks_are_frozen_and_name_themselves() -> None:
    task = tasks.GaussianPair(2, 0.5)
    assert task.name == repr(task) == "GaussianPair(dim=2, rho=0.5)"
    assert tasks.GaussianPair(2, 0.5, name="mine").name == "mine"
    assert repr(tasks.Gaussian.standard(3)) == "Gaussian(covariance=<3x3>, scale=1.0)"
    with pytest.raises(FrozenInstanceError):
        task.rho = 0.1  # type: ignore[misc]


def test_descriptions_say_the_shapes() -> None:
    assert tasks.UniformCube(1).description.endswith("x has 1 column")
    assert tasks.Multinormal.dense(2, 3).description.endswith("x has 2 columns, y has 3 columns")
    assert tasks.GaussianClasses.draw(4, 2, seed=0).description.endswith("x has 2 columns, y is one of 4 classes")


def test_parameters_tell_the_configuration() -> None:
    assert tasks.GaussianPair(2, 0.5).parameters == {"dim": 2, "rho": 0.5}
    bent = tasks.Transformed(tasks.GaussianPair(1, 0.5), tasks.SwissRoll())
    assert bent.parameters == {
        "base": {"kind": "GaussianPair", "dim": 1, "rho": 0.5},
        "x_map": {"kind": "SwissRoll"},
        "y_map": {"kind": "Identity"},
    }
    assert tasks.Gaussian.standard(2).parameters["covariance"] == [[1.0, 0.0], [0.0, 1.0]]


def test_what_is_not_known_is_said() -> None:
    with pytest.raises(ValueError, match=r"no y, so no mutual information; use entropy\(\)"):
        tasks.UniformCube(2).mutual_information()
    with pytest.raises(ValueError, match=r"is a pair .*use mutual_information\(\)"):
        tasks.GaussianPair(2, 0.5).entropy()
    with pytest.raises(ValueError, match=r"no parameter .*GaussianPair \(rho\)"):
        tasks.TwoMoons().gradient()
    with pytest.raises(ValueError, match="no parameter"):
        tasks.TwoMoons().velocity(3, 0)


@pytest.mark.parametrize("n", [0, -1])
def test_sample_refuses_no_rows(n: int) -> None:
    for task in (tasks.UniformCube(2), tasks.GaussianPair(2, 0.5)):
        with pytest.raises(ValueError, match="n is"):
            task.sample(n, 0)


def test_sample_refuses_integer_dtypes() -> None:
    with pytest.raises(TypeError, match=r"dtype is torch\.int64; expected floating point"):
        tasks.UniformCube(2).sample(3, 0, dtype=torch.int64)
