"""How our numbers stand against the paper's and against rivals', in plain words with the numbers."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean

from infoknife.paper.experiments import published
from infoknife.paper.experiments.report import words
from infoknife.paper.experiments.report.fair_verdicts import judge_fair_text
from infoknife.paper.experiments.report.ib_verdicts import judge_ib_text
from infoknife.paper.experiments.report.verdict import Verdict
from infoknife.paper.experiments.report.words import number, plus_minus
from infoknife.paper.experiments.summary import (
    Accuracy,
    Count,
    ErrorRow,
    LevelRow,
    MeanRow,
    Pair,
    Record,
    accuracies,
    best_run,
    by,
    count,
    errors,
    failed,
    in_order,
    kind,
    levels,
    mean_absolute_error,
    method_of,
    over_levels,
    pairs,
    view,
)

__all__ = ["Verdict", "verdicts"]

DEVIATIONS, PART = 2.0, 0.1  # a number is reproduced within so many deviations, or within this part of it
LEVEL = 0.5  # percent points: a mean accuracy that is less behind is as good
MOST = 0.25  # deviations between our own runs, which may be anything, count up to this part of a figure's number


def verdicts(records: Iterable[Record]) -> list[Verdict]:
    """Judge all records, ours first, in the paper's order; of ``"quick"`` only the benchmark, where all are as quick.

    * ``"paper"``: "reproduces the paper" where the number is within two of the paper's standard deviations or
      within 10 % of it; otherwise it says how far off it is. A figure has one run and no deviations: there the
      deviations are those between our runs, and count up to a quarter of the number.
    * ``"ours"``: "beats the paper" or "worse than the paper", by the mean; and KNIFE is compared with its rivals.
    * Domain adaptation: KNIFE is compared with training without it and with the best rival, on the pairs that all
      have; ``"paper"`` also with the paper, pair by pair, within two of its deviations.
    * Pairs of texts: whether KNIFE's bottleneck helps where training pairs are few, and costs nothing with all; whether
      its estimate stays below the variational bound.
    * Texts: whether KNIFE hides the private attribute at some lambda and keeps the label; whether a rival does both
      better.
    * The benchmark: KNIFE is compared with every rival by the mean |error| where both ended well, on each kind of task.

    Example:
        >>> record = {"experiment": "table1", "preset": "paper", "status": "done", "seconds": 1.5,
        ...     "arguments": {"method": "knife", "dim": 10, "seed": 0}, "results": {"error": -0.05}}
        >>> verdict, = verdicts([record])
        >>> verdict.word, verdict.good
        ('reproduces the paper', True)
    """
    judged = [r for r in in_order(records) if r["preset"] != "quick" or r["experiment"] == "bench"]
    found = [verdict for name, group in by(judged, view).items() for verdict in _judge(name, group)]
    return sorted(found, key=lambda v: (v.preset != "ours", v.preset, words.place(v.experiment)))


def _judge(name: str, group: Sequence[Record]) -> Iterator[Verdict]:
    if name == "bench":
        yield from _benchmark(group)
    elif name in _APPLICATIONS:
        for preset, records in by(group, lambda record: str(record["preset"])).items():
            yield from _APPLICATIONS[name](preset, records)
    elif any("levels" in record["results"] for record in group):
        yield from _staircase(group)
    elif any("error" in record["results"] for record in group):
        yield from _entropy(group)


# errors


def _entropy(group: Sequence[Record]) -> Iterator[Verdict]:
    rows = errors(group)
    for row in rows:
        if row.mean is None:
            yield _of(row, "all runs failed", False, f"none of {row.tally.runs} runs ended well")
        elif row.preset == "paper":
            yield from _reproduced(row, row.mean)
        else:
            yield from _against_paper(row, row.mean)
            yield from _against_rivals(row, row.mean, rows)


def _reproduced(row: ErrorRow, mean: float) -> Iterator[Verdict]:
    cell = row.published
    if cell is None:
        return
    numbers, off = f"{plus_minus(mean, row.std)} against {words.cell(cell)}", abs(mean - cell.mean)
    if off <= max(DEVIATIONS * cell.std, PART * cell.mean):
        yield _of(row, "reproduces the paper", True, numbers + _failures(row.tally))
    else:
        side = "above" if mean > cell.mean else "below"
        far = f"{off / cell.std:.1f} of the paper's deviations {side} it, {_times(mean, cell.mean)}"
        good = None if side == "below" else False  # a smaller error is no reproduction, and no harm
        yield _of(row, f"{side} the paper", good, f"{numbers}: {far}{_failures(row.tally)}")


def _against_paper(row: ErrorRow, mean: float) -> Iterator[Verdict]:
    cell = published.error(row.experiment, _family(row.method), row.dim)
    if cell is None:
        return
    runs = row.tally.runs - row.tally.failures
    noise = math.sqrt((row.std or 0.0) ** 2 / runs + cell.std**2 / cell.runs)
    close = "; less than two standard errors apart" if abs(mean - cell.mean) < 2 * noise else ""
    numbers = f"{plus_minus(mean, row.std)} against {words.cell(cell)}: {_times(mean, cell.mean)}{close}"
    word = "beats the paper" if mean < cell.mean else "worse than the paper"
    yield _of(row, word, mean < cell.mean, numbers + _failures(row.tally))


def _against_rivals(row: ErrorRow, mean: float, rows: Sequence[ErrorRow]) -> Iterator[Verdict]:
    if _family(row.method) != "knife":
        return
    same = [r for r in rows if r.dim == row.dim and _family(r.method) != "knife"]
    rivals = [(r.mean, f"{words.method(r.method)}, preset {r.preset}") for r in same if r.mean is not None]
    cells = {r.method: r.published for r in same if r.published is not None}
    rivals += [(cell.mean, f"{words.method(method)}, as published") for method, cell in cells.items()]
    yield from _ranked(_of(row, "", None, ""), mean, rivals, "mean |error|")


# staircases


def _staircase(group: Sequence[Record]) -> Iterator[Verdict]:
    rows = levels(group)
    means = over_levels(rows)
    for (preset, method), runs in by(group, lambda record: (str(record["preset"]), method_of(record))).items():
        own = [row for row in rows if (row.preset, row.method) == (preset, method)]
        if not own:
            text = f"none of {len(runs)} runs ended well"
            yield Verdict(view(runs[0]), preset, words.method(method), "all runs failed", False, text)
            continue
        mean = next(mean for mean in means if mean[:3] == own[0][:3])
        stairs = published.staircase(mean.experiment, _family(method))
        if stairs is not None and len(stairs.mean) == len(own):
            yield _climbed(mean, own, runs, stairs) if preset == "paper" else _nearer(mean, own, runs, stairs)
        if preset != "paper" and _family(method) == "knife":
            same = [m for m in means if _family(m.method) != "knife"]
            rivals = [(m.mse, f"{words.method(m.method)}, preset {m.preset}") for m in same]
            yield from _ranked(_of(mean, "", None, ""), mean.mse, rivals, "mean squared error")


def _climbed(mean: MeanRow, own: Sequence[LevelRow], runs: Sequence[Record], stairs: published.Staircase) -> Verdict:
    """Whether every level is where the figure has it."""
    best = best_run(runs) if stairs.best_run else None
    shown = [level["mean"] for level in best["results"]["levels"]] if best else [row.mean for row in own]
    pairs = [(v, p, row) for v, p, row in zip(shown, stairs.mean, own, strict=True) if p is not None]
    slack = [max(PART * p, min(DEVIATIONS * row.spread, MOST * p)) for _, p, row in pairs]
    off = [(abs(v - p), v, p, row) for (v, p, row), most in zip(pairs, slack, strict=True) if abs(v - p) > most]
    if not off:
        text = f"{_list(shown)} against {_list(stairs.mean)}"
        return _of(mean, "reproduces the figure", True, text + _failures(count(runs)))
    gap, value, paper, row = max(off, key=lambda item: item[0])
    nearer = all(abs(v - r.truth) < abs(p - r.truth) for _, v, p, r in off)
    word, good = ("nearer the truth", None) if nearer else ("far from the figure", False)
    where = (
        f"{'than' if nearer else 'from'} the figure at {len(off)} of {len(pairs)} levels, most at {row.truth:g} nats"
    )
    return _of(mean, word, good, f"{where}: {value:.2f} against {paper:.2f}, {gap:.2f} apart{_failures(count(runs))}")


def _nearer(mean: MeanRow, own: Sequence[LevelRow], runs: Sequence[Record], stairs: published.Staircase) -> Verdict:
    """Whether the levels are nearer to the truth than those of the figure."""
    pairs = [(row, p) for row, p in zip(own, stairs.mean, strict=True) if p is not None]
    ours, paper = fmean(abs(row.bias) for row, _ in pairs), fmean(abs(p - row.truth) for row, p in pairs)
    worse = [f"{row.truth:g}" for row, p in pairs if abs(row.bias) > abs(p - row.truth)]
    at = f"; worse at {', '.join(worse)} nats" if worse and ours < paper else ""
    text = f"mean |bias| {number(ours)} against {number(paper)}: {_times(ours, paper)}{at}{_failures(count(runs))}"
    return _of(mean, "beats the paper" if ours < paper else "worse than the paper", ours < paper, text)


# domain adaptation

Means = Mapping[Pair, float]


def _adaptation(preset: str, records: Sequence[Record]) -> Iterator[Verdict]:
    rows = accuracies(records)
    means = {name: {at: cell.mean for at, cell in row.items() if cell.mean is not None} for name, row in rows.items()}
    for method, row in rows.items():
        start, runs = Verdict("table3", preset, words.method(method), "", None, ""), _all_runs(row)
        if runs.failures == runs.runs:
            text = f"none of {words.several(runs.runs, 'run')} ended well"
            yield start._replace(word="all runs failed", good=False, text=text)
        if method == "knife":
            yield from _adapted(start, means, [at for at in pairs(records) if at in means["knife"]], _failures(runs))
        if preset == "paper":
            yield from _printed(start, method, row)


def _adapted(start: Verdict, means: Mapping[str, Means], over: Sequence[Pair], lost: str) -> Iterator[Verdict]:
    """KNIFE against training without it, against its rivals, and against DANN, which is not the paper's."""
    estimators = {name: row for name, row in means.items() if row and name not in {"knife", "source-only", "dann"}}
    shared = [at for at in over if all(at in row for row in estimators.values())]
    if estimators and shared:
        best = max(estimators, key=lambda name: fmean(estimators[name][at] for at in shared))
        among = f" (the best of {len(estimators)} rivals)" if len(estimators) > 1 else ""
        yield _ahead(start, means["knife"], words.method(best), estimators[best], shared, among + lost)
    for name, rival in (("source only", means.get("source-only", {})), ("DANN", means.get("dann", {}))):
        if both := [at for at in over if at in rival]:
            yield _ahead(start, means["knife"], name, rival, both, lost)


