from typing import Any

import pytest
import torch

from infoknife.paper.applications.fair_text.corpus import Columns, Texts
from tests.paper.applications.fair_text.tables import SECRET


def test_texts_are_not_shown() -> None:
    texts = Texts((SECRET,), torch.tensor([0]), torch.tensor([1]))
    assert repr(texts) == "Texts(1 rows)"
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "race", "private": "race"}, "label and private are both the column 'race'; expected two different"),
        ({"label": "text", "private": "race"}, "label and text are both the column 'text'"),
        ({"label": "y", "private": "split"}, "private and split are both the column 'split'"),
        ({"label": "y", "private": "s", "text": "t", "split": "t"}, "text and split are both the column 't'"),
        ({"label": "", "private": "s"}, "label is ''; expected the name of a column"),
        ({"label": "y", "private": "s", "strip": ("a b",)}, r"strip has 'a b', which is 2 tokens: \('a', 'b'\); exp"),
        ({"label": "y", "private": "s", "strip": (" ",)}, "strip has ' ', which is 0 tokens"),
    ],
)
def test_columns_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Columns(**options)


def test_strip_is_a_tuple() -> None:
    with pytest.raises(TypeError, match=r"strip is the string 'rt'; expected a tuple of tokens, \('rt',\)"):
        Columns("y", "s", strip="rt")  # type: ignore[arg-type]


def test_a_token_may_be_in_capitals() -> None:
    assert Columns("y", "s", strip=("RT",)).strip == ("RT",)
