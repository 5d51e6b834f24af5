"""Features: their shapes, what they depend on, and what they do not."""

import pytest
import torch
from torch import Tensor, nn

from infoknife.paper.applications.fair_text import Settings
from infoknife.paper.applications.fair_text.encoders import ENCODERS, BagEncoder, Encoder, GRUEncoder
from infoknife.paper.applications.fair_text.pieces import Pieces
from infoknife.paper.applications.fair_text.vocabulary import Vocabulary

TEXTS = ["so good so far so long", "so bad", "good grief", "", "żółw", "so good"]
LEARNED = ["so good", "so bad", "so far", "good grief", "bad grief", "far so good bad"] * 2


def made(name: str, **changes: float) -> Encoder:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        settings = Settings(encoder=name, embedding=8, features=6, **{"dropout": 0.5, "word_dropout": 0.5} | changes)  # type: ignore[arg-type]
        return ENCODERS[name]().of(LEARNED, settings)


own = pytest.mark.parametrize("name", ["bag", "gru"])


@own
def test_features_have_their_shape(name: str) -> None:
    encoder = made(name)
    z = encoder(encoder.read(TEXTS))
    assert z.shape == (len(TEXTS), encoder.features) == (6, 6)
    assert z.dtype == torch.float32
    assert bool(torch.isfinite(z).all())


@own
def test_they_repeat_without_dropout_and_not_with_it(name: str) -> None:
    encoder = made(name)
    rows = encoder.read(TEXTS)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        assert not torch.equal(encoder(rows), encoder(rows))
    encoder.eval()
    before = torch.get_rng_state()
    assert torch.equal(encoder(rows), encoder(rows))
    assert torch.equal(torch.get_rng_state(), before)


@own
def test_a_text_alone_is_what_it_is_among_others(name: str) -> None:
    """Padding, and so the longest text of a batch, does not matter."""
    encoder = made(name).eval()
    with torch.no_grad():
        together = encoder(encoder.read(TEXTS))
        alone = torch.cat([encoder(encoder.read([text])) for text in TEXTS])
        rows = encoder.read(TEXTS)[torch.tensor([2, 0])]
        assert torch.allclose(together, alone, atol=1e-6)
        assert torch.allclose(encoder(rows), together[[2, 0]], atol=1e-6)


@own
def test_words_matter(name: str) -> None:
    encoder = made(name).eval()
    with torch.no_grad():
        z = encoder(encoder.read(["so good", "so bad", "good so", "so GOOD"]))
    assert not torch.allclose(z[0], z[1])
    assert not torch.allclose(z[0], z[2])
    assert torch.allclose(z[0], z[3], atol=1e-6)


@own
def test_every_parameter_learns(name: str) -> None:
    encoder = made(name).eval()
    encoder(encoder.read(TEXTS)).square().sum().backward()
    assert all(p.grad is not None and bool((p.grad != 0).any()) for p in encoder.parameters())


@own
def test_words_make_it_anew(name: str) -> None:
    encoder = made(name).eval()
    settings = Settings(encoder=name, embedding=8, features=6)
    again = ENCODERS[name]().of_words(encoder.words(), settings).eval()
    again.load_state_dict(encoder.state_dict())
    with torch.no_grad():
        assert torch.equal(again(again.read(TEXTS)), encoder(encoder.read(TEXTS)))
    assert again.words() == encoder.words()
    assert all(isinstance(word, str) for word in encoder.words())


def pooled(encoder: BagEncoder, texts: list[str]) -> Tensor:
    encoder.project = nn.Sequential(nn.Identity())
    return encoder(encoder.read(texts))


def test_a_bag_is_a_sum_over_the_root_of_its_size() -> None:
    encoder = BagEncoder(Pieces(("so", "ok", "so ok")), 4, 2, 0.5).eval()
    weight = encoder.embedding.weight
    expected = [(weight[1] + weight[2] + weight[3]) / 3**0.5, (2 * weight[2]) / 2**0.5, weight[0]]
    torch.testing.assert_close(pooled(encoder, ["so ok", "ok ok", "none"]), torch.stack(expected))


def test_dropped_pieces_are_made_up_for() -> None:
    """On average over what is left out, the sum is that of all pieces."""
    encoder = BagEncoder(Pieces(("a", "b", "c", "d")), 4, 2, 0.25)
    whole = pooled(encoder.eval(), ["a b c d"])
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        drawn = pooled(encoder.train(), ["a b c d"] * 20_000)
    torch.testing.assert_close(drawn.mean(0), whole[0], atol=5e-3, rtol=0)
    assert float(drawn.std(0).min()) > 0.01


def test_no_piece_that_is_left_is_finite_too() -> None:
    encoder = BagEncoder(Pieces(("so", "ok")), 4, 2, 0.999)
    assert bool(torch.isfinite(encoder(encoder.read(["so", "ok", ""] * 5))).all())


def test_gru_is_the_papers() -> None:
    encoder = GRUEncoder(Vocabulary(("so", "ok")), 128, 256, 0.2)
    gru = encoder.gru
    assert (gru.input_size, gru.hidden_size, gru.num_layers, gru.bidirectional, gru.dropout) == (128, 128, 2, True, 0.2)
    assert encoder.embedding.weight.shape == (5, 128)


def test_gru_features_are_the_last_states_of_both_directions() -> None:
    encoder = made("gru").eval()
    assert isinstance(encoder, GRUEncoder)
    rows = encoder.read(["so good so far"])
    with torch.no_grad():
        states, _ = encoder.gru(encoder.embedding(rows))  # 1, L, features
        expected = torch.cat([states[:, -1, :3], states[:, 0, 3:]], 1)
        torch.testing.assert_close(encoder(rows), expected)


def test_gru_halves_are_whole() -> None:
    with pytest.raises(ValueError, match="features is 5; expected an even number, half of them from each direction"):
        GRUEncoder(Vocabulary(("so",)), 4, 5, 0.0)


@own
def test_a_text_of_ten_megabytes(name: str) -> None:
    encoder = made(name).eval()
    with torch.no_grad():
        z = encoder(encoder.read(["so good " * 1_250_000, "so good " * 32]))
    torch.testing.assert_close(z[0], z[1])


def test_the_table_names_them() -> None:
    assert list(ENCODERS) == ["bag", "gru", "minilm"]
    assert issubclass(ENCODERS["minilm"](), Encoder)
