"""The examples of the README and of the guide run, and give what they promise."""

import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]


def blocks(page: Path) -> list[str]:
    return re.findall(
        r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )


def run(code: str, page: Path, names: dict[str, Any]) -> dict[str, Any]:
    """Execute a block as the next cell of its page, from a fixed seed that leaves the global state alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        exec(compile(code, page.name, "exec"), names)
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for code in blocks(page):
        run(code, page, names)


def test_readme_measures(capsys: pytest.CaptureFixture[str]) -> None:
    names = run(blocks(PAGES[0])[0], PAGES[0], {})
    truth = float(torch.distributions.MultivariateNormal(torch.zeros(3), torch.cov(names["x"].T)).entropy())
    assert "4.439" in blocks(PAGES[0])[0]
    assert truth == pytest.approx(4.439, abs=0.05)
    assert float(names["surprise"].mean()) == pytest.approx(4.439, abs=0.1)
    assert capsys.readouterr().out.startswith("h = 4.4")


def test_readme_trains() -> None:
    names = run(blocks(PAGES[0])[1], PAGES[0], {})
    generator = torch.Generator().manual_seed(1)
    x, noise = torch.randn(2000, 8, generator=generator), torch.randn(2000, 2, generator=generator)
    with torch.no_grad():
        z = names["encoder"](x) + 0.1 * noise
        right = (names["head"](z).argmax(1) == (x[:, 0] > 0)).float().mean()
        held = names["estimator"](z) - math.log(
            2 * math.pi * math.e * 0.1**2
        )  # less the entropy of the noise
    assert float(right) > 0.95
    assert 0.5 < float(held) < 3.0
    assert all(parameter.requires_grad for parameter in names["estimator"].parameters())


def test_guide_raises_the_entropy_to_its_maximum(capsys: pytest.CaptureFixture[str]) -> None:
    page = ROOT / "docs" / "guide" / "train.md"
    curve = run(blocks(page)[0], page, {})["curve"]
    assert curve[0] < -1.0
    assert curve[-1] == pytest.approx(0.0, abs=0.2)


def test_readme_has_both_examples_and_the_commands() -> None:
    text = PAGES[0].read_text(encoding="utf-8")
    assert len(blocks(PAGES[0])) == 2
    assert "make demo" in text
    assert "make test" in text


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (ROOT / link).exists()] == []