def _ahead(start: Verdict, own: Means, name: str, rival: Means, over: Sequence[Pair], more: str) -> Verdict:
    """How many points KNIFE is ahead of another method in the mean over pairs, and where it is behind."""
    ours, its = fmean(own[at] for at in over), fmean(rival[at] for at in over)
    good = True if ours > its else None if its - ours <= LEVEL else False
    word = f"{'ahead of' if good else 'level with' if good is None else 'behind'} {name}"
    where = f"mean of {words.several(len(over), 'pair')}" if len(over) > 1 else _unbroken(over[0])
    behind = [_unbroken(at) for at in over if own[at] < rival[at]] if len(over) > 1 else []
    at = f"; behind on {', '.join(behind)}" if behind else ""
    text = f"{ours - its:+.1f} points, {where}: {ours:.1f} against {its:.1f}{more}{at}"
    return start._replace(word=word, good=good, text=text.replace("-", "−", 1) if its > ours else text)


def _printed(start: Verdict, method: str, row: Mapping[Pair, Accuracy]) -> Iterator[Verdict]:
    """Whether the accuracies are those of the paper, pair by pair."""
    cells = {at: published.accuracy(method, at) for at in row}
    both = [(at, mean, cell) for at, cell in cells.items() if cell is not None and (mean := row[at].mean) is not None]
    off = [(at, mean, cell) for at, mean, cell in both if abs(mean - cell.mean) > DEVIATIONS * cell.std]
    if not both:
        return
    text = f"{len(both) - len(off)} of {words.several(len(both), 'pair')} within two of the paper's deviations"
    far = ", ".join(f"{_unbroken(at)} {mean:.1f} against {words.accuracy(*cell[:2])}" for at, mean, cell in off)
    below = any(mean < cell.mean for _, mean, cell in off)
    word = "below the paper" if below else "above the paper" if off else "reproduces the paper"
    good = False if below else None if off else True
    yield start._replace(word=word, good=good, text=f"{text}; not {far}" if off else text)


