"""An upper bound of an entropy that holds for any finite sample, if all of the distribution lies in a known box."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Certificate", "check_level"]


class Certificate(NamedTuple):
    r"""Bounded values whose mean is above the entropy, on rows that had no part in the densities.

    The density is mixed with a little of the uniform one on the box, $\tilde q = (1 - \epsilon) q + \epsilon / V$, so
    that $-\log\tilde q \le \log(V / \epsilon)$; values below a floor are raised to it. Neither lowers the mean below
    $-E[\log \tilde q] \ge h$, and the empirical Bernstein inequality (Maurer & Pontil, 2009) bounds that mean.

    Args:
        losses: The values (n,) in nats.
        low: What none of them is below.
        high: What none of them can be above.
        most: The logarithm of the volume, which no entropy in the box is above.

    Example:
        >>> flat = Certificate(np.full(10_000, 1.0), low=0.0, high=3.0, most=2.0)
        >>> round(flat.upper(0.95), 3)  # no variance: the range alone
        1.003
    """

    losses: NDArray[np.float64]
    low: float
    high: float
    most: float = math.inf

    def upper(self, level: float) -> float:
        r"""Give $\bar\ell + \sqrt{2 V \log(2/\delta) / n} + 7 (high - low) \log(2/\delta) / (3 (n - 1))$ in nats.

        It is never above the logarithm of the volume, which needs no sample.
        """
        check_level(level)
        n, doubt = len(self.losses), math.log(2 / (1 - level))
        spread = math.sqrt(2 * float(self.losses.var(ddof=1)) * doubt / n)
        reach = 7 * (self.high - self.low) * doubt / (3 * (n - 1))
        return min(float(self.losses.mean()) + spread + reach, self.most)


def check_level(level: float) -> None:
    """Refuse what is no probability."""
    if not 0 < level < 1:
        raise ValueError(f"level is {level!r}; expected a probability between 0 and 1, such as 0.95")
