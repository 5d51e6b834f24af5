"""Lower and upper layers of encoders of several kinds give together what the whole gives."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
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

from infoknife.paper.applications.ib_text.layers import freeze, lower_states, splits, upper_only

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


def learning(encoder: nn.Module) -> set[str]:
    return {name for name, parameter in encoder.named_parameters() if parameter.requires_grad}


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_lower_and_upper_layers_are_the_whole(kind: str, layers: int) -> None:
    encoder, given = model(CONFIGS[kind]), inputs()
    assert splits(encoder, layers)
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
        assert not splits(encoder, 2)
        assert torch.equal(encoder(**given).last_hidden_state, before)


@pytest.mark.parametrize("kind", ["bert", "roberta", "electra", "distilbert", "electra-narrow"])
def test_the_uppermost_layers_learn(kind: str) -> None:
    encoder = model((CONFIGS | NOT_SPLIT)[kind])
    freeze(encoder, 2)
    names = learning(encoder)
    assert names == {name for name, _ in encoder.named_parameters() if ".1." in name or ".2." in name}
    assert names
    freeze(encoder, 3)
    assert len(learning(encoder)) == 3 * len(names) // 2
    assert not any("embeddings" in name or "pooler" in name for name in learning(encoder))


def test_an_encoder_in_training_stays_so() -> None:
    encoder = model(CONFIGS["bert"]).train()
    assert splits(encoder, 1), "although there is dropout"
    assert encoder.training


def test_an_error_inside_leaves_the_encoder_whole() -> None:
    encoder, given = model(CONFIGS["bert"]), inputs()
    before = encoder(**given).last_hidden_state
    with pytest.raises(RuntimeError, match="inside"), upper_only(encoder, 1):
        raise RuntimeError("inside")
    assert torch.equal(encoder(**given).last_hidden_state, before)


def test_too_many_layers_are_refused() -> None:
    with pytest.raises(ValueError, match="layers is 4; expected at most 3, as many as the encoder has"):
        freeze(model(CONFIGS["bert"]), 4)


def test_an_encoder_without_a_list_of_layers_is_refused() -> None:
    with pytest.raises(ValueError, match="AlbertModel has no list of 3 layers; leave layers out"):
        freeze(model(NOT_SPLIT["albert"]), 1)
