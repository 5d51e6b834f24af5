"""Small tables for tests: pairs of sentences with a label, a secret in every text."""

from tests.paper.applications.tables_of_texts import SECRET, Cells, write

__all__ = ["SECRET", "Cells", "pairs", "write"]

SIZES = {"train": 8, "dev": 4, "test": 4}


def pairs(labels: tuple[str, ...] = ("0.0", "1.0"), sizes: dict[str, int] = SIZES) -> Cells:
    """Give columns split, label, sentence1 and sentence2; the labels take turns in every split."""
    rows = [(split, labels[i % len(labels)]) for split, size in sizes.items() for i in range(size)]
    split, label = (list(column) for column in zip(*rows, strict=True))
    texts = {f"sentence{k}": [f"{SECRET} {k} {i}" for i in range(len(rows))] for k in (1, 2)}
    return {"split": split, "label": label, **texts}
