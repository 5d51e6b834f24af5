r"""Concept erasure in closed form, for features that are frozen: remove what z tells about s in its first moments.

``LEACE`` leaves nothing that a linear predictor could use, ``QuadraticErasure`` equal means and covariances in all
classes. Either is exact for the rows that it was fitted to, and for fresh ones up to sampling noise. Neither says
anything about higher moments, which other predictors use: ``mutual_information(z, s)`` measures what is left.

Both are fitted to sufficient statistics (counts, means, scatter matrices; no row is kept) in double precision, so that
``observe`` may come in as many batches as there are. s is classes where it is whole numbers or strings, and numbers
where it is floating point. A direction of z whose variance is below ``TOLERANCE``, with columns in units of their
standard deviations, counts as constant and is left as it is; so does a correlation with s below its root.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self, final

import torch
from torch import Tensor, nn

from infoknife.inputs import class_codes, matrix, tensor

TOLERANCE = 1e-12  # well above the rounding of an eigenvalue in double precision, and below that of float32 rows
ITERATIONS = 200  # towards the barycentre, of which each takes away more than half of the way

Class = int | str


class Erasure(nn.Module, ABC):
    """Running moments of z and s in double precision, by groups of rows, and a map that follows from them."""

    rows: Tensor  # how many each group has, (groups,)
    means: Tensor  # (groups, columns)
    scatters: Tensor  # sums of products of deviations, (groups, columns, columns)

    def __init__(self) -> None:
        super().__init__()
        self.register_load_state_dict_pre_hook(_take_shapes)  # type: ignore[no-untyped-call]
        self.reset()

    def reset(self) -> None:
        """Forget all rows."""
        self.dim = 0
        self.classes: list[Any] | None = None  # of s in the order in which they came, if it has any
        for name, shape in (("rows", (0,)), ("means", (0, 0)), ("scatters", (0, 0, 0))):
            self.register_buffer(name, torch.zeros(shape, dtype=torch.double))
        self._map: tuple[Tensor, ...] | None = None

    def fit(self, z: Any, s: Any) -> Self:
        """Forget all rows, then observe these: features z (N, d), and s as classes (N,) or numbers (N, k)."""
        self.reset()
        return self.observe(z, s)

    @torch.no_grad()
    def observe(self, z: Any, s: Any) -> Self:
        """Take in a batch: features z (N, d), and s as classes (N,) or numbers (N, k)."""
        z = matrix(z, "z", dim=self.dim or None)
        self._observe(z.double(), self._checked(s, len(z)))
        self.dim, self._map = z.shape[1], None
        return self

    def transform(self, *rows: Any) -> Tensor:
        """Erase s: the same as calling the module."""
        found: Tensor = self(*rows)
        return found

    @abstractmethod
    def _observe(self, z: Tensor, s: Tensor) -> None:
        """Take in rows z (N, d) and codes (N,) or numbers (N, k)."""

    @abstractmethod
    def _solved(self) -> tuple[Tensor, ...]:
        """The map's tensors."""

    def _solution(self) -> tuple[Tensor, ...]:
        if not self.dim:
            raise ValueError("z came before any rows were observed; call fit(z, s) or observe(z, s) first")
        if self._map is None:
            with torch.no_grad():
                self._map = self._solved()
        return self._map

    def _checked(self, s: Any, rows: int, known: bool = False) -> Tensor:
        """Codes (N,) of classes, new ones numbered unless all must be known, or numbers (N, k)."""
        s = s.to_numpy() if hasattr(s, "to_numpy") else s
        if _is_numbers(s):
            if self.classes is not None:
                raise TypeError(
                    "s is floating point; expected classes as before. If they are whole numbers use s.long()"
                )
            columns = self.means.shape[1] - self.dim if self.dim else None
            return matrix(s, "s", rows=rows, dim=columns).double()
        labels = s.tolist() if hasattr(s, "tolist") else s
        labels = list(labels) if isinstance(labels, list | tuple) else [labels]
        wrong = [label for label in labels if not isinstance(label, Class)]
        if wrong:
            raise TypeError(f"s has {wrong[0]!r}; expected one class per row, whole numbers or strings, none missing")
        if self.dim and self.classes is None:
            raise TypeError("s is classes; expected numbers as before. If they are quantities use s.float()")
        held: list[Any] = list(self.classes or [])
        new = sorted(set(labels) - set(held), key=lambda label: (isinstance(label, str), label))
        if known and new:
            raise ValueError(f"s has the class {new[0]!r}, which no row had before; expected one of {held}")
        number = {label: code for code, label in enumerate(held + new)}
        codes = class_codes([number[label] for label in labels], "s", classes=max(len(number), 1), rows=rows)
        self.classes = list(number)
        return codes.to(self.rows.device)

    def _merge(self, group: int, x: Tensor) -> None:
        """Let the rows of x (N, columns) count in a group (Chan et al., 1979)."""
        n, mean = len(x), x.mean(0)
        gap, total = mean - self.means[group], self.rows[group] + n
        centred = x - mean
        self.scatters[group] += centred.T @ centred + torch.outer(gap, gap) * (self.rows[group] * n / total)
        self.means[group] += gap * (n / total)
        self.rows[group] = total

    def _grow(self, groups: int, columns: int) -> None:
        """Make room for groups and columns that were zero, or not there, in all rows so far."""
        g, c = self.means.shape
        pad = nn.functional.pad
        self.rows = pad(self.rows, (0, groups - g))
        self.means = pad(self.means, (0, columns - c, 0, groups - g))
        self.scatters = pad(self.scatters, (0, columns - c, 0, columns - c, 0, groups - g))

    def get_extra_state(self) -> dict[str, Any]:
        """Return the number of features and the names of the classes, for ``state_dict``."""
        return {"dim": self.dim, "classes": self.classes}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Take over what ``get_extra_state`` returned."""
        self.dim, self.classes, self._map = state["dim"], state["classes"], None

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Move to another device; a change of precision does not reach the statistics."""
        for name, buffer in self._buffers.items():
            self._buffers[name] = None if buffer is None else buffer.to(fn(buffer).device)
        self._map = None
        return self


