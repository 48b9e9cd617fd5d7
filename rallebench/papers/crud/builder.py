"""CRUD-RAG's tasks built from any articles: summary, continuation, correction, and questions on 1, 2 and 3 articles.

The method follows section 3 of Lyu et al. 2024 (arXiv:2401.17043), with any model. Every record names its articles
(``gold_doc_ids``). Questions, summaries and corrections search an index over these articles.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from rallebench.core.declining import declines
from rallebench.core.errors import Hint, UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Report, Row, RowsRequest
from rallebench.core.prompts import fill_template
from rallebench.core.settings import dataclass_form, declare, declare_text, fill
from rallebench.core.types import Episode, Flow, Generate, Json, Message, Outcome, Reply
from rallebench.engine.rowfile import RowFile
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.builders.articles import (
    SOURCES,
    ArticleInput,
    articles_stage,
    choose_source,
    source_notes,
)
from rallebench.experiments.builders.replies import (
    kept_rows,
    one_line,
    parse_fields,
    read_prompts,
)
from rallebench.experiments.builders.rows import ArticleRow
from rallebench.papers.common import declare_prompts
from rallebench.papers.crud import builder_texts as texts
from rallebench.papers.crud.builder_rows import (
    UNREAD,
    GroupRow,
    QuestionRecord,
    RowMembers,
    TaskInput,
    TaskRow,
)
from rallebench.papers.crud.records import CrudTask, declare_tasks, find_tasks
from rallebench.workspace.paths import WorkspaceFolder

PROMPTS: Mapping[str, tuple[str, ...]] = {
    "summary": ("ARTICLE",),
    "correction": ("OPENING", "CONTINUATION"),
    "question-one": ("ARTICLE",),
    "question-several": ("NUMBER", "ARTICLES"),
}
"""File below ``prompts/making/crud`` → its required placeholders."""
SIZES = {"qa2": 2, "qa3": 3}
NO_PARTS = "no two parts of whole sentences"
FILE = "split_merged.json"

Inputs = Callable[[], Iterable[TaskInput]]


@dataclass(frozen=True, slots=True)
class CrudBuilderSettings:
    """The settings of the dataset builder ``crud``."""

    tasks: str = declare_tasks("as in summary,qa1, or quest_answer, or all")
    source: str = declare_text("kind of source; auto: recognised from the file or folder", *SOURCES)
    shortest: int = declare(int, 200, 1, 1_000_000, about="characters that an article must have")
    longest: int = declare(
        int, 4000, 100, 10_000_000, about="characters of an article that are used"
    )
    random: bool = declare(bool, False, about="the limit draws articles at random")
    temperature: float = declare(float, 0.7, 0, 2)
    max_tokens: int = declare(int, 2048, 1, 100_000)
    seed: int = declare(int, 0, 0)
    prompts: str = declare_prompts("making/crud")


@EXPERIMENTS.register(
    "build-crud", place="builders", needs_llm=False, form=dataclass_form(CrudBuilderSettings)
)
def crud(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """CRUD-RAG's tasks of your own articles, as split_merged.json, and its questions as a dataset."""
    settings = request.read(CrudBuilderSettings)
    tasks = find_tasks(settings.tasks)
    files = [WRITTEN[task.name].prompt for task in tasks if task.name in WRITTEN]
    prompts = read_prompts("crud", settings.prompts, {file: PROMPTS[file] for file in files})
    if prompts and not request.llm:
        raise UsageError(
            "All tasks but continuation are written by a language model.",
            hint=Hint("choose", "llm"),
        )
    articles: RowFile = yield _articles(request, settings)
    beginnings = partial(_beginnings, articles, settings.longest)
    records: dict[str, list[Row]] = {}
    notes = source_notes(articles)
    for number, task in enumerate(tasks, 2):
        label, inputs = f"{number}-{task.name}", beginnings
        if size := SIZES.get(task.name):
            groups: RowFile = yield _groups(f"{label}-groups", beginnings, size)
            inputs = partial(groups.read_kept, TaskInput)
            if not len(groups):
                notes.append(
                    f"{task.name}: no {size} articles share a word that is not in most of them."
                )
        if task.name in WRITTEN:
            rows = yield _written_records(request, task, label, inputs, prompts)
        else:
            rows = yield _continuations(task, label, inputs)
        records[task.name] = [row for row in kept_rows(rows) if not row.get("error")]
    if records.get("continuation"):
        notes.append(
            "continuation: an index over these articles holds the second halves, too; retrieve from other reports on the same events."
        )
    merged = {task.key: list(map(_record, records[task.name])) for task in tasks}
    questions = [
        (task, fill(QuestionRecord, row))
        for task in tasks
        if task.name.startswith("qa")
        for row in records[task.name]
    ]
    return Report(
        {"records": {name: len(rows) for name, rows in records.items()}},
        tuple(notes),
        {FILE: json.dumps(merged, ensure_ascii=False, indent=1) + "\n"},
        questions=tuple(_kilt_record(*pair) for pair in questions),
    )


