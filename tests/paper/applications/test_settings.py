"""Settings of the three applications: the paper's numbers, presets, identities, and what is refused."""

import json
from dataclasses import dataclass, field, make_dataclass
from typing import Any

import pytest
import torch

from infoknife.paper.applications.domain_adaptation import AdaptationSettings
from infoknife.paper.applications.fair_text import CORPORA, CorpusColumns, FairTextSettings
from infoknife.paper.applications.ib_text import BottleneckSettings, PairColumns
from infoknife.paper.applications.settings import RunSettings, digest, hashed

KINDS: list[type[RunSettings]] = [AdaptationSettings, FairTextSettings, BottleneckSettings]
every_kind = pytest.mark.parametrize("kind", KINDS)
OWN: dict[str, Any] = {"corpus": "own", "label": "mood", "private": "age"}
NAN = float("nan")


def test_the_papers_numbers() -> None:
    images = AdaptationSettings.preset("paper", "knife")
    assert (images.channels, images.steps, images.batch_size, images.lr) == (64, 25_000, 128, 1e-3)
    assert (images.size, images.sigma, images.dropout, images.weight, images.joint) == (32, 1.0, 0.5, 0.1, True)
    assert images.estimator["components"] == 128
    texts = FairTextSettings.preset("paper", "knife")
    assert (texts.encoder, texts.embedding, texts.features, texts.hidden) == ("gru", 128, 256, 256)
    assert (texts.steps, texts.batch_size, texts.lr, texts.warm_up) == (30_000, 128, 1e-4, 1000)
    assert (texts.dropout, texts.weight_decay, texts.noise, texts.weight) == (0.2, 0.01, 0.0, 1.0)
    assert (texts.select, texts.estimator) == ("lowest-information", {"preset": "paper"})
    pairs = BottleneckSettings.preset("paper", "knife")
    assert (pairs.bottleneck, pairs.samples, pairs.layers, pairs.pooling) == (144, 5, None, "first")
    assert (pairs.epochs, pairs.batch_size, pairs.lr, pairs.ramp, pairs.weight) == (6, 32, 2e-5, 1.0, 1e-5)


def test_methods_have_fields_of_their_own() -> None:
    weights = [FairTextSettings.preset("cpu", name).weight for name in ("knife", "mine")]
    assert weights == [3.0, 1.0]
    assert AdaptationSettings.preset("cpu", "knife").estimator_lr == 0.03
    poolings = [BottleneckSettings.preset("cpu", name).pooling for name in ("plain", "knife")]
    assert poolings == ["mean", "pair"]
    assert BottleneckSettings.preset("cpu", "plain", pooling="pair").pooling == "pair"


@every_kind
def test_arguments_and_changes_are_json_and_come_back(kind: type[RunSettings]) -> None:
    for preset in kind.PRESETS:
        for method in kind.CHOICES["method"]:
            settings = kind.preset(preset, method, seed=7, estimator={"components": 3})
            for found in (settings.arguments(), settings.changed()):
                assert kind.of(json.loads(json.dumps(found)) | {"unknown": 1}) == settings
            assert settings.estimator["components"] == 3
    assert kind.preset("cpu", "knife").estimator.get("components") is None, "the preset is as it was"
    assert kind().changed() == {}
    assert hash(kind(estimator={"some": 3})) == hash(kind(estimator={"some": 3}))


@every_kind
def test_a_new_option_with_a_default_changes_no_identity(kind: type[RunSettings]) -> None:
    options = [("some_new_option", float, field(default=0.5))]
    newer = make_dataclass("Newer", options, bases=(kind,), frozen=True, kw_only=True)
    old, new = (each.preset("cpu", "knife", seed=3).identity("data") for each in (kind, newer))  # type: ignore[attr-defined]
    assert hashed(old) == hashed(new)
    other = newer.preset("cpu", "knife", seed=3, some_new_option=1.0)  # type: ignore[attr-defined]
    assert hashed(other.identity("data")) != hashed(old)


@every_kind
def test_the_data_are_part_of_the_identity(kind: type[RunSettings]) -> None:
    assert hashed(kind().identity("a")) == hashed(kind().identity("a")) != hashed(kind().identity("b"))


def test_digests_tell_data_apart() -> None:
    x = torch.arange(6)
    parts = [(x,), (x.reshape(2, 3),), (x.float(),), (x + 1,), (["so", "ok"],), (["sook"],), (("so",), ["ok"])]
    assert len({digest(*part) for part in parts}) == len(parts)
    assert digest(x.reshape(2, 3).T.contiguous().T) == digest(x.reshape(2, 3))


