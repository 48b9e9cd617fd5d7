"""Actions of an agent that were edited by a person."""

from __future__ import annotations

from collections.abc import Iterable

from rallebench.core.types import Step

EDITED = "Edited by you."
"""Note of an edited reply."""


def was_edited(steps: Iterable[Step]) -> bool:
    """Return whether any action was edited."""
    return any(step.reply.note == EDITED for step in steps)
