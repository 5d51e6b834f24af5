"""Tokens: cut and counted, batches of like length that cover all rows, and the states of lower layers."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from infoknife.paper.applications.ib_text import Bottleneck, PairData, Pairs
from infoknife.paper.applications.ib_text.tokens import TokenRows, batches, read, remembered
from infoknife.paper.applications.pretrained import tokenizer_of

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def tokenizer(encoder: str) -> object:
    return tokenizer_of(encoder)


def text(length: int) -> str:
    return " ".join(["tea"] * length)


@pytest.mark.parametrize("second", [True, False])
def test_what_is_too_long_is_cut_and_counted(tokenizer: object, second: bool) -> None:
    lengths = (1, 4, 5, 6, 20)
    first = tuple(text(length) for length in lengths)
    rows = read(Pairs(first, ("it was",) * 5 if second else None, torch.arange(5)), tokenizer, 9 if second else 7)
    special = 5 if second else 2  # [CLS] and [SEP], and the second text with its own
    assert rows.lengths.tolist() == [special + min(length, 4 if second else 5) for length in lengths]
    assert rows.truncated == (3 if second else 2)
    assert torch.equal(rows.y, torch.arange(5))


def test_both_texts_are_there(tokenizer: object, pairs: PairData, single: PairData) -> None:
    rows, alone = (read(data.train, tokenizer, 24) for data in (pairs, single))
    assert rows.truncated == alone.truncated == 0
    assert set(rows.columns) == {"input_ids", "token_type_ids", "segments"}
    for types, segments in zip(rows.columns["token_type_ids"], rows.columns["segments"], strict=True):
        assert types.tolist() == sorted(types.tolist())
        assert set(types.tolist()) == {0, 1}
        of_text = segments >= 0  # others are special tokens
        assert torch.equal(types[of_text], segments[of_text])
        assert int((~of_text).sum()) == 3
    assert all(not bool(types.any()) for types in alone.columns["token_type_ids"])
    assert bool((alone.lengths == 5).all())


def test_reading_long_texts_does_not_warn(tokenizer: object, caplog: pytest.LogCaptureFixture) -> None:
    rows = read(Pairs((text(2000),), None, torch.zeros(1)), tokenizer, 24)
    assert (rows.lengths.tolist(), rows.truncated, caplog.records) == ([24], 1, [])


def test_a_batch_is_filled_up_and_has_its_mask() -> None:
    columns = {"input_ids": [torch.tensor([5, 6]), torch.tensor([7]), torch.tensor([8, 9, 10])]}
    batch = TokenRows(columns, torch.arange(3), 0).batch(torch.tensor([2, 1]), CPU)
    assert batch["input_ids"].tolist() == [[8, 9, 10], [7, 0, 0]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=400), st.integers(1, 40), st.integers(0, 5))
def test_batches_cover_every_row_once(lengths: list[int], size: int, seed: int) -> None:
    found = list(batches(torch.tensor(lengths), size, torch.Generator().manual_seed(seed)))
    assert sorted(torch.cat(found).tolist()) == list(range(len(lengths)))
    assert all(1 <= len(batch) <= size for batch in found)
    assert len(found) == sum(1 for _ in batches(torch.ones(len(lengths)), size, torch.Generator()))


def test_batches_are_of_like_length_and_in_random_order() -> None:
    lengths = torch.randint(1, 100, (640,), generator=torch.Generator().manual_seed(0))
    found = list(batches(lengths, 16, torch.Generator().manual_seed(1)))

    def padded(parts: list[Tensor]) -> float:
        return sum(float(lengths[part].max()) * len(part) for part in parts) / float(lengths.sum())

    assert padded(found) < 1.15
    assert padded(list(torch.arange(640).split(16))) > 1.8
    means = torch.stack([lengths[part].double().mean() for part in found])
    assert abs(float(torch.corrcoef(torch.stack([means, torch.arange(40).double()]))[0, 1])) < 0.4
    generator = torch.Generator().manual_seed(1)
    first, second = (list(batches(lengths, 16, generator)) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, found, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(second, found, strict=True))


def test_remembered_states_are_those_of_the_lower_layers(encoder: str, tokenizer: object, pairs: PairData) -> None:
    model = Bottleneck.over(encoder, layers=2, bottleneck=4, num_labels=2, method="vub").train()
    rows = read(pairs.train, tokenizer, 24)
    kept = remembered(rows, model.encoder, 2, CPU)
    assert model.encoder.training
    assert set(kept.columns) == {"states", "segments"}
    assert torch.equal(kept.lengths, rows.lengths)
    assert (kept.truncated, torch.equal(kept.y, rows.y)) == (0, True)
    chosen = torch.tensor([7, 0, 33])
    with torch.no_grad():
        whole, upper = (model.eval()(**each.batch(chosen, CPU)).logits for each in (rows, kept))
    torch.testing.assert_close(upper, whole)
