"""A transformer of a few numbers, and sentences that it can learn from."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertModel, BertTokenizer

from infoknife.paper.applications.ib_text import PairData, TextPairs

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
MOODS, THINGS = ("bad", "good"), ("tea", "soup", "film", "song", "walk", "bread")
WORDS = (*SPECIAL, *MOODS, *THINGS, "the", "was", "it")
ROWS = 40


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a BERT of width 16 with three layers, and its tokenizer."""
    return tiny_encoder(str(tmp_path_factory.mktemp("tiny-bert")))


def tiny_encoder(folder: str) -> str:
    """Write it."""
    sizes: dict[str, Any] = {
        "hidden_size": 16,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    config = BertConfig(vocab_size=len(WORDS), max_position_embeddings=24, initializer_range=0.2, **sizes)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)  # type: ignore[no-untyped-call]
    BertTokenizer(vocab={word: code for code, word in enumerate(WORDS)}).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def pairs() -> PairData:
    """Pairs whose class is the mood of the second text; three splits."""
    return tiny_pairs()


def tiny_pairs() -> PairData:
    """Make them."""
    train, validation, test = (_pairs(n, start) for start, n in enumerate((ROWS, 16, 12)))
    return PairData("moods", train, validation, test, MOODS, ("accuracy", "f1"), ("made up",))


@pytest.fixture(scope="session")
def values() -> PairData:
    """Pairs whose value is how often the first text says good; no test."""
    train, validation = (_values(n, start) for start, n in enumerate((ROWS, 16)))
    return PairData("counts", train, validation, None, None, ("pearson", "spearman"))


@pytest.fixture(scope="session")
def single(pairs: PairData) -> PairData:
    """One text a row, with the same classes; no test."""
    train, validation = (TextPairs(part.second or (), None, part.y) for part in (pairs.train, pairs.validation))
    return PairData("single", train, validation, None, MOODS, ("accuracy",))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a run leaves what it has."""
    return tmp_path / "run"


def _pairs(rows: int, start: int) -> TextPairs:
    codes = [(i + start) % 2 for i in range(rows)]
    first = tuple(f"the {THINGS[i // 2 % 6]} was " + "it " * (i // 2 % 4) for i in range(rows))  # says nothing of them
    return TextPairs(first, tuple(f"{MOODS[code]} it was" for code in codes), torch.tensor(codes))


def _values(rows: int, start: int) -> TextPairs:
    counts = [(i + start) % 5 for i in range(rows)]
    first = tuple("the tea was " + "good " * count for count in counts)
    return TextPairs(first, ("it was",) * rows, torch.tensor(counts, dtype=torch.float32))
