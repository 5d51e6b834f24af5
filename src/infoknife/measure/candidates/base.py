"""What a candidate is: something that can be fitted to rows and then answers a question about other rows."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Optional

import torch
from torch import Tensor

from infoknife.measure.question import Question, Sample

PIECE = 50_000  # rows that are evaluated at a time


@dataclass(frozen=True, eq=False)
class Fitted:
    """A candidate after it has seen its training rows."""

    of_rows: Callable[[Sample], Tensor]  # terms (2, N) of a piece of the rows, not comparable between views
    parameters: int  # how many numbers were learned
    is_flexible: bool = False  # whether held-out rows chose how much is learned: as much is missed as learned by chance
    fixed: Optional["Candidate"] = None  # the candidate that takes over what this fit has searched for, if it did

    @torch.no_grad()
    def terms(self, data: Sample) -> Tensor:
        r"""The two terms of the question for every row, $\log q(t \mid c)$ and $\log q(t \mid r)$: (2, N).

        The second is zero where an entropy is asked for. Terms of all views are comparable.
        """
        terms = torch.cat([self.of_rows(piece) for piece in data.pieces(PIECE)], 1)
        return terms if data.shift is None else terms + data.shift

    def ratio(self, data: Sample) -> Tensor:
        """The difference of the terms (N,)."""
        full, reduced = self.terms(data)
        return full - reduced


class Candidate(ABC):
    """A way to model densities."""

    name: str
    is_network: ClassVar[bool] = False  # trained by gradient: tried after the others, on fewer folds
    is_density: ClassVar[bool] = True  # of all columns, so that its likelihood can be compared with that of others
    sees_order: ClassVar[bool] = True  # whether numbers in their order can tell it more than counted ones

    def alone(self, question: Question) -> "Candidate | None":
        """What fits the second term by itself, where the candidate's own is a by-product that could invent information.

        None where errors of the first term are likely to be those of the second as well, and cancel.
        """
        return None

    @property
    def sees_rotation(self) -> bool:
        """Whether other linear combinations of columns can tell it more: where it takes columns one by one."""
        return self.is_network or self.name.endswith("-ranks") or not self.is_density

    @property
    def family(self) -> str:
        """What users call it, whatever its coordinates."""
        return self.name.partition("-")[0]

    def supports(self, data: Sample, question: Question) -> bool:
        """Whether it can answer such a question."""
        return True

    @abstractmethod
    def fit(self, data: Sample, question: Question, generator: torch.Generator) -> Fitted:
        """Fit it to training rows."""
