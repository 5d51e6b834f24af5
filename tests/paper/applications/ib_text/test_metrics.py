"""Metrics against scikit-learn and scipy, and the information plane against closed forms."""

import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as judge
from torch import Tensor, nn

from infoknife.paper.applications.ib_text import Bottleneck, PairData
from infoknife.paper.applications.ib_text.metrics import (
    METRICS,
    Predictions,
    calibration_error,
    draw_plane,
    plane,
    predict,
    score,
)
from infoknife.paper.applications.ib_text.model import read
from infoknife.paper.applications.pretrained import tokenizer_of


def scores(names: tuple[str, ...], outputs: Tensor, y: Tensor) -> dict[str, float]:
    """The metrics alone, in their order."""
    found = score(Predictions(outputs, None, y), names)
    return {name: found[name] for name in found if name in METRICS}


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
    large = 1e6 + torch.tensor([0.0, 1, 2, 4], dtype=torch.float64) * 2**-30
    assert scores(("pearson",), large[:, None], torch.tensor([0.0, 1, 2, 4]))["pearson"] == pytest.approx(1)


def test_a_model_that_diverged_has_no_score() -> None:
    with pytest.raises(ValueError, match="outputs has NaN"):
        scores(("accuracy",), torch.full((2, 2), float("nan")), torch.tensor([0, 1]))


def test_the_library_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.metrics", None)
    with pytest.raises(ModuleNotFoundError, match=r"need sklearn; .*pip install 'infoknife\[ib-text\]'"):
        scores(("accuracy",), *drawn(4, 2, 0))


# calibration


@given(st.integers(1, 60), st.integers(2, 5), st.integers(0, 100))
def test_calibration_follows_its_definition(n: int, classes: int, seed: int) -> None:
    logits, y = drawn(n, classes, seed)
    p = (3 * logits.double()).softmax(1)
    confidence, right, error = p.max(1).values, p.argmax(1) == y, 0.0
    for b in range(15):
        inside = (confidence > b / 15) & (confidence <= (b + 1) / 15)
        if inside.any():
            error += inside.sum().item() / n * abs(right[inside].double().mean() - confidence[inside].mean()).item()
    assert calibration_error(p, y) == pytest.approx(error, abs=1e-12)


# the information plane


DIM = 6


class Head(nn.Module):
    """What ``plane`` asks of a model: a linear head over z."""

    def __init__(self, outputs: int, regression: bool) -> None:
        super().__init__()
        self.head, self.regression, self.plain = nn.Linear(DIM, outputs), regression, False
        nn.init.zeros_(self.head.bias)

    def values(self, z: Tensor) -> Tensor:
        found: Tensor = self.head(z)
        return found


def model(weight: Tensor, regression: bool = False) -> Any:
    made = Head(len(weight), regression)
    made.head.weight.data = weight
    return made


def linear_gaussian(rows: int, seed: int) -> tuple[Tensor, float]:
    """Posteriors (N, 2 d) of z = A x + noise, and I(Z; X) = 0.5 log det(I + S^-1 A A')."""
    generator = torch.Generator().manual_seed(seed)
    slope = torch.randn(DIM, DIM, generator=torch.Generator().manual_seed(99))
    log_variance = torch.linspace(-1, 0.5, DIM)
    mean = torch.randn(rows, DIM, generator=generator) @ slope.T
    covariance = (slope @ slope.T).double() / log_variance.exp().double()[:, None]
    truth = 0.5 * torch.logdet(torch.eye(DIM).double() + covariance).item()
    return torch.cat([mean, log_variance.expand(rows, -1)], 1), truth


def test_information_of_a_linear_gaussian_encoder() -> None:
    (known, truth), (fresh, _) = linear_gaussian(4000, 0), linear_gaussian(2000, 1)
    seen = Predictions(torch.zeros(2000, 2), fresh, torch.arange(2000) % 2)
    found = plane(model(torch.zeros(2, DIM)), known, seen, seed=0)
    assert found["information"] == pytest.approx(truth, abs=0.05)
    assert found["information"] < found["information_vub"]
    mean, log_variance = fresh.double().chunk(2, 1)
    bound = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1).mean().item()
    assert found["information_vub"] == pytest.approx(bound, rel=1e-5)
    assert found == plane(model(torch.zeros(2, DIM)), known, seen, seed=0)


@pytest.mark.parametrize("known", [None, torch.zeros(1, 2 * DIM)])
def test_what_is_not_known_is_not_told(known: Tensor | None) -> None:
    """Without posteriors of training rows there is the bound alone; without a bottleneck I(Z; X) is infinite."""
    seen = Predictions(torch.zeros(8, 2), torch.zeros(8, 2 * DIM), torch.arange(8) % 2)
    found = plane(model(torch.zeros(2, DIM)), known, seen, seed=0)
    assert found == {"relevance": pytest.approx(0.0, abs=1e-6), "information_vub": 0.0}
    y, plain = torch.tensor([0, 1, 0, 1]), SimpleNamespace(regression=False)
    alone: Any = plane(cast(Any, plain), None, Predictions(30 * torch.eye(2)[y], None, y), seed=0)
    assert alone == {"relevance": pytest.approx(math.log(2))}


