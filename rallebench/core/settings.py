"""Declared settings, and validation of given values."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import Field, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypedDict, TypeVar, overload

from rallebench.core.errors import SettingError, UsageError
from rallebench.core.json_values import JsonValue
from rallebench.core.types import Json

if TYPE_CHECKING:
    from typing_extensions import Unpack

NAMED: Mapping[str, str] = {
    "llm": "a language model",
    "retriever": "a retriever",
    "index": "an index",
    "encoder": "an encoder",
    "dataset": "a dataset",
    "corpus": "a corpus",
    "table": "a scholar table",
    "chain": "a chain",
    "workflow": "a workflow",
    "environment": "an environment",
    "run": "a run",
    "metric": "a metric",
    "checkpoint": "a model's folder or hub id",
    "file": "a file",
    "folder": "a folder",
}
"""Kind of thing that a setting can name → its noun with an article."""
PATHS = frozenset({"checkpoint", "file", "folder"})


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: ``kind`` is int, float, str, bool, or object (any JSON); ``low`` and ``high`` are inclusive.

    ``default``: None means unset. None is a value if it is the default or ``null`` is set. ``required``: a value must be
    given. ``sweep``: values worth comparing, for a list or a setting that trades quality against time. ``names``: kinds of
    things that the text names, from ``NAMED``; several kinds are separated by blanks if any of them is allowed. ``many``:
    the text is a list with commas. ``advanced``: forms fold it away, because a first run keeps its default. ``lasting``:
    False if the result does not depend on it, so that no recipe or fingerprint holds it. ``title``: its name in forms,
    by default the field's own.
    """

    kind: type
    default: Any
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    about: str = ""
    sweep: tuple[Any, ...] = ()
    required: bool = False
    null: bool = False
    names: str = ""
    many: bool = False
    advanced: bool = False
    lasting: bool = True
    title: str = ""

    @property
    def kinds_named(self) -> tuple[str, ...]:
        """The kinds of things that it may name, from ``NAMED``."""
        return tuple(self.names.split())

    @property
    def is_path(self) -> bool:
        """True if it may be the path of a file or folder, so that its values cannot be listed.

        >>> Setting(str, "", names="dataset file").is_path, Setting(str, "", names="dataset").is_path
        (True, False)
        """
        return not PATHS.isdisjoint(self.kinds_named)

    @property
    def takes(self) -> str:
        """The permitted values in words, with the named things.

        >>> Setting(str, "", names="dataset file folder", many=True).takes
        'a dataset, a file or a folder; several with commas'
        """
        words = (
            _join_words([NAMED[name] for name in self.kinds_named], "or")
            if self.names
            else self.must_be
        )
        return f"{words}; several with commas" if self.many else words

    def reads(self, value: JsonValue) -> JsonValue:
        """Convert ``value`` to this setting's kind. Raises ValueError with ``must_be``."""
        if value is None and (self.null or self.default is None):
            return None
        if self.kind is object:
            return value
        if self.kind is bool:
            if isinstance(value, str) and value.strip().lower() in ("true", "false"):
                return value.strip().lower() == "true"
            if isinstance(value, bool):
                return value
        elif self.kind is str:
            if isinstance(value, str) and (not self.choices or value in self.choices):
                return value
        elif not isinstance(value, bool):
            number = _number(value)
            fits = number is not None and (self.kind is float or number == int(number))
            if number is not None and fits and self._within(number):
                read: float = self.kind(number)
                return read
        raise ValueError(self.must_be)

    def _within(self, number: float) -> bool:
        return (self.low is None or number >= self.low) and (
            self.high is None or number <= self.high
        )

    @property
    def must_be(self) -> str:
        """The permitted values in words."""
        if self.kind is bool:
            return "true or false"
        if self.kind is object:
            return "JSON"
        if self.kind is str:
            return f"one of {', '.join(self.choices)}" if self.choices else "text"
        shape = "a whole number" if self.kind is int else "a number"
        if self.low is not None and self.high is not None:
            return f"{shape} from {_plain(self.low)} to {_plain(self.high)}"
        if self.low is not None:
            return f"{shape} of at least {_plain(self.low)}"
        return shape if self.high is None else f"{shape} of at most {_plain(self.high)}"


def _plain(number: float) -> str:
    return str(int(number)) if number == int(number) else f"{number:g}"


def _number(value: Any) -> float | None:
    """``value`` as a number; None unless it is a finite number. An int stays an int, because a float has only 53 bits."""
    try:
        number = value if isinstance(value, int) else float(value)
        return number if math.isfinite(number) else None
    except (TypeError, ValueError, OverflowError):
        return None


