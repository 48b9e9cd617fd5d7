"""A prompt made shorter by its passages: the last ones are left out, then the first one's end is cut.

Only passages that stand word for word in the messages can be cut, each with what joins it to the one
before it (a separator, a number, its title). Question and instructions are never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rallebench.core.types import Evidence, Message, Passage

JOINT = 40
"""Characters, besides the title, that may stand between two passages and leave with the second."""

_NAMED = 50
"""Passages that the note names one by one."""

_WORD = 30
"""How far back a cut moves to end at a space."""


@dataclass(frozen=True)
class Cut:
    """The shortened messages, and one sentence that says which passages the model did not see."""

    messages: tuple[Message, ...]
    note: str


@dataclass(frozen=True)
class _Span:
    """Where a passage stands: ``joint`` is where that which joins it to the passage before begins."""

    message: int
    joint: int
    start: int
    end: int
    passage: int


def shortened(
    messages: Sequence[Message],
    evidence: Evidence | None,
    fits: Callable[[Sequence[Message]], bool],
) -> Cut | None:
    """The messages with as many passages, from the first on, as ``fits`` allows; None if none may be left.

    ``fits`` must be true for a part of whatever it is true for. The first passage is never left out
    whole, but may be cut; then it is the only one.
    """
    passages, spans = _spans(messages, evidence or Evidence())
    if not passages:
        return None

    def keeping(count: int) -> tuple[Message, ...]:
        return _without(messages, [span for span in spans if span.passage >= count])

    whole = _most(1, len(passages) - 1, lambda count: fits(keeping(count)))
    if whole:
        return Cut(keeping(whole), _note(passages, whole))
    first, only = passages[0], keeping(1)

    def beginning(length: int) -> tuple[Message, ...]:
        text = _at_a_space(first.text, length)
        return tuple(replace(m, content=m.content.replace(first.text, text)) for m in only)

    length = _most(1, len(first.text) - 1, lambda count: fits(beginning(count)))
    if not length:
        return None
    kept = len(_at_a_space(first.text, length))
    cut = f"of {_named(first)} only the first {kept} of {len(first.text)} characters were kept"
    others = _note(passages, 1)[:-1] + ", and " if len(passages) > 1 else ""
    sentence = f"{others}{cut}."
    return Cut(beginning(length), sentence[0].upper() + sentence[1:])


def _spans(messages: Sequence[Message], evidence: Evidence) -> tuple[list[Passage], list[_Span]]:
    """The passages in the order in which they first appear, and every place where one stands."""
    found = sorted(
        (number, start, -len(passage.text), index)
        for number, message in enumerate(messages)
        for index, passage in enumerate(evidence.passages)
        if passage.text
        for start in _starts(message.content, passage.text)
    )
    order: dict[int, int] = {}
    spans: list[_Span] = []
    for number, start, size, index in found:
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
    kept = []
    for number, message in enumerate(messages):
        pieces, place = [], 0
        for span in spans:
            if span.message == number:
                pieces.append(message.content[place : max(span.joint, place)])
                place = span.end
        kept.append(replace(message, content="".join([*pieces, message.content[place:]])))
    return tuple(kept)


def _most(least: int, most: int, good: Callable[[int], bool]) -> int:
    """The largest number from ``least`` to ``most`` that is good, 0 if none; those below a good one are good.

    >>> [_most(1, 9, lambda n: n <= limit) for limit in (0, 1, 5, 20)]
    [0, 1, 5, 9]
    """
    found = 0
    while least <= most:
        middle = (least + most) // 2
        if good(middle):
            found, least = middle, middle + 1
        else:
            most = middle - 1
    return found


def _at_a_space(text: str, length: int) -> str:
    space = text.rfind(" ", max(length - _WORD, 1), length + 1)
    return text[: space if space > 0 else length].rstrip()


def _note(passages: Sequence[Passage], kept: int) -> str:
    out = passages[kept:]
    names = [_named(passage) for passage in out[:_NAMED]]
    more = f" and the {len(out) - _NAMED} after them" if len(out) > _NAMED else ""
    were = "was" if len(out) == 1 else "were"
    return f"{len(out)} of {len(passages)} passages {were} left out of the prompt: {', '.join(names)}{more}."


def _named(passage: Passage) -> str:
    return f"{passage.doc_id} ({passage.title})" if passage.title else f"{passage.doc_id}"
