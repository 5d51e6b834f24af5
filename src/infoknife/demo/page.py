"""The demo's page: one HTML file without scripts, with the figures beside it."""

import platform
from collections.abc import Sequence
from html import escape
from importlib.metadata import version

from infoknife._version import __version__
from infoknife.demo.cases import Budget, Result

STYLE = """
:root { color-scheme: light dark; --ink: #1f2933; --soft: #616e7c; --page: #f7f8fa; --card: #fff; --line: #e4e7eb;
  --accent: #b3452e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --soft: #9aa5b1; --page: #14181d; --card: #1e242b; --line: #323a44; --accent: #f08a6c; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.6 system-ui, sans-serif; }
main { max-width: 75rem; margin: 0 auto; padding: 2rem 1rem 3rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; }
p { max-width: 46rem; margin: .5rem 0 1rem; }
.soft, figcaption { color: var(--soft); font-size: .9rem; }
.figures { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: .6rem; overflow: hidden; }
figure img { display: block; width: 100%; height: auto; background: #fff; }
figcaption { padding: .6rem .9rem .8rem; }
.scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: .6rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .45rem .9rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
tr:last-child td { border-bottom: 0; }
th { color: var(--soft); font-weight: 600; font-size: .9rem; }
td.error { font-weight: 600; }
a { color: var(--accent); }
code { font-size: .9em; }
@media (max-width: 40rem) {
  h1 { font-size: 1.5rem; }
  th, td { padding: .4rem; font-size: .8rem; }
  td:first-child { white-space: normal; }
  .extra { display: none; }
}
"""

PICTURE = {
    "data.png": "Data: rows drawn from the picture, strokes under Gaussian noise.",
    "density.png": "Density: what KNIFE learned from such rows. Darker is denser.",
    "samples.png": "Samples: rows drawn from the learned density.",
}
INSIDE = {
    "kernels.png": "The kernels, each at two standard deviations. Place, shape and weight are all learned.",
    "learning.png": "Learning: dots are held-out rows under averaged parameters, thin lines are training batches.",
    "errors.png": "Errors: estimates less truths, on rows that no density has seen.",
}


def html(results: Sequence[Result], budget: Budget, seed: int, command: str) -> str:
    """The whole page.

    Args:
        results: Of all cases, the picture first.
        budget: How much work went into each.
        seed: Where all randomness came from.
        command: What to type to get the page again.
    """
    picture = results[0]
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>infoknife demo</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>How many nats are in a picture?</h1>
<p>{picture.density.components} Gaussian kernels learned the density of a picture from {budget.rows:,} points.
The picture's entropy is <strong>{picture.case.truth:.3f}</strong> nats.
The estimate, from {budget.fresh:,} fresh points, is
<strong>{picture.estimate:.3f} ± {picture.stderr:.3f}</strong>.</p>
{_figures(PICTURE)}
<h2>Inside</h2>
{_figures(INSIDE)}
<h2>Known entropies</h2>
<p>Every density was fitted to {budget.rows:,} rows, a tenth of them kept to choose the best step, and evaluated on
{budget.fresh:,} fresh ones. The mean of −log p is, in expectation, an upper bound of the entropy.
All values are in nats, ± is one standard error.</p>
{_table(results)}
<h2>This run</h2>
<p class="soft">{escape(_versions())}. Seed {seed}.
{sum(result.seconds for result in results):.0f} seconds of learning and evaluating.
Again: <code>{escape(command)}</code>. The three pictures in one: <a href="overview.png">overview.png</a>.</p>
</main>
</body>
</html>
"""


def _figures(captions: dict[str, str]) -> str:
    items = (
        f'<figure><a href="{name}"><img src="{name}" width="900" height="585" alt="{escape(caption)}"></a>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
        for name, caption in captions.items()
    )
    return '<div class="figures">\n' + "\n".join(items) + "\n</div>"


def _table(results: Sequence[Result]) -> str:
    head = (
        '<th>distribution</th><th class="extra">entropy</th><th class="extra">dimension</th>'
        '<th>estimate</th><th>truth</th><th>error</th><th class="extra">seconds</th>'
    )
    rows = "\n".join(_row(result) for result in results)
    return f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>'


def _row(result: Result) -> str:
    case = result.case
    return (
        f'<tr><td>{escape(case.title)}</td><td class="extra">{escape(case.symbol)}</td>'
        f'<td class="extra">{case.task.x_dim}</td><td>{result.estimate:.3f} ± {result.stderr:.3f}</td>'
        f'<td>{case.truth:.3f}</td><td class="error">{result.error:+.3f}</td>'
        f'<td class="extra">{result.seconds:.1f}</td></tr>'
    )


def _versions() -> str:
    others = ", ".join(f"{name} {version(name)}" for name in ("torch", "numpy", "matplotlib"))
    return f"infoknife {__version__}, {others}, Python {platform.python_version()}"
