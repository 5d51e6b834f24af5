"""The paper's networks, layer by layer, and what they give."""

import pytest
import torch
from torch import nn

from infoknife.paper.applications.domain_adaptation.model import Adapter, Noise, encoder, standardized


def test_encoder_is_the_papers() -> None:
    """Table tab:da_architectures, with 64 channels."""
    layers = list(encoder(64))
    kinds = [type(layer) for layer in layers]
    sequence = [nn.Conv2d, nn.BatchNorm2d, nn.LeakyReLU] * 3
    down = [nn.MaxPool2d, nn.Dropout, Noise]
    assert kinds == [*sequence, *down, *sequence, *down, *sequence, nn.AdaptiveAvgPool2d, nn.Flatten]
    convolutions = [layer for layer in layers if isinstance(layer, nn.Conv2d)]
    assert [c.in_channels for c in convolutions] == [3, *[64] * 8]
    assert {(c.out_channels, c.kernel_size, c.stride, c.padding) for c in convolutions} == {
        (64, (3, 3), (1, 1), (1, 1))
    }
    assert {layer.p for layer in layers if isinstance(layer, nn.Dropout)} == {0.5}
    assert {layer.sigma for layer in layers if isinstance(layer, Noise)} == {1.0}
    assert {layer.negative_slope for layer in layers if isinstance(layer, nn.LeakyReLU)} == {0.1}


def test_noise_ends_with_training() -> None:
    noise, x = Noise(2.0), torch.full((1000, 50), 3.0)
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


def test_images_go_from_minus_one_to_one() -> None:
    x = standardized(torch.tensor([0, 51, 255], dtype=torch.uint8).reshape(1, 3, 1, 1))
    assert torch.allclose(x.flatten(), torch.tensor([-1.0, -0.6, 1.0]))
