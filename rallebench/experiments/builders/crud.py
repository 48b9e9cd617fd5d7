"""Tasks in CRUD-RAG's form of one's own articles: summary, continuation, correction, questions on 1, 2 and 3 articles.

After section 3 of Lyu et al. 2024 (arXiv:2401.17043), with any model. Every record names its articles (``gold_doc_ids``):
questions, summaries and corrections are to be retrieved for from an index over them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Report, Row, RowsRequest
from rallebench.core.prompts import filled
from rallebench.core.settings import Setting
from rallebench.core.types import Episode, Flow, Generate, Message, Outcome
from rallebench.engine.rowfile import RowFile
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.builders import _crud as cutting
from rallebench.experiments.builders._replies import (
    declined,
    fields_of,
    read_prompts,
    text_field,
    text_of_reply,
)
from rallebench.experiments.builders.articles import (
    SOURCES,
    SourceArticle,
    drawn,
    read_articles,
    source_of,
    stamp_of,
    text_of,
)
from rallebench.experiments.papers.common import own_prompts, string
from rallebench.experiments.papers.crud.records import CrudTask, tasks_of

PROMPTS: Mapping[str, tuple[str, ...]] = {
    "summary": ("ARTICLE",),
    "correction": ("OPENING", "CONTINUATION"),
    "question-one": ("ARTICLE",),
    "question-several": ("NUMBER", "ARTICLES"),
}
"""File below ``prompts/making/crud`` → what must stand in it in braces."""
SIZES = {"qa2": 2, "qa3": 3}
NO_PARTS = "no two parts of whole sentences"
FILE = "split_merged.json"

Fields = Mapping[str, Any]
Reading = Callable[[Row, Fields], "Row | str"]
"""Input, the fields of the reply → the record's fields, or why there is none."""


@EXPERIMENTS.register(
    "build-crud",
    place="builders",
    needs_llm=False,
    form={
        "tasks": Setting(str, "all", about="as in summary,qa1, or quest_answer, or all"),
        "source": string("what the articles are; auto: as the file or folder looks", *SOURCES),
        "shortest": Setting(int, 200, 1, 1_000_000, about="characters that an article must have"),
        "longest": Setting(
            int, 4000, 100, 10_000_000, about="characters of an article that are used"
        ),
        "random": Setting(bool, False, about="whether --limit draws articles at random"),
        "temperature": Setting(float, 0.7, 0, 2),
        "max_tokens": Setting(int, 2048, 1, 100_000),
        "seed": Setting(int, 0, 0),
        "prompts": own_prompts("making/crud"),
    },
)
def crud(request: ExperimentRequest) -> Experiment:
    """CRUD-RAG's tasks of your own articles, as split_merged.json, and its questions as a question set."""
    tasks = tasks_of(request.settings["tasks"])
    files = [WRITTEN[task.name].prompt for task in tasks if task.name in WRITTEN]
    fields = {file: PROMPTS[file] for file in files}
    prompts = read_prompts("crud", request.settings["prompts"], fields)
    if prompts and not request.llm:
        raise UsageError(
            "All tasks but continuation are written by a language model; name one with --llm."
        )
    articles = yield _articles(request)
    records: dict[str, list[Row]] = {}
    notes: list[str] = []
    for number, task in enumerate(tasks, 2):
        inputs = articles
        if task.name in SIZES:
            inputs = yield _groups(f"{number}-{task.name}-groups", articles, SIZES[task.name])
            if not len(inputs):
                notes.append(
                    f"{task.name}: no {SIZES[task.name]} articles share a word that is not in most of them."
                )
        rows = yield _stage(request, task, f"{number}-{task.name}", inputs, prompts)
        records[task.name] = [row for row in rows if row["keep"] and not row.get("error")]
    if records.get("continuation"):
        notes.append(
            "continuation: an index over these articles holds the second halves, too; retrieve from other reports on the same events."
        )
    merged = {task.key: list(map(_record, records[task.name])) for task in tasks}
    with_answers = [task for task in tasks if task.name.startswith("qa")]
    return Report(
        {"records": {name: len(rows) for name, rows in records.items()}},
        tuple(notes),
        {FILE: json.dumps(merged, ensure_ascii=False, indent=1) + "\n"},
        questions=tuple(
            _question(task, row) for task in with_answers for row in records[task.name]
        ),
    )


