"""``python -m benchmarks.packages``: our answer beside those of other packages, on relations nobody tuned for.

``rows`` writes samples of the reporting half of ``tasks.judging`` to one NPZ file. ``run`` measures them by one method
and appends a JSON line per case: ours and the trained estimators here, other packages in any environment that has them
and numpy, as ``python packages.py run``. ``table`` prints the comparison, ``picture`` draws estimates against truths.
"""

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
STEPS, BATCH = 2000, 128  # of estimators that are trained
TITLES = {
    "infoknife": "infoknife",
    "infomeasure": "nearest neighbours (KSG, infomeasure)",
    "infonce": "InfoNCE, stopped early",
}


def ours(effort: Any, x: Array, y: Array) -> float:
    """Our measuring tool."""
    from infoknife import mutual_information

    return float(mutual_information(x, y, effort=effort, seed=0))


def trained(name: str, x: Array, y: Array) -> float:
    """A critic fitted to half of the rows, stopped early on a quarter, measured on the last."""
    import torch

    from infoknife import fit, mi

    torch.set_num_threads(1)
    pairs = [torch.from_numpy(side.astype(np.float32)) for side in (x, y)]
    half, rest = len(x) // 2, len(x) // 4
    estimator = mi(name, x.shape[1], y.shape[1])
    validation = tuple(side[half : half + rest] for side in pairs)
    fit(
        estimator,
        tuple(side[:half] for side in pairs),
        steps=STEPS,
        batch_size=BATCH,
        validation=validation,
        seed=0,
    )
    with torch.no_grad():
        return float(estimator(*(side[half + rest :] for side in pairs)))


def infomeasure(x: Array, y: Array) -> float:
    """KSG by infomeasure."""
    import infomeasure

    return float(infomeasure.mutual_information(x, y, approach="metric", k=4))


def npeet(x: Array, y: Array) -> float:
    """KSG by NPEET, in bits."""
    import npeet_plus

    return float(npeet_plus.mi(x, y, k=3)) * np.log(2)


def scikit_learn(x: Array, y: Array) -> float:
    """KSG by scikit-learn, which takes one column each."""
    from sklearn.feature_selection import mutual_info_regression

    return float(mutual_info_regression(x, y[:, 0], random_state=0)[0]) if x.shape[1] == y.shape[1] == 1 else np.nan


METHODS: dict[str, Callable[[Array, Array], float]] = {
    "infoknife": partial(ours, "standard"),
    "infoknife-quick": partial(ours, "quick"),
    "infomeasure": infomeasure,
    "npeet": npeet,
    "scikit-learn": scikit_learn,
    "mine": partial(trained, "mine"),
    "infonce": partial(trained, "infonce"),
}


def write_rows(path: Path, n: int, seed: int) -> None:
    """Samples of all reporting cases with at most three columns a side and no condition, with their truths."""
    from infoknife.tasks.judging import cases

    arrays: dict[str, Any] = {}
    for case in cases("reporting"):
        x, y, given = case.sample(n, seed=seed)
        if given is None and max(x.shape[1], y.shape[1]) <= 3:
            arrays |= {f"{case.name}/x": x.numpy(), f"{case.name}/y": y.numpy(), f"{case.name}/truth": case.information}
    np.savez_compressed(path, **arrays)


def run(rows: Path, results: Path, method: str) -> None:
    """Measure every case by one method."""
    arrays = np.load(rows)
    for name in sorted({key.split("/")[0] for key in arrays}):
        x, y = (arrays[f"{name}/{side}"].astype(float) for side in "xy")
        begin = time.process_time()
        value = METHODS[method](x, y)
        record = {"case": name, "method": method, "truth": float(arrays[f"{name}/truth"]), "value": value}
        record["seconds"] = round(time.process_time() - begin, 2)
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def table(results: Path) -> str:
    """Mean error in nats in one and three columns a side, and seconds of processor time, by method."""
    records = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    lines = ["| method | 1 + 1 columns | 3 + 3 columns | seconds |", "|---|---:|---:|---:|"]
    for method in METHODS:
        own = [record for record in records if record["method"] == method and np.isfinite(record["value"])]
        if own:
            means = (_mean_error(own, "1x1"), _mean_error(own, "3x3"))
            seconds = fmean(record["seconds"] for record in own)
            lines.append(f"| {method} | {means[0]} | {means[1]} | {seconds:.1f} |")
    return "\n".join(lines)


def _mean_error(records: list[dict[str, Any]], columns: str) -> str:
    errors = [abs(record["value"] - record["truth"]) for record in records if columns in record["case"]]
    return f"{fmean(errors):.3f}" if errors else "–"


def picture(results: Path, out: Path) -> None:
    """Estimates against truths, one panel per method that has been run and has a title."""
    import matplotlib.pyplot as plt

    records = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    most = 1.1 * max(record["truth"] for record in records)
    figure, axes = plt.subplots(1, len(TITLES), figsize=(12, 4.2), sharex=True, sharey=True, layout="constrained")
    for axis, (method, title) in zip(axes, TITLES.items(), strict=True):
        own = [record for record in records if record["method"] == method]
        axis.plot([0, most], [0, most], color="#999999", linewidth=1)
        for columns, marker in (("1x1", "o"), ("3x3", "^")):
            chosen = [record for record in own if columns in record["case"]]
            truths, values = ([record[key] for record in chosen] for key in ("truth", "value"))
            axis.scatter(truths, values, marker=marker, s=30, alpha=0.8, label=columns.replace("x", " + ") + " columns")
        axis.set(title=title, xlabel="truth, nats", xlim=(0, most), ylim=(-0.3, most))
    axes[0].set_ylabel("estimate, nats")
    axes[0].legend(frameon=False)
    figure.savefig(out, dpi=120)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("rows", "run", "table", "picture"))
    parser.add_argument("--rows", type=Path, default=Path("packages.npz"))
    parser.add_argument("--results", type=Path, default=Path("packages.jsonl"))
    parser.add_argument("--method", choices=tuple(METHODS), default="infoknife")
    parser.add_argument("--out", type=Path, default=Path("packages.png"))
    parser.add_argument("--n", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.what == "rows":
        write_rows(options.rows, options.n, options.seed)
    elif options.what == "run":
        run(options.rows, options.results, options.method)
    elif options.what == "table":
        print(table(options.results))
    else:
        picture(options.results, options.out)


if __name__ == "__main__":
    main()
