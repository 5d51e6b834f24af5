from infoknife.paper.experiments.report.cells import cell, largest, seeds
from infoknife.paper.experiments.summary import Accuracy, Count


def accuracy(mean: float | None, std: float | None = None, runs: int = 3, failures: int = 0) -> Accuracy:
    return Accuracy(mean, std, Count(runs, failures, 1.0))


def test_cells() -> None:
    assert cell(None) == "–"
    assert cell(accuracy(61.24, 0.78)) == "61.2 ± 0.8"
    assert cell(accuracy(61.24, failures=2)) == "61.2 (2 of 3 failed)"
    assert cell(accuracy(None, failures=3)) == "failed"


def test_seeds() -> None:
    assert seeds([accuracy(1.0), accuracy(2.0)]) == "3 seeds"
    assert seeds([accuracy(1.0, runs=1)]) == "1 seed"
    assert seeds([accuracy(1.0, runs=5), accuracy(2.0)]) == "3 to 5 seeds"


def test_the_largest_of_several_stands_out_and_the_first_of_equal_ones() -> None:
    assert largest({0: (1.0, 2.0, None), 2: (1.0, 3.0, 5.0), 3: (0.5, None, None)}) == ((0, 2), (2, 3))
    assert largest({}) == ()
