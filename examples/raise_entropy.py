"""Raise h(z) against collapse: two views of an input should get the same code, but coordinates should not be copies."""

import math

import torch
from torch import Tensor, nn

from infoknife import KNIFE, Regularizer, annealed, entropy

MOST = math.log(2 * math.pi * math.e)  # nats: with variances of 1, no density in two dimensions has more


def view(x: Tensor) -> Tensor:
    """Add noise to x (n, 4), least to the first column, so that a code of that column alone repeats best."""
    return x + torch.tensor([0.05, 0.1, 0.1, 0.1]) * torch.randn_like(x)


def train(weight: float, steps: int = 300) -> Tensor:
    """Return 2000 codes of a network trained with weight * h(z)."""
    torch.manual_seed(0)
    scaled = nn.BatchNorm1d(2, affine=False)  # a bound: without one, scaling alone would raise h(z)
    encoder = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2), scaled)
    regularizer = Regularizer(
        KNIFE(dim=2, components=16), maximize=True, weight=annealed(weight, steps=200), lr=1e-2, inner_steps=4, seed=0
    )
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
    decay = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, steps)  # opposing goals need this to settle
    for _ in range(steps):
        x = 2 * torch.rand(256, 4) - 1
        one, two = encoder(view(x)), encoder(view(x))  # (256, 2)
        loss = (one - two).square().mean()
        if weight:
            regularizer.step(one)  # the estimator follows the codes
            loss = loss + regularizer(one)  # the codes spread
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        decay.step()
    with torch.no_grad():
        return encoder(view(2 * torch.rand(2000, 4) - 1))


def main() -> dict[str, float]:
    """Train with and without the entropy; return the correlation of the coordinates, and h(z) measured afresh."""
    alone, spread = train(weight=0.0), train(weight=1.0)
    without, beside = (float(torch.corrcoef(z.T)[0, 1].abs()) for z in (alone, spread))
    h = float(entropy(spread, effort="quick"))
    print(f"without h(z) the coordinates correlate by {without:.2f}: they say the same")
    print(f"with it by {beside:.2f}, and h(z) is {h:.2f} of at most {MOST:.2f} nats")
    return {"without": without, "with": beside, "h": h, "most": MOST}


if __name__ == "__main__":
    main()