@pytest.mark.parametrize("classes", [2, 3])
def test_relevance_is_below_the_entropy_of_the_label(classes: int) -> None:
    y = torch.tensor([0] * 50 + [1] * 30 + [classes - 1] * 20)
    shares = torch.bincount(y).double() / 100
    entropy = -(shares * shares.log()).sum().item()
    weight = 50 * torch.eye(classes, DIM)
    means = torch.eye(classes, DIM)[y]
    posterior = torch.cat([means, torch.full((100, DIM), -12.0)], 1)  # hardly any noise: z tells y
    found = plane(model(weight), None, Predictions(torch.zeros(100, classes), posterior, y), seed=0)["relevance"]
    assert entropy - 1e-3 < found <= entropy
    noisy = torch.cat([means, torch.full((100, DIM), 2.0)], 1)
    assert plane(model(weight), None, Predictions(torch.zeros(100, classes), noisy, y), seed=0)["relevance"] < found


def test_relevance_of_values() -> None:
    """y is z's first coordinate before the noise: the head's error is the noise, 0.5 log(1 + 1 / sigma^2)."""
    generator = torch.Generator().manual_seed(1)
    mean = torch.randn(20_000, DIM, generator=generator)
    posterior = torch.cat([mean, torch.full((20_000, DIM), math.log(0.25))], 1)
    weight = torch.eye(1, DIM) / 1.25  # the best linear guess
    seen = Predictions(mean[:, :1], posterior, mean[:, 0])
    found = plane(model(weight, regression=True), None, seen, seed=0)["relevance"]
    assert found == pytest.approx(0.5 * math.log(1 + 1 / 0.25), abs=0.03)


def test_classes_have_a_calibration_error_and_values_have_none() -> None:
    y = torch.tensor([0, 1, 1, 1])
    found = score(Predictions(torch.tensor([[0.0, 1.0]] * 4), None, y), ("accuracy", "f1"))
    assert found["accuracy"] == 0.75
    assert found["score"] == (found["accuracy"] + found["f1"]) / 2
    assert found["calibration_error"] == pytest.approx(0.75 - 1 / (1 + math.exp(-1)), abs=1e-6)
    values = score(Predictions(torch.tensor([[0.1], [0.2], [0.9]]), None, torch.tensor([1.0, 2.0, 3.0])), ("spearman",))
    assert values == {"spearman": pytest.approx(1.0), "score": pytest.approx(1.0)}


@pytest.mark.parametrize("method", ["plain", "knife"])
def test_rows_are_seen_in_their_order_in_evaluation_mode(encoder: str, pairs: PairData, method: str) -> None:
    made = Bottleneck.over(encoder, method=method, bottleneck=4, num_labels=2, dropout=0.5).train()
    rows = read(pairs.train, tokenizer_of(encoder), 24)
    many = rows._replace(columns={k: 3 * v for k, v in rows.columns.items()}, y=rows.y.repeat(3))  # several blocks
    seen, again = predict(made, many), predict(made, many)
    assert made.training
    assert torch.equal(seen.outputs, again.outputs)
    with torch.no_grad():
        alone = [made.eval()(**rows.batch(torch.tensor([i]), torch.device("cpu"))) for i in range(len(rows.y))]
    torch.testing.assert_close(seen.outputs, torch.cat([out.logits for out in alone]).repeat(3, 1))
    if method == "plain":
        assert seen.posterior is None
    else:
        expected = torch.cat([torch.cat([out.mean, out.log_variance], 1) for out in alone])
        torch.testing.assert_close(seen.posterior, expected.repeat(3, 1))


CURVES = {"epoch": [1.0, 2.0, 3.0], "information": [9.0, 7.5, 6.0], "relevance": [0.1, 0.3, 0.5]}


def test_the_picture_of_the_plane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    path, drawn = tmp_path / "plane.png", list[Figure]()
    draw_plane({"epoch": [1.0], "relevance": [0.1]}, path)
    assert not path.exists()
    draw_plane(CURVES, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    draw_plane(CURVES, path)
    axes: Any = drawn[0].axes[0]
    assert axes.lines[0].get_xydata().tolist() == [[9.0, 0.1], [7.5, 0.3], [6.0, 0.5]]
    assert [text.get_text() for text in axes.texts] == ["1", "2", "3"]
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    draw_plane(CURVES, path)
    assert len(drawn) == 1
