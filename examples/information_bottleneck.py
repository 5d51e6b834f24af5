"""The information bottleneck with a Gaussian encoder: h(Z | X) in closed form, only h(Z) is learned."""

import math

import torch
from torch import Tensor, nn

from infoknife import Regularizer, mi

R = 0.8  # how much of y's variance x explains


def best(weight: float) -> float:
    """Return the I(Z; X), in nats, that minimises h(Y | Z) + weight * I(Z; X) (Chechik et al., JMLR 2005)."""
    return max(0.0, math.log((1 / weight - 1) * R / (1 - R)) / 2)


def kept(weight: Tensor, log_var: Tensor) -> float:
    """Return I(Z; X) for z = weight x + noise in closed form: half the logarithm of det(I + W W' / variance)."""
    scaled = weight / (log_var / 2).exp()[:, None]
    return float(torch.logdet(torch.eye(len(weight)) + scaled @ scaled.T)) / 2


def train(weight: float, steps: int = 200) -> dict[str, float]:
    """Train with weight * I(Z; X); return I(Z; X) in closed form, its estimate, and the best possible value."""
    torch.manual_seed(0)
    mean, decoder = nn.Linear(4, 2), nn.Linear(2, 1)
    log_var, log_error = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(()))
    regularizer = Regularizer(mi("knife", 2, encoder="gaussian", components=4), weight=weight, lr=1e-2, seed=0)
    optimizer = torch.optim.Adam([*mean.parameters(), *decoder.parameters(), log_var, log_error], lr=2e-2)

    def encode(x: Tensor) -> tuple[Tensor, Tensor]:  # codes (n, 2), and posteriors (n, 4): means, then log-variances
        posterior = torch.cat([mean(x), log_var.expand(len(x), 2)], 1)
        return mean(x) + (log_var / 2).exp() * torch.randn(len(x), 2), posterior

    for _ in range(steps):
        x = torch.randn(256, 4)
        y = R**0.5 * x[:, :1] + (1 - R) ** 0.5 * torch.randn(256, 1)
        z, posterior = encode(x)
        regularizer.step(z, posterior)
        error = (decoder(z) - y).square().mean()
        loss = (error * torch.exp(-log_error) + log_error) / 2 + regularizer(z, posterior)  # h(Y | Z), I(Z; X)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    estimate = regularizer.measure(*encode(torch.randn(4000, 4)))
    return {"kept": kept(mean.weight.detach(), log_var.detach()), "estimate": estimate, "best": best(weight)}


def main() -> dict[float, dict[str, float]]:
    """Trade information about x for information about y."""
    results = {weight: train(weight) for weight in (0.1, 0.5)}
    for weight, r in results.items():
        print(f"weight {weight}: I(Z; X) = {r['kept']:.2f} nats, {r['estimate']:.2f} estimated, {r['best']:.2f} best")
    return results


if __name__ == "__main__":
    main()
