"""The question word of a question, in English or Chinese."""

from __future__ import annotations

import re

OTHER, YES_NO = "other", "yes-no"
_AUXILIARY = (
    "is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|may|might|must"
)
_ENGLISH = re.compile(
    r"\b(how (?:many|much|long|old|far|often|tall|big)|whose|whom|who|what|which|when|where|why|how)\b"
)
_YES_NO = re.compile(rf"^(?:{_AUXILIARY})\b")
_CHINESE = (
    ("why", r"为什么|为何"),
    ("how many", r"多少|几"),
    ("when", r"何时|什么时候|哪一?年|哪天"),
    ("where", r"哪里|哪儿|何处|什么地方"),
    ("who", r"谁|何人"),
    ("which", r"哪"),
    ("how", r"怎么|怎样|如何"),
    ("what", r"什么|何"),
    (YES_NO, r"吗|是否|是不是"),
)


def question_word(text: str) -> str:
    """Return the first question word, "how many" and the like as one, "yes-no", or "other".

    >>> question_word("In which state is Lamar County?"), question_word("How many moons has Mars?"), question_word("Is it so?")
    ('which', 'how many', 'yes-no')
    >>> question_word("Name the largest moon of Pluto."), question_word("谁发现了土卫六？")
    ('other', 'who')
    """
    lowered = " ".join(text.lower().replace("’s", "").replace("'s", "").split())
    if _YES_NO.match(lowered):
        return YES_NO
    if match := _ENGLISH.search(lowered):
        return "who" if match[1] == "whom" else match[1]
    return next((word for word, pattern in _CHINESE if re.search(pattern, text)), OTHER)
