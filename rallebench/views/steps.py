"""Texts, tokens, price and sources of a step, as shown by a front end."""

from __future__ import annotations

from collections.abc import Sequence

from rallebench.chains.chain import request_prompt, wiki_id_title
from rallebench.core.answers import find_answers
from rallebench.core.prices import Prices
from rallebench.core.types import Generate, Step
from rallebench.engine.cost import dollars
from rallebench.metrics.cost import step_completion_tokens, step_prompt_tokens

LONGEST_SPAN = 200
"""In characters. Longer answers are not searched for in passages, because only copied spans can be found."""


def sent_text(step: Step) -> str:
    """Return the query, the last message to the model, or the note of a step."""
    return request_prompt(step.request)


def titles_and_ids(step: Step) -> str:
    """Return the retrieved pages as RaLLe's ``title, id; title, id; …``; '' for other steps."""
    return wiki_id_title(step)


def tokens(steps: Sequence[Step]) -> tuple[int, int] | None:
    """Return the tokens (read, written) by the models of these steps; None if no model was called or a backend does
    not count.
    """
    models = [step for step in steps if isinstance(step.request, Generate)]
    counts = [(step_prompt_tokens(step), step_completion_tokens(step)) for step in models]
    if not counts or any(read is None or written is None for read, written in counts):
        return None
    return sum(read or 0 for read, _ in counts), sum(written or 0 for _, written in counts)


def price(steps: Sequence[Step], prices: Prices) -> float | None:
    """Return the US dollars of these steps by the models' ``price_of_use``; None if a price is unknown."""
    return dollars(steps, prices)


def spans(text: str, answers: Sequence[str]) -> list[tuple[int, int]]:
    """Return the (start, end) of each answer in a text, at word boundaries and after normalisation."""
    return [(start, end) for start, end, _ in find_answers(text, tuple(answers))] if answers else []


def is_span(answer: str) -> bool:
    """Return whether an answer is short enough to be searched for in a passage."""
    return 1 < len(answer.strip()) <= LONGEST_SPAN
