"""The paper's networks (tab:da_architectures), and what they say of images: logits, accuracy, confusion, components."""

from typing import final

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from infoknife.paper.applications.domain_adaptation.data import Images
from infoknife.paper.applications.run import evaluating

BLOCK = 1000  # images that are evaluated at once
SHOWN, PLACES = 200, 3  # images of each domain whose features are shown, and decimal places of their coordinates
TEMPERATURE = 0.05  # of the similarities of predictions, as Saito et al. have it
SLOPE = 0.1  # of LeakyReLU
DOMAINS = 2
STAGES = 3  # sequences of three convolutions, with a noisy down-sampling between them


class GaussianNoise(nn.Module):
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
    """Make an encoder of images (N, 3, H, W): as many features as channels (N, channels); the paper has 64.

    After each down-sampling are dropout and Gaussian noise of deviation ``sigma``.

    Examples:
        >>> encoder(8)(torch.zeros(2, 3, 16, 16)).shape
        torch.Size([2, 8])
    """
    layers = convolutions(3, channels)
    for _ in range(STAGES - 1):
        layers += [nn.MaxPool2d(2), nn.Dropout(dropout), GaussianNoise(sigma), *convolutions(channels, channels)]
    network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # quicker on a CPU
    return network


def standardized(images: Tensor) -> Tensor:
    """Bring images (N, 3, H, W) of 0 to 255 to numbers from -1 to 1, channels last in memory.

    Examples:
        >>> standardized(torch.tensor([0, 255], dtype=torch.uint8).reshape(1, 1, 1, 2)).flatten()
        tensor([-1.,  1.])
    """
    return (images.float() / 127.5 - 1).contiguous(memory_format=torch.channels_last)


@final
class Adapter(nn.Module):
    r"""The class encoder $\Phi$ and the domain encoder $\Phi^d$, each with its linear head.

    Called with images it returns the logits of their classes, as a user of the trained model wants them.

    It has so many channels in all convolutions, and as many features; the paper has 64.

    Examples:
        >>> Adapter(8, 10).eval()(torch.zeros(2, 3, 16, 16, dtype=torch.uint8)).shape
        torch.Size([2, 10])
    """

    def __init__(self, channels: int, classes: int, sigma: float = 1.0, dropout: float = 0.5) -> None:
        super().__init__()
        self.phi, self.head = encoder(channels, sigma, dropout), nn.Linear(channels, classes)
        self.domain_phi, self.domain_head = encoder(channels, sigma, dropout), nn.Linear(channels, DOMAINS)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits (N, classes) of images (N, 3, H, W) of 0 to 255."""
        return self.head(self.features(images))

    def features(self, images: Tensor) -> Tensor:
        r"""Return $\Phi(x)$ (N, channels) of images (N, 3, H, W) of 0 to 255."""
        return self.phi(standardized(images))

    def domain_features(self, images: Tensor) -> Tensor:
        r"""Return $\Phi^d(x)$ (N, channels) of images (N, 3, H, W) of 0 to 255."""
        return self.domain_phi(standardized(images))


@torch.no_grad()
def logits(model: Adapter, images: Images) -> Tensor:
    """Return the logits (N, classes) of images, on the CPU."""
    device = model.head.weight.device
    with evaluating(model):
        return torch.cat([model(block.to(device)).cpu() for block in images.x.split(BLOCK)])


def accuracy(found: Tensor, y: Tensor) -> float:
    """Return how often the largest of logits (N, classes) is that of the class y (N,)."""
    return (found.argmax(1) == y).float().mean().item()


def confusion(found: Tensor, y: Tensor) -> list[list[int]]:
    """Count rows by true class y (N,) (rows) and predicted class, the largest of logits (N, classes) (columns)."""
    classes = found.shape[1]
    counts = torch.bincount(y * classes + found.argmax(1), minlength=classes**2)
    return counts.reshape(classes, classes).tolist()


def entropy_of_predictions(found: Tensor) -> float:
    """Return the mean entropy, in nats, of the classes that logits (N, classes) predict."""
    return torch.special.entr(found.softmax(1)).sum(1).mean().item()


def neighbourhood_density(found: Tensor) -> float:
    r"""Return the soft neighbourhood density of logits (N, classes), in nats (Saito et al., 2021).

    The mean entropy of $\mathrm{softmax}_j(\langle p_i, p_j \rangle / \tau)$ over the other rows j, where $p_i$ are
    the predicted probabilities at unit length and $\tau = 0.05$: high where every row has many neighbours of its class.

    Examples:
        >>> round(neighbourhood_density(torch.zeros(5, 3)), 4)  # all alike: log 4
        1.3863
    """
    p = normalize(found.softmax(1), dim=1)
    similar = (p @ p.T / TEMPERATURE).fill_diagonal_(-torch.inf)
    return torch.special.entr(similar.softmax(1)).sum(1).mean().item()


@torch.no_grad()
def principal_components(model: Adapter, source: Images, target: Images) -> dict[str, list[float]]:
    """Return the first two principal components of the class features of some images of both domains."""
    parts = []
    for images in (source, target):  # images from all over, as files may be sorted by class
        rows = torch.linspace(0, len(images.y) - 1, min(SHOWN, len(images.y))).long()
        parts.append(Images(images.x[rows], images.y[rows]))
    with evaluating(model):
        z = torch.cat([model.features(part.x.to(model.head.weight.device)) for part in parts]).double().cpu()
    z = z - z.mean(0)
    u, s, v = torch.linalg.svd(z, full_matrices=False)
    signs = torch.sign(v.gather(1, v.abs().argmax(1, keepdim=True))).T  # the largest weight of each is positive
    shown = (u * s * signs)[:, :2] / (s[0] / len(z) ** 0.5).clamp_min(1e-12)
    x, y = (shown * 10**PLACES).round().div(10**PLACES).T.tolist()
    domain = [float(d) for d, part in enumerate(parts) for _ in part.y]
    return {"x": x, "y": y, "domain": domain, "label": torch.cat([part.y for part in parts]).double().tolist()}
