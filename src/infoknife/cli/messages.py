"""What commands say on stderr, one line each: notes, and what is wrong, with the exit code 2."""

from pathlib import Path

import typer

from infoknife.files import printable


def note(command: str, text: str) -> None:
    """Say something on stderr, in one line that no name in it can break."""
    typer.echo(f"infoknife {command}: {printable(' '.join(text.split()))}", err=True)


def fail(command: str, message: str) -> typer.Exit:
    """Say what is wrong, and give the exit to raise."""
    note(command, message)
    return typer.Exit(2)


def cannot_write(command: str, error: OSError, where: Path) -> typer.Exit:
    """Say why a folder cannot be written, and give the exit to raise."""
    reason = error.strerror.lower() if error.strerror else str(error)
    return fail(command, f"cannot write to {error.filename or where}: {reason}; choose another --out")


def require_matplotlib(command: str) -> None:
    """Stop where there are no figures without the extra."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        message = 'the figures need matplotlib; install it with: pip install "infoknife[plot]"'
        raise fail(command, message) from None
