"""The reference: what is named in it exists, and examples are sections that render as code."""

import importlib
import re
from pathlib import Path

import pytest

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
