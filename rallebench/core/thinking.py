"""The thoughts of a reasoning model are parted from its answer here, for every backend."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from rallebench.core.errors import BackendError, RalleError
from rallebench.core.types import Reply

THOUGHT_BEGINS, THOUGHT_ENDS = "<think>", "</think>"

_Failed = TypeVar("_Failed", bound=RalleError)


def answer_begins(text: str) -> int:
    """Where the answer begins in what a model wrote: behind its thoughts, which for now may be the whole text.

    >>> [answer_begins(text) for text in ("Rome", "<think>Rome?</think>Rome", "Rome?</think>Rome", "<think>Rome?")]
    [0, 20, 13, 12]
    """
    end = text.rfind(THOUGHT_ENDS)
    if end >= 0:
        return end + len(THOUGHT_ENDS)
    return len(text) if text.lstrip().startswith(THOUGHT_BEGINS) else 0


def parted(reply: Reply | _Failed, llm: str) -> Reply | _Failed | BackendError:
    """The reply with its thoughts in ``thinking`` and nothing but the answer in ``text``; the error of one without an answer.

    An error stays as it is. ``llm``: the model's name.

    >>> parted(Reply("<think>北京？</think>上海"), "m") == Reply("上海", thinking="北京？")
    True
    """
    if not isinstance(reply, Reply):
        return reply
    begin = answer_begins(reply.text)
    if not begin and not reply.thinking:
        return reply
    text = reply.text[begin:].lstrip() if begin else reply.text
    if not text.strip() and not reply.tool_calls:
        return BackendError(
            f"{llm!r} only thought and gave no answer; raise max_tokens, or turn its thinking off (most chat "
            'templates take chat_template_kwargs {"enable_thinking": false}).'
        )
    written = reply.text[:begin].replace(THOUGHT_BEGINS, "").replace(THOUGHT_ENDS, "")
    thoughts = (part.strip() for part in (reply.thinking, written))
    return replace(reply, text=text, thinking="\n\n".join(filter(None, thoughts)))


def parted_stream(pieces: Iterator[str | Reply]) -> Iterator[str | Reply]:
    """A stream without the thoughts at its beginning: for a piece that is held back '' is yielded, so that a stop is heard.

    Only ``</think>`` tells thoughts that no mark began, so those are in the stream, but not in the parted Reply.

    >>> list(parted_stream(iter(["<th", "ink>Ro", "me?</think>", " Rome", "."])))
    ['', '', '', 'Rome', '.']
    >>> list(parted_stream(iter(["<th", "e>", "m"])))
    ['', '<the>', 'm']
    """
    held, answers = "", False
    for piece in pieces:
        if isinstance(piece, Reply):
            if held and not answers and not answer_begins(held):
                yield held
            yield piece
            return
        if answers:
            yield piece
            continue
        held += piece
        begun = held.lstrip()
        if THOUGHT_BEGINS.startswith(begun[: len(THOUGHT_BEGINS)]):
            # Short of its mark it may still begin a thought; behind its end come line ends before the answer.
            begun = (
                held[answer_begins(held) :].lstrip() if len(begun) >= len(THOUGHT_BEGINS) else ""
            )
            yield begun
            answers = bool(begun)
        else:
            answers = True
            yield held
