"""A measured number beside the bar that it has to reach."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self


@dataclass(frozen=True)
class Bar:
    """A number to reach, from above or from below."""

    value: float
    at_least: bool = True

    def met(self, value: float) -> bool:
        return value >= self.value if self.at_least else value <= self.value


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Args:
        what: The quantity.
        sizes: N, M and d where it was measured.
        value: The number.
        unit: Its unit, as it stands behind the number.
        bar: What it has to reach, if anything.
        seconds: The times that it comes from.
    """

    what: str
    sizes: str
    value: float
    unit: str
    bar: Bar | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        return None if self.bar is None else self.bar.met(self.value)

    def cells(self) -> tuple[str, str, str, str, str]:
        """The line as text: quantity, sizes, value, bar and whether it is met."""
        bar = "" if self.bar is None else f"{'≥' if self.bar.at_least else '≤'} {self.bar.value:g}{self.unit}"
        verdict = {None: "", True: "yes", False: "NO"}[self.met]
        return self.what, self.sizes, f"{self.value:.3g}{self.unit}", bar, verdict

    def record(self) -> dict[str, Any]:
        """The line for JSON."""
        return asdict(self) | {"met": self.met}

    def without_bar(self) -> Self:
        """The same number where the bar does not apply."""
        return replace(self, bar=None)
