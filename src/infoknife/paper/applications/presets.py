"""Settings: by the name of a preset, what it has for all methods, what for one, what the user changes; and as JSON."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Self

from infoknife.inputs import one_of

__all__ = ["Fields", "Identified", "chosen"]

Fields = Mapping[str, Any]


def chosen(
    presets: Mapping[str, Fields], methods: Mapping[str, Mapping[str, Fields]], name: str, method: str, changes: Fields
) -> dict[str, Any]:
    """Give the fields of a preset for a method, with changes.

    Args:
        presets: Fields by preset.
        methods: Fields by preset and method, which count more.
        name: The preset.
        method: The method.
        changes: Fields that count most, where they are not None; options of ``estimator`` are added to the preset's.

    Example:
        >>> chosen({"cpu": {"steps": 5}}, {"cpu": {}}, "cpu", "knife", {"steps": None, "lr": 0.1})
        {'steps': 5, 'lr': 0.1, 'estimator': {}}
    """
    one_of("preset", name, tuple(presets))
    own = {**presets[name], **methods[name].get(method, {})}
    options = {**own.get("estimator", {}), **(changes.get("estimator") or {})}
    return own | {key: value for key, value in changes.items() if value is not None} | {"estimator": options}


class Identified:
    """A dataclass of settings whose fields are the identity of a run."""

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Self:
        """Read settings back from ``arguments``; what is no field is left out."""
        known = {each.name for each in fields(cls)}  # type: ignore[arg-type]
        return cls(**{name: value for name, value in arguments.items() if name in known})

    def arguments(self) -> dict[str, Any]:
        """Give all fields in JSON's types: the identity of a run."""
        return {each.name: _plain(getattr(self, each.name)) for each in fields(self)}  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, tuple | list) else value
