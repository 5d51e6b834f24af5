"""The paper's three applications: training with information in the loss, on real data."""
