"""Tasks in CRUD-RAG's form from any articles: summary, continuation, correction, questions on 1, 2 and 3 articles.

After section 3 of Lyu et al. 2024 (arXiv:2401.17043), with any model. Every record names its articles (``gold_doc_ids``):
questions, summaries and corrections are to be retrieved for from an index over them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rallebench.core.errors import Hint, UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Report, Row, RowsRequest
from rallebench.core.prompts import fill_template
from rallebench.core.settings import Setting
from rallebench.core.types import Episode, Flow, Generate, Message, Outcome
from rallebench.engine.rowfile import RowFile
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.builders.articles import SOURCES, articles_stage, notes_of, source_of
from rallebench.experiments.builders.replies import (
    declined,
    fields_of,
    line_of,
    read_prompts,
    state_of,
    used,
)
from rallebench.experiments.common import string
from rallebench.papers.common import own_prompts
from rallebench.papers.crud import builder_texts as texts
from rallebench.papers.crud.records import TASKS_SETTING, CrudTask, tasks_of

PROMPTS: Mapping[str, tuple[str, ...]] = {
    "summary": ("ARTICLE",),
    "correction": ("OPENING", "CONTINUATION"),
    "question-one": ("ARTICLE",),
    "question-several": ("NUMBER", "ARTICLES"),
}
"""File below ``prompts/making/crud`` → what must stand in it in braces."""
SIZES = {"qa2": 2, "qa3": 3}
NO_PARTS = "no two parts of whole sentences"
UNREAD = "unread"
FILE = "split_merged.json"

Fields = Mapping[str, Any]
Inputs = Callable[[], Iterable[Row]]


@EXPERIMENTS.register(
    "build-crud",
    place="builders",
    needs_llm=False,
    form={
        "tasks": replace(TASKS_SETTING, about="as in summary,qa1, or quest_answer, or all"),
        "source": string("what the articles are; auto: as the file or folder looks", *SOURCES),
        "shortest": Setting(int, 200, 1, 1_000_000, about="characters that an article must have"),
        "longest": Setting(
            int, 4000, 100, 10_000_000, about="characters of an article that are used"
        ),
        "random": Setting(bool, False, about="whether the limit draws articles at random"),
        "temperature": Setting(float, 0.7, 0, 2),
        "max_tokens": Setting(int, 2048, 1, 100_000),
        "seed": Setting(int, 0, 0),
        "prompts": own_prompts("making/crud"),
    },
)
def crud(request: ExperimentRequest) -> Experiment:
    """CRUD-RAG's tasks of your own articles, as split_merged.json, and its questions as a dataset."""
    tasks = tasks_of(request.settings["tasks"])
    files = [WRITTEN[task.name].prompt for task in tasks if task.name in WRITTEN]
    fields = {file: PROMPTS[file] for file in files}
    prompts = read_prompts("crud", request.settings["prompts"], fields)
    if prompts and not request.llm:
        raise UsageError(
            "All tasks but continuation are written by a language model.",
            hint=Hint("choose", "llm"),
        )
    articles: RowFile = yield _articles(request)
    beginnings = partial(_beginnings, articles, request.settings["longest"])
    records: dict[str, list[Row]] = {}
    notes = notes_of(articles)
    for number, task in enumerate(tasks, 2):
        label, inputs = f"{number}-{task.name}", beginnings
        if size := SIZES.get(task.name):
            groups: RowFile = yield _groups(f"{label}-groups", beginnings, size)
            inputs = partial(used, groups)
            if not len(groups):
                notes.append(
                    f"{task.name}: no {size} articles share a word that is not in most of them."
                )
        if task.name in WRITTEN:
            rows = yield _written(request, task, label, inputs, prompts)
        else:
            rows = yield _continuations(task, label, inputs)
        records[task.name] = [row for row in used(rows) if not row.get("error")]
    if records.get("continuation"):
        notes.append(
            "continuation: an index over these articles holds the second halves, too; retrieve from other reports on the same events."
        )
    merged = {task.key: list(map(_record, records[task.name])) for task in tasks}
    questions = [(task, row) for task in tasks for row in records[task.name]]
    return Report(
        {"records": {name: len(rows) for name, rows in records.items()}},
        tuple(notes),
        {FILE: json.dumps(merged, ensure_ascii=False, indent=1) + "\n"},
        questions=tuple(_question(*pair) for pair in questions if pair[0].name.startswith("qa")),
    )


# ── the stages ───────────────────────────────────────────────────────────────


def _articles(request: ExperimentRequest) -> RowsRequest:
    s = request.settings
    kind, path = source_of(request)
    if kind == "mediawiki":
        raise UsageError(
            "CRUD-RAG's tasks are made of articles that lie here; save those of a wiki first, or take its dump."
        )
    length = s["shortest"] - 1
    return articles_stage(request, kind, path, length, at_random=s["random"], too_short="too short")


def _beginnings(articles: RowFile, longest: int) -> Iterator[Row]:
    """The beginning of each article that is kept: id, title, text."""
    for row in used(articles):
        text = row.get("content", "").strip()[:longest]
        yield {"id": row["id"], "title": row.get("title", ""), "text": text}


def _groups(label: str, articles: Inputs, size: int) -> RowsRequest:
    def inputs() -> Iterator[Row]:
        by_id = {row["id"]: row["text"] for row in articles()}
        for names in texts.groups(by_id, size):
            members = {"articles": list(names), "texts": [by_id[name] for name in names]}
            yield {"id": "+".join(names), **members}

    return RowsRequest(
        label,
        "articles that belong together",
        inputs,
        make=lambda row: [{**row, **state_of("")}],
        depends_on=lambda row: row["texts"],
    )


