"""Accuracies and confusion by hand, and principal components by their definition."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from infoknife.paper.applications.domain_adaptation import Adapter, Images
from infoknife.paper.applications.domain_adaptation.metrics import accuracy, confusion, principal_components
from tests.paper.applications.domain_adaptation.images import domain, images


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
    assert accuracy(model, Images(x, y)) == pytest.approx((n // 4 + 1) / n)
    assert confusion(model, Images(x, y), 2) == [[1, 0], [n - 1 - n // 4, n // 4]]
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
