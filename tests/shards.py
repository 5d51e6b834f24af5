"""What ranks compute together, each with rows of its own: by two processes, and by one with all rows as the truth."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import infoknife
from infoknife import Regularizer, distributed, fit, mi
from infoknife.distributed import average_gradients, rank, ranks
from tests.applications_on_ranks import trained_fair_text
from tests.densities.conformance import CASES as DENSITIES
from tests.estimators.conformance import SMALL, VARIANTS

CUT = 23  # rows of the first rank; the second has the others
STEPS = 100
ESTIMATORS = (*SMALL, *VARIANTS)


def own(x: Tensor | None, cut: int = CUT) -> Tensor | None:
    """This rank's part of the rows of a batch."""
    return x if x is None or ranks() == 1 else (x[:cut], x[cut:])[rank()]


def shard(*parts: Tensor | None) -> list[Tensor]:
    return [part for part in map(own, parts) if part is not None]


def gradients(module: nn.Module, value: Tensor, rows: list[Tensor]) -> list[Tensor]:
    """A value, what its gradient is for the rows of all ranks, and for parameters after averaging."""
    module.zero_grad()
    value.backward()
    average_gradients(module.parameters(), value)
    of_rows = [distributed.all_rows(row.grad / ranks())[0] for row in rows if row.grad is not None]
    return [value.detach(), *of_rows, *(p.grad for p in module.parameters() if p.grad is not None)]


def values(case: Any) -> dict[str, list[Tensor]]:
    """Start, follow a batch, and every value with its gradients."""
    torch.manual_seed(rank())  # what is drawn before the start differs
    module = case.make().double()
    module.initialize(*shard(*case.data(80, seed=0, dtype=torch.double)), seed=3)
    module.train()
    torch.manual_seed(10)
    module.observe(*shard(*case.data(60, seed=1, dtype=torch.double)))
    found = {"buffers": [buffer for buffer in module.buffers() if buffer.is_floating_point()]}
    for name in ("forward", "penalty", "loss"):
        if hasattr(module, name):
            batch = shard(*case.data(50, seed=2, dtype=torch.double))
            rows = [row.requires_grad_() if row.is_floating_point() else row for row in batch]
            torch.manual_seed(11)
            value = getattr(module, name)(*rows)
            if value.requires_grad:
                found[name] = gradients(module, value, rows)
    return found


def regularized(name: str, steps: int, cut: int = CUT, **options: Any) -> dict[str, Any]:
    """Rounds with an encoder under DDP; its state, and the estimates."""
    torch.manual_seed(0)
    encoder: nn.Module = nn.Linear(4, 3).double()
    term = Regularizer(mi(name, 3, **options).double(), at_most=0.1, warn=False, seed=rank())
    if ranks() > 1:
        encoder = DistributedDataParallel(encoder)
    optimizer, generator, estimates = torch.optim.SGD(encoder.parameters(), 0.05), torch.Generator().manual_seed(1), []
    for _ in range(steps):
        x = torch.randn(64, 4, generator=generator, dtype=torch.double)
        z, s = encoder(own(x, cut)), own((x[:, 0] > 0).long() if "y_classes" in options else x[:, :2], cut)
        term.step(z, s)
        optimizer.zero_grad()
        term(z, s).backward()
        optimizer.step()
        estimates.append(term.estimate)
    state = {key: value for key, value in term.state_dict().items() if "extra" not in key}
    assert term.limit is not None
    return {
        "estimates": estimates,
        "state": [*state.values(), *encoder.parameters()],
        "limit": list(term.limit.state().values()),
        "health": list(term.health().scalars().values()),
        "random": term._random,
    }


def fitted() -> dict[str, Any]:
    """``fit`` on a stream, with validation and a callback that stops it on one rank."""
    case = ESTIMATORS[0]
    torch.manual_seed(rank())
    batches = [tuple(shard(*case.data(50, seed, torch.double))) for seed in range(12)]
    stops = [lambda step, loss, module: step == 25] if rank() == ranks() - 1 else []  # the last rank alone has one
    module = case.make().double().initialize(*shard(*case.data(100, 98, torch.double)), seed=2)
    options: dict[str, Any] = {"validation": tuple(shard(*case.data(70, 99, torch.double))), "validate_every": 7}
    history = fit(module, batches, steps=60, seed=1, callbacks=stops, initialize=False, **options)
    return {
        "losses": history.losses,
        "validation": [loss for _, loss in history.validation],
        "best": history.best_step,
        "parameters": [p.detach() for p in module.parameters()],
    }


def places() -> dict[str, Tensor]:
    """Order statistics of columns of all ranks, one of which has far fewer rows; the last three rows are missing."""
    rows = torch.randn(4 * CUT, 3, generator=torch.Generator().manual_seed(4), dtype=torch.double)
    rows[:, 1], rows[::5, 2], rows[1, 0], rows[-3:] = rows[:, 1].round(), -0.0, -torch.inf, torch.nan
    ordered, wanted = shard(rows)[0].T.sort(1).values, torch.arange(0, len(rows) - 3)
    counts = {"sent": len(rows), "halved": 10**9}
    return {name: distributed.order_statistics(ordered, wanted, count) for name, count in counts.items()}


def refused(call: Callable[[], Any]) -> str:
    try:
        call()
    except ValueError as error:
        return str(error)
    return ""


def disagreements() -> dict[str, str]:
    """Ranks with other rows, other modules, another version; each says so."""
    from infoknife import KNIFE

    x, last = torch.randn(20, 2), rank() == ranks() - 1
    found = {
        "precision": refused(lambda: KNIFE(2, 4).initialize(x.double() if last else x)),
        "columns": refused(lambda: KNIFE(3 if last else 2, 4).initialize(torch.randn(20, 3) if last else x)),
        "module": refused(lambda: KNIFE(2, 8 if last else 4).initialize(x)),
        "steps": refused(lambda: fit(KNIFE(2, 4), x, steps=4 if last else 3)),
        "options": refused(lambda: Regularizer(KNIFE(2, 4), inner_steps=2 if last else 1).step(x)),
    }
    if not last:  # nobody answers, and nobody is asked
        with distributed.alone():
            fit(KNIFE(2, 4), x, steps=2)
    vars(distributed)["__version__"] = "0.0" if last else infoknife.__version__
    found["version"] = refused(lambda: KNIFE(2, 4).initialize(x))
    return found


REGULARIZED: dict[str, dict[str, Any]] = {
    "knife": {"y_classes": 2, "density": "autoregressive", "components": 3, "hidden": 16},
    "club": {"y_dim": 2},
    "mine": {"y_dim": 2},
}


def results(every: bool) -> dict[str, Any]:
    """All checks, or those of one representative of each kind."""
    densities = [one for one in DENSITIES if every or one.condition == "classes"]
    estimators = [one for one in ESTIMATORS if every or one.name in ("knife", "mine", "infonce", "club", "adv")]
    found: dict[str, Any] = {f"density {one}": values(one) for one in densities}
    found |= {f"estimator {one}": values(one) for one in estimators}
    found |= {"fit": fitted(), "places": places(), "application": trained_fair_text()}
    found["regularizer, a rank with a single row"] = regularized("club", 10, cut=1, y_dim=2)
    names = REGULARIZED if every else ("club",)
    return found | {
        f"regularizer {name}": regularized(name, STEPS if every else 20, **REGULARIZED[name]) for name in names
    }


if __name__ == "__main__":
    folder, number = Path(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=number, world_size=2)
    torch.save(results(sys.argv[3] == "every") | {"disagreements": disagreements()}, folder / f"{number}.pt")
    dist.destroy_process_group()
