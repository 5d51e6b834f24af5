"""A limit instead of a weight: at most 0.1 nats about s; the weight that achieves this is found during training."""

import torch
from torch import Tensor, nn

from infoknife import Regularizer, mi

NOISE = 0.3


def truth(weight: Tensor) -> float:
    """Return I(Z; S) for z = weight x + noise, where the weight is (2, 4) and s is the first column of x."""
    covariance = weight @ weight.T + NOISE**2 * torch.eye(2)
    given_s = weight[:, 1:] @ weight[:, 1:].T + NOISE**2 * torch.eye(2)
    return float(covariance.logdet() - given_s.logdet()) / 2


def train(at_most: float | None, steps: int = 500) -> dict[str, float]:
    """Train a task that benefits from s; return its error, and I(Z; S) in closed form."""
    torch.manual_seed(0)
    encoder, task = nn.Linear(4, 2), nn.Linear(2, 1)
    regularizer = Regularizer(mi("knife", 2, 1, components=4), at_most=at_most, lr=3e-3, seed=0)
    optimizer = torch.optim.Adam([*encoder.parameters(), *task.parameters()], lr=3e-3)
    for _ in range(steps):
        x = torch.randn(256, 4)
        s, y = x[:, :1], x[:, :1] + x[:, 1:2]
        z = encoder(x) + NOISE * torch.randn(256, 2)
        loss = error = (task(z) - y).square().mean()
        if at_most is not None:
            regularizer.step(z, s)  # measures, and adjusts the weight
            loss = error + regularizer(z, s)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {"error": error.item(), "truth": truth(encoder.weight.detach()), "weight": regularizer.health().weight}


def main() -> dict[str, dict[str, float]]:
    """Train without a limit and with one."""
    results = {"without": train(None), "with": train(at_most=0.1)}
    for name, r in results.items():
        print(f"{name} a limit of 0.1: I(z; s) = {r['truth']:.2f} nats, error of y {r['error']:.2f}")
    return results


if __name__ == "__main__":
    main()
