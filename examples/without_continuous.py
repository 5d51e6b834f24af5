"""Keep y, forget a continuous s: a code of three numbers, two private numbers, and the closed form to compare with."""

import torch
from torch import Tensor, nn

from infoknife import Regularizer, mi

NOISE = 0.3  # without noise, I(z; s) could only be infinite or zero


def truth(weight: Tensor) -> float:
    """Return I(Z; S) for z = weight x + noise, where the weight is (3, 6) and s is the first two columns of x."""
    covariance = weight @ weight.T + NOISE**2 * torch.eye(3)
    given_s = weight[:, 2:] @ weight[:, 2:].T + NOISE**2 * torch.eye(3)
    return float(covariance.logdet() - given_s.logdet()) / 2


def train(weight: float, steps: int = 400) -> dict[str, float]:
    """Train with weight * I(z; s); return the task's error, the information in closed form and its estimate."""
    torch.manual_seed(0)
    encoder, task = nn.Linear(6, 3), nn.Linear(3, 1)
    regularizer = Regularizer(mi("knife", 3, 2, components=4), weight=weight, lr=1e-2, seed=0)
    optimizer = torch.optim.Adam([*encoder.parameters(), *task.parameters()], lr=3e-3)
    for _ in range(steps):
        x = torch.randn(256, 6)
        s, y = x[:, :2], x[:, 2:3] + 0.5 * x[:, :1]  # y is partly private
        z = encoder(x) + NOISE * torch.randn(256, 3)
        regularizer.step(z, s)
        loss = (task(z) - y).square().mean() + regularizer(z, s)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        x = torch.randn(4000, 6)
        z = encoder(x) + NOISE * torch.randn(4000, 3)
        error = (task(z) - x[:, 2:3] - 0.5 * x[:, :1]).square().mean()
        return {"error": float(error), "truth": truth(encoder.weight), "estimate": regularizer.measure(z, x[:, :2])}


def main() -> dict[str, dict[str, float]]:
    """Train with and without the information in the loss; without s, an error of 0.25 is the best possible."""
    results = {"without": train(0.0), "with": train(3.0)}
    for name, r in results.items():
        print(f"{name}: I(z; s) = {r['truth']:.3f} nats (estimate {r['estimate']:.3f}), error of y {r['error']:.3f}")
    return results


if __name__ == "__main__":
    main()
