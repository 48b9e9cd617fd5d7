"""Citation marks such as ``[1]`` and ``【2, 3】`` in answers, and quotations checked word for word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from rallebench.core.support import Quotation
from rallebench.core.text import CJK_CHARACTER, sentences
from rallebench.core.types import Episode, Generate, Passage

MARK = re.compile(r"\s?[\[【](\d{1,2}(?:\s*[,，、;–-]\s*\d{1,2})*)[\]】](?!\()")
"""A citation mark with the space before it; its group holds the numbers."""
_BEHIND = re.compile(r"([.!?。！？]+[\"'”’)\]」』]*)((?:\s*[\[【]\d[\d\s,，、;–-]*[\]】](?!\())+)")
_QUOTED = re.compile(
    r"“([^“”]+)”|\"([^\"\n]+)\"|«([^«»]+)»|「([^「」]+)」|『([^『』]+)』|„([^„“”]+)[“”]"
)
_ELLIPSIS = re.compile(r"\s*(?:\.\.\.|…|\[\.\.\.\]|\[…\])\s*")
QUOTED_WORDS, QUOTED_CHARACTERS = 4, 6
"""Least words, or Chinese characters, of a quotation; shorter ones are names and titles."""
_TYPESET = str.maketrans("“”„‟’‘‛‐‒–—", '""""\'\'\'----')


@dataclass(frozen=True, slots=True)
class MarkedSentence:
    """A sentence without its marks, and the numbers in them, in order, repetitions included."""

    text: str
    numbers: tuple[int, ...] = ()


def parse_numbers(mark: str) -> list[int]:
    """Return the numbers in a citation mark, with ranges expanded.

    >>> parse_numbers("1, 3-5")
    [1, 3, 4, 5]
    """
    numbers: list[int] = []
    for part in re.split(r"[,，、;]", mark):
        ends = [int(end) for end in re.split(r"[–-]", part)]
        numbers += range(ends[0], ends[-1] + 1)
    return numbers


def marks_inside(answer: str) -> str:
    """Return an answer with the marks behind a full stop moved in front of it.

    >>> marks_inside("It fell. [1] It rose.")
    'It fell [1]. It rose.'
    """
    return _BEHIND.sub(lambda match: f"{match[2]}{match[1]}", answer)


def marked_sentences(answer: str) -> tuple[MarkedSentence, ...]:
    """Return the sentences of an answer that hold a word. Marks that stand alone belong to the sentence before.

    >>> marked_sentences("It fell.[1][3] It rose 【2】。 [7]")
    (MarkedSentence(text='It fell.', numbers=(1, 3)), MarkedSentence(text='It rose。', numbers=(2, 7)))
    """
    marked: list[MarkedSentence] = []
    behind = _BEHIND.sub(lambda match: f" {' '.join(match[2].split())}{match[1]}", answer)
    for part in sentences(behind):
        numbers = tuple(number for mark in MARK.finditer(part) for number in parse_numbers(mark[1]))
        text = MARK.sub("", part).strip()
        if re.search(r"\w", text):
            marked.append(MarkedSentence(text, numbers))
        elif marked:
            marked[-1] = MarkedSentence(marked[-1].text, marked[-1].numbers + numbers)
    return tuple(marked)


def prompt_passages(episode: Episode) -> tuple[Passage, ...]:
    """Return the passages that the last prompt to a language model holds word for word, in their order in it."""
    last = max(
        (i for i, step in enumerate(episode.steps) if isinstance(step.request, Generate)),
        default=-1,
    )
    if last < 0:
        return ()
    request = episode.steps[last].request
    messages = request.messages if isinstance(request, Generate) else ()
    prompt = "\n".join(message.content for message in messages)
    passages = {
        hit.passage.doc_id or hit.passage.text: hit.passage
        for step in episode.steps[:last]
        for hit in step.reply.hits
        if hit.passage.text and hit.passage.text in prompt
    }
    return tuple(sorted(passages.values(), key=lambda passage: prompt.find(passage.text)))


def find_quotations(answer: str, passages: Sequence[Passage]) -> tuple[Quotation, ...]:
    """Return the quotations of an answer with the first passage that holds each word for word.

    Case, white space, Unicode's form and typeset quotation marks and dashes may differ, and a comma or full stop may stand
    before the closing mark. The parts around an ellipsis must stand in one passage, in their order.

    >>> find_quotations('They wrote "the river froze at night," and left.', [Passage("1", "The river froze at night.")])
    (Quotation(text='the river froze at night,', passage=1),)
    """
    texts = [_plain(f"{passage.title}\n{passage.text}") for passage in passages]
    quoted = []
    for match in _QUOTED.finditer(answer):
        text = next(group for group in match.groups() if group is not None).strip()
        if _is_long(text):
            parts = [_plain(part).strip(" .,;:!?。，") for part in _ELLIPSIS.split(text)]
            holders = (i for i, whole in enumerate(texts, 1) if _holds(whole, parts))
            quoted.append(Quotation(text, next(holders, 0)))
    return tuple(quoted)


def _is_long(text: str) -> bool:
    return (
        len(text.split()) >= QUOTED_WORDS or len(CJK_CHARACTER.findall(text)) >= QUOTED_CHARACTERS
    )


def _plain(text: str) -> str:
    normal = unicodedata.normalize("NFKC", text.translate(_TYPESET)).translate(_TYPESET)
    return " ".join(normal.casefold().split())


def _holds(text: str, parts: Sequence[str]) -> bool:
    at = 0
    for part in parts:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True
