"""``python -m benchmarks.hiding``: how well a class is hidden from the code of real images, and what that costs.

50 principal components of an image -> 64 -> a code of d numbers + 0.1 noise. The label is whether the digit is 5 or
more. The private class s is the digit modulo k, or how bright the image is; it is balanced, or its first class has
80 % of the rows. After 600 steps of 256 rows the code of fresh rows is judged by gradient boosting, which looks for s,
and by ``mutual_information``. ``run`` appends a JSON line per run and goes on where it was stopped; ``table`` sums up.
"""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from torch import Tensor, nn

from infoknife import Regularizer, mi, mutual_information
from infoknife.erasure import LEACE, QuadraticErasure
from infoknife.paper.applications.domain_adaptation.data import read_images

COMPONENTS, ROWS, JUDGED = 50, 14_000, 4000  # of an image; images that are taken; rows that I(z; s) is measured on
STEPS, BATCH, NOISE = 600, 256, 0.1
INNER = 8  # steps of an adversary in every round: twice the most that the README's recipe takes
KNIFE_RATE = 1e-2  # the recipe's own learning rate, ten times an adversary's: it must not be what decides
MAJORITY = 0.8

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Hide a class from the code of real images.")


@dataclass(frozen=True)
class Run:
    """What is set in one run."""

    images: str
    attribute: str
    classes: int
    majority: bool
    dim: int
    method: str
    weight: float
    seed: int


