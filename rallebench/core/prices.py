"""Prices of language models, in US dollars per million tokens: ``{"prompt": 0.15, "completion": 0.6}``."""

from __future__ import annotations

import math
from collections.abc import Mapping

Prices = Mapping[str, "Mapping[str, float] | None"]
"""Language model → its prices; None, or no entry, if unknown."""

FREE: Mapping[str, float] = {"prompt": 0.0, "completion": 0.0}
"""Prices of a model that runs in this program."""


def read_prices(value: object) -> dict[str, float] | None:
    """Read the prices in a value from a user or a backend; None if it has none."""
    prices = value if isinstance(value, Mapping) else {}
    known = {
        kind: float(price)
        for kind in ("prompt", "completion")
        if isinstance(price := prices.get(kind), (int, float))
        and not isinstance(price, bool)
        and 0 <= price < math.inf
    }
    return known or None
