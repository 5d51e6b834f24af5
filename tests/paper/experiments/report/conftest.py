"""One small report for the tests that look at files."""

from pathlib import Path

import pytest

from infoknife.paper.experiments.report import write
from tests.paper.experiments import record_factory as factory
from tests.paper.experiments.record_factory import Record
from tests.paper.experiments.report.adapted import adapted
from tests.paper.experiments.report.bottled import tuned
from tests.paper.experiments.report.fair import learned

HOSTILE = "</script><script>document.title='broken'</script><img src=x onerror=alert(1)> $x$ | `code`"


@pytest.fixture(scope="session")
def records() -> list[Record]:
    """A few runs of several experiments, with text that tries to break out of the page."""
    hostile = {"method": HOSTILE, "seed": 0, "note": HOSTILE}
    return [
        *factory.table1(2),
        *factory.entropies("fig2-triangle8", "ours", 8, 2),
        *factory.pdf(),
        *factory.shrinking(),
        *factory.figure3(1),
        *factory.bench(),
        *(adapted("cpu", method, ("usps", "mnist")) for method in ("knife", "dann", "source-only")),
        adapted("cpu", "knife", (HOSTILE, "mnist"), classes=[HOSTILE, *"123456789"]),
        *(learned("cpu", "dial-mention", method, 1.0) for method in ("knife", "club", "none")),
        *(learned("cpu", HOSTILE, "knife", weight) for weight in (0.1, 1.0)),
        *(tuned("rte", method, train_size=500) for method in ("knife", "vub", "none")),
        *(
            tuned("own", method, encoder_name=HOSTILE, arguments={"label": HOSTILE, "encoder": HOSTILE})
            for method in ("knife", "vub")
        ),
        factory.failure("table1", "paper", HOSTILE, method="doe", dim=64, seed=20),
        factory.record("../table3", "ours", hostile, results={"accuracy": 0.951}),
    ]


@pytest.fixture(scope="session")
def written(records: list[Record], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    """The folder of a report, and the paths that `write` gave."""
    out = tmp_path_factory.mktemp("report") / "deep" / "down"
    few = {"table1", "fig3-gaussian", "bench", "table2", "table3", "fig4", "../table3"}  # figures take their time
    return out, write([record for record in records if record["experiment"] in few], out)
