"""Templates filled with table rows: questions with their answers, and the reasons for omissions.

All rows that fit a question are collected before drawing, so that ambiguous questions are detected.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from rallebench.experiments.builders._templates.tables import SourceTable
from rallebench.experiments.builders._templates.template import PLACE, Template, split_index
from rallebench.experiments.builders.replies import one_line

EMPTY = "with an empty value"
AMBIGUOUS = "that fit several with different answers"
TIED = "with several equally good answers"
GIVEN_AWAY = "with the answer in the question"
MOST_ANSWERS = 50
TOO_MANY = f"with more than {MOST_ANSWERS} answers"

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Filled:
    """A question and its accepted answers. ``stratum``: the value of the template's strata column; ``rows``: the number of
    matching rows."""

    question: str
    answers: tuple[str, ...]
    template: str
    stratum: str = ""
    rows: int = 1


@dataclass
class _Group:
    """The rows that fit one question. ``text``: its values; ``things``: entity, in order → (best, answers) of its matching
    rows."""

    text: str
    stratum: str = ""
    things: dict[str, list[tuple[float | None, tuple[str, ...]]]] = field(default_factory=dict)


def fill(
    template: Template, tables: Mapping[str, SourceTable], several: str = "drop"
) -> tuple[list[Filled], dict[str, int]]:
    """(questions in table order, reason → number of omissions). ``several``: the policy if the template has none."""
    left_out: Counter[str] = Counter()
    questions = []
    for question, group in _groups(template, tables, left_out).items():
        answers, why = _answers(template, group, template.several or several)
        if not why and not template.count and any(_holds(group.text, answer) for answer in answers):
            why = GIVEN_AWAY
        if why:
            left_out[why] += 1
        else:
            n = sum(map(len, group.things.values()))
            questions.append(Filled(question, answers, template.id, group.stratum, n))
    return questions, dict(left_out)


def _groups(
    template: Template, tables: Mapping[str, SourceTable], left_out: Counter[str]
) -> dict[str, _Group]:
    groups: dict[str, _Group] = {}
    key = tables[template.table].key
    for number, row in _join_rows(template, tables):
        texts = {column: _text(_value(row, column)) for column in template.question_columns}
        answers = _answer_texts(template, row)
        best = _number(_value(row, template.best.lstrip("-"))) if template.best else None
        if not all(texts.values()) or not answers or (template.best and best is None):
            left_out[EMPTY] += 1
            continue
        question = " ".join(_put(template.question, texts).split())
        group = groups.setdefault(question, _Group(" | ".join(texts.values())))
        if template.strata:
            group.stratum = _text(_value(row, template.stratum[0]))
        group.things.setdefault(_text(row[key]) if key else str(number), []).append((best, answers))
    return groups


def _join_rows(template: Template, tables: Mapping[str, SourceTable]) -> Iterator[tuple[int, Row]]:
    """(number of the base row, the row with its joined columns)."""
    lookups = []
    for join in template.join:
        lookup: dict[str, list[Row]] = {}
        for row in tables[join.table].rows:
            for value in dict.fromkeys(_values(_value(row, join.right_column))):
                lookup.setdefault(value, []).append(
                    {f"{join.name}.{name}": cell for name, cell in row.items()}
                )
        lookups.append(lookup)

    def widen(row: Row, at: int) -> Iterator[Row]:
        if at == len(lookups):
            yield row
            return
        for value in dict.fromkeys(_values(_value(row, template.join[at].left_column))):
            for more in lookups[at].get(value, ()):
                yield from widen({**row, **more}, at + 1)

    for number, row in enumerate(tables[template.table].rows):
        if _fits(template, row, partly=True):
            yield from ((number, wide) for wide in widen(row, 0) if _fits(template, wide))


def _fits(template: Template, row: Row, partly: bool = False) -> bool:
    """Return whether the row meets the conditions of ``where``; ``partly``: check only columns already present."""
    return all(
        value in _values(_value(row, column))
        for column, value in template.where.items()
        if not partly or split_index(column)[0] in row
    )


def _answers(template: Template, group: _Group, several: str) -> tuple[tuple[str, ...], str]:
    """(answers, '') or ((), the reason for rejection)."""
    rows = [row for of_thing in group.things.values() for row in of_thing]
    each = list(dict.fromkeys(answers for _, answers in rows))
    if template.count or template.best:
        if len(group.things) > 1:
            return (), AMBIGUOUS
        if template.count:
            return (str(len({answer for answers in each for answer in answers})),), ""
        best = max if template.best.startswith("-") else min
        most = best(number for number, _ in rows if number is not None)
        winners = list(dict.fromkeys(answers for number, answers in rows if number == most))
        return (winners[0], "") if len(winners) == 1 else ((), TIED)
    if len(each) == 1:
        return each[0], ""
    if several == "drop":
        return (), AMBIGUOUS
    most_names = 1 if several == "all" else None
    texts = list(dict.fromkeys(answer for answers in each for answer in answers[:most_names]))
    if len(texts) > MOST_ANSWERS:
        return (), TOO_MANY
    return ("; ".join(texts),) if several == "all" else tuple(texts), ""


def _answer_texts(template: Template, row: Row) -> tuple[str, ...]:
    """The accepted answers of one row. The names of an entity (``tail_names``) are alternatives; any other list is a single
    text."""
    if "{" in template.answer:
        texts = {column: _text(_value(row, column)) for column in template.answer_columns}
        return (_put(template.answer, texts),) if all(texts.values()) else ()
    value = _value(row, template.answer)
    if template.answer.endswith("_names") or template.count:
        return tuple(_values(value))
    text = _text(value)
    return (text,) if text else ()


def _put(text: str, values: Mapping[str, str]) -> str:
    return PLACE.sub(lambda place: values[place[1]], text)


def _value(row: Row, column: str) -> Any:
    name, at = split_index(column)
    value = row.get(name)
    if at is None:
        return value
    return value[at] if isinstance(value, list) and -len(value) <= at < len(value) else None


def _values(value: Any) -> list[str]:
    return list(filter(None, map(_text, value if isinstance(value, list) else [value])))


def _text(value: Any) -> str:
    """A value as text for a sentence; list items are joined by commas.

    >>> _text(["a", "b"]), _text(3.0), _text(None)
    ('a, b', '3', '')
    """
    if isinstance(value, list):
        return ", ".join(filter(None, map(_text, value)))
    whole = isinstance(value, float) and value.is_integer()
    return one_line(int(value) if whole else value)


def _number(value: Any) -> float | None:
    with suppress(ValueError, TypeError):
        return None if isinstance(value, bool) else float(value)
    return None


def _holds(text: str, answer: str) -> bool:
    """Return whether the filled question contains its answer. Very short answers are ignored, since they may match by
    chance."""
    plain = " ".join(_plain(answer))
    return len(plain) > 2 and f" {plain} " in f" {' '.join(_plain(text))} "


def _plain(text: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in text.casefold()).split()


# drawing


def draw(filled: Sequence[Filled], template: Template, number: int, seed: int) -> list[Filled]:
    """At most ``number`` questions, in a random order fixed by seed and template.

    With strata, each value first gets the number of questions set in the template, or all it has.
    """
    rng = random.Random(f"{seed} {template.id}")
    mixed = rng.sample(list(filled), len(filled))
    if template.strata:
        missing = dict(template.stratum[1])
        chosen = []
        for question in mixed:
            if missing.get(question.stratum, 0) > 0:
                missing[question.stratum] -= 1
                chosen.append(question)
        mixed = chosen
    return mixed[: min(number, template.number) if template.number else number]


def in_turn(drawn: Iterable[Sequence[Filled]], number: int) -> list[Filled]:
    """``number`` questions, taken from the templates in turn; duplicates are dropped."""
    queues = [iter(questions) for questions in drawn]
    chosen: dict[str, Filled] = {}
    while queues:
        for queue in list(queues):
            new = (question for question in queue if question.question.casefold() not in chosen)
            question = next(new, None)
            if len(chosen) == number:
                return list(chosen.values())
            if question is None:
                queues.remove(queue)
            else:
                chosen[question.question.casefold()] = question
    return list(chosen.values())


def missing_strata(template: Template, filled: Sequence[Filled]) -> dict[str, int]:
    """Value → number of questions missing."""
    present = Counter(question.stratum for question in filled)
    counts = template.stratum[1].items()
    return {value: count - present[value] for value, count in counts if count > present[value]}