def _continuations(task: CrudTask, label: str, inputs: Inputs) -> RowsRequest:
    """An article's two halves, cut between sentences."""

    def make(row: Row) -> list[Row]:
        base, halves = {"id": row["id"], "articles": [row["id"]]}, texts.halves(row["text"])
        if halves is None:
            return [{**base, **state_of(NO_PARTS)}]
        parts = {"event": row["title"], "beginning": halves[0], "continuing": halves[1]}
        return [{**base, **parts, **state_of("")}]

    return RowsRequest(label, task.about, inputs, make=make, depends_on=lambda row: row["text"])


def _written(
    request: ExperimentRequest,
    task: CrudTask,
    label: str,
    inputs: Inputs,
    prompts: Mapping[str, str],
) -> RowsRequest:
    """The records of a task that a model writes."""
    written = WRITTEN[task.name]
    prompt = prompts[written.prompt]
    drawing = {name: request.settings[name] for name in ("temperature", "max_tokens", "seed")}

    def flow(row: Row) -> Flow:
        fields = written.values(row)
        if fields is None:
            return Outcome("", "no sentences")
        message = Message("user", fill_template(prompt, fields))
        return Outcome((yield Generate(request.llm, (message,), **drawing)).text.strip())

    more = [prompt, request.llm, *drawing.values()]
    return RowsRequest(
        label,
        task.about,
        inputs,
        flow=flow,
        read=lambda row, episode: [_read(row, episode, written.record)],
        depends_on=lambda row: [*more, row.get("text") or row.get("texts")],
        llms=(request.llm,),
    )


def _read(row: Row, episode: Episode, record_of: Callable[[Row, Fields], Row | str]) -> Row:
    """The row of a reply: a record, or why it is none, with the reply's text if it could not be read."""
    base = {"id": row["id"], "articles": row.get("articles") or [row["id"]]}
    if episode.error:
        return {**base, **state_of("failed"), "error": episode.error}
    if not episode.steps:
        return {**base, **state_of(NO_PARTS)}
    reply = episode.steps[-1].reply
    each = (fields_of(reply, name) for name in ("event", "changed", "question"))
    fields = next(filter(None, each), {})
    record = record_of(row, fields) if fields else UNREAD
    if isinstance(record, str):
        unread = {"unknown": True} if record == UNREAD else {}
        return {**base, **state_of(record), "said": reply.text.strip()[:2000], **unread}
    return {**base, **record, **state_of("")}


# ── the tasks that a model writes ────────────────────────────────────────────


def _summary(row: Row, fields: Fields) -> Row | str:
    event, summary = line_of(fields.get("event")), line_of(fields.get("summary"))
    record = {"event": event, "summary": summary, "text": row["text"]}
    return record if event and summary else UNREAD


def _correction(row: Row, fields: Fields) -> Row | str:
    first, true = texts.opening(row["text"]) or ("", "")
    changed = line_of(fields.get("changed"))
    if not changed:
        return UNREAD
    if not texts.is_changed(changed, true):
        return "not the text with one change"
    record = {
        "newsBeginning": first,
        "hallucinatedContinuation": changed,
        "hallucinatedMod": true,
        "error_made": line_of(fields.get("error")),
    }
    return {"headLine": row["title"], **record, "newsRemainder": row["text"][len(first) :].strip()}


def _question_answered(row: Row, fields: Fields) -> Row | str:
    question, answer = line_of(fields.get("question")), line_of(fields.get("answer"))
    if not question:
        return UNREAD
    if declined(answer):
        return "no answer"
    news = {f"news{n}": text for n, text in enumerate(row.get("texts") or [row["text"]], 1)}
    return {"event": line_of(fields.get("event")), "questions": question, "answers": answer, **news}


def _opening_values(row: Row) -> Mapping[str, str] | None:
    parts = texts.opening(row["text"])
    return None if parts is None else {"OPENING": parts[0], "CONTINUATION": parts[1]}


def _group_values(row: Row) -> Mapping[str, str] | None:
    news = "\n\n".join(f"新闻{n}：\n{text}" for n, text in enumerate(row["texts"], 1))
    return {"NUMBER": str(len(row["texts"])), "ARTICLES": news}


@dataclass(frozen=True, slots=True)
class WrittenTask:
    """A task whose records a model writes. ``values``: the values for the braces of its prompt, of an input; None if the input
    cannot be cut. ``record``: the record's fields from those of the reply, or why there is none."""

    prompt: str
    values: Callable[[Row], Mapping[str, str] | None]
    record: Callable[[Row, Fields], Row | str]


WRITTEN: Mapping[str, WrittenTask] = {
    "summary": WrittenTask("summary", lambda row: {"ARTICLE": row["text"]}, _summary),
    "hallucination": WrittenTask("correction", _opening_values, _correction),
    "qa1": WrittenTask("question-one", lambda row: {"ARTICLE": row["text"]}, _question_answered),
    "qa2": WrittenTask("question-several", _group_values, _question_answered),
    "qa3": WrittenTask("question-several", _group_values, _question_answered),
}
OURS = frozenset(("id", "from", "articles", "keep", "why", "stamp", "edited"))
OURS |= {"asked", "said", "unknown", "error_made", "checked"}
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
