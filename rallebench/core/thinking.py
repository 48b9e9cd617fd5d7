"""Separate the thoughts of a reasoning model from its answer, for every backend and every known notation.

Tags (``<think>``, ``<thinking>``, ``<thought>``, ``<reasoning>`` …, ``[THINK]``), gpt-oss's harmony channels, and the
marks of other families. After an opening mark without an end everything is thoughts. An end mark without an opening closes
thoughts that began in the prompt.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from rallebench.core.backends import LLM
from rallebench.core.errors import BackendError, RalleError
from rallebench.core.types import Generate, Reply

_TAGS = "think|thinking|thoughts?|reasoning|seed:think"
_NAMES = "thought|thinking|think"
_BEGINS = rf"<(?:{_TAGS})>|\[think\]|◁think▷|<\|(?:begin_of_|start_|begin_)(?:{_NAMES})\|>"
_ENDS = rf"</(?:{_TAGS})>|\[/think\]|◁/think▷|<\|end_(?:of_)?(?:{_NAMES})\|>"
_OPENS = r"<\|(?:begin_of_solution|start_response|start_text)\|>"
"""Marks of some families at the beginning of the answer."""
_HEADER = r"(?:<\|start\|>\s*assistant\s*)?<\|channel\|>\s*"
_FINAL = rf"{_HEADER}final[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>|(?<=\S)assistantfinal(?=\S)"
"""The header of harmony's answer, and its remains if a tokenizer drops the marks."""
_BEGIN = re.compile(f"(?i:{_BEGINS})")
_END = re.compile(f"(?i:{_ENDS})|{_FINAL}")
_OPEN = re.compile(rf"\s*{_OPENS}", re.I)
_LEAD = re.compile(rf"(?i:{_BEGINS})|<\|start\|>assistant|<\|channel\|>|analysis(?=[A-Z])")
"""The beginning of a text that starts with thoughts."""
_LEADS = (
    *(
        f"<{tag}>"
        for tag in ("think", "thinking", "thought", "thoughts", "reasoning", "seed:think")
    ),
    *(
        f"<|{word}{name}|>"
        for word in ("begin_of_", "start_", "begin_")
        for name in _NAMES.split("|")
    ),
    *("[think]", "◁think▷", "<|start|>assistant", "<|channel|>", "analysis"),
)
_TAIL = re.compile(
    r"(?:\s*<\|(?:return|end|call|end_of_solution|end_response|end_text)\|>)+\s*$", re.I
)
"""Marks that some servers leave after an answer."""
_OPENERS = ("<|begin_of_solution|>", "<|start_response|>", "<|start_text|>")
_LATER = (
    *(lead for lead in _LEADS if lead[0] in "<[◁"),
    *(
        "<|return|>",
        "<|end|>",
        "<|call|>",
        "<|end_of_solution|>",
        "<|end_response|>",
        "<|end_text|>",
    ),
)
"""Marks that may follow the beginning of an answer."""
_MARKS = re.compile(
    rf"(?i:{_BEGINS}|{_ENDS}|{_OPENS})|{_FINAL}|(?<=\S)assistantfinal$|{_HEADER}\w*[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>|"
    r"<\|(?:start|end|return|call|constrain|channel|message)\|>|^\s*analysis(?=[A-Z])|(?i:<\|end_(?:of_solution|response|text)\|>)"
)
_HARMONY = {
    f"<|{name}|>" for name in ("start", "end", "message", "channel", "constrain", "return", "call")
}
_BLOCKS = 20
"""The most blocks of thoughts after an answer that are separated from it."""
_HEADER_LENGTH = 160
"""The most characters of a mark at the end of thoughts."""
_SIGNS = re.compile(r"</|\[/|<\||▷|assistantfinal")

_Failed = TypeVar("_Failed", bound=RalleError)


def thought_marks(tokens: Iterable[str]) -> set[str]:
    """The special tokens of a vocabulary that separate thoughts from answers. They must stay in a decoded text.

    >>> sorted(thought_marks(["<s>", "[THINK]", "[/THINK]", "<|end|>"]))
    ['[/THINK]', '[THINK]']
    """
    every = set(tokens)
    marks = {token for token in every if _BEGIN.fullmatch(token) or _END.fullmatch(token)}
    return marks | (every & _HARMONY if "<|channel|>" in every else set())


