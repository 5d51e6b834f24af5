"""What pages show apart from Python: commands, their output, differences of files, names of extras and modules."""

import importlib.util
import io
import json
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.main
from typer.testing import CliRunner

from infoknife import mutual_information
from infoknife.cli import app

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "guide"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+\.?\d*")
TOLERANCE = 0.06  # nats, or percent of the last rows: what another version of torch may change


def fences(page: Path, language: str) -> list[str]:
    return [code for name, code in FENCE.findall(page.read_text(encoding="utf-8")) if name == language]


def commands(page: Path) -> list[str]:
    """Return all command lines of ``infoknife`` in blocks, and those in the text that have an option."""
    text = page.read_text(encoding="utf-8")
    shown = [line for name in ("", "bash", "console") for code in fences(page, name) for line in code.splitlines()]
    blocks = [re.sub(r"^\$ |\s+#.*$", "", line) for line in shown]
    blocks = [line.removeprefix(".venv/bin/") for line in blocks]
    inline = re.findall(r"`(infoknife [a-z][^`]* --[^`]+)`", FENCE.sub("", text))
    return [line for line in [*blocks, *inline] if re.match(r"infoknife (?!\w+:)", line)]


def unknown_words(line: str) -> list[str]:
    """Return the commands and options of a line that the command line does not have."""
    command: Any = typer.main.get_command(app)
    words = shlex.split(line.replace("...", ""))[1:]
    while words:
        word = words.pop(0)
        options = {name: each for each in command.params for name in (*each.opts, *each.secondary_opts)}
        if word.startswith("-"):
            if word not in {*options, "--help"}:
                return [word]
            if word in options and not options[word].is_flag:
                words = words[1:]
        elif "commands" in vars(command):
            if word not in command.commands:
                return [word]
            command = command.commands[word]
    return []


def test_commands_and_options_exist() -> None:
    found = {line: unknown_words(line) for page in PAGES for line in commands(page)}
    assert len(found) > 40
    assert {line: wrong for line, wrong in found.items() if wrong} == {}
    assert unknown_words("infoknife mi FILE --colour blue") == ["--colour"]
    assert unknown_words("infoknife measure FILE") == ["measure"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_extras_benchmarks_and_programs_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = {
        extra for one in re.findall(r'pip install "(?:infoknife|\.)\[([\w,-]+)\]"', text) for extra in one.split(",")
    }
    assert named <= set(extras)
    for module in re.findall(r"python -m (benchmarks[\w.]*)", text):
        assert importlib.util.find_spec(module) is not None, module
    for program in re.findall(r"\b((?:examples|notebooks|benchmarks)/\w+\.(?:py|ipynb))", text):
        assert (ROOT / program).exists(), program


def masked(text: str) -> str:
    return NUMBER.sub("#", " ".join(text.split()))


def same(printed: str, shown: str) -> None:
    """Compare words, and numbers up to what another version of torch may change; "..." is the rest."""
    printed, shown = " ".join(printed.split()), " ".join(shown.split())
    if shown.endswith(" ..."):
        shown = shown[:-4]
        printed = " ".join(printed.split(" ")[: len(shown.split(" "))])
    assert masked(printed) == masked(shown)
    new, old = ([float(number) for number in NUMBER.findall(text)] for text in (printed, shown))
    assert new == pytest.approx(old, abs=TOLERANCE)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the guide to the command line measures."""
    datasets = pytest.importorskip("sklearn.datasets", reason="scikit-learn is not installed")
    wine = datasets.load_wine()
    names = [name.replace("od280/od315_of_diluted_wines", "od280") for name in wine.feature_names]
    rows = [
        ",".join([*(f"{value:g}" for value in row), f"class_{kind}"])
        for row, kind in zip(wine.data, wine.target, strict=True)
    ]
    (tmp_path / "wine.csv").write_text("\n".join([",".join([*names, "cultivar"]), *rows]), encoding="utf-8")
    generator = np.random.default_rng(0)
    days, pay = generator.integers(1, 29, size=300), generator.normal(3000, 400, size=300)
    staff = [
        f"{day:02}.03.2024;{f'{euros:,.2f}'.translate(str.maketrans(',.', '.,'))} €"
        for day, euros in zip(days, pay, strict=True)
    ]
    (tmp_path / "staff.csv").write_text("\n".join(["joined;salary", *staff]), encoding="utf-8")
    (tmp_path / "ragged.csv").write_text("a,b\n1,2\n3\n", encoding="utf-8")
    cells = [
        f"{a:.4f},{'' if row in {15, 200, 300} else f'{b:.4f}'}"
        for row, (a, b) in enumerate(generator.normal(size=(400, 2)))
    ]
    (tmp_path / "gaps.csv").write_text("\n".join(["a,b", *cells]), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def answers(page: Path) -> Iterator[tuple[str, str]]:
    """Run the commands of a page's blocks, and return what they print, and what is shown."""
    for block in fences(page, "console"):
        for call in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, shown = call.removeprefix(".venv/bin/").split("\n", 1)
            line, _, target = line.partition(" > ")
            answer = CliRunner().invoke(app, shlex.split(line)[1:])
            if target:
                json.loads(answer.stdout)
            yield answer.stderr if target else answer.stdout + answer.stderr, shown


@pytest.mark.slow
def test_the_command_line_prints_what_its_guide_shows(files: Path) -> None:
    pairs = list(answers(GUIDE / "command-line-measuring.md"))
    assert len(pairs) == 8
    for printed, shown in pairs:
        same(printed, shown)
    head, row = fences(GUIDE / "command-line-measuring.md", "text")[0].splitlines()
    written = (files / "pairs.csv").read_text(encoding="utf-8").splitlines()
    assert written[0] == head
    shown_row, run = row.rsplit(",", 1)
    same(next(line for line in written if line.startswith("alcohol,cultivar")).rsplit(",", 1)[0], shown_row)
    assert re.fullmatch("[0-9a-f]{12}", run)


def test_the_first_number_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    exec(compile(fences(GUIDE / "start.md", "python")[0], "start.md", "exec"), {})
    ((printed, shown),) = answers(GUIDE / "start.md")
    same(printed, shown)


@pytest.mark.slow
def test_the_guide_to_data_shows_what_is_printed() -> None:
    x, noise = np.random.default_rng(0).normal(size=(2, 2000))
    answer = mutual_information(x, (x + noise) ** 3, effort="quick")
    line, table = fences(GUIDE / "data.md", "text")
    same(str(answer), line)
    from rich.console import Console

    Console(width=80, file=(printed := io.StringIO())).print(answer)
    same(printed.getvalue(), table)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_additions_still_apply(tmp_path: Path) -> None:
    """The differences that the page on contributing shows, on the present files."""
    blocks = fences(ROOT / "docs" / "contributing.md", "diff")
    assert len(blocks) == 7
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for block in blocks:
        patch = ""
        for part in re.split(r"^# (?=\S+\n@@)", block, flags=re.MULTILINE)[1:]:
            name, body = part.split("\n", 1)
            before = "/dev/null" if body.startswith("@@ -0,0") else f"a/{name}"
            patch += f"--- {before}\n+++ b/{name}\n{body}"
        command = ["git", "apply", "--check", "-"]
        applied = subprocess.run(command, input=patch, text=True, capture_output=True, cwd=tmp_path, check=False)
        assert applied.returncode == 0, applied.stderr


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    """Python runs in ``test_readme``; the others are above."""
    kinds = {name for page in PAGES for name, _ in FENCE.findall(page.read_text(encoding="utf-8"))}
    assert kinds <= {"python", "console", "text", "diff", "bash", ""}
