"""Shortening of a prompt: the last passages are left out, then the end of the first passage.

Only passages that appear word for word in the messages can be cut, each with the joint before it (a separator, a
number, its title). Question and instructions always stay.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from rallebench.core.types import Evidence, Message, Passage

JOINT = 40
"""Maximum length of a joint in characters, apart from the title; a joint is removed with the passage after it."""

_NAMED = 50
"""Maximum number of passages that the note names."""

_WORD = 30
"""Maximum number of characters that a cut moves back to a space."""


class _Span(NamedTuple):
    """Position of a passage; ``joint``: start of the joint between the previous passage and this one."""

    message: int
    joint: int
    end: int
    passage: int


def shorten(
    messages: Sequence[Message],
    evidence: Evidence | None,
    fits: Callable[[Sequence[Message]], bool],
) -> tuple[tuple[Message, ...], str] | None:
    """Return the messages with as many of the first passages as ``fits`` allows, and one sentence about the others.

    None if not even a part of the first fits. ``fits`` must accept every part of messages that it accepts. The first
    passage always stays, but is cut if it alone does not fit.
    """
    passages, spans = _spans(messages, evidence or Evidence())
    if not passages:
        return None

    def keeping(count: int) -> tuple[Message, ...]:
        texts = [message.content for message in messages]
        for span in reversed(spans):
            if span.passage >= count:
                text = texts[span.message]
                texts[span.message] = text[: span.joint] + text[span.end :]
        return tuple(replace(m, content=text) for m, text in zip(messages, texts, strict=True))

    def most(limit: int, part: Callable[[int], Sequence[Message]]) -> int:
        """Return the largest number below ``limit`` whose part fits, or 0."""
        return bisect_left(range(1, limit), True, key=lambda number: not fits(part(number)))

    if whole := most(len(passages), keeping):
        return keeping(whole), _note(passages, whole)
    first, only = passages[0], keeping(1)

    def beginning(length: int) -> tuple[Message, ...]:
        text = _at_a_space(first.text, length)
        return tuple(replace(m, content=m.content.replace(first.text, text)) for m in only)

    length = most(len(first.text), beginning)
    if not length:
        return None
    characters = len(_at_a_space(first.text, length))
    cut = f"of {_passage_name(first)} only the first {characters} of {len(first.text)} characters were kept"
    others = _note(passages, 1)[:-1] + ", and " if len(passages) > 1 else ""
    sentence = f"{others}{cut}."
    return beginning(length), sentence[0].upper() + sentence[1:]


def _spans(messages: Sequence[Message], evidence: Evidence) -> tuple[list[Passage], list[_Span]]:
    """Return the passages in the order of their first occurrence, and all occurrences."""
    occurrences = sorted(
        (number, match.start(), -match.end(), index)
        for number, message in enumerate(messages)
        for index, passage in enumerate(evidence.passages)
        if passage.text
        for match in re.finditer(re.escape(passage.text), message.content)
    )
    order: dict[int, int] = {}
    spans: list[_Span] = []
    for number, start, end, index in occurrences:
        before = spans[-1].end if spans and spans[-1].message == number else None
        if before is not None and start < before:
            continue  # inside another passage
        joint = start
        if before is not None:
            between, title = messages[number].content[before:start], evidence.passages[index].title
            separator = between.replace(title, "", 1) if title else between
            asks = bool(evidence.question) and evidence.question in between
            joint = start if len(separator) > JOINT or asks else before
        spans.append(_Span(number, joint, -end, order.setdefault(index, len(order))))
    return [evidence.passages[index] for index in order], spans


def _at_a_space(text: str, length: int) -> str:
    space = text.rfind(" ", max(length - _WORD, 1), length + 1)
    return text[: space if space > 0 else length].rstrip()


def _note(passages: Sequence[Passage], count: int) -> str:
    out = passages[count:]
    names = [_passage_name(passage) for passage in out[:_NAMED]]
    more = f" and the {len(out) - _NAMED} after them" if len(out) > _NAMED else ""
    were = "was" if len(out) == 1 else "were"
    return f"{len(out)} of {len(passages)} passages {were} left out of the prompt: {', '.join(names)}{more}."


def _passage_name(passage: Passage) -> str:
    return f"{passage.doc_id} ({passage.title})" if passage.title else f"{passage.doc_id}"
