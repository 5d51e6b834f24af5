"""Whether KNIFE hides a private attribute at no cost, and whether a rival does better, in plain words."""

from collections.abc import Iterator, Sequence

from infoknife.paper.experiments.report import words
from infoknife.paper.experiments.report.tradeoffs import (
    BASE,
    LOSS,
    Point,
    Reached,
    best,
    corpora,
    corpus,
    level,
    points,
    reached,
    title,
)
from infoknife.paper.experiments.report.verdict import Verdict
from infoknife.paper.experiments.summary import Record, by

__all__ = ["judge_fair_text"]

HIDDEN = 6.0  # percent points above chance that a probe may still reach: 56 % for two classes
CLEARLY = 1.0  # percent points by which a rival is better


def judge_fair_text(preset: str, records: Sequence[Record]) -> Iterator[Verdict]:
    """Judge every corpus of one preset."""
    found, groups = points(records), by(records, corpus)
    for name in corpora(records):
        own = [point for point in found if point.corpus == name]
        yield from _failed(preset, name, own)
        means = reached(own)
        if any(each.method == "knife" for each in means):
            start = Verdict("fig4", preset, f"KNIFE, {words.corpus(name)}", "", None, "")
            yield from _judged(start, means, level(groups[name], "private_chance") or 50.0)


def _failed(preset: str, name: str, own: Sequence[Point]) -> Iterator[Verdict]:
    for method in dict.fromkeys(point.method for point in own):
        tallies = [point.main.tally for point in own if point.method == method]
        runs = sum(tally.runs for tally in tallies)
        if runs == sum(tally.failures for tally in tallies):
            where, text = (
                f"{words.method(method)}, {words.corpus(name)}",
                f"none of {words.several(runs, 'run')} ended well",
            )
            yield Verdict("fig4", preset, where, "all runs failed", False, text)


def _judged(start: Verdict, own: Sequence[Reached], chance: float) -> Iterator[Verdict]:
    base, knife = next((each.main for each in own if each.method == BASE), None), best(own).get("knife")
    if base is None:
        yield start._replace(word="nothing to compare with", text="no run without a regularizer ended well")
    elif knife is None:
        text = f"more than {LOSS:g} points of main accuracy are lost at every λ: {base:.1f} without a regularizer"
        yield start._replace(word="loses the label", good=False, text=text)
    else:
        yield _hidden(start, knife, base, chance + HIDDEN)
        yield from _beaten(start, knife, [each for each in own if each.method not in {"knife", BASE}])


def _hidden(start: Verdict, knife: Reached, base: float, most: float) -> Verdict:
    """Whether the private attribute is hidden where the label is kept."""
    good = knife.private <= most
    word = f"hides it: at most {most:g} %" if good else f"does not reach {most:g} %"
    tally = knife.tally
    lost = f"; {tally.failures} of {tally.runs} runs failed" if tally.failures else ""
    text = (
        f"private {knife.private:.1f}, main {knife.main:.1f} against {base:.1f} without, {title(knife.strength)}{lost}"
    )
    return start._replace(word=word, good=good, text=text)


def _beaten(start: Verdict, knife: Reached, rivals: Sequence[Reached]) -> Iterator[Verdict]:
    """Whether a rival has a point that is clearly better in both accuracies."""
    ahead = [each for each in rivals if each.main > knife.main + CLEARLY and each.private < knife.private - CLEARLY]
    if ahead:
        names = ", ".join(dict.fromkeys(words.method(each.method) for each in ahead))
        theirs = "; ".join(f"{words.method(each.method)} {_numbers(each)}" for each in ahead)
        yield start._replace(word=f"beaten by {names}", good=False, text=f"{_numbers(knife)} against {theirs}")
    elif rivals:
        several = words.several(len({each.method for each in rivals}), "rival")
        text = f"no point of {several} is better in both by more than {CLEARLY:g} point than {_numbers(knife)}"
        yield start._replace(word="not beaten", good=True, text=text)


def _numbers(point: Reached) -> str:
    return f"main {point.main:.1f}, private {point.private:.1f} ({title(point.strength)})"
