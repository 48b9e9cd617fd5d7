"""Judges by typed decisions: the probabilities of the options are the judgement, so a small local model judges without JSON.

A yes-or-no judge gives the more probable verdict and its probability; a judge of degrees gives the mean degree weighted by
the probabilities (G-Eval, Liu et al. 2023, arXiv:2303.16634). Without probabilities the option is read from the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rallebench.core.choices import Choice
from rallebench.core.choosing import choose, reply_choice
from rallebench.core.types import Episode, Message, Outcome, SubFlow
from rallebench.metrics.judges import (
    VERDICT,
    Judgement,
    judgement_outcome,
    read_judgement,
)

PROBABILITY = "probability"
"""Name of the value with the probability that the verdict is 1; absent without probabilities."""
YES_NO = ("Yes", "No")
DEGREES = ("1", "2", "3", "4", "5")
UNREAD = "The reply names none of the options, or several."


def judge_yes_no(
    llm: str,
    messages: Sequence[Message],
    read: Callable[[str], bool | None],
    *,
    positive: str = YES_NO[0],
) -> SubFlow[Outcome]:
    """Request a yes or a no. ``positive``: the option that counts as 1; ``read``: returns the verdict of any other text, None
    if unclear.
    """
    request = choose(llm, messages, YES_NO)
    reply = yield request
    choice = reply_choice(reply, request)
    verdict = choice.chosen == positive if choice.chosen else read(reply.text)
    if verdict is None:
        return judgement_outcome(Judgement(failure=UNREAD))
    probability = choice.probability(positive)
    more = {} if probability is None else {PROBABILITY: probability}
    return judgement_outcome(Judgement({VERDICT: float(verdict), **more}))


def ask_degree(llm: str, messages: Sequence[Message]) -> SubFlow[Choice]:
    """Request a degree from 1 to 5."""
    request = choose(llm, messages, DEGREES)
    return reply_choice((yield request), request)


def mean_degree(choice: Choice) -> float | None:
    """Return the mean degree of a choice among DEGREES, None for an unread one.

    >>> from rallebench.core.choices import SERVER
    >>> mean_degree(Choice(DEGREES, "4", SERVER, (0, 0, 0, 0.75, 0.25)))
    4.25
    """
    return choice.mean_value([float(degree) for degree in choice.options])


def choice_scores(verdict: str, probability: str) -> Callable[[Episode], dict[str, float]]:
    """Return a function from a yes-or-no judge's episode to its values under these column names; absent ones are left out."""
    names = {VERDICT: verdict, PROBABILITY: probability}

    def scores(episode: Episode) -> dict[str, float]:
        values = read_judgement(episode).values
        return {name: values[key] for key, name in names.items() if key in values}

    return scores