# ── the stages ───────────────────────────────────────────────────────────────


def _articles(
    request: ExperimentRequest[WorkspaceFolder], settings: CrudBuilderSettings
) -> RowsRequest[ArticleInput]:
    kind, path = choose_source(request)
    if kind == "mediawiki":
        raise UsageError(
            "CRUD-RAG's tasks are made from local articles; save the articles of a wiki first, or use its dump."
        )
    return articles_stage(
        request,
        kind,
        path,
        settings.shortest - 1,
        at_random=settings.random,
        too_short="too short",
    )


def _beginnings(articles: RowFile, longest: int) -> Iterator[TaskInput]:
    """The beginning of each kept article."""
    for article in articles.read_kept(ArticleRow):
        yield TaskInput(article.id, article.title, article.content.strip()[:longest])


def _groups(label: str, articles: Inputs, size: int) -> RowsRequest[TaskInput]:
    def inputs() -> Iterator[TaskInput]:
        by_id = {article.id: article.text for article in articles()}
        for names in texts.groups(by_id, size):
            yield TaskInput("+".join(names), articles=names, texts=[by_id[name] for name in names])

    return RowsRequest(
        label,
        "articles that belong together",
        inputs,
        make=lambda group: [GroupRow(group)],
        depends_on=lambda group: group.texts,
    )


def _continuations(task: CrudTask, label: str, inputs: Inputs) -> RowsRequest[TaskInput]:
    """The two halves of each article, cut between sentences."""

    def make(article: TaskInput) -> list[TaskRow]:
        halves = texts.halves(article.text)
        if halves is None:
            return [TaskRow(article.id, [article.id], why=NO_PARTS)]
        record = {"event": article.title, "beginning": halves[0], "continuing": halves[1]}
        return [TaskRow(article.id, [article.id], record)]

    return RowsRequest(
        label, task.about, inputs, make=make, depends_on=lambda article: article.text
    )


def _written_records(
    request: ExperimentRequest[WorkspaceFolder],
    task: CrudTask,
    label: str,
    inputs: Inputs,
    prompts: Mapping[str, str],
) -> RowsRequest[TaskInput]:
    """The records of a task written by a model."""
    settings, written = request.read(CrudBuilderSettings), WRITTEN[task.name]
    prompt = prompts[written.prompt]

    def flow(entry: TaskInput) -> Flow:
        values = written.values(entry)
        if values is None:
            return Outcome("", "no sentences")
        message = Message("user", fill_template(prompt, values))
        reply = yield Generate(
            request.llm,
            (message,),
            temperature=settings.temperature,
            max_tokens=settings.max_tokens,
            seed=settings.seed,
        )
        return Outcome(reply.text.strip())

    drawing = [settings.temperature, settings.max_tokens, settings.seed]
    more = [prompt, request.llm, *drawing]
    return RowsRequest(
        label,
        task.about,
        inputs,
        flow=flow,
        read=lambda entry, episode: [_read(entry, episode, written.record)],
        depends_on=lambda entry: [*more, entry.text or entry.texts],
        llms=(request.llm,),
    )


def _read(entry: TaskInput, episode: Episode, make_record: MakeRecord) -> TaskRow:
    """The row for a reply."""
    articles = entry.articles or [entry.id]
    if episode.error:
        return TaskRow(entry.id, articles, why="failed", error=episode.error)
    if not episode.steps:
        return TaskRow(entry.id, articles, why=NO_PARTS)
    reply = episode.steps[-1].reply
    fields = read_fields(reply)
    record = make_record(entry, fields) if fields else UNREAD
    if isinstance(record, str):
        return TaskRow(entry.id, articles, why=record, reply=reply.text.strip()[:2000])
    return TaskRow(entry.id, articles, record)


