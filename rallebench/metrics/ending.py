"""The end of a question: with an answer, or at a limit."""

from __future__ import annotations

import re

from rallebench.core.errors import UsageError
from rallebench.core.types import Episode, Gold
from rallebench.metrics import METRICS
from rallebench.metrics.recorded import IMPORTED

ANSWERED = "answered"


def check_reason(option: str) -> None:
    """Raise UsageError for a text that cannot be a stop reason."""
    if not re.fullmatch(r"[a-z_]{1,40}", option):
        raise UsageError(
            f"{option!r} is not a stop reason; write one like step_limit, in small letters and '_'."
        )


@METRICS.register(
    "ended", needs="", reads="", higher_is_better=None, label="Ended", check=check_reason
)
def ended_for_reason(episode: Episode, gold: Gold, option: str = "") -> float | None:
    """1 if the question ended for the chosen reason, by default with an answer, else 0.

    Normalisation: none.
    Not scored: predictions of another program, which do not record how they ended.
    Option: answered, step_limit, context_limit, token_limit, time_limit, model_error, tool_error, gave_up or no_answer.
    Source: this project; the reasons are those of its workflows.
    Traps: A chain always ends with an answer, even if it is empty. A failed question is not scored.
    """
    if episode.workflow == IMPORTED or episode.outcome is None:
        return None
    return float(episode.outcome.stop_reason == (option or ANSWERED))
