"""The fair protocol: every method has the same number of draws from the same grid, and test rows choose nothing.

As in DomainBed (Gulrajani & Lopez-Paz, 2021): for every seed each method is trained with the same few settings, drawn
from one grid. A named rule, which knows the selection split alone, chooses among all steps of all draws; what it has
chosen is evaluated on the test split, once. Methods are then compared by their differences seed by seed.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from infoknife.inputs import check_count
from infoknife.paper.applications.run import Run, SelectionRule, seeded
from infoknife.pictures import Table

Record = Mapping[str, Any]


class LogUniform(NamedTuple):
    """A setting whose logarithm is uniform from ``low`` to ``high``."""

    low: float
    high: float

    def draw(self, random: np.random.Generator) -> float:
        """Draw a value, to three digits."""
        return float(f"{math.exp(random.uniform(math.log(self.low), math.log(self.high))):.3g}")


Grid = Mapping[str, LogUniform]


class PairedDifference(NamedTuple):
    """The mean of paired differences, with Student's interval; ``low`` and ``high`` are None for a single pair."""

    mean: float
    low: float | None
    high: float | None
    pairs: int

    def text(self) -> str:
        """The difference with its sign and interval.

        Examples:
            >>> PairedDifference(1.25, 0.5, 2.0, 5).text(), PairedDifference(-0.5, None, None, 1).text()
            ('+1.2 (0.5 to 2.0)', '-0.5')
        """
        interval = "" if self.low is None else f" ({self.low:.1f} to {self.high:.1f})"
        return f"{self.mean:+.1f}{interval}"


def draws(grid: Grid, number: int, seed: int) -> list[dict[str, float]]:
    """Draw settings: the same ones for every method, others for every seed.

    Examples:
        >>> grid = {"lr": LogUniform(1e-4, 1e-2)}
        >>> draws(grid, 2, seed=0) == draws(grid, 3, seed=0)[:2] != draws(grid, 2, seed=1)
        True
    """
    each = (np.random.default_rng([seed, number]) for number in range(check_count("draws", number)))
    return [{name: choice.draw(random) for name, choice in grid.items()} for random in each]


def compare(
    make: Callable[[str, int, Mapping[str, Any]], Run],
    methods: Sequence[str],
    seeds: Iterable[int],
    grid: Grid,
    number: int,
    rules: Sequence[SelectionRule],
    changes: Mapping[str, Any] | None = None,
) -> Iterator[dict[str, Any]]:
    """Train every method with the same draws, let each rule choose one, and evaluate that one on the test split.

    ``make`` gives the run of a method, a seed and settings: those of ``number`` draws from the grid, and ``changes``,
    the same for all.

    Yields:
        A record of each seed and method: by the name of every rule its ``draw``, ``step`` and ``settings``, what they
        were chosen by (``value``), and the ``results`` of the test split; draws whose loss is not finite have
        ``failed``.
    """
    for seed in seeds:
        for method in methods:
            runs, failed = [], 0
            for drawn in draws(grid, number, seed):
                with seeded(seed, "cpu"):
                    run = make(method, seed, {**(changes or {}), **drawn})
                    try:
                        run.train()
                    except FloatingPointError:
                        failed += 1
                    else:
                        runs.append((run, drawn))
            tested: dict[tuple[int, int], dict[str, Any]] = {}
            chosen = {rule.name: _chosen(runs, rule, tested) for rule in rules} if runs else {}
            yield {"method": method, "seed": seed, "draws": number, "failed": failed, "chosen": chosen}


def _chosen(
    runs: Sequence[tuple[Run, Mapping[str, float]]],
    rule: SelectionRule,
    tested: dict[tuple[int, int], dict[str, Any]],
) -> dict[str, Any]:
    """Test the model that is best by a rule, where no other rule chose it before: by draw and step, in ``tested``.

    Where the rule says nothing it is that of the first draw.
    """

    def value(place: int) -> float:
        kept = runs[place][0].kept_models[rule.name]["value"]
        return -math.inf if kept is None else float(kept)

    draw = max(range(len(runs)), key=value)
    run, drawn = runs[draw]
    kept = run.kept_models[rule.name]
    if (draw, kept["step"]) not in tested:
        tested[draw, kept["step"]] = run.test(rule)
    said = {"draw": draw, "step": kept["step"], "value": kept["value"], "settings": dict(drawn)}
    return {**said, "results": tested[draw, kept["step"]]}


def paired(ours: Mapping[Any, float], theirs: Mapping[Any, float]) -> PairedDifference:
    """Return the mean difference of what two methods have for the same keys, such as seeds; others are left out.

    Examples:
        >>> paired({0: 3.0, 1: 5.0, 2: 4.0}, {0: 1.0, 1: 2.0, 2: 3.0, 3: 9.0}).text()
        '+2.0 (-0.5 to 4.5)'
    """
    found = [ours[key] - theirs[key] for key in ours if key in theirs]
    if not found:
        raise ValueError("ours and theirs have no key in common; expected results for the same seeds")
    if len(found) == 1:
        return PairedDifference(found[0], None, None, 1)
    low, high = stats.ttest_1samp(found, 0.0).confidence_interval()
    return PairedDifference(fmean(found), float(low), float(high), len(found))


def by_seed(records: Iterable[Record], rule: str, name: str) -> dict[str, dict[int, float]]:
    """Return 100 times a result, by method and seed: its mean over the places that all methods with the seed have.

    A place is what a record has as ``place``, such as a pair of data sets.
    """
    cells: dict[tuple[str, int], dict[Any, float]] = {}
    for record in records:
        if rule in record["chosen"]:
            own = cells.setdefault((record["method"], record["seed"]), {})
            own[record.get("place")] = 100 * record["chosen"][rule]["results"][name]
    found: dict[str, dict[int, float]] = {}
    for (method, seed), own in cells.items():
        shared = set.intersection(*({*places} for (_, other), places in cells.items() if other == seed))
        if shared:
            found.setdefault(method, {})[seed] = fmean(own[place] for place in shared)
    return found


def comparison(caption: str, records: Sequence[Record], rule: str, names: Mapping[str, str], base: str) -> Table:
    """Lay out what methods reach on the test split, and how far they are from one of them, ``base``.

    The records are those of ``compare``, and models were chosen by ``rule``; ``names`` has the titles of results.
    """
    numbers = {name: by_seed(records, rule, name) for name in names}
    methods = dict.fromkeys(record["method"] for record in records)
    rows = []
    for method in methods:
        cells = []
        for found in numbers.values():
            own = found.get(method, {})
            spread = f" ± {stdev(own.values()):.1f}" if len(own) > 1 else ""
            cells.append(f"{fmean(own.values()):.1f}{spread}" if own else "–")
            shared = own.keys() & found.get(base, {}).keys()
            cells.append("" if method == base or not shared else paired(own, found[base]).text())
        rows.append((method, str(max(len(found.get(method, {})) for found in numbers.values())), *cells))
    head = [cell for title in names.values() for cell in (title, f"minus {base}")]
    return Table(caption, ("method", "seeds", *head), tuple(rows))
