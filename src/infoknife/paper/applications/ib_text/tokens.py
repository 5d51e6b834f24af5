"""Texts as tokens, batches of like length, and what the layers that do not learn make of them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from infoknife.paper.applications.ib_text.data import Pairs
from infoknife.paper.applications.ib_text.layers import lower_states

BLOCK = 64  # rows that are read at once
SORTED = 8  # batches that are cut from rows sorted by length


class TokenRows(NamedTuple):
    """Pairs of texts, ready for the model."""

    columns: dict[str, list[Tensor]]  # by the names that the model takes, a tensor (L, ...) for each pair
    y: Tensor  # their labels
    truncated: int  # pairs that were longer than the model takes

    @property
    def lengths(self) -> Tensor:
        """Tokens of each pair, (N,)."""
        return torch.tensor([len(tokens) for tokens in next(iter(self.columns.values()))])

    def batch(self, rows: Tensor, device: torch.device) -> dict[str, Tensor]:
        """Return some rows, filled up to the length of the longest, with their mask."""
        chosen = {name: [column[row] for row in rows.tolist()] for name, column in self.columns.items()}
        filled = {name: pad_sequence(column, batch_first=True).to(device) for name, column in chosen.items()}
        lengths = torch.tensor([len(tokens) for tokens in next(iter(chosen.values()))], device=device)
        width = next(iter(filled.values())).shape[1]
        return filled | {"attention_mask": (torch.arange(width, device=device) < lengths[:, None]).long()}


def read(pairs: Pairs, tokenizer: Any, length: int) -> TokenRows:
    """Turn texts into tokens, at most ``length`` of a pair; what is longer is cut, and counted."""
    texts = (list(pairs.first), *(() if pairs.second is None else (list(pairs.second),)))
    whole = tokenizer(*texts, add_special_tokens=True, truncation=False, verbose=False)["input_ids"]
    found = tokenizer(*texts, truncation=True, max_length=length)
    columns = {
        name: [torch.tensor(row) for row in found[name]] for name in ("input_ids", "token_type_ids") if name in found
    }
    columns["segments"] = [_segments(found.sequence_ids(row)) for row in range(len(pairs))]
    return TokenRows(columns, pairs.y, sum(len(row) > length for row in whole))


@torch.no_grad()
def remembered(rows: TokenRows, encoder: Any, layers: int, device: torch.device) -> TokenRows:
    """Put in place of the tokens what the lower layers, which do not learn, make of them."""
    was, _ = encoder.training, encoder.eval()
    states: list[Tensor] = [torch.empty(0)] * len(rows.y)
    lengths = rows.lengths
    for part in lengths.argsort().split(BLOCK):
        batch = rows.batch(part, device)
        del batch["segments"]
        found = lower_states(encoder, layers, **batch).cpu()
        for row, own in zip(part.tolist(), found, strict=True):
            states[row] = own[: int(lengths[row])].clone()
    encoder.train(was)
    return rows._replace(columns={"states": states, "segments": rows.columns["segments"]})


def batches(lengths: Tensor, size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Cut rows of so many tokens (N,) into random batches of like length, in random order; the last may be smaller."""
    order = torch.randperm(len(lengths), generator=generator)
    blocks = [block[lengths[block].argsort(stable=True)] for block in order.split(SORTED * size)]
    parts = [part for block in blocks for part in block.split(size)]
    for i in torch.randperm(len(parts), generator=generator).tolist():
        yield parts[i]


def _segments(texts: list[int | None]) -> Tensor:
    """Which text a token belongs to: 0, 1, or -1 for neither."""
    return torch.tensor([-1 if text is None else text for text in texts])
