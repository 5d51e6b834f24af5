"""What every candidate shares: pieces of rows, the difference of terms, names."""

from typing import final

import pytest
import torch
from torch import Tensor

from infoknife.measure.candidates import base
from infoknife.measure.candidates.base import Candidate, Fitted
from infoknife.measure.question import Part, Question, Sample

ENTROPY = Question("entropy", Part((0,)), Part())


@final
class Twice(Fitted):
    """Terms that are the first column, and twice that; it counts the rows of every piece."""

    def __init__(self) -> None:
        super().__init__(ENTROPY, 2)
        self.scale = torch.ones((), dtype=torch.float64, requires_grad=True)
        self.pieces: list[int] = []

    def _terms(self, data: Sample) -> Tensor:
        self.pieces.append(len(data))
        return torch.stack([data.continuous[:, 0], 2 * data.continuous[:, 0]]) * self.scale


@final
class Plain(Candidate):
    name = "plain-ranks"

    def fit(self, data: Sample, question: Question, generator: torch.Generator) -> Fitted:
        return Twice()


def data(rows: int = 10) -> Sample:
    return Sample(torch.arange(rows).double().unsqueeze(1), torch.empty(rows, 0, dtype=torch.long), ())


def test_terms_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, pieces = Twice(), Twice()
    expected = whole.terms(data())
    monkeypatch.setattr(base, "PIECE", 4)
    assert pieces.terms(data()).equal(expected)
    assert (whole.pieces, pieces.pieces) == ([10], [4, 4, 2])


def test_terms_need_no_gradient() -> None:
    assert not Twice().terms(data()).requires_grad
