"""The paper's tasks of GLUE, tasks of one's own, and which columns of a table are what."""

from dataclasses import dataclass, replace
from math import inf

from infoknife.paper.applications.tables import Request, check_names

__all__ = ["GLUE", "TASKS", "Columns", "Task", "key", "own_task", "task_named"]

GLUE = "nyu-mll/glue"  # the hub's repository


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are what.

    Args:
        label: The column Y to learn.
        first: The column of texts.
        second: The column of texts that go with them, or None where there is one text a row.
        split: The column that says train, validation or test. A table may be without it.
        regression: Whether Y is a value, not a class.

    Example:
        >>> Columns("mood", first="tweet", second=None).request.needed
        {'first': 'tweet', 'label': 'mood'}
    """

    label: str
    first: str = "sentence1"
    second: str | None = "sentence2"
    split: str = "split"
    regression: bool = False

    def __post_init__(self) -> None:
        if self.second == "":
            raise ValueError("second is ''; expected the name of a column, or None where there is one text a row")
        check_names({"label": self.label} | self._texts | {"split": self.split})

    @property
    def request(self) -> Request:
        """What is asked of a table: the split may be missing if it goes by its default name."""
        columns = self._texts | {"label": self.label, "split": self.split}
        said = "the text and the label" if self.second is None else "the two texts and the label"
        return Request(columns, said, tuple(self._texts), ("split",) if self.split == Columns.split else ())

    @property
    def _texts(self) -> dict[str, str]:
        return {"first": self.first} | ({} if self.second is None else {"second": self.second})


@dataclass(frozen=True)
class Task:
    """What is learned from a table, and how that is judged.

    Args:
        columns: Which columns of the table are what.
        metrics: What it is judged by, of ``metrics.METRICS``.
        labels: The names of class 0, 1, ...; None where Y is a value, or the classes are those that the table has.
        span: The least and the greatest value.
        glue: What GLUE's files and the hub call it; empty for a task of one's own.
        title: What people call it.
    """

    columns: Columns
    metrics: tuple[str, ...]
    labels: tuple[str, ...] | None = None
    span: tuple[float, float] = (-inf, inf)
    glue: str = ""
    title: str = "own"

    @property
    def request(self) -> Request:
        """What is asked of a table. In one of GLUE a column ``task``, where it is there, tells its rows from others."""
        asked = self.columns.request
        if not self.glue:
            return asked
        return replace(asked, columns={**asked.columns, "task": "task"}, optional=(*asked.optional, "task"))


# A file says 0 and 1. The hub numbers the classes of RTE the other way round, but it has their names.
PARAPHRASE = ("not_equivalent", "equivalent")
ENTAILMENT = ("not_entailment", "entailment")
CORRELATIONS = ("pearson", "spearman")

TASKS = {
    "mrpc": Task(Columns("label"), ("f1", "accuracy"), PARAPHRASE, glue="mrpc", title="MRPC"),
    "stsb": Task(Columns("label", regression=True), CORRELATIONS, span=(0.0, 5.0), glue="stsb", title="STS-B"),
    "rte": Task(Columns("label"), ("accuracy",), ENTAILMENT, glue="rte", title="RTE"),
}


def task_named(name: str) -> Task:
    """Give a task of GLUE by its name; capitals and hyphens do not matter.

    Example:
        >>> task_named("STS-B").metrics
        ('pearson', 'spearman')
    """
    if key(name) not in TASKS:
        raise ValueError(f"task is {name!r}; expected one of {', '.join(TASKS)}, or 'own' with your columns")
    return TASKS[key(name)]


def own_task(columns: Columns) -> Task:
    """Give the task of a table of one's own.

    Example:
        >>> own_task(Columns("mood")).metrics
        ('accuracy', 'f1')
    """
    return Task(columns, CORRELATIONS if columns.regression else ("accuracy", "f1"))


def key(name: str) -> str:
    """Give a task's name as ``TASKS`` has it.

    Example:
        >>> key(" STS-B")
        'stsb'
    """
    return name.strip().lower().replace("-", "").replace("_", "")
