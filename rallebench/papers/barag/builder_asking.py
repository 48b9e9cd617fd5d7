"""The requests to models, as flows: is an article recent, which questions does it answer, does a question hold."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from rallebench.core.answers import find_answers
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.prompts import fill_template
from rallebench.core.types import Flow, Generate, Message, Outcome, Reply, SubFlow
from rallebench.engine.rowfile import RowFile
from rallebench.experiments.builders.replies import (
    declined,
    fields_of,
    line_of,
    read_boolean,
    read_questions,
)
from rallebench.papers.barag.builder_settings import BuilderSettings

Verdict = dict[str, Any]
"""``prompt`` (with the article's id in place of its text), ``reply`` as it came, ``value`` (None if nothing could be read),
``reason`` and ``tries``."""
Text = tuple[str, str]
"""An article's id, and its beginning as a model is shown it."""
Reading = Callable[[Reply], tuple[Any, str]]
"""A reply → its value, None if it cannot be read, and the reason."""

_TEXTS = r"text|article|passage|excerpt|extract|document|content"
_LEAKS = re.compile(
    rf"\b(?:this|given|above|provided|following|present) (?:{_TEXTS})\b(?! of\b)|\bthe (?:text|article|passage|excerpt)\b(?! of\b)"
    rf"|\baccording to the (?:{_TEXTS})\b|\bmentioned (?:above|in the (?:{_TEXTS}))\b"
    r"|(?:本|该|此|上)文|文中|文章(?:中|里|提到)|这篇(?:文章|文本|报道)|(?:根据|依据)(?:文本|文章|材料|报道)",
    re.IGNORECASE,
)


class Form(NamedTuple):
    """A request of one kind: its prompt, the JSON schema of the reply, and how the reply is read."""

    prompt: str
    schema: Mapping[str, Any]
    read: Reading


def _object(**fields: str) -> dict[str, Any]:
    properties = {name: {"type": kind} for name, kind in fields.items()}
    return {"type": "object", "properties": properties, "required": [next(iter(fields))]}


def _yes_or_no(prompt: str, name: str, reason: str = "reason") -> Form:
    """The field ``name`` is true or false, the field ``reason`` says why."""

    def read(reply: Reply) -> tuple[Any, str]:
        return read_boolean(reply, name), line_of(fields_of(reply, name).get(reason))

    return Form(prompt, _object(**{name: "boolean", reason: "string"}), read)


def _read_known(reply: Reply) -> tuple[Any, str]:
    """The answer that a model gives without the article: '' if it declines, None if it says nothing.

    A reply in plain words is an answer, too.
    """
    if fields := fields_of(reply, "known"):
        answer = line_of(fields.get("answer"))
        return ("" if read_boolean(reply, "known") is False or declined(answer) else answer), ""
    words = reply.text.strip()
    return ("" if words and declined(words) else words or None), ""


RECENT = _yes_or_no("recency", "recent")
ANSWERABLE = _yes_or_no("answerable", "answerable", "answer")
KNOWN = Form("closed-book", _object(known="boolean", answer="string"), _read_known)
RIGHT = _yes_or_no("right", "right")


def questions_form(number: int, answers: bool) -> Form:
    """At most ``number`` questions, with their ``answers`` or without."""
    item = _object(question="string", **({"answer": "string"} if answers else {}))
    item["required"] = list(item["properties"])
    schema = _object(questions="array")
    schema["properties"]["questions"]["items"] = item

    def read(reply: Reply) -> tuple[Any, str]:
        return [list(question) for question in read_questions(reply, number)] or None, ""

    return Form("questions", schema, read)


@dataclass(frozen=True, slots=True)
class BaragPlan:
    """The checked inputs of the stages. ``after`` None: any date."""

    request: ExperimentRequest
    settings: BuilderSettings
    kind: str
    path: Path
    after: datetime | None
    dates: Mapping[str, str]
    prompts: Mapping[str, str]

    @property
    def judge(self) -> str:
        return self.settings.judge or self.request.llm

    def text(self, store: RowFile, name: str) -> Text:
        """The part of an article that a model is shown: the beginning of its title and content."""
        row = store.row(name)
        whole = f"{row.get('title', '')}\n{row.get('content', '')}"
        return name, whole[: self.settings.characters]

    def depends_on(self, *forms: Form) -> list[Any]:
        """What the replies to these forms depend on, beside the model, the temperature and the article."""
        s = self.settings
        prompts = [self.prompts[name] for name in ("again", *(form.prompt for form in forms))]
        return [s.seed, s.max_tokens, s.forced, s.tries, s.characters, *prompts]

    def ask(
        self,
        form: Form,
        values: Mapping[str, str],
        text: Text | None,
        llm: str = "",
        temperature: float = 0.0,
    ) -> SubFlow[Verdict]:
        """Ask ``llm``, by default the judge, until its reply can be read, at most ``tries`` times; the last verdict."""
        s, (id, words) = self.settings, text or ("", "")
        mark = f"[the first {len(words)} characters of {id}]"
        visible, sent = (
            fill_template(
                self.prompts[form.prompt], {**values, **({"ARTICLE": part} if text else {})}
            )
            for part in (mark, words)
        )
        messages: tuple[Message, ...] = (Message("user", sent),)
        name = next(iter(form.schema["properties"]))
        schema = {"type": "json_schema", "json_schema": {"name": name, "schema": form.schema}}
        options = {"response_format": schema} if s.forced else {}
        verdict: Verdict = {}
        for tries in range(1, s.tries + 1):
            reply = yield Generate(
                llm or self.judge,
                messages,
                max_tokens=s.max_tokens,
                temperature=temperature,
                seed=s.seed,
                options=options,
            )
            value, reason = form.read(reply)
            words = reply.text or "".join(call.arguments for call in reply.tool_calls)
            exchange = {"prompt": visible, "reply": words}
            verdict = {**exchange, "value": value, "reason": reason, "tries": tries}
            if value is not None:
                break
            again = Message("user", self.prompts["again"])
            messages = (*messages, Message("assistant", words or "…"), again)
        return verdict

    def check(self, question: str, answers: Sequence[str], text: Text) -> Flow:
        """The answer is JSON with two verdicts: ``answerable``, from the article; ``without``, whether a model that is not shown
        it answers right all the same."""
        verdicts: dict[str, Verdict] = {}
        values = {"QUESTION": question}
        if self.settings.answerable:
            verdicts["answerable"] = yield from self.ask(ANSWERABLE, values, text)
        if self.settings.closed_book and (verdicts.get("answerable", {}).get("value") is not False):
            verdicts["closed_book"] = known = yield from self.ask(KNOWN, values, None)
            answer = known["value"]
            without: Verdict
            if answer is None:
                without = {"value": None, "reason": "what was answered could not be read"}
            elif not answer:
                without = {"value": False, "reason": "nothing was answered"}
            elif find_answers(answer, answers):
                without = {"value": True, "reason": "it holds the question's answer"}
            else:
                without = yield from self.ask(RIGHT, {**values, "ANSWER": answer}, text)
            verdicts["without"] = without
        return Outcome(json.dumps(verdicts))


def mentions_its_text(question: str) -> str:
    """The words by which a question points at the text that it was made of, '' if it does not.

    >>> mentions_its_text("What does the article say of Titan?"), mentions_its_text("Who wrote the text of the treaty?")
    ('the article', '')
    """
    match = _LEAKS.search(question)
    return match[0] if match else ""
