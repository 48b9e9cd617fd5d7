"""RGB's judges: did the answer decline (Rej*), and did it notice wrong documents (ED*)? Both are flows.

What was sent and what came back stands in the episode; the verdict is its answer, '' where none could be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rallebench.prompt_files import filled
from rallebench.types import Flow, Generate, Message, Outcome, Question

YES, NO, UNREAD = "yes", "no", "unparsed"


@dataclass(frozen=True, slots=True)
class Judge:
    """``kind``: ``rejection`` or ``errors``; ``prompt`` holds ``{answer}``, and ``{question}`` for a rejection."""

    kind: str
    llm: str
    prompt: str


def verdict_on_rejection(text: str) -> bool | None:
    """Whether the judge says that the answer declined; None if it says neither.

    >>> verdict_on_rejection("No, the question is not addressed."), verdict_on_rejection("Yes, it is addressed.")
    (True, False)
    """
    said = text.lower()
    if "not addressed" in said:
        return True
    return False if "addressed" in said or _begins(said, "yes") else None


def verdict_on_errors(text: str) -> bool | None:
    """Whether the judge says that the errors were noticed (``has identified`` or ``Yes``); None if it says neither.

    >>> verdict_on_errors("Yes."), verdict_on_errors("It fails to identify them."), verdict_on_errors("Perhaps")
    (True, False, None)
    """
    if "has identified" in text or "Yes" in text:
        return True
    said = text.lower()
    return False if _begins(said, "no") or "fail" in said or "not identif" in said else None


def _begins(said: str, word: str) -> bool:
    said = said.lstrip(" \t\n\"'*“‘")
    return said.startswith(word) and not said[len(word) : len(word) + 1].isalpha()


READERS = {"rejection": verdict_on_rejection, "errors": verdict_on_errors}


def judging(question: Question, judge: Judge, predictions: Mapping[str, str]) -> Flow:
    """Have one prediction judged, greedily."""
    values = {"question": question.text, "answer": predictions[question.qid]}
    sent = (Message("user", filled(judge.prompt, values)),)
    reply = yield Generate(judge.llm, sent, max_tokens=64, temperature=0.0, seed=0)
    verdict = READERS[judge.kind](reply.text)
    return Outcome("", UNREAD) if verdict is None else Outcome(YES if verdict else NO)
