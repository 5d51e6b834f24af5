"""Samples and questions: where columns are, which rows go where, what densities see of repeated values."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ortho_group

from infoknife.measure import mutual_information
from infoknife.measure.question import Part, Question, Sample, View, components, views, with_unmixed
from infoknife.measure.table import Table, read_table

Seeded = Callable[[int], torch.Generator]

places = st.lists(st.integers(0, 6), unique=True).map(sorted).map(tuple)
columns = st.builds(Part, places, places)


def data(rows: int = 12, d: int = 3, levels: tuple[int, ...] = (2, 5)) -> Sample:
    """Rows whose numbers are all different and tell where they are."""
    continuous = torch.arange(rows * d).reshape(rows, d).double()
    discrete = torch.stack([torch.arange(rows) % level for level in levels], 1)
    return Sample(continuous, discrete, levels)


def same(a: Sample, b: Sample) -> bool:
    return a.continuous.equal(b.continuous) and a.discrete.equal(b.discrete) and a.levels == b.levels


# columns


@given(columns, columns, columns)
def test_columns_are_united(a: Part, b: Part, c: Part) -> None:
    both = a | b
    assert set(both.continuous) == {*a.continuous, *b.continuous}
    assert set(both.discrete) == {*a.discrete, *b.discrete}
    assert both == b | a == both | a
    assert (a | b) | c == a | (b | c)
    assert a | Part() == a


# rows


@given(st.integers(1, 40), st.integers(1, 50))
def test_pieces_are_all_rows_in_order(rows: int, size: int) -> None:
    whole = data(rows)
    pieces = list(whole.pieces(size))
    assert all(len(piece) == size for piece in pieces[:-1])
    assert 1 <= len(pieces[-1]) <= size
    joined = Sample(torch.cat([p.continuous for p in pieces]), torch.cat([p.discrete for p in pieces]), whole.levels)
    assert same(joined, whole)


@pytest.mark.parametrize("moved", [Part((1,), (0,)), Part((0, 2)), Part((), (1,)), Part()])
def test_paired_leaves_other_columns_alone(moved: Part, generator: torch.Generator) -> None:
    rows, order = data(), torch.randperm(12, generator=generator)
    paired = rows.paired(moved, order)
    for j in range(3):
        expected = order if j in moved.continuous else torch.arange(12)
        assert paired.continuous[:, j].equal(rows.continuous[expected, j])
    for j in range(2):
        expected = order if j in moved.discrete else torch.arange(12)
        assert paired.discrete[:, j].equal(rows.discrete[expected, j])
    assert same(rows, data())  # itself is not changed


# dividing rows


@given(st.integers(2, 200), st.integers(1, 12), st.integers(0, 1000))
def test_parts_are_all_rows(rows: int, count: int, seed: int) -> None:
    parts = data(rows).parts(count, torch.Generator().manual_seed(seed))
    assert len(parts) == count
    assert torch.cat(parts).sort().values.tolist() == list(range(rows))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1


@given(st.lists(st.integers(0, 30), min_size=20, max_size=200), st.integers(2, 5), st.integers(0, 1000))
def test_groups_stay_together(groups: list[int], count: int, seed: int) -> None:
    rows = replace(data(len(groups)), groups=torch.tensor(groups))
    parts = rows.parts(count, torch.Generator().manual_seed(seed))
    assert torch.cat(parts).sort().values.tolist() == list(range(len(groups)))
    inside = [{groups[i] for i in part.tolist()} for part in parts]
    assert sum(map(len, inside)) == len(set(groups))


def test_parts_of_groups_are_about_equal(seeded: Seeded) -> None:
    rows = replace(data(300), groups=torch.arange(300) // 5)
    assert all(50 <= len(part) <= 70 for part in rows.parts(5, seeded(0)))


def test_parts_come_from_their_generator_alone(seeded: Seeded) -> None:
    before = torch.get_rng_state()
    first, again, other = (torch.cat(data(100).parts(4, seeded(seed))) for seed in (0, 0, 1))
    assert first.equal(again)
    assert not first.equal(other)
    assert torch.get_rng_state().equal(before)


def test_held_out_rows_and_all_others(generator: torch.Generator) -> None:
    first, second = data(20).held_out(4, generator)
    assert (len(first), len(second)) == (5, 15)
    assert sorted([*first.tolist(), *second.tolist()]) == list(range(20))


# views


def rows(count: int = 60) -> Table:
    rng = np.random.default_rng(0)
    x = {"size": rng.normal(size=count), "colour": np.array(["red", "blue", "green"] * (count // 3))}
    return read_table({"x": x, "y": rng.integers(1, 6, count)}, main="y")


def test_numbers_that_can_be_counted_have_two_views(generator: torch.Generator) -> None:
    counted, ordered = views(rows(), "mutual information", (2,), (0, 1), (), generator=generator)
    assert (counted.name, ordered.name) == ("", "ordered")
    assert (counted.question.target, counted.question.condition) == (Part((), (1,)), Part((0,), (0,)))
    assert (ordered.question.target, ordered.question.condition) == (Part((1,)), Part((0,), (0,)))
    assert counted.sample.levels == (3, 5)
    assert ordered.sample.levels == (3,)


def test_either_side_can_be_counted_alone(generator: torch.Generator) -> None:
    """Classes as numbers, and features of few values: one is counted, the others are taken in their order."""
    rng = np.random.default_rng(0)
    table = read_table({"x": rng.integers(0, 9, (90, 2)), "y": rng.integers(0, 4, 90)}, main="y")
    found = views(table, "mutual information", (2,), (0, 1), (), generator=generator)
    levels = {view.name: (view.question.target, view.sample.levels) for view in found}
    assert levels == {
        "": (Part((), (2,)), (9, 9, 4)),
        "ordered": (Part((2,)), ()),
        "condition-ordered": (Part((), (0,)), (4,)),
        "target-ordered": (Part((0,)), (9, 9)),
    }


def test_declared_columns_have_one_view(generator: torch.Generator) -> None:
    table = read_table({"x": list(range(12)) * 5, "y": [0.5 * i for i in range(60)]}, main="y", discrete=["x"])
    (only,) = views(table, "mutual information", (1,), (0,), (), generator=generator)
    assert only.sample.levels == (12,)


def test_dither_stays_in_the_cell_of_a_value(generator: torch.Generator) -> None:
    _, ordered = views(rows(), "mutual information", (2,), (0,), (), generator=generator)
    y = ordered.sample.continuous[:, 1]
    assert torch.equal(y.round(), torch.tensor(rows().columns[2].values))
    assert len(y.unique()) == 60


def test_densities_of_both_views_are_of_the_same_thing(generator: torch.Generator) -> None:
    """log(width) turns a density of the dithered value into a probability of the value."""
    table = read_table({"x": np.random.default_rng(0).integers(0, 7, 90) * 4.0}, main="x")
    counted, ordered = views(table, "entropy", (0,), generator=generator)
    assert counted.sample.shift is None
    assert ordered.sample.shift is not None
    assert ordered.sample.shift.tolist() == pytest.approx([math.log(4)] * 90)
    halves = read_table({"x": np.random.default_rng(0).integers(0, 7, 90) * 0.5}, main="x")
    counted, ordered = views(halves, "entropy", (0,), generator=generator)
    assert ordered.sample.shift is None
    assert counted.sample.shift is not None
    assert counted.sample.shift.tolist() == pytest.approx([-math.log(0.5)] * 90)


def test_atoms_are_a_label_and_noise_beside_it(generator: torch.Generator) -> None:
    x = np.maximum(np.random.default_rng(0).normal(size=200), 0)
    (only,) = views(read_table({"x": x}, main="x"), "entropy", (0,), generator=generator)
    assert only.question.target == Part((0,), (0,))
    assert only.sample.discrete[:, 0].tolist() == (x == 0).astype(int).tolist()
    assert only.sample.hidden is not None
    assert only.sample.hidden[:, 0].tolist() == (x == 0).tolist()
    assert bool((only.sample.continuous[x == 0, 0] > 0).all())
    assert only.sample.continuous[x > 0, 0].tolist() == x[x > 0].tolist()


# independent components

PAIR = Question("mutual information", Part((3, 4, 5)), Part((0, 1, 2)), Part())


def warped(rows: int, d: int, rho: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian columns that are related one by one, each warped, then all mixed."""
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(2, rows, d))
    y = rho * x + math.sqrt(1 - rho**2) * noise
    return x**3 @ ortho_group.rvs(d, random_state=1), np.exp(y) @ ortho_group.rvs(d, random_state=2)


