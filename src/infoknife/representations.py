r"""What several representations of the same rows tell about each other, and about a label.

Every representation is compressed to its principal axes, and every pair to canonical variates, in closed form:
directions come from some of the rows, what the variates tell from others, and all values from held-out ones. In
canonical variates mapped to normal ones by their ranks,
$I(Z_1; Z_2) = -\frac12 \sum_k \log(1 - \rho_k^2)$ if they are jointly normal.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from infoknife.inputs import check_count, check_seed, matrix
from infoknife.measure import Diagnostics, Estimate, mutual_information
from infoknife.measure.columns import read_argument
from infoknife.measure.kinds import pull_in_outliers

Floats = NDArray[np.float64]

FOLDS = 3
MIN_ROWS = 100
MAX_KNOTS = 400  # quantiles of a variate that its map to a normal one goes through
LABEL_RANK = 32  # principal axes that are looked at for a label
MAX_CORRELATION = 1 - 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    r"""What representations tell about each other, and about a label.

    Every number is $I = -\frac12 \sum_k \log(1 - \rho_k^2)$ of canonical variates, as ``infoknife.compare`` explains.

    Args:
        names: What they are called.
        pairs: I(z_i; z_j) of every pair of names, the first one first.
        label: I(z_i; label) by name; empty without a label.
        kept: The part of its variance that the compressed representation keeps, by name.
    """

    names: tuple[str, ...]
    pairs: Mapping[tuple[str, str], Estimate]
    label: Mapping[str, Estimate]
    kept: Mapping[str, float]

    def __getitem__(self, names: tuple[str, str]) -> Estimate:
        """I(z_i; z_j) of two names, in any order."""
        return self.pairs[names if names in self.pairs else names[::-1]]

    def about(self, name: str) -> Estimate:
        """The mean information that one tells about the others, with the error of that mean over the same rows."""
        found = [self[name, other] for other in self.names if other != name]
        pointwise = np.mean([one.pointwise for one in found], axis=0)
        return _estimate(pointwise, float(np.mean([one.value for one in found])), by_chance=0.0)

    @property
    def ranking(self) -> tuple[str, ...]:
        """The names, the one that tells most first: about the label if there is one, else about the others."""
        scores: Mapping[str, float] = self.label or {name: self.about(name).value for name in self.names}
        return tuple(sorted(self.names, key=lambda name: -scores[name]))

    @property
    def matrix(self) -> Floats:
        """The values as a matrix; NaN on the diagonal."""
        return self._matrix(lambda one: one.value)

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        about = {name: self.about(name) for name in self.names}
        return {
            "ranking": list(self.ranking),
            "pairs": [{"names": list(names)} | one.as_dict() for names, one in self.pairs.items()],
            "about_others": {
                name: {"value": one.value, "stderr": one.stderr, "interval": list(one.interval())}
                for name, one in about.items()
            },
            "label": {name: one.as_dict() for name, one in self.label.items()},
            "variance_kept": dict(self.kept),
        }

    def plot(self, path: str | Path) -> None:
        """Write the matrix as a picture, in the order of the ranking; it needs ``infoknife[plot]``."""
        from infoknife.pictures.measure import heat_map, save

        order = [self.names.index(name) for name in self.ranking]
        values, errors = (grid[np.ix_(order, order)] for grid in (self.matrix, self._matrix(lambda one: one.stderr)))
        save(heat_map("What representations tell about each other", self.ranking, values, errors, "nats"), Path(path))

    def _matrix(self, read: Any) -> Floats:
        grid = np.full((len(self.names), len(self.names)), math.nan)
        for (first, second), one in self.pairs.items():
            i, j = self.names.index(first), self.names.index(second)
            grid[i, j] = grid[j, i] = read(one)
        return grid

    def __repr__(self) -> str:
        lines = [f"{'':24}{'about the others':>24}{'about the label' if self.label else '':>24}{'variance kept':>16}"]
        for name in self.ranking:
            about = self.about(name)
            label = f"{self.label[name].value:.3f} ± {self.label[name].stderr:.3f}" if self.label else ""
            lines.append(f"{name:24}{f'{about.value:.3f} ± {about.stderr:.3f}':>24}{label:>24}{self.kept[name]:>16.1%}")
        return "\n".join(lines)


def compare(*representations: Any, label: Any = None, rank: int = 256, seed: int = 0, **named: Any) -> Comparison:
    r"""Measure what several representations of the same rows tell about each other, and about a label.

    Two embeddings that carry the same information tell much about each other, whatever their axes and widths; one that
    tells much about all others is a good summary of what they see (Darrin et al., 2024). Representations of 64 to 1,024
    dimensions are compressed: to ``rank`` principal axes each (``kept`` has the part of the variance that is left), and
    every pair to its canonical variates. Directions are learned from some rows, their correlations from others, and
    every value is from rows that taught nothing. What is measured is what a linear map and monotone scales show: a
    relation that has no linear part is missed, and values of nearly equal representations are too low. Use
    ``mutual_information`` for a few dimensions and any relation.

    Args:
        *representations: Arrays or tensors (N, d), named z1, z2, ...; or one dictionary of them.
        label: What they should tell about, one value per row: classes or a quantity; Gaussian densities of the first
            32 principal axes measure it.
        rank: Principal axes that are kept at most.
        seed: Of the division of the rows.
        **named: More representations, by name.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> base = rng.normal(size=(1000, 5)) @ rng.normal(size=(5, 64))
        >>> found = compare(base=base, copy=base + rng.normal(size=(1000, 64)), random=rng.normal(size=(1000, 64)))
        >>> found.ranking[-1], found["base", "copy"] > 3, abs(found["base", "random"]) < 0.1
        ('random', True, True)
    """
    brought = _named(representations, named)
    rows = len(next(iter(brought.values())))
    check_count("rank", rank)
    rng = np.random.default_rng(check_seed("seed", seed))
    told = [] if label is None else read_argument(label, "label")
    if told and (len(told) > 1 or len(told[0]) != rows):
        raise ValueError(
            f"label has {len(told)} columns and {len(told[0])} rows; expected one value for each of {rows}"
        )
    folds = np.array_split(rng.permutation(rows), FOLDS)
    ranged = {name: _in_range(z) for name, z in brought.items()}
    given = {name: z for name, (z, _) in ranged.items()}
    notes = tuple(
        f"{name}: {count:,} of its numbers lie far from all others in their columns; counted as if next to them"
        for name, (_, count) in ranged.items()
        if count
    )
    names = tuple(given)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    pointwise = {pair: np.empty(rows) for pair in pairs}
    kept: dict[str, list[float]] = {name: [] for name in names}
    for k, test in enumerate(folds):
        rest = rng.permutation(np.concatenate([fold for j, fold in enumerate(folds) if j != k]))
        directions, scales = rest[: 2 * len(rest) // 3], rest[2 * len(rest) // 3 :]
        white = {}
        for name, z in given.items():
            white[name], share = _whitened(z, directions, rank)
            kept[name].append(share)
        for a, b in pairs:
            pointwise[a, b][test] = _canonical(white[a], white[b], directions, scales, test)
    informed = {} if label is None else {name: _about_label(z, told, seed) for name, z in given.items()}
    shares = {name: float(np.mean(several)) for name, several in kept.items()}
    estimates = {
        pair: _estimate(values, float(values.mean()), by_chance=1 / rows, notes=notes)
        for pair, values in pointwise.items()
    }
    return Comparison(names, estimates, informed, shares)


def _named(representations: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Floats]:
    first = representations[0] if len(representations) == 1 else None
    several = first if isinstance(first, Mapping) else {f"z{i + 1}": z for i, z in enumerate(representations)}
    found = {name: matrix(z, name).detach().cpu().double().numpy() for name, z in {**several, **named}.items()}
    if len(found) < 2:
        raise ValueError(f"representations has {len(found)}; expected at least 2, to compare with each other")
    rows = len(next(iter(found.values())))
    for name, z in found.items():
        if len(z) != rows or rows < MIN_ROWS:
            expected = f"at least {MIN_ROWS}" if len(z) == rows else f"{rows}, as many as {next(iter(found))}"
            raise ValueError(f"{name} has {len(z)} rows; expected {expected}: the same rows in every representation")
        if not (z.max(0) > z.min(0)).any():
            raise ValueError(f"{name} is constant; expected values that vary. Leave it out: it tells nothing")
    return found


def _in_range(z: Floats) -> tuple[Floats, int]:
    """The same rows, with outliers next to the others, in a unit in which squares are numbers; how many were moved."""
    columns, counts = zip(*(pull_in_outliers(column) for column in (z / np.abs(z).max()).T), strict=True)
    centred = np.stack(columns, 1)
    centred -= centred.mean(0)
    return centred / np.abs(centred).max(), sum(counts)


def _whitened(z: Floats, rows: NDArray[np.int64], rank: int) -> tuple[Floats, float]:
    """All rows on the principal axes of some, in units of their deviation there; and the part of the variance kept.

    Deviations are those of the rows and of what so few rows leave open, as ridge regression has it.
    """
    centred = z - z[rows].mean(0)
    values, axes = np.linalg.eigh(centred[rows].T @ centred[rows] / len(rows))
    values, axes = values[::-1].clip(min=0), axes[:, ::-1]
    count = min(rank, int((values > 1e-12 * values[0]).sum()))
    ridge = values.mean() * len(values) / len(rows)
    return centred @ axes[:, :count] / np.sqrt(values[:count] + ridge), float(values[:count].sum() / values.sum())


def _canonical(
    x: Floats, y: Floats, directions: NDArray[np.int64], scales: NDArray[np.int64], test: NDArray[np.int64]
) -> Floats:
    """log p(x, y) - log p(x) p(y) of the test rows (n,), in canonical variates with normal ranks."""
    left, _, right = np.linalg.svd(x[directions].T @ y[directions] / len(directions), full_matrices=False)
    n, rows = len(scales), np.concatenate([scales, test])
    u, v = _normal(x[rows] @ left, n), _normal(y[rows] @ right.T, n)
    rho = (u[:n] * v[:n]).mean(0) / np.sqrt(np.square(u[:n]).mean(0) * np.square(v[:n]).mean(0))
    chance = math.sqrt(2 * math.log1p(len(rho)) / n)  # the largest of none (Donoho and Johnstone, 1994)
    rho = np.where(rho > chance, rho, 0.0).clip(max=MAX_CORRELATION)
    u, v, left_over = u[n:], v[n:], 1 - rho**2
    terms = -0.5 * np.log(left_over) - (rho**2 * (u**2 + v**2) - 2 * rho * u * v) / (2 * left_over)
    return terms.sum(1)


def _normal(z: Floats, n: int) -> Floats:
    """Every column mapped monotonely so that its first n rows are normal; what lies beyond those is moved in."""
    count = min(n, MAX_KNOTS)
    levels = (np.arange(count) + 0.5) / count
    ordered, places = np.sort(z[:n].T), levels * (n - 1)  # many quantiles of a column: to sort it is quickest
    below = places.astype(np.int64)
    knots = ordered[:, below] + (places - below) * (ordered[:, below + 1] - ordered[:, below])
    return np.stack([np.interp(column, own, ndtri(levels)) for column, own in zip(z.T, knots, strict=True)], 1)


def _estimate(pointwise: Floats, value: float, by_chance: float, notes: tuple[str, ...] = ()) -> Estimate:
    N = len(pointwise)
    stderr = math.hypot(float(pointwise.std()) / math.sqrt(N), by_chance)
    told = Diagnostics("canonical", N, folds=FOLDS, messages=notes)
    return Estimate(value, stderr, "nats", "mutual information", pointwise, told)


def _about_label(z: Floats, label: Any, seed: int) -> Estimate:
    """I(z; label) by Gaussian densities of the first principal axes, which do not see the label."""
    white, _ = _whitened(z, np.arange(len(z)), LABEL_RANK)
    return mutual_information(white, label, method="gaussian", effort="quick", seed=seed)
