"""The embedded reader: answers by copying a short span from the passages in the prompt, or declines.

``prompt`` turns any prompt into a :class:`Task`; ``spans`` turns tasks into :class:`ReaderAnswer` values, with MiniLM
and a trained difference (``weights.safetensors``, made by ``tools/reader``; MODEL_CARD.md documents its data and quality).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rallebench.core.types import Passage

MODEL_CARD = Path(__file__).with_name("MODEL_CARD.md")

REFUSAL = "I can not answer the question because of the insufficient information in documents."
"""RGB's rejection sentence (Chen et al. 2023, arXiv:2309.01431), recognised by scorers."""

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
    """A prompt, as a task for the reader.

    ``kind``: ``short`` (a span), ``long`` (``sentences`` whole sentences), ``verdict`` (one of
    ``labels``: for, against and, third, undecided), ``title`` (one of ``titles`` or of the passages'
    titles), ``say`` (``question`` is already the answer: a refusal, or a question passed on).
    ``passages``: visible in the prompt, best first; ``title`` is empty unless the prompt shows it.
    ``context``: conversation before the question. ``max_words``: 0 means no limit. ``may_decline``:
    True if the prompt allows for passages without an answer; otherwise an answer is withheld only if it is
    very unlikely to be right. ``decline_below``: confidence, 0..1, below which an answer is withheld;
    None: the measured default.
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
    """A reader's answer; ``text`` is '' if nothing fits. ``confidence`` in 0..1.

    ``passage``: index of the source passage in the task, -1 for none; ``sentence``: the source sentence.
    """

    text: str
    confidence: float
    passage: int = -1
    sentence: str = ""


_TAKEN = re.compile(r"Extractive reader: taken from passage \d+(?: \(.*?\))?: (.*)", re.DOTALL)


def sentence_read(note: str) -> str:
    """Return the source sentence in the note of a reply; "" if there is none.

    >>> sentence_read("Extractive reader: taken from passage 2 (Titan (moon)): It is a moon.")
    'It is a moon.'
    """
    match = _TAKEN.fullmatch(note)
    return match[1] if match else ""
