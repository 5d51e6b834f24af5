from statistics import fmean

import pytest

from infoknife.paper.experiments import published


def test_table1() -> None:
    assert published.error("table1", "knife", 10) == (0.0461, 0.0139, 20)
    assert published.error("table1", "knife", 64) == (2.8045, 0.0796, 20)
    assert published.error("table1", "doe", 64) == (3.3170, 1.8281, 20)
    assert published.error("table1", "schraudolph", 10) == (0.7301, 0.0428, 20)


def test_triangles() -> None:
    assert published.error("fig2-triangle8", "doe", 8) == (7.1070, 2.7984, 10)
    assert published.error("triangle20", "schraudolph", 20) == (13.1660, 8.2651, 10)


@pytest.mark.parametrize(("method", "dim"), [("doe", 20), ("knife", 8), ("knife", None), ("mine", 20)])
def test_what_is_not_published_is_none(method: str, dim: int | None) -> None:
    assert published.error("triangle20", method, dim) is None
    assert published.staircase("fig1-shrinking", method) is None


@pytest.mark.parametrize("stairs", ["gaussian", "cubic", "uniform"])
@pytest.mark.parametrize("method", ["knife", "doe", "club", "infonce", "mine", "nwj"])
def test_figure3_is_whole(stairs: str, method: str) -> None:
    found = published.staircase(f"fig3-{stairs}", method)
    assert found is not None
    assert found.truth == (2, 4, 6, 8, 10)
    assert found.best_run == (stairs == "uniform")
    known = [value for value in found.mean if value is not None]
    assert len(known) == (4 if (stairs, method) == ("cubic", "doe") else 5)
    assert known == sorted(known)


@pytest.mark.parametrize("stairs", ["gaussian", "cubic", "uniform"])
def test_the_bias_of_knife_agrees_with_its_levels(stairs: str) -> None:
    """Two readings of one figure: over the last 500 steps, and at the end of each level."""
    found = published.staircase(f"fig3-{stairs}", "knife")
    assert found is not None
    for truth, mean, bias in zip(found.truth, found.mean, published.KNIFE_BIAS[f"fig3-{stairs}"], strict=True):
        assert mean is not None
        assert abs(mean - truth) == pytest.approx(bias, abs=0.25)


def test_tuba_and_sources() -> None:
    found = published.staircase("tuba-gaussian", "tuba")
    assert found is not None
    assert found.mean == (1.47, 2.96, 4.52, 6.12, 7.75)
    assert published.staircase("tuba-cubic", "tuba") is None
    for name in ("table1", "fig2-triangle8", "triangle20", "fig3-gaussian", "fig3-uniform", "tuba-gaussian"):
        assert "read from the published PDF" in (published.source(name) or "")
    assert "LaTeX source" in (published.source("table3") or "")
    assert "LaTeX source" in (published.source("table2") or "")
    assert published.source("table9") is None


def test_table3() -> None:
    assert published.accuracy("knife", ("mnist", "mnistm")) == (78.7, 0.7, 3)
    assert published.accuracy("doe", ("svhn", "mnist")) == (86.4, 5.4, 3)
    assert published.accuracy("source-only", ("cifar10", "stl10")) == (72.3, 0.5, 3)
    assert published.accuracy("dann", ("svhn", "mnist")) is None
    assert published.accuracy("dann") is None
    assert published.accuracy("knife", ("digits", "mnist5k")) is None


@pytest.mark.parametrize("method", ["source-only", "club", "doe", "infonce", "mine", "nwj", "knife"])
def test_means_of_table3_are_those_of_its_pairs(method: str) -> None:
    """The printed means and deviations are the means of both over the pairs, but for rounding."""
    cells = [cell for pair in published.PAIRS if (cell := published.accuracy(method, pair)) is not None]
    whole = published.accuracy(method)
    assert whole is not None
    assert len(cells) == 6
    assert fmean(cell.mean for cell in cells) == pytest.approx(whole.mean, abs=0.1)
    assert fmean(cell.std for cell in cells) == pytest.approx(whole.std, abs=0.16)


def test_table2() -> None:
    assert published.fine_tuned("knife", "mrpc", "f1") == (85.3, 0.1, 10)
    assert published.fine_tuned("none", "mrpc", "accuracy") == (88.2, 0.7, 10)
    assert published.fine_tuned("mine", "stsb", "spearman") == (88.0, 0.6, 10)
    assert published.fine_tuned("vub", "rte", "accuracy") == (70.9, 0.1, 10)
    for method, task, metric in (("adv", "rte", "accuracy"), ("knife", "rte", "f1"), ("knife", "cola", "accuracy")):
        assert published.fine_tuned(method, task, metric) is None


def test_knife_is_the_best_of_table2() -> None:
    rivals = ("none", "club", "infonce", "mine", "nwj", "vub", "doe")
    for task, metrics in published.GLUE.items():
        for metric in metrics:
            own, *others = (published.fine_tuned(method, task, metric) for method in ("knife", *rivals))
            assert own is not None
            assert all(cell is not None and cell.mean < own.mean for cell in others)


def test_figure4() -> None:
    assert published.tradeoff("dial-sentiment", "knife", 100.0) == (70.4, 50.0)
    assert published.tradeoff("dial-sentiment", "none") == (71.0, 64.0)
    assert published.tradeoff("dial-mention", "adv", 10.0) == (53.0, 67.0)
    assert published.tradeoff("dial-mention", "nwj", 0.001) == (57.0, 63.6)
    assert "vector graphics" in (published.source("fig4") or "")
    for corpus, method, weight in (
        ("dial-mention", "mine", 1.0),
        ("dial-mention", "knife", 100.0),
        ("synthetic", "none", 0.0),
    ):
        assert published.tradeoff(corpus, method, weight) is None


@pytest.mark.parametrize("corpus", published.WEIGHTS)
@pytest.mark.parametrize("method", published.FAIR_METHODS)
def test_figure4_is_whole(corpus: str, method: str) -> None:
    cells = [published.tradeoff(corpus, method, weight) for weight in published.WEIGHTS[corpus]]
    assert len(cells) == 5
    assert all(cell is not None and 50 <= cell.main <= 84 and 50 <= cell.private <= 67 for cell in cells)


def test_the_numbers_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        published.KNIFE_BIAS["fig3-gaussian"] = ()  # type: ignore[index]
