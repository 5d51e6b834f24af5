"""Coordinates: exact log-determinants, what they follow, and what does not disturb them."""

import copy
import math
from collections.abc import Callable
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import cosine_similarity

from infoknife.coordinates import (
    ALL,
    FAR,
    MEMORY,
    RECENT,
    Features,
    Identity,
    Moments,
    RankNormal,
    Regression,
    Standardize,
    Transform,
    count_outliers,
    forget,
    precision_factor,
    shrink_correlations,
    shrunk,
)

D, F = 3, 2
Make = Callable[[], Transform]
MAPS: dict[str, Make] = {
    "identity": lambda: Identity(D),
    "standardize": lambda: Standardize(D),
    "whiten": lambda: Regression(D),
    "regression": lambda: Regression(D, F),
    "ranks": lambda: RankNormal(D),
}
FOLLOWING = tuple(name for name in MAPS if name != "identity")
every = pytest.mark.parametrize("name", MAPS)
following = pytest.mark.parametrize("name", FOLLOWING)


def pairs(n: int, seed: int = 0, dtype: torch.dtype = torch.double) -> tuple[Tensor, Tensor]:
    """Rows x (n, D) that depend on features phi (n, F), correlated and skewed."""
    generator = torch.Generator().manual_seed(seed)
    phi, noise = (torch.randn(n, d, generator=generator, dtype=torch.double) for d in (F, D))
    x = noise.cumsum(1) + 0.3 * noise.square() + phi @ torch.tensor([[1.0, 0.0, 2.0], [0.5, -1.0, 0.0]]).double()
    return (x + torch.tensor([3.0, 0.0, -5.0])).to(dtype), phi.to(dtype)


def call(transform: Transform, x: Tensor, phi: Tensor) -> tuple[Tensor, Tensor]:
    """Map, with the condition where it is looked at; the log-determinant for each row."""
    u, log_det = transform(x, phi)
    return u, log_det.expand(len(x))


def seen(transform: Transform, *batches: tuple[Tensor, Tensor]) -> Transform:
    for x, phi in batches:
        transform.observe(x, phi)
    return transform


def outliers(transform: Transform) -> int:
    return count_outliers(transform)


def parts(transform: Transform, n: int = 500) -> list[Tensor]:
    """What a map does to some fixed rows."""
    return [*call(transform, *pairs(n, seed=77))]


@pytest.mark.parametrize("name", MAPS)
@given(st.integers(0, 2**31), st.floats(-6, 6))
def test_log_determinants_are_those_of_autograd(name: str, seed: int, log_scale: float) -> None:
    x, phi = pairs(200, seed)
    x = x * 10**log_scale
    transform = MAPS[name]().double().initialize(x, phi)
    rows, given = 3 * x[:4], phi[:4]  # some of them beyond the outermost knots
    u, log_det = call(transform, rows, given)
    for n in range(len(rows)):
        jacobian: Tensor = torch.autograd.functional.jacobian(
            lambda row, n=n: transform(row[None], given[n : n + 1])[0][0], rows[n]
        )
        torch.testing.assert_close(log_det[n], torch.linalg.slogdet(jacobian)[1], atol=1e-8, rtol=1e-8)
    torch.testing.assert_close(transform.inverse(u, given), rows, atol=1e-6 * 10**log_scale, rtol=1e-6)


@every
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_precision_follows_the_rows(name: str, dtype: torch.dtype) -> None:
    x, phi = pairs(300, dtype=dtype)
    transform = MAPS[name]().to(dtype).initialize(x, phi)
    u, log_det = transform(x, phi)
    assert u.dtype == log_det.dtype == transform.inverse(u, phi).dtype == dtype
    rounding = 1e-4 if dtype == torch.float32 else 1e-7
    torch.testing.assert_close(transform.inverse(u, phi), x, atol=rounding, rtol=rounding)
    expected = parts(MAPS[name]().double().initialize(x.double(), phi.double()))
    torch.testing.assert_close(parts(transform), expected, atol=1e-3, rtol=1e-3)


