"""For the reference: comments at the fields of a dataclass or named tuple, as a list of its arguments."""

import re
from typing import Any

import griffe


class Fields(griffe.Extension):
    """Adds what stands behind or above a field, as ``seed: int = 0  # of everything random``, to the docstring."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Describe the fields of a class, in their order."""
        lines = cls.lines
        found = []
        for number, line in enumerate(lines):
            field = re.match(r"    (\w+): .*?(?:  # (.*))?$", line) or re.match(r" {8}(\w+): .*,  # (.*)$", line)
            above = re.match(r"    # (.*)", lines[number - 1]) if number else None
            words = field and (field[2] or (above and above[1]))
            if field and words:
                found.append(f"    {field[1]}: {words[0].upper()}{words[1:]}.")
        if found and cls.docstring is not None and "Args:" not in cls.docstring.value:
            cls.docstring.value += "\n\nArgs:\n" + "\n".join(found)
