"""Forget a private class s: I(z; s) in an autoencoder's loss, and what a probe can still read from its codes."""

import torch
from torch import Tensor, nn

from infoknife import Regularizer, annealed, mi

NOISE = 0.3


def draw(n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return inputs x (n, 4) with a public class y (n,) and a private one s (n,), both easy to read."""
    x, (y, s) = torch.randn(n, 4), torch.randint(2, (2, n))
    return x + 4.0 * torch.stack([y, s, 0 * y, 0 * y], 1), y, s


def probe(z: Tensor, labels: Tensor) -> float:
    """Return the accuracy of least squares for labels (N,), from codes z (N, 2) it was not fitted to."""
    half, features = len(z) // 2, torch.cat([z, z.square(), torch.ones(len(z), 1)], 1)
    weights = torch.linalg.lstsq(features[:half], 2.0 * labels[:half, None] - 1).solution
    return float(((features[half:] @ weights > 0).flatten() == labels[half:].bool()).float().mean())


def train(weight: float, steps: int = 300) -> dict[str, float]:
    """Train with weight * I(z; s); return what a probe reads from the codes, and the estimate in nats."""
    torch.manual_seed(0)
    scaled = nn.BatchNorm1d(2, affine=False)  # codes of constant scale are easier to follow
    encoder = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2), scaled)
    decoder = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 4))
    estimator = mi("knife", 2, y_classes=2, components=4)
    regularizer = Regularizer(estimator, weight=annealed(weight, steps=100), lr=1e-2, seed=0)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=5e-3)
    for _ in range(steps):
        x, _, s = draw(256)
        z = encoder(x) + NOISE * torch.randn(256, 2)
        regularizer.step(z, s)  # the estimator looks for s
        loss = (decoder(z) - x).square().mean() + regularizer(z, s)  # the encoder hides it
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        x, y, s = draw(4000)
        z = encoder.eval()(x) + NOISE * torch.randn(4000, 2)
    return {"y": probe(z, y), "s": probe(z, s), "information": regularizer.measure(z, s)}


def main() -> dict[str, dict[str, float]]:
    """Train with and without the information in the loss."""
    results = {"without": train(0.0), "with": train(20.0)}
    for name, r in results.items():
        print(f"{name}: a probe reads y in {r['y']:.0%}, s in {r['s']:.0%}; I(z; s) = {r['information']:.2f} nats")
    return results


if __name__ == "__main__":
    main()
