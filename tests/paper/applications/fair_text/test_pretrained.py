"""The pretrained encoder, with a transformer of a few numbers in its place."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from infoknife.paper.applications.fair_text import Settings, pretrained
from infoknife.paper.applications.fair_text.pretrained import HIDDEN, LENGTH, MiniLMEncoder
from infoknife.paper.applications.pretrained import PACKAGE, encoder_of, tokenizer_of

TEXTS = ["so good so far", "ok", "good grief", "", "so so so so so so"]


class Tokenizer:
    """Codes by the length of a word, between a first and a last one."""

    pad_token_id = 0

    def __call__(self, texts: list[str], padding: str, truncation: bool, max_length: int, **how: Any) -> Any:
        assert (padding, truncation, how) == ("max_length", True, {"return_tensors": "pt"})
        rows = [[1, *(3 + len(word) for word in text.split()), 2][:max_length] for text in texts]
        return {"input_ids": torch.tensor([row + [0] * (max_length - len(row)) for row in rows])}


class Transformer(nn.Module):
    """States that know of all words of their text; in training some numbers are dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.drop = nn.Embedding(30, HIDDEN), nn.Dropout(0.1)
        self.widths: list[int] = []

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> SimpleNamespace:
        self.widths.append(input_ids.shape[1])
        states = self.drop(self.embedding(input_ids))
        mask = attention_mask.unsqueeze(-1)
        return SimpleNamespace(last_hidden_state=states.cos() + (mask * states).sum(1, keepdim=True).sin())


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    def tiny(name: str) -> nn.Module:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return Transformer()

    monkeypatch.setattr(pretrained, "tokenizer_of", lambda name: Tokenizer())
    monkeypatch.setattr(pretrained, "encoder_of", tiny)


def made(fine_tune: bool) -> MiniLMEncoder:
    settings = Settings(encoder="minilm", features=6, fine_tune=fine_tune)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return MiniLMEncoder.of(TEXTS, settings)


both = pytest.mark.parametrize("fine_tune", [False, True])


@both
def test_features_have_their_shape(fine_tune: bool) -> None:
    encoder = made(fine_tune)
    rows = encoder.read(TEXTS)
    assert rows.shape == (5, LENGTH if fine_tune else HIDDEN)
    assert encoder(rows).shape == (5, 6)
    assert encoder.words() == []


def test_frozen_and_fine_tuned_begin_alike() -> None:
    with torch.no_grad():
        frozen, tuned = (encoder(encoder.read(TEXTS)) for encoder in (made(False).eval(), made(True).eval()))
    torch.testing.assert_close(frozen, tuned)


@both
def test_a_text_alone_is_what_it_is_among_others(fine_tune: bool) -> None:
    encoder = made(fine_tune).eval()
    many = [TEXTS[i % 5] + " so" * (i % 7) for i in range(150)]  # more than are read at once
    with torch.no_grad():
        together = encoder(encoder.read(many))
        alone = torch.cat([encoder(encoder.read([text])) for text in many])
    torch.testing.assert_close(together, alone)


@both
def test_what_moves(fine_tune: bool) -> None:
    encoder = made(fine_tune)
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    optimizer = torch.optim.SGD([p for p in encoder.parameters() if p.requires_grad], 0.1)
    with torch.random.fork_rng():
        encoder(encoder.read(TEXTS)).square().sum().backward()
    optimizer.step()
    moved = {name for name, value in encoder.state_dict().items() if not torch.equal(value, before[name])}
    assert ("transformer.embedding.weight" in moved) == fine_tune
    assert {"project.2.weight", "project.2.bias"} <= moved


def test_frozen_numbers_are_without_dropout_and_training_goes_on() -> None:
    encoder = made(False).train()
    assert torch.equal(encoder.read(TEXTS), encoder.read(TEXTS))
    assert encoder.transformer.training
    assert not encoder.read(TEXTS).requires_grad


def test_the_mean_is_over_the_words() -> None:
    encoder = made(False)
    (row,) = encoder.read(["ok"])
    codes = torch.tensor([[1, 5, 2]])
    with torch.no_grad():
        states = encoder.transformer.eval()(codes, torch.ones_like(codes)).last_hidden_state
    torch.testing.assert_close(row, states[0].mean(0))


def test_padding_is_cut_and_texts_of_like_length_go_together() -> None:
    encoder = made(False)
    encoder.read(["so " * 200] + ["ok"] * 64 + ["so ok"] * 10)
    assert isinstance(encoder.transformer, Transformer)
    assert encoder.transformer.widths == [3, LENGTH]


def test_words_make_it_anew() -> None:
    encoder = made(False).eval()
    again = MiniLMEncoder.of_words([], Settings(encoder="minilm", features=6)).eval()
    again.load_state_dict(encoder.state_dict())
    with torch.no_grad():
        assert torch.equal(again(again.read(TEXTS)), encoder(encoder.read(TEXTS)))


@pytest.mark.slow
def test_the_real_one_knows_what_is_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip(PACKAGE)
    monkeypatch.setattr(pretrained, "tokenizer_of", tokenizer_of)
    monkeypatch.setattr(pretrained, "encoder_of", encoder_of)
    texts: Sequence[str] = ["the cat sleeps on the sofa", "a kitten naps on the couch", "the stock market fell today"]
    rows = MiniLMEncoder(6, False, 0.0).read(texts)
    near, far = (torch.cosine_similarity(rows[0], rows[i], dim=0) for i in (1, 2))
    assert float(near) > float(far) + 0.3
