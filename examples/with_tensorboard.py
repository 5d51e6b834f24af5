"""A code that does not collapse, with its estimator in TensorBoard; needs the extra infoknife[tensorboard]."""

from tempfile import TemporaryDirectory

import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn
from torch.utils.tensorboard import SummaryWriter

from infoknife import KNIFE, Regularizer
from infoknife.integrations.tensorboard import RegularizerWriter


def train(writer: SummaryWriter, steps: int = 300) -> None:
    """Raise h(z) of codes in the unit square; the maximum is 0."""
    encoder = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2), nn.Sigmoid())
    regularizer = Regularizer(KNIFE(2, components=16), lr=1e-2, maximize=True, warn=False, seed=0)
    regularizer.initialize(encoder(torch.randn(1000, 4)).detach())
    optimizer = torch.optim.Adam(encoder.parameters(), lr=3e-3)
    health = RegularizerWriter(writer)
    for step in range(steps):
        z = encoder(torch.randn(256, 4))
        regularizer.step(z)
        optimizer.zero_grad()
        regularizer(z).backward()
        optimizer.step()
        if step % 10 == 0:
            health.write(regularizer, step)


def main() -> None:
    """Train, and read back what TensorBoard would plot."""
    torch.manual_seed(0)
    with TemporaryDirectory() as folder:
        with SummaryWriter(folder) as writer:
            train(writer)
        curve = EventAccumulator(folder).Reload().Scalars("regularizer/estimate")
    print(f"h(z) rose from {curve[0].value:.2f} to {curve[-1].value:.2f} nats in {len(curve)} points")


if __name__ == "__main__":
    main()