def begun_thoughts(prompt: str) -> str:
    """The opening mark of thoughts at the end of a prompt, where some chat templates put it; else ''.

    >>> begun_thoughts("Who?\\n<think>\\n"), begun_thoughts("Who?")
    ('<think>', '')
    """
    mark = re.search(rf"(?:(?i:{_BEGINS})|<\|channel\|>analysis<\|message\|>)\s*$", prompt)
    return mark[0].strip() if mark else ""


def answer_begins(text: str) -> int:
    """The place in a model's text where the answer begins, after its thoughts. These may still be the whole text.

    >>> [answer_begins(text) for text in ("Rome", "<think>Rome?</think>Rome", "Rome?</think>Rome", "<think>Rome?")]
    [0, 20, 13, 12]
    """
    return _answer_at(text)[0]


def extract_answer(text: str) -> str:
    """The text of a model, without its thoughts and the marks after its answer.

    >>> extract_answer("<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Rome<|return|>")
    'Rome'
    """
    begin, end = _answer_at(text)
    return text[begin:end]


def _answer_at(text: str) -> tuple[int, int]:
    """(begin, end) of the answer, without later thoughts."""
    tail = _TAIL.search(text) if "|>" in text[-64:] else None
    whole = end = tail.start() if tail else len(text)
    last = _last(_END, text, end)
    for _ in range(_BLOCKS):
        begin = _last(_BEGIN, text, last.start()) if last else None
        if not last or not begin or not begin.start() or text[last.end() : end].strip():
            break
        end = len(text[: begin.start()].rstrip())
        last = _last(_END, text, end)
    begins = last.end() if last else 0
    if opened := _OPEN.match(text, begins):
        begins = opened.end()
    if _LEAD.match(text[begins:end].lstrip()):
        begins = end
    if end < whole and not text[begins:end].strip():
        return whole, whole  # nothing but thoughts
    return begins, end


def _last(pattern: re.Pattern[str], text: str, end: int) -> re.Match[str] | None:
    """The last match before ``end``."""
    if pattern is _END and not _SIGNS.search(text):
        return None
    matches = deque(pattern.finditer(text, 0, end), maxlen=1)
    return matches[0] if matches else None


ROOM = 4096
"""Tokens for the reply of a thinking model to a short question of a method (a judge, an agent, a re-ranker)."""


class OnlyThoughts(BackendError):
    """The error for a reply without an answer. ``cut_off``: the reply reached its token limit."""

    def __init__(self, llm: str, cut_off: bool = False) -> None:
        super().__init__(
            f"{llm!r} only thought and gave no answer; raise max_tokens, or turn its thinking off (most chat "
            'templates take chat_template_kwargs {"enable_thinking": false}).'
        )
        self.cut_off = cut_off


def with_room(request: Generate, answer: Reply | RalleError) -> Generate | None:
    """The request with room to think, if its answer was cut off during thoughts; else None.

    Only a method's short questions get more room; the limits of other requests stay.
    """
    if not isinstance(answer, OnlyThoughts) or not answer.cut_off or not request.roomy:
        return None
    if request.max_tokens is None or request.max_tokens >= ROOM:
        return None
    return replace(request, max_tokens=ROOM)


def generate_answers(llm: LLM, requests: Sequence[Generate], name: str) -> list[Reply | RalleError]:
    """The replies of a model without their thoughts, in order. Replies that were cut off during thoughts are requested
    again with more room."""
    replies = [split_thoughts(reply, name) for reply in llm.generate(requests)]
    wider = {
        place: more
        for place, (request, reply) in enumerate(zip(requests, replies))
        if (more := with_room(request, reply))
    }
    if wider:
        again = [split_thoughts(reply, name) for reply in llm.generate([*wider.values()])]
        for place, reply in zip(wider, again):
            replies[place] = reply
    return replies


