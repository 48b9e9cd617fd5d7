"""The thoughts of a reasoning model are parted from its answer here, for every backend, in every form that models write.

Tags (``<think>``, ``<thinking>``, ``<thought>``, ``<reasoning>`` …, ``[THINK]``), gpt-oss's harmony channels, and the marks
of other families. An opening without an end is all thoughts; an end without an opening closes thoughts that the prompt began.
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
"""Marks of some families at which the answer begins."""
_HEADER = r"(?:<\|start\|>\s*assistant\s*)?<\|channel\|>\s*"
_FINAL = rf"{_HEADER}final[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>|(?<=\S)assistantfinal(?=\S)"
"""The header of harmony's answer, and the rest of it if a tokenizer drops the marks."""
_BEGIN = re.compile(f"(?i:{_BEGINS})")
_END = re.compile(f"(?i:{_ENDS})|{_FINAL}")
_OPEN = re.compile(rf"\s*{_OPENS}", re.I)
_LEAD = re.compile(rf"(?i:{_BEGINS})|<\|start\|>assistant|<\|channel\|>|analysis(?=[A-Z])")
"""The beginning of a text that begins with thoughts."""
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
"""Marks that some servers leave behind an answer."""
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
"""Marks that may come behind the beginning of an answer."""
_MARKS = re.compile(
    rf"(?i:{_BEGINS}|{_ENDS}|{_OPENS})|{_FINAL}|(?<=\S)assistantfinal$|{_HEADER}\w*[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>|"
    r"<\|(?:start|end|return|call|constrain|channel|message)\|>|^\s*analysis(?=[A-Z])|(?i:<\|end_(?:of_solution|response|text)\|>)"
)
_HARMONY = {
    f"<|{name}|>" for name in ("start", "end", "message", "channel", "constrain", "return", "call")
}
_BLOCKS = 20
"""Blocks of thoughts behind an answer that are parted from it."""
_HEADER_LENGTH = 160
"""The most characters of a mark that ends thoughts."""
_SIGNS = re.compile(r"</|\[/|<\||▷|assistantfinal")

_Failed = TypeVar("_Failed", bound=RalleError)


def thought_marks(tokens: Iterable[str]) -> set[str]:
    """The special tokens of a vocabulary that part thoughts from answers, so that they must stay in a decoded text.

    >>> sorted(thought_marks(["<s>", "[THINK]", "[/THINK]", "<|end|>"]))
    ['[/THINK]', '[THINK]']
    """
    every = set(tokens)
    marks = {token for token in every if _BEGIN.fullmatch(token) or _END.fullmatch(token)}
    return marks | (every & _HARMONY if "<|channel|>" in every else set())


def begun_thoughts(prompt: str) -> str:
    """The mark at which thoughts begin, where a prompt ends with it, as some chat templates write it; else ''.

    >>> begun_thoughts("Who?\\n<think>\\n"), begun_thoughts("Who?")
    ('<think>', '')
    """
    mark = re.search(rf"(?:(?i:{_BEGINS})|<\|channel\|>analysis<\|message\|>)\s*$", prompt)
    return mark[0].strip() if mark else ""


def answer_begins(text: str) -> int:
    """The place in a model's text where the answer begins: after its thoughts, which may still be the whole text.

    >>> [answer_begins(text) for text in ("Rome", "<think>Rome?</think>Rome", "Rome?</think>Rome", "<think>Rome?")]
    [0, 20, 13, 12]
    """
    return _answer_at(text)[0]


def extract_answer(text: str) -> str:
    """The text of a model, without its thoughts and the marks behind its answer.

    >>> extract_answer("<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Rome<|return|>")
    'Rome'
    """
    begin, end = _answer_at(text)
    return text[begin:end]


def _answer_at(text: str) -> tuple[int, int]:
    """(begin, end) of the answer, without any thoughts that follow it."""
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
"""Tokens of a reply to a method's short question (a judge's, an agent's, a re-ranker's) by a model that thinks first."""


class OnlyThoughts(BackendError):
    """The error of a reply without an answer. ``cut_off``: the reply reached its limit of tokens."""

    def __init__(self, llm: str, cut_off: bool = False) -> None:
        super().__init__(
            f"{llm!r} only thought and gave no answer; raise max_tokens, or turn its thinking off (most chat "
            'templates take chat_template_kwargs {"enable_thinking": false}).'
        )
        self.cut_off = cut_off


def with_room(request: Generate, answer: Reply | RalleError) -> Generate | None:
    """The request again with room to think, where its answer was cut off in thoughts; None for any other.

    A limit of any other request than a method's short question stays.
    """
    if not isinstance(answer, OnlyThoughts) or not answer.cut_off or not request.roomy:
        return None
    if request.max_tokens is None or request.max_tokens >= ROOM:
        return None
    return replace(request, max_tokens=ROOM)


def generate_answers(llm: LLM, requests: Sequence[Generate], name: str) -> list[Reply | RalleError]:
    """The replies of a model without their thoughts, in order; those that were cut off in thoughts are requested again with more room."""
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
    """The reply with its thoughts in ``thinking`` and nothing but the answer in ``text``; the error of one without an answer.

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
    """The answer in a stream, piece by piece."""

    def __init__(self) -> None:
        self._held, self._thinks, self._answers, self._parted = "", False, False, False

    def add(self, piece: str) -> str:
        """The text that is certain to be shown."""
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
        """The text that was held back and is shown after all, once the stream has ended."""
        if self._thinks or (self._parted and not self._held.strip()):
            return ""
        begin, end = _BEGIN.match(self._held), _END.search(self._held)
        if self._answers and begin and end:
            return ""
        return _TAIL.sub("", self._held)

    def _step(self) -> bool:
        """Take in one mark, or see that the answer begins; False where more text is needed."""
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
            # A harmony channel may be the answer's own: its header is looked at again.
            self._held = begun if lead[0].startswith("<|channel") else begun[lead.end() :]
            self._thinks = True
            return True
        if any(lead.startswith(begun.lower()) for lead in (*_LEADS, *_OPENERS)):
            return False
        self._answers = True
        self._held = begun if self._parted else self._held
        return True


def _held_back(text: str) -> int:
    """The number of characters at the end of an answer that are, or may become, a mark behind it."""
    tail = _TAIL.search(text)
    rest = text[: tail.start()] if tail else text
    end = rest[-max(map(len, _LATER)) :].lower()
    sizes = (
        size for size in range(1, len(end) + 1) if any(m.startswith(end[-size:]) for m in _LATER)
    )
    return len(text) - len(rest) + max(sizes, default=0)


def parted_stream(pieces: Iterator[str | Reply]) -> Iterator[str | Reply]:
    """A stream without thoughts: for a piece that is held back '' is yielded, so that a stop is heard.

    Only their end tells thoughts that no mark began, so those are in the stream, but not in the parted Reply.

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