def _articles(request: ExperimentRequest) -> RowsRequest:
    s = request.settings
    kind, path = source_of(request)
    if kind == "mediawiki":
        raise UsageError(
            "CRUD-RAG's tasks are made of articles that lie here; save those of a wiki first, or take its dump."
        )

    def inputs() -> Iterable[Row]:
        _, articles = read_articles(kind, path)
        for article in drawn(articles, request.limit, s["random"], s["seed"]):
            yield _row(article, s["shortest"], s["longest"])

    return RowsRequest(
        "1-articles",
        "articles",
        inputs,
        make=lambda row: [row],
        depends_on=lambda row: row,
        source=json.dumps(
            [str(path), stamp_of(path), kind, request.limit, dict(s)], sort_keys=True
        ),
    )


def _row(article: SourceArticle, shortest: int, longest: int) -> Row:
    text = text_of(article).strip()
    row = {"id": article.id, "title": article.title, "date": article.date, "text": text[:longest]}
    if len(text) < shortest:
        return {**row, "keep": False, "why": "too short"}
    return {**row, "keep": True, **({"cut": len(text)} if len(text) > longest else {})}


def _used(rows: RowFile) -> Generator[Row, None, None]:
    return (row for row in rows if row["keep"])


def _groups(label: str, articles: RowFile, size: int) -> RowsRequest:
    def inputs() -> Iterable[Row]:
        texts = {row["id"]: row["text"] for row in _used(articles)}
        for names in cutting.groups(texts, size):
            members = {"articles": list(names), "texts": [texts[name] for name in names]}
            yield {"id": "+".join(names), **members}

    return RowsRequest(
        label,
        "articles that belong together",
        inputs,
        make=lambda row: [{**row, "keep": True}],
        depends_on=lambda row: row["texts"],
    )


def _stage(
    request: ExperimentRequest,
    task: CrudTask,
    label: str,
    inputs: RowFile,
    prompts: Mapping[str, str],
) -> RowsRequest:
    if task.name == "continuation":
        return RowsRequest(
            label,
            task.about,
            lambda: _used(inputs),
            make=_continuation,
            depends_on=lambda row: row["text"],
        )
    s, written = request.settings, WRITTEN[task.name]
    prompt = prompts[written.prompt]
    drawing = {name: s[name] for name in ("temperature", "max_tokens", "seed")}

    def flow(row: Row) -> Flow:
        fields = written.values(row)
        if fields is None:
            return Outcome("", "no sentences")  # it cannot be cut
        message = Message("user", filled(prompt, fields))
        return Outcome(text_of_reply((yield Generate(request.llm, (message,), **drawing))))

    return RowsRequest(
        label,
        task.about,
        lambda: _used(inputs),
        flow=flow,
        read=lambda row, episode: [_read(row, episode, written.reading)],
        depends_on=lambda row: [
            prompt,
            request.llm,
            *drawing.values(),
            row.get("text") or row.get("texts"),
        ],
        llms=(request.llm,),
    )


def _read(row: Row, episode: Episode, reading: Reading) -> Row:
    """The row of a reply: a record, or why it is none. What the model said stays where it could not be read."""
    base = {"id": row["id"], "articles": row.get("articles") or [row["id"]]}
    if episode.error:
        return {**base, "keep": False, "why": "failed", "error": episode.error}
    if not episode.steps:
        return {**base, "keep": False, "why": NO_PARTS}
    reply = episode.steps[-1].reply
    each = (fields_of(reply, name) for name in ("event", "changed", "question"))
    fields = next(filter(None, each), {})
    record = reading(row, fields) if fields else "unread"
    if isinstance(record, str):
        unread = {"unknown": True} if record == "unread" else {}
        words = text_of_reply(reply)[:2000]
        return {**base, "keep": False, "why": record, "said": words, **unread}
    return {**base, **record, "keep": True}


