"""How good a model is, and what its features look like."""

import torch
from torch import Tensor

from infoknife.paper.applications.domain_adaptation.data import Images
from infoknife.paper.applications.domain_adaptation.model import Adapter

BLOCK = 1000  # images that are judged at once
SHOWN, DIGITS = 200, 3  # images of each domain whose features are shown, and digits of their coordinates


def accuracy(model: Adapter, images: Images) -> float:
    """Return the part of images whose class is found."""
    return (_predicted(model, images.x) == images.y).float().mean().item()


def confusion(model: Adapter, images: Images, classes: int) -> list[list[int]]:
    """Count images by true class (rows) and predicted class (columns)."""
    pairs = images.y * classes + _predicted(model, images.x)
    table: list[list[int]] = torch.bincount(pairs, minlength=classes**2).reshape(classes, classes).tolist()
    return table


@torch.no_grad()
def principal_components(model: Adapter, source: Images, target: Images) -> dict[str, list[float]]:
    """Return the first two principal components of the class features of some images of both domains.

    Returns:
        Lists of equal length: ``x`` and ``y``, in units of the first component's deviation, ``domain`` (0 for the
        source) and ``label``.
    """
    parts = [_some(images) for images in (source, target)]
    was, _ = model.training, model.eval()
    z = torch.cat([model.features(part.x.to(model.head.weight.device)) for part in parts]).double().cpu()
    model.train(was)
    z = z - z.mean(0)
    u, s, v = torch.linalg.svd(z, full_matrices=False)
    signs = torch.sign(v.gather(1, v.abs().argmax(1, keepdim=True))).T  # the largest weight of each is positive
    shown = (u * s * signs)[:, :2] / (s[0] / len(z) ** 0.5).clamp_min(1e-12)
    x, y = (shown * 10**DIGITS).round().div(10**DIGITS).T.tolist()
    domain = [float(d) for d, part in enumerate(parts) for _ in part.y]
    return {"x": x, "y": y, "domain": domain, "label": torch.cat([part.y for part in parts]).double().tolist()}


def _some(images: Images) -> Images:
    """Images from all over, as files may be sorted by class."""
    rows = torch.linspace(0, len(images.y) - 1, min(SHOWN, len(images.y))).long()
    return Images(images.x[rows], images.y[rows])


@torch.no_grad()
def _predicted(model: Adapter, x: Tensor) -> Tensor:
    """Classes of images (N, 3, H, W), back on the CPU."""
    was, device = model.training, model.head.weight.device
    model.eval()
    classes = [model(block.to(device)).argmax(1).cpu() for block in x.split(BLOCK)]
    model.train(was)
    return torch.cat(classes)
