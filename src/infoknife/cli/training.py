"""What all applications' commands share: options, a bar with what is known, TensorBoard if wanted, and a folder."""

import ast
import functools
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infoknife.cli.options import with_options
from infoknife.cli.terminal import bar, cannot_write, note, require
from infoknife.cli.trials import check_device

if TYPE_CHECKING:
    from infoknife.paper.applications.run import RunResult
    from infoknife.paper.applications.settings import RunSettings

OnProgress = Callable[[int, Mapping[str, float]], None]
WORDS = {"true": True, "false": False, "none": None, "all": None}
SET = "Any other setting, as estimator.activation=tanh; may be repeated."
SHOWN = {
    **{"source_accuracy": "src {:.2f}", "target_accuracy": "tgt {:.2f}", "main_accuracy": "main {:.2f}"},
    **{"score": "score {:.3f}", "information": "MI {:.2f}", "relevance": "label {:.2f}"},
}


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What all applications can be told: settings that they share, where a run goes, and what is to be seen of it."""

    preset: Annotated[str, typer.Option(help="paper: as published; cpu: minutes; quick: a glance.")] = "cpu"
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 0
    batch_size: Annotated[int | None, typer.Option(min=2, help="Rows in a step.")] = None
    lr: Annotated[float | None, typer.Option(help="Learning rate of the encoder.")] = None
    weight: Annotated[
        float | None, typer.Option("--weight", "--lambda", help="Lambda, in front of the information in nats.")
    ] = None
    changes: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help=SET)] = None
    device: Annotated[str, typer.Option(help="Where the networks are: cpu, or cuda.")] = "cpu"
    threads: Annotated[int, typer.Option(min=0, help="Threads of torch; 0: one for every core.")] = 0
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write curves for TensorBoard as well.")] = False
    out: Annotated[Path, typer.Option(help="Where the run's folder is made: settings, metrics, model and page.")] = (
        Path("infoknife-runs")
    )

    def settings(self, given: Mapping[str, Any], *more: str) -> dict[str, Any]:
        """Settings from options that were given, from ``more`` and from ``--set``, both as name=value.

        A dot in a name is an option of the estimator.
        """
        every = {**given, "seed": self.seed, "batch_size": self.batch_size, "lr": self.lr, "weight": self.weight}
        found: dict[str, Any] = {name: value for name, value in every.items() if value is not None}
        for text in (*more, *(self.changes or [])):
            name, equals, value = text.partition("=")
            if not name or not equals:
                raise ValueError(f"--set is {text!r}; expected name=value, such as size=16")
            outer, _, inner = name.strip().replace("-", "_").partition(".")
            if inner and outer != "estimator":
                raise ValueError(
                    f"--set is {text!r}; expected a setting, or an option of the estimator: estimator.NAME"
                )
            place = found.setdefault("estimator", {}) if inner else found
            place[inner or outer] = _value(value)
        return found

    def train(
        self, settings: "RunSettings", data: str, function: "Callable[..., RunResult]"
    ) -> tuple[Path, dict[str, Any]]:
        """Train with a bar on stderr, and return the run's folder and results; those of a run that has ended are read.

        Started by torchrun, all processes share one run; the first one shows and writes, and the others end here.
        ``data`` is the digest of the data; ``function`` takes ``folder``, ``device`` and ``on_progress``.
        """
        import torch
        from filelock import FileLock, Timeout

        from infoknife.distributed import said_by_first
        from infoknife.paper.applications.run import read_results, run_folder

        check_device(self.device)
        folder = run_folder(self.out, settings, data)
        before, cores = torch.get_num_threads(), (os.cpu_count() or 1) // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        try:
            with warnings.catch_warnings(record=True) as caught, _all_ranks(self.device) as rank:
                warnings.simplefilter("always", UserWarning)
                results = said_by_first(None if rank else read_results(folder))
                if results is not None and not rank:
                    note(f"this run has ended; its results are in {folder}")
                    return folder, results
                torch.set_num_threads(self.threads or max(1, cores))
                if not rank:
                    folder.mkdir(parents=True, exist_ok=True)
                    board = _board(folder / "tensorboard") if self.tensorboard else nullcontext(lambda *facts: None)
                    shown = bar(settings.progress, settings.title)
                    with FileLock(folder / "lock", timeout=0), shown as watch, board as write:
                        known = ""

                        def on_progress(step: int, facts: Mapping[str, float]) -> None:
                            nonlocal known
                            words = (form.format(facts[name]) for name, form in SHOWN.items() if name in facts)
                            known = "  ".join(words) or known
                            watch(step, known)
                            write(step, facts)

                        result = function(folder=folder, device=self.device, on_progress=on_progress)
                elif results is None:
                    function(folder=folder, device=self.device)
        except KeyboardInterrupt:
            note("stopped; the same command goes on from the last checkpoint")
            raise typer.Exit(130) from None
        except Timeout:
            raise ValueError(f"another process is at this run in {folder}; wait for it") from None
        except OSError as error:
            raise (cannot_write(error, self.out) if error.errno else ValueError(str(error))) from None
        except (RuntimeError, ArithmeticError) as error:
            raise ValueError(str(error)) from None
        finally:
            torch.set_num_threads(before)
        if rank:
            raise typer.Exit
        for warning in caught:
            if "set aside" in str(warning.message):
                note(str(warning.message))
        return folder, result.results


def with_run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of ``RunOptions`` to a command, which takes them as ``run``."""

    @functools.wraps(command)
    def quietly(**given: Any) -> None:
        with warnings.catch_warnings():  # what a corpus warns of is among its notes
            warnings.simplefilter("ignore", UserWarning)
            command(**given)

    return with_options(RunOptions, "run")(quietly)


def _value(text: str) -> Any:
    """A number, a list or a word."""
    try:
        return WORDS[text.lower()] if text.lower() in WORDS else ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


@contextmanager
def _all_ranks(device: str) -> Iterator[int]:
    """Join the processes that torchrun has started, if it has, and yield which of them this is."""
    import torch
    import torch.distributed as dist

    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield 0
        return
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    try:
        yield dist.get_rank()
    finally:
        dist.destroy_process_group()


@contextmanager
def _board(folder: Path) -> Iterator[OnProgress]:
    """Yield a function that writes facts as scalars."""
    require("tensorboard", "the curves", "tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder)) as writer:

        def write(step: int, facts: Mapping[str, float]) -> None:
            for name, value in facts.items():
                writer.add_scalar(name, value, step)

        yield write
