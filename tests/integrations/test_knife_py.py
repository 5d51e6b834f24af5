"""Published weights: the same outputs as a direct transcription of the published formulas."""

import math

import pytest
import torch
from torch import Tensor

from infoknife.integrations.knife_py import load_conditional, load_marginal

N, M, D, G = 40, 3, 2, 4


def noise(*size: int, seed: int = 0) -> Tensor:
    return 0.5 * torch.randn(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


def mixture(x: Tensor, weigh: Tensor, means: Tensor, logvar: Tensor, tri: Tensor | None) -> Tensor:
    """log p (N,) kernel by kernel, as published."""
    scale = logvar.exp()
    terms = []
    for m in range(M):
        y = (x - means[:, m]) * scale[:, m]
        if tri is not None:
            y = y + torch.stack([tri[i, m].tril(-1) @ y[i] for i in range(len(y))])
        terms.append(scale[:, m].log().sum(-1) - y.square().sum(-1) / 2 + torch.log_softmax(weigh, -1)[:, m])
    return torch.stack(terms, -1).logsumexp(-1) - D / 2 * math.log(2 * math.pi)


@pytest.mark.parametrize("use_tanh", [False, True])
@pytest.mark.parametrize("left_out", [None, "tri", "per-kernel scales"])
def test_marginal(use_tanh: bool, left_out: str | None) -> None:
    scales = 1 if left_out == "per-kernel scales" else M
    state = {"means": noise(M, D), "logvar": noise(1, scales, D, seed=1), "weigh": noise(1, M, seed=2)}
    if left_out != "tri":
        state["tri"] = noise(1, M, D, D, seed=3)
    x = noise(N, D, seed=4)
    logvar = (state["logvar"].tanh() if use_tanh else state["logvar"]).expand(N, M, D)
    tri = state["tri"].expand(N, M, D, D) if "tri" in state else None
    expected = mixture(x, state["weigh"].expand(N, M), state["means"].expand(N, M, D), logvar, tri)
    for given in (state, {f"kernel_marg.{name}": value for name, value in state.items()} | {"kernel_cond.a": x}):
        torch.testing.assert_close(load_marginal(given, use_tanh=use_tanh).log_prob(x), expected)


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("layers", [0, 1, 2])
def test_conditional(layers: int, layer_norm: bool) -> None:
    sizes = {"weight": M, "mu": M * D, "logvar": M * D, "tri": M * D * D}
    state = {}
    for k, (name, outputs) in enumerate(sizes.items()):
        for i in range(layers):
            wide = G if i == 0 else D
            if layer_norm:
                state[f"{name}.stack.{i}.0.weight"] = 1 + noise(wide, seed=k)
                state[f"{name}.stack.{i}.0.bias"] = noise(wide, seed=9 + k)
            state[f"{name}.stack.{i}.{int(layer_norm)}.weight"] = noise(D, wide, seed=20 + k)
            state[f"{name}.stack.{i}.{int(layer_norm)}.bias"] = noise(D, seed=30 + k)
        state[f"{name}.out.weight"] = noise(outputs, D if layers else G, seed=40 + k)
        state[f"{name}.out.bias"] = noise(outputs, seed=50 + k)
    x, v = noise(N, D, seed=60), noise(N, G, seed=61)

    def network(name: str) -> Tensor:
        out = v
        for i in range(layers):
            if layer_norm:
                mean, var = out.mean(-1, keepdim=True), out.var(-1, keepdim=True, correction=0)
                weight, bias = (state[f"{name}.stack.{i}.0.{part}"] for part in ("weight", "bias"))
                out = (out - mean) / (var + 1e-5).sqrt() * weight + bias
            weight, bias = (state[f"{name}.stack.{i}.{int(layer_norm)}.{part}"] for part in ("weight", "bias"))
            out = (out @ weight.T + bias).tanh()
        return out @ state[f"{name}.out.weight"].T + state[f"{name}.out.bias"]

    means, logvar = network("mu").view(N, M, D), network("logvar").view(N, M, D)
    expected = mixture(x, network("weight"), means, logvar, network("tri").view(N, M, D, D))
    density = load_conditional(state)
    torch.testing.assert_close(density.log_prob(x, v), expected)
    assert (density.dim, density.given_dim, density.components) == (D, G, M)
    drawn = density.sample(2000, v[:1], seed=0)
    assert (
        density.log_prob(drawn, v[:1].expand(2000, G)).mean()
        > density.log_prob(drawn + 3, v[:1].expand(2000, G)).mean()
    )


def test_other_states_are_refused() -> None:
    for load in (load_marginal, load_conditional):
        with pytest.raises(ValueError, match=r"^state has no .*; expected"):
            load({"weight": torch.zeros(2, 2)})
