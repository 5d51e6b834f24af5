"""Entropy and mutual information as metrics of torchmetrics: batches and processes are gathered, then measured once.

It needs torchmetrics: ``pip install "infoknife[torchmetrics]"``.
"""

from collections.abc import Callable
from typing import Any, ClassVar, final

import torch
from torch import Tensor
from typing_extensions import override

from infoknife import measure

try:
    from torchmetrics import Metric
    from torchmetrics.utilities import dim_zero_cat
except ImportError as error:
    raise ImportError(
        'infoknife.integrations.torchmetrics needs torchmetrics; install it with: pip install "infoknife[torchmetrics]"'
    ) from error

__all__ = ["EntropyMetric", "MutualInformationMetric"]


class _Gathered(Metric):
    """Keep the rows of batches, gather them from all processes, and measure once."""

    is_differentiable, higher_is_better, full_state_update = False, None, False
    names: ClassVar[tuple[str, ...]]
    measured: ClassVar[Callable[..., measure.Estimate]]

    def __init__(self, effort: str = "quick", options: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.options: dict[str, Any] = {"effort": effort, "seed": 0} | (options or {})
        self.estimate: measure.Estimate | None = None
        for name in self.names:
            self.add_state(name, default=[], dist_reduce_fx="cat")

    @override
    def update(self, *batch: Tensor) -> None:
        for name, rows in zip(self.names, batch, strict=True):
            getattr(self, name).append(rows.detach())

    @override
    def compute(self) -> Tensor:
        self.estimate = type(self).measured(*(dim_zero_cat(getattr(self, name)) for name in self.names), **self.options)
        return torch.tensor(self.estimate.value, device=self.device)


@final
class MutualInformationMetric(_Gathered):
    """I(X; Y) in nats of all rows since the last ``reset``, by ``infoknife.mutual_information``.

    ``update(x, y)`` keeps a batch of x (N, columns) and of y, (N,) or (N, columns); batches are gathered from all
    processes. ``compute`` measures once; ``estimate`` then has the whole answer, with its interval.

    Args:
        effort: ``"quick"``, ``"standard"`` or ``"thorough"``.
        options: More of ``infoknife.mutual_information``, such as ``{"method": "gaussian", "discrete": True}``.
        **kwargs: As for ``torchmetrics.Metric``.

    Examples:
        >>> generator = torch.Generator().manual_seed(0)
        >>> metric = MutualInformationMetric(options={"method": "gaussian"})
        >>> for _ in range(4):
        ...     x = torch.randn(500, 2, generator=generator)
        ...     metric.update(x, x[:, :1] + torch.randn(500, 1, generator=generator))
        >>> round(metric.compute().item(), 1)  # 1/2 log 2 nats
        0.3
    """

    names = ("x", "y")
    measured = staticmethod(measure.mutual_information)


@final
class EntropyMetric(_Gathered):
    """h(X) in nats of all rows since the last ``reset``, by ``infoknife.entropy``; ``update(x)`` keeps a batch.

    It takes what ``MutualInformationMetric`` takes; ``options`` are those of ``infoknife.entropy``.

    Examples:
        >>> metric = EntropyMetric(options={"method": "gaussian"})
        >>> metric.update(torch.randn(2000, 1, generator=torch.Generator().manual_seed(0)))
        >>> round(metric.compute().item(), 1)  # 1/2 log(2 pi e) nats
        1.4
    """

    names = ("x",)
    measured = staticmethod(measure.entropy)
