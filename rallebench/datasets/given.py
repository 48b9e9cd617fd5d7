"""Questions passed as Python values, without a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Union

from rallebench.core.errors import BadFileError, UsageError
from rallebench.core.types import Example, Question
from rallebench.datasets._values import NoValueError
from rallebench.datasets.fields import read_row
from rallebench.datasets.kilt import read_gold, record_id, record_input

QuestionValue = Union[str, Mapping[str, object], Example]
"""A question's text; a record with ``question``, ``answers`` and so on, or in KILT's format; or an example."""


def read_values(values: Iterable[QuestionValue]) -> tuple[Example, ...]:
    """Return the examples of ``values``; a question without an id gets its number, from 1.

    Raises BadFileError, which names the question, for a value of the wrong form, and UsageError for an empty list.

    >>> [e.question.qid for e in read_values(["Who?", {"question": "Where?", "answers": ["here"]}])]
    ['1', '2']
    """
    seen: dict[str, int] = {}
    examples = list(_examples(values))
    for number, example in enumerate(examples, 1):
        qid = example.question.qid
        if qid in seen:
            raise BadFileError(
                f"Question {number} repeats the id {qid!r} of question {seen[qid]}; every question needs its own."
            )
        seen[qid] = number
    if not examples:
        raise UsageError("There are no questions in the list; give at least one.")
    return tuple(examples)


def _examples(values: Iterable[QuestionValue]) -> Iterator[Example]:
    for number, value in enumerate(values, 1):
        where = f"Question {number}"
        if isinstance(value, Example):
            yield value
            continue
        record = {"id": str(number), "input": value} if isinstance(value, str) else value
        if not hasattr(record, "keys"):
            raise BadFileError(
                f"{where} is of the type {type(value).__name__}; give a text, a record or an example."
            )
        if "input" not in record:
            try:
                record = read_row(record, number).record
            except NoValueError as error:
                raise BadFileError(f"{where}{error}") from None
        record = {"id": str(number), **record}
        question = Question(record_id(record, where), record_input(record, where))
        yield Example(question, read_gold(record, where), record)
