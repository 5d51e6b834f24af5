"""The public names and their signatures, as they were agreed on: a change here is a change for users."""

import inspect
from pathlib import Path

import infoknife

SNAPSHOT = Path(__file__).with_name("api.txt")


def signature(value: object) -> str:
    """Names, kinds and defaults of the arguments, without annotations, which differ between versions of Python."""
    if inspect.isclass(value) and issubclass(value, Warning):
        return ""
    found = inspect.signature(value)  # type: ignore[arg-type]
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in found.parameters.values()]
    return str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def public_api() -> str:
    """One line per public function, class and method."""
    lines = []
    for name in sorted(set(infoknife.__all__) - {"__version__"}):
        value = getattr(infoknife, name)
        if inspect.ismodule(value):
            lines += [f"{name}.{key}" for key in sorted(getattr(value, "__all__", []))]
        elif callable(value):
            lines.append(f"{name}{signature(value)}")
        for key in sorted(key for key in vars(value) if inspect.isclass(value) and not key.startswith("_")):
            member = getattr(value, key)
            lines.append(f"    .{key}{signature(member) if inspect.isroutine(member) else ''}")
    return "\n".join(lines) + "\n"


def test_public_names_are_the_agreed_ones() -> None:
    """Where a change is meant: PYTHONPATH=src:. python -m tests.test_api, and a line in CHANGELOG.md."""
    assert public_api() == SNAPSHOT.read_text(encoding="utf-8")


if __name__ == "__main__":
    SNAPSHOT.write_text(public_api(), encoding="utf-8")
