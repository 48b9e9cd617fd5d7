"""Answers that decline: they give no answer, or say that there is none."""

from __future__ import annotations

import re

from rallebench.core.answers import normalize_answer
from rallebench.core.types import Gold

UNANSWERABLE = "unanswerable"
"""Key of a record whose right answer is to decline; KILT has no such questions."""
DECLINING = "declining is right"
"""Words in place of the accepted answers of an unanswerable question."""
READ = 400
"""Characters at the beginning of an answer that are read: a long answer may mention later what a passage lacks."""
_NOTHING = frozenset(
    {
        *("", "unanswerable", "not answerable", "no answer", "noanswer", "no answer present"),
        *("unknown", "not known", "no information", "not enough information"),
    }
)
"""Whole answers, in their normal form; '' also stands for an answer of punctuation and articles, as in SQuAD 2.0."""
_INFORMATION = r"(?:information|evidence|context|access|data|details|answer)"
_SAYS_SO = re.compile(
    rf"\b(?:(?:insufficient|not enough|not sufficient|no relevant) {_INFORMATION}"
    r"|(?:can ?not|can't|could ?n[o']t|couldn't|unable to) (?:\w+ ){0,2}(?:answer|find|provide|say|tell|know|determine)"
    r"|(?:do not|don't|does not|doesn't|did not|didn't) (?:\w+ ){0,2}"
    rf"(?:know|mention|specify|have (?:\w+ ){{0,3}}{_INFORMATION}|(?:contain|provide|give|include) (?:\w+ ){{0,3}}{_INFORMATION})"
    r"|(?:do|does)(?: not|n't) (?:say|tell|answer)"
    r"|no (?:information|answer|mention) (?:about|on|of|is|was|can|could|given|available|found|provided|present)"
    r"|(?:is|are|am|was|were|remains?|[a-z]+'(?:s|m|re)) (?:\w+ )?"
    r"(?:unknown|unanswerable|not (?:known|sure|aware|certain|answerable|mentioned|specified|stated)))\b"
    r"|信息不足|无法(?:回答|确定|得知)|不知道|不清楚|未知|(?:没有|未)(?:提到|提及|说明)",
    re.IGNORECASE,
)


def declines(answer: str) -> bool:
    """Return whether an answer declines: it is empty, a word such as "unanswerable", or says at its beginning that there is no
    answer or not enough information.

    >>> declines("I can not answer the question because of the insufficient information in documents."), declines("Rome.")
    (True, False)
    >>> declines("That is not known to me."), declines("She knows his name better than Ada."), declines("No answer present.")
    (True, False, True)
    >>> declines("The Unknown Soldier"), declines("The passage doesn’t mention a ship."), declines("信息不足")
    (False, True, True)
    """
    if normalize_answer(answer) in _NOTHING:
        return True
    return bool(_SAYS_SO.search(answer[:READ].replace("’", "'")))


def accepted_answers(gold: Gold) -> tuple[str, ...]:
    """Return the accepted answers, or the words for an unanswerable question; () without gold.

    >>> accepted_answers(Gold(("Titan",))), accepted_answers(Gold(unanswerable=True)), accepted_answers(Gold())
    (('Titan',), ('declining is right',), ())
    """
    return (DECLINING,) if gold.unanswerable else gold.answers
