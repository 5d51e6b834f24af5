"""Settings by the name of a preset: what it has for all methods, what for one, and what the user changes."""

from collections.abc import Mapping
from typing import Any

from infoknife.inputs import one_of

__all__ = ["Fields", "chosen"]

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
