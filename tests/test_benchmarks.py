"""The benchmark's yardstick is the same density, and the command runs."""

import ast
import json
import runpy
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import adaptation, information, mutants, regularizer, timing
from benchmarks.growth import slope
from benchmarks.rows import Bar, Row
from benchmarks.textbook import Textbook, TextbookDifference
from infoknife import KNIFE
from infoknife.densities.knife import MarginalKernels


@pytest.fixture
def knife() -> KNIFE:
    """A density that is not standardised, with parameters that are all different, in float64."""
    generator, knife = torch.Generator().manual_seed(0), KNIFE(dim=3, components=5).double().eval()
    with torch.no_grad():
        for parameter in knife.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return knife


def test_the_textbook_formula_agrees_with_knife(knife: KNIFE) -> None:
    x = torch.randn(20, 3, dtype=torch.double, generator=torch.Generator().manual_seed(1))
    textbook = Textbook.of(knife)
    fused, plain = knife(x), textbook(x)
    torch.testing.assert_close(fused, plain, rtol=1e-12, atol=0)
    fused.backward()
    plain.backward()
    bank = knife.bank
    assert isinstance(bank, MarginalKernels)
    pairs = [  # what is stored is in units, which the chain rule brings back
        (bank.logits, textbook.logits, 1.0),
        (bank.means, textbook.means, bank.units.mean),
        (bank.shape["log_diagonal"], textbook.log_diagonal, bank.units.diagonal),
        (bank.shape["lower"], textbook.lower, bank.units.lower),
    ]
    for stored, value, unit in pairs:
        assert stored.grad is not None
        assert value.grad is not None
        torch.testing.assert_close(stored.grad, unit * value.grad, rtol=1e-9, atol=1e-12)


def test_the_textbooks_conditional_kernels_are_a_density() -> None:
    """Where y does not matter, the conditional form is a marginal one with the parameters that the networks give."""
    torch.manual_seed(0)
    textbook = TextbookDifference(2, 3, components=4).double()
    x, y = torch.randn(10, 2, dtype=torch.double), torch.zeros(10, 3, dtype=torch.double)
    weights, means, factors = (net(y[0]).detach() for net in (textbook.weights, textbook.means, textbook.factors))
    factors = factors.view(4, 2, 2)
    plain = Textbook(weights, means.view(4, 2), factors.diagonal(0, 1, 2).clone(), factors)
    torch.testing.assert_close(textbook(x, y), textbook.marginal(x) + plain(x))


@pytest.mark.slow
def test_the_command_measures_everything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every function once, without the turns that make a time repeatable."""
    monkeypatch.setattr(timing, "_turn", lambda function, seconds: (function(), 1.0)[1])
    for module in (adaptation, information, regularizer):
        monkeypatch.setattr(module, "BLOCK", 1)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--quick", "--json", str(tmp_path / "rows.json")])
    with pytest.raises(SystemExit) as done:
        runpy.run_module("benchmarks", run_name="__main__")
    assert done.value.code == 0
    records, printed = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8")), capsys.readouterr().out
    assert records["threads"] == 1
    assert len(records["rows"]) == 15
    for row in records["rows"]:
        assert row["what"] in printed
        assert row["met"] is None


@pytest.mark.parametrize(("bar", "met"), [(None, None), (Bar(8), True), (Bar(8, at_least=False), False)])
def test_a_row_knows_whether_its_bar_is_met(bar: Bar | None, met: bool | None) -> None:
    assert Row("speed", "1, 1, 1", 9.0, "x", bar).met is met


def test_slope_finds_an_exponent() -> None:
    assert slope([1, 2, 4], [3.0, 3.0 * 2**1.5, 3.0 * 4**1.5]) == pytest.approx(1.5)


def test_every_mutant_differs_from_the_source_and_messages_are_left_alone() -> None:
    source = "def f(x: 'int' = 3):\n    if not x < -2 and x:\n        raise ValueError(1 + 1)\n    return x * 2\n"
    places = list(mutants._places(ast.parse(source)))
    found = {mutants._mutant(source, i)[0] for i in range(len(places))}
    assert len(found) == len(places) == 8
    assert all("raise ValueError(1 + 1)" in one and one != ast.unparse(ast.parse(source)) for one in found)
