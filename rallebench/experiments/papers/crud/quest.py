"""RAGQuestEval's arithmetic: how much of a reference can be learnt from a text (CRUD-RAG, section 3.3 and its code).

Questions are asked of the reference and of the text; 无法推断 says that a text does not answer one.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rallebench.metrics.words import jieba_words

UNKNOWN = "无法推断"
_STRICT = re.compile(r"<response>\n(.*?)\n</response>", re.DOTALL)
_LOOSE = re.compile(r"<response>(.*?)</response>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Quest:
    """``f1``: the paper's precision, ``recall``: of ``kept`` questions, which the reference answers, the share that
    the text answers; ``answered`` of them it does."""

    f1: float
    recall: float
    kept: int
    answered: int


def quest_scores(wanted: Sequence[str], said: Sequence[str], *, over_all: bool = False) -> Quest:
    """Scores of the text's answers ``said`` by the reference's ``wanted``, one each for every question.

    Questions that the reference does not answer are dropped; recall is the share of the others that the text
    answers; precision the mean word F1 over those (CRUD-RAG's code), or over all others (``over_all``: its paper's
    formula 2). Nothing left: 0. IndexError if the reference answers a question for which ``said`` has no entry.

    >>> quest_scores(["北京", "无法推断", "3人"], ["北京", "上海", "无法推断"])
    Quest(f1=1.0, recall=0.5, kept=2, answered=1)
    """
    kept = [(one, said[i]) for i, one in enumerate(wanted) if one != UNKNOWN]
    answered = [(one, other) for one, other in kept if other != UNKNOWN]
    if not answered:
        return Quest(0.0, 0.0, len(kept), 0)
    total = sum(word_f1(one, other) for one, other in answered)
    return Quest(
        total / len(kept if over_all else answered),
        len(answered) / len(kept),
        len(kept),
        len(answered),
    )


def word_f1(one: str, other: str) -> float:
    """F1 of two bags of jieba's words, punctuation and spaces among them; two empty ones are equal.

    >>> word_f1("3000多家", "3000家"), word_f1("", ""), word_f1("", "北京")
    (0.5, 1.0, 0.0)
    """
    left, right = Counter(jieba_words(one)), Counter(jieba_words(other))
    if not left or not right:
        return float(left == right)
    common = sum((left & right).values())
    return 2 * common / (sum(left.values()) + sum(right.values()))


def questions_in(reply: str, *, strict: bool = False) -> dict[str, Any] | None:
    """The object with ``key_info`` and ``question`` that a model wrote; None if the reply holds none with questions.

    ``strict``: the whole reply must be JSON, as in the original. Otherwise prose, fences and thoughts around it do no
    harm, and the last such object counts.

    >>> questions_in('Sure:\\n{"key_info": ["a"], "question": ["b?"]}')
    {'key_info': ['a'], 'question': ['b?']}
    """
    starts = [0] if strict else [found.start() for found in re.finditer(r"\{", reply)][::-1]
    for start in starts:
        try:
            value = json.loads(reply) if strict else json.JSONDecoder().raw_decode(reply, start)[0]
        except (ValueError, RecursionError):
            continue
        if isinstance(value, Mapping) and texts(value.get("question")):
            return {
                "key_info": list(texts(value.get("key_info"))),
                "question": list(texts(value["question"])),
            }
    return None


def spoken(reply: str) -> str:
    """A reply without what a reasoning model thought before it.

    >>> spoken("<think>北京？</think>上海")
    '上海'
    """
    return reply.rpartition("</think>")[2]


def texts(value: Any) -> tuple[str, ...]:
    """A list of texts as they are; () for anything else."""
    return (
        tuple(value)
        if isinstance(value, list) and all(isinstance(one, str) for one in value)
        else ()
    )


def answers_in(reply: str, number: int, *, strict: bool = False) -> tuple[str, ...] | None:
    """The answers to ``number`` questions; None unless there are as many.

    ``strict``, the original: tags on lines of their own, any number, and 无法推断 only where it is the whole answer.

    >>> answers_in("<response>北京</response> <response> 无法推断。 </response>", 2)
    ('北京', '无法推断')
    """
    if strict:
        return tuple(_STRICT.findall(reply))
    found = tuple(map(_answer, _LOOSE.findall(spoken(reply))))
    return found if len(found) == number else None


def _answer(text: str) -> str:
    plain = text.strip()
    return UNKNOWN if plain.strip("。.！!“”\"' ") == UNKNOWN else plain


def numbered(questions: Sequence[str]) -> str:
    """Questions as a prompt lists them.

    >>> numbered(["谁？", "何时？"])
    '1. 谁？\\n2. 何时？'
    """
    return "\n".join(f"{n}. {question}" for n, question in enumerate(questions, 1))
