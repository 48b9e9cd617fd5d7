"""Language models as judges: flows over any model, whose every judgement can be read again.

A judge sends one prompt and reads one value from the reply. What was sent and what came back stand in the episode's
steps; ``Judgement`` is what was read. A reply that holds no value is *unparsed*: counted, never scored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Judgement:
    """``values``: name → number, empty if unparsed. ``reason``: the judge's own words, '' if it gave none. ``failure``: why
    nothing could be read, in one sentence, '' if something was."""

    values: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""
    failure: str = ""
