"""The bottleneck over an encoder: shapes, its loss term by term, saving; tokens, and layers that stay as they are."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss
from transformers import (
    AlbertConfig,
    AutoModel,
    BertConfig,
    DistilBertConfig,
    ElectraConfig,
    MPNetConfig,
    PretrainedConfig,
    RobertaConfig,
)

from infoknife import mi
from infoknife.paper.applications.ib_text import METHODS, Bottleneck, BottleneckConfig, PairData, TextPairs
from infoknife.paper.applications.ib_text.model import (
    TokenRows,
    batches,
    can_split,
    freeze,
    lower_states,
    read,
    upper_only,
    with_lower_states,
)
from infoknife.paper.applications.pretrained import tokenizer_of

K, H = 4, 16
OPTIONS: dict[str, Any] = {"bottleneck": K, "num_labels": 3, "weight": 0.1, "pooling": "mean"}
REGRESSION: dict[str, Any] = {"num_labels": 1, "problem_type": "regression", "shift": 2.0, "scale": 3.0}


def over(encoder: str, seed: int = 0, **options: Any) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Bottleneck.over(encoder, **OPTIONS | options)


def texts(rows: int = 6) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    mask = (torch.arange(7) < (3 + torch.arange(rows) % 5)[:, None]).long()
    types = ((torch.arange(7) > 3) * mask).long()
    codes = torch.randint(5, 16, (rows, 7), generator=generator) * mask
    return {"input_ids": codes, "attention_mask": mask, "token_type_ids": types}


def trained_on(model: Any, labels: Tensor, seed: int = 0, given: dict[str, Tensor] | None = None) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return model.train()(**(given or texts(len(labels))), labels=labels)


def linear(part: nn.Module) -> list[tuple[int, int]]:
    return [(layer.in_features, layer.out_features) for layer in part.modules() if isinstance(layer, nn.Linear)]


CLASSES = torch.tensor([0, 1, 2, 0, 1, 2])


@pytest.mark.parametrize("dim", [4, 6, 16])
def test_widths_are_those_of_the_paper(encoder: str, dim: int) -> None:
    """BERT's width of 768 and K = 144 give 612 and 456 (tab:architecture_vibert)."""
    model = over(encoder, bottleneck=dim)
    wide, narrow = (3 * H + dim) // 4, (H + dim) // 2
    assert linear(model.mean) == linear(model.log_variance) == [(H, wide), (wide, narrow), (narrow, dim)]
    assert linear(model.head) == [(dim, 3)]
    sizes = {"hidden_size": 768, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    bert = {"model_type": "bert", "vocab_size": 8, "max_position_embeddings": 4, **sizes}
    large = Bottleneck(BottleneckConfig(encoder=bert, method="vub"))
    assert linear(large.mean) == [(768, 612), (612, 456), (456, 144)]


def test_features_of_a_pair(encoder: str) -> None:
    """The mean of all, distances and products of the texts' own means, each standardised."""
    model, given = over(encoder, pooling="pair").eval(), texts()
    segments = torch.where(torch.arange(7) == 0, -1, given["token_type_ids"])
    states = over(encoder, pooling="first").encoder.eval()(**given).last_hidden_state
    found = model.features(**given, segments=segments)
    assert found.shape == (6, 3 * H)
    standard = nn.LayerNorm(H, elementwise_affine=False)
    for row, (state, mask, own) in enumerate(zip(states, given["attention_mask"].bool(), segments, strict=True)):
        q, u = standard(state[mask].mean(0)), standard(state[mask & (own == 0)].mean(0))
        second = state[mask & (own == 1)]
        v = standard(second.mean(0)) if len(second) else torch.zeros(H)
        torch.testing.assert_close(found[row], torch.cat([q, (u - v).abs(), u * v]) / 2)


def test_features_of_a_pair_need_to_know_the_texts(encoder: str) -> None:
    model, given = over(encoder, pooling="pair").eval(), texts()
    by_type = model(**given).logits
    torch.testing.assert_close(model(**given, segments=given["token_type_ids"]).logits, by_type)
    del given["token_type_ids"]
    with pytest.raises(ValueError, match=r"segments is missing; .* token_type"):
        model(**given)


def test_the_encoder_is_the_pretrained_one(encoder: str) -> None:
    model, whole = over(encoder).eval(), AutoModel.from_pretrained(encoder, local_files_only=True).eval()
    given = texts()
    with torch.no_grad():
        states = whole(**given).last_hidden_state
        features = model.features(given["input_ids"], given["attention_mask"], given["token_type_ids"])
        first = over(encoder, pooling="first").eval().features(*given.values())
    rows = zip(states, given["attention_mask"].sum(1).tolist(), strict=True)
    torch.testing.assert_close(features, torch.stack([row[:length].mean(0) for row, length in rows]))
    torch.testing.assert_close(first, states[:, 0])
    assert model.config.encoder_name == Path(encoder).name


def test_the_posterior_begins_with_the_noise_that_is_asked_for(encoder: str) -> None:
    with torch.no_grad():
        out = over(encoder, noise=0.25).eval()(**texts())
    assert (0.5 * out.log_variance).exp().mean().item() == pytest.approx(0.25, rel=0.25)
    assert float(out.mean.std(0).min()) > 0


def test_in_evaluation_z_is_its_mean_and_nothing_moves(encoder: str) -> None:
    model = over(encoder)
    trained_on(model, CLASSES)
    before = {name: value.clone() for name, value in model.state_dict().items() if isinstance(value, Tensor)}
    with torch.no_grad():
        out, again = model.eval()(**texts(), labels=CLASSES), model(**texts())
    assert torch.equal(out.logits, again.logits)
    assert again.loss is None
    assert out.information is None
    torch.testing.assert_close(out.logits, model.head(out.mean))
    torch.testing.assert_close(out.loss, cross_entropy(out.logits, CLASSES))
    assert all(torch.equal(model.state_dict()[name], value) for name, value in before.items())


def test_a_row_alone_is_what_it_is_among_others_and_outside_texts_need_no_mask(encoder: str) -> None:
    model, given = over(encoder).eval(), texts()
    with torch.no_grad():
        together = model(**given).logits
        lengths = given["attention_mask"].sum(1).tolist()
        alone = [model(**{k: v[i : i + 1, :n] for k, v in given.items()}).logits for i, n in enumerate(lengths)]
        codes = given["input_ids"]
        assert torch.equal(model(codes).logits, model(codes, torch.ones_like(codes)).logits)
    torch.testing.assert_close(torch.cat(alone), together)


def test_training_draws_as_many_samples_as_asked(encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = over(encoder, samples=5)
    seen: list[Tensor] = []

    def head(z: Tensor) -> Tensor:
        seen.append(z)
        return z[..., :3]

    monkeypatch.setattr(model.head, "forward", head)
    out = trained_on(model, CLASSES)
    assert [tuple(z.shape) for z in seen] == [(5, 6, K)]
    drawn = ((seen[0] - out.mean) / (0.5 * out.log_variance).exp()).detach()
    assert drawn.std().item() == pytest.approx(1.0, abs=0.25)
    assert len(set(drawn[:, 0, 0].tolist())) == 5
    torch.testing.assert_close(out.logits, seen[0][..., :3].mean(0))


@pytest.mark.parametrize("method", ["vub", "knife", "mine"])
def test_the_loss_is_the_sum_of_its_terms(encoder: str, method: str) -> None:
    weight, model = 0.3, over(encoder, method=method, weight=0.3, samples=2)
    given, found = texts(), {}
    real = model.compression.forward

    def spied(*rows: Tensor) -> Any:
        found["terms"] = real(*rows)
        return found["terms"]

    model.compression.forward = spied
    out = trained_on(model, CLASSES)
    model.train()
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        features = model.features(*given.values())
        z = model.sample(model.mean(features), model.log_variance(features))
    task = torch.stack([cross_entropy(model.head(one), CLASSES) for one in z]).mean()
    terms = found["terms"]
    torch.testing.assert_close(out.loss, task + weight * terms.information + terms.estimator)
    assert out.information.item() == terms.information.item()
    if method == "vub":
        posterior = torch.cat([out.mean, out.log_variance], 1)
        torch.testing.assert_close(out.information, mi("vub", K, encoder="gaussian")(z[0], posterior).detach())


def test_the_weight_rises_in_a_line(encoder: str) -> None:
    steep, level = over(encoder, method="vub", ramp_steps=4), over(encoder, method="vub", ramp_steps=0)
    parts = []
    for step in range(6):
        with torch.no_grad():
            losses = [trained_on(model, CLASSES, step) for model in (steep, level)]
        term = 0.1 * losses[1].information.item()
        parts.append(1 + (losses[0].loss - losses[1].loss).item() / term)
    assert parts == pytest.approx([0.25, 0.5, 0.75, 1.0, 1.0, 1.0], abs=1e-3)
    assert int(steep.calls) == 6


def test_regression_is_in_the_units_of_its_targets(encoder: str) -> None:
    model, y = over(encoder, **REGRESSION).eval(), torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 0.0])
    assert model.regression
    with torch.no_grad():
        out = model(**texts(), labels=y)
        assert out.logits.shape == (6, 1)
        torch.testing.assert_close(out.logits, 2.0 + 3.0 * model.head(out.mean))
        torch.testing.assert_close(out.loss, mse_loss(out.logits[:, 0], y) / 9.0)
        torch.testing.assert_close(model.values(out.mean), out.logits)
    assert math.isfinite(trained_on(model, y).loss.item())


