r"""KNIFE's mutual information by the chain rule: linear chains with one-dimensional kernels.

A chain is the density $p(t \mid \phi) = \lvert\det L\rvert \prod_i q_i(\varepsilon_i)$ with
$\varepsilon = L\,(t - B\phi)$ and L lower-triangular: the chain rule over coordinates with linear conditional means.
L and B are in closed form from running second moments, so that they follow a moving distribution.
"""

import torch
from torch import Tensor, nn

__all__ = ["Moments", "factor_of", "regression_of"]

RIDGE = 1e-4  # added to the features' second moments, which are about one
FEW = 512.0  # rows that older ones count as after a jump
FLOOR = 1e-6  # least variance of an innovation


class Moments(nn.Module):
    """Running second moments of columns that are about standardised.

    Args:
        columns: How many.
        momentum: Step towards the moments of a batch.
    """

    matrix: Tensor
    rows: Tensor

    def __init__(self, columns: int, momentum: float = 0.015) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("matrix", torch.eye(columns))
        self.register_buffer("rows", torch.tensor(torch.inf, dtype=torch.double))  # that were seen since the start

    def initialize(self, w: Tensor) -> None:
        """Take the moments of w (N, columns), with correlations shrunk as far as there are few rows for them."""
        S = w.T @ w / len(w)
        self.rows = torch.full_like(self.rows, len(w))
        self.matrix = torch.lerp(S, S.diagonal().diag(), S.shape[0] / (S.shape[0] + len(w)))

    def update(self, w: Tensor) -> None:
        """Step towards the moments of the batch w (N, columns); the tensor is replaced, never overwritten.

        Soon after the start all rows since then count the same.
        """
        w = w.to(self.matrix.dtype)
        self.rows = self.rows + len(w)
        momentum = max(self.momentum, len(w) / float(self.rows))
        self.matrix = torch.lerp(self.matrix, w.T @ w / len(w), momentum)

    def hurry(self) -> None:
        """Let older rows count as a few."""
        self.rows = self.rows.clamp_max(FEW)


def regression_of(features: Tensor, cross: Tensor) -> Tensor:
    """Slope B (F, T) of the regression of T targets on F features, from moments (F, F) and (F, T)."""
    return torch.cholesky_solve(cross.double(), _cholesky(features, RIDGE)).to(cross.dtype)


def factor_of(moments: Tensor) -> tuple[Tensor, Tensor]:
    """The lower-triangular L with L S L' = I for moments S (..., d, d), and log det L."""
    chol = _cholesky(moments, FLOOR)
    eye = torch.eye(chol.shape[-1]).to(chol).expand_as(chol)
    factor = torch.linalg.solve_triangular(chol, eye, upper=False).to(moments.dtype).contiguous()  # as it is loaded
    return factor, factor.diagonal(0, -2, -1).log().sum(-1)


def _cholesky(moments: Tensor, floor: float) -> Tensor:
    """Factor moments (..., d, d) in double precision, with a little on the diagonal and more if it is needed."""
    eye = torch.eye(moments.shape[-1]).to(moments)
    chol, failed = torch.linalg.cholesky_ex((moments + floor * eye).double())
    return torch.linalg.cholesky((moments + 1e-2 * eye).double()) if bool(failed.any()) else chol
