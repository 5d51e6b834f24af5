"""The classifier: logits, noise that stays, and what is put back."""

from typing import Any

import pytest
import torch
from torch import nn

from infoknife.paper.applications.fair_text import FairTextSettings, TextClassifier
from infoknife.paper.applications.fair_text.model import BLOCK, encoded, quiet

TEXTS = ["so good so far", "so bad", "", "żółw"]


def made(encoder: str = "bag", **changes: Any) -> TextClassifier:
    settings = FairTextSettings(encoder=encoder, embedding=8, features=6, hidden=5, **changes)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return TextClassifier.of(["so good", "so bad", "so far"] * 3, settings, labels=3)


@pytest.mark.parametrize("encoder", ["bag", "gru"])
def test_texts_become_logits(encoder: str) -> None:
    model = made(encoder).eval()
    assert model(TEXTS).shape == (4, 3)
    assert model.features(TEXTS).shape == (4, 6)
    assert torch.equal(model(TEXTS), model.head(model.features(TEXTS)))


def test_head_is_the_papers() -> None:
    head = made(dropout=0.3).head
    assert [type(layer) for layer in head] == [nn.Dropout, nn.Linear, nn.LeakyReLU, nn.Dropout, nn.Linear]
    assert {layer.p for layer in head if isinstance(layer, nn.Dropout)} == {0.3}
    assert [(layer.in_features, layer.out_features) for layer in head if isinstance(layer, nn.Linear)] == [
        (6, 5),
        (5, 3),
    ]


def test_without_noise_features_repeat() -> None:
    model = made(noise=0.0).eval()
    before = torch.get_rng_state()
    assert torch.equal(model.features(TEXTS), model.features(TEXTS, seed=5))
    assert torch.equal(torch.get_rng_state(), before)


def test_noise_has_a_seed() -> None:
    model = made(noise=0.5).eval()
    before = torch.get_rng_state()
    assert torch.equal(model.features(TEXTS, seed=1), model.features(TEXTS, seed=1))
    assert torch.equal(model(TEXTS, seed=1), model(TEXTS, seed=1))
    assert not torch.equal(model.features(TEXTS, seed=1), model.features(TEXTS, seed=2))
    assert torch.equal(torch.get_rng_state(), before)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        assert not torch.equal(model.features(TEXTS), model.features(TEXTS))


@pytest.mark.parametrize("training", [True, False])
def test_noise_has_its_deviation_ever_after(training: bool) -> None:
    model = made(noise=0.5).train(training)
    model.encoder.eval()
    rows = model.encoder.read(["so good"] * 5000)
    with torch.no_grad():
        difference = model.noisy(rows, torch.Generator().manual_seed(0)) - model.encoder(rows)
    assert float(difference.std()) == pytest.approx(0.5, abs=0.01)
    assert float(difference.mean()) == pytest.approx(0, abs=0.01)


def test_encoded_is_without_dropout_and_gradient() -> None:
    model = made(noise=0.5, word_dropout=0.5).train()
    rows = model.encoder.read(TEXTS)
    z = encoded(model, rows, seed=4)
    assert model.training
    assert not z.requires_grad
    assert torch.equal(z, model.eval().features(TEXTS, seed=4))


@pytest.mark.parametrize("encoder", ["bag", "gru"])
def test_encoded_in_blocks_is_encoded_at_once(encoder: str) -> None:
    model = made(encoder).eval()
    texts = [TEXTS[i % 4] for i in range(BLOCK + 7)]
    rows = model.encoder.read(texts)
    with torch.no_grad():
        torch.testing.assert_close(encoded(model, rows), model.noisy(rows))


@pytest.mark.parametrize("training", [True, False])
def test_quiet_puts_back_what_was(training: bool) -> None:
    model = made().train(training)
    with quiet(model):
        assert not model.training
        assert not model.head.training
    assert model.training == model.head.training == training
    with pytest.raises(ZeroDivisionError), quiet(model):
        1 / 0
    assert model.training == training


@pytest.mark.parametrize("encoder", ["bag", "gru"])
def test_words_make_it_anew(encoder: str) -> None:
    model = made(encoder, noise=0.1).eval()
    settings = FairTextSettings(encoder=encoder, embedding=8, features=6, hidden=5, noise=0.1)
    again = TextClassifier(model.encoder.words, settings, 3).eval()
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(TEXTS, seed=0), model(TEXTS, seed=0))


def test_one_string_is_no_batch() -> None:
    with pytest.raises(TypeError, match="texts"):
        made()("so good")
