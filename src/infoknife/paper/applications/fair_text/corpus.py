"""What a corpus is: texts with a label to learn and a private attribute to hide."""

from dataclasses import dataclass

from torch import Tensor

from infoknife.paper.applications.fair_text.vocabulary import tokens
from infoknife.paper.applications.tables import Request, check_names

__all__ = ["Columns", "Corpus", "Texts"]


@dataclass(frozen=True, eq=False, repr=False)
class Texts:
    """The texts of one split. Its ``repr`` does not show them: they may be personal.

    Args:
        texts: N of them, in the order of the file.
        y: Codes of the label, int64 (N,).
        s: Codes of the private attribute, int64 (N,).
    """

    texts: tuple[str, ...]
    y: Tensor
    s: Tensor

    def __len__(self) -> int:
        """Rows."""
        return len(self.texts)

    def __repr__(self) -> str:
        return f"Texts({len(self)} rows)"


@dataclass(frozen=True, eq=False)
class Corpus:
    """Three splits with the same classes; each has rows of every class.

    Args:
        name: What it is called.
        train: For learning.
        validation: For choosing.
        test: For judging.
        labels: The name of label 0, 1, ...
        privates: The name of private class 0, 1, ...
        information: I(X; S) of a text and its private class in nats, where it is known.
        notes: What was left out or done, in plain words.
    """

    name: str
    train: Texts
    validation: Texts
    test: Texts
    labels: tuple[str, ...]
    privates: tuple[str, ...]
    information: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are what, and what is done to its texts.

    Args:
        label: The column Y to learn.
        private: The column S to hide.
        text: The column of texts.
        split: The column that says train, validation or test. A table may be without it.
        strip: Tokens to take out of every text.
        balance: Whether every split is cut to as many rows of each pair (y, s) as the rarest pair has.

    Example:
        >>> Columns("sentiment", "race").text
        'text'
    """

    label: str
    private: str
    text: str = "text"
    split: str = "split"
    strip: tuple[str, ...] = ()
    balance: bool = False

    def __post_init__(self) -> None:
        check_names({"label": self.label, "private": self.private, "text": self.text, "split": self.split})
        self._check_strip()

    @property
    def request(self) -> Request:
        """What is asked of a table: the split may be missing if it goes by its default name."""
        columns = {"text": self.text, "label": self.label, "private": self.private, "split": self.split}
        optional = ("split",) if self.split == Columns.split else ()
        return Request(columns, "the text, the label and the private attribute", ("text",), optional)

    def _check_strip(self) -> None:
        if isinstance(self.strip, str):
            raise TypeError(f"strip is the string {self.strip!r}; expected a tuple of tokens, ({self.strip!r},)")
        for token in self.strip:
            found = tuple(tokens(token))
            if found != (token.lower(),):
                raise ValueError(f"strip has {token!r}, which is {len(found)} tokens: {found}; expected one token each")
