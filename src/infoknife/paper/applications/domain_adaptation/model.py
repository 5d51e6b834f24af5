"""The paper's networks (tab:da_architectures): an encoder for the class, one for the domain, two linear heads."""

from typing import final

import torch
from torch import Tensor, nn

SLOPE = 0.1  # of LeakyReLU
DOMAINS = 2
STAGES = 3  # sequences of three convolutions, with a noisy down-sampling between them


class Noise(nn.Module):
    """Gaussian noise of a standard deviation while training, nothing after."""

    def __init__(self, sigma: float) -> None:
        super().__init__()
        self.sigma = sigma

    def forward(self, x: Tensor) -> Tensor:
        """Add noise to x (N, channels, H, W)."""
        return x + self.sigma * torch.randn_like(x) if self.training else x


def convolutions(channels: int, out: int) -> list[nn.Module]:
    """Make the convolution sequence: three times 3 x 3, BatchNorm and LeakyReLU."""
    layers: list[nn.Module] = []
    for _ in range(3):
        convolution = nn.Conv2d(channels, out, 3, padding=1, bias=False)  # BatchNorm would take a bias away
        layers += [convolution, nn.BatchNorm2d(out), nn.LeakyReLU(SLOPE, inplace=True)]
        channels = out
    return layers


def encoder(channels: int, sigma: float = 1.0, dropout: float = 0.5) -> nn.Sequential:
    """Make an encoder of images (N, 3, H, W): as many features as channels (N, channels).

    Args:
        channels: Of all convolutions; the paper has 64.
        sigma: Deviation of the noise after each down-sampling; the paper has 1.
        dropout: Part of the numbers that are dropped there; the paper has 0.5.

    Example:
        >>> encoder(8)(torch.zeros(2, 3, 16, 16)).shape
        torch.Size([2, 8])
    """
    layers = convolutions(3, channels)
    for _ in range(STAGES - 1):
        layers += [nn.MaxPool2d(2), nn.Dropout(dropout), Noise(sigma), *convolutions(channels, channels)]
    network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # quicker on a CPU
    return network


def standardized(images: Tensor) -> Tensor:
    """Bring images (N, 3, H, W) of 0 to 255 to numbers from -1 to 1, channels last in memory.

    Example:
        >>> standardized(torch.tensor([0, 255], dtype=torch.uint8).reshape(1, 1, 1, 2)).flatten()
        tensor([-1.,  1.])
    """
    return (images.float() / 127.5 - 1).contiguous(memory_format=torch.channels_last)


@final
class Adapter(nn.Module):
    r"""The class encoder $\Phi$ and the domain encoder $\Phi^d$, each with its linear head.

    Called with images it returns the logits of their classes, as a user of the trained model wants them.

    Args:
        channels: Of all convolutions, and the number of features; the paper has 64.
        classes: Number of classes.
        sigma: Deviation of the noise in the encoders.
        dropout: Part of the numbers that they drop.

    Example:
        >>> Adapter(8, 10).eval()(torch.zeros(2, 3, 16, 16, dtype=torch.uint8)).shape
        torch.Size([2, 10])
    """

    def __init__(self, channels: int, classes: int, sigma: float = 1.0, dropout: float = 0.5) -> None:
        super().__init__()
        self.phi, self.head = encoder(channels, sigma, dropout), nn.Linear(channels, classes)
        self.domain_phi, self.domain_head = encoder(channels, sigma, dropout), nn.Linear(channels, DOMAINS)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits (N, classes) of images (N, 3, H, W) of 0 to 255."""
        logits: Tensor = self.head(self.features(images))
        return logits

    def features(self, images: Tensor) -> Tensor:
        r"""Return $\Phi(x)$ (N, channels) of images (N, 3, H, W) of 0 to 255."""
        features: Tensor = self.phi(standardized(images))
        return features

    def domain_features(self, images: Tensor) -> Tensor:
        r"""Return $\Phi^d(x)$ (N, channels) of images (N, 3, H, W) of 0 to 255."""
        features: Tensor = self.domain_phi(standardized(images))
        return features
