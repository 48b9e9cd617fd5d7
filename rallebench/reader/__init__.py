"""The embedded reader: answers by copying a short span from the passages in the prompt, or declines.

Two halves meet at the values below. ``prompt`` turns whatever prompt was sent into a :class:`Task`; ``spans`` turns
tasks into :class:`ReaderAnswer` values, with MiniLM and a trained difference (``weights.safetensors``; MODEL_CARD.md
says from what and how good; ``tools/reader`` makes that file).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from rallebench.core.types import Passage

REFUSAL = "I can not answer the question because of the insufficient information in documents."
"""RGB's rejection sentence (Chen et al. 2023, arXiv:2309.01431); scorers look for it."""

UNABLE = (
    "This extractive reader only copies spans from the passages in the prompt; it can not {what}. "
    "Choose a language model that writes."
)
FOREIGN = (
    "This extractive reader reads English only; it can not read this prompt. "
    "Choose a language model that knows the language."
)

TaskKind = Literal["short", "long", "verdict", "title", "say"]


@dataclass(frozen=True, slots=True)
class Task:
    """What a prompt asks of a reader.

    ``kind``: ``short`` (a span), ``long`` (``sentences`` whole sentences), ``verdict`` (one of
    ``labels``: for, against, and, third, what to say when the passages say nothing), ``title``
    (one of ``titles`` or of the passages' titles), ``say`` (``question`` is the answer already:
    a sentence that declines, or a question handed on). ``passages``: those visible in the prompt,
    best first, ``title`` empty where the prompt does not show it. ``context``: what was said
    before the question. ``max_words``: 0 is no limit. ``may_decline``: the prompt says what to do where the passages
    hold no answer; without that an answer is withheld only if it is hardly ever right. ``decline_below``: the
    confidence, 0..1, below which an answer is withheld; None: as measured.
    """

    kind: TaskKind
    question: str
    passages: tuple[Passage, ...] = ()
    labels: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()
    context: str = ""
    sentences: int = 1
    max_words: int = 0
    may_decline: bool = False
    decline_below: float | None = None


@dataclass(frozen=True, slots=True)
class ReaderAnswer:
    """A reader's answer; ``text`` is '' where nothing fits. ``confidence`` in 0..1.

    ``passage`` is the index of the task's passage it was taken from, -1 for none;
    ``sentence`` is the sentence of that passage.
    """

    text: str
    confidence: float
    passage: int = -1
    sentence: str = ""


_TAKEN = re.compile(r"Extractive reader: taken from passage \d+(?: \(.*?\))?: (.*)", re.DOTALL)


def sentence_read(note: str) -> str:
    """The sentence that the note of a reply names as its source; "" where it names none.

    >>> sentence_read("Extractive reader: taken from passage 2 (Titan (moon)): It is a moon.")
    'It is a moon.'
    """
    match = _TAKEN.fullmatch(note)
    return match[1] if match else ""
