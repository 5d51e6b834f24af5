"""What is measured of a model, against closed forms."""

import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from infoknife.paper.applications.ib_text import Bottleneck, PairData
from infoknife.paper.applications.ib_text.plane import Predictions, draw_plane, plane, predict, score
from infoknife.paper.applications.ib_text.tokens import read
from infoknife.paper.applications.pretrained import tokenizer_of

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
def test_without_training_posteriors_there_is_the_bound_alone(known: Tensor | None) -> None:
    seen = Predictions(torch.zeros(8, 2), torch.zeros(8, 2 * DIM), torch.arange(8) % 2)
    found = plane(model(torch.zeros(2, DIM)), known, seen, seed=0)
    assert found == {"relevance": pytest.approx(0.0, abs=1e-6), "information_vub": 0.0}


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


def test_without_a_bottleneck_there_is_relevance_alone() -> None:
    y = torch.tensor([0, 1, 0, 1])
    logits = 30 * torch.eye(2)[y]
    plain: Any = SimpleNamespace(regression=False)
    assert plane(plain, None, Predictions(logits, None, y), seed=0) == {"relevance": pytest.approx(math.log(2))}


def test_classes_have_a_calibration_error_and_values_have_none() -> None:
    y = torch.tensor([0, 1, 1, 1])
    found = score(Predictions(torch.tensor([[0.0, 1.0]] * 4), None, y), ("accuracy", "f1"))
    assert found["accuracy"] == 0.75
    assert found["score"] == (found["accuracy"] + found["f1"]) / 2
    assert found["calibration_error"] == pytest.approx(0.75 - 1 / (1 + math.exp(-1)), abs=1e-6)
    values = score(Predictions(torch.tensor([[0.1], [0.2], [0.9]]), None, torch.tensor([1.0, 2.0, 3.0])), ("spearman",))
    assert values == {"spearman": pytest.approx(1.0), "score": pytest.approx(1.0)}


@pytest.mark.parametrize("method", ["none", "knife"])
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
    if method == "none":
        assert seen.posterior is None
    else:
        expected = torch.cat([torch.cat([out.mean, out.log_variance], 1) for out in alone])
        torch.testing.assert_close(seen.posterior, expected.repeat(3, 1))


CURVES = {"epoch": [1.0, 2.0, 3.0], "information": [9.0, 7.5, 6.0], "relevance": [0.1, 0.3, 0.5]}


def test_points_of_the_picture_say_what_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    drawn: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    assert draw_plane(CURVES, tmp_path / "plane.png")
    axes: Any = drawn[0].axes[0]
    assert axes.collections[0].get_offsets().tolist() == [[9.0, 0.1], [7.5, 0.3], [6.0, 0.5]]
    assert [text.get_text() for text in axes.texts] == ["1", "2", "3"]


def test_without_points_or_matplotlib_there_is_no_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "plane.png"
    assert not draw_plane({"epoch": [1.0], "relevance": [0.1]}, path)
    assert draw_plane(CURVES, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert not draw_plane(CURVES, path)
