"""The map of docs/architecture.md, enforced: who imports whom."""

import ast
import re
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "infoknife"
FILES = sorted(SOURCE.rglob("*.py"))

PUBLIC = "infoknife"  # the package itself: `from infoknife import KNIFE`
CORE = {"torch", "numpy", "scipy", "typer", "rich", "filelock"}
BACKPORTS = {"typing_extensions"}  # that torch depends on

# A room may import itself, the standard library, and what stands here.
MAY_IMPORT = {
    "_version": set[str](),
    "theory": set[str](),
    "atomic": set[str](),
    "files": {"numpy"},
    "streams": {"numpy", "files"},
    "inputs": {"torch", "numpy"},
    "distributed": {"torch", "_version"},
    "randomness": {"torch"},
    "kernels": {"torch", "inputs"},
    "mixtures": {"torch", "kernels"},
    "nn": {"torch"},
    "coordinates": {"torch", "inputs", "distributed"},
    "erasure": {"torch", "inputs"},
    "densities": {"torch", "kernels", "mixtures", "nn", "inputs", "coordinates", "distributed"},
    "training": {"torch", "randomness", "numpy", "rich", "inputs", "distributed"},
    "estimators": {"torch", "densities", "coordinates", "nn", "mixtures", "inputs", "distributed"},
    "regularizer": {"torch", "randomness", "estimators", "densities", "coordinates", "nn", "inputs", "distributed"},
    "testing": {"torch", "densities", "estimators", "inputs"},
    "integrations": {"torch", "numpy", "coordinates", "densities", "measure", "regularizer", "inputs", "atomic"},
    "tasks": {"torch", "numpy", "scipy", "inputs"},
    "measure": {
        "torch",
        "randomness",
        "numpy",
        "scipy",
        "rich",
        "files",
        "streams",
        "atomic",
        "inputs",
        "mixtures",
        "nn",
        "coordinates",
        "densities",
        "estimators",
        "training",
        "distributed",
    },
    "representations": {"numpy", "scipy", "measure", "inputs", "pictures"},
    "leakage": {"torch", "numpy", "scipy", "measure", "files", "inputs", "pictures"},
    "pictures": {"numpy", "rich", "files", "atomic"},
    "paper": {
        "torch",
        "numpy",
        "scipy",
        "filelock",
        "erasure",
        "densities",
        "estimators",
        "tasks",
        "training",
        "distributed",
        "files",
        "inputs",
        "atomic",
        "pictures",
        "_version",
        PUBLIC,
    },
    "demo": {"torch", "numpy", "scipy", "tasks", "training", "pictures", "atomic", PUBLIC},
}
EXTRAS = {
    "integrations": {"lightning", "transformers", "sklearn", "joblib", "torchmetrics"},
    "paper": {"pandas"},
}  # libraries without which a room cannot be imported
MODULE_EXTRAS = {
    "paper/applications/ib_text/model.py": {"transformers"},
}  # modules of other rooms that are imported only where such a library is asked for
EVERYTHING = CORE | MAY_IMPORT.keys() | {PUBLIC, "cli"}
MAY_IMPORT |= {"cli": EVERYTHING, PUBLIC: EVERYTHING}


class Import(NamedTuple):
    """One imported name: the room or the library that it comes from, and where."""

    target: str
    line: int
    inside_function: bool


def name(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def room(path: Path) -> str:
    """The first name below the package; the package's own __init__ is the package."""
    first = path.relative_to(SOURCE).parts[0]
    return PUBLIC if first == "__init__.py" else first.removesuffix(".py")


ROOMS = {room(path) for path in FILES}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def imports(path: Path) -> Iterator[Import]:
    """Every import of a file, at any depth, with relative ones resolved."""
    inside = {id(node) for function in functions(path) for node in ast.walk(function)}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [f"{absolute(node, path)}.{alias.name}" for alias in node.names]
        else:
            continue
        for module in modules:
            yield Import(target(module), node.lineno, id(node) in inside)


def absolute(node: ast.ImportFrom, path: Path) -> str:
    """The module that `from ... import` names, without its leading dots."""
    if node.level == 0:
        return node.module or ""
    package = path.relative_to(SOURCE.parent).parts[: -node.level]
    return ".".join([*package, *([node.module] if node.module else [])])


def target(module: str) -> str:
    """The room or library behind a dotted name; a name that is no room comes from the package itself."""
    first, *rest = module.split(".")
    if first != PUBLIC:
        return first
    return rest[0] if rest and rest[0] in ROOMS else PUBLIC


def test_imports_keep_to_the_map() -> None:
    """A room imports what it may; what is an extra is imported inside the functions that need it."""
    assert MAY_IMPORT.keys() >= ROOMS, "a new room needs a rule here and a line in docs/architecture.md"
    wrong = []
    for path in FILES:
        here = room(path)
        extras = EXTRAS.get(here, set()) | MODULE_EXTRAS.get(name(path), set())
        allowed = MAY_IMPORT[here] | sys.stdlib_module_names | BACKPORTS | {here} | extras
        for found in imports(path):
            is_extra_in_function = found.inside_function and found.target not in EVERYTHING
            if found.target not in allowed and not is_extra_in_function:
                wrong.append(f"{name(path)}, line {found.line}: {found.target}")
    assert wrong == []


def test_rules_have_no_cycles() -> None:
    above = {here: rule & MAY_IMPORT.keys() for here, rule in MAY_IMPORT.items() if here not in {"cli", PUBLIC}}
    while above:
        free = {here for here, rule in above.items() if not rule & above.keys()}
        assert free, f"these rooms import each other in a circle: {sorted(above)}"
        above = {here: rule for here, rule in above.items() if here not in free}


def test_there_is_no_utils() -> None:
    assert [name(path) for path in FILES if re.search(r"util|helper|misc|common", path.stem)] == []


def test_map_and_house_agree() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = text.split("## Rooms")[1].split("\n## ")[0]
    drawn = re.findall(r"^ +([\w/*]+\.py)\b", rooms, flags=re.MULTILINE)
    built = [name(path) for path in FILES]
    assert [file for file in built if not any(fnmatch(file, line) for line in drawn)] == [], "not on the map"
    assert [line for line in drawn if not any(fnmatch(file, line) for file in built)] == [], "on the map alone"


def test_map_has_the_rules() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rules = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", text.split("## Who may import whom")[1], flags=re.MULTILINE))
    present = ROOMS - {"_version", PUBLIC}
    assert rules.keys() == present
    for here in present - {"cli"}:
        assert set(re.findall(r"\w+", rules[here])) & EVERYTHING == MAY_IMPORT[here] & (present | CORE)


def test_the_instruments_work() -> None:
    assert SOURCE / "kernels.py" in FILES
    for code, expected in [
        ("from . import base", "infoknife.densities"),
        ("from .base import Density", "infoknife.densities.base"),
        ("from .. import kernels", "infoknife"),
        ("from ..kernels import log_density", "infoknife.kernels"),
        ("from torch import nn", "torch"),
    ]:
        node = ast.parse(code).body[0]
        assert isinstance(node, ast.ImportFrom)
        assert absolute(node, SOURCE / "densities" / "knife.py") == expected
    dotted = ("torch.nn.functional", "infoknife.inputs.matrix", "infoknife.KNIFE", "infoknife")
    assert [target(module) for module in dotted] == ["torch", "inputs", PUBLIC, PUBLIC]
