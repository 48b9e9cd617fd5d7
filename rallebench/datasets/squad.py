"""SQuAD 1.1 and 2.0 (Rajpurkar et al. 2016, arXiv:1606.05250; 2018, arXiv:1806.03822), and other sets in their form: a JSON
object whose ``data`` is a list of articles with ``title`` and ``paragraphs`` (``context`` and ``qas``).

Declining is right for an impossible question; its plausible answers are left out. The gold page is the title of the article. The
copy on Hugging Face has one row per question, with ``title``, ``context`` and ``answers`` ({text: [], answer_start: []}). A row
without an answer is impossible there, also in a test split.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rallebench.core.sources import Source
from rallebench.datasets import DATASETS, Record
from rallebench.datasets._published import PublishedSet, page, record
from rallebench.datasets.kilt import first_rows

ARTICLES = "data"
"""Key of the articles."""


def _fits(row: Record) -> bool:
    answers = row["answers"]
    return isinstance(answers, dict) and {"text", "answer_start"} <= answers.keys()


SQUAD = PublishedSet(
    "SQuAD",
    ("id", "question", "context", "answers"),
    "dev-v2.0.json or dev-v1.1.json of SQuAD",
    copy=("id", "question", "context", "answers", "title"),
    like=_fits,
    english=False,
)
SAMPLE = """{"version": "v2.0", "data": [
 {"title": "Titan_(moon)", "paragraphs": [
  {"context": "Titan is the largest moon of Saturn. Huygens discovered it in 1655.", "qas": [
   {"id": "a1", "question": "Which moon did Huygens discover?", "answers": [{"text": "Titan", "answer_start": 0}, {"text": "Titan", "answer_start": 0}], "is_impossible": false},
   {"id": "a2", "question": "Which ring did Huygens discover?", "answers": [], "plausible_answers": [{"text": "Titan", "answer_start": 0}], "is_impossible": true}]}]},
 {"title": "Danube", "paragraphs": [
  {"context": "It reaches the Black Sea.", "qas": [
   {"id": "b1", "question": "Which sea does it reach?", "answers": [{"text": "Black Sea", "answer_start": 15}], "is_impossible": false}]}]}]}
"""


def recognises(path: Path) -> bool:
    """Return whether a file has SQuAD's articles, or the rows of its copy."""
    if not path.is_file():
        return False
    titled = all("title" in row for row in first_rows(path))
    return _has_articles(path) or (titled and SQUAD.recognises(path))


def _has_articles(path: Path) -> bool:
    articles = first_rows(path, ARTICLES)
    return any(isinstance(article.get("paragraphs"), list) for article in articles)


def _questions(source: Source) -> Iterator[tuple[int, Record]]:
    """Yield (number, question with its title and context) of SQuAD's articles, or (line, row) of the copy."""
    if source.path.is_dir() or (source.path.is_file() and not _has_articles(source.path)):
        yield from source.objects()
        return
    number = 0
    for article_number, article in source.objects(ARTICLES):
        try:
            rows = [
                {**question, "context": paragraph["context"], "title": article.get("title")}
                for paragraph in article["paragraphs"]
                for question in paragraph["qas"]
            ]
        except (LookupError, TypeError):
            source.problems.add(
                number + 1,
                f"{source.path}, article {article_number} has no paragraphs with context and qas; take {SQUAD.take}.",
            )
            continue
        source.unit = "question"
        for row in rows:
            number += 1
            yield number, row


def _record(row: Record) -> Record:
    answers, impossible = row["answers"], row.get("is_impossible", False)
    if not isinstance(impossible, bool):
        raise TypeError(impossible)
    if isinstance(answers, dict):
        texts = list(answers["text"])
        impossible = impossible or not texts
    else:
        texts = [answer["text"] for answer in answers]
    title = row.get("title")
    gold = {**page(title, row["context"]), "title": title.replace("_", " ")} if title else None
    return record(
        row["question"],
        [] if impossible else texts,
        sets=[[gold]] if gold else [],
        id=row["id"],
        unanswerable=True if impossible else None,
    )


@DATASETS.register("squad", recognises=recognises, sample={"dev-v2.0.json": SAMPLE})
def read_squad(source: Source) -> Iterator[tuple[int, Record]]:
    """SQuAD's own JSON object, 1.1 or 2.0; declining is right for an impossible question. The gold page is the title."""
    return SQUAD.records(source, _record, _questions(source))
