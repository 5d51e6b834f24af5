"""Erasure in closed form: nothing linear, or quadratic, is left; what is changed is as little as can be."""

import copy
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from infoknife.erasure import LEACE, QuadraticErasure, barycentre

DIM, CLASSES = 5, 3
BOTH: list[Callable[[], LEACE | QuadraticErasure]] = [LEACE, QuadraticErasure]


def classes(n: int = 600, dim: int = DIM, k: int = CLASSES, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Features whose means and covariances differ between unequal classes, in double precision."""
    generator = torch.Generator().manual_seed(seed)
    s = torch.multinomial(1.0 / torch.arange(1, k + 1), n, replacement=True, generator=generator)
    s[:k] = torch.arange(k)  # every one is there
    maps, means = torch.randn(k, dim, dim, generator=generator), torch.randn(k, dim, generator=generator)
    z = torch.einsum("nij,nj->ni", maps[s], torch.randn(n, dim, generator=generator)) + means[s]
    return z.double(), s


def erased(erase: LEACE | QuadraticErasure, z: Any, s: Any) -> Tensor:
    return erase(z) if isinstance(erase, LEACE) else erase(z, s)


def cross(z: Tensor, s: Tensor) -> Tensor:
    """Cross-covariances (d, k)."""
    return (z - z.mean(0)).T @ (s - s.mean(0)) / len(z)


def one_hot(s: Tensor) -> Tensor:
    return nn.functional.one_hot(s).double()


def moments(z: Tensor, s: Tensor) -> list[tuple[Tensor, Tensor]]:
    return [(z[s == k].mean(0), z[s == k].T.cov(correction=0)) for k in s.unique()]


# LEACE


def test_no_linear_probe_beats_a_constant() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    z, s = classes()
    gone = LEACE().fit(z, s)(z)
    probe = linear.LogisticRegression(C=1e6, max_iter=2000)
    constant = -(shares := torch.bincount(s) / len(s)) @ shares.log()
    loss = -probe.fit(gone, s).predict_log_proba(gone)[np.arange(len(s)), s].mean()
    assert loss == pytest.approx(float(constant), abs=1e-6)
    assert -probe.fit(z, s).predict_log_proba(z)[np.arange(len(s)), s].mean() < 0.9 * float(constant)
    left = linear.LinearRegression().fit(gone, one_hot(s)).coef_
    assert np.abs(left).max() < 1e-10


@pytest.mark.parametrize("columns", [1, 3])
def test_numbers_are_erased(columns: int) -> None:
    z, _ = classes()
    s = z[:, :columns].square() + z[:, -columns:]
    erase = LEACE().fit(z, s if columns > 1 else s[:, 0])
    assert cross(erase(z), s).abs().max() < 1e-12 * cross(z, s).abs().max()
    assert torch.linalg.matrix_rank(erase.projection, rtol=1e-9) == DIM - columns


def test_change_is_smallest_in_every_norm() -> None:
    """Any other affine map I + B C with no cross-covariance left: B C moves by a map that vanishes on it."""
    z, s = classes()
    erase, centred = LEACE().fit(z, s), z - z.mean(0)
    generator = torch.Generator().manual_seed(1)
    directions = torch.linalg.svd(cross(z, one_hot(s)))[0][:, : CLASSES - 1]  # what every erasing map sends to zero
    inside = directions @ directions.T
    for _ in range(50):
        free = torch.randn(DIM, DIM, generator=generator, dtype=torch.double)
        root = torch.randn(DIM, DIM, generator=generator, dtype=torch.double)
        other = erase.projection + 0.1 * free @ (torch.eye(DIM).double() - inside)
        changed = centred @ other.T
        assert cross(changed, one_hot(s)).abs().max() < 1e-12
        least, most = (((rows - centred) @ root).square().sum() for rows in (erase(z) - z.mean(0), changed))
        assert least < most
    orthogonal = centred @ (torch.eye(DIM).double() - inside).T
    assert (erase(z) - z).square().sum() < (orthogonal - centred).square().sum()


def test_twice_is_once_and_the_mean_stays() -> None:
    z, s = classes()
    erase = LEACE().fit(z, s)
    torch.testing.assert_close(erase(erase(z)), erase(z))
    torch.testing.assert_close(erase(z).mean(0), z.mean(0))
    torch.testing.assert_close(erase.transform(z), erase(z))


def test_projection_is_that_of_the_published_package() -> None:
    published = pytest.importorskip("concept_erasure")
    z, s = classes(dim=12)
    options = {"shrinkage": False, "constrain_cov_trace": False, "svd_tol": 1e-8, "dtype": torch.double}
    theirs = published.LeaceFitter(12, CLASSES, **options).update(z, one_hot(s)).eraser
    erase = LEACE().fit(z, s)
    torch.testing.assert_close(erase.projection, theirs.P, atol=1e-5, rtol=0)
    torch.testing.assert_close(erase(z), theirs(z), atol=1e-5, rtol=0)


def test_fresh_rows_are_erased_up_to_noise() -> None:
    z, s = classes(20_000)
    gone = LEACE().fit(z[:10_000], s[:10_000])(z[10_000:])
    assert cross(gone, one_hot(s[10_000:])).abs().max() < 0.05 < cross(z, one_hot(s)).abs().max()


# the quadratic form


def test_classes_have_the_same_means_and_covariances() -> None:
    z, s = classes()
    (mean, covariance), *others = moments(QuadraticErasure().fit(z, s)(z, s), s)
    for other_mean, other_covariance in others:
        torch.testing.assert_close(other_mean, mean)
        torch.testing.assert_close(other_covariance, covariance)
    torch.testing.assert_close(mean, z.mean(0))


def test_quadratic_map_is_that_of_the_published_package() -> None:
    published = pytest.importorskip("concept_erasure")
    z, s = classes(3000)
    z, s = torch.cat([z[s == k][:400] for k in range(CLASSES)]), torch.arange(CLASSES).repeat_interleave(400)
    within = torch.stack([covariance for _, covariance in moments(z, s)]).mean(0)
    z = z @ torch.linalg.inv(torch.linalg.cholesky(within)).T  # where its units are ours
    theirs = published.QuadraticFitter(DIM, CLASSES, dtype=torch.double, shrinkage=False).update(z, s).eraser
    torch.testing.assert_close(QuadraticErasure().fit(z, s)(z, s), theirs(z, s), atol=1e-5, rtol=0)


def test_barycentre_is_the_nearest_on_average() -> None:
    generator = torch.Generator().manual_seed(0)
    factors = torch.randn(3, 4, 4, generator=generator, dtype=torch.double)
    covariances, shares = factors @ factors.mT, torch.tensor([0.5, 0.3, 0.2]).double()

    def distance(centre: Tensor) -> Tensor:
        root = torch.linalg.cholesky(centre)
        both = torch.linalg.eigvalsh(root.T @ covariances @ root).clamp_min(0).sqrt().sum(-1)
        return shares @ (centre.trace() + covariances.diagonal(0, 1, 2).sum(-1) - 2 * both)

    centre = barycentre(covariances, shares)
    for _ in range(30):
        noise = 0.02 * torch.randn(4, 4, generator=generator, dtype=torch.double)
        assert distance(centre) < distance(centre + noise @ noise.T)
        assert distance(centre) < distance((torch.eye(4) + noise) @ centre @ (torch.eye(4) + noise).T)


def test_a_class_with_few_rows_is_refused() -> None:
    z, s = classes()
    with pytest.raises(ValueError, match=r"^s .*rank 2"):
        QuadraticErasure().fit(torch.cat([z, z[:3] + 1]), torch.cat([s, torch.full((3,), 7)]))(z, s)


# both


@pytest.mark.parametrize("make", BOTH)
def test_batches_in_any_order_are_one_pass(make: Callable[[], LEACE | QuadraticErasure]) -> None:
    z, s = classes()
    z = z + 1e4  # where sums of squares would lose digits
    order = s.argsort(stable=True)  # so that classes come one after another
    batches = make()
    for rows in order.split(37):
        batches.observe(z[rows], s[rows])
    torch.testing.assert_close(erased(batches, z, s), erased(make().fit(z, s), z, s), rtol=0, atol=1e-7)
    torch.testing.assert_close(erased(batches.fit(z, s), z, s), erased(make().fit(z, s), z, s))


@pytest.mark.parametrize("make", BOTH)
@given(seed=st.integers(0, 10_000), exponents=st.lists(st.integers(-6, 6), min_size=4, max_size=4))
@settings(max_examples=6, deadline=None)
def test_affine_maps_commute_with_erasure(
    make: Callable[[], LEACE | QuadraticErasure], seed: int, exponents: list[int]
) -> None:
    z, s = classes(200, dim=4, seed=seed)
    scale, shift = 10.0 ** torch.tensor(exponents).double(), 10.0 ** torch.tensor(exponents[::-1]).double()
    mix = torch.linalg.qr(torch.randn(4, 4, generator=torch.Generator().manual_seed(seed)).double())[0]
    moved = erased(make().fit(z @ mix * scale + scale * shift.clamp_max(10), s), z @ mix * scale, s) / scale
    there = erased(make().fit(z @ mix + shift.clamp_max(10), s), z @ mix, s)
    torch.testing.assert_close(moved, there, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(
        erased(make().fit(z @ mix, s), z @ mix, s), erased(make().fit(z, s), z, s) @ mix, rtol=1e-6, atol=1e-6
    )


@given(
    n=st.integers(1, 40),
    dim=st.integers(1, 6),
    k=st.integers(1, 5),
    copies=st.booleans(),
    constant=st.floats(-1e6, 1e6),
    seed=st.integers(0, 1000),
)
@settings(max_examples=60, deadline=None)
def test_any_rows_lose_all_correlation(n: int, dim: int, k: int, copies: bool, constant: float, seed: int) -> None:
    """Few rows, constant and repeated columns, one class: finite, and nothing linear is left."""
    generator = torch.Generator().manual_seed(seed)
    s = torch.randint(k, (n,), generator=generator)
    z = torch.randn(n, dim, generator=generator).double() + s[:, None]
    parts = [z, torch.full((n, 1), constant, dtype=torch.double)] + (
        [z[:, :1] * 2 - 3, z.sum(1, keepdim=True)] if copies else []
    )
    z = torch.cat(parts, 1)
    gone = LEACE().fit(z, s)(z)
    assert gone.isfinite().all()
    assert cross(gone, one_hot(s)).abs().max() < 1e-7 * (1 + abs(constant) * 1e-6)
    assert (gone[:, dim] - z[:, dim]).abs().max() <= 1e-9 * (1 + abs(constant))


def test_rank_deficient_features_have_equal_moments_too() -> None:
    z, s = classes()
    wide = torch.cat([z, z @ torch.ones(DIM, 1).double(), torch.full((len(z), 1), 4.0), s[:, None].double()], 1)
    for mean, covariance in moments(gone := QuadraticErasure().fit(wide, s)(wide, s), s):
        torch.testing.assert_close(mean, gone.mean(0), atol=1e-7, rtol=0)
        torch.testing.assert_close(covariance, gone[s == 0].T.cov(correction=0), atol=1e-6, rtol=0)


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize(
    "named",
    [
        lambda s: [("red", "green", "blue")[code] for code in s],
        lambda s: np.array(["red", "green", "blue"])[s],
        lambda s: np.array(["red", "green", "blue"], dtype=object)[s],
        lambda s: s.to(torch.int8) * 7 - 7,
        lambda s: s.tolist(),
        lambda s: s.numpy().astype(np.uint16),
    ],
)
def test_classes_by_any_name(make: Callable[[], LEACE | QuadraticErasure], named: Callable[[Tensor], Any]) -> None:
    z, s = classes(100)
    torch.testing.assert_close(erased(make().fit(z, named(s)), z, named(s)), erased(make().fit(z, s), z, s))


def test_columns_of_frames() -> None:
    pandas = pytest.importorskip("pandas")
    z, s = classes(100)
    frame = pandas.DataFrame(z.numpy()).assign(s=pandas.Categorical.from_codes(s.numpy(), ["a", "b", "c"]))
    torch.testing.assert_close(LEACE().fit(frame[list(range(DIM))], frame["s"])(z), LEACE().fit(z, s)(z))


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_precision_stays_and_gradients_pass(make: Callable[[], LEACE | QuadraticErasure], dtype: torch.dtype) -> None:
    z, s = classes(200)
    rows = z.to(dtype).requires_grad_()
    gone = erased(make().fit(z, s).half(), rows, s)
    assert gone.dtype == dtype
    torch.testing.assert_close(gone.double(), erased(make().fit(z, s), rows.double(), s), atol=0.05, rtol=0.01)
    gone.square().sum().backward()
    assert rows.grad is not None
    assert rows.grad.isfinite().all()


@pytest.mark.parametrize("make", BOTH)
def test_checkpoints_hold_statistics_and_no_rows(make: Callable[[], LEACE | QuadraticErasure]) -> None:
    z, s = classes()
    names = ["a", "b", "c"]
    erase = make().observe(z[:300], [names[code] for code in s[:300]])
    buffer = io.BytesIO()
    torch.save(erase.state_dict(), buffer)
    buffer.seek(0)
    again = make()
    again.load_state_dict(torch.load(buffer, weights_only=True))
    held = sum(part.numel() for part in erase.buffers())
    more = copy.deepcopy(erase).observe(z, [names[code] for code in s])
    assert held == sum(part.numel() for part in more.buffers())
    for one in (erase, again):
        one.observe(z[300:], [names[code] for code in s[300:]])
    rest = [names[code] for code in s]
    torch.testing.assert_close(erased(again, z, rest), erased(erase, z, rest))


def test_in_a_sequence_of_layers() -> None:
    z, s = classes()
    encoder = nn.Linear(DIM, 4).double()
    network = nn.Sequential(encoder, LEACE().fit(encoder(z), s), nn.Linear(4, 2).double())
    assert network(z).shape == (len(z), 2)


@pytest.mark.parametrize(
    ("z", "s", "error", "name"),
    [
        (torch.ones(4), torch.zeros(3).long(), ValueError, "s"),
        (torch.ones(4, 2), torch.zeros(3), ValueError, "s"),
        (torch.ones(4, 2).long(), torch.zeros(4).long(), TypeError, "z"),
        (torch.full((4, 2), torch.nan), torch.zeros(4).long(), ValueError, "z"),
        (torch.ones(4, 2), torch.tensor([0.0, 1.0, torch.nan, 1.0]), ValueError, "s"),
        (torch.ones(4, 2), ["a", "b", None, "a"], TypeError, "s"),
        (torch.ones(4, 2), torch.zeros(4, 1).long(), TypeError, "s"),
        (torch.ones(4, 2), object(), TypeError, "s"),
        (torch.ones(4, 2), 3, ValueError, "s"),
        (torch.ones(4, 2), torch.tensor(3), ValueError, "s"),
    ],
)
def test_bad_rows_are_refused_by_name(z: Any, s: Any, error: type[Exception], name: str) -> None:
    erase = LEACE()
    with pytest.raises(error, match=rf"^{name} "):
        erase.fit(z, s)
    assert erase.dim == 0


def test_later_rows_must_be_of_one_kind() -> None:
    z, s = classes(50)
    with pytest.raises(TypeError, match=r"^s "):
        LEACE().fit(z, s).observe(z, s.double())
    with pytest.raises(TypeError, match=r"^s "):
        LEACE().fit(z, s.double()).observe(z, s)
    with pytest.raises(ValueError, match=r"^s "):
        LEACE().fit(z, s.double()).observe(z, z)
    with pytest.raises(ValueError, match=r"^z "):
        LEACE().fit(z, s).observe(z[:, :2], s)
    with pytest.raises(ValueError, match=r"^z "):
        LEACE()(z)
    with pytest.raises(TypeError, match=r"^s "):
        QuadraticErasure().fit(z, s.double())
    with pytest.raises(ValueError, match=r"^s .*9"):
        QuadraticErasure().fit(z, s)(z[:1], [9])
