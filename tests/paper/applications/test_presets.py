"""Settings as JSON and back."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from infoknife.paper.applications.presets import Identified


@dataclass(frozen=True)
class Choice(Identified):
    """Fields of all kinds that settings have."""

    seed: int = 0
    strip: tuple[str, ...] = ()
    limit: float | None = None
    estimator: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "strip", tuple(self.strip))


def test_settings_go_through_json_and_back() -> None:
    choice = Choice(3, ("a", "b"), None, MappingProxyType({"hidden": (8, 8)}))
    arguments = choice.arguments()
    assert arguments == {"seed": 3, "strip": ["a", "b"], "limit": None, "estimator": {"hidden": [8, 8]}}
    again = Choice.of(json.loads(json.dumps(arguments)))
    assert (again.seed, again.strip, again.arguments()) == (3, ("a", "b"), arguments)


def test_what_is_no_field_is_left_out() -> None:
    assert Choice.of({"seed": 2, "digest": "0123"}) == Choice(2)
