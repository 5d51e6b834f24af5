"""Settings of a run: dataclasses whose fields say what they may be, presets, and what makes two runs the same."""

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from numbers import Integral, Real
from types import UnionType
from typing import Annotated, Any, ClassVar, NamedTuple, Self, TypeVar, Union, get_args, get_origin

from infoknife.inputs import one_of

Fields = Mapping[str, Any]
Columns = TypeVar("Columns")


class Rule(NamedTuple):
    """What holds of a field, and how an error says it."""

    holds: Callable[[Any], bool]
    expected: str


Count = Annotated[int, Rule(lambda value: value >= 1, "a whole number of at least 1")]
Natural = Annotated[int, Rule(lambda value: value >= 0, "a whole number of at least 0")]
Positive = Annotated[float, Rule(lambda value: 0 < value < math.inf, "a number above 0")]
NotNegative = Annotated[float, Rule(lambda value: 0 <= value < math.inf, "a number of at least 0")]
Share = Annotated[float, Rule(lambda value: 0 <= value <= 1, "a part from 0 to 1")]
OpenShare = Annotated[float, Rule(lambda value: 0 <= value < 1, "a part from 0 to less than 1")]


@dataclass(frozen=True, kw_only=True)
class RunSettings(ABC):
    """All that decides what a run gives, besides its data."""

    APPLICATION: ClassVar[str]
    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]]
    PRESETS: ClassVar[Mapping[str, Fields]]
    METHOD_PRESETS: ClassVar[Mapping[str, Mapping[str, Fields]]]

    method: str = "knife"  # one of the application's methods
    seed: Natural = 0  # of everything random
    batch_size: Count = 128  # rows of a step
    lr: Positive = 1e-3  # learning rate of the encoder
    weight: NotNegative = 0.1  # $\lambda$, in front of the information in nats
    estimator: Mapping[str, Any] = field(default_factory=dict, hash=False)  # options of mi for the method
    estimator_lr: Positive | None = None  # learning rate of the estimator; its own rate if None
    select: str = "last"  # the rule by which the model is chosen, of those that the application's run has

    def __post_init__(self) -> None:
        for each in fields(self):
            _check(each.name, getattr(self, each.name), each.type)
        for name, choices in self.CHOICES.items():
            one_of(name, getattr(self, name), choices)

    @property
    def title(self) -> str:
        """What people call the run: its method and its data."""
        return f"{self.method}, seed {self.seed}"

    @property
    @abstractmethod
    def progress(self) -> int:
        """What ``on_progress`` counts to."""

    @classmethod
    def preset(cls, preset: str, method: str, **changes: Any) -> Self:
        """Return the settings of a preset, ``"paper"``, ``"cpu"`` or ``"quick"``, for a method, with changes.

        A preset may have fields for one method alone; options of ``estimator`` are added to the preset's.
        """
        one_of("preset", preset, tuple(cls.PRESETS))
        one_of("method", method, cls.CHOICES["method"])
        names = [each.name for each in fields(cls)]
        if unknown := [name for name in changes if name not in names]:
            raise ValueError(f"{unknown[0]} is no setting of {cls.APPLICATION}; expected one of {', '.join(names)}")
        own = {**cls.PRESETS[preset], **cls.METHOD_PRESETS[preset].get(method, {})}
        options = {**own.get("estimator", {}), **(changes.get("estimator") or {})}
        return cls(**{**own, "method": method, **changes, "estimator": options})

    @classmethod
    def of(cls, arguments: Fields) -> Self:
        """Read settings back from ``arguments`` or ``changed``; what is no field is left out."""
        known = {each.name for each in fields(cls)}
        return cls(**{name: value for name, value in arguments.items() if name in known})

    def arguments(self) -> dict[str, Any]:
        """Return all fields in JSON's types."""
        return {each.name: _plain(getattr(self, each.name)) for each in fields(self)}

    def changed(self) -> dict[str, Any]:
        """Return the fields that are not as the class has them: a new field with a default changes nothing here."""
        default = {
            each.name: _plain(each.default if each.default_factory is MISSING else each.default_factory())
            for each in fields(self)
        }
        return {name: value for name, value in self.arguments().items() if value != default[name]}

    def own_columns(self, place: str, kind: type[Columns], needed: tuple[str, ...]) -> Columns | None:
        """Return the columns of the user's own table, from the fields of their names, where ``place`` is ``"own"``.

        Those that are needed must be named there, and none elsewhere.
        """
        own = {each.name: getattr(self, each.name) for each in fields(kind)}  # type: ignore[arg-type]
        given = [f"{name} {value!r}" for name, value in own.items() if value != getattr(type(self), name)]
        is_own = getattr(self, place) == "own"
        if any(own[name] is None for name in needed) if is_own else given:
            raise ValueError(
                f"{place} is {getattr(self, place)!r} with {' and '.join(given) or 'no columns'}; expected the columns "
                f"{' and '.join(needed)} with your own table, and none with one that has a name: "
                f"{', '.join(name for name in self.CHOICES[place] if name != 'own')}"
            )
        return kind(**own) if is_own else None

    def identity(self, data: str) -> dict[str, Any]:
        """Return what makes a run the same run: what was set, and the digest of its data."""
        return {"application": self.APPLICATION, "settings": self.changed(), "data": data}


def hashed(identity: Fields) -> str:
    """Return twelve hexadecimal digits, the same for the same identity in any order.

    Examples:
        >>> hashed({"seed": 0, "method": "knife"}) == hashed({"method": "knife", "seed": 0})
        True
    """
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]


def digest(*parts: Any) -> str:
    """Return sixteen hexadecimal digits that tell data apart: tensors, and sequences and mappings of text.

    Examples:
        >>> digest(["so", "ok"]) == digest(["so", "ok"]), digest(["so", "ok"]) == digest(["sook"])
        (True, False)
    """
    found = hashlib.blake2b(digest_size=8)
    for part in parts:
        if hasattr(part, "numpy"):
            array = part.contiguous().numpy()
            found.update(f"{array.dtype} {array.shape}".encode())
            found.update(array)
        else:
            found.update(json.dumps(part).encode())
    return found.hexdigest()


def _check(name: str, value: Any, kind: Any) -> None:
    """Raise where a value is not of a field's type, or outside of its range."""
    if get_origin(kind) in (Union, UnionType):
        if value is None:
            return
        kind = next(each for each in get_args(kind) if each is not type(None))
    rules: tuple[Rule, ...] = getattr(kind, "__metadata__", ())
    plain = get_args(kind)[0] if rules else get_origin(kind) or kind
    wide = {int: Integral, float: Real}.get(plain, plain)
    if not isinstance(value, wide) or (plain in (int, float) and isinstance(value, bool)):
        expected = rules[0].expected if rules else f"a {plain.__name__}"
        raise TypeError(f"{name} is {value!r}, a {type(value).__name__}; expected {expected}")
    for rule in rules:
        if not rule.holds(value):
            raise ValueError(f"{name} is {value!r}; expected {rule.expected}")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, tuple | list) else value
