"""The questions of ``reader.py``: sets in KILT's format, each question with a ranking of all paragraphs."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import _report

from rallebench.corpora.page_maps import read_page_map
from rallebench.corpora.reading import read_corpus
from rallebench.encoders.minilm import MiniLM
from rallebench.reader import Task
from rallebench.reader.spans import SpanReader
from tools.reader import prompts
from tools.reader.prompts import ParagraphQuestion
from tools.reader.sources import part_of

TESTED = "XQuAD, test articles"
SEARCH = "search questions (NQ), test articles"


@dataclass(frozen=True)
class QuestionSet:
    """A set's questions with their paragraphs, and each question's ranking of all paragraphs."""

    name: str
    questions: Sequence[ParagraphQuestion]
    titles: Sequence[str]
    paragraphs: Sequence[str]
    rankings: Sequence[Sequence[int]]


def read_set(
    name: str, corpus: Path, questions: Path, limit: int, page_map: Path | None = None
) -> QuestionSet:
    """QuestionSet in KILT's format; those without a paragraph in the corpus are left out.

    Where provenance names only the page, the paragraph is the page's first that holds an answer.
    """
    passages = list(read_corpus(corpus, read_page_map(page_map) if page_map else None))
    by_id = {p.doc_id: i for i, p in enumerate(passages)}
    by_page: dict[str, list[int]] = {}
    for number, passage in enumerate(passages):
        by_page.setdefault(passage.page_id, []).append(number)
    every = []
    for record in map(json.loads, questions.read_text(encoding="utf-8").splitlines()):
        answers = tuple(o["answer"] for o in record["output"] if o.get("answer"))
        places = [p for o in record["output"] for p in o.get("provenance", [])]
        named = [by_id[str(p["doc_id"])] for p in places if str(p.get("doc_id")) in by_id]
        pages = [
            n for p in places if "doc_id" not in p for n in by_page.get(str(p["wikipedia_id"]), [])
        ]
        named += [n for n in pages if any(a.lower() in passages[n].text.lower() for a in answers)]
        if answers and named:
            every.append(ParagraphQuestion(record["input"], answers, named[0]))
    sampled = prompts.sampled(every, limit, _report.SEED)
    texts = [p.text for p in passages]
    rankings = prompts.rankings(sampled, texts, MiniLM())
    return QuestionSet(name, sampled, [p.title for p in passages], texts, rankings.tolist())


def untrained(
    questions: QuestionSet, trained: Iterable[str], hashed: bool, limit: int
) -> QuestionSet:
    """At most ``limit`` of the questions whose article is one for testing and not in ``trained``, the articles that
    the weights say they learned from; all paragraphs stay."""
    known = set(trained)
    titles = [questions.titles[question.gold].replace("_", " ") for question in questions.questions]
    rows = [
        i
        for i, title in enumerate(titles)
        if part_of(title, hashed) == "test" and title not in known
    ]
    rows = prompts.sampled(rows, limit, _report.SEED)
    selected, rankings = (
        [every[i] for i in rows] for every in (questions.questions, questions.rankings)
    )
    return QuestionSet(questions.name, selected, questions.titles, questions.paragraphs, rankings)  # type: ignore[arg-type]


def prompts_of(questions: QuestionSet, form: str) -> list[Task]:
    """A task for each question. ``form``: gold, five, nearest or absent."""
    rng = random.Random(_report.SEED)
    tasks = []
    for question, ranking in zip(questions.questions, questions.rankings):
        if form == "gold":
            numbers = [question.gold]
        elif form == "five":
            numbers = prompts.with_gold(question, ranking, rng)
        elif form == "nearest":
            numbers = list(ranking[:5])
        else:
            numbers = prompts.without_gold(question, ranking, questions.paragraphs)
        tasks.append(prompts.task_of(question, numbers, questions.paragraphs))
    return tasks


def sets_of(data: Path | None, limit: int, reader: SpanReader) -> list[QuestionSet]:
    """The sets; the first and the last have targets, unless they are the starter's."""
    if data is None:
        starter = _report.PROJECT / "rallebench" / "starter"
        questions = starter / "questions" / "starter-qa.jsonl"
        return [
            read_set(
                "starter-qa", starter / "corpus.tsv", questions, limit, starter / "page_map.json"
            )
        ]
    # Every article's questions are read, so that the limit counts those of the test articles.
    sets = []
    for name, stem, hashed in ((TESTED, "xquad_en", False), (SEARCH, "qed_nq", True)):
        every = read_set(name, data / f"{stem}_corpus.tsv", data / f"{stem}_kilt.jsonl", 10**6)
        sets.append(untrained(every, reader.about["trained_articles"], hashed, limit))
    return sets
