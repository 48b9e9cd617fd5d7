"""TriviaQA (Joshi et al. 2017, arXiv:1705.03551), of any part (web, Wikipedia, unfiltered): a JSON object whose ``Data`` is a list
of records with ``QuestionId``, ``Question``, ``Answer`` (Value, Aliases, NormalizedAliases, HumanAnswers), ``EntityPages`` and
``SearchResults``.

Every alias is accepted, as by TriviaQA's own evaluation, which compares with the normalised ones. Each entity page is an evidence
set of its own. TriviaQA has its pages from a search: in the unfiltered part, a page need not contain the answer. The copy on
Hugging Face has the same fields in other letters, and columns instead of lists of pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from rallebench.core.answers import normalize_answer
from rallebench.datasets import Record
from rallebench.datasets._published import PublishedSet, page, record

TRIVIAQA = PublishedSet(
    "TriviaQA",
    ("QuestionId", "Question", "Answer"),
    "a train or dev file of TriviaQA, such as web-dev.json",
    inside="Data",
    copy=("question_id", "question", "answer", "entity_pages"),
)
UNKNOWN = "<unk>"
"""Value of the answer in test splits on Hugging Face."""
SAMPLE = """{"Data": [
 {"Question": "Which moon did Huygens discover?", "QuestionId": "tc_1", "QuestionSource": "http://example.org/",
  "Answer": {"Value": "Titan (moon)", "Aliases": ["Titan (moon)", "Saturn VI"], "NormalizedAliases": ["titan moon", "saturn vi"], "NormalizedValue": "titan moon", "Type": "WikipediaEntity"},
  "EntityPages": [{"DocSource": "TagMe", "Filename": "Titan_(moon).txt", "Title": "Titan (moon)"}, {"DocSource": "Search", "Filename": "Saturn.txt", "Title": "Saturn"}],
  "SearchResults": [{"Title": "Moons", "Url": "http://example.org/moons", "Filename": "0/0_1.txt", "Rank": 0}]},
 {"Question": "Which sea does the Danube reach?", "QuestionId": "tc_2", "QuestionSource": "http://example.org/",
  "Answer": {"Value": "Black Sea", "Aliases": ["Black Sea"], "NormalizedAliases": ["black sea"], "NormalizedValue": "black sea", "HumanAnswers": ["the black sea"], "Type": "WikipediaEntity"},
  "EntityPages": [], "SearchResults": []}],
 "Domain": "Web", "Split": "dev", "VerifiedEval": false, "Version": 1.0}
"""


def _lower(fields: Record) -> Record:
    """Return fields by their names on Hugging Face: ``NormalizedAliases`` becomes ``normalized_aliases``."""
    return {re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(): value for name, value in fields.items()}


def _accepted_answers(answer: Record) -> list[str]:
    """Return the accepted answers, and the normalised ones that the comparison of answers would not find among them."""
    texts = [answer.get("value"), *answer.get("aliases", ()), *answer.get("human_answers", ())]
    accepted = [text for text in dict.fromkeys(texts) if text and text != UNKNOWN]
    normal = set(map(normalize_answer, accepted))
    more = (text for text in answer.get("normalized_aliases", ()) if text and text != UNKNOWN)
    return [*accepted, *(text for text in more if normalize_answer(text) not in normal)]


def _titles(pages: Record | Iterable[Record]) -> Iterable[str]:
    """Return the titles in a list of pages, or in columns."""
    if isinstance(pages, Mapping):
        return list(pages.get("title", ()))
    return [_lower(entry).get("title", "") for entry in pages]


def _record(row: Record) -> Record:
    fields = _lower(row)
    return record(
        fields["question"],
        _accepted_answers(_lower(fields["answer"] or {})),
        sets=[[page(title)] for title in _titles(fields.get("entity_pages") or ()) if title],
        id=fields["question_id"],
        dataset="triviaqa",
    )


TRIVIAQA.register(
    "triviaqa",
    "TriviaQA's own JSON object with Data; aliases are accepted, and each entity page is a gold page.",
    _record,
    {"web-dev.json": SAMPLE},
)
