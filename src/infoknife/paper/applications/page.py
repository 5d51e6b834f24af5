"""The page of a run: what was set, what was found, and the curves, in one file that loads and runs nothing."""

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 54rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } td { padding: .2rem 1rem .2rem 0; vertical-align: top; }
svg { width: 100%; max-width: 30rem; display: block; } polyline { fill: none; stroke: currentColor; stroke-width: 2; }
"""
WIDE, HIGH = 480, 140


def run_page(title: str, settings: Mapping[str, Any], results: Mapping[str, Any], curves: Mapping[str, Any]) -> str:
    """Write the page.

    Args:
        title: Its heading.
        settings: What was set.
        results: What was found; what is neither a number nor text is left to the metrics' file.
        curves: Lists of equal length; the first is what the others are drawn over.
    """
    over, *others = curves
    charts = "".join(_chart(name, over, curves[over], curves[name]) for name in others if len(curves[name]) > 1)
    body = f"<h1>{html.escape(title)}</h1><h2>Results</h2>{_table(_plain(results))}{charts}"
    body += f"<h2>Settings</h2>{_table(settings)}"
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style>'
    return f"<!doctype html><html lang=en><head>{head}</head><body>{body}</body></html>\n"


def _plain(results: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers, text, and what is in mappings of these; lists of text line by line."""
    found: dict[str, Any] = {}
    for name, value in results.items():
        if isinstance(value, Mapping):
            found |= {f"{name}: {inner}": each for inner, each in _plain(value).items()}
        elif isinstance(value, bool | int | float | str):
            found[name] = value
        elif isinstance(value, list) and all(isinstance(each, str) for each in value) and value:
            found[name] = "; ".join(value)
    return found


def _table(rows: Mapping[str, Any]) -> str:
    return f"<table>{''.join(_rows(rows))}</table>"


def _rows(rows: Mapping[str, Any]) -> Iterator[str]:
    for name, value in rows.items():
        shown = f"{value:.6g}" if isinstance(value, float) else str(value)
        yield f"<tr><td>{html.escape(name.replace('_', ' '))}</td><td>{html.escape(shown)}</td></tr>"


def _chart(name: str, over: str, x: Sequence[float], y: Sequence[float]) -> str:
    """One curve, with its ends in words."""
    low, high = min(y), max(y)
    across, up = (x[-1] - x[0]) or 1.0, (high - low) or math.inf
    points = " ".join(
        f"{WIDE * (a - x[0]) / across:.1f},{HIGH - HIGH * (b - low) / up:.1f}" for a, b in zip(x, y, strict=True)
    )
    label = f"{name.replace('_', ' ')}: {low:.4g} to {high:.4g}, {over} {x[0]:g} to {x[-1]:g}"
    view = f'viewBox="-4 -4 {WIDE + 8} {HIGH + 8}" role="img" aria-label="{html.escape(label)}"'
    return f'<h3>{html.escape(label)}</h3><svg {view}><polyline points="{points}"/></svg>'