@final
class LEACE(Erasure):
    r"""Least-squares concept erasure: no linear predictor of s from z is better than a constant (Belrose et al., 2023).

    $z' = \mu + P (z - \mu)$ with the mean $\mu$ and $P = I - W^+ \Pi\, W$, where $W = (\Sigma_{zz}^{1/2})^+$ and $\Pi$
    is the orthogonal projection to the columns of $W \Sigma_{zs}$. Then $\mathrm{Cov}(z', s) = 0$, and that is what
    keeps every linear predictor, for every convex loss, at the loss of a constant one. Of all affine maps that do this
    it changes z least: $\mathbb E \|z' - z\|^2$ is smallest, in every norm that has an inner product. It needs no s
    once fitted, gives the same when applied twice, and commutes with invertible affine maps of z. At most k directions
    are lost for k columns of numbers, and k - 1 for k classes.

    Examples:
        >>> s = torch.arange(1000) % 2
        >>> z = torch.randn(1000, 3, generator=torch.Generator().manual_seed(0)) + s[:, None]
        >>> erase = LEACE().fit(z, s)
        >>> bool((erase(z)[s == 0].mean(0) - erase(z)[s == 1].mean(0)).abs().max() < 1e-5)
        True
        >>> batches = LEACE().observe(z[:400], s[:400]).observe(z[400:], s[400:])
        >>> torch.allclose(batches.projection, erase.projection)
        True
    """

    def forward(self, z: Any) -> Tensor:
        """Erase s from features z (N, d), in their own precision; differentiable in z."""
        left, right, mean = self._solution()
        z = matrix(z, "z", dim=self.dim)
        return (z - (z.double() - mean) @ right.T @ left.T).to(z.dtype)

    @property
    def projection(self) -> Tensor:
        """The matrix P (d, d), in double precision."""
        left, right, _ = self._solution()
        return torch.eye(self.dim).to(left) - left @ right

    def _observe(self, z: Tensor, s: Tensor) -> None:
        if self.classes is not None:
            s = nn.functional.one_hot(s, len(self.classes)).to(z)
        self._grow(1, z.shape[1] + s.shape[1])
        self._merge(0, torch.cat([z, s.to(z)], 1))

    def _solved(self) -> tuple[Tensor, ...]:
        d, covariance = self.dim, self.scatters[0] / self.rows[0]
        back, whiten = whitening(covariance[:d, :d], self.means[0, :d])
        of_s = _scales(covariance.diagonal()[d:], self.means[0, d:])
        U, correlations, _ = torch.linalg.svd(whiten @ covariance[:d, d:] / of_s, full_matrices=False)
        U = U[:, correlations > TOLERANCE**0.5]  # whose squares are parts of variances
        return back @ U, U.T @ whiten, self.means[0, :d]


