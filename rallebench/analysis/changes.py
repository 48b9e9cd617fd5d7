"""Differences between the settings of two runs: templates, k, models."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rallebench.core.runs import UNTIL_DECIDED, RunSpec

ABSENT = "–"
_CHECKSUM = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Change:
    """A changed setting. ``where``: its name; ``a``, ``b``: both values as text."""

    where: str
    a: str
    b: str


def changes(a: RunSpec, b: RunSpec) -> list[Change]:
    """Return the differences between two runs' specifications, the chain's first; [] if they are equal."""
    left, right = a.settings, b.settings
    differences = list(_chain(left.get("chain") or {}, right.get("chain") or {}))
    others = [key for key in {**left, **right} if key != "chain"]
    for key in others:
        if key == UNTIL_DECIDED:
            rules = (_rule(settings.get(key)) for settings in (left, right))
            differences += _values(_key_words(key), *rules)
            continue
        differences += _values(_key_words(key), left.get(key), right.get(key))
    for key in ("dataset", "workflow", "limit", "seed"):
        differences += _values(_key_words(key), getattr(a, key), getattr(b, key))
    return differences


def _chain(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Change]:
    for number, (left, right) in enumerate(
        itertools.zip_longest(a.get("actions", ()), b.get("actions", ())), 1
    ):
        where = f"action {number}"
        if left and right:
            yield from _values(where, left, right)
        else:
            labels = (
                f"{x['kind']} {x.get('target', '')}".strip() if x else ABSENT for x in (left, right)
            )
            yield Change(where, *labels)


def _values(where: str, a: Any, b: Any) -> Iterator[Change]:
    sides = [side for side in (a, b) if side is not None]
    if sides and all(isinstance(side, Mapping) for side in sides):
        left, right = a or {}, b or {}
        for key in {**left, **right}:
            yield from _values(f"{where}: {_key_words(key)}", left.get(key), right.get(key))
    elif a != b:
        yield Change(where, _text(a), _text(b))


def _rule(setting: object) -> str | None:
    """Return a stopping rule in words; None without one."""
    if not isinstance(setting, Mapping):
        return None
    return f"against {setting.get('against')} by {setting.get('metric')}, margin {setting.get('margin')}"


def _key_words(key: str) -> str:
    return key.replace("_", " ")


def _text(value: Any) -> str:
    """Return a value as text, with checksums shortened."""
    text = ABSENT if value is None else value if isinstance(value, str) else str(value)
    return f"{text[:12]}…" if _CHECKSUM.fullmatch(text) else text
