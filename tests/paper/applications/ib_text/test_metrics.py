import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as judge
from torch import Tensor

from infoknife.paper.applications.ib_text.metrics import METRICS, calibration_error, scores


def drawn(n: int, classes: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, classes, generator=generator)
    return logits, torch.randint(classes, (n,), generator=generator)


@given(st.integers(2, 40), st.integers(2, 5), st.integers(0, 100))
def test_classes_are_judged_as_scikit_learn_does(n: int, classes: int, seed: int) -> None:
    logits, y = drawn(n, classes, seed)
    found = scores(("f1", "accuracy"), logits, y)
    predicted, average = logits.argmax(1), "binary" if classes == 2 else "macro"
    assert list(found) == ["f1", "accuracy"]
    assert found["accuracy"] == pytest.approx(judge.accuracy_score(y, predicted))
    assert found["f1"] == pytest.approx(judge.f1_score(y, predicted, average=average, zero_division=0))


def test_f1_by_hand() -> None:
    logits = torch.eye(2)[[1, 1, 1, 0, 0]]  # two of three are right, and one of three is missed
    found = scores(("f1", "accuracy"), logits, torch.tensor([1, 1, 0, 1, 0]))
    assert found == {"f1": pytest.approx(2 / 3), "accuracy": pytest.approx(3 / 5)}
    assert scores(("f1",), torch.eye(2)[[0, 0]], torch.tensor([0, 0])) == {"f1": 0.0}  # no positive at all, no warning


@given(st.integers(3, 40), st.integers(0, 100), st.sampled_from([torch.float32, torch.float64, torch.bfloat16]))
def test_values_are_judged_as_scipy_does(n: int, seed: int, dtype: torch.dtype) -> None:
    x, y = torch.randn(2, n, generator=torch.Generator().manual_seed(seed))
    x = x.to(dtype)
    found = scores(("pearson", "spearman"), x[:, None], y)
    numbers = x.double().numpy(), y.double().numpy()
    assert found["pearson"] == pytest.approx(stats.pearsonr(*numbers).statistic)
    assert found["spearman"] == pytest.approx(stats.spearmanr(*numbers).statistic)


@given(st.floats(0.01, 100), st.floats(-1e6, 1e6))
def test_correlations_do_not_move_with_the_scale(scale: float, shift: float) -> None:
    x, y = torch.randn(2, 20, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    moved = scores(("pearson", "spearman"), (scale * x + shift)[:, None], y)
    assert moved == pytest.approx(scores(("pearson", "spearman"), x[:, None], y), abs=1e-6)


@pytest.mark.parametrize(("x", "y"), [([2.0] * 4, [1.0, 2, 3, 4]), ([1.0, 2, 3, 4], [2.0] * 4), ([1.0], [2.0])])
def test_what_is_constant_has_no_correlation(x: list[float], y: list[float]) -> None:
    found = scores(("pearson", "spearman"), torch.tensor(x)[:, None], torch.tensor(y))  # and there is no warning
    assert found == {"pearson": 0.0, "spearman": 0.0}


def test_small_differences_on_a_large_mean() -> None:
    x = 1e6 + torch.tensor([0.0, 1, 2, 4], dtype=torch.float64) * 2**-30
    y = torch.tensor([0.0, 1, 2, 4])
    assert scores(("pearson",), x[:, None], y)["pearson"] == pytest.approx(1)  # and there is no warning


def test_outputs_with_a_gradient() -> None:
    logits, y = drawn(10, 2, 0)
    assert scores(("accuracy",), logits.requires_grad_(), y) == scores(("accuracy",), logits.detach(), y)


@pytest.mark.parametrize(
    ("name", "outputs", "y", "message"),
    [
        ("auc", torch.zeros(2, 2), [0, 1], "metric is 'auc'; expected one of 'accuracy', 'f1', 'pearson', 'spearman'"),
        ("f1", torch.zeros(2, 1), [0, 1], r"outputs has shape \(2, 1\); f1 expects \(N, C\), logits of two classes"),
        (
            "pearson",
            torch.zeros(2, 2),
            [0.0, 1],
            r"outputs has shape \(2, 2\); pearson expects \(N, 1\), a value a row",
        ),
        ("accuracy", torch.zeros(2, 2), [0, 2], "y has classes from 0 to 2; expected 0 to 1"),
        ("accuracy", torch.zeros(2, 2), [0], "y has 1 rows; expected 2"),
        ("spearman", torch.zeros(2, 1), [0.0], "y has 1 rows; expected 2"),
        ("accuracy", torch.full((2, 2), float("nan")), [0, 1], "outputs has NaN in 2 of 2 rows"),
    ],
)
def test_what_cannot_be_judged(name: str, outputs: Tensor, y: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scores((name,), outputs, torch.tensor(y))


def test_the_library_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.metrics", None)
    with pytest.raises(ModuleNotFoundError, match=r"need sklearn; .*pip install 'infoknife\[ib-text\]'"):
        scores(("accuracy",), *drawn(4, 2, 0))


def test_names() -> None:
    assert list(METRICS) == ["accuracy", "f1", "pearson", "spearman"]


# calibration


def plain(p: np.ndarray, y: np.ndarray, bins: int) -> float:
    """Follow the definition, bin by bin."""
    confidence, right, error = p.max(1), p.argmax(1) == y, 0.0
    for b in range(bins):
        inside = (confidence > b / bins) & (confidence <= (b + 1) / bins)
        if inside.any():
            error += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    return error


@given(st.integers(1, 60), st.integers(2, 5), st.integers(1, 20), st.integers(0, 100))
def test_calibration_follows_its_definition(n: int, classes: int, bins: int, seed: int) -> None:
    logits, y = drawn(n, classes, seed)
    p = (3 * logits.double()).softmax(1)
    assert calibration_error(p, y, bins) == pytest.approx(plain(p.numpy(), y.numpy(), bins), abs=1e-12)


def test_calibration_by_hand() -> None:
    p = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6], [0.35, 0.65]], dtype=torch.float64)
    y = torch.tensor([0, 1, 1, 1])  # half of 0.9 is right; all of 0.6 and 0.65, in one bin of two and two of twenty
    assert calibration_error(p, y, bins=20) == pytest.approx((2 * 0.4 + 0.4 + 0.35) / 4)
    assert calibration_error(p, y, bins=1) == pytest.approx(abs(3 / 4 - 3.05 / 4))


def test_extremes_of_calibration() -> None:
    p = torch.eye(3)
    assert calibration_error(p, torch.tensor([0, 1, 2])) == 0
    assert calibration_error(p, torch.tensor([1, 2, 0])) == 1
    even = torch.tensor([[0.5, 0.5]] * 4)
    assert calibration_error(even, torch.tensor([0, 1, 0, 1])) == 0


@pytest.mark.parametrize("p", [[[0.5, 0.6]], [[1.5, -0.5]], [[2.0, -3.0]]])
def test_no_probabilities(p: list[list[float]]) -> None:
    with pytest.raises(
        ValueError, match=r"probabilities has rows that .*; expected .* sum to one: logits\.softmax\(1\)"
    ):
        calibration_error(torch.tensor(p), torch.tensor([0]))


def test_bins_are_counted() -> None:
    with pytest.raises(ValueError, match="bins is 0; expected at least 1"):
        calibration_error(torch.eye(2), torch.tensor([0, 1]), bins=0)