# ── the tasks that a model writes ────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ReplyFields:
    """The fields of a model's reply, one line each."""

    event: str = ""
    summary: str = ""
    changed: str = ""
    error: str = ""
    question: str = ""
    answer: str = ""


def read_fields(reply: Reply) -> ReplyFields | None:
    """The fields of the reply's JSON object with at least one required field; None without such an object."""
    objects = (parse_fields(reply, name) for name in ("event", "changed", "question"))
    values = next(filter(None, objects), None)
    if values is None:
        return None
    return fill(ReplyFields, {name: one_line(value) for name, value in values.items()})


MakeRecord = Callable[[TaskInput, ReplyFields], "Json | str"]
"""(input, reply) → the fields of a record, or the reason for its absence."""


def _summary(article: TaskInput, reply: ReplyFields) -> Json | str:
    record = {"event": reply.event, "summary": reply.summary, "text": article.text}
    return record if reply.event and reply.summary else UNREAD


def _correction(article: TaskInput, reply: ReplyFields) -> Json | str:
    first, true = texts.opening(article.text) or ("", "")
    if not reply.changed:
        return UNREAD
    if not texts.is_changed(reply.changed, true):
        return "not the text with one change"
    return {
        "headLine": article.title,
        "newsBeginning": first,
        "hallucinatedContinuation": reply.changed,
        "hallucinatedMod": true,
        "error_made": reply.error,
        "newsRemainder": article.text[len(first) :].strip(),
    }


def _question_with_answer(entry: TaskInput, reply: ReplyFields) -> Json | str:
    if not reply.question:
        return UNREAD
    if declines(reply.answer):
        return "no answer"
    news = {f"news{n}": text for n, text in enumerate(entry.texts or [entry.text], 1)}
    return {"event": reply.event, "questions": reply.question, "answers": reply.answer, **news}


def _opening_values(article: TaskInput) -> Mapping[str, str] | None:
    parts = texts.opening(article.text)
    return None if parts is None else {"OPENING": parts[0], "CONTINUATION": parts[1]}


def _group_values(group: TaskInput) -> Mapping[str, str] | None:
    news = "\n\n".join(f"新闻{n}：\n{text}" for n, text in enumerate(group.texts, 1))
    return {"NUMBER": str(len(group.texts)), "ARTICLES": news}


@dataclass(frozen=True, slots=True)
class WrittenTask:
    """A task with records written by a model. ``values``: input → the values for its prompt; None if the input cannot be
    cut."""

    prompt: str
    values: Callable[[TaskInput], Mapping[str, str] | None]
    record: MakeRecord


def _article_value(article: TaskInput) -> Mapping[str, str]:
    return {"ARTICLE": article.text}


WRITTEN: Mapping[str, WrittenTask] = {
    "summary": WrittenTask("summary", _article_value, _summary),
    "hallucination": WrittenTask("correction", _opening_values, _correction),
    "qa1": WrittenTask("question-one", _article_value, _question_with_answer),
    "qa2": WrittenTask("question-several", _group_values, _question_with_answer),
    "qa3": WrittenTask("question-several", _group_values, _question_with_answer),
}
OURS = frozenset(("id", "from", "articles", "keep", "why", "stamp", "edited"))
OURS |= {"asked", "said", "unknown", "error_made", "checked"}
"""Row fields that do not belong in CRUD-RAG's records."""


def _record(row: Row) -> Json:
    """A row in CRUD-RAG's form, with any fields added by a person."""
    members = fill(RowMembers, row)
    fields = {key: value for key, value in row.items() if key not in OURS}
    return {"ID": members.id, **fields, "gold_doc_ids": members.articles}


def _kilt_record(task: CrudTask, question: QuestionRecord) -> Json:
    """A question in KILT's form; its articles are pages that are needed together."""
    pages = [{"wikipedia_id": name} for name in question.articles]
    return {
        "id": f"{task.name}-{question.id}",
        "input": question.questions,
        "output": [{"answer": question.answers, "provenance": pages}],
        "meta": {"task": task.file},
    }
