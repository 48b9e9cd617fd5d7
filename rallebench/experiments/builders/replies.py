"""Common parts of the builders: prompts, row states, and replies parsed as yes or no or as questions.

Unclear replies become None and are counted, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rallebench.core.experiments import Row
from rallebench.core.prompts import find_wording, prompt_text
from rallebench.core.structured import json_in
from rallebench.core.types import Reply
from rallebench.core.verdicts import read_verdict


def keep_state(reason: str) -> Row:
    """The fields of a row that is omitted for ``reason``, or kept if ``reason`` is ''."""
    return {"keep": not reason, "why": reason}


def kept_rows(rows: Iterable[Row]) -> Iterator[Row]:
    return (row for row in rows if row["keep"])


def read_prompts(maker: str, own: str, fields: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Prompt → its text, stripped. ``fields``: prompt name without .txt → required placeholders; ``own``: a folder of the
    user's prompts, or ''. Raises BadFileError."""
    find_wording(own, [(f"making/{maker}", f"{name}.txt") for name in fields])
    return {
        name: prompt_text(f"making/{maker}", f"{name}.txt", own, needed).strip()
        for name, needed in fields.items()
    }


YES, NO = ("true", "yes", "是", "是的"), ("false", "no", "否", "不是")
_QUOTES = "\"'“”‘’«»「」`*_ \t"
_NUMBER = re.compile(r"^\s*(?:[-*•]|\(?\d+[.):]|Q(?:uestion)?\s*\d*\s*[:.)])\s*")
_GREETING = re.compile(r"^(?:sure|certainly|of course|okay)\s*[!,.:]\s*", re.IGNORECASE)
_HEADING = re.compile(r"^[^?:]{0,80}\bquestions?\b[^?:]{0,30}:\s*(?=\S)", re.IGNORECASE)
"""Numbering at the beginning of a line with a question."""


def parse_fields(reply: Reply, name: str) -> Mapping[str, Any]:
    """The JSON object with the field ``name`` in a tool call or the text, with keys in lower case; {} without one."""
    schema = {"type": "object", "required": [name]}
    for value in json_in(reply, schema):
        if isinstance(value, Mapping):
            fields = {str(key).strip().lower(): field for key, field in value.items()}
            if name in fields:
                return fields
    return {}


def read_boolean(reply: Reply, name: str) -> bool | None:
    """The boolean in a field or in a plain-text reply; None for anything else.

    >>> [read_boolean(Reply(text), "recent") for text in ('Sure: {"recent": "Yes"}', "False.", "It is true.", "true or false?", "Sorry")]
    [True, False, True, None, None]
    """
    if fields := parse_fields(reply, name):
        return _truth(fields[name])
    return read_verdict(reply.text)


def _truth(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    word = str(value).strip().strip(".!").lower()
    return True if word in YES else False if word in NO else None


def one_line(value: Any) -> str:
    """A text or a number as one line; '' for anything else."""
    plain = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    return " ".join(str(value).split()) if plain else ""


def text_lines(value: Any) -> tuple[str, ...]:
    """Texts and numbers of a list, or a single value, as non-blank lines."""
    return tuple(filter(None, map(one_line, value if isinstance(value, list) else [value])))


def read_questions(reply: Reply, most: int) -> list[tuple[str, tuple[str, ...]]]:
    """At most ``most`` pairs (question, answers), from JSON with any text around it, or else from the lines that end in a
    question mark.

    >>> read_questions(Reply('Here: ["Who is Ada?", {"question": "Where?", "answer": "Rome"}]'), 5)
    [('Who is Ada?', ()), ('Where?', ('Rome',))]
    >>> read_questions(Reply('Sure! Here is a question:\\n1. "Who is Ada?"\\nAnswer: a poet\\'s child'), 5)
    [('Who is Ada?', ("a poet's child",))]
    >>> read_questions(Reply("I am sorry, I cannot help with that."), 5)
    []
    """
    distinct: dict[str, tuple[str, ...]] = {}
    for question, answers in list(_in_json(reply)) or _in_lines(reply.text.strip()):
        if question:
            distinct.setdefault(question, answers)
    return list(distinct.items())[:most]


def _in_json(reply: Reply) -> Iterator[tuple[str, tuple[str, ...]]]:
    for value in json_in(reply):
        if isinstance(value, Mapping):
            value = value.get("questions", [value])
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Mapping):
                answers = text_lines(item.get("answer", item.get("answers")))
                yield clean_question(one_line(item.get("question"))), answers
            elif isinstance(item, str):
                yield clean_question(item), ()


def _in_lines(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    question = ""
    for line in text.splitlines():
        bare = _NUMBER.sub("", line.strip(_QUOTES)).strip(_QUOTES)
        bare = _HEADING.sub("", _GREETING.sub("", bare))
        answer = re.match(r"(?:A|Answer|答案?)\s*[:：]\s*(.+)", bare, re.IGNORECASE)
        if answer and question:
            yield question, (answer[1].strip(),)
            question = ""
        elif bare.endswith(("?", "？")):
            if question:
                yield question, ()
            question = clean_question(bare)
    if question:
        yield question, ()


def clean_question(question: str) -> str:
    """A question on one line, without the surrounding quotes that some models add.

    >>> clean_question('"What does she mean by "dark"?"'), clean_question('Who wrote "Emma"?')
    ('What does she mean by "dark"?', 'Who wrote "Emma"?')
    """
    text = " ".join(question.split())
    wrapped = re.fullmatch(r'["“](.*[?？.])["”]', text)
    return wrapped[1].strip() if wrapped else text
