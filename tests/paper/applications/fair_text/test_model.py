"""The classifier: logits and noise that stays; features of its encoders, MiniLM with a tiny transformer."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from infoknife.paper.applications.fair_text import FairTextSettings, TextClassifier, model
from infoknife.paper.applications.fair_text.model import (
    BLOCK,
    ENCODERS,
    LENGTH,
    MINILM_WIDTH,
    BagEncoder,
    GRUEncoder,
    MiniLMEncoder,
    TextEncoder,
    encode,
)
from infoknife.paper.applications.pretrained import PACKAGE, encoder_of, tokenizer_of
from infoknife.paper.applications.run import evaluating

TEXTS = ["so good so far", "so bad", "", "żółw"]


def made(encoder: str = "bag", **changes: Any) -> TextClassifier:
    settings = FairTextSettings(encoder=encoder, embedding=8, features=6, hidden=5, **changes)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return TextClassifier.of(["so good", "so bad", "so far"] * 3, settings, labels=3)


@pytest.mark.parametrize("encoder", ["bag", "gru"])
def test_texts_become_logits(encoder: str) -> None:
    model = made(encoder, noise=0.1).eval()
    assert model(TEXTS).shape == (4, 3)
    assert model.features(TEXTS).shape == (4, 6)
    assert torch.equal(model(TEXTS, seed=1), model.head(model.features(TEXTS, seed=1)))
    settings = FairTextSettings(encoder=encoder, embedding=8, features=6, hidden=5, noise=0.1)
    again = TextClassifier(model.encoder.words, settings, 3).eval()
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(TEXTS, seed=0), model(TEXTS, seed=0)), "its words make it anew"
    with pytest.raises(TypeError, match="texts"):
        model("so good")


def test_head_is_the_papers() -> None:
    head = made(dropout=0.3).head
    assert [type(layer) for layer in head] == [nn.Dropout, nn.Linear, nn.LeakyReLU, nn.Dropout, nn.Linear]
    assert {layer.p for layer in head if isinstance(layer, nn.Dropout)} == {0.3}
    sizes = [(layer.in_features, layer.out_features) for layer in head if isinstance(layer, nn.Linear)]
    assert sizes == [(6, 5), (5, 3)]


def test_noise_has_a_seed_and_without_it_features_repeat() -> None:
    before, silent, model = torch.get_rng_state(), made(noise=0.0).eval(), made(noise=0.5).eval()
    torch.set_rng_state(before)
    assert torch.equal(silent.features(TEXTS), silent.features(TEXTS, seed=5))
    assert torch.equal(model.features(TEXTS, seed=1), model.features(TEXTS, seed=1))
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


@pytest.mark.parametrize("encoder", ["bag", "gru"])
def test_encoded_is_without_dropout_and_gradient_and_in_blocks(encoder: str) -> None:
    model = made(encoder, noise=0.5, word_dropout=0.5).train()
    texts = [TEXTS[i % 4] for i in range(BLOCK + 7)]
    z = encode(model, model.encoder.read(texts), seed=4)
    assert model.training
    assert not z.requires_grad
    torch.testing.assert_close(z, model.eval().features(texts, seed=4).detach())


@pytest.mark.parametrize("training", [True, False])
def test_evaluating_puts_back_what_was(training: bool) -> None:
    model = made().train(training)
    with evaluating(model):
        assert not model.training
        assert not model.head.training
    assert model.training == model.head.training == training
    with pytest.raises(ZeroDivisionError), evaluating(model):
        1 / 0
    assert model.training == model.head.training == training


# encoders


SENTENCES = ["so good so far so long", "so bad", "good grief", "", "żółw", "so good"]
LEARNED = ["so good", "so bad", "so far", "good grief", "bad grief", "far so good bad"] * 2
KINDS = ("bag", "gru", "minilm", "fine-tuned")
every = pytest.mark.parametrize("name", KINDS)


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
        self.embedding, self.drop = nn.Embedding(30, MINILM_WIDTH), nn.Dropout(0.1)
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

    monkeypatch.setattr(model, "tokenizer_of", lambda name: Tokenizer())
    monkeypatch.setattr(model, "encoder_of", tiny)


def settings(name: str, **changes: Any) -> FairTextSettings:
    kind = {"encoder": "minilm", "fine_tune": True} if name == "fine-tuned" else {"encoder": name}
    return FairTextSettings(**{"embedding": 8, "features": 6, "dropout": 0.5, "word_dropout": 0.5, **kind, **changes})


def built(name: str) -> TextEncoder:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        kind = ENCODERS[settings(name).encoder]
        return kind(kind.words_of(LEARNED), settings(name))


@every
def test_features_repeat_without_dropout_and_words_make_an_encoder_anew(name: str) -> None:
    encoder = built(name)
    rows = encoder.read(SENTENCES)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        assert not torch.equal(encoder(rows), encoder(rows))
    encoder.eval()
    before = torch.get_rng_state()
    z = encoder(rows)
    assert z.shape == (len(SENTENCES), encoder.features) == (6, 6)
    assert bool(torch.isfinite(z).all())
    assert torch.equal(z, encoder(rows))
    assert torch.equal(torch.get_rng_state(), before)
    again = type(encoder)(encoder.words, settings(name)).eval()
    again.load_state_dict(encoder.state_dict())
    assert torch.equal(again(again.read(SENTENCES)), z)
    assert all(isinstance(word, str) for word in encoder.words)
    assert bool(encoder.words) == (name in ("bag", "gru"))


@every
def test_a_text_alone_is_what_it_is_among_others(name: str) -> None:
    """Padding, and so the longest text of a batch, does not matter."""
    encoder = built(name).eval()
    many = [SENTENCES[i % 6] + " so" * (i % 7) for i in range(80)]  # more than are read at once
    with torch.no_grad():
        together = encoder(encoder.read(many))
        alone = torch.cat([encoder(encoder.read([text])) for text in many])
        torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(encoder(encoder.read(many)[torch.tensor([2, 0])]), together[[2, 0]])


@pytest.mark.parametrize("name", ["bag", "gru"])
def test_words_matter(name: str) -> None:
    encoder = built(name).eval()
    with torch.no_grad():
        z = encoder(encoder.read(["so good", "so bad", "good so", "so GOOD"]))
    assert not torch.allclose(z[0], z[1])
    assert not torch.allclose(z[0], z[2])
    assert torch.allclose(z[0], z[3], atol=1e-6)


@every
def test_what_learns(name: str) -> None:
    encoder = built(name).eval()
    encoder(encoder.read(SENTENCES)).square().sum().backward()
    still = {key for key, p in encoder.named_parameters() if p.grad is None or not bool((p.grad != 0).any())}
    assert still == ({"transformer.embedding.weight"} if name == "minilm" else set())


def pooled(encoder: BagEncoder, texts: list[str]) -> Tensor:
    encoder.project = nn.Sequential(nn.Identity())
    return encoder(encoder.read(texts))


def test_a_bag_is_a_sum_over_the_root_of_its_size() -> None:
    encoder = BagEncoder(("so", "ok", "so ok"), settings("bag")).eval()
    weight = encoder.embedding.weight
    expected = [(weight[1] + weight[2] + weight[3]) / 3**0.5, (2 * weight[2]) / 2**0.5, weight[0]]
    torch.testing.assert_close(pooled(encoder, ["so ok", "ok ok", "none"]), torch.stack(expected))


def test_dropped_pieces_are_made_up_for() -> None:
    """On average over what is left out, the sum is that of all pieces."""
    encoder = BagEncoder(("a", "b", "c", "d"), settings("bag", word_dropout=0.25))
    whole = pooled(encoder.eval(), ["a b c d"])
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        drawn = pooled(encoder.train(), ["a b c d"] * 20_000)
    torch.testing.assert_close(drawn.mean(0), whole[0], atol=5e-3, rtol=0)
    assert float(drawn.std(0).max()) > 0.01
    rare = BagEncoder(("so", "ok"), settings("bag", word_dropout=0.999))
    assert bool(torch.isfinite(rare(rare.read(["so", "ok", ""] * 5))).all())


def test_gru_is_the_papers() -> None:
    gru = GRUEncoder(("so", "ok"), FairTextSettings())
    assert (gru.gru.input_size, gru.gru.hidden_size, gru.gru.num_layers, gru.gru.dropout) == (128, 128, 2, 0.2)
    assert gru.embedding.weight.shape == (5, 128)
    encoder = built("gru").eval()
    assert isinstance(encoder, GRUEncoder)
    rows = encoder.read(["so good so far"])
    with torch.no_grad():
        states, _ = encoder.gru(encoder.embedding(rows))  # 1, L, features
        torch.testing.assert_close(encoder(rows), torch.cat([states[:, -1, :3], states[:, 0, 3:]], 1))


def test_frozen_numbers_are_without_dropout_and_training_goes_on() -> None:
    encoder = built("minilm").train()
    assert isinstance(encoder, MiniLMEncoder)
    assert torch.equal(encoder.read(SENTENCES), encoder.read(SENTENCES))
    assert encoder.transformer.training
    with torch.no_grad():
        frozen, tuned = (each(each.read(SENTENCES)) for each in (encoder.eval(), built("fine-tuned").eval()))
    torch.testing.assert_close(frozen, tuned)


def test_the_mean_is_over_the_words_and_padding_is_cut() -> None:
    encoder = built("minilm")
    assert isinstance(encoder, MiniLMEncoder)
    (row,) = encoder.read(["ok"])
    codes = torch.tensor([[1, 5, 2]])
    with torch.no_grad():
        states = encoder.transformer.eval()(codes, torch.ones_like(codes)).last_hidden_state
    torch.testing.assert_close(row, states[0].mean(0))
    encoder.transformer.widths.clear()
    encoder.read(["so " * 200] + ["ok"] * 64 + ["so ok"] * 10)
    assert encoder.transformer.widths == [3, LENGTH], "texts of like length go together"


@pytest.mark.slow
def test_the_real_one_knows_what_is_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip(PACKAGE)
    monkeypatch.setattr(model, "tokenizer_of", tokenizer_of)
    monkeypatch.setattr(model, "encoder_of", encoder_of)
    texts = ["the cat sleeps on the sofa", "a kitten naps on the couch", "the stock market fell today"]
    rows = built("minilm").read(texts)
    near, far = (torch.cosine_similarity(rows[0], rows[i], dim=0) for i in (1, 2))
    assert float(near) > float(far) + 0.3
