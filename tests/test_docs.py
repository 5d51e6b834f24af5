"""The reference: what is named in it exists, and examples are sections that render as code."""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import infoknife

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "api").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_name_of_the_reference_is_there(page: Path) -> None:
    for name in re.findall(r"^::: ([\w.]+)", page.read_text(encoding="utf-8"), flags=re.MULTILINE):
        module, _, attribute = name.rpartition(".")
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            assert hasattr(importlib.import_module(module), attribute), name


def test_examples_are_sections() -> None:
    """A heading "Example:" would be an admonition, in which ">>>" is a quotation."""
    for path in (ROOT / "src").rglob("*.py"):
        assert not re.search(r"^\s*Example:$", path.read_text(encoding="utf-8"), flags=re.MULTILINE), path.name


def public_objects() -> Iterator[tuple[str, object]]:
    """Return all public functions and classes, those of public modules included, by the name that users import."""
    for name in sorted(set(infoknife.__all__) - {"__version__"}):
        value = getattr(infoknife, name)
        if inspect.ismodule(value):
            yield from ((f"infoknife.{name}.{key}", getattr(value, key)) for key in getattr(value, "__all__", ()))
        else:
            yield f"infoknife.{name}", value


def named_in_the_reference() -> Iterator[object]:
    """Return what the reference names: functions, classes, members that are listed, and modules as a whole."""
    for page in PAGES:
        for name, _, members in re.findall(
            r"^::: ([\w.]+)(\n    options:\n      members: \[(.*)\])?", page.read_text("utf-8"), re.M
        ):
            try:
                room = importlib.import_module(name)
            except ModuleNotFoundError:
                module, _, attribute = name.rpartition(".")
                yield getattr(importlib.import_module(module), attribute)
            else:
                yield from (getattr(room, member) for member in (members.split(", ") if members else vars(room)))


def test_everything_public_has_a_formula_or_an_example_and_is_in_the_reference() -> None:
    named = {id(one) for one in named_in_the_reference()}
    found = {name: value for name, value in public_objects() if callable(value)}
    assert len(found) > 60
    assert [name for name, value in found.items() if id(value) not in named] == []
    documented = {name: inspect.getdoc(value) or "" for name, value in found.items()}
    assert [name for name, text in documented.items() if "$" not in text and ">>>" not in text] == []
