"""Texts of made-up words whose information about a private attribute is known."""

from math import log

import torch
from torch import Tensor

from infoknife.inputs import check_count, check_whole
from infoknife.paper.applications.fair_text.corpus import Corpus, Texts

MOST = 50  # classes
FILLERS, WORDS = 200, 20  # stems that are neutral; stems of the style, and of each topic
MARKS, TOPICAL, SHORTEST, LONGEST = 2, 3, 4, 8  # words of style and topic in a text, and of neutral ones from .. to
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]


def synthetic(
    rows: int = 6000, leak: float = 0.15, noise: float = 0.1, labels: int = 2, privates: int = 2, seed: int = 0
) -> Corpus:
    r"""Write texts with a label Y and, independent of it, a private attribute S.

    S goes through a noisy channel to the style T, Y through another one to the topic. A text holds words that mark
    its style, words of its topic in the form that they have in its style, as in a dialect, and neutral ones. So a text
    tells its style for sure and S no better than the style does:

    .. math:: I(X; S) = I(T; S) = \log K - h(e) - e \log(K - 1),

    and the best classifier of Y is right with probability ``1 - noise``.

    Args:
        rows: In all: four sixths for training, a sixth for validation, a sixth for testing. In each split all pairs
            (y, s) are equally frequent and have the same part of flipped rows, up to one row.
        leak: The probability e that the style is that of another class, up to 1 - 1/K: at 0 the style tells S for
            sure, at 1 - 1/K it tells nothing.
        noise: The probability that the topic is that of another label.
        labels: How many.
        privates: How many, K.
        seed: Of everything but the words, which are always the same.

    Example:
        >>> corpus = synthetic(rows=60)
        >>> len(corpus.train), round(corpus.information, 3)
        (40, 0.27)
    """
    rows, labels, privates = _checked(rows, labels, privates)
    leak, noise = _flip("leak", leak, privates), _flip("noise", noise, labels)
    generator = torch.Generator().manual_seed(check_whole("seed", seed))
    held = rows // 6
    train, validation, test = (
        _texts(n, leak, noise, labels, privates, generator) for n in (rows - 2 * held, held, held)
    )
    best = f"the best accuracy of the label is {1 - noise:.3g}"
    names = ("negative", "positive") if labels == 2 else tuple(f"label {i}" for i in range(labels))
    dialects = tuple(f"dialect {i}" for i in range(privates))
    return Corpus("synthetic", train, validation, test, names, dialects, channel_information(privates, leak), (best,))


def channel_information(classes: int, flip: float) -> float:
    r"""Return the information between a uniform class and what a channel makes of it, in nats.

    .. math:: \log K - h(e) - e \log(K - 1), \quad h(e) = -e \log e - (1 - e) \log(1 - e)

    Args:
        classes: K, at least 2.
        flip: The probability e of another class, each of them as probable.

    Example:
        >>> round(channel_information(2, 0.15), 4)
        0.2704
    """
    h = -sum(p * log(p) for p in (flip, 1 - flip) if p > 0)
    return max(0.0, log(classes) - h - flip * log(classes - 1))


def _checked(rows: int, labels: int, privates: int) -> tuple[int, int, int]:
    for name, classes in (("labels", labels), ("privates", privates)):
        if not 2 <= check_whole(name, classes) <= MOST:
            raise ValueError(f"{name} is {classes}; expected 2 to {MOST}")
    if check_count("rows", rows) < 6 * labels * privates:
        raise ValueError(
            f"rows is {rows}; expected at least {6 * labels * privates}, one of each of the {labels} x {privates} "
            f"pairs of classes in the smallest split"
        )
    return int(rows), int(labels), int(privates)


def _flip(name: str, value: float, classes: int) -> float:
    if not 0 <= value <= 1 - 1 / classes:
        raise ValueError(f"{name} is {value}; expected a probability of 0 to {1 - 1 / classes:.3g}, 1 - 1/{classes}")
    return float(value)


def _texts(n: int, leak: float, noise: float, labels: int, privates: int, generator: torch.Generator) -> Texts:
    cells = torch.randperm(n, generator=generator) % (labels * privates)
    y, s = cells // privates, cells % privates
    topics, styles = _channel(y, cells, labels, noise, generator), _channel(s, cells, privates, leak, generator)
    stems = _stems(FILLERS + WORDS * (1 + labels))
    texts = (_text(topic, style, stems, generator) for topic, style in zip(topics, styles, strict=True))
    return Texts(tuple(texts), y, s)


def _channel(codes: Tensor, cells: Tensor, classes: int, flip: float, generator: torch.Generator) -> list[int]:
    """Flip a part of the codes of every cell, up to one row, so that a sample holds what the channel lets through."""
    flipped, shift = codes.clone(), torch.randint(1, classes, codes.shape, generator=generator)
    for cell in cells.unique():
        rows = (cells == cell).nonzero().flatten()
        rows = rows[torch.randperm(len(rows), generator=generator)]
        part = rows[: int(flip * len(rows) + torch.rand((), generator=generator, dtype=torch.float64))]
        flipped[part] = (codes[part] + shift[part]) % classes
    return flipped.tolist()


def _text(topic: int, style: int, stems: list[str], generator: torch.Generator) -> str:
    def drawn(start: int, end: int, n: int) -> list[int]:
        return torch.randint(start, end, (n,), generator=generator).tolist()

    (fillers,) = drawn(SHORTEST, LONGEST + 1, 1)
    own = FILLERS + WORDS * (1 + topic)  # where the topic's stems begin
    marked = drawn(FILLERS, FILLERS + WORDS, MARKS) + drawn(own, own + WORDS, TOPICAL)
    words = [stems[i] + SYLLABLES[style] for i in marked] + [stems[i] for i in drawn(0, FILLERS, fillers)]
    order = torch.randperm(len(words), generator=generator).tolist()
    return " ".join(words[i] for i in order)


def _stems(n: int) -> list[str]:
    """Return n different words of two syllables; a third one is the ending of a style."""
    pairs = torch.randperm(len(SYLLABLES) ** 2, generator=torch.Generator().manual_seed(0))[:n]
    return [SYLLABLES[i // len(SYLLABLES)] + SYLLABLES[i % len(SYLLABLES)] for i in pairs.tolist()]
