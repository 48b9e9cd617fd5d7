"""Speed of each encoder on this machine, from the last build that encoded enough passages."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from rallebench.core.errors import RalleError
from rallebench.core.files import read_json, write_json

RATES = "rates.json"
LEAST_PASSAGES = 50
"""Minimum number of newly encoded passages for a meaningful speed."""


def save_rate(cache: Path, encoder: str, passages: int, seconds: float) -> None:
    """Store an encoder's passages per second, unless there were too few passages."""
    if passages >= LEAST_PASSAGES and seconds > 0:
        rates = {**_rates(cache), encoder: round(passages / seconds, 3)}
        with suppress(OSError):  # not worth failing a build
            write_json(cache / RATES, rates)


def stored_rate(cache: Path, encoder: str) -> float | None:
    """Return an encoder's passages per second; None if no build has measured it."""
    value = _rates(cache).get(encoder)
    known = isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
    return float(value) if known and value is not None else None


def _rates(cache: Path) -> dict[str, Any]:
    with suppress(RalleError, OSError):
        value = read_json(cache / RATES)
        return value if isinstance(value, dict) else {}
    return {}
