"""``python -m benchmarks.sweep``: a sweep on a Dask cluster of this machine, a worker killed every ten seconds."""

import os
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from infoknife.paper.engine import Store, read_records, run
from infoknife.paper.engine.runner import LASTING
from infoknife.paper.experiments import select

LIBRARY = "infoknife.paper.experiments"  # imported before a worker is at work: kills are to cost trials, not imports


def main(
    trials: Annotated[int, typer.Option(help="How many, of Table 1.")] = 40,
    workers: Annotated[int, typer.Option(help="Processes with one thread each.")] = 2,
    every: Annotated[float, typer.Option(help="Seconds between two kills.")] = 10.0,
) -> None:
    """Count records, and the workers that were killed meanwhile."""
    import dask
    from dask.distributed import LocalCluster

    wanted = select("table1", "paper", only={"method": ["knife"]})[:trials]
    killed, over = list[int](), threading.Event()
    with (
        tempfile.TemporaryDirectory() as folder,
        dask.config.set(LASTING),
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0", preload=[LIBRARY]) as cluster,
    ):

        def kill() -> None:
            while not over.wait(every):
                at_work = [w for w in cluster.workers.values() if w.worker_address in cluster.scheduler.workers]
                if len(at_work) == workers:  # on a busy machine a worker may take longer to start than the next kill
                    killed.append(random.choice(at_work).pid)
                    os.kill(killed[-1], signal.SIGKILL)

        threading.Thread(target=kill, daemon=True).start()
        store, begin = Store(Path(folder)), time.perf_counter()
        store.prepare(wanted)
        fates = Counter(fate for _, fate in run(wanted, store, backend="dask", scheduler=cluster.scheduler_address))
        over.set()
        records = [record["id"] for record in read_records(store.root)]
    typer.echo(f"{len(wanted)} trials in {time.perf_counter() - begin:.0f} s, {len(killed)} workers killed")
    typer.echo(f"fates: {dict(fates)}; records: {len(records)}, of {len({*records})} trials")


if __name__ == "__main__":
    typer.run(main)
