"""The neural spline flow."""

import builtins
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from scipy.stats import multivariate_normal
from torch import Tensor

from infoknife.densities.flow import Flow


def shaken(dim: int = 3, by: float = 0.3, **options: int) -> Flow:
    """A density with every parameter away from its start."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        density = Flow(dim, transforms=2, bins=5, hidden=(12,), **options).double()
        for parameter in density.parameters():
            parameter.data += by * torch.randn(parameter.shape, dtype=torch.double)
    return density


def correlated(n: int, seed: int) -> Tensor:
    mix = torch.tensor([[2.0, 0.0, 0.0], [1.5, 0.5, 0.0], [-1.0, 1.0, 1.0]], dtype=torch.double)
    return torch.randn(n, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.double) @ mix.T + 7


@torch.no_grad()
@pytest.mark.parametrize("options", [{}, {"given_dim": 2}, {"given_classes": 3}], ids=str)
@pytest.mark.parametrize("dim", [1, 3])
def test_the_splines_have_an_inverse_and_its_log_determinant(dim: int, options: dict[str, int]) -> None:
    density, generator = shaken(dim, **options), torch.Generator().manual_seed(0)
    z = 3 * torch.randn(50, dim, generator=generator, dtype=torch.double)  # some of them beyond the splines
    given = torch.randn(50, 4, generator=generator, dtype=torch.double) if "given_dim" in options else None
    given = torch.arange(50) % 3 if "given_classes" in options else given
    there, log_det = density._map(z, given)
    back, log_det_back = density._map(there, given, inverse=True)
    assert float((there - z).abs().max()) > 0.1
    torch.testing.assert_close(back, z, rtol=0, atol=1e-8)
    torch.testing.assert_close(log_det_back, -log_det, rtol=0, atol=1e-8)


def test_the_log_determinant_is_that_of_the_jacobian() -> None:
    density, x = shaken(), torch.randn(1, 3, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    jacobian = torch.autograd.functional.jacobian(lambda z: density._map(z, None)[0][0], x)[:, 0]
    torch.testing.assert_close(density._map(x, None)[1], torch.linalg.slogdet(jacobian).logabsdet[None])


@torch.no_grad()
def test_fewer_rows_than_dimensions() -> None:
    x = torch.randn(12, 20, generator=torch.Generator().manual_seed(0))
    fresh = torch.randn(500, 20, generator=torch.Generator().manual_seed(1))
    assert float(Flow(20).initialize(x, seed=0)(fresh)) < 10 * math.log(2 * math.pi * math.e) + 15


def test_the_start_redraws_the_networks_by_the_seed() -> None:
    x = correlated(100, 0)
    for dim, given_dim in ((3, None), (1, 3)):  # one dimension has another network
        given = None if given_dim is None else x
        one, two, other = (
            Flow(dim, given_dim=given_dim).initialize(x[:, :dim], given, seed=seed) for seed in (0, 0, 1)
        )
        assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
        assert any(not torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


@torch.no_grad()
def test_beyond_the_splines_it_is_the_normal_density() -> None:
    density = shaken(2, by=0.0)
    for parameter in density.splines.parameters():
        parameter.add_(0.5)
    far = torch.tensor([[6.0, -7.0], [40.0, 5.5]], dtype=torch.double)
    expected = multivariate_normal(torch.zeros(2).numpy(), torch.eye(2).numpy()).logpdf(far.numpy())
    torch.testing.assert_close(density.log_prob(far), torch.from_numpy(expected))


def test_without_zuko_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_zuko(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if name.partition(".")[0] == "zuko":
            raise ImportError("No module named 'zuko'")
        return real(name, globals, locals, fromlist, level)

    monkeypatch.setattr(builtins, "__import__", without_zuko)
    with pytest.raises(ImportError, match=r'Flow needs zuko; install it with: pip install "infoknife\[flow\]"'):
        Flow(2)
