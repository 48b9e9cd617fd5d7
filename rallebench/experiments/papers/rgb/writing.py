"""Questions written by a language model, one from each article: RGB's testbeds began with news (arXiv:2309.01431, 2.2).

What was sent and what came back stand in the run's episodes. A reply counts only if it holds a question whose every answer
stands in the article; what it lacks otherwise is counted.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from rallebench.core.errors import BackendError, UsageError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.prompts import check_own, filled
from rallebench.core.runs import RunRequest, RunResult, Values
from rallebench.core.types import (
    Episode,
    Example,
    Flow,
    Generate,
    Gold,
    Message,
    Outcome,
    Passage,
    Question,
)
from rallebench.corpora.reading import read_corpus
from rallebench.experiments.papers.rgb import testbed
from rallebench.experiments.papers.rgb.prompts import text_of
from rallebench.experiments.runs import scored_run
from rallebench.llms._structured import in_form, json_of
from rallebench.metrics.text import find_answers

WORKFLOW = "rgb-questions"
LONGEST = 8000
"""Characters of an article that are shown."""
QUESTION, ANSWER = (
    ("question", "query"),
    ("answers", "answer", "key_information", "key information"),
)
SENTENCES: Mapping[str, str] = {
    "unread": "replies hold no question with an answer as JSON",
    "not_in_article": "questions have an answer that does not stand in the article",
    "too_few_parts": "questions have fewer answers than parts were asked for",
    "not_written": "articles failed: the model gave no reply",
}


@dataclass(frozen=True, slots=True)
class Written:
    """``questions`` that can be used; ``files``: the same in KILT's form; ``counts``: what became of the other articles."""

    name: str
    questions: Sequence[testbed.Asked]
    files: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)


def questions_of(asked: ExperimentRequest) -> Generator[RunRequest, RunResult, Written]:
    """Have a question written from each article; a part of a suite. Raises UsageError before it, BackendError if none came."""
    s = asked.settings
    if not asked.llm:
        raise UsageError(
            "To write questions from articles a language model is needed; name one with --llm."
        )
    if s["known"]:
        raise UsageError(
            "--set known goes with questions that are there: write them first, then give their file as data=FILE."
        )
    asked.workspace.llm(asked.llm)
    kind = "parts" if s["parts"] > 1 else "one"
    name = f"question-{kind}-{s['language']}.txt"
    check_own(s["prompts"], [name])
    prompt = text_of(name, s["prompts"], ("ARTICLE", *(["PARTS"] if kind == "parts" else [])))
    path = asked.workspace.corpus(s["articles"])
    articles = list(
        islice(read_corpus(path), None if asked.limit is None else min(asked.limit, sys.maxsize))
    )
    texts = {
        article.doc_id: f"{article.title}\n{article.text}".strip()[:LONGEST] for article in articles
    }

    def flow(question: Question) -> Flow:
        sent = filled(prompt, {"ARTICLE": texts[question.qid], "PARTS": str(s["parts"])})
        reply = yield Generate(
            asked.llm, (Message("user", sent),), max_tokens=512, temperature=0.0, seed=asked.seed
        )
        return Outcome(reply.text)

    def score(example: Example, episode: Episode) -> Values:
        return {
            "usable": float(
                not read_question(episode.answer, texts[example.question.qid], s["parts"])[1]
            )
        }

    answered = yield scored_run(
        "questions",
        WORKFLOW,
        path.name.split(".")[0],
        tuple(_example(article) for article in articles),
        flow,
        {"prompt": prompt, "parts": s["parts"], "longest": LONGEST},
        score,
        {
            "usable": "The reply holds a question whose every answer stands in the article. Over the articles that did not fail."
        },
        (asked.llm,),
    )
    return _written(answered, articles, texts, s["parts"])


def _example(article: Passage) -> Example:
    """An article as a question without gold; its text is in the prompt alone."""
    name = article.title or article.text[:80] or article.doc_id
    return Example(
        Question(article.doc_id, name), Gold(), {"id": article.doc_id, "input": name, "output": []}
    )


def _written(
    answered: RunResult, articles: Sequence[Passage], texts: Mapping[str, str], parts: int
) -> Written:
    questions, rows = [], []
    counts = Counter[str](articles=answered.n, not_written=answered.n_errors)
    for article in articles:
        episode = answered.episodes.get(article.doc_id)
        if episode is None:
            continue
        (query, answers), fault = read_question(episode.answer, texts[article.doc_id], parts)
        counts[fault] += bool(fault)
        if fault:
            continue
        questions.append(
            testbed.Asked(article.doc_id, query, tuple((answer,) for answer in answers))
        )
        page = [{"wikipedia_id": article.page_id, "title": article.title}]
        several: dict[str, Any] = {"answer": answers} if len(answers) > 1 else {}
        output = [{"answer": answer, "provenance": page} for answer in answers]
        rows.append({"id": article.doc_id, "input": query, "output": output, **several})
    if not questions:
        raise BackendError(
            f"None of the {answered.n} articles gave a question that can be used; read the replies in the run {answered.run!r}."
        )
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return Written(
        answered.request.dataset.name,
        questions,
        {"questions.jsonl": text},
        {"articles": answered.n, **{k: counts[k] for k in SENTENCES}},
    )


def read_question(reply: str, article: str, parts: int = 1) -> tuple[tuple[str, list[str]], str]:
    """(question, answers) of a reply, and what is wrong with it: a key of SENTENCES, or ''.

    >>> read_question('Sure: {"question": "Who came?", "answer": "Ada"}', "Ada came.")
    (('Who came?', ['Ada']), '')
    >>> read_question("I cannot help with that.", "Ada came.")[1]
    'unread'
    """
    schema = {"type": "object", "anyOf": [{"required": [name]} for name in QUESTION]}
    try:
        found = json_of(in_form(reply, schema)[0])
    except BackendError:
        found = None
    fields = (
        {str(key).strip().lower(): value for key, value in found.items()}
        if isinstance(found, Mapping)
        else {}
    )
    query = next(
        (fields[name] for name in QUESTION if isinstance(fields.get(name), str)), ""
    ).strip()
    given: Any = next((fields[name] for name in ANSWER if fields.get(name)), [])
    answers = list(dict.fromkeys(_texts(given if isinstance(given, list) else [given])))
    if not query or not answers:
        return (query, answers), "unread"
    if not all(find_answers(article, (answer,)) for answer in answers):
        return (query, answers), "not_in_article"
    return (query, answers), "too_few_parts" if len(answers) < parts else ""


def _texts(values: Iterable[Any]) -> list[str]:
    plain = (
        str(value).strip()
        for value in values
        if isinstance(value, (str, int, float)) and not isinstance(value, bool)
    )
    return [text for text in plain if text]


def notes_of(counts: Mapping[str, int]) -> tuple[str, ...]:
    """What became of the articles without a question, one sentence each."""
    return tuple(
        f"{counts[what]} of {counts['articles']} {said}."
        for what, said in SENTENCES.items()
        if counts.get(what)
    )