class DataClass(Protocol):
    """An instance of any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


class Traits(TypedDict, total=False):
    """The less common parts of a ``Setting``."""

    sweep: tuple[object, ...]
    required: bool
    null: bool
    names: str
    many: bool
    advanced: bool
    title: str


T = TypeVar("T", bound=DataClass)
Scalar = TypeVar("Scalar", bool, int, float, str)
Default = TypeVar("Default")


@overload
def declare(
    kind: type[Scalar],
    default: Scalar,
    low: float | None = None,
    high: float | None = None,
    *,
    about: str = "",
    choices: tuple[str, ...] = (),
    **more: Unpack[Traits],
) -> Scalar: ...
@overload
def declare(
    kind: type[Scalar],
    default: None,
    low: float | None = None,
    high: float | None = None,
    *,
    about: str = "",
    choices: tuple[str, ...] = (),
    **more: Unpack[Traits],
) -> Scalar | None: ...
@overload
def declare(
    kind: type[object],
    default: Default,
    low: float | None = None,
    high: float | None = None,
    *,
    about: str = "",
    choices: tuple[str, ...] = (),
    **more: Unpack[Traits],
) -> Default: ...
def declare(
    kind: type,
    default: object,
    low: float | None = None,
    high: float | None = None,
    *,
    about: str = "",
    choices: tuple[str, ...] = (),
    **more: Unpack[Traits],
) -> object:
    """A dataclass field with its ``Setting``.

    >>> Shape = dataclass(type("Shape", (), {"__annotations__": {"k": int}, "k": declare(int, 5, 1, 9)}))
    >>> Shape().k, dataclass_form(Shape)["k"].must_be
    (5, 'a whole number from 1 to 9')
    """
    metadata = {"setting": Setting(kind, default, low, high, choices, about, **more)}
    if isinstance(default, dict):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def declare_text(about: str = "", *choices: str, **more: Unpack[Traits]) -> str:
    """A text field. The first of its ``choices`` is the default, '' without choices."""
    return declare(str, choices[0] if choices else "", about=about, choices=choices, **more)


def declare_list(
    about: str, *values: str, default: str = "", names: str = "", required: bool = False
) -> str:
    """A field for a list with commas; ``values`` are worth comparing."""
    return declare(
        str, default, about=about, sweep=values, names=names, many=True, required=required
    )


def declare_group(shape: type[T]) -> T:
    """A field for another declared dataclass, whose settings join the form at this place."""
    group: T = field(default_factory=shape, metadata={"setting": shape})
    return group


def dataclass_form(shape: type[DataClass]) -> dict[str, Setting]:
    """Name → setting of a dataclass with fields made by :func:`declare`, including those of groups."""
    form: dict[str, Setting] = {}
    for part in fields(shape):
        declared = _declaration(part)
        if isinstance(declared, Setting):
            form[part.name] = declared
        elif declared is not None:
            form |= dataclass_form(declared)
    return form


def _declaration(part: Field[Any]) -> Setting | type[DataClass] | None:
    """The setting of a field, or its group; None for an undeclared field."""
    declared: Setting | type[DataClass] | None = part.metadata.get("setting")
    return declared


def fill(shape: type[T], values: Json) -> T:
    """Make the dataclass ``shape`` from these values. Absent fields keep their defaults, and unknown keys are ignored.

    >>> Shape = dataclass(type("Shape", (), {"__annotations__": {"k": int}, "k": declare(int, 5, 1, 9)}))
    >>> fill(Shape, {"k": 7, "articles": "news"}).k, fill(Shape, {}).k
    (7, 5)
    """
    parts: dict[str, Any] = {}
    for part in fields(shape):
        declared = _declaration(part)
        if isinstance(declared, type):
            parts[part.name] = fill(declared, values)
        elif part.name in values:
            parts[part.name] = values[part.name]
    return shape(**parts)


def check_form(owner: str, form: Mapping[str, Setting]) -> None:
    """Raise ValueError if a default or a value worth comparing is invalid, or if a setting names a kind that is not in
    ``NAMED``.

    >>> check_form("metric 'x'", {"k": Setting(int, 0, 1, 9)})
    Traceback (most recent call last):
    ValueError: the metric 'x': the default of 'k' is 0; it must be a whole number from 1 to 9
    """
    for name, setting in form.items():
        for noun in setting.kinds_named:
            if noun not in NAMED:
                can = _join_words(list(NAMED), "or")
                raise ValueError(f"the {owner}: {name!r} names {noun!r}; it can name {can}")
        for value in (setting.default, *setting.sweep):
            try:
                setting.reads(value)
            except ValueError as must_be:
                raise ValueError(
                    f"the {owner}: the default of {name!r} is {value!r}; it must be {must_be}"
                ) from None


def check_values(
    owner: str,
    known: Mapping[str, Setting],
    requested: Json,
    *,
    noun: str = "setting",
) -> Json:
    """Return every known setting with its requested value, converted, or its default.

    Raises SettingError for the first invalid value, UsageError for the first unknown or missing setting of ``owner``.

    >>> check_values("index kind 'bm25'", {"b": Setting(float, 0.4, 0, 1)}, {"b": "1"})
    {'b': 1.0}
    """
    values = {name: setting.default for name, setting in known.items()}
    for name, value in requested.items():
        if name not in known:
            has = _join_words(list(known))
            raise UsageError(f"The {owner} has no {noun} {name!r}; it has {has}.", setting=name)
        try:
            values[name] = known[name].reads(value)
        except ValueError as must_be:
            raise SettingError(name, value, str(must_be)) from None
    for name, setting in known.items():
        if setting.required and (values[name] is None or not str(values[name]).strip()):
            about = f": {setting.about}" if setting.about else ""
            raise UsageError(f"The {owner} needs the {noun} {name!r}{about}.", setting=name)
    return values


def parse_settings(pairs: Iterable[str]) -> Json:
    """Parse ``key=value`` texts: numbers, true/false/null and JSON as such, the rest as text.

    >>> parse_settings(["k=10", "system=Be brief", "stop=[\\"x\\"]"])
    {'k': 10, 'system': 'Be brief', 'stop': ['x']}
    """
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"The setting {pair!r} is not key=value.")
        settings[key.strip()] = value
        with suppress(ValueError):
            settings[key.strip()] = json.loads(value)
    return settings


def _join_words(names: list[str], word: str = "and") -> str:
    if not names:
        return "none"
    return f" {word} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
