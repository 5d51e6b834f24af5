"""``python -m benchmarks.candidates``: what each candidate of a measurement buys, by leaving it out.

Every case to judge by that has no condition is measured with all candidates of ``quick``, and again without each of
them. The table has how much larger the mean error in nats is without it, and for which case most. Fits are kept, so
that leaving something out costs little.
"""

import warnings
from dataclasses import replace
from statistics import fmean
from typing import Annotated, Any
from unittest.mock import patch

import torch
import typer

from infoknife import mutual_information
from infoknife.measure import candidates as catalogue
from infoknife.measure.candidates.base import Candidate, Fitted
from infoknife.measure.question import Question, Sample
from infoknife.tasks.judging import Case, cases

CANDIDATES = catalogue.CLOSED
OTHERS = {  # what a measurement has besides candidates, and what stands in its place without it
    "neighbours": ("infoknife.measure.crossfit._neighbours", lambda *_: None),
    "independent components": ("infoknife.measure.quantities.with_unmixed", lambda views: views),
}


class Kept(Candidate):
    """A candidate that fits the same rows only once."""

    def __init__(self, own: Candidate, fits: dict[Any, Fitted]) -> None:
        self.own, self.fits = own, fits
        self.name = own.name
        vars(self).update(is_density=own.is_density, sees_order=own.sees_order)

    def alone(self, question: Question) -> Candidate | None:
        alone = self.own.alone(question)
        return None if alone is None else Kept(alone, self.fits)

    def supports(self, data: Sample, question: Question) -> bool:
        return self.own.supports(data, question)

    def fit(self, data: Sample, question: Question, generator: torch.Generator) -> Fitted:
        rows = (len(data), data.continuous.sum().item(), data.continuous[:1].sum().item(), data.discrete.sum().item())
        key = (type(self.own), str(sorted(vars(self.own).items(), key=str)), question, rows)
        if key not in self.fits:
            found = self.own.fit(data, question, generator)
            fixed = None if found.fixed is None else Kept(found.fixed, self.fits)
            self.fits[key] = replace(found, fixed=fixed)
        return self.fits[key]


def errors(case: Case, n: int) -> dict[str, float]:
    """The error with everything, and without each candidate and each of the others."""
    x, y, _ = case.sample(n, seed=0)
    fits: dict[Any, Fitted] = {}
    every = tuple(Kept(one, fits) for one in CANDIDATES)

    def error() -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return abs(mutual_information(x, y, effort="quick", seed=0).value - case.information)

    with patch.object(catalogue, "CLOSED", every):
        found = {"": error()}
        for name, (place, instead) in OTHERS.items():
            with patch(place, instead):
                found[name] = error()
    for name in dict.fromkeys(one.name for one in CANDIDATES):
        with patch.object(catalogue, "CLOSED", tuple(one for one in every if one.name != name)):
            found[name] = error()
    return found


def main(n: Annotated[int, typer.Option(help="Rows of each case.")] = 1500) -> None:
    """Print the table in Markdown: development cases, reporting cases, and where it is missed most."""
    torch.set_num_threads(1)
    found: dict[str, dict[str, dict[str, float]]] = {}
    for half in ("development", "reporting"):
        plain = [case for case in cases(half) if case.sample(1, seed=0)[2] is None and "32" not in case.name]
        found[half] = {case.name: errors(case, n) for case in plain}
    print("| without | development | reporting | most for |\n|---|---:|---:|---|")
    for name in found["reporting"][next(iter(found["reporting"]))]:
        more = {half: {case: one[name] - one[""] for case, one in own.items()} for half, own in found.items()}
        most, case = max((gain, case) for own in more.values() for case, gain in own.items())
        means = " | ".join(f"{fmean(own.values()):+.4f}" for own in more.values())
        if name:
            print(f"| {name} | {means} | {case} ({most:+.2f}) |")
        else:
            means = " | ".join(f"{fmean(one[''] for one in own.values()):.4f}" for own in found.values())
            print(f"| nothing: the mean error | {means} | |")


if __name__ == "__main__":
    typer.run(main)
