"""Templates proposed by a language model: the prompt, and the usable templates of the reply."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rallebench.core.errors import BackendError, UsageError
from rallebench.core.prompts import fill_template
from rallebench.core.structured import decode_json, find_json
from rallebench.core.types import Flow, Generate, Message, Outcome
from rallebench.experiments.builders._templates.tables import SourceTable
from rallebench.experiments.builders._templates.template import check, parse_template

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
    """Ask for ``number`` templates over a table; the answer is the text of the reply."""
    text = fill_template(
        prompt, {"NUMBER": str(number), "TABLE": table, "COLUMNS": describe_columns(tables[table])}
    )
    reply = yield Generate(
        llm,
        (Message("user", text),),
        max_tokens=100 + 80 * number,
        temperature=temperature,
        seed=seed,
    )
    return Outcome(reply.text.strip())


def describe_columns(table: SourceTable) -> str:
    """The columns of a table, each with shortened examples of its values."""
    lines = [f'Table "{table.name}", {len(table.rows)} rows:']
    for column in table.columns:
        first = (json.dumps(row.get(column), ensure_ascii=False) for row in table.rows[:SHOWN_ROWS])
        values = ", ".join(value[:SHOWN_CHARACTERS] for value in first)
        lines.append(f"- {column}: for example {values}")
    return "\n".join(lines)


def read_proposals(
    reply: str, tables: Mapping[str, SourceTable], table: str, most: int, known: Iterable[str] = ()
) -> list[tuple[dict[str, Any], str]]:
    """(template as JSON, reason for rejection or '') of at most ``most`` templates in a reply. ``known``: questions of earlier
    templates."""
    proposals: list[tuple[dict[str, Any], str]] = []
    seen = {question.casefold() for question in known}
    for row in _objects(reply)[:most]:
        question, answer = (
            next((str(row[key]).strip() for key in keys if row.get(key)), "")
            for keys in (_QUESTION, _ANSWER)
        )
        answer = answer.strip("{} ") if answer.count("{") <= 1 else answer
        plain = {"question": question, "answer": answer}
        try:
            check(
                parse_template({**plain, "table": table}, list(tables), "proposed", "the proposal"),
                tables,
            )
            why = REPEATED if question.casefold() in seen else ""
        except UsageError as wrong:
            why = str(wrong).replace("The template 'proposed' names", "it names")
        seen.add(question.casefold())
        proposals.append((plain, why))
    return proposals


def _objects(reply: str) -> list[Mapping[str, Any]]:
    """The objects of a reply: a JSON list or object with any text around it, or JSON objects line by line."""
    try:
        value = find_json(reply)
    except BackendError:
        return []
    if isinstance(value, Mapping):
        lists = [item for item in value.values() if isinstance(item, list)]
        by_line = [decode_json(line.strip().strip("-* ,")) for line in reply.splitlines()]
        value = lists[0] if lists else list(filter(None, by_line)) or [value]
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
