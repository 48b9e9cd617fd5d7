"""Actions of an agent that a person has edited."""

from __future__ import annotations

from collections.abc import Iterable

from rallebench.core.types import Step

EDITED = "Edited by you."
"""Note of a reply that is no longer the model's own."""


def was_edited(steps: Iterable[Step]) -> bool:
    """Return whether any action is not the model's own."""
    return any(step.reply.note == EDITED for step in steps)
