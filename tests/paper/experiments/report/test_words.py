import pytest

from infoknife import estimators
from infoknife.paper.experiments import bench
from infoknife.paper.experiments.report import words
from infoknife.paper.experiments.report.palette import COLOURS
from infoknife.paper.experiments.summary import kind
from tests.paper.experiments.record_factory import record

METHODS = sorted({*estimators.names(), *bench.DENSITIES, "dann", "source-only", "none"})


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_name_and_a_colour(name: str) -> None:
    assert words.method(name)[0].isupper()
    assert name in COLOURS


def test_names_are_distinct() -> None:
    assert len({words.method(name) for name in METHODS}) == len(METHODS)


@pytest.mark.parametrize("task", ["moons", "gaussian-1x1", "classes-2-1d", "something-new"])
def test_every_kind_of_the_benchmark_has_a_title(task: str) -> None:
    quantity = "entropy" if task == "moons" else "mutual_information"
    name = f"bench-{kind(record('bench', 'quick', {'task': task, 'quantity': quantity}))}"
    assert words.short(name).startswith("Benchmark, ")
    assert words.title(name) != name


def test_parts_of_a_whole() -> None:
    assert words.percent(float("nan")) == "–"
    assert words.percent(1.0) == "100 %"