def view(x: np.ndarray, y: np.ndarray) -> View:
    values = torch.tensor(np.concatenate([x, y], 1))
    return View(Sample(values, torch.empty(len(x), 0).long(), ()), PAIR)


def test_the_mixture_is_undone() -> None:
    _, found = with_unmixed([view(*warped(4000, 3))])
    u = found.sample.continuous.argsort(0).argsort(0).double()
    between = u.T.corrcoef()[:3, 3:].abs()
    assert (between > 0.8).sum(1).tolist() == [1, 1, 1]
    assert between.sum() < 3.2


def test_log_densities_stay_comparable() -> None:
    before = view(*warped(1000, 3))
    _, found = with_unmixed([before])
    assert found.sample.shift is not None
    y, u = (one.sample.continuous[:, 3:] for one in (before, found))
    grown = torch.linalg.lstsq(y, u).solution
    assert found.sample.shift.tolist() == pytest.approx([float(torch.linalg.slogdet(grown)[1])] * 1000)


def test_normal_columns_are_left_alone() -> None:
    x = np.random.default_rng(0).normal(size=(2000, 6))
    assert components(torch.tensor(x)) is None
    assert len(with_unmixed([view(x[:, :3], x[:, 3:])])) == 1


def test_dependent_columns_are_left_alone() -> None:
    x = torch.rand(200, 1).double()
    assert components(x.repeat(1, 2)) is None


@pytest.mark.filterwarnings("ignore:at least")  # 1,500 rows of eight columns
def test_a_warp_behind_a_rotation_is_seen() -> None:
    x, y = warped(1500, 4)
    found = mutual_information(x, y, method="gaussian", effort="quick")
    assert found.value == pytest.approx(-2 * math.log(1 - 0.81), rel=0.15)