def _unbroken(at: Pair) -> str:
    """A pair that no line ends within."""
    return words.pair(at).replace(" ", "\N{NO-BREAK SPACE}")


def _all_runs(row: Mapping[Pair, Accuracy]) -> Count:
    tallies = [cell.tally for cell in row.values()]
    return Count(*(sum(numbers) for numbers in zip(*tallies, strict=True)))


# the benchmark


def _benchmark(group: Sequence[Record]) -> Iterator[Verdict]:
    for (preset, what), records in sorted(by(group, lambda record: (str(record["preset"]), kind(record))).items()):
        methods = by(records, method_of)
        rivals = {name: theirs for name, theirs in methods.items() if not _is_ours(name, what)}
        for method in (name for name in methods if _is_ours(name, what)):
            start = Verdict(f"bench-{what}", preset, words.method(method), "", None, "")
            yield from _entered(start, methods[method], rivals)


def _is_ours(method: str, what: str) -> bool:
    """KNIFE in any of its forms; for entropies the autoregressive one, whose kernels are the same, counts as well."""
    return _family(method) == "knife" or (method, what) == ("autoregressive", "entropy")


def _entered(start: Verdict, own: Sequence[Record], rivals: dict[str, list[Record]]) -> Iterator[Verdict]:
    """Compare a method with every rival on the trials that both have ended well."""
    good = [record for record in own if not failed(record)]
    if not good:
        text = f"none of {words.several(len(own), 'run')} ended well"
        yield start._replace(word="all runs failed", good=False, text=text)
        return
    tasks = len({record["arguments"].get("task") for record in good})
    mean = f"mean |error| {number(mean_absolute_error(good))} on {words.several(tasks, 'task')}"
    pairs = [(*_shared(good, theirs), words.method(name)) for name, theirs in rivals.items()]
    yield from _placed(start._replace(text=mean), len(good), [pair for pair in pairs if pair[2]], _failures(count(own)))