@final
class QuadraticErasure(Erasure):
    r"""Give all classes of s the same mean and the same covariance of z, by optimal transport to their barycentre.

    $z' = \bar\mu + A_s (z - \mu_s)$, with $A_s = \Sigma_s^{-1/2} (\Sigma_s^{1/2} \bar\Sigma\, \Sigma_s^{1/2})^{1/2}
    \Sigma_s^{-1/2}$, $\bar\mu$ the mean and $\bar\Sigma$ the Wasserstein barycentre of the classes,
    $\bar\Sigma = \mathbb E_s (\bar\Sigma^{1/2} \Sigma_s \bar\Sigma^{1/2})^{1/2}$, all in coordinates in which the
    pooled covariance within classes is the identity. So $\mathbb E[z' | s]$ and $\mathrm{Cov}(z' | s)$ do not depend
    on s, and no predictor that is linear in z' and in the products of its columns is better than a constant. Of all
    maps that do this it changes z least in those units (Gelbrich, 1990). It commutes with invertible affine maps of z.

    **It needs the class of every row, also of those that it is applied to.** Where the class is not known then, use
    ``LEACE``: an affine map that is the same for all classes makes covariances equal only by removing every direction
    in which they differ, which for real features is all of them. And as the map depends on s, z' may tell more about s
    than z did to a predictor that looks at more than two moments. Measure it.

    Examples:
        >>> s = torch.arange(1000) % 2
        >>> z = torch.randn(1000, 3, generator=torch.Generator().manual_seed(0)) * (1 + s[:, None])
        >>> erased = QuadraticErasure().fit(z, s)(z, s)
        >>> bool((erased[s == 0].T.cov(correction=0) - erased[s == 1].T.cov(correction=0)).abs().max() < 1e-5)
        True
    """

    def forward(self, z: Any, s: Any) -> Tensor:
        """Erase s from features z (N, d) of the classes s (N,), in their own precision; differentiable in z."""
        maps, mean = self._solution()
        z = matrix(z, "z", dim=self.dim)
        codes, erased = self._checked(s, len(z), known=True), torch.empty_like(z)
        for code in codes.unique().tolist():
            here = codes == code
            erased[here] = (mean + (z[here].double() - self.means[code]) @ maps[code].T).to(z.dtype)
        return erased

    def _observe(self, z: Tensor, s: Tensor) -> None:
        if self.classes is None:
            raise TypeError("s is floating point; expected classes. For numbers use LEACE")
        self._grow(len(self.classes), z.shape[1])
        for code in s.unique().tolist():
            self._merge(code, z[s == code])

    def _solved(self) -> tuple[Tensor, ...]:
        shares, covariances = self.rows / self.rows.sum(), self.scatters / self.rows[:, None, None]
        mean = shares @ self.means
        back, whiten = whitening((shares[:, None, None] * covariances).sum(0), mean)
        within = whiten @ covariances @ whiten.T
        for name, rows, values in zip(self.classes or (), self.rows, torch.linalg.eigvalsh(within), strict=True):
            if (rank := int((values > TOLERANCE).sum())) < len(values):
                raise ValueError(
                    f"s has the class {name!r} with {int(rows)} rows, whose covariance has rank {rank}; expected "
                    f"{len(values)}, that of all classes together. Observe more rows of it, merge it with another, or "
                    f"use LEACE"
                )
        root, inverse = _power(within, 0.5), _power(within, -0.5)
        maps = inverse @ _power(root @ barycentre(within, shares) @ root, 0.5) @ inverse
        eye = torch.eye(self.dim).to(maps)
        return eye + back @ (maps - torch.eye(len(whiten)).to(maps)) @ whiten, mean