def test_without_a_bottleneck_the_head_sees_the_features(encoder: str) -> None:
    model = over(encoder, method="plain").eval()
    assert linear(model.head) == [(H, 3)]
    with torch.no_grad():
        out = model(**texts(), labels=CLASSES)
        torch.testing.assert_close(out.logits, model.head(model.features(*texts().values())))
    assert out.mean is out.log_variance is out.information is None
    assert trained_on(model, CLASSES).loss.item() == pytest.approx(out.loss.item())


@pytest.mark.parametrize("method", METHODS)
def test_all_that_learns_is_in_one_group_and_one_loss_reaches_it(encoder: str, method: str) -> None:
    model = over(encoder, method=method, layers=1)
    trained_on(model, CLASSES)
    trained_on(model, CLASSES, seed=1).loss.backward()
    groups = model.parameter_groups(1e-5, 1e-3, 1e-2)
    found = [parameter for group in groups for parameter in group["params"]]
    still = [parameter for parameter in model.parameters() if not parameter.requires_grad]
    assert len(found) == len({*map(id, found)})
    assert {*map(id, found)} == {*map(id, model.parameters())} - {*map(id, still)}
    assert all(parameter.grad is not None for parameter in found)
    assert all(parameter.grad is None for parameter in still)
    assert [group["lr"] for group in groups[:2]] == [1e-5, 1e-3]
    assert {group["lr"] for group in groups[2:]} == ({1e-2} if method not in ("plain", "none", "vub") else set())
    assert len(groups[0]["params"]) == 16, "one layer of the encoder"


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_states_of_the_lower_layers_give_the_same(encoder: str, layers: int) -> None:
    model, given = over(encoder, layers=layers), texts()
    states = lower_states(model.encoder.eval(), layers, **given)
    mask = given["attention_mask"]
    with torch.no_grad():
        whole, upper = model.eval()(**given), model(states=states, attention_mask=mask)
    torch.testing.assert_close(upper.logits, whole.logits)
    losses = [trained_on(model, CLASSES, given=rows) for rows in (given, {"states": states, "attention_mask": mask})]
    torch.testing.assert_close(losses[0].mean, losses[1].mean)


