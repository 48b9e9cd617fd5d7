"""The requests to models, as flows: is an article recent, which questions does it answer, does a question hold.

Every verdict is a dict with ``prompt`` (with the article's id in place of its text), ``reply`` as it came, ``value`` (None if
nothing could be read), ``reason`` and ``tries``.
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
    """The model that is asked, and how. ``forced``: whether a JSON schema demands the form of the reply; ``tries``: the most
    requests for one verdict; ``again``: the prompt between two of them."""

    llm: str
    temperature: float
    seed: int
    max_tokens: int
    forced: bool
    tries: int
    again: str


Text = tuple[str, str]
"""An article's id, and its beginning as a model is shown it."""


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
    item = _object(question="string", **({"answer": "string"} if answers else {}))
    item["required"] = list(item["properties"])
    form = _object(questions="array")
    form["properties"]["questions"]["items"] = item
    return form


def ask(
    asks: Asks,
    template: str,
    values: Mapping[str, str],
    text: Text | None,
    schema: Mapping[str, Any],
    read: Callable[[Reply], tuple[Any, str]],
) -> SubFlow[Verdict]:
    """Ask until something can be read, at most ``tries`` times; the verdict says what was read last. In its prompt a mark stands
    for the ``text``."""
    id, words = text or ("", "")
    mark = f"[the first {len(words)} characters of {id}]"
    visible, sent = (
        filled(template, {**values, **({"ARTICLE": article} if text else {})})
        for article in (mark, words)
    )
    messages: tuple[Message, ...] = (Message("user", sent),)
    name = next(iter(schema["properties"]))
    form = {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}
    options = {"response_format": form} if asks.forced else {}
    drawing = {"max_tokens": asks.max_tokens, "temperature": asks.temperature, "seed": asks.seed}
    verdict: Verdict = {}
    for tries in range(1, asks.tries + 1):
        reply = yield Generate(asks.llm, messages, options=options, **drawing)
        value, reason = read(reply)
        words = reply.text or "".join(call.arguments for call in reply.tool_calls)
        exchange = {"prompt": visible, "reply": words}
        verdict = {**exchange, "value": value, "reason": reason, "tries": tries}
        if value is not None:
            break
        messages = (*messages, Message("assistant", words or "…"), Message("user", asks.again))
    return verdict


def boolean(name: str, reason: str = "reason") -> Callable[[Reply], tuple[Any, str]]:
    """Reads the field ``name`` of a reply, None if it has none, and the field ``reason``."""
    return lambda reply: (read_boolean(reply, name), text_field(fields_of(reply, name), reason))


def checking(
    asks: Asks, checks: Mapping[str, Any], question: str, answers: Sequence[str], text: Text
) -> Flow:
    """The answer is JSON with two verdicts: ``answerable``, from the article; ``without``, whether a model that is not shown it
    answers right all the same.

    ``checks``: whether each is made, and its prompts.
    """
    verdicts: dict[str, Verdict] = {}
    values = {"QUESTION": question}
    if checks["answerable"]:
        read = boolean("answerable", "answer")
        verdicts["answerable"] = yield from ask(
            asks, checks["answerable_prompt"], values, text, ANSWERABLE, read
        )
    if checks["closed_book"] and verdicts.get("answerable", {}).get("value") is not False:
        known = yield from ask(asks, checks["closed_book_prompt"], values, None, KNOWN, _read_known)
        answer = known["value"]
        verdicts["closed_book"] = known
        if answer is None:
            without = {"value": None, "reason": "what was answered could not be read"}
        elif not answer:
            without = {"value": False, "reason": "nothing was answered"}
        elif find_answers(answer, answers):
            without = {"value": True, "reason": "it holds the question's answer"}
        else:
            values = {**values, "ANSWER": answer}
            prompt = checks["right_prompt"]
            without = yield from ask(asks, prompt, values, text, RIGHT, boolean("right"))
        verdicts["without"] = without
    return Outcome(json.dumps(verdicts))


def _read_known(reply: Reply) -> tuple[Any, str]:
    """The answer that a model gives without the article: '' if it declines, None if it says nothing.

    A reply in plain words is an answer, too.
    """
    if fields := fields_of(reply, "known"):
        answer = text_field(fields, "answer")
        return ("" if read_boolean(reply, "known") is False or declined(answer) else answer), ""
    words = text_of_reply(reply)
    return ("" if words and declined(words) else words or None), ""
