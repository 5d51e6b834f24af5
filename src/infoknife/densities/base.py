"""What all densities share: checked inputs, coordinates in front, and the entropy as the mean of -log p."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from infoknife.coordinates import Features, Transform, count_outliers, forget
from infoknife.distributed import all_rows, alone, batch_mean, synchronize
from infoknife.inputs import Remembered, check_count, check_seed, check_values, class_codes, matrix

Condition = Tensor | None

FARTHEST = 1e12  # in a density's coordinates: a row beyond counts as one there, whose square float32 still holds
FAR_START = 1e6  # the same for rows that a density starts from, whose powers it adds up


class Observer(nn.Module, ABC):
    """A module of x and perhaps a second variable that follows data in ``observe`` alone: a density or an estimator.

    Subclasses say how rows are checked, and how those, in one precision, start the module and move it.
    """

    rate: float  # learning rate for Adam
    classes: int | None  # how many classes the second variable has; None where it is none or continuous
    shown: ClassVar[tuple[str, ...]]  # attributes that ``repr`` shows
    initialized = Remembered("started")

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("started", torch.tensor(False))
        self.register_load_state_dict_pre_hook(_refuse_old_state)  # type: ignore[no-untyped-call]

    @property
    def outliers(self) -> int:
        """How many rows that ``observe`` saw were left out or had an entry that was clipped."""
        return count_outliers(self)

    def extra_repr(self) -> str:
        """What ``repr`` shows."""
        parts = [(name, getattr(self, name)) for name in self.shown]
        return ", ".join(f"{name}={value!r}" for name, value in parts if value is not None)

    @abstractmethod
    def _checked(self, x: Any, second: Any) -> tuple[Tensor, Any]:
        """Tensors of x and the second variable whose shapes and values were checked."""

    @abstractmethod
    def _begin(self, x: Tensor, second: Any, generator: torch.Generator) -> None:
        """Forget everything and start from rows."""

    @abstractmethod
    def _follow(self, x: Tensor, second: Any) -> object:
        """Follow this rank's rows of a fresh batch, and by sums those of the others; rows that are NaN do not count."""

    def _start_from(self, x: Tensor, second: Condition, seed: int | None) -> Self:
        x, second = _of_all_ranks(x, second)
        with alone():
            self._start_from_all(x, second, seed)
        synchronize(self)
        return self

    def _observe_rows(self, x: Tensor, second: Condition) -> None:
        if self.initialized:
            with torch.inference_mode(False), torch.no_grad(), full_precision(x.device.type):
                self._follow(*_kept(*_finite_together(x, second)))
            return
        x, second = _finite_together(*_of_all_ranks(x, second))
        with alone():
            finite = torch.isfinite(x).all(1)
            self._start_from_all(*self._checked(x[finite], None if second is None else second[finite]), None)
            count_outliers(self, len(x) - int(finite.sum()))
        synchronize(self)

    def _start_from_all(self, x: Tensor, second: Condition, seed: int | None) -> None:
        if len(x) < 2:
            raise ValueError("x has 1 row; expected at least 2 to start from. Collect more samples")
        with torch.inference_mode(False), torch.no_grad(), full_precision(x.device.type):
            x, second = _kept(x, second)
            _check_spread(x, "x")
            self.to(x.dtype)
            self._begin(x, second, generator_of(seed))
            self.initialized = True