def _continuation(row: Row) -> Sequence[Row]:
    """An article's two halves, cut between sentences."""
    halves = cutting.halves(row["text"])
    base = {"id": row["id"], "articles": [row["id"]]}
    if halves is None:
        return [{**base, "keep": False, "why": NO_PARTS}]
    parts = {"event": row["title"], "beginning": halves[0], "continuing": halves[1]}
    return [{**base, **parts, "keep": True}]


def _summary(row: Row, fields: Fields) -> Row | str:
    event, summary = text_field(fields, "event"), text_field(fields, "summary")
    record = {"event": event, "summary": summary, "text": row["text"]}
    return record if event and summary else "unread"


def _correction(row: Row, fields: Fields) -> Row | str:
    first, true = cutting.opening(row["text"]) or ("", "")
    changed = text_field(fields, "changed")
    if not changed:
        return "unread"
    if not cutting.is_changed(changed, true):
        return "not the text with one change"
    record = {
        "newsBeginning": first,
        "hallucinatedContinuation": changed,
        "hallucinatedMod": true,
        "error_made": text_field(fields, "error"),
    }
    return {"headLine": row["title"], **record, "newsRemainder": row["text"][len(first) :].strip()}


def _question_answered(row: Row, fields: Fields) -> Row | str:
    question, answer = text_field(fields, "question"), text_field(fields, "answer")
    if not question:
        return "unread"
    if declined(answer):
        return "no answer"
    news = {f"news{n}": text for n, text in enumerate(row.get("texts") or [row["text"]], 1)}
    return {"event": text_field(fields, "event"), "questions": question, "answers": answer, **news}


def _opening_values(row: Row) -> Mapping[str, str] | None:
    parts = cutting.opening(row["text"])
    return None if parts is None else {"OPENING": parts[0], "CONTINUATION": parts[1]}


def _group_values(row: Row) -> Mapping[str, str] | None:
    news = "\n\n".join(f"新闻{n}：\n{text}" for n, text in enumerate(row["texts"], 1))
    return {"NUMBER": str(len(row["texts"])), "ARTICLES": news}


@dataclass(frozen=True, slots=True)
class Written:
    """A task whose records a model writes: its prompt, what stands there in braces for an input (None: it cannot be cut), and
    how the reply is read."""

    prompt: str
    values: Callable[[Row], Mapping[str, str] | None]
    reading: Reading


WRITTEN: Mapping[str, Written] = {
    "summary": Written("summary", lambda row: {"ARTICLE": row["text"]}, _summary),
    "hallucination": Written("correction", _opening_values, _correction),
    "qa1": Written("question-one", lambda row: {"ARTICLE": row["text"]}, _question_answered),
    "qa2": Written("question-several", _group_values, _question_answered),
    "qa3": Written("question-several", _group_values, _question_answered),
}
OURS = frozenset(("id", "from", "articles", "keep", "why", "stamp", "edited"))
OURS |= {"asked", "said", "unknown", "error_made"}
"""Fields of a row that are in no record of CRUD-RAG's."""


def _record(row: Row) -> Row:
    """A row as CRUD-RAG has it."""
    fields = {key: value for key, value in row.items() if key not in OURS}
    return {"ID": row["id"], **fields, "gold_doc_ids": row["articles"]}


def _question(task: CrudTask, row: Row) -> Row:
    """The same in KILT's form, the articles as pages that are needed together."""
    pages = [{"wikipedia_id": name} for name in row["articles"]]
    return {
        "id": f"{task.name}-{row['id']}",
        "input": row["questions"],
        "output": [{"answer": row["answers"], "provenance": pages}],
        "meta": {"task": task.file},
    }