def test_dropout_is_that_of_the_settings(encoder: str) -> None:
    drops = {part.p for part in over(encoder, dropout=0.3).encoder.modules() if isinstance(part, nn.Dropout)}
    assert drops == {0.3}
    model = over(encoder, dropout=0.0)
    given = texts()
    assert torch.equal(model.train().features(*given.values()), model.eval().features(*given.values()))


@pytest.mark.parametrize("method", ["plain", "vub", "knife", "mine"])
def test_it_can_be_saved_and_loaded(
    encoder: str, method: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model = over(encoder, method=method, layers=2, ramp_steps=9, dropout=0.1, id2label={0: "a", 1: "b", 2: "c"})
    for seed in range(3):
        trained_on(model, CLASSES, seed)
    capfd.readouterr()
    model.eval().save_pretrained(tmp_path)
    again = Bottleneck.from_pretrained(tmp_path)
    assert "MISSING" not in "".join(capfd.readouterr())
    assert not again.training
    by_auto = AutoModel.from_pretrained(tmp_path)
    assert isinstance(by_auto, Bottleneck)
    with torch.no_grad():
        for loaded in (again, by_auto):
            assert torch.equal(loaded(**texts()).logits, model(**texts()).logits)
    assert int(again.calls) == int(model.calls) == (0 if method == "plain" else 3)
    ours, theirs = (dict(each.named_parameters()) for each in (model, again))
    assert {name: p.requires_grad for name, p in ours.items()} == {name: p.requires_grad for name, p in theirs.items()}
    drops = {part.p for part in again.encoder.modules() if isinstance(part, nn.Dropout)}
    assert drops == {0.1}
    assert again.config.id2label == {0: "a", 1: "b", 2: "c"}
    if method != "plain":
        losses = [trained_on(each, CLASSES, seed=7) for each in (model, again)]
        assert losses[0].loss.item() == losses[1].loss.item(), "the estimator is as it was"


# tokens and layers


CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def tokenizer(encoder: str) -> object:
    return tokenizer_of(encoder)


def text(length: int) -> str:
    return " ".join(["tea"] * length)


@pytest.mark.parametrize("second", [True, False])
def test_what_is_too_long_is_cut_and_counted(tokenizer: object, second: bool, caplog: pytest.LogCaptureFixture) -> None:
    lengths = (1, 4, 5, 6, 2000)
    first = tuple(text(length) for length in lengths)
    rows = read(TextPairs(first, ("it was",) * 5 if second else None, torch.arange(5)), tokenizer, 9 if second else 7)
    special = 5 if second else 2  # [CLS] and [SEP], and the second text with its own
    assert rows.lengths.tolist() == [special + min(length, 4 if second else 5) for length in lengths]
    assert rows.truncated == (3 if second else 2)
    assert torch.equal(rows.y, torch.arange(5))
    assert caplog.records == [], "and there is no warning"


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
    kept = with_lower_states(rows, model.encoder, 2, CPU)
    assert model.encoder.training
    assert set(kept.columns) == {"states", "segments"}
    assert torch.equal(kept.lengths, rows.lengths)
    assert (kept.truncated, torch.equal(kept.y, rows.y)) == (0, True)
    chosen = torch.tensor([7, 0, 33])
    with torch.no_grad():
        whole, upper = (model.eval()(**each.batch(chosen, CPU)).logits for each in (rows, kept))
    torch.testing.assert_close(upper, whole)


# layers


SIZES: dict[str, Any] = {"vocab_size": 20, "max_position_embeddings": 24}
BERT: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32}
CONFIGS = {
    "bert": BertConfig(**SIZES, **BERT),
    "roberta": RobertaConfig(**SIZES, **BERT),
    "electra": ElectraConfig(embedding_size=16, **SIZES, **BERT),
    "mpnet": MPNetConfig(**SIZES, **BERT),
    "distilbert": DistilBertConfig(dim=16, n_layers=3, n_heads=2, hidden_dim=32, **SIZES),
}
NOT_SPLIT = {  # one layer for all; embeddings of another width
    "albert": AlbertConfig(embedding_size=8, **SIZES, **BERT),
    "electra-narrow": ElectraConfig(embedding_size=8, **SIZES, **BERT),
}