def split_thoughts(reply: Reply | _Failed, llm: str) -> Reply | _Failed | BackendError:
    """Move the thoughts of a reply to ``thinking``, so that ``text`` is the answer; return an error if there is none.

    An error stays as it is. ``llm``: the model's name.

    >>> split_thoughts(Reply("<think>北京？</think>上海"), "m") == Reply("上海", thinking="北京？")
    True
    """
    if not isinstance(reply, Reply):
        return reply
    begin, end = _answer_at(reply.text)
    if not begin and end == len(reply.text) and not reply.thinking:
        return reply
    text = reply.text[begin:end].lstrip() if begin else reply.text[begin:end]
    if not text.strip() and not reply.tool_calls:
        return OnlyThoughts(llm, cut_off=reply.finish_reason == "length")
    written = (_MARKS.sub("", part) for part in (reply.text[:begin], reply.text[end:]))
    thoughts = (part.strip() for part in (reply.thinking, *written))
    return replace(reply, text=text, thinking="\n\n".join(filter(None, thoughts)))


class _AnswerFilter:
    """Extracts the answer from a stream, piece by piece."""

    def __init__(self) -> None:
        self._held, self._thinks, self._answers, self._parted = "", False, False, False

    def add(self, piece: str) -> str:
        """Take a piece; return the text that is certain to belong to the answer."""
        self._held += piece
        while not self._answers and self._step():
            pass
        if not self._answers:
            return ""
        ready = ""
        while True:
            begin = _BEGIN.search(self._held)
            if begin is None:
                at = len(self._held) - _held_back(self._held)
                ready, self._held = ready + self._held[:at], self._held[at:]
                return ready
            ready, self._held = ready + self._held[: begin.start()], self._held[begin.start() :]
            end = _END.search(self._held)
            if end is None or not self._held[end.end() :].strip():
                return ready
            self._held = self._held[end.end() :].lstrip()

    def rest(self) -> str:
        """The text that was held back and belongs to the answer, at the end of the stream."""
        if self._thinks or (self._parted and not self._held.strip()):
            return ""
        begin, end = _BEGIN.match(self._held), _END.search(self._held)
        if self._answers and begin and end:
            return ""
        return _TAIL.sub("", self._held)

    def _step(self) -> bool:
        """Take in one mark, or detect the beginning of the answer. Returns False if more text is needed."""
        if self._thinks:
            end = _END.search(self._held)
            if end is None:
                self._held = self._held[-_HEADER_LENGTH:]
                return False
            self._held, self._thinks, self._parted = self._held[end.end() :], False, True
        begun = self._held.lstrip()
        if opened := _OPEN.match(begun):
            self._held, self._parted = begun[opened.end() :], True
            return True
        if self._parted and (again := _END.match(begun)):
            self._held = begun[again.end() :]
            return True
        if lead := _LEAD.match(begun):
            # A harmony channel may be the answer's own, so its header is read again.
            self._held = begun if lead[0].startswith("<|channel") else begun[lead.end() :]
            self._thinks = True
            return True
        if any(lead.startswith(begun.lower()) for lead in (*_LEADS, *_OPENERS)):
            return False
        self._answers = True
        self._held = begun if self._parted else self._held
        return True


def _held_back(text: str) -> int:
    """The number of characters at the end of an answer that are, or may become, a mark after it."""
    tail = _TAIL.search(text)
    rest = text[: tail.start()] if tail else text
    end = rest[-max(map(len, _LATER)) :].lower()
    sizes = (
        size for size in range(1, len(end) + 1) if any(m.startswith(end[-size:]) for m in _LATER)
    )
    return len(text) - len(rest) + max(sizes, default=0)


def parted_stream(pieces: Iterator[str | Reply]) -> Iterator[str | Reply]:
    """A stream without thoughts. For a piece that is held back it yields '', so that a stop is noticed.

    Thoughts without an opening mark are known only at their end, so they are in the stream, but not in the final Reply.

    >>> list(parted_stream(iter(["<th", "ink>Ro", "me?</think>", " Rome", "."])))
    ['', '', '', 'Rome', '.']
    >>> list(parted_stream(iter(["<th", "e>", "m"])))
    ['', '<the>', 'm']
    """
    answer = _AnswerFilter()
    for piece in pieces:
        if isinstance(piece, Reply):
            if rest := answer.rest():
                yield rest
            yield piece
            return
        yield answer.add(piece)