class Density(Observer):
    r"""A learnable density of x in ``dim`` dimensions, perhaps given a second variable.

    $\log p(x)$, or $\log p(x \mid y)$, where ``given`` is nothing, a float matrix (N, given_dim) or integer classes
    (N,). Called as a module it is the mean of $-\log p$ (`eq:hat-h`, `eq:hat_h_xgivy`): on rows that it was not fitted
    to it is, in expectation, an upper bound of the entropy in nats (`eq:ce_bound`); it is its own training loss.

    ``forward`` and ``log_prob`` change nothing. The coordinates follow the data in ``observe`` alone, which ``fit`` and
    ``Regularizer.step`` call once per fresh batch.

    Subclasses write ``_log_prob``, ``_sample`` and ``_initialize`` in the density's coordinates; the rest is here.

    Args:
        dim: Dimension of x.
        given_dim: Dimension of a continuous condition.
        given_classes: Number of classes of a discrete condition.
        coordinates: Map to the coordinates in which the density is written.
        features: What the density sees of a continuous condition; the condition itself if not given.
    """

    rate = 1e-2
    shown = ("dim", "given_dim", "given_classes")
    class_coordinates = False  # whether the coordinates depend on the class

    def __init__(
        self,
        dim: int,
        given_dim: int | None,
        given_classes: int | None,
        coordinates: Transform,
        features: Features | None = None,
    ) -> None:
        super().__init__()
        self.dim = check_count("dim", dim)
        self.given_dim = None if given_dim is None else check_count("given_dim", given_dim)
        self.given_classes = None if given_classes is None else check_count("given_classes", given_classes)
        self.classes = self.given_classes
        if given_dim is not None and given_classes is not None:
            raise ValueError(
                "given_dim and given_classes are both set; expected one: the condition is continuous or classes"
            )
        self.coordinates, self.features = coordinates, features

    def forward(self, x: Tensor, given: Condition = None) -> Tensor:
        """Mean of -log p over the rows of x (N, dim), a scalar in nats: the estimate of the entropy, and the loss."""
        return -batch_mean(self.log_prob(x, given))

    def log_prob(self, x: Tensor, given: Condition = None) -> Tensor:
        """Log-density in nats at the rows of x (N, dim), given as many rows of the condition: (N,)."""
        return self.evaluate(*self._checked(x, given))

    def log_prob_all(self, x: Tensor) -> Tensor:
        """Log-density in nats at the rows of x (N, dim) given each of the classes: (N, classes), in one pass."""
        if self.given_classes is None:
            raise ValueError("this density has no classes; make it with given_classes= to compare them")
        return self.evaluate_all(matrix(x, "x", dim=self.dim))

    def sample(self, n: int, given: Any = None, seed: int | None = None) -> Tensor:
        """Draw n samples (n, dim), without gradients, given n rows of the condition or a single one for all.

        A seed makes the draw repeatable; without it torch's global generator decides.
        """
        with torch.no_grad():
            return self._drawn(n, given, seed)

    def initialize(self, x: Any, given: Any = None, *, seed: int | None = None) -> Self:
        """Start from the rows of x (N, dim) and of the condition; the module takes over the floating-point type of x.

        A seed makes the start repeatable; without it torch's global generator decides.
        """
        return self._start_from(*self._checked(x, given), seed)

    def observe(self, x: Any, given: Any = None) -> None:
        """Let the coordinates follow a fresh batch x (N, dim); the first one starts the density.

        Rows that are not finite are left out, and entries far outside are clipped; ``outliers`` counts both.
        """
        self._observe_rows(*self.shaped(x, given))

    def evaluate(self, x: Tensor, given: Condition) -> Tensor:
        """Log-density (N,) of rows that were checked already: for the library's own use."""
        with full_precision(x.device.type):  # the computation follows the precision of x, but for half precision
            x = x if x.dtype.itemsize >= 4 else x.float()
            v = self._seen(given, x.dtype)
            u, log_det = self.coordinates(x, self._regressors(v))
            return self._log_prob(u.clamp(-FARTHEST, FARTHEST), v) + log_det

    def evaluate_all(self, x: Tensor) -> Tensor:
        """Log-densities (N, classes) of rows that were checked already: for the library's own use."""
        assert self.given_classes is not None
        if self.class_coordinates:  # all pairs as rows of one pass
            labels = torch.arange(self.given_classes, device=x.device).repeat(len(x))
            return self.evaluate(x.repeat_interleave(self.given_classes, 0), labels).view(len(x), -1)
        with full_precision(x.device.type):
            x = x if x.dtype.itemsize >= 4 else x.float()
            u, log_det = self.coordinates(x)
            return self._log_prob_all(u.clamp(-FARTHEST, FARTHEST)) + (
                log_det if log_det.dim() == 0 else log_det.unsqueeze(-1)
            )

    @abstractmethod
    def _log_prob(self, u: Tensor, given: Condition) -> Tensor:
        """Log-density (N,) at u (N, dim) in the density's coordinates, given features or classes."""

    @abstractmethod
    def _sample(self, n: int, given: Condition, generator: torch.Generator) -> Tensor:
        """Draw (n, dim) in the density's coordinates."""

    @abstractmethod
    def _initialize(self, u: Tensor, given: Condition, generator: torch.Generator) -> None:
        """Set the parameters from the samples u (N, dim) in the density's coordinates."""

    def _drawn(self, n: int, given: Any, seed: int | None) -> Tensor:
        given, like = self._rows(n, given), self._like()
        with full_precision(like.device.type):
            v = self._seen(given, like.dtype)
            return self.coordinates.inverse(self._sample(n, v, generator_of(seed)), self._regressors(v))

    def _log_prob_all(self, u: Tensor) -> Tensor:
        """Log-densities (N, classes) at u (N, dim)."""
        assert self.given_classes is not None
        labels = torch.arange(self.given_classes, device=u.device)
        return torch.stack([self._log_prob(u, label.expand(len(u))) for label in labels], -1)

    def _begin(self, x: Tensor, given: Condition, generator: torch.Generator) -> None:
        forget(self)
        v = self._follow(x, given)
        u = self.coordinates(x, self._regressors(v))[0]
        self._initialize(u.clamp(-FAR_START, FAR_START), v, generator)

    def _follow(self, x: Tensor, given: Condition) -> Condition:
        """Let features and coordinates follow the rows; return what the density sees of the condition."""
        if self.features is not None and given is not None:
            self.features.observe(given)
        v = self._seen(given, x.dtype)
        self.coordinates.observe(x, self._regressors(v))
        return v

    def _seen(self, given: Condition, dtype: torch.dtype) -> Condition:
        """What the density sees of a condition: features of numbers, or the classes as they are."""
        if given is None or self.given_classes is not None:
            return given
        given = given.to(dtype)
        return given if self.features is None else self.features(given)

    def _regressors(self, v: Condition) -> Condition:
        """What the coordinates see of a condition: features, and classes one-hot or not at all."""
        if v is None or self.given_classes is None:
            return v
        return nn.functional.one_hot(v, self.given_classes) if self.class_coordinates else None

    def _rows_by_class(self, u: Tensor, given: Condition, least: int = 2) -> list[Tensor]:
        """The rows of each class, all rows for a class with fewer than ``least``; one group without classes."""
        if self.given_classes is None:
            return [u]
        groups = [u[given == label] for label in range(self.given_classes)]
        return [rows if len(rows) >= least else u for rows in groups]

    def _like(self) -> Tensor:
        """Some tensor of the module, for its device and precision."""
        return next(x for x in (*self.parameters(), *self.buffers()) if x.is_floating_point())

    def _checked(self, x: Any, given: Any) -> tuple[Tensor, Condition]:
        x, given = self.shaped(x, given)
        second = () if given is None else ((given, "given", self.given_classes),)
        check_values((x, "x", None), *second)
        return x, given

    def shaped(self, x: Any, given: Any, names: tuple[str, str] = ("x", "given")) -> tuple[Tensor, Condition]:
        """Check the shapes and kinds of x and given, which errors call by ``names``; their values are not looked at."""
        x = matrix(x, names[0], dim=self.dim, finite=False)
        return x, self._condition(given, len(x), names[1])

    def _rows(self, n: int, given: Any) -> Condition:
        """The condition for n samples."""
        check_count("n", n)
        given = self._condition(given, None)
        if given is None:
            return None
        check_values((given, "given", self.given_classes))
        if len(given) not in (1, n):
            raise ValueError(f"given has {len(given)} rows; expected n={n}, one for each sample, or a single one")
        return given.expand(n, *given.shape[1:])

    def _condition(self, given: Any, rows: int | None, name: str = "given") -> Condition:
        if self.given_dim is None and self.given_classes is None:
            if given is not None:
                raise ValueError(
                    f"{name} came, but this density has no condition; make it with given_dim= or given_classes="
                )
            return None
        if given is None:
            raise ValueError(f"{name} is missing; this density is conditional and needs one row of it for each sample")
        if self.given_classes is not None:
            return class_codes(given, name, classes=self.given_classes, rows=rows, finite=False)
        return matrix(given, name, dim=self.given_dim, rows=rows, finite=False)