def test_columns() -> None:
    assert FairTextSettings().columns is None
    assert all(FairTextSettings(corpus=name).columns == columns for name, columns in CORPORA.items())
    own = FairTextSettings(**OWN, text="tweet", split="part", strip=["rt"], balance=True)  # type: ignore[arg-type]
    assert own.columns == CorpusColumns("mood", "age", "tweet", "part", ("rt",), True)
    assert BottleneckSettings().columns is None
    pairs = BottleneckSettings(task="own", label="mood", first="tweet", second=None, split="part", regression=True)
    assert pairs.columns == PairColumns("mood", "tweet", None, "part", True)


@dataclass(frozen=True)
class Wrong:
    """What a kind refuses, and the name that the error begins with."""

    kind: type[RunSettings]
    changes: dict[str, Any]
    name: str


WRONG = [
    *(Wrong(kind, {name: 0}, name) for kind in KINDS for name in ("batch_size", "lr")),
    *(Wrong(kind, {"weight": value}, "weight") for kind in KINDS for value in (-1, NAN)),
    *(Wrong(kind, {"seed": -1}, "seed") for kind in KINDS),
    *(Wrong(kind, {"method": "foo"}, "method") for kind in KINDS),
    *(Wrong(AdaptationSettings, {name: 0}, name) for name in ("steps", "every", "channels")),
    Wrong(AdaptationSettings, {"size": 3}, "size"),
    Wrong(AdaptationSettings, {"dropout": 1.0}, "dropout"),
    Wrong(AdaptationSettings, {"schedule": "steep"}, "schedule"),
    *(Wrong(FairTextSettings, {name: 0}, name) for name in ("embedding", "features", "hidden", "steps", "every")),
    *(Wrong(FairTextSettings, {name: NAN}, name) for name in ("dropout", "word_dropout", "average", "ramp")),
    *(Wrong(FairTextSettings, {name: -1}, name) for name in ("noise", "weight_decay", "warm_up", "at_most")),
    *(Wrong(FairTextSettings, {name: "foo"}, name) for name in ("corpus", "select", "encoder")),
    Wrong(FairTextSettings, {"features": 5}, "features"),
    Wrong(FairTextSettings, {"corpus": "own", "label": "mood"}, "corpus"),
    Wrong(FairTextSettings, {"label": "mood", "private": "age"}, "corpus"),
    Wrong(FairTextSettings, {"corpus": "dial-mention", "balance": True}, "corpus"),
    Wrong(FairTextSettings, {"fine_tune": True}, "fine_tune"),
    *(Wrong(BottleneckSettings, {name: 0}, name) for name in ("length", "bottleneck", "samples", "epochs", "layers")),
    *(Wrong(BottleneckSettings, {name: 1.5}, name) for name in ("warm_up", "ramp", "dropout")),
    *(Wrong(BottleneckSettings, {name: -1}, name) for name in ("weight_decay", "patience", "least_steps")),
    *(Wrong(BottleneckSettings, {name: 0.0}, name) for name in ("head_lr", "clip", "noise")),
    *(Wrong(BottleneckSettings, {name: "foo"}, name) for name in ("task", "pooling", "precision")),
    Wrong(BottleneckSettings, {"task": "own"}, "task"),
    Wrong(BottleneckSettings, {"label": "mood"}, "task"),
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: f"{wrong.kind.APPLICATION}-{wrong.changes}")
def test_what_cannot_be_run_is_refused(wrong: Wrong) -> None:
    with pytest.raises(ValueError, match=f"^{wrong.name} is "):
        wrong.kind(**wrong.changes)


@every_kind
@pytest.mark.parametrize("changes", [{"batch_size": 2.5}, {"batch_size": True}, {"lr": "high"}, {"estimator": 3}])
def test_types_are_checked(kind: type[RunSettings], changes: dict[str, Any]) -> None:
    (name,) = changes
    with pytest.raises(TypeError, match=f"^{name} is "):
        kind(**changes)


@every_kind
@pytest.mark.parametrize(
    ("preset", "method", "changes"), [("gpu", "knife", {}), ("cpu", "foo", {}), ("cpu", "knife", {"stepz": 3})]
)
def test_unknown_names_are_refused(kind: type[RunSettings], preset: str, method: str, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"preset|method|stepz"):
        kind.preset(preset, method, **changes)


def test_numbers_at_the_edge() -> None:
    assert FairTextSettings(at_most=0.0, weight=0.0, noise=0.0, warm_up=0).at_most == 0.0
    assert FairTextSettings(encoder="minilm", fine_tune=True, features=5).fine_tune
