"""Records of RGB's kind from what a retriever finds: with the answer positive, without it negative.

A false copy is a positive with every occurrence of the answer replaced by one of the same shape.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rallebench.core.answers import find_answers
from rallebench.experiments.papers.rgb.documents import SEED
from rallebench.experiments.papers.rgb.records import Required

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SourceQuestion:
    """A question of a testbed; ``fake``: the false answer that its record names, '' to have one chosen."""

    id: str
    query: str
    required: Required
    fake: str = ""


@dataclass(frozen=True, slots=True)
class Split:
    """The passages of a question: ``groups`` of positives, one per required answer, and negatives."""

    groups: tuple[tuple[str, ...], ...]
    negative: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Every required answer is in some document."""
        return bool(self.groups) and all(self.groups)

    @property
    def positives(self) -> int:
        """How many documents hold an answer."""
        return sum(map(len, self.groups))


def split(required: Required, texts: Sequence[str]) -> Split:
    """Documents, best first, by the required answer that they contain, at word boundaries; each text once, and one that
    holds several answers where the fewest are so far."""
    groups: list[list[str]] = [[] for _ in required]
    negative: list[str] = []
    for text in dict.fromkeys(texts):
        held = [groups[i] for i, group in enumerate(required) if find_answers(text, group)]
        (min(held, key=len) if held else negative).append(text)
    return Split(tuple(map(tuple, groups)), tuple(negative))


def answer_of(required: Required) -> Any:
    """The answer as RGB writes it.

    >>> answer_of((("Rome",),)), answer_of((("Rome", "Roma"),))
    ('Rome', [['Rome', 'Roma']])
    """
    if len(required) == 1 and len(required[0]) == 1:
        return required[0][0]
    return [group[0] if len(group) == 1 else list(group) for group in required]


def row_of(question: SourceQuestion, documents: Split) -> Row:
    """A record of a base set, or of an integration set where several answers are required."""
    groups = [list(group) for group in documents.groups]
    return {
        "id": question.id,
        "query": question.query,
        "answer": answer_of(question.required),
        "positive": groups if len(groups) > 1 else groups[0],
        "negative": list(documents.negative),
    }


def false_row(question: SourceQuestion, documents: Split, fake: str) -> Row:
    """The record with a false copy of every positive."""
    wrong = [replaced(text, question.required[0], fake) for text in documents.groups[0]]
    return {**row_of(question, documents), "fakeanswer": fake, "positive_wrong": wrong}


def replaced(text: str, aliases: Sequence[str], fake: str) -> str:
    """Every occurrence of an alias replaced, the rest as it is.

    >>> replaced("Tampa is in Florida; TAMPA!", ["Tampa"], "Miami")
    'Miami is in Florida; Miami!'
    """
    for start, end, _ in reversed(find_answers(text, aliases)):
        text = text[:start] + fake + text[end:]
    return text


def shape_of(answer: str) -> str:
    """What a false answer should have in common with the true one: its digits, its words, its capitals.

    >>> shape_of("7 February 2021"), shape_of("12 May 1999"), shape_of("Tampa")
    ('9 A 9999', '99 A 9999', 'A')
    """
    words = (
        re.sub(r"[^\W\d_]+", lambda match: "A" if match[0][0].isupper() else "a", word)
        for word in answer.split()
    )
    return " ".join(re.sub(r"\d", "9", word) for word in words)


def fakes_of(questions: Sequence[SourceQuestion]) -> Mapping[str, str]:
    """Question id → a false answer: its own, else another question's that looks alike. Questions for which there
    is none, or with several required answers, are absent."""
    single = [question for question in questions if len(question.required) == 1]
    shapes: dict[str, list[str]] = {}
    for answer in dict.fromkeys(question.required[0][0] for question in single):
        shapes.setdefault(shape_of(answer), []).append(answer)
    fakes = {}
    for question in single:
        (aliases,) = question.required
        alike = [other for other in shapes[shape_of(aliases[0])] if not _overlap(other, aliases)]
        if question.fake or alike:
            chance = random.Random(f"{SEED} {question.id}")
            fakes[question.id] = question.fake or chance.choice(alike)
    return fakes


def _overlap(answer: str, aliases: Sequence[str]) -> bool:
    """Whether one is part of the other: RGB's scoring could then not tell them apart."""
    low = answer.lower()
    return any(low in alias.lower() or alias.lower() in low for alias in aliases)
