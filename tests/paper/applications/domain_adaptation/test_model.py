"""The paper's networks, layer by layer, and what they say of images."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from infoknife.paper.applications.domain_adaptation import Images
from infoknife.paper.applications.domain_adaptation.model import (
    Adapter,
    GaussianNoise,
    accuracy,
    confusion,
    encoder,
    entropy_of_predictions,
    logits,
    neighbourhood_density,
    principal_components,
)
from tests.paper.applications.domain_adaptation.images import domain, images


def test_encoder_is_the_papers() -> None:
    """Table tab:da_architectures, with 64 channels."""
    layers = list(encoder(64))
    kinds = [type(layer) for layer in layers]
    sequence = [nn.Conv2d, nn.BatchNorm2d, nn.LeakyReLU] * 3
    down = [nn.MaxPool2d, nn.Dropout, GaussianNoise]
    assert kinds == [*sequence, *down, *sequence, *down, *sequence, nn.AdaptiveAvgPool2d, nn.Flatten]
    convolutions = [layer for layer in layers if isinstance(layer, nn.Conv2d)]
    assert [c.in_channels for c in convolutions] == [3, *[64] * 8]
    assert {(c.out_channels, c.kernel_size, c.stride, c.padding) for c in convolutions} == {
        (64, (3, 3), (1, 1), (1, 1))
    }
    assert {layer.p for layer in layers if isinstance(layer, nn.Dropout)} == {0.5}
    assert {layer.sigma for layer in layers if isinstance(layer, GaussianNoise)} == {1.0}
    assert {layer.negative_slope for layer in layers if isinstance(layer, nn.LeakyReLU)} == {0.1}


def test_noise_ends_with_training() -> None:
    noise, x = GaussianNoise(2.0), torch.full((1000, 50), 3.0)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        assert (noise(x) - x).std().item() == pytest.approx(2.0, abs=0.04)
    assert torch.equal(noise.eval()(x), x)


@pytest.mark.parametrize("size", [4, 7, 16, 32])
def test_any_size_of_four_pixels_or_more(size: int) -> None:
    model = Adapter(5, 3).eval()
    x = torch.zeros(2, 3, size, size, dtype=torch.uint8)
    assert model(x).shape == (2, 3)
    assert model.features(x).shape == model.domain_features(x).shape == (2, 5)


def test_encoders_share_nothing() -> None:
    model = Adapter(4, 2)
    model.domain_features(torch.zeros(2, 3, 8, 8, dtype=torch.uint8)).sum().backward()
    assert all(p.grad is None for p in model.phi.parameters())
    assert any(p.grad is not None for p in model.domain_phi.parameters())


# what a model says


class Scripted(Adapter):  # type: ignore[misc]
    """Says class 1 where the first pixel is bright."""

    def forward(self, images: Tensor) -> Tensor:
        bright = images[:, 0, 0, 0].float() / 255
        return torch.stack([1 - bright, bright], 1)


@pytest.mark.parametrize("n", [4, 2500])
def test_accuracy_and_confusion_count(n: int) -> None:
    x = torch.zeros(n, 3, 4, 4, dtype=torch.uint8)
    x[: n // 4, 0, 0, 0] = 255
    y = torch.ones(n, dtype=torch.long)
    y[-1] = 0
    model = nn.Module.train(Scripted(2, 2))
    assert isinstance(model, Adapter)
    found = logits(model, Images(x, y))
    assert accuracy(found, y) == pytest.approx((n // 4 + 1) / n)
    assert confusion(found, y) == [[1, 0], [n - 1 - n // 4, n // 4]]
    assert model.training


def test_principal_components_are_numpys() -> None:
    model = Adapter(6, 2)
    source, target = domain().test, domain("light", 100).test
    found = principal_components(model, source, target)
    with torch.no_grad():
        z = torch.cat([model.eval().features(part.x) for part in (source, target)]).double().numpy()
    values, vectors = np.linalg.eigh(np.cov(z.T, bias=True))
    expected = (z - z.mean(0)) @ vectors[:, ::-1][:, :2] / values[-1] ** 0.5
    for name, column in zip("xy", expected.T, strict=True):
        assert abs(np.corrcoef(found[name], column)[0, 1]) == pytest.approx(1, abs=1e-3)
        assert np.std(found[name]) == pytest.approx(column.std(), abs=1e-3)
    assert found["domain"] == [0.0] * 30 + [1.0] * 30
    assert found["label"] == [*source.y.tolist(), *target.y.tolist()]


def test_images_shown_are_from_all_over() -> None:
    many = images(1000, 0, 0)
    sorted_by_class = Images(many.x[many.y.argsort()], many.y.sort().values)
    found = principal_components(Adapter(4, 2), sorted_by_class, sorted_by_class)
    assert len(found["x"]) == 400
    assert sum(found["label"]) == pytest.approx(200, abs=2)


def test_rules_without_labels_by_their_definitions() -> None:
    found = torch.randn(7, 3, generator=torch.Generator().manual_seed(0))
    p = found.double().softmax(1).numpy()
    assert entropy_of_predictions(found) == pytest.approx(float(-(p * np.log(p)).sum(1).mean()), abs=1e-6)
    unit, entropies = p / np.linalg.norm(p, axis=1, keepdims=True), []
    for row in range(7):
        others = [unit[row] @ unit[other] / 0.05 for other in range(7) if other != row]
        q = np.exp(others) / np.exp(others).sum()
        entropies.append(-(q * np.log(q)).sum())
    assert neighbourhood_density(found) == pytest.approx(np.mean(entropies), abs=1e-5)
