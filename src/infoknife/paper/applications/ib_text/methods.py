"""The compression term: an estimate of I(Z; X) for the loss, and the estimator's own loss beside it."""

from collections.abc import Mapping
from typing import Any, NamedTuple, final

from torch import Tensor, nn

from infoknife import Regularizer, mi

CLOSED = ("vub", "knife", "doe")  # estimators that know the posterior's entropy; the others see pairs (z, features)


class Terms(NamedTuple):
    """What a batch adds to the loss."""

    information: Tensor  # the estimate of I(Z; X) in nats; its gradient reaches the encoder alone
    estimator: Tensor  # the estimator's own loss; its gradient reaches the estimator alone


@final
class Compression(nn.Module):
    r"""$I(Z; X)$ of ``eq:bottleneck`` by any estimator, which learns in the same step (joint update).

    Given the posterior of z, $h(Z \mid X)$ is in closed form and a density estimates $h(Z)$. The critics and CLUB look
    at pairs of z and the features of the text instead.

    Args:
        method: ``"vub"``, ``"knife"``, ``"doe"``, ``"club"``, ``"infonce"``, ``"mine"`` or ``"nwj"``.
        dim: Dimension K of z.
        features: Numbers of a text's features.
        options: Of ``mi``.
        seed: Of the estimator's start.

    Examples:
        >>> import torch
        >>> compression = Compression("vub", 1, 4)
        >>> posterior = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], requires_grad=True)  # means, then log-variances
        >>> compression(posterior[:, :1], posterior, torch.zeros(2, 4)).information.item()
        0.5
    """

    def __init__(
        self, method: str, dim: int, features: int, options: Mapping[str, Any] | None = None, seed: int = 0
    ) -> None:
        super().__init__()
        self.closed = method in CLOSED
        how: dict[str, Any] = {"encoder": "gaussian"} if self.closed else {"y_dim": features}
        estimator = mi(method, dim, **how, **(options or {}))
        self.regularizer = Regularizer(estimator, mode="joint", warn=False, seed=seed)

    def forward(self, z: Tensor, posterior: Tensor, features: Tensor) -> Terms:
        """Return the terms of a batch."""
        s = posterior if self.closed else features
        information: Tensor = self.regularizer(z, s)  # by the estimator as it was before these rows
        return Terms(information, self.regularizer.loss(z, s))

    def parameter_groups(self, lr: float | None) -> list[dict[str, Any]]:
        """Return the estimator's parameters for an optimiser, with the rate that suits them if none is given."""
        estimator: Any = self.regularizer.estimator
        groups: list[dict[str, Any]] = estimator.parameter_groups(estimator.rate if lr is None else lr)
        return [group for group in groups if group["params"]]