def test_a_change_of_precision_leaves_the_statistics() -> None:
    transform = Regression(D).initialize(pairs(300)[0])
    before = transform.moments.covariances
    assert torch.equal(transform.half().float().moments.covariances, before)


@following
def test_initialize_is_reset_and_observe(name: str) -> None:
    old = seen(MAPS[name]().double(), *(pairs(100, seed) for seed in range(3)))
    forget(old)
    seen(old, pairs(200, 9))
    fresh = MAPS[name]().double()
    x, phi = pairs(200, 9)
    again = seen(MAPS[name]().double(), pairs(50, 3)).initialize(x, phi)
    expected = fresh.initialize(x, phi).state_dict()
    for transform in (old, again):
        for key, value in transform.state_dict().items():
            assert torch.equal(value, expected[key]), key


@pytest.mark.parametrize("full", [True, False])
def test_batches_are_all_rows_at_once(full: bool) -> None:
    x = pairs(6000)[0]
    moments = Moments(D, full)
    for batch in x.split(100):
        moments.observe(batch)
    covariance = x.T.cov(correction=0)
    unit = moments.unit
    torch.testing.assert_close(moments.mean(ALL), x.mean(0))
    expected = covariance / unit / unit[:, None] if full else covariance.diagonal() / unit.square()
    torch.testing.assert_close(moments.covariances[ALL], expected)
    assert 1 / moments.noise[ALL].item() == pytest.approx(6000)
    assert moments.outliers == 0