def _placed(
    start: Verdict, trials: int, pairs: Sequence[tuple[float, float, int, str]], lost: str
) -> Iterator[Verdict]:
    """Name every rival with a smaller mean; or the nearest, where there is none."""
    ahead = sorted((its, name, ours, both) for ours, its, both, name in pairs if its < ours)
    if ahead:
        one = f"worse than rival {ahead[0][1]}"
        word = one if len(ahead) == 1 else f"worse than {len(ahead)} of {len(pairs)} rivals"
        smaller = (
            f"{name} {number(its)}"
            + (f" (against {number(ours)} on {words.several(both, 'shared trial')})" if both < trials else "")
            for its, name, ours, both in ahead
        )
        yield start._replace(word=word, good=False, text=f"{start.text}; smaller: {'; '.join(smaller)}{lost}")
    elif pairs:
        _, value, _, name = min(pairs, key=lambda pair: pair[1] / pair[0] if pair[0] else math.inf)
        text = f"{start.text}; the next of {words.several(len(pairs), 'rival')} has {number(value)} ({name}){lost}"
        yield start._replace(word="ahead of all rivals", good=True, text=text)


def _shared(own: Sequence[Record], theirs: Sequence[Record]) -> tuple[float, float, int]:
    """Mean |error| of both where both ended well, and on how many trials."""
    ours, its = ({_trial(record): record for record in group if not failed(record)} for group in (own, theirs))
    both = [trial for trial in ours if trial in its]
    means = [mean_absolute_error([group[trial] for trial in both]) if both else 0.0 for group in (ours, its)]
    return means[0], means[1], len(both)


def _trial(record: Record) -> tuple[object, ...]:
    return tuple(record["arguments"].get(name) for name in ("task", "n", "seed"))


# words


def _ranked(start: Verdict, own: float, rivals: Sequence[tuple[float, str]], what: str) -> Iterator[Verdict]:
    """Say whether any rival has a smaller number, and which."""
    if not rivals:
        return
    (value, name), better = min(rivals), sum(rival[0] < own for rival in rivals)
    if better:
        more = f", and {better - 1} more" if better > 1 else ""
        text = f"{what} {number(own)} against {number(value)} ({name}{more})"
        yield start._replace(word=f"worse than rival {name.split(',')[0]}", good=False, text=text)
    else:
        text = f"{what} {number(own)}; the next has {number(value)} ({name})"
        yield start._replace(word="ahead of all rivals", good=True, text=text)


def _of(row: ErrorRow | MeanRow, word: str, good: bool | None, text: str) -> Verdict:
    dim = f", d={row.dim}" if isinstance(row, ErrorRow) and row.dim is not None else ""
    return Verdict(row.experiment, row.preset, f"{words.method(row.method)}{dim}", word, good, text)


def _family(method: str) -> str:
    """KNIFE in any of its forms is KNIFE to the paper."""
    return "knife" if method.startswith("knife") else method


def _failures(runs: Count) -> str:
    return f"; {runs.failures} of {runs.runs} runs failed" if runs.failures else ""


def _times(value: float, paper: float) -> str:
    if min(value, paper) <= 0:
        return f"{number(value - paper)} apart"
    if abs(math.log(value / paper)) < 0.005:
        return "about the same"
    return f"{paper / value:.3g} times smaller" if value < paper else f"{value / paper:.3g} times as large"


def _list(values: Iterable[float | None]) -> str:
    return " / ".join("–" if value is None else f"{value:.2f}" for value in values)


_APPLICATIONS: dict[str, Callable[[str, Sequence[Record]], Iterator[Verdict]]] = {
    "table2": judge_ib_text,
    "fig4": judge_fair_text,
    "table3": _adaptation,
}
