"""Prices of language models, in US dollars per million tokens: ``{"prompt": 0.15, "completion": 0.6}``."""

from __future__ import annotations

import math
from collections.abc import Mapping

Prices = Mapping[str, "Mapping[str, float] | None"]
"""Language model → its prices; None, or no entry, if they are unknown."""

FREE: Mapping[str, float] = {"prompt": 0.0, "completion": 0.0}
"""Prices of a model that this program runs itself."""


def read_prices(value: object) -> dict[str, float] | None:
    """The prices in a value of a user or a backend; None if it holds none."""
    prices = value if isinstance(value, Mapping) else {}
    known = {
        kind: float(price)
        for kind in ("prompt", "completion")
        if isinstance(price := prices.get(kind), (int, float))
        and not isinstance(price, bool)
        and 0 <= price < math.inf
    }
    return known or None
