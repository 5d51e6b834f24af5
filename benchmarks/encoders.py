"""``python -m benchmarks.encoders``: ``compare`` on six normal encoders, whose truth is in closed form."""

import time
from itertools import combinations
from typing import Annotated

import numpy as np
import torch
import typer
from numpy.typing import NDArray

from infoknife import compare

ROWS, DIM, LATENT = 5000, 384, 24
Floats = NDArray[np.float64]


def encoders(seed: int) -> tuple[dict[str, Floats], Floats]:
    """Loadings (DIM, sources) of every encoder on independent sources, and the sources (ROWS, sources).

    The sources are latent variables, the noise of the base, which its copies share, and one noise for every encoder.
    """
    generator = np.random.default_rng(seed)
    base, other, half = generator.normal(size=(3, DIM, LATENT)) / np.sqrt(LATENT)
    half[:, LATENT // 2 :] = 0
    kinds = {  # the map, and the deviations of the base's noise and of its own
        "base": (base, 0.5, 0.0),
        "copy": (base, 0.5, 1.0),
        "noisier": (base, 0.5, 2.0),
        "other": (other, 0.0, 3.0),
        "half": (half, 0.0, 3.0),
        "random": (0 * base, 0.0, 1.0),
    }
    loadings = {}
    for place, (name, (own, shared, noise)) in enumerate(kinds.items()):
        blocks = [own, shared * np.eye(DIM), *(noise * np.eye(DIM) * (place == i) for i in range(len(kinds)))]
        loadings[name] = np.hstack(blocks)
    return loadings, generator.normal(size=(ROWS, LATENT + DIM * (1 + len(kinds))))


def information(a: Floats, b: Floats) -> float:
    """The mutual information of two encoders, in nats."""
    both = np.vstack([a, b])
    parts = [np.linalg.slogdet(one @ one.T)[1] for one in (a, b, both)]
    return float(parts[0] + parts[1] - parts[2]) / 2


def main(seed: Annotated[int, typer.Option(min=0)] = 0) -> None:
    """Print the truth and the interval of what each tells about the others, and whether the ranking is right."""
    torch.set_num_threads(1)
    loadings, sources = encoders(seed)
    begin = time.process_time()
    found = compare({name: sources @ own.T for name, own in loadings.items()})
    seconds = time.process_time() - begin
    truth = dict.fromkeys(loadings, 0.0)
    for a, b in combinations(loadings, 2):
        each = information(loadings[a], loadings[b]) / (len(loadings) - 1)
        truth[a], truth[b] = truth[a] + each, truth[b] + each
    for name in found.ranking:
        low, high = found.about(name).interval()
        typer.echo(f"{name:8} truth {truth[name]:6.2f}   measured {low:6.2f} to {high:6.2f}")
    right = found.ranking == tuple(sorted(truth, key=lambda name: -truth[name]))
    typer.echo(f"ranking {'right' if right else 'wrong'}, {seconds:.0f} s of processor time")


if __name__ == "__main__":
    typer.run(main)
