"""``python -m benchmarks.mutants``: small random errors in the library, and how many of them its tests notice."""

import ast
import copy
import os
import random
import signal
import time
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Annotated, Any

import pytest
import torch
import typer

ROOT = Path(__file__).parents[1]
ROOMS = {  # modules, and the tests that should notice
    "kernels": (("kernels.py",), ("test_kernels.py", "test_kernels_gradients.py", "test_kernels_by_point.py")),
    "mixtures": (("mixtures.py",), ("test_mixtures.py",)),
    "coordinates": (("coordinates.py",), ("test_coordinates.py",)),
    "densities": (("densities/*.py",), ("densities",)),
    "estimators": (("estimators/*.py",), ("estimators",)),
}
SWAPS: dict[type, type] = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult},
    **{ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.And: ast.Or, ast.Or: ast.And, ast.Is: ast.IsNot, ast.IsNot: ast.Is},
}


def main(
    sample: Annotated[int, typer.Option(help="Mutants of each room.")] = 20,
    seed: Annotated[int, typer.Option(help="Of the sample.")] = 0,
    seconds: Annotated[int, typer.Option(help="After so long a mutant counts as noticed.")] = 300,
    room: Annotated[list[str] | None, typer.Option(help="Which rooms; all without it.")] = None,
) -> None:
    """Draw mutants, each one a single changed operator, number or condition, and run the room's fast tests on each."""
    torch.set_num_threads(1)
    noticed = total = 0
    for name in room or ROOMS:
        patterns, tests = ROOMS[name]
        paths = sorted(path for pattern in patterns for path in (ROOT / "src/infoknife").glob(pattern))
        every = [(path, i) for path in paths for i in range(len(list(_places(ast.parse(path.read_text())))))]
        begin = time.perf_counter()
        if not _pass(paths[0], paths[0].read_text(), tests, 10 * seconds):
            raise RuntimeError(f"the tests of {name} fail as it is; expected them to pass")
        typer.echo(f"{name}: {len(every)} possible mutants; its tests take {time.perf_counter() - begin:.0f} s")
        for path, number in random.Random(seed).sample(every, min(sample, len(every))):
            source, what = _mutant(path.read_text(), number)
            survived = _pass(path, source, tests, seconds)
            noticed, total = noticed + (not survived), total + 1
            if survived:
                typer.echo(f"    survived: {path.name}:{what}")
    typer.echo(f"{noticed} of {total} mutants noticed")


def _places(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """What can be changed, with the field that changes; nothing in messages, annotations and docstrings."""
    if isinstance(tree, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(tree.op) in SWAPS:
        yield tree, "op"
    elif isinstance(tree, ast.Compare) and type(tree.ops[0]) in SWAPS:
        yield tree, "ops"
    elif isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub | ast.Not):
        yield tree, "operand"
    elif isinstance(tree, ast.Constant) and type(tree.value) in (int, float):
        yield tree, "value"
    for field, child in ast.iter_fields(tree):
        if field not in ("annotation", "returns", "decorator_list"):
            for one in child if isinstance(child, list) else [child]:
                if isinstance(one, ast.AST) and not isinstance(one, ast.Raise | ast.JoinedStr):
                    yield from _places(one)


def _mutant(source: str, number: int) -> tuple[str, str]:
    """The source with one change, and which it is."""
    tree = ast.parse(source)
    node: Any = list(_places(tree))[number][0]
    before = copy.deepcopy(node)
    if isinstance(node, ast.Constant):
        number_there: Any = node.value
        node.value = number_there + 1
    elif isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd() if isinstance(node.op, ast.USub) else ast.Not()
        if isinstance(node.op, ast.Not):
            node.operand = ast.UnaryOp(ast.Not(), node.operand)
    else:
        node.op = SWAPS[type(node.op)]()
    return ast.unparse(tree), f"{before.lineno}: {ast.unparse(before)} -> {ast.unparse(node)}"


def _pass(path: Path, source: str, tests: tuple[str, ...], seconds: int) -> bool:
    """Whether the tests pass with this source of a module, in a process of its own, within so many seconds."""
    if (child := os.fork()) == 0:
        status = 1
        try:
            silence, real = os.open(os.devnull, os.O_WRONLY), SourceFileLoader.get_code
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            signal.alarm(seconds)

            def get_code(loader: SourceFileLoader, name: str) -> Any:
                return compile(source, path, "exec") if Path(loader.path) == path else real(loader, name)

            SourceFileLoader.get_code = get_code  # type: ignore[assignment, method-assign]
            options = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
            status = int(pytest.main([*options, *(str(ROOT / "tests" / test) for test in tests)]))
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


if __name__ == "__main__":
    typer.run(main)
