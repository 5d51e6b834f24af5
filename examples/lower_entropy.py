"""Lower h(z): how little can a noisy code hold while a label can still be read from it?"""

import math

import torch
from torch import Tensor, nn

from infoknife import KNIFE, Regularizer

NOISE = 0.1
FLOOR = math.log(2 * math.pi * math.e * NOISE**2)  # nats: the entropy of the noise in two dimensions


def held(codes: Tensor) -> float:
    """Return I(Z; X) = h(Z) - h(noise) without any estimator: Z is a mixture of noise around the codes (N, 2)."""
    z = codes[:1000] + NOISE * torch.randn(1000, 2)
    square = (torch.cdist(z, codes) / NOISE).square()  # (1000, N)
    log_prob = torch.logsumexp(-square / 2, 1) - math.log(2 * math.pi * NOISE**2 * len(codes))  # (1000,)
    return -float(log_prob.mean()) - FLOOR


def train(weight: float, steps: int = 500) -> dict[str, float]:
    """Train with weight * h(z); return the label's accuracy, and how much the code holds."""
    torch.manual_seed(0)
    encoder, head = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 2)), nn.Linear(2, 2)
    regularizer = Regularizer(KNIFE(dim=2, components=16), weight=weight, lr=1e-2, inner_steps=4, seed=0)
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=1e-2)
    for _ in range(steps):
        x = torch.randn(256, 8)
        z = encoder(x) + NOISE * torch.randn(256, 2)  # noise is the floor of h(z), which would fall for ever without it
        loss = nn.functional.cross_entropy(head(z), (x[:, 0] > 0).long())
        if weight:
            regularizer.step(z)  # the estimator follows the codes
            loss = loss + regularizer(z)  # the codes become simpler
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        x = torch.randn(5000, 8)
        codes = encoder(x)
        right = (head(codes + NOISE * torch.randn(5000, 2)).argmax(1) == (x[:, 0] > 0)).float().mean()
        estimate = regularizer.measure(codes + NOISE * torch.randn(5000, 2)) - FLOOR if weight else math.nan
        return {"right": float(right), "held": held(codes), "estimate": estimate}


def main() -> dict[str, dict[str, float]]:
    """Train with and without the entropy in the loss."""
    results = {"without": train(0.0), "with": train(0.1)}
    for name, r in results.items():
        print(f"{name} h(z): the code holds {r['held']:.2f} nats about x, the label is right in {r['right']:.0%}")
    return results


if __name__ == "__main__":
    main()
