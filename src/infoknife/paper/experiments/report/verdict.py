"""What a judgement is."""

from typing import NamedTuple

__all__ = ["Verdict"]


class Verdict(NamedTuple):
    """One judgement.

    Args:
        experiment: The experiment, with the staircase where there are several.
        preset: ``"paper"`` is judged by whether it reproduces, all others by whether they are better.
        method: The method, with the dimension where there are several.
        word: The judgement in a few words.
        good: Whether it is to our credit; ``None`` where it is neither.
        text: The numbers, in nats; accuracies in percent.
    """

    experiment: str
    preset: str
    method: str
    word: str
    good: bool | None
    text: str
