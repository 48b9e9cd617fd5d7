"""The difference between the specifications of two runs in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rallebench.core.types import Json


def first_difference(old_spec: Json, new_spec: Json) -> str:
    """The first difference of two specifications as a clause that names both sides.

    >>> first_difference({"settings": {"k": 5}}, {"settings": {"k": 10}})
    'was made with settings.k = 5, you asked for 10'
    """
    for where, old, new in _differences("", old_spec, new_spec):
        return f"was made with {where} = {_short(old)}, you asked for {_short(new)}"
    return "was made with other settings"


def is_same_but_for_dataset(old_spec: Json, new_spec: Json) -> bool:
    """Return whether only the content of the dataset changed."""
    changed = [where for where, *_ in _differences("", old_spec, new_spec)]
    return changed == ["settings.dataset_sha256"]


def _differences(where: str, old_value: Any, new_value: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old_value, dict) and isinstance(new_value, dict):
        for key in sorted({*old_value, *new_value}):
            yield from _differences(
                f"{where}.{key}" if where else key, old_value.get(key), new_value.get(key)
            )
    elif (
        isinstance(old_value, list)
        and isinstance(new_value, list)
        and len(old_value) == len(new_value)
    ):
        for n, (old, new) in enumerate(zip(old_value, new_value), 1):
            yield from _differences(f"{where}[{n}]", old, new)
    elif old_value != new_value:
        yield where, old_value, new_value


def _short(value: Any) -> str:
    text = "nothing" if value is None else repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else text[:77] + "…"
