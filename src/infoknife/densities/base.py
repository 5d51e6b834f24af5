"""What every density has in common: checked inputs, a transform in front, and the entropy as the mean of -log p."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn

from infoknife.inputs import check_count, class_codes, is_functional, matrix, one_of
from infoknife.transforms import Standardize, Transform

__all__ = ["Density", "Reseeded", "check_count", "full_precision", "generator_of", "one_of"]


PERIOD = 4  # batches between two steps of the running statistics, which cost as much as a tenth of a small batch
MOMENTUM = 0.04  # of such a step: they follow within about a hundred batches


class Reseeded(NamedTuple):
    """How many kernels had no mass, and which parameters were moved.

    Args:
        kernels: How many kernels there are.
        dead: How many of them had no mass, and were moved to rows that are badly explained.
        saturated: The part of their scales that are out of all proportion to the data.
        moved: Parameters with the rows of them that were moved, for the optimiser to forget.

    Example:
        >>> one, other = Reseeded(10, 1, 0.0), Reseeded(30, 0, 0.2)
        >>> one.merge(other)[:3]
        (40, 1, 0.15)
    """

    kernels: int = 0
    dead: int = 0
    saturated: float = 0.0
    moved: tuple[tuple[Tensor, Tensor], ...] = ()

    def merge(self, other: Self) -> Self:
        """Those of two densities."""
        kernels = self.kernels + other.kernels
        saturated = (self.kernels * self.saturated + other.kernels * other.saturated) / max(kernels, 1)
        return type(self)(kernels, self.dead + other.dead, saturated, self.moved + other.moved)


class Density(nn.Module, ABC):
    r"""A learnable density of x in ``dim`` dimensions, perhaps given a second variable.

    $\log p(x)$, or $\log p(x \mid y)$, where ``given`` is nothing, a float matrix (N, given_dim) or integer classes
    (N,). Called as a module it is the mean of $-\log p$ (`eq:hat-h`, `eq:hat_h_xgivy`): on rows that it was not fitted
    to it is, in expectation, an upper bound of the entropy in nats (`eq:ce_bound`); it is its own training loss.

    Subclasses write ``_log_prob``, ``_sample`` and ``_initialize`` in the transform's coordinates; the rest is here.

    Args:
        dim: Dimension of x.
        given_dim: Dimension of a continuous condition.
        given_classes: Number of classes of a discrete condition.
        transform: Map to the coordinates in which the density is written.
    """

    rate: ClassVar[float] = 1e-2  # learning rate of Adam that suits the parameters
    initialized: Tensor
    batches: Tensor

    def __init__(self, dim: int, given_dim: int | None, given_classes: int | None, transform: Transform) -> None:
        super().__init__()
        self.dim = check_count("dim", dim)
        self.given_dim = None if given_dim is None else check_count("given_dim", given_dim)
        self.given_classes = None if given_classes is None else check_count("given_classes", given_classes)
        if given_dim is not None and given_classes is not None:
            raise ValueError(
                "given_dim and given_classes are both set; expected one: the condition is continuous or classes"
            )
        self.transform = transform
        self.given_transform = None if given_dim is None else Standardize(given_dim, MOMENTUM)
        self.register_buffer("initialized", torch.tensor(False))
        self.register_buffer("batches", torch.zeros((), dtype=torch.long))  # that came in training

    def forward(self, x: Tensor, given: Tensor | None = None) -> Tensor:
        """Mean of -log p over the rows of x (N, dim), a scalar in nats: the entropy's estimate and the training loss.

        In training mode, with gradients on, the running statistics of the transform follow every fourth batch.
        """
        x, given = self._checked(x, given)
        if self.training and torch.is_grad_enabled() and not is_functional():
            self._follow(x, given)
        return -self._evaluate(x, given).mean()

    def log_prob(self, x: Tensor, given: Tensor | None = None) -> Tensor:
        """Log-density in nats at the rows of x (N, dim), given as many rows of the condition: (N,)."""
        return self._evaluate(*self._checked(x, given))

    def sample(self, n: int, given: Any = None, seed: int | None = None) -> Tensor:
        """Draw n samples (n, dim), without gradients.

        Args:
            n: How many.
            given: The condition, n rows or a single one for all.
            seed: Makes the draw repeatable; without it torch's global generator decides.
        """
        given = self._rows(n, given)
        with torch.no_grad(), full_precision(self.initialized.device.type):
            return self.transform.inverse(self._sample(n, self._coordinates(given), generator_of(seed)))

    def initialize(self, x: Any, given: Any = None, *, seed: int | None = None) -> Self:
        """Start from the rows of x (N, dim) and of the condition; the module takes over the floating-point type of x.

        Args:
            x: Samples.
            given: As many rows of the condition, for a conditional density.
            seed: Makes the start repeatable; without it torch's global generator decides.
        """
        x, given = self._checked(x, given)
        if len(x) < 2:
            raise ValueError("x has 1 row; expected at least 2 to start from. Collect more samples")
        dtype = torch.promote_types(x.dtype, torch.float32)
        with torch.inference_mode(False), torch.no_grad(), full_precision(x.device.type):
            self.to(dtype)
            x, given = kept(x.to(dtype)), None if given is None else kept(given)
            self._fit_transform(x)
            if self.given_transform is not None and given is not None:
                self.given_transform.initialize(given.to(dtype), "given")
            self._initialize(self.transform(x)[0], self._coordinates(given, dtype), generator_of(seed))
            self.initialized = torch.ones_like(self.initialized)
        return self

    def reseed_dead_kernels(self, x: Tensor, given: Tensor | None = None) -> Reseeded:
        """Move kernels without mass to the rows of x (N, dim) that are least likely.

        For a density that follows moving data, every now and then; ``Regularizer`` does it.
        """
        x, given = self._checked(x, given)
        with full_precision(x.device.type):
            x = x.detach().to(torch.promote_types(x.dtype, torch.float32))
            return self._reseed_dead_kernels(self.transform(x)[0], self._coordinates(given, x.dtype))

    def extra_repr(self) -> str:
        """Dimensions, for ``repr``."""
        parts = [f"dim={self.dim}"]
        parts += [
            f"{name}={value}" for name in ("given_dim", "given_classes") if (value := getattr(self, name)) is not None
        ]
        return ", ".join(parts)

    @abstractmethod
    def _log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        """Log-density (N,) at u (N, dim) in the transform's coordinates."""

    @abstractmethod
    def _sample(self, n: int, given: Tensor | None, generator: torch.Generator) -> Tensor:
        """Draw (n, dim) in the transform's coordinates."""

    @abstractmethod
    def _initialize(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        """Set the parameters from the samples u (N, dim) in the transform's coordinates."""

    def _fit_transform(self, x: Tensor) -> None:
        self.transform.initialize(x)

    def _reseed_dead_kernels(self, u: Tensor, given: Tensor | None) -> Reseeded:
        """Move dead kernels, in the transform's coordinates; most densities have none that can die."""
        return Reseeded()

    def _evaluate(self, x: Tensor, given: Tensor | None) -> Tensor:
        with full_precision(x.device.type):  # the computation follows the precision of x, but for half precision
            x = x if x.dtype.itemsize >= 4 else x.float()
            u, log_det = self.transform(x)
            return self._log_prob(u, self._coordinates(given, x.dtype)) + log_det

    def _checked(self, x: Any, given: Any) -> tuple[Tensor, Tensor | None]:
        x = matrix(x, "x", dim=self.dim)
        return x, self._condition(given, len(x))

    def _rows(self, n: int, given: Any) -> Tensor | None:
        """The condition for n samples."""
        check_count("n", n)
        given = self._condition(given, None)
        if given is None:
            return None
        if len(given) not in (1, n):
            raise ValueError(f"given has {len(given)} rows; expected n={n}, one for each sample, or a single one")
        return given.expand(n, *given.shape[1:])

    def _condition(self, given: Any, rows: int | None) -> Tensor | None:
        if self.given_dim is None and self.given_classes is None:
            if given is not None:
                raise ValueError(
                    "given came, but this density has no condition; make it with given_dim= or given_classes="
                )
            return None
        if given is None:
            raise ValueError("given is missing; this density is conditional and needs one row of it for each sample")
        if self.given_classes is not None:
            return class_codes(given, "given", classes=self.given_classes, rows=rows)
        return matrix(given, "given", dim=self.given_dim, rows=rows)

    def _coordinates(self, given: Tensor | None, dtype: torch.dtype | None = None) -> Tensor | None:
        """The condition as ``_log_prob`` wants it: standardised, or the classes as they are."""
        if given is None or self.given_transform is None:
            return given
        v: Tensor = self.given_transform(given.to(dtype or self.given_transform.shift.dtype))[0]
        return v

    def _follow(self, x: Tensor, given: Tensor | None) -> None:
        if not torch.compiler.is_compiling():  # where a count cannot decide, every batch is followed
            self.batches = self.batches + 1
            if int(self.batches) % PERIOD:
                return
        self.transform.update(x)
        if self.given_transform is not None and given is not None:
            self.given_transform.update(given)


def full_precision(device: str) -> AbstractContextManager[None]:
    """Keep the log-density out of autocast."""
    return torch.autocast(device, enabled=False) if torch.is_autocast_enabled(device) else nullcontext()


def generator_of(seed: int | None) -> torch.Generator:
    """A generator of its own for each seed; without one the seed comes from torch's global generator."""
    return torch.Generator().manual_seed(int(torch.randint(2**62, ())) if seed is None else seed)


def kept(x: Tensor) -> Tensor:
    """A tensor that the module may keep: detached, and no tensor of inference mode, which could not be trained."""
    return x.clone() if x.is_inference() else x.detach()
