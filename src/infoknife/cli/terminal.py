"""What commands write: answers on stdout; progress, notes and what is wrong on stderr, one line each."""

import codecs
import errno
import importlib
import io
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup
from typing_extensions import override

Watch = Callable[[float, str], None]
PLAIN = {"−": "-", "–": "-", "—": "-", "‐": "-", "±": "+/-", "…": "...", "×": "x", "·": ".", "∞": "inf", "≤": "<="}
PLAIN |= {"≥": ">=", "→": "->", "“": '"', "”": '"', "‘": "'", "’": "'", "\u00a0": " ", "─": "-", "━": "-", "│": "|"}

_command: ContextVar[str] = ContextVar("command", default="")  # what messages begin with
_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


class Commands(TyperGroup):
    """Commands whose errors are one line on stderr and an exit code."""

    @override
    def invoke(self, ctx: Any) -> Any:
        command, quiet = _command.get(), _quiet.set(_quiet.get() or bool(ctx.params.get("quiet")))
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except OSError as error:
            if error.errno == errno.EPIPE:  # nobody reads any more
                raise
            reason = str(error) if error.errno is None else _reason(error)
            raise _failed(f"{error.filename}: {reason}" if error.filename else reason, 2) from None
        except (ValueError, TypeError, ImportError) as error:
            raise _failed(str(error), 2) from None
        except (RuntimeError, ArithmeticError, MemoryError) as error:
            raise _failed(f"failed: {type(error).__name__}: {error}", 1) from None
        except KeyboardInterrupt:
            raise _failed("stopped", 130) from None
        finally:
            _command.set(command)
            _quiet.reset(quiet)

    @override
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        found = super().resolve_command(ctx, args)
        _command.set(f"{_command.get()} {found[0]}".strip())
        return found


def _failed(message: str, code: int) -> typer.Exit:
    typer.echo(f"infoknife {_command.get()}: {_line(message)}", err=True)
    return typer.Exit(code)


def note(text: str) -> None:
    """Say something on stderr, in one line that no name in it can break."""
    if not _quiet.get():
        typer.echo(f"infoknife {_command.get()}: {_line(text)}", err=True)


def _line(text: str) -> str:
    from infoknife.files import printable

    return printable(" ".join(text.split()))


@contextmanager
def bar(total: float = 1.0, counted: str = "", done: int = 0) -> Iterator[Watch]:
    """Show progress on stderr, and yield what moves it: how much is done, and a few words.

    Without a name for what is counted this is a share, and is shown on terminals only.
    """
    from rich import progress as rich
    from rich.console import Console

    console, number = Console(stderr=True), rich.MofNCompleteColumn() if counted else rich.TaskProgressColumn()
    with rich.Progress(
        rich.TextColumn("{task.fields[counted]}", markup=False) if counted else rich.SpinnerColumn(),
        *(rich.BarColumn(24), number, rich.TimeElapsedColumn(), rich.TimeRemainingColumn()),
        rich.TextColumn("left · {task.description}", markup=False),
        console=console,
        transient=not counted,
        redirect_stdout=False,
        disable=_quiet.get() or not (counted or console.is_terminal),
        speed_estimate_period=600,  # seconds: a pair of columns may take a minute
    ) as progress:
        task = progress.add_task("", total=total, completed=done, counted=counted)
        yield lambda done, text: progress.update(task, completed=done, description=text)


def print_json(content: Mapping[str, Any]) -> None:
    """Print one JSON object on stdout."""
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))


def require(module: str, what: str, extra: str) -> None:
    """Stop where what needs an optional library cannot be had."""
    try:
        importlib.import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        raise ImportError(f'{what} need {name}; install it with: pip install "infoknife[{extra}]"') from None


def require_matplotlib() -> None:
    """Stop where no figure can be drawn."""
    require("matplotlib.figure", "the figures", "plot")


def check_writable(option: str, path: Path, read: Path | None = None) -> None:
    """Try to write the file that an option names without a trace; it must not be the one that is ``read``."""
    try:
        if read is not None and path.exists() and read.exists() and path.samefile(read):
            raise ValueError(f"{option} is {path}, the file that is read; choose another {option}")
        if path.exists():
            path.open("ab").close()
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-"):  # as when it is written
            pass
    except OSError as error:
        text = str(path) if len(str(path)) <= 200 else f"{str(path)[:80]}...{str(path)[-40:]}"
        raise ValueError(f"cannot write to {text}: {_reason(error)}; choose another {option}") from None


def prepare_folder(path: Path, names: Iterable[str]) -> None:
    """Make a folder for output, and see before any work that these files can be written there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(error, path) from None
    for name in names:
        check_writable("--out", path / name)


def cannot_write(error: OSError, where: Path) -> ValueError:
    """Return the error to raise where a folder cannot be written."""
    return ValueError(f"cannot write to {error.filename or where}: {_reason(error)}; choose another --out")


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def replace_unencodable() -> None:
    """Let stdout and stderr write what their encoding does not have in other characters, instead of failing.

    Examples:
        >>> "0.5 ± 0.1 …é".encode("ascii", "infoknife.plain")
        b'0.5 +/- 0.1 ...\\\\xe9'
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="infoknife.plain")


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Write characters that an encoding does not have in ASCII."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = error.object[error.start : error.end]
    return "".join(PLAIN.get(one, one.encode("ascii", "backslashreplace").decode()) for one in found), error.end


codecs.register_error("infoknife.plain", _plain)
