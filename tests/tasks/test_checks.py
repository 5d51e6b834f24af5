import numpy as np
import pytest
import torch

from infoknife.tasks import checks


@pytest.mark.parametrize(("value", "error"), [(0, ValueError), (-3, ValueError), (2.0, TypeError), (True, TypeError)])
def test_count_refuses(value: int, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"dim is .*expected an integer of at least 1"):
        checks.count(value, "dim")


def test_count_takes_what_is_enough() -> None:
    checks.count(1, "dim")
    checks.count(0, "step", least=0)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_positive_refuses(value: float) -> None:
    with pytest.raises(ValueError, match=r"scale is .*above 0"):
        checks.positive(value, "scale")


@pytest.mark.parametrize("value", [-1.0, 1.0, 3.0, float("nan")])
def test_correlation_refuses(value: float) -> None:
    with pytest.raises(ValueError, match=r"rho is .*between -1 and 1"):
        checks.correlation(value, "rho")


@pytest.mark.parametrize("value", [[], [[1.0]], [float("nan")], 1.0])
def test_vector_refuses(value: list[float]) -> None:
    with pytest.raises(ValueError, match=r"scales has shape .*finite numbers"):
        checks.vector(value, "scales")


@pytest.mark.parametrize("value", [[0.5, 0.6], [1.0, 0.0], [1.5, -0.5]])
def test_probabilities_refuses(value: list[float]) -> None:
    with pytest.raises(ValueError, match=r"weights has minimum .*sum to 1"):
        checks.probabilities(value, "weights")


def test_probabilities_are_normalised_to_rounding() -> None:
    weights = checks.probabilities(torch.full((3,), 1 / 3, dtype=torch.float32), "weights")
    assert weights.dtype == torch.float64
    assert float(weights.sum()) == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones((2, 3)), "square"),
        (np.ones(4), "square"),
        (np.array([[1.0, 0.5], [0.2, 1.0]]), "not symmetric"),
        (np.array([[1.0, 1.0], [1.0, 1.0]]), "not positive definite"),
    ],
)
def test_covariance_refuses(value: np.ndarray[tuple[int, ...], np.dtype[np.float64]], message: str) -> None:
    with pytest.raises(ValueError, match=f"sigma .*{message}"):
        checks.covariance(value, "sigma")


def test_covariance_is_a_copy() -> None:
    sigma = torch.eye(2, dtype=torch.float64)
    copied = checks.covariance(sigma, "sigma")
    sigma[0, 0] = 9
    assert torch.equal(copied, torch.eye(2, dtype=torch.float64))


def test_generator_goes_on_or_starts() -> None:
    source = torch.Generator()
    assert checks.generator(source) is source
    assert torch.equal(torch.rand(2, generator=checks.generator(3)), torch.rand(2, generator=checks.generator(3)))


@pytest.mark.parametrize("seed", [None, 1.0, True, "0"])
def test_generator_refuses(seed: int) -> None:
    with pytest.raises(TypeError, match=r"seed is .*integer or a torch\.Generator"):
        checks.generator(seed)


def test_kind_refuses() -> None:
    with pytest.raises(TypeError, match="part is a str; expected a int"):
        checks.kind("1", int, "part")
