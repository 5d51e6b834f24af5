"""Accuracies by hand, what goes into an audit, and what is written of it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from infoknife.paper.applications.fair_text import Corpus, Settings, TextClassifier, Texts, judge
from infoknife.paper.applications.fair_text.judge import MOST, accuracy, check_held_out, leak, write_audit
from infoknife.paper.applications.fair_text.synthetic import synthetic

NONE = Texts((), torch.empty(0), torch.empty(0))
CORPUS = Corpus("own", NONE, NONE, NONE, ("no", "yes"), ("north", "south", "west"))
PROBES = (SimpleNamespace(name="linear", balanced_accuracy=0.4), SimpleNamespace(name="network", balanced_accuracy=0.6))


class Asked:
    """Stands for the audit, and keeps what it was asked."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, Any]] = []
        self.how: list[dict[str, Any]] = []

    def __call__(self, z: Any, s: Any, **how: Any) -> Any:
        self.rows.append((z, s))
        self.how.append(how)
        numbers = {"chance": 1 / 3, "entropy": 1.1, "information": SimpleNamespace(value=0.2, stderr=0.01)}
        return SimpleNamespace(strongest=PROBES[1], probes=PROBES, interval=lambda: (0.1, 0.3), **numbers)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    stand_in = Asked()
    monkeypatch.setattr(judge, "audit", stand_in)
    return stand_in


def test_accuracy_counts() -> None:
    model = TextClassifier.of(["so"], Settings(encoder="bag", features=2), labels=2).train()
    model.head = nn.Sequential(nn.Dropout(0.9), nn.Identity())
    z = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [0.0, 3.0]])
    assert accuracy(model, z, torch.tensor([0, 1, 0, 0])) == 0.75
    assert accuracy(model, z, torch.tensor([0, 1, 0, 1])) == 1
    assert model.training


def test_numbers_are_the_audits(asked: Asked) -> None:
    z, s = torch.randn(30, 2, generator=torch.Generator().manual_seed(0)), torch.arange(30) % 3
    found, numbers = leak(z, s, CORPUS, seed=5)
    assert found.chance == 1 / 3
    assert numbers == {
        "private_accuracy": 0.6,
        "private_chance": 1 / 3,
        "probe": "network",
        "probes": {"linear": 0.4, "network": 0.6},
        "leak": 0.2,
        "leak_stderr": 0.01,
        "leak_interval": [0.1, 0.3],
        "private_entropy": 1.1,
        "held_out": 30,
    }
    ((rows, names),) = asked.rows
    assert np.array_equal(rows, z.numpy())
    assert names.tolist() == ["north", "south", "west"] * 10
    assert asked.how == [{"folds": 5, "seed": 5, "names": ("the private attribute", "the label")}]


def test_so_many_rows_at_most_and_the_seed_says_which(asked: Asked) -> None:
    n = MOST + 500
    z, s = torch.arange(float(n)).unsqueeze(1), torch.arange(n) % 3
    sizes = [leak(z, s, CORPUS, seed=seed)[1]["held_out"] for seed in (0, 0, 1)]
    assert sizes == [MOST] * 3
    (first, names), (again, _), (other, _) = asked.rows
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert np.array_equal(first, np.unique(first)[:, None]), "each once, in their order"
    assert names.tolist() == [CORPUS.privates[int(i) % 3] for i in first[:, 0]]


def test_the_global_generator_stays(asked: Asked) -> None:
    before = torch.get_rng_state()
    leak(torch.zeros(9, 1), torch.arange(9) % 3, CORPUS)
    assert torch.equal(torch.get_rng_state(), before)


def test_page_and_features_are_written(tmp_path: Path) -> None:
    z, s, y = torch.randn(6, 2, generator=torch.Generator().manual_seed(0)), torch.arange(6) % 3, torch.arange(6) % 2
    page: Any = SimpleNamespace(to_html=lambda: "<p>ä</p>")
    write_audit(tmp_path, page, z, s, y)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["audit.html", "features.npz"]
    assert (tmp_path / "audit.html").read_text(encoding="utf-8") == "<p>ä</p>"
    with np.load(tmp_path / "features.npz") as found:
        assert sorted(found) == ["s", "y", "z"]
        assert all(np.array_equal(found[name], value.numpy()) for name, value in (("z", z), ("s", s), ("y", y)))


def test_too_few_held_out_texts_are_said_before_training() -> None:
    corpus = synthetic(rows=24)
    with pytest.raises(ValueError, match="4 held-out texts are of the private class 'dialect 0'; expected at least 5"):
        check_held_out(corpus)