def _check_spread(x: Tensor, name: str) -> None:
    """Raise where a column of x (N, dim) varies by so little that its precision cannot hold the scale's inverse."""
    least = 1e3 * torch.finfo(x.dtype).tiny
    spread = x.amax(0) - x.amin(0)
    if bool(((spread > 0) & (spread < least)).any()):
        raise ValueError(
            f"{name} has a column that varies by {float(spread[spread > 0].min()):.3g} in all; expected at least "
            f"{least:.3g} in {x.dtype}. Use larger units, or {name}.double()"
        )


def full_precision(device: str) -> AbstractContextManager[None]:
    """Keep the log-density out of autocast."""
    return torch.autocast(device, enabled=False) if torch.is_autocast_enabled(device) else nullcontext()


def generator_of(seed: int | None) -> torch.Generator:
    """A generator of its own for each seed; without one the seed comes from torch's global generator."""
    return torch.Generator().manual_seed(int(torch.randint(2**62, ())) if seed is None else check_seed("seed", seed))


def _refuse_old_state(module: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Say so where a state dictionary was written by version 0.1, whose buffers mean something else."""
    if prefix + "initialized" in state:
        raise ValueError(
            f"the state dictionary of this {type(module).__name__} was written by infoknife 0.1; expected one of 0.2, "
            "whose coordinates are others. Train it again, or load it with infoknife<0.2"
        )


def _of_all_ranks(x: Tensor, y: Condition) -> tuple[Tensor, Condition]:
    """The rows of all ranks, which then start from them alike."""
    return all_rows(x.detach())[0], None if y is None else all_rows(y.detach())[0]


def _finite_together(x: Tensor, y: Condition) -> tuple[Tensor, Condition]:
    """Make all numbers of a row NaN where one of x (N, d) or y (N, g) is not finite, so that no part counts it."""
    finite = torch.isfinite(x.detach()).all(1, keepdim=True)
    if y is not None and y.is_floating_point():
        finite = finite & torch.isfinite(y.detach()).all(1, keepdim=True)
        y = torch.where(finite, y, torch.nan)
    return torch.where(finite, x, torch.nan), y


def _kept(x: Tensor, y: Condition) -> tuple[Tensor, Condition]:
    """Rows that a module may keep: numbers in one precision, detached, and no tensors of inference mode."""
    x = _own(x.to(torch.promote_types(x.dtype, torch.float32)))
    return x, None if y is None else _own(y.to(x.dtype) if y.is_floating_point() else y)


def _own(x: Tensor) -> Tensor:
    return x.clone() if x.is_inference() else x.detach()  # tensors of inference mode could not be trained
