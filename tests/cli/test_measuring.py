"""The commands with the true engine, on files whose answers are known."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Run, processes

QUICK = ("--effort", "quick", "--json")
ROWS = 1100  # above 1,000 a measurement is not repeated


@pytest.fixture
def known(tmp_path: Path) -> Path:
    """Two Gaussians with correlation 0.8, and a class that the first moves by two standard deviations."""
    generator = np.random.default_rng(0)
    a, noise = generator.normal(size=(2, ROWS))
    kind = generator.integers(2, size=ROWS)
    b = 0.8 * a + 0.6 * noise
    c = 2.0 * (2 * kind - 1) + generator.normal(size=ROWS)
    rows = zip(a, b, c, np.where(kind, "yes", "no"), strict=True)
    (tmp_path / "known.csv").write_text("\n".join(["a,b,c,kind", *(f"{a},{b},{c},{kind}" for a, b, c, kind in rows)]))
    return tmp_path / "known.csv"


def test_entropy(run: Run, known: Path) -> None:
    content = json.loads(run("entropy", known, "--columns", "a", *QUICK).stdout)
    assert content["bound"] == "upper"
    assert content["value"] == pytest.approx(0.5 * math.log(2 * math.pi * math.e), abs=0.12)


def test_mutual_information(run: Run, known: Path) -> None:
    content = json.loads(run("mi", known, "--x", "a", "--y", "b", *QUICK, "--unit", "bits").stdout)
    assert content["value"] == pytest.approx(-math.log2(0.6), abs=0.15)
    assert content["diagnostics"]["candidates"]


def test_classes(run: Run, known: Path) -> None:
    content = json.loads(run("mi", known, "--x", "c", "--y", "kind", *QUICK).stdout)
    assert content["discrete"] == ["kind"]
    assert content["value"] == pytest.approx(0.63, abs=0.08)  # log 2 less what the overlap takes


def test_infinity(run: Run, tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(ROWS, 2))
    np.save(tmp_path / "rows.npy", np.column_stack([x, np.exp(x[:, 1])]))
    result = run("mi", tmp_path / "rows.npy", "--x", "0,1", "--y", "2", *QUICK)
    content = json.loads(result.stdout)
    assert result.exit_code == 0
    assert content["value"] == "inf"
    assert "2 is a smooth function of 1" in content["diagnostics"]["messages"][0]


def test_processes_do_not_change_the_numbers(run: Run, known: Path) -> None:
    options = ("--all", "--columns", "a,c,kind", "--method", "gaussian", *QUICK[:2], "--permutations", 9, "--json")
    one, two = (run("mi", known, *options, "--jobs", jobs) for jobs in (1, 2))
    assert (one.exit_code, two.exit_code) == (0, 0)
    assert one.stdout == two.stdout
    assert json.loads(two.stdout)["p_value"][1][2] == 0.1


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
@pytest.mark.parametrize("signum", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_no_process_is_left_behind(known: Path, signum: int) -> None:
    command = [sys.executable, "-c", "from infoknife.cli import app; app()", "mi", str(known), "--all", "--jobs", "2"]
    with subprocess.Popen(
        [*command, "--effort", "thorough"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # jobs in the background ignore it
    ) as process:
        all_started = 4  # itself, a tracker and two workers
        while process.poll() is None and len(processes(process.pid, sessions=True)) < all_started:
            time.sleep(0.1)
        for _ in range(30):  # Ctrl-C while processes start does nothing: press it again
            if not processes(process.pid, sessions=True):
                break
            if signum == signal.SIGINT:
                os.killpg(process.pid, signum)  # as a terminal does
            else:
                process.send_signal(signum)
            for _ in range(50):
                if processes(process.pid, sessions=True):
                    time.sleep(0.1)
        assert processes(process.pid, sessions=True) == []
        _, errors = process.communicate(timeout=10)
    assert process.returncode == (130 if signum == signal.SIGINT else -signum)
    assert signum != signal.SIGINT or errors.endswith("infoknife mi: stopped\n")  # workers that start may say more