def test_old_rows_fade_in_the_recent_memory() -> None:
    moments, generator = Moments(1), torch.Generator().manual_seed(0)
    for _ in range(MEMORY // 128):
        moments.observe(torch.randn(128, 1, generator=generator))
    for _ in range(MEMORY // 128):
        moments.observe(torch.randn(128, 1, generator=generator) + 1)
    assert moments.mean(RECENT).item() == pytest.approx(1 - math.exp(-1), abs=0.03)  # one memory later
    assert moments.mean(ALL).item() == pytest.approx(0.5, abs=0.03)
    for _ in range(5 * MEMORY // 128):
        moments.observe(torch.randn(128, 1, generator=generator))
    assert MEMORY < 1 / moments.noise[RECENT].item() < 2 * MEMORY


@following
def test_maps_come_to_rest_while_the_data_stay(name: str) -> None:
    transform, moves = MAPS[name]().double(), []
    for seed in range(400):
        looks = 0 < seed < 10 or seed >= 380
        before = parts(transform)[0] if looks else None
        seen(transform, pairs(128, seed))
        if before is not None:
            moves.append((parts(transform)[0] - before).abs().mean().item())
    assert max(moves[-20:]) < min(0.01, max(moves[:9]) / 5)


@following
def test_maps_follow_data_that_move(name: str) -> None:
    """Fifty times the scale, and another place: followed within a few memories."""
    transform = seen(MAPS[name]().double(), pairs(1000, 999))
    for seed in range(400):
        x, phi = pairs(128, seed)
        seen(transform, (50 * x - 100, phi))
    x, phi = pairs(4000, 500)
    u, _ = transform(50 * x - 100, phi)
    assert u.mean(0).abs().max() < 0.1
    assert (u.std(0) - 1).abs().max() < 0.1


HOSTILE: dict[str, Callable[[Tensor], Tensor]] = {
    "constant": lambda x: torch.cat([x[:, :2], torch.full_like(x[:, :1], 4.2)], 1),
    "all constant": lambda x: torch.full_like(x, -1e5),
    "zero": torch.zeros_like,
    "duplicated": lambda x: x[:, [0, 1, 1]],
    "sum": lambda x: torch.cat([x[:, :2], x[:, :1] + x[:, 1:2]], 1),
    "normalised": lambda x: torch.nn.functional.layer_norm(x, (D,)),
    "two rows": lambda x: x[:2],
    "one row": lambda x: x[:1],
    "rounded": lambda x: x.round(),
    "rare": lambda x: torch.where(torch.arange(len(x))[:, None] % 97 == 0, x, 0.0),
    "far away": lambda x: x + 1e6,
}


@every
def test_degenerate_rows_have_finite_answers(name: str) -> None:
    for kind, dtype in product(HOSTILE, (torch.float32, torch.float64)):
        x, phi = pairs(300, dtype=dtype)
        bad = HOSTILE[kind](x)
        phi = phi[: len(bad)]
        transform = MAPS[name]().to(dtype).initialize(bad, phi)
        for batch in (bad, x[: len(bad)]):
            rows = batch.clone().requires_grad_()
            u, log_det = call(transform, rows, phi)
            (gradient,) = torch.autograd.grad(u.sum() + log_det.sum(), rows, allow_unused=True)
            assert all(value.isfinite().all() for value in (u, log_det, gradient)), (kind, dtype)
            seen(transform, (batch, phi))
        assert all(value.isfinite().all() for value in transform.state_dict().values()), (kind, dtype)


def test_the_residual_of_what_the_condition_tells_is_finite() -> None:
    phi = pairs(300)[1]
    x = torch.cat([phi, phi[:, :1]], 1)  # nothing is left
    u, log_det = Regression(D, F).double().initialize(x, phi)(x, phi)
    assert u.isfinite().all()
    assert math.isfinite(log_det.item())


@following
def test_one_row_far_outside_hardly_moves_the_map(name: str) -> None:
    def run(at: int | None, size: float = 1.0) -> tuple[tuple[Tensor, Tensor], float]:
        transform = MAPS[name]().float()
        for seed in range(20):
            x, phi = pairs(128, seed, torch.float)
            x[5] *= size if seed == at else 1.0
            seen(transform, (x, phi))
        return call(transform, *pairs(500, 77, torch.float)), outliers(transform)

    plain, none = run(None)
    assert none == 0
    for at, size in product((0, 10), (1e3, 1e6, 1e12, 1e30)):
        disturbed, one = run(at, size)
        assert one == 1
        for got, expected in zip(disturbed, plain, strict=True):
            assert (got - expected).abs().median() < 0.25, (at, size)


@following
def test_rows_that_are_not_finite_are_left_out_and_counted(name: str) -> None:
    x, phi = pairs(200)
    holes = x.clone()
    holes[3, 0], holes[9, 2], holes[11] = math.nan, math.inf, -math.inf
    whole = holes.isfinite().all(1)
    one, other = MAPS[name]().double(), MAPS[name]().double()
    for n in range(2):
        seen(one, (holes, phi) if n == 1 else (x, phi))
        seen(other, (x[whole], phi[whole]) if n == 1 else (x, phi))
    torch.testing.assert_close(parts(one), parts(other))
    before = parts(one)
    seen(one, (torch.full_like(x, math.nan), phi))
    torch.testing.assert_close(parts(one), before)
    assert outliers(one) == 203


def test_a_first_batch_without_any_finite_row_is_no_start() -> None:
    x, phi = pairs(200)
    for name in FOLLOWING:
        one = seen(MAPS[name]().double(), (x * math.nan, phi), (x, phi))
        torch.testing.assert_close(parts(one), parts(seen(MAPS[name]().double(), (x, phi))))


@following
def test_observing_does_not_disturb_a_pending_backward_pass(name: str) -> None:
    transform = MAPS[name]().double().initialize(*pairs(200))
    rows = pairs(50, 1)[0].requires_grad_()
    phi = pairs(50, 1)[1]
    u, log_det = call(transform, rows, phi)
    (expected,) = torch.autograd.grad((u.square().sum() + log_det.sum()), rows, retain_graph=True)
    seen(transform, *(pairs(200, seed) for seed in range(3)))
    (u.square().sum() + log_det.sum()).backward()
    assert rows.grad is not None
    assert torch.equal(rows.grad, expected)


@following
def test_state_is_moved_by_observe_alone_and_goes_round(name: str) -> None:
    one, other = MAPS[name]().double(), MAPS[name]().double()
    x, phi = pairs(100)
    seen(one, (x.requires_grad_(), phi.requires_grad_()), pairs(100, 1))
    assert not any(value.requires_grad for value in one.buffers())
    before = copy.deepcopy(one.state_dict())
    one.inverse(call(one, *pairs(50, 1))[0], pairs(50, 1)[1])
    assert all(torch.equal(value, before[key]) for key, value in one.state_dict().items())
    other.load_state_dict(before)
    for transform in (one, other):
        seen(transform, pairs(100, 2))
    assert all(torch.equal(value, other.state_dict()[key]) for key, value in one.state_dict().items())


@following
def test_units_do_not_matter(name: str) -> None:
    """Nor do the ends of single precision."""
    exact, single = (torch.double, 1e-7), (torch.float, 1e-3)
    cases = [*product((1e-6, 1e-3, 1e6), [exact]), *product((1e-30, 1e-20, 1e20, 1e30), [single])]
    for scale, (dtype, rounding) in cases:
        plain, scaled = MAPS[name]().to(dtype), MAPS[name]().to(dtype)
        for seed in range(3):
            x, phi = pairs(200, seed, dtype)
            seen(plain, (x, phi))
            seen(scaled, (scale * x, phi))
        x, phi = pairs(100, 5, dtype)
        (u, log_det), (v, log_det_scaled) = call(plain, x, phi), call(scaled, scale * x, phi)
        torch.testing.assert_close(u, v, atol=rounding, rtol=rounding)
        torch.testing.assert_close(log_det - D * math.log(scale), log_det_scaled, atol=rounding, rtol=rounding)
        torch.testing.assert_close(scaled.inverse(v, phi) / scale, x, atol=1e-3, rtol=1e-3)


def test_units_of_the_condition_do_not_matter() -> None:
    x, phi = pairs(300, dtype=torch.float)
    values = []
    for scale in (1.0, 1e-30, 1e30):
        features = Features(F)
        features.observe(phi * scale)
        values.append((features(phi * scale), Regression(D, F).initialize(x, phi * scale)(x, phi * scale)[0]))
    for scaled in values[1:]:
        torch.testing.assert_close(scaled, values[0], atol=1e-3, rtol=1e-3)


def test_whitened_rows_have_no_correlations() -> None:
    x = pairs(5000)[0]
    u, _ = Regression(D).double().initialize(x)(x)
    torch.testing.assert_close(u.T.cov(correction=0), torch.eye(D).double(), atol=5e-3, rtol=0)
    torch.testing.assert_close(u.mean(0), torch.zeros(D).double(), atol=1e-7, rtol=0)


def test_regression_is_least_squares() -> None:
    x, phi = pairs(20_000)
    transform = Regression(D, F).double().initialize(x, phi)
    design = torch.cat([phi, torch.ones(len(phi), 1)], 1)
    expected = torch.linalg.lstsq(design, x).solution
    torch.testing.assert_close(transform.slope, expected[:F], atol=2e-3, rtol=2e-3)
    torch.testing.assert_close(transform.shift, expected[F], atol=2e-3, rtol=2e-3)
    rest = x - design @ expected
    u, log_det = transform(x, phi)
    torch.testing.assert_close(u.T.cov(correction=0), torch.eye(D).double(), atol=1e-2, rtol=0)
    assert log_det.item() == pytest.approx(-0.5 * torch.logdet(rest.T.cov(correction=0)).item(), abs=5e-3)


@pytest.mark.parametrize(("dim", "features", "rows"), [(10, 40, 1000), (3, 2, 500)])
def test_a_condition_that_tells_nothing_takes_nothing_away(dim: int, features: int, rows: int) -> None:
    generator = torch.Generator().manual_seed(0)
    taken = []
    for _ in range(10):
        x, phi = (torch.randn(rows, d, generator=generator) for d in (dim, features))
        alone = Regression(dim).initialize(x).log_det
        taken.append(abs((Regression(dim, features).initialize(x, phi).log_det - alone).item()))
    assert max(taken) < 0.02
    assert sum(taken) / len(taken) < 0.2 * features * dim / (2 * rows)  # what least squares takes away


def test_many_small_correlations_are_seen_together() -> None:
    d, rows, generator = 20, 20_000, torch.Generator().manual_seed(0)
    phi, noise = torch.randn(2, rows, d, generator=generator)
    slope = torch.linalg.qr(torch.randn(d, d, generator=generator))[0] * 0.04  # noise alone shows 0.06
    found = Regression(d, d).initialize(phi @ slope + noise, phi).slope
    assert (found - slope).norm() < 0.75 * slope.norm()
    assert cosine_similarity(found.flatten(), slope.flatten(), 0) > 0.95 * (1 + d / (rows * 0.04**2)) ** -0.5


def test_the_information_of_gaussian_pairs_is_the_difference_of_log_determinants() -> None:
    dim = 5
    phi, noise = torch.randn(2, 40_000, dim, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    for rho in (0.1, 0.5, 0.99):
        x = rho * phi + math.sqrt(1 - rho * rho) * noise
        gain = Regression(dim, dim).double().initialize(x, phi).log_det - Regression(dim).double().initialize(x).log_det
        assert gain.item() == pytest.approx(-0.5 * dim * math.log(1 - rho * rho), abs=0.03)


@pytest.mark.parametrize("rows", [128, 2000])
def test_classes_as_features_are_their_means(rows: int) -> None:
    """Columns that add up to one, in single precision."""
    generator = torch.Generator().manual_seed(rows)
    classes = torch.randint(4, (rows,), generator=generator)
    phi = torch.nn.functional.one_hot(classes, 4).float()
    x = torch.randn(rows, 2, generator=generator) + 3 * classes[:, None] * torch.tensor([1.0, -1.0])
    transform = Regression(2, 4).initialize(x, phi)
    u, _ = transform(x, phi)
    assert max(u[classes == label].mean(0).abs().max().item() for label in range(4)) < 0.1
    assert transform.slope.abs().max() < 100


def test_precision_factors_undo_covariances() -> None:
    x = pairs(1000)[0]
    covariance = x.T.cov() * torch.tensor([1.0, 1e-4, 1e4]) * torch.tensor([[1.0], [1e-4], [1e4]])
    L, log_det = precision_factor(covariance, None)
    torch.testing.assert_close(L @ covariance @ L.T, torch.eye(D).double(), atol=1e-8, rtol=0)
    assert not L.triu(1).any()
    assert log_det.item() == pytest.approx(-0.5 * torch.logdet(covariance).item())
    for broken in (torch.zeros(2, 2), torch.ones(2, 2), torch.full((2, 2), math.nan), -torch.eye(2)):
        assert precision_factor(broken.double(), 10.0)[0].isfinite().all()


def test_shrinkage_against_the_formula() -> None:
    """Chen et al. (2010), equation 23, for a matrix of trace d."""
    generator, d, n = torch.Generator().manual_seed(0), 6, 50
    correlation = torch.randn(n, d, generator=generator, dtype=torch.double).T.corrcoef()
    square = (correlation @ correlation).trace().item()
    rate = ((1 - 2 / d) * square + d**2) / ((n + 1 - 2 / d) * (square - d**2 / d))
    expected = (1 - min(rate, 1.0)) * correlation + min(rate, 1.0) * torch.eye(d).double()
    torch.testing.assert_close(shrunk(correlation, n), expected)
    torch.testing.assert_close(shrunk(correlation, 1e12), correlation)
    assert torch.equal(shrunk(torch.eye(d), 10), torch.eye(d))


@given(st.floats(0, 1), st.integers(1, 50), st.integers(1, 50), st.floats(60, 1e6))
def test_shrunk_correlations_against_the_formula(s: float, features: int, dim: int, rows: float) -> None:
    beta, noise = (
        min(features, dim) / max(features, dim),
        math.sqrt(max(features, dim) / max(rows - features - dim, 1e-9)),
    )
    y = s / noise
    shrunk_y = math.sqrt(max((y * y - beta - 1) ** 2 - 4 * beta, 0)) / y if y > 1 + math.sqrt(beta) else 0.0
    alone = s - (s - shrunk_y * noise) * (1 - s * s) if shrunk_y > 0 else 0.0
    together = s - features * dim / rows / s if s > 1e-9 else 0.0  # James & Stein, for the only one that is there
    got = shrink_correlations(torch.tensor([s]).double(), features, dim, rows).item()
    assert got == pytest.approx(max(alone, together, 0.0), abs=1e-6)
    assert 0 <= got < 1


def test_shrunk_correlations_come_closer_to_the_truth() -> None:
    generator, d, n = torch.Generator().manual_seed(0), 20, 400
    truth, plain, better = torch.tensor([0.8, 0.5, *[0.0] * (d - 2)]).double(), 0.0, 0.0
    for _ in range(5):
        a, noise = torch.randn(2, n, d, generator=generator, dtype=torch.double)
        cross = a.T @ (truth * a + (1 - truth**2).sqrt() * noise) / n
        U, s, Vh = torch.linalg.svd(cross)
        plain += (cross - truth.diag()).square().sum().item()
        better += ((U * shrink_correlations(s, d, d, n)) @ Vh - truth.diag()).square().sum().item()
    assert better < 0.3 * plain


@pytest.mark.parametrize("shape", [lambda z: z**3, torch.exp, lambda z: z + 3 * z.sign()], ids=["cube", "exp", "gap"])
def test_small_batches_do_not_blur_the_ranks(shape: Callable[[Tensor], Tensor]) -> None:
    source, transform = torch.Generator().manual_seed(0), RankNormal(2)
    for rows in (1024, *[128] * 300):
        transform.observe(shape(torch.randn(rows, 2, generator=source)))
    z = torch.randn(5000, 2, generator=source)
    middle = z.abs() < 2
    off = (transform(shape(z))[0] - z)[middle]
    assert off.square().mean().sqrt() < 0.02  # averages of batches' quantiles alone: 0.03, 0.01 and 0.04
    assert transform.inverse(transform(shape(z))[0])[middle].allclose(shape(z)[middle], atol=1e-5)


def test_few_first_rows_are_made_up_for() -> None:
    source, transform = torch.Generator().manual_seed(0), RankNormal(1)
    for _ in range(1000):
        transform.observe(torch.randn(16, 1, generator=source).exp())
    z = torch.linspace(-2, 2, 50)[:, None]
    assert (transform(z.exp())[0] - z).abs().max() < 0.3  # batches of 16 show little beyond 1.6


def test_ranks_go_through_the_quantiles() -> None:
    x = torch.randn(10_000, 1, generator=torch.Generator().manual_seed(0), dtype=torch.double).exp()
    transform = RankNormal(1).double().initialize(x)
    u, _ = transform(x)
    expected = torch.quantile(x.flatten(), torch.special.ndtr(transform.normal))
    torch.testing.assert_close(transform.quantiles[0], expected, rtol=5e-3, atol=5e-3)
    torch.testing.assert_close(transform(transform.quantiles.T)[0].flatten(), transform.normal, atol=1e-6, rtol=0)
    assert u.mean().abs() < 0.02
    assert (u.std() - 1).abs() < 0.03
    assert (u.flatten()[x.flatten().argsort()].diff() > 0).all()


def test_ranks_forget_monotone_maps() -> None:
    x = torch.randn(4000, 1, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    u, *others = (RankNormal(1).double().initialize(rows)(rows)[0] for rows in (x, x**3, x**5))
    for v in others:
        assert (u - v)[(u.abs() < 2.2) & (u.abs() > 0.6)].abs().max() < 0.1


def test_tied_ranks_have_finite_slopes() -> None:
    x = torch.randint(3, (1000, 1), generator=torch.Generator().manual_seed(0)).double()
    u, log_slopes = RankNormal(1).double().initialize(x)(x)
    assert u.isfinite().all()
    assert log_slopes.max() < 15
    places = [u[x == value].mean().item() for value in range(3)]
    assert places == sorted(places)
    assert len({round(value, 3) for value in places}) == 3


def test_tails_bend_to_a_logarithm() -> None:
    x = torch.randn(4000, 1, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    transform = RankNormal(1).double().initialize(x)
    far = torch.tensor([[1e1], [1e3], [1e6], [1e30]]).double().requires_grad_()
    u, log_slope = transform(far)
    (gradient,) = torch.autograd.grad(u.sum(), far)
    torch.testing.assert_close(gradient.log().flatten(), log_slope)
    torch.testing.assert_close(u.diff(dim=0).flatten()[1:], torch.tensor([1e3, 1e24]).double().log(), rtol=1e-3, atol=0)
    torch.testing.assert_close(transform.inverse(u), far, rtol=1e-6, atol=0)


def test_ranks_follow_batches_as_all_rows_at_once() -> None:
    x = torch.randn(8000, 2, generator=torch.Generator().manual_seed(0), dtype=torch.double).exp()
    whole, parted = RankNormal(2).double().initialize(x), RankNormal(2).double()
    for batch in x.split(250):
        parted.observe(batch)
    assert (whole(x)[0] - parted(x)[0]).abs().mean() < 0.05


def test_a_column_that_stands_still_in_a_batch_keeps_its_ranks() -> None:
    x = pairs(300)[0]
    transform = RankNormal(D).double().initialize(x)
    before = transform.quantiles
    still = pairs(300, 1)[0]
    still[:, 1] = 7.0
    transform.observe(still)
    torch.testing.assert_close(transform.quantiles[1], before[1])
    assert not torch.equal(transform.quantiles[0], before[0])


def test_standardising_by_quantiles() -> None:
    x = 5 + 3 * torch.randn(20_000, 1, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    transform = RankNormal(1).double().initialize(x)
    u, scale = transform.standardize(x)
    assert scale.item() == pytest.approx(3, rel=0.02)
    assert u.mean().abs() < 0.03


def test_features_are_both_forms() -> None:
    x = pairs(500)[0]
    features, plain = Features(D).double(), Features(D, ranks=False).double()
    for one in (features, plain):
        one.observe(x)
    phi = features(x)
    assert phi.shape == (500, features.out) == (500, 2 * D)
    assert plain(x).shape == (500, plain.out) == (500, D)
    torch.testing.assert_close(phi[:, :D], plain(x), atol=0.1, rtol=0)  # but for how rows far out count
    assert (phi[:, D:].std(0) - 1).abs().max() < 0.1
    assert features(1e9 * x)[:, :D].abs().max() == FAR
    forget(features)
    features.observe(x + 100)
    torch.testing.assert_close(features(x + 100), phi, atol=1e-6, rtol=1e-6)


def test_rows_are_checked_at_the_start() -> None:
    with pytest.raises(ValueError, match="x has 2 columns"):
        Standardize(3).initialize(torch.ones(4, 2))
    with pytest.raises(ValueError, match="x has NaN"):
        Regression(1).initialize(torch.full((4, 1), math.nan))
    with pytest.raises(ValueError, match="dim is 0"):
        Identity(0)


def test_whitening_is_undone_in_half_precision_too() -> None:
    x = torch.randn(100, 2, generator=torch.Generator().manual_seed(0))
    transform = Regression(2).initialize(x)
    back = transform.inverse(transform(x)[0].half())
    assert back.dtype == torch.float16
    torch.testing.assert_close(back.float(), x, atol=0.01, rtol=0.01)
