"""Templates that a language model proposes: what it is shown, and what of its reply can be used."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rallebench.core.errors import BackendError, UsageError
from rallebench.core.prompts import filled
from rallebench.core.structured import json_of
from rallebench.core.types import Flow, Generate, Message, Outcome
from rallebench.experiments.builders._replies import text_of_reply
from rallebench.experiments.builders._templates.tables import SourceTable
from rallebench.experiments.builders._templates.template import Template, check, template_of

SHOWN_ROWS, SHOWN_CHARACTERS = 3, 160
REPEATED = "was proposed before"
_QUESTION, _ANSWER = ("question", "template", "q"), ("answer", "answer_column", "column", "a")


def propose(
    prompt: str,
    tables: Mapping[str, SourceTable],
    table: str,
    number: int,
    llm: str,
    seed: int,
    temperature: float,
) -> Flow:
    """Ask for ``number`` templates over a table; the answer is the reply's text."""
    text = filled(
        prompt, {"NUMBER": str(number), "TABLE": table, "COLUMNS": described(tables[table])}
    )
    reply = yield Generate(
        llm,
        (Message("user", text),),
        max_tokens=100 + 80 * number,
        temperature=temperature,
        seed=seed,
    )
    return Outcome(text_of_reply(reply))


def described(table: SourceTable) -> str:
    """A table's columns with the beginning of its first values."""
    rows = []
    for column in table.columns:
        values = [
            json.dumps(row.get(column), ensure_ascii=False)[:SHOWN_CHARACTERS]
            for row in table.rows[:SHOWN_ROWS]
        ]
        rows.append(f"- {column}: for example {', '.join(values)}")
    return f'Table "{table.name}", {len(table.rows)} rows:\n' + "\n".join(rows)


def read_proposals(
    reply: str,
    tables: Mapping[str, SourceTable],
    table: str,
    most: int,
    taken: Mapping[str, str] | None = None,
) -> list[tuple[dict[str, Any], str]]:
    """(template as JSON, why it cannot be used or '') of each one that a reply holds, at most ``most``.

    ``taken``: question → id of templates that are there already.
    """
    proposals: list[tuple[dict[str, Any], str]] = []
    seen = {question.casefold() for question in taken or {}}
    for row in _objects(reply):
        if len(proposals) == most:
            break
        question, answer = (
            next((str(row[key]).strip() for key in keys if row.get(key)), "")
            for keys in (_QUESTION, _ANSWER)
        )
        plain = {
            "question": question,
            "answer": answer.strip("{} ") if answer.count("{") <= 1 else answer,
        }
        why = ""
        try:
            template = template_of({**plain, "table": table}, list(tables), "proposed")
            check(template, tables)
        except (ValueError, UsageError) as wrong:
            why = _sentence(str(wrong))
        if not why and question.casefold() in seen:
            why = REPEATED
        seen.add(question.casefold())
        proposals.append((plain, why))
    return proposals


def _sentence(text: str) -> str:
    return text.replace("The template 'proposed' names", "it names")


def _objects(reply: str) -> list[Mapping[str, Any]]:
    """The objects of a reply: a JSON list or object in any wrapping, or JSON objects line by line."""
    value: Any = None
    try:
        value = json_of(reply)
    except BackendError:
        return []
    if isinstance(value, Mapping):
        lists = [item for item in value.values() if isinstance(item, list)]
        value = lists[0] if lists else _by_line(reply) or [value]
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _by_line(reply: str) -> list[Any]:
    values = []
    for line in reply.splitlines():
        try:
            values.append(json.loads(line.strip().strip("-* ,")))
        except (ValueError, RecursionError):
            continue
    return values


def numbered(
    template: Mapping[str, Any], name: str, table: str, tables: Mapping[str, SourceTable]
) -> Template:
    """A proposal as a template of its own id."""
    return replace(template_of({**template, "table": table}, list(tables), name), id=name)
