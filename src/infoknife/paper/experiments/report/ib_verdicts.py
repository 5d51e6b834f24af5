"""Whether a bottleneck by KNIFE helps where training pairs are few, and costs nothing where they are many."""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, variance
from typing import NamedTuple

from infoknife.paper.experiments import published
from infoknife.paper.experiments.report import words
from infoknife.paper.experiments.report.bottlenecks import BASE, best, grounds, task
from infoknife.paper.experiments.report.verdict import Verdict
from infoknife.paper.experiments.summary import Record, by, count, failed, method_of

__all__ = ["judge_ib_text"]

FEW = 500  # training pairs
RIVALS = {  # where pairs are few: percent points that KNIFE must be ahead, and what is said if it is, and if not
    BASE: (1.0, "ahead of", "not 1 point ahead of"),
    "vub": (0.0, "not behind", "behind"),
}
LOSS = 0.3  # percent points that a bottleneck may cost on a task, where all pairs are there
ABOVE = 0.1  # nats by which an estimate may exceed the variational bound on a batch

Scores = Mapping[tuple[str, int], float]  # by task and seed


class Ahead(NamedTuple):
    """How many percent points a method is ahead of another with the same tasks and seeds."""

    by_task: dict[str, float]
    error: float | None  # the standard error of their mean
    seeds: tuple[int, int]  # the fewest and the most of a task

    @property
    def mean(self) -> float:
        return round(fmean(self.by_task.values()), 6)  # 1 is not 1 - 7e-15


def judge_ib_text(preset: str, records: Sequence[Record]) -> Iterator[Verdict]:
    """Judge the runs of one preset."""
    yield from _failed(preset, records)
    encoders = by(records, lambda record: (record["arguments"].get("encoder"), record["arguments"].get("layers")))
    for (encoder, _), own in encoders.items():
        found = {at.train_size: best(group) for at, group in grounds(own).items()}
        where = f", {encoder}" if len(encoders) > 1 else ""
        if FEW in found or preset == "cpu":
            few = Verdict("table2", preset, f"KNIFE, {FEW} pairs{where}", "", None, "")
            yield from (_few(few, rival, found.get(FEW, [])) for rival in RIVALS)
        yield _all(Verdict("table2", preset, f"KNIFE, all pairs{where}", "", None, ""), found.get(None, []))
        yield _tight(Verdict("table2", preset, f"KNIFE{where}", "", None, ""), own)


def _failed(preset: str, records: Sequence[Record]) -> Iterator[Verdict]:
    for method, group in by(records, method_of).items():
        if all(map(failed, group)):
            text = f"none of {words.several(len(group), 'run')} ended well"
            yield Verdict("table2", preset, words.method(method), "all runs failed", False, text)


def _few(start: Verdict, rival: str, own: Sequence[Record]) -> Verdict:
    """Whether KNIFE is ahead where pairs are few: clearly of no bottleneck, at all of another."""
    found = ahead(own, rival)
    least, well, badly = RIVALS[rival]
    if found is None:
        return _not_run(start, rival, f" --train-sizes {FEW}")
    good = found.mean >= least
    return _told(start, found, own, rival, f"{well if good else badly} {words.method(rival)}", good)


def _all(start: Verdict, own: Sequence[Record]) -> Verdict:
    """Whether KNIFE costs nothing where all pairs are there."""
    found = ahead(own, BASE)
    if found is None:
        return _not_run(start, BASE, " --train-sizes all")
    lost = [words.task(name) for name, points in found.by_task.items() if round(points, 6) < -LOSS]
    if lost:
        return _told(start, found, own, BASE, f"loses more than {LOSS:g} points on {', '.join(lost)}", False)
    word = "ahead of" if found.mean > 0 else "not ahead of"
    return _told(start, found, own, BASE, f"{word} {words.method(BASE)}", found.mean > 0)


def _tight(start: Verdict, records: Sequence[Record]) -> Verdict:
    """Whether the estimate is below the variational bound of the same batches."""
    good = [r["results"] for r in records if method_of(r) == "knife" and not failed(r) and "gap_mean" in r["results"]]
    if not good:
        return start._replace(word="not run", text="no run of KNIFE tells how far it is from the variational bound")
    mean, most = fmean(each["gap_mean"] for each in good), max(each["gap_most"] for each in good)
    tight = mean < 0 and most <= ABOVE
    text = (
        f"I(Z; X) by KNIFE minus the variational bound, nats, on the same batches of {words.several(len(good), 'run')}:"
        f" {_signed(mean)} in the mean, {_signed(most)} at most"
    )
    word = "tighter than the variational bound" if tight else "not below the variational bound"
    return start._replace(word=word, good=tight, text=text)


def ahead(own: Sequence[Record], rival: str) -> Ahead | None:
    """How far KNIFE is ahead of a rival, by tasks of the paper and seeds that both ended well; None without any."""
    ours, its = (_scores(own, method) for method in ("knife", rival))
    both = {name: [at for at in ours if at[0] == name and at in its] for name in published.GLUE}
    differences = {name: [ours[at] - its[at] for at in shared] for name, shared in both.items() if shared}
    if not differences:
        return None
    sizes = [len(each) for each in differences.values()]
    error = None
    if min(sizes) > 1:
        error = math.sqrt(sum(variance(each) / len(each) for each in differences.values())) / len(sizes)
    return Ahead({name: fmean(each) for name, each in differences.items()}, error, (min(sizes), max(sizes)))


def _scores(own: Sequence[Record], method: str) -> Scores:
    good = [r for r in own if method_of(r) == method and not failed(r) and "score" in r["results"]]
    return {(task(r), r["arguments"].get("seed", 0)): 100.0 * r["results"]["score"] for r in good}


def _told(start: Verdict, found: Ahead, own: Sequence[Record], rival: str, word: str, good: bool) -> Verdict:
    """The numbers; nothing is judged while tasks of the paper are missing."""
    several = f"{found.seeds[0]}" if found.seeds[0] == found.seeds[1] else "{} to {}".format(*found.seeds)
    over = f"{words.several(len(found.by_task), 'task')}, {several} seed{'s' if found.seeds[1] > 1 else ''}"
    each = ", ".join(f"{words.task(name)} {_signed(points)}" for name, points in found.by_task.items())
    error = "" if found.error is None else f" ± {found.error:.2f}"
    tally = count([record for record in own if method_of(record) in ("knife", rival)])
    lost = f"; {tally.failures} of {tally.runs} runs failed" if tally.failures else ""
    text = f"{_signed(found.mean)}{error} points against {words.method(rival)}, mean of {over}: {each}{lost}"
    if missing := [words.task(name) for name in published.GLUE if name not in found.by_task]:
        return start._replace(word="not all run", text=f"{text}; {', '.join(missing)} not run")
    return start._replace(word=word, good=good, text=text)


def _not_run(start: Verdict, rival: str, sizes: str) -> Verdict:
    command = f"infoknife reproduce table2 --preset {start.preset} --methods knife,{rival}{sizes}"
    return start._replace(word="not run", text=f"nothing to compare KNIFE with {words.method(rival)} by; {command}")


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")
