"""Shortening of a prompt: the last passages are left out, then the end of the first passage.

Only passages that stand word for word in the messages can be cut, each with its joint to the passage before it (a
separator, a number, its title). Question and instructions always stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rallebench.core.types import Evidence, Message, Passage

JOINT = 40
"""The most characters of a joint, besides the title; the joint leaves with the second passage."""

_NAMED = 50
"""The most passages that the note names."""

_WORD = 30
"""The most characters that a cut moves back to a space."""


@dataclass(frozen=True)
class _Span:
    """The position of a passage; ``joint`` is the beginning of its joint to the passage before."""

    message: int
    joint: int
    start: int
    end: int
    passage: int


def shortened(
    messages: Sequence[Message],
    evidence: Evidence | None,
    fits: Callable[[Sequence[Message]], bool],
) -> tuple[tuple[Message, ...], str] | None:
    """The messages with as many of the first passages as ``fits`` allows, and one sentence about the others.

    None if not even a part of the first fits. ``fits`` must be true for every part of messages that fit. The first passage always stays, but may be cut; then it is
    the only passage.
    """
    passages, spans = _spans(messages, evidence or Evidence())
    if not passages:
        return None

    def keeping(count: int) -> tuple[Message, ...]:
        return _without(messages, [span for span in spans if span.passage >= count])

    whole = _most(1, len(passages) - 1, lambda count: fits(keeping(count)))
    if whole:
        return keeping(whole), _note(passages, whole)
    first, only = passages[0], keeping(1)

    def beginning(length: int) -> tuple[Message, ...]:
        text = _at_a_space(first.text, length)
        return tuple(replace(m, content=m.content.replace(first.text, text)) for m in only)

    length = _most(1, len(first.text) - 1, lambda count: fits(beginning(count)))
    if not length:
        return None
    characters = len(_at_a_space(first.text, length))
    cut = (
        f"of {_named(first)} only the first {characters} of {len(first.text)} characters were kept"
    )
    others = _note(passages, 1)[:-1] + ", and " if len(passages) > 1 else ""
    sentence = f"{others}{cut}."
    return beginning(length), sentence[0].upper() + sentence[1:]


def _spans(messages: Sequence[Message], evidence: Evidence) -> tuple[list[Passage], list[_Span]]:
    """The passages in the order of their first occurrence, and all occurrences."""
    occurrences = sorted(
        (number, start, -len(passage.text), index)
        for number, message in enumerate(messages)
        for index, passage in enumerate(evidence.passages)
        if passage.text
        for start in _starts(message.content, passage.text)
    )
    order: dict[int, int] = {}
    spans: list[_Span] = []
    for number, start, size, index in occurrences:
        before = spans[-1].end if spans and spans[-1].message == number else None
        if before is not None and start < before:
            continue  # inside another passage
        passage = evidence.passages[index]
        joint = _joint(messages[number].content, before, start, passage, evidence.question)
        spans.append(_Span(number, joint, start, start - size, order.setdefault(index, len(order))))
    return [evidence.passages[index] for index in order], spans


def _starts(text: str, part: str) -> list[int]:
    starts: list[int] = []
    start = text.find(part)
    while start >= 0:
        starts.append(start)
        start = text.find(part, start + len(part))
    return starts


def _joint(text: str, before: int | None, start: int, passage: Passage, question: str) -> int:
    if before is None:
        return start
    between = text[before:start]
    rest = between.replace(passage.title, "", 1) if passage.title else between
    return start if len(rest) > JOINT or (question and question in between) else before


def _without(messages: Sequence[Message], spans: Sequence[_Span]) -> tuple[Message, ...]:
    parts = []
    for number, message in enumerate(messages):
        pieces, place = [], 0
        for span in spans:
            if span.message == number:
                pieces.append(message.content[place : max(span.joint, place)])
                place = span.end
        parts.append(replace(message, content="".join([*pieces, message.content[place:]])))
    return tuple(parts)


def _most(least: int, most: int, good: Callable[[int], bool]) -> int:
    """The largest good number from ``least`` to ``most``, or 0; every number below a good number is good.

    >>> [_most(1, 9, lambda n: n <= limit) for limit in (0, 1, 5, 20)]
    [0, 1, 5, 9]
    """
    best = 0
    while least <= most:
        middle = (least + most) // 2
        if good(middle):
            best, least = middle, middle + 1
        else:
            most = middle - 1
    return best


def _at_a_space(text: str, length: int) -> str:
    space = text.rfind(" ", max(length - _WORD, 1), length + 1)
    return text[: space if space > 0 else length].rstrip()


def _note(passages: Sequence[Passage], count: int) -> str:
    out = passages[count:]
    names = [_named(passage) for passage in out[:_NAMED]]
    more = f" and the {len(out) - _NAMED} after them" if len(out) > _NAMED else ""
    were = "was" if len(out) == 1 else "were"
    return f"{len(out)} of {len(passages)} passages {were} left out of the prompt: {', '.join(names)}{more}."


def _named(passage: Passage) -> str:
    return f"{passage.doc_id} ({passage.title})" if passage.title else f"{passage.doc_id}"
