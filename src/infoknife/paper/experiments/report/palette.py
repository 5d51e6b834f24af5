"""One colour a method, the same in every figure; told apart with any kind of colour vision, on light and on dark."""

from typing import NamedTuple

__all__ = ["COLOURS", "Colour", "colour_name", "style"]


class Colour(NamedTuple):
    """A colour on light and on dark ground."""

    light: str
    dark: str


COLOURS = {
    "knife": Colour("#c8401f", "#ff8360"),
    "knife-joint": Colour("#d98a00", "#ffbf4d"),
    "schraudolph": Colour("#0072b2", "#5fb2ea"),
    "doe": Colour("#008f68", "#3fcf9f"),
    "club": Colour("#3a9ad0", "#9bd5f7"),
    "infonce": Colour("#c2649a", "#f0a6cc"),
    "mine": Colour("#857300", "#e6d84a"),
    "nwj": Colour("#5b4ba0", "#b3a6f7"),
    "tuba": Colour("#9a4a1c", "#eba578"),
    "autoregressive": Colour("#b07600", "#f5cd79"),
    "doe-logistic": Colour("#5a8f29", "#a6d96a"),
    "parzen": Colour("#7b5ea7", "#cdb4f5"),
    "club-sample": Colour("#2f6fde", "#8fb4ff"),
    "l1out": Colour("#a0308f", "#e79be0"),
    "vub": Colour("#4f7f7a", "#9fd0ca"),
    "smile": Colour("#b5495b", "#f49aa8"),
    "adv": Colour("#6a6a2a", "#d3d38a"),
    "dann": Colour("#7d5a3c", "#d8b08c"),
    "source-only": Colour("#6f7782", "#b9c2cc"),
    "none": Colour("#3f4a57", "#cfd6de"),
    "source": Colour("#1f6fb2", "#6db3f2"),
    "target": Colour("#d95f02", "#ffa552"),
    "other-1": Colour("#117733", "#6fce8d"),
    "other-2": Colour("#882255", "#e58abb"),
    "other-3": Colour("#2b8a80", "#7ee0d4"),
    "other-4": Colour("#46627f", "#9fbbd8"),
    "truth": Colour("#1f2933", "#e4e7eb"),
    "published": Colour("#4a5563", "#aab4c0"),
    "any": Colour("#616e7c", "#9aa5b1"),
}


def colour_name(method: str) -> str:
    """The entry of ``COLOURS`` for a method; a name that is new gets one of a few, always the same.

    Example:
        >>> colour_name("knife"), colour_name("ksg") == colour_name("ksg")
        ('knife', True)
    """
    return method if method in COLOURS else f"other-{sum(method.encode()) % 4 + 1}"


def style() -> tuple[str, str]:
    """All colours as custom properties of a style sheet: for light, for dark."""
    light = " ".join(f"--c-{name}: {colour.light};" for name, colour in COLOURS.items())
    dark = " ".join(f"--c-{name}: {colour.dark};" for name, colour in COLOURS.items())
    return light, dark