def whitening(covariance: Tensor, mean: Tensor) -> tuple[Tensor, Tensor]:
    r"""Return $W^+$ (d, r) and W (r, d) with $W \Sigma W^\top = I$, for a covariance (d, d) of rank r.

    Examples:
        >>> back, whiten = whitening(torch.tensor([[4.0, 0.0], [0.0, 0.0]]), torch.ones(2))
        >>> (whiten @ back).tolist(), back.abs().tolist()
        ([[1.0]], [[2.0], [0.0]])
    """
    scale = _scales(covariance.diagonal(), mean)
    values, vectors = torch.linalg.eigh(covariance / scale / scale[:, None])
    kept = values > TOLERANCE
    root, vectors = values[kept].sqrt(), vectors[:, kept]
    return scale[:, None] * vectors * root, (vectors / root).T / scale


def barycentre(covariances: Tensor, shares: Tensor) -> Tensor:
    """Return the covariance (d, d) whose mean squared Wasserstein distance to others (k, d, d) is smallest.

    By the fixed-point iteration of Álvarez-Esteban et al. (2016), from the mean.

    Examples:
        >>> barycentre(torch.tensor([[[1.0]], [[9.0]]]), torch.tensor([0.5, 0.5]))  # standard deviations: 1, 3
        tensor([[4.]])
    """
    weights = shares[:, None, None]
    centre = (weights * covariances).sum(0)
    for _ in range(ITERATIONS):
        root, inverse, before = _power(centre, 0.5), _power(centre, -0.5), centre
        mean = (weights * _power(root @ covariances @ root, 0.5)).sum(0)
        centre = inverse @ mean @ mean @ inverse
        if bool(torch.dist(centre, before) <= torch.finfo(centre.dtype).eps * len(centre) * centre.norm()):
            break
    return centre


def _power(matrices: Tensor, exponent: float) -> Tensor:
    """A power of symmetric positive matrices (..., d, d)."""
    values, vectors = torch.linalg.eigh(0.5 * (matrices + matrices.mT))
    return (vectors * values.clamp_min(0)[..., None, :] ** exponent) @ vectors.mT


def _scales(variances: Tensor, means: Tensor) -> Tensor:
    """Standard deviations (c,); the mean's size, or one, for columns that varied by no more than its rounding."""
    rounding = (64 * torch.finfo(means.dtype).eps * means).square()
    return torch.where(variances > rounding, variances.clamp_min(0).sqrt(), means.abs().clamp_min(1.0))


def _is_numbers(s: Any) -> bool:
    """Whether s is floating point; strings and objects are not."""
    if isinstance(s, list | tuple):
        return any(isinstance(value, float | list | tuple) for value in s)
    kind = getattr(getattr(s, "dtype", None), "kind", None)
    return kind not in set("OUST") and tensor(s, "s").is_floating_point()


def _take_shapes(module: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Let the statistics have the shapes of a checkpoint before it is loaded."""
    for name, buffer in module._buffers.items():
        if buffer is not None and prefix + name in state:
            module._buffers[name] = buffer.new_empty(state[prefix + name].shape)