def model(config: PretrainedConfig) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        make: Any = AutoModel.from_config
        return make(config).eval()


def inputs() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1)
    mask = (torch.arange(7) < torch.tensor([7, 4, 5, 2])[:, None]).long()
    return {"input_ids": torch.randint(2, 20, (4, 7), generator=generator), "attention_mask": mask}


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_lower_and_upper_layers_are_the_whole(kind: str, layers: int) -> None:
    encoder, given = model(CONFIGS[kind]), inputs()
    assert can_split(encoder, layers)
    with torch.no_grad():
        whole = encoder(**given).last_hidden_state
        states = lower_states(encoder, layers, **given)
        with upper_only(encoder, layers):
            found = encoder(inputs_embeds=states, attention_mask=given["attention_mask"]).last_hidden_state
        again = encoder(**given).last_hidden_state
    own = given["attention_mask"].bool()
    torch.testing.assert_close(found[own], whole[own])
    assert torch.equal(again, whole), "the encoder is put together again"


@pytest.mark.parametrize("kind", NOT_SPLIT)
def test_what_cannot_be_split_is_found_out(kind: str) -> None:
    encoder, given = model(NOT_SPLIT[kind]), inputs()
    with torch.no_grad():
        before = encoder(**given).last_hidden_state
        assert not can_split(encoder, 2)
        assert torch.equal(encoder(**given).last_hidden_state, before)


@pytest.mark.parametrize("kind", ["bert", "roberta", "electra", "distilbert", "electra-narrow"])
@pytest.mark.parametrize(("layers", "marks"), [(2, (".1.", ".2.")), (3, (".0.", ".1.", ".2."))])
def test_the_uppermost_layers_learn(kind: str, layers: int, marks: tuple[str, ...]) -> None:
    encoder = model((CONFIGS | NOT_SPLIT)[kind])
    freeze(encoder, layers)
    names = {name for name, parameter in encoder.named_parameters() if parameter.requires_grad}
    assert names == {name for name, _ in encoder.named_parameters() if any(mark in name for mark in marks)}
    assert names


def test_an_encoder_stays_whole_and_in_training() -> None:
    encoder, given = model(CONFIGS["bert"]), inputs()
    before = encoder(**given).last_hidden_state
    with pytest.raises(RuntimeError, match="inside"), upper_only(encoder, 1):
        raise RuntimeError("inside")
    assert torch.equal(encoder(**given).last_hidden_state, before)
    assert can_split(encoder.train(), 1), "although there is dropout"
    assert encoder.training


@pytest.mark.parametrize(
    ("kind", "layers", "message"),
    [("bert", 4, "layers is 4; expected at most 3"), ("albert", 1, "AlbertModel has no list of 3 layers")],
)
def test_layers_that_cannot_be(kind: str, layers: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        freeze(model((CONFIGS | NOT_SPLIT)[kind]), layers)
