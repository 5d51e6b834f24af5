"""Weights that the paper's published code wrote, as densities of this library with the same outputs.

The published ``MargKernel`` and ``CondKernel`` write a kernel's factor as $(I + T) D$ with a diagonal $D$ and a
strictly lower $T$. The marginal becomes a ``KNIFE``; the conditional, whose networks give $T$ and $D$ apart, is a
density of its own.
"""

import math
from collections.abc import Mapping
from typing import Any, final

import torch
from torch import Tensor, nn
from typing_extensions import override

from infoknife.coordinates import Identity
from infoknife.densities import KNIFE, Density
from infoknife.densities.base import Condition
from infoknife.inputs import one_of

State = Mapping[str, Tensor]
ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}


def load_marginal(state: State, *, use_tanh: bool = False) -> KNIFE:
    r"""Return a ``KNIFE`` with the outputs of a published ``MargKernel``: -log p to 1e-8 in every dimension.

    Args:
        state: Its state dictionary, or that of a whole published ``KNIFE``.
        use_tanh: What ``args.use_tanh`` was, which is not in the weights.

    Examples:
        >>> state = {"means": torch.zeros(1, 2), "logvar": torch.zeros(1, 1, 2), "weigh": torch.ones(1, 1)}
        >>> round(load_marginal(state)(torch.zeros(3, 2)).item(), 3)  # log(2 pi)
        1.838
    """
    state = _part(state, "kernel_marg.", ("means", "logvar", "weigh"))
    means = state["means"].detach()
    M, d = means.shape
    log_diagonal = _bounded(state["logvar"], use_tanh).view(-1, d).expand(M, d)
    density = KNIFE(d, M, init="paper").to(means.dtype)
    bank: Any = density.bank
    bank.units = type(bank.units)(1.0, 1.0, 1.0)
    lower = state["tri"][0].tril(-1) * log_diagonal.exp()[:, None, :] if "tri" in state else torch.zeros(M, d, d)
    with torch.no_grad():
        for name, value in (("means", means), ("logits", state["weigh"].view(-1)), ("log_diagonal", log_diagonal)):
            getattr(bank, name).copy_(value)
        bank.lower.copy_(lower)
    density.initialized = True
    return density


def load_conditional(state: State, *, use_tanh: bool = False, activation: str = "tanh") -> "PublishedConditional":
    r"""Return a density with the outputs of a published ``CondKernel``: $\hat h(X \mid Y; \Theta)$, ``eq:hat_h_xgivy``.

    Args:
        state: Its state dictionary, or that of a whole published ``KNIFE``.
        use_tanh: What ``args.use_tanh`` was, which is not in the weights.
        activation: What ``args.ff_activation`` was: ``"tanh"`` or ``"relu"``.
    """
    state = _part(state, "kernel_cond.", ("mu.out.weight", "logvar.out.weight", "weight.out.weight"))
    one_of("activation", activation, tuple(ACTIVATIONS))
    return PublishedConditional(state, use_tanh, ACTIVATIONS[activation])


@final
class PublishedConditional(Density):
    """The published conditional kernels: four networks give weights, means, scales and lower triangles."""

    def __init__(self, state: State, use_tanh: bool, activation: type[nn.Module]) -> None:
        networks = {name: _network(state, f"{name}.", activation) for name in ("weight", "mu", "logvar", "tri")}
        self.components = len(state["weight.out.weight"])
        dim = len(state["mu.out.weight"]) // self.components
        layers: list[Any] = [one for one in networks["mu"].modules() if isinstance(one, nn.Linear)]  # type: ignore[union-attr]
        super().__init__(dim, layers[0].in_features, None, Identity(dim))
        self.use_tanh = use_tanh
        self.networks = nn.ModuleDict({name: network for name, network in networks.items() if network is not None})
        self.initialized = True

    @override
    def _log_prob(self, u: Tensor, given: Condition) -> Tensor:
        log_weights, means, log_diagonal, tri = self._kernels(given)
        z = (u[:, None] - means) * log_diagonal.exp()
        z = z if tri is None else z + (tri @ z[..., None])[..., 0]
        log_kernels = log_diagonal.sum(-1) - 0.5 * z.square().sum(-1) - 0.5 * self.dim * math.log(2 * math.pi)
        return torch.logsumexp(log_weights + log_kernels, -1)

    @override
    def _sample(self, n: int, given: Condition, generator: torch.Generator) -> Tensor:
        log_weights, means, log_diagonal, tri = self._kernels(given)
        kernel = torch.multinomial(log_weights.exp().cpu(), 1, generator=generator)[:, 0].to(means.device)
        rows = torch.arange(n, device=means.device)
        noise = torch.randn(n, self.dim, 1, generator=generator).to(means)
        if tri is not None:
            unit = torch.eye(self.dim, device=means.device, dtype=means.dtype)
            noise = torch.linalg.solve_triangular(unit + tri[rows, kernel], noise, upper=False, unitriangular=True)
        return means[rows, kernel] + noise[..., 0] * (-log_diagonal[rows, kernel]).exp()

    @override
    def _initialize(self, u: Tensor, given: Condition, generator: torch.Generator) -> None:
        raise ValueError(
            "published weights have no start of their own; train them further, or use KNIFE(network='paper')"
        )

    def _kernels(self, given: Condition) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Log-weights (N, M), means and log-scales (N, M, d), and lower triangles (N, M, d, d) if there are any."""
        found = {name: network(given) for name, network in self.networks.items()}
        size = (-1, self.components, self.dim)
        tri = found["tri"].view(*size, self.dim).tril(-1) if "tri" in found else None
        log_diagonal = _bounded(found["logvar"], self.use_tanh).view(size)
        return torch.log_softmax(found["weight"], -1), found["mu"].view(size), log_diagonal, tri


def _part(state: State, prefix: str, expected: tuple[str, ...]) -> dict[str, Tensor]:
    """The part of a state dictionary below a prefix, or all of it."""
    inside = {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
    found = inside or dict(state)
    if absent := [name for name in expected if name not in found]:
        raise ValueError(
            f"state has no {', '.join(absent)} but {', '.join(list(found)[:8])}; expected the state dictionary of a "
            f"published {prefix.rstrip('.')}. Pass model.state_dict()"
        )
    return found


def _bounded(log_scale: Tensor, use_tanh: bool) -> Tensor:
    return log_scale.tanh() if use_tanh else log_scale


def _network(state: State, prefix: str, activation: type[nn.Module]) -> nn.Module | None:
    """A published ``FF`` without residual connections; ``None`` if there is none of that name."""
    if f"{prefix}out.weight" not in state:
        return None
    layers: list[nn.Module] = []
    i = 0
    while inside := [f"{prefix}stack.{i}.{j}." for j in (0, 1) if f"{prefix}stack.{i}.{j}.weight" in state]:
        layers += [*(_layer(state, name) for name in inside), activation()]
        i += 1
    return nn.Sequential(*layers, _layer(state, f"{prefix}out."))


def _layer(state: State, prefix: str) -> nn.Module:
    """A linear map, or a normalisation of layers, with its weights."""
    weight = state[f"{prefix}weight"]
    layer = nn.LayerNorm(len(weight)) if weight.dim() == 1 else nn.Linear(weight.shape[1], weight.shape[0])
    layer.to(weight.dtype).load_state_dict({name: state[f"{prefix}{name}"].detach() for name in ("weight", "bias")})
    return layer
