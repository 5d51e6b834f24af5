"""Peak extra memory of a step, in a process of its own: ``python -m benchmarks.memory N M d`` prints megabytes."""

import resource
import subprocess
import sys
from pathlib import Path

import torch

from benchmarks.rows import Bar, Row
from benchmarks.speed import Size
from benchmarks.timing import normal, step
from infoknife import KNIFE

ROOT = Path(__file__).parents[1]
STATUS = Path("/proc/self/status")


def peak_memory(size: Size, processes: int, most: float) -> Row:
    """Megabytes that forward and backward need on top of the module and the points: the most of some processes.

    The allocator rounds in its own way, which differs from process to process.
    """
    peak = max(_in_process(size) for _ in range(processes))
    return Row("peak extra memory of a step", str(size), peak, " MB", Bar(most, at_least=False))


def _in_process(size: Size) -> float:
    command = [sys.executable, "-m", "benchmarks.memory", *map(str, size)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the memory of a step at {size} could not be measured: {done.stderr.strip()}")
    return float(done.stdout)


def measure(size: Size) -> float:
    """Raise the high-water mark of this process by one step, and give the rise in megabytes."""
    torch.set_num_threads(1)
    step(KNIFE(2, 2), normal(4, 2))()  # what torch loads on first use is not the step's
    run = step(KNIFE(size.d, size.M), normal(size.N, size.d))
    before = _high_water()
    run()
    return (_high_water() - before) / 1e6


def _high_water() -> float:
    """The largest resident memory of this process so far, in bytes.

    Where Linux tells it of this program alone that is taken: the resource usage of a process may start from that of
    the one that launched it.
    """
    if STATUS.exists():
        (line,) = (line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return 1024 * float(line.split()[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


if __name__ == "__main__":
    print(measure(Size(*map(int, sys.argv[1:4]))))
