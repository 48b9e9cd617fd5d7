"""What is asked of models, as flows: is an article recent, which questions does it answer, does a question hold.

Every verdict is a dict with ``prompt`` (where the article stands, its id), ``reply`` as it came, ``value`` (None if nothing
could be read), ``reason`` and ``tries``. A flow's answer is its verdicts as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rallebench.core.answers import find_answers
from rallebench.core.prompts import filled
from rallebench.core.types import Flow, Generate, Message, Outcome, Reply, SubFlow
from rallebench.experiments.builders._replies import (
    declined,
    fields_of,
    read_boolean,
    read_questions,
    text_field,
    text_of_reply,
)

Verdict = dict[str, Any]
_TEXTS = r"text|article|passage|excerpt|extract|document|content"
_LEAKS = re.compile(
    rf"\b(?:this|given|above|provided|following|present) (?:{_TEXTS})\b(?! of\b)|\bthe (?:text|article|passage|excerpt)\b(?! of\b)"
    rf"|\baccording to the (?:{_TEXTS})\b|\bmentioned (?:above|in the (?:{_TEXTS}))\b"
    r"|(?:本|该|此|上)文|文中|文章(?:中|里|提到)|这篇(?:文章|文本|报道)|(?:根据|依据)(?:文本|文章|材料|报道)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Asks:
    """Who is asked and how. ``forced``: whether the reply's form is demanded as a JSON schema; ``tries``: how often at most,
    ``again`` is said in between."""

    llm: str
    temperature: float
    seed: int
    max_tokens: int
    forced: bool
    tries: int
    again: str


@dataclass(frozen=True, slots=True)
class Text:
    """What is shown of an article: ``id`` and its beginning."""

    id: str
    text: str

    @property
    def mark(self) -> str:
        """What stands for it in a stored prompt."""
        return f"[the first {len(self.text)} characters of {self.id}]"


def mentions_its_text(question: str) -> str:
    """The words by which a question points at the text that it was made of, '' if it does not.

    >>> mentions_its_text("What does the article say of Titan?"), mentions_its_text("Who wrote the text of the treaty?")
    ('the article', '')
    """
    match = _LEAKS.search(question)
    return match[0] if match else ""


def _object(**fields: str) -> dict[str, Any]:
    properties = {name: {"type": kind} for name, kind in fields.items()}
    return {"type": "object", "properties": properties, "required": [next(iter(fields))]}


RECENT = _object(recent="boolean", reason="string")
ANSWERABLE = _object(answerable="boolean", answer="string")
KNOWN = _object(known="boolean", answer="string")
RIGHT = _object(right="boolean", reason="string")


def questions_schema(answers: bool) -> dict[str, Any]:
    """The form of a reply with questions."""
    names = ("question", "answer") if answers else ("question",)
    item = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": list(names),
    }
    return {
        "type": "object",
        "properties": {"questions": {"type": "array", "items": item}},
        "required": ["questions"],
    }


def ask(
    asks: Asks,
    template: str,
    values: Mapping[str, str],
    text: Text | None,
    schema: Mapping[str, Any],
    read: Callable[[Reply], tuple[Any, str]],
) -> SubFlow[Verdict]:
    """Ask until something can be read, at most ``tries`` times; the verdict says what was read last."""
    visible = filled(template, {**values, **({"ARTICLE": text.mark} if text else {})})
    sent = filled(template, {**values, **({"ARTICLE": text.text} if text else {})})
    messages: tuple[Message, ...] = (Message("user", sent),)
    name = next(iter(schema["properties"]))
    form = {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}
    options = {"response_format": form} if asks.forced else {}
    verdict: Verdict = {}
    for tries in range(1, asks.tries + 1):
        reply = yield Generate(
            asks.llm,
            messages,
            max_tokens=asks.max_tokens,
            temperature=asks.temperature,
            seed=asks.seed,
            options=options,
        )
        value, reason = read(reply)
        words = reply.text or "".join(call.arguments for call in reply.tool_calls)
        verdict = {
            "prompt": visible,
            "reply": words,
            "value": value,
            "reason": reason,
            "tries": tries,
        }
        if value is not None:
            break
        messages = (*messages, Message("assistant", words or "…"), Message("user", asks.again))
    return verdict


def _boolean(name: str, reason: str = "reason") -> Callable[[Reply], tuple[Any, str]]:
    """Reads the field ``name`` of a reply, None if it has none, and the field ``reason``."""
    return lambda reply: (read_boolean(reply, name), text_field(fields_of(reply, name), reason))


def recency(asks: Asks, template: str, text: Text, date: str) -> Flow:
    """Whether most of an article is about what happened on or after a date."""
    verdict = yield from ask(asks, template, {"DATE": date}, text, RECENT, _boolean("recent"))
    return Outcome(json.dumps(verdict))


def questions(asks: Asks, template: str, text: Text, number: int, answers: bool) -> Flow:
    """Questions about an article; the verdict's value is a list of [question, answers], None if there is none."""

    def read(reply: Reply) -> tuple[Any, str]:
        return [list(question) for question in read_questions(reply, number)] or None, ""

    count = "one question" if number == 1 else f"{number} different questions"
    verdict = yield from ask(
        asks, template, {"NUMBER": count}, text, questions_schema(answers), read
    )
    return Outcome(json.dumps(verdict))


@dataclass(frozen=True, slots=True)
class Checks:
    """Which checks a model makes, with its prompts."""

    answerable: bool
    closed_book: bool
    answerable_prompt: str
    closed_book_prompt: str
    right_prompt: str


def checking(asks: Asks, checks: Checks, question: str, answers: Sequence[str], text: Text) -> Flow:
    """``answerable`` from the article; ``without``: whether a model that is not shown it answers right all the same."""
    verdicts: dict[str, Verdict] = {}
    if checks.answerable:
        read = _boolean("answerable", "answer")
        verdicts["answerable"] = yield from ask(
            asks, checks.answerable_prompt, {"QUESTION": question}, text, ANSWERABLE, read
        )
    if checks.closed_book and verdicts.get("answerable", {}).get("value") is not False:
        verdicts["closed_book"] = yield from ask(
            asks, checks.closed_book_prompt, {"QUESTION": question}, None, KNOWN, _read_known
        )
        verdicts["without"] = yield from _without(
            asks, checks, question, answers, text, verdicts["closed_book"]["value"]
        )
    return Outcome(json.dumps(verdicts))


def _read_known(reply: Reply) -> tuple[Any, str]:
    """The answer that a model gives without the article: '' if it declines, None if it says nothing.

    A reply in plain words is an answer, too.
    """
    fields = fields_of(reply, "known")
    if fields:
        answer = text_field(fields, "answer")
        known = read_boolean(reply, "known")
        return ("" if known is False or declined(answer) else answer), ""
    words = text_of_reply(reply)
    if not words:
        return None, ""
    return ("" if declined(words) else words), ""


def _without(
    asks: Asks,
    checks: Checks,
    question: str,
    answers: Sequence[str],
    text: Text,
    answer: str | None,
) -> SubFlow[Verdict]:
    """Whether the answer of a model without the article is right: by the question's own answer, else by the article."""
    if not answer:
        reason = "nothing was answered" if answer == "" else "what was answered could not be read"
        return {"value": False if answer == "" else None, "reason": reason}
    if find_answers(answer, answers):
        return {"value": True, "reason": "it holds the question's answer"}
    values = {"QUESTION": question, "ANSWER": answer}
    return (yield from ask(asks, checks.right_prompt, values, text, RIGHT, _boolean("right")))
