"""Questions written by a language model, one per article; RGB's own testbeds also started from news (arXiv:2309.01431, 2.2).

The episodes of the run contain prompts and replies. A reply is valid only if it contains a question with all its answers in
the article; the faults of other replies are counted.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from rallebench.core.answers import find_answers
from rallebench.core.errors import BackendError, Hint, UsageError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.files import json_lines
from rallebench.core.prompts import fill_template, find_wording, prompt_text
from rallebench.core.runs import DatasetRef, RunRequest, RunResult
from rallebench.core.scoring import Values
from rallebench.core.structured import json_in
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
    Reply,
)
from rallebench.corpora.reading import read_corpus
from rallebench.experiments.common import scored_run
from rallebench.papers.common import count_sentences, flow_spec
from rallebench.papers.rgb.records import RgbRecord, write_required
from rallebench.papers.rgb.settings import RecordSettings
from rallebench.papers.rgb.testbed import FOLDER
from rallebench.workspace.paths import WorkspaceFolder

WORKFLOW = "rgb-questions"
MAX_ARTICLE_CHARACTERS = 8000
"""The most characters of an article in a prompt."""
QUESTION = ("question", "query")
ANSWER = ("answers", "answer", "key_information", "key information")
USABLE = {
    "usable": "The reply holds a question whose every answer stands in the article. Over the articles that did not fail."
}
SENTENCES: Mapping[str, str] = {
    "unread": "replies hold no question with an answer as JSON",
    "not_in_article": "questions have an answer that does not stand in the article",
    "too_few_parts": "questions have fewer answers than parts were asked for",
    "not_written": "articles failed: the model gave no reply",
}


@dataclass(frozen=True, slots=True)
class SourceQuestions:
    """Usable ``questions``. ``counts``: fault → number of omitted questions or articles; ``notes``: remarks on omitted
    articles; ``files``: the written questions in KILT's form."""

    name: str
    questions: Sequence[RgbRecord]
    counts: Mapping[str, int]
    notes: tuple[str, ...] = ()
    files: Mapping[str, Iterable[str]] = field(default_factory=dict)


def write_questions(
    request: ExperimentRequest[WorkspaceFolder], settings: RecordSettings
) -> Generator[RunRequest, RunResult, SourceQuestions]:
    """Have a model write a question about each article. Raises UsageError before the run, BackendError without a usable
    question."""
    parts = settings.parts
    if not request.llm:
        raise UsageError(
            "To write questions from articles a language model is needed.",
            hint=Hint("choose", "llm"),
        )
    if settings.known:
        raise UsageError(
            "known goes with questions that are there: write them first.",
            hint=Hint("set", "data=FILE"),
        )
    request.workspace.llm(request.llm)
    fields = ("ARTICLE", "PARTS") if parts > 1 else ("ARTICLE",)
    file = f"question-{'parts' if parts > 1 else 'one'}-{settings.language}.txt"
    find_wording(settings.prompts, [(FOLDER, file)])
    prompt = prompt_text(FOLDER, file, settings.prompts, fields)
    path = request.workspace.corpus(settings.articles)
    limit = None if request.limit is None else min(request.limit, sys.maxsize)
    articles = list(islice(read_corpus(path), limit))
    name = path.name.split(".")[0]
    result = yield _questions_run(request, name, prompt, articles, parts)
    return _usable(result, articles, parts)


def _questions_run(
    request: ExperimentRequest[WorkspaceFolder],
    name: str,
    prompt: str,
    articles: Sequence[Passage],
    parts: int,
) -> RunRequest:
    texts = {article.doc_id: _text(article) for article in articles}

    def flow(question: Question) -> Flow:
        sent = fill_template(prompt, {"ARTICLE": texts[question.qid], "PARTS": str(parts)})
        message = Message("user", sent)
        reply = yield Generate(
            request.llm, (message,), max_tokens=512, temperature=0.0, seed=request.seed
        )
        return Outcome(reply.text)

    def score(example: Example, episode: Episode) -> Values:
        _, fault = read_question(episode.answer, texts[example.question.qid], parts)
        return {"usable": float(not fault)}

    settings = {"prompt": prompt, "parts": parts, "longest": MAX_ARTICLE_CHARACTERS}
    examples = []
    for article in articles:  # a question without gold; the article is only in the prompt
        title = article.title or article.text[:80] or article.doc_id
        record = {"id": article.doc_id, "input": title, "output": []}
        examples.append(Example(Question(article.doc_id, title), Gold(), record))
    asking = flow_spec(WORKFLOW, flow, settings, (request.llm,))
    return scored_run("questions", asking, DatasetRef(name), tuple(examples), score, USABLE)


def _text(article: Passage) -> str:
    """The article's text for the prompt."""
    return f"{article.title}\n{article.text}".strip()[:MAX_ARTICLE_CHARACTERS]


def _usable(result: RunResult, articles: Sequence[Passage], parts: int) -> SourceQuestions:
    questions, rows = [], []
    counts: Counter[str] = Counter(not_written=result.n_errors)
    for article in articles:
        qid = article.doc_id
        if qid not in result.episodes:
            continue
        (query, answers), fault = read_question(result.episodes[qid].answer, _text(article), parts)
        counts[fault] += 1
        if fault:
            continue
        required = tuple((answer,) for answer in answers)
        questions.append(RgbRecord(qid, query, write_required(required), required))
        page = [{"wikipedia_id": article.page_id, "title": article.title}]
        several: dict[str, Any] = {"answer": answers} if len(answers) > 1 else {}
        output = [{"answer": answer, "provenance": page} for answer in answers]
        rows.append({"id": qid, "input": query, "output": output, **several})
    if not questions:
        raise BackendError(
            f"None of the {result.n} articles gave a question that can be used; read the replies in the run {result.run!r}."
        )
    faults = {"articles": result.n, **{fault: counts[fault] for fault in SENTENCES}}
    name, files = result.request.dataset.name, {"questions.jsonl": json_lines(rows)}
    notes = count_sentences(faults, SENTENCES, f"of {result.n}")
    return SourceQuestions(name, questions, faults, notes, files)


def read_question(reply: str, article: str, parts: int = 1) -> tuple[tuple[str, list[str]], str]:
    """((question, answers) of a reply, its fault as a key of SENTENCES, or '').

    >>> read_question('Sure: {"question": "Who came?", "answer": "Ada"}', "Ada came.")
    (('Who came?', ['Ada']), '')
    >>> read_question("I cannot help with that.", "Ada came.")[1]
    'unread'
    """
    schema = {"type": "object", "anyOf": [{"required": [name]} for name in QUESTION]}
    fields: dict[str, Any] = {}
    for value in json_in(Reply(reply), schema):
        if isinstance(value, Mapping):
            fields = {str(key).strip().lower(): content for key, content in value.items()}
    query = next((q for name in QUESTION if isinstance(q := fields.get(name), str)), "").strip()
    content: Any = next((fields[name] for name in ANSWER if fields.get(name)), [])
    plain = (
        str(value).strip()
        for value in (content if isinstance(content, list) else [content])
        if isinstance(value, (str, int, float)) and not isinstance(value, bool)
    )
    answers = list(dict.fromkeys(filter(None, plain)))
    if not query or not answers:
        fault = "unread"
    elif not all(find_answers(article, (answer,)) for answer in answers):
        fault = "not_in_article"
    else:
        fault = "too_few_parts" if len(answers) < parts else ""
    return (query, answers), fault
