"""Model requests as flows: recency of an article, questions about it, and checks of a question."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

from rallebench.core.answers import find_answers
from rallebench.core.declining import declines
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.prompts import fill_template
from rallebench.core.types import Flow, Generate, Json, Message, Outcome, Reply, SubFlow
from rallebench.engine.rowfile import RowFile
from rallebench.experiments.builders.replies import (
    one_line,
    parse_fields,
    read_boolean,
    read_questions,
)
from rallebench.experiments.builders.rows import ArticleRow
from rallebench.papers.barag.builder_rows import Checks, ModelVerdict
from rallebench.papers.barag.builder_settings import BaragBuilderSettings
from rallebench.workspace.paths import WorkspaceFolder

Text = tuple[str, str]
"""(id of an article, its beginning as shown to a model)."""
V = TypeVar("V")

_TEXTS = r"text|article|passage|excerpt|extract|document|content"
_LEAKS = re.compile(
    rf"\b(?:this|given|above|provided|following|present) (?:{_TEXTS})\b(?! of\b)|\bthe (?:text|article|passage|excerpt)\b(?! of\b)"
    rf"|\baccording to the (?:{_TEXTS})\b|\bmentioned (?:above|in the (?:{_TEXTS}))\b"
    r"|(?:本|该|此|上)文|文中|文章(?:中|里|提到)|这篇(?:文章|文本|报道)|(?:根据|依据)(?:文本|文章|材料|报道)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Form(Generic[V]):
    """A kind of request. ``prompt``: the prompt's name; ``schema``: the JSON schema of the reply; ``read``: reply → (value,
    reason), with the value None for an unreadable reply."""

    prompt: str
    schema: Json
    read: Callable[[Reply], tuple[V | None, str]]


def _object_schema(**fields: Json) -> Json:
    """The schema of an object with its first field required."""
    return {"type": "object", "properties": fields, "required": [next(iter(fields))]}


STRING, BOOLEAN = {"type": "string"}, {"type": "boolean"}


def _yes_or_no(prompt: str, name: str, reason: str = "reason") -> Form[bool]:
    """A request with a boolean in the field ``name`` and a justification in the field ``reason``."""

    def read(reply: Reply) -> tuple[bool | None, str]:
        return read_boolean(reply, name), one_line(parse_fields(reply, name).get(reason))

    return Form(prompt, _object_schema(**{name: BOOLEAN, reason: STRING}), read)


def _read_known(reply: Reply) -> tuple[str | None, str]:
    """A model's answer without the article: '' if it declines, None if the reply is empty.

    A plain-text reply also counts as an answer.
    """
    if fields := parse_fields(reply, "known"):
        answer = one_line(fields.get("answer"))
        return ("" if read_boolean(reply, "known") is False or declines(answer) else answer), ""
    words = reply.text.strip()
    return ("" if words and declines(words) else words or None), ""


RECENT = _yes_or_no("recency", "recent")
ANSWERABLE = _yes_or_no("answerable", "answerable", "answer")
KNOWN = Form("closed-book", _object_schema(known=BOOLEAN, answer=STRING), _read_known)
RIGHT = _yes_or_no("right", "right")

Questions = list[tuple[str, tuple[str, ...]]]
"""Questions with their answers."""


def questions_form(number: int, answers: bool) -> Form[Questions]:
    """A request for at most ``number`` questions, with ``answers`` or without."""
    fields = {"question": STRING, "answer": STRING} if answers else {"question": STRING}
    item = {"type": "object", "properties": fields, "required": list(fields)}
    schema = _object_schema(questions={"type": "array", "items": item})

    def read(reply: Reply) -> tuple[Questions | None, str]:
        return read_questions(reply, number) or None, ""

    return Form("questions", schema, read)


@dataclass(frozen=True, slots=True)
class BaragPlan:
    """The checked inputs of the stages. ``after``: None accepts any date."""

    request: ExperimentRequest[WorkspaceFolder]
    settings: BaragBuilderSettings
    kind: str
    path: Path
    after: datetime | None
    dates: Mapping[str, str]
    prompts: Mapping[str, str]

    @property
    def judge(self) -> str:
        return self.settings.judge or self.request.llm

    def text(self, store: RowFile, name: str) -> Text:
        """The part of an article shown to a model: the beginning of its title and content."""
        article = store.read_first(name, ArticleRow)
        return name, f"{article.title}\n{article.content}"[: self.settings.characters]

    def depends_on(self, *prompts: str) -> list[Any]:
        """Everything that determines the replies to these prompts, apart from model, temperature and article."""
        s = self.settings
        texts = [self.prompts[name] for name in ("again", *prompts)]
        return [s.seed, s.max_tokens, s.forced, s.tries, s.characters, *texts]

    def ask(
        self,
        form: Form[V],
        values: Mapping[str, str],
        text: Text | None,
        llm: str = "",
        temperature: float = 0.0,
    ) -> SubFlow[ModelVerdict[V]]:
        """Ask ``llm`` (by default the judge) until its reply is readable, at most ``tries`` times. Return the last verdict."""
        s, (id, words) = self.settings, text or ("", "")
        mark = f"[the first {len(words)} characters of {id}]"
        visible, sent = (
            fill_template(
                self.prompts[form.prompt], {**values, **({"ARTICLE": part} if text else {})}
            )
            for part in (mark, words)
        )
        messages: tuple[Message, ...] = (Message("user", sent),)
        verdict: ModelVerdict[V] = ModelVerdict()
        for tries in range(1, s.tries + 1):
            reply = yield Generate(
                llm or self.judge,
                messages,
                max_tokens=s.max_tokens,
                temperature=temperature,
                seed=s.seed,
                options=_response_format(form.schema) if s.forced else {},
            )
            value, reason = form.read(reply)
            words = reply.text or "".join(call.arguments for call in reply.tool_calls)
            verdict = ModelVerdict(value, reason, visible, words, tries)
            if value is not None:
                break
            again = Message("user", self.prompts["again"])
            messages = (*messages, Message("assistant", words or "…"), again)
        return verdict

    def check(self, question: str, answers: Sequence[str], text: Text) -> Flow:
        """Request the verdicts on a question; the answer is ``Checks`` as JSON. The closed-book check is made only for a
        question that its article answers."""
        checks, values = Checks(), {"QUESTION": question}
        if self.settings.answerable:
            checks = Checks((yield from self.ask(ANSWERABLE, values, text)))
        unanswerable = checks.answerable and checks.answerable.value is False
        if self.settings.closed_book and not unanswerable:
            known = yield from self.ask(KNOWN, values, None)
            without = yield from self._is_right(known.value, question, answers, text)
            checks = Checks(checks.answerable, known, without)
        return Outcome(json.dumps(checks.to_json()))

    def _is_right(
        self, answer: str | None, question: str, answers: Sequence[str], text: Text
    ) -> SubFlow[ModelVerdict[bool]]:
        """The verdict on an answer given without the article."""
        if answer is None:
            return ModelVerdict(None, "what was answered could not be read")
        if not answer:
            return ModelVerdict(False, "nothing was answered")
        if find_answers(answer, answers):
            return ModelVerdict(True, "it holds the question's answer")
        return (yield from self.ask(RIGHT, {"QUESTION": question, "ANSWER": answer}, text))


def _response_format(schema: Json) -> Json:
    """The option that forces this reply form, named after the required field."""
    (name,) = schema["required"]
    return {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": name, "schema": schema},
        }
    }


def mentions_its_text(question: str) -> str:
    """The words in a question that refer to its source text, or ''.

    >>> mentions_its_text("What does the article say of Titan?"), mentions_its_text("Who wrote the text of the treaty?")
    ('the article', '')
    """
    match = _LEAKS.search(question)
    return match[0] if match else ""
