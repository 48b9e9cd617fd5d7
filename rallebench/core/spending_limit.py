"""A spending limit: the dollars available to one command, shared by its runs and judges."""

from __future__ import annotations

import math
import threading

from rallebench.core.errors import StoppedError, UsageError


class SpendingLimit:
    """A limit in US dollars; ``spent`` counts up. Any thread may add to it.

    >>> budget = SpendingLimit(0.5)
    >>> budget.add(0.2), budget.is_spent
    (None, False)
    >>> budget.add(0.3), budget.is_spent
    (None, True)
    """

    def __init__(self, limit: float) -> None:
        if not 0 < limit < math.inf:
            raise UsageError(
                f"The spending limit is {limit:g} US dollars; it must be above 0.", "max_usd"
            )
        self.limit = limit
        self.spent = 0.0
        self._lock = threading.Lock()

    @property
    def is_spent(self) -> bool:
        """True once the limit is reached; then no more calls are made."""
        return self.spent >= self.limit

    def add(self, usd: float) -> None:
        """Add the cost of finished calls."""
        with self._lock:
            self.spent += usd

    def check(self) -> None:
        """Raise StoppedError once the limit is reached."""
        if self.is_spent:
            raise StoppedError(
                f"Stopped at the spending limit: {self.spent:.4f} of at most {self.limit:g} US dollars were spent. What was "
                "answered is kept; resume with a new limit to continue."
            )


def spending_limit(usd: float | None) -> SpendingLimit | None:
    """Return a limit of ``usd`` US dollars; None without one. Raises UsageError."""
    return None if usd is None else SpendingLimit(usd)