@dataclass(frozen=True)
class Rows:
    """Components x (N, 50), labels y (N,) and private classes s (N,)."""

    x: Tensor
    y: Tensor
    s: Tensor

    def take(self, rows: Any) -> "Rows":
        """Some of the rows."""
        return Rows(self.x[rows], self.y[rows], self.s[rows])

    def halves(self) -> tuple["Rows", "Rows"]:
        """The first half of the rows, and the rest."""
        return self.take(slice(len(self.x) // 2)), self.take(slice(len(self.x) // 2, None))


def knife(dim: int, classes: int, weight: float, seed: int) -> Regularizer:
    """The README's recipe: nothing else is set."""
    return Regularizer(mi("knife", dim, y_classes=classes), weight=weight, seed=seed)


def adversary(
    dim: int, classes: int, weight: float, seed: int, *, penalty: bool, lr: float | None = None
) -> Regularizer:
    """A classifier: the encoder lowers what it believes to know (penalty), or raises its cross-entropy."""
    estimator = mi("adv", dim, y_classes=classes)
    return Regularizer(estimator, weight=weight, inner_steps=INNER, penalty=penalty, lr=lr, seed=seed)


def leace(seen: Tensor, s: Tensor, fresh: Tensor, _: Tensor) -> tuple[Tensor, Tensor]:
    """Codes without what is linear in s, which fresh rows need not have."""
    erase = LEACE().fit(seen, s)
    return erase(seen), erase(fresh)


def quadratic(seen: Tensor, s: Tensor, fresh: Tensor, of_fresh: Tensor) -> tuple[Tensor, Tensor]:
    """Codes with equal means and covariances in all classes, which must be known for fresh rows too."""
    erase = QuadraticErasure().fit(seen, s)
    return erase(seen, s), erase(fresh, of_fresh)


TERMS: dict[str, Callable[[int, int, float, int], Regularizer]] = {
    "knife": knife,
    "leace-knife": knife,
    "adv-posterior": partial(adversary, penalty=True),
    "adv-reversal": partial(adversary, penalty=False),
    "adv-posterior-quick": partial(adversary, penalty=True, lr=KNIFE_RATE),
    "adv-reversal-quick": partial(adversary, penalty=False, lr=KNIFE_RATE),
}
ERASURES = {"leace": leace, "quadratic": quadratic}  # of the trained code
INPUTS = ("leace-first", "leace-knife")  # methods that erase s from the components, before anything is trained
METHODS = ("none", "leace-first", *TERMS, *ERASURES)
ALL = ",".join(METHODS)


@cache
def components(path: Path) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Principal components (N, 50) of the images of a file, and their digits (N,), in a fixed random order."""
    from sklearn.decomposition import PCA

    arrays = read_images(path)
    x, digits = (np.concatenate([arrays[f"{name}_train"], arrays[f"{name}_test"]]) for name in "xy")
    chosen = np.random.default_rng(0).permutation(len(x))[:ROWS]
    pixels = x[chosen].reshape(len(chosen), -1).astype(np.float32) / 255
    return PCA(COMPONENTS, random_state=0).fit_transform(pixels).astype(np.float32), digits[chosen]


def load(folder: Path, run: Run) -> Rows:
    """The rows of a run: s by its attribute; for a majority the other classes are thinned out."""
    x, digits = components(folder / f"{run.images}.npz")
    rest = (1 - MAJORITY) / (run.classes - 1)
    shares = (
        np.array([MAJORITY] + [rest] * (run.classes - 1)) if run.majority else np.full(run.classes, 1 / run.classes)
    )
    rows = np.arange(len(x))
    if run.attribute == "brightness":  # close to an image's first component
        s = np.searchsorted(np.quantile(x[:, 0], shares.cumsum()[:-1]), x[:, 0])
    else:
        s = digits % run.classes
        if run.majority:  # the other classes are thinned out
            first = (s == 0).sum()
            kept = np.random.default_rng(1).random(len(s)) < first * (1 / MAJORITY - 1) / (len(s) - first)
            rows = rows[(s == 0) | kept]
    return Rows(*(torch.from_numpy(array[rows]) for array in (x, (digits >= 5).astype(np.int64), s.astype(np.int64))))


def train(rows: Rows, run: Run) -> tuple[nn.Module, nn.Module, dict[str, float]]:
    """Train encoder and head; also return what the term says of itself."""
    encoder = nn.Sequential(nn.Linear(COMPONENTS, 64), nn.ReLU(), nn.Linear(64, run.dim))
    head = nn.Linear(run.dim, 2)
    make = TERMS.get(run.method)
    regularizer = None if make is None else make(run.dim, run.classes, run.weight, run.seed)
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], 1e-3)
    inner = 0
    for _ in range(STEPS):
        batch = rows.take(torch.randint(len(rows.x), (BATCH,)))
        z = noisy(encoder(batch.x))
        loss = nn.functional.cross_entropy(head(z), batch.y)
        if regularizer is not None:
            regularizer.step(z, batch.s)
            loss = loss + regularizer(z, batch.s)
            inner += regularizer.inner_steps
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    said = {} if regularizer is None else {"estimate": regularizer.estimate, "inner_steps": inner / STEPS}
    return encoder, head, said


def noisy(z: Tensor) -> Tensor:
    """The code that others see."""
    return z + NOISE * torch.randn_like(z)


@torch.no_grad()
def judge(rows: Rows, encoder: nn.Module, head: nn.Module, train_rows: Rows, run: Run) -> dict[str, float]:
    """Share of labels read right, what gradient boosting finds of s, and I(z; s), from fresh rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import balanced_accuracy_score

    z = noisy(encoder(rows.x))
    label = (head(z).argmax(1) == rows.y).float().mean().item()
    if run.method in ERASURES:
        seen, z = ERASURES[run.method](noisy(encoder(train_rows.x)), train_rows.s, z, rows.s)
        label = float(LogisticRegression(max_iter=1000).fit(seen, train_rows.y).score(z, rows.y))
    codes, s, half = z.numpy(), rows.s.numpy(), len(z) // 2
    probe = HistGradientBoostingClassifier(random_state=0).fit(codes[:half], s[:half]).predict(codes[half:])
    told = mutual_information(codes[:JUDGED], s[:JUDGED], discrete=True, effort="quick", seed=0)
    return {
        "label": label,
        "accuracy": float((probe == s[half:]).mean()),
        "balanced_accuracy": float(balanced_accuracy_score(s[half:], probe)),
        "information": float(told),
        "stderr": told.stderr,
        "rows": len(rows.x),
    }


def measure(folder: Path, run: Run) -> dict[str, Any]:
    """Everything about one run, as a record."""
    torch.manual_seed(run.seed)
    seen, fresh = load(folder, run).halves()
    if run.method in INPUTS:
        erase = LEACE().fit(seen.x, seen.s)
        seen, fresh = (replace(rows, x=erase(rows.x)) for rows in (seen, fresh))
    begin = time.perf_counter()
    encoder, head, said = train(seen, run)
    seconds = time.perf_counter() - begin
    return asdict(run) | judge(fresh, encoder, head, seen, run) | said | {"seconds": round(seconds, 1)}


def read(file: Path) -> list[dict[str, Any]]:
    """The records of a file, if it is there."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def _listed(kind: type) -> Any:
    return lambda text: [kind(part) for part in text.split(",")] if isinstance(text, str) else text


@app.command("run")
def run_all(
    folder: Annotated[Path, typer.Argument(help="Holds NAME.npz with the images of each set.")],
    out: Annotated[Path, typer.Option(help="Records are appended here.")] = Path("hiding.jsonl"),
    images: Annotated[Any, typer.Option(parser=_listed(str))] = "mnist,usps,svhn",
    attribute: Annotated[Any, typer.Option(parser=_listed(str), help="digit, brightness")] = "digit",
    classes: Annotated[Any, typer.Option(parser=_listed(int))] = "2,3,5",
    majority: Annotated[Any, typer.Option(parser=_listed(int), help="0: balanced; 1: 80:20")] = "0,1",
    dims: Annotated[Any, typer.Option(parser=_listed(int))] = "8,32",
    methods: Annotated[Any, typer.Option(parser=_listed(str))] = ALL,
    weights: Annotated[Any, typer.Option(parser=_listed(float))] = "1",
    seeds: Annotated[Any, typer.Option(parser=_listed(int))] = "0",
) -> None:
    """Train and judge every combination; those that are in the file already are left out."""
    torch.set_num_threads(1)
    done = {json.dumps([record[name] for name in Run.__annotations__]) for record in read(out)}
    for run in _runs(seeds, weights, images, attribute, classes, majority, dims, methods):
        if json.dumps(list(asdict(run).values())) in done:
            continue
        record = measure(folder, run)
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        print(" ".join(f"{value:.3f}" if isinstance(value, float) else str(value) for value in record.values()))


def _runs(*choices: Any) -> Iterator[Run]:
    for seed, weight, images, attribute, classes, majority, dim, method in product(*choices):
        if weight == 1 or method in TERMS:  # a weight says nothing to the others
            yield Run(images, attribute, classes, bool(majority), dim, method, weight, seed)


@app.command()
def table(file: Path, every: Annotated[bool, typer.Option(help="Every setting, besides the means.")] = False) -> None:
    """Print, by method and weight: I(z; s) as a share of that without a term, points of the label lost, the probe."""
    records = read(file)
    alone = {_setting(record): record for record in records if record["method"] == "none"}
    rows: dict[tuple[str, float], list[NDArray[np.float64]]] = {}
    for record in records:
        bare = alone.get(_setting(record))
        if bare is None:
            continue
        share = record["information"] / bare["information"]
        lost, probe = 100 * (bare["label"] - record["label"]), record["balanced_accuracy"]
        numbers = np.array([share, record["information"], lost, probe, share <= 0.25, lost <= 1.5])
        rows.setdefault((record["method"], record["weight"]), []).append(numbers)
        if every:
            print(*_setting(record), record["method"], record["weight"], np.round(numbers[:4], 3), sep=" | ")
    print(
        "| method | weight | runs | I(z;s), share of none | largest share | I(z;s), nats | label points lost | probe |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for (method, weight), found in sorted(rows.items(), key=lambda item: (METHODS.index(item[0][0]), item[0][1])):
        share, nats, lost, probe = np.mean(found, 0)[:4]
        print(
            f"| {method} | {weight:g} | {len(found)} | {share:.3f} | {np.max(found, 0)[0]:.2f} | {nats:.3f} "
            f"| {lost:.2f} | {probe:.3f} |"
        )


def _setting(record: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(record[name] for name in ("images", "attribute", "classes", "majority", "dim", "seed"))


if __name__ == "__main__":
    app()
