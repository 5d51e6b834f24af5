"""How good a classifier is, and what its features tell of the private attribute."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from infoknife import Audit, audit
from infoknife.atomic import written_whole
from infoknife.paper.applications.fair_text.corpus import Corpus
from infoknife.paper.applications.fair_text.model import TextClassifier, quiet

__all__ = ["accuracy", "check_held_out", "leak", "write_audit"]

MOST = 4000  # held-out texts that are audited
FOLDS = 5  # of the audit


def check_held_out(corpus: Corpus) -> None:
    """Raise where a private class has too few held-out texts to be audited: better before training than after."""
    held = torch.cat([corpus.validation.s, corpus.test.s])
    for name, rows in zip(corpus.privates, torch.bincount(held, minlength=len(corpus.privates)).tolist(), strict=True):
        if rows < FOLDS:
            raise ValueError(
                f"{corpus.name}: {rows} held-out texts are of the private class {name!r}; expected at least {FOLDS} in "
                "validation and test together, so that the audit has one for each fold. Hold out more, or join classes"
            )


@torch.no_grad()
def accuracy(model: TextClassifier, z: Tensor, y: Tensor) -> float:
    """Give the part of features z (N, d) whose label y (N,) the head finds."""
    with quiet(model):
        return (model.head(z).argmax(1) == y).double().mean().item()


def leak(z: Tensor, s: Tensor, corpus: Corpus, seed: int = 0) -> tuple[Audit, dict[str, Any]]:
    """Audit features of held-out texts.

    Args:
        z: Features (N, d), of texts that the encoder was not trained on.
        s: Private classes (N,).
        corpus: For the names of the classes.
        seed: Of what is random in the audit.

    Returns:
        The audit, and its numbers for a record.
    """
    rows = torch.randperm(len(z), generator=torch.Generator().manual_seed(seed))[:MOST].sort().values
    privates = np.array(corpus.privates)[s[rows].numpy()]
    found = audit(z[rows].numpy(), privates, folds=FOLDS, seed=seed, names=("the private attribute", "the label"))
    return found, {
        "private_accuracy": found.strongest.balanced_accuracy,
        "private_chance": found.chance,
        "probe": found.strongest.name,
        "probes": {probe.name: probe.balanced_accuracy for probe in found.probes},
        "leak": found.information.value,
        "leak_stderr": found.information.stderr,
        "leak_interval": list(found.interval()),
        "private_entropy": found.entropy,
        "held_out": len(rows),
    }


def write_audit(folder: Path, found: Audit, z: Tensor, s: Tensor, y: Tensor) -> None:
    """Write the audit's page, and the features for whoever wants to look at them in another way; no text."""
    with written_whole(folder / "audit.html") as file:
        file.write(found.to_html().encode())
    with written_whole(folder / "features.npz") as file:
        np.savez_compressed(file, z=z.numpy(), s=s.numpy(), y=y.numpy())
