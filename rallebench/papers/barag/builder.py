"""BARAG's questions about recent articles (section III of its paper). A model cannot answer them without the article.

The five stages are articles, date filter, recency filter, questions, and checks. The original study wrote its questions before
filtering for recency, included six articles twice, and did not check the questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rallebench.core.errors import Hint, UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Report, RowId
from rallebench.core.files import json_lines
from rallebench.core.settings import dataclass_form
from rallebench.core.starter import READER
from rallebench.core.types import Json
from rallebench.engine.rowfile import RowFile
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.builders.articles import (
    choose_source,
    read_date,
    read_dates,
    source_notes,
)
from rallebench.experiments.builders.replies import read_prompts
from rallebench.experiments.builders.rows import ArticleBrief, ArticleRow
from rallebench.papers.barag import builder_stages as stages
from rallebench.papers.barag.builder_asking import BaragPlan
from rallebench.papers.barag.builder_rows import WrittenQuestion, read_questions
from rallebench.papers.barag.builder_settings import BaragBuilderSettings
from rallebench.workspace.paths import WorkspaceFolder

PROMPTS: Mapping[str, tuple[str, ...]] = {
    "recency": ("ARTICLE", "DATE"),
    "questions": ("ARTICLE", "NUMBER"),
    "questions-with-answers": ("ARTICLE", "NUMBER"),
    "answerable": ("ARTICLE", "QUESTION"),
    "closed-book": ("QUESTION",),
    "right": ("ARTICLE", "QUESTION", "ANSWER"),
    "again": (),
}
"""File below ``prompts/making/barag`` → its required placeholders."""


@EXPERIMENTS.register(
    "build-barag", place="builders", needs_llm=False, form=dataclass_form(BaragBuilderSettings)
)
def barag(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """Questions on recent articles that a model cannot answer without them."""
    plan = make_plan(request)
    store: RowFile = yield stages.articles(plan)
    dated: RowFile = yield stages.dates(plan, store)
    if plan.settings.recency and plan.after is not None:
        dated = yield stages.recency(plan, store, dated)
    written: RowFile = yield stages.questions(plan, store, dated)
    checked: RowFile = yield stages.checks(plan, store, written)
    return _report(plan, store, written, checked)


def make_plan(request: ExperimentRequest[WorkspaceFolder]) -> BaragPlan:
    """Plan the build. Raises UsageError for an invalid request."""
    settings = request.read(BaragBuilderSettings)
    kind, path = ("mediawiki", Path()) if settings.source == "mediawiki" else choose_source(request)
    after = read_date(settings.after) if settings.after.strip() else None
    if after is None and settings.after.strip():
        raise UsageError(
            f"after={settings.after} is not a date; write it as 2021-10-01, or leave it empty for any."
        )
    _check_models(request, settings, after is not None)
    dates = read_dates(settings.dates) if settings.dates else {}
    prompts = read_prompts("barag", settings.prompts, PROMPTS)
    if settings.answers:
        prompts["questions"] = prompts["questions-with-answers"]
    return BaragPlan(request, settings, kind, path, after, dates, prompts)


def _check_models(
    request: ExperimentRequest[WorkspaceFolder], settings: BaragBuilderSettings, dated: bool
) -> None:
    """Raise UsageError if a required model is unnamed, unknown, or only copies text."""
    asks_for = {
        "recency": settings.recency and dated,
        "answerable": settings.answerable,
        "closed_book": settings.closed_book,
    }
    verdicts = [f"{name}=false" for name, needed in asks_for.items() if needed]
    models = [request.llm] * bool(settings.questions)
    models += [settings.judge or request.llm] * bool(verdicts)
    if "" in models:
        without = ["questions=0"] * bool(settings.questions) + verdicts
        raise UsageError(
            "A language model writes the questions and gives the verdicts.",
            hint=Hint("choose", "llm", " ".join(without)),
        )
    for name in models:
        if request.workspace.llm(name).backend == READER:
            raise UsageError(
                f"The built-in reader ({name}) only copies from passages: it cannot write questions or give verdicts. It "
                "takes a model that writes, such as a small one of the presets.",
                hint=Hint("choose", "llm"),
            )


# ── the report ───────────────────────────────────────────────────────────


def _report(plan: BaragPlan, store: RowFile, written: RowFile, checked: RowFile) -> Report:
    """The dataset in KILT's form with provenance and in the study's own form, and a corpus of all kept articles."""
    good = {row.id for row in checked.read_kept(RowId)}
    questions = [question for question in read_questions(written) if question.id in good]
    articles = {article.id: article for article in store.read_kept(ArticleBrief)}
    return Report(
        {
            "articles_kept": len(articles),
            "articles_asked_about": len({question.article for question in questions}),
        },
        _notes(store, questions),
        {
            "barag.jsonl": json_lines(
                _study_record(store, question, articles[question.article]) for question in questions
            ),
            "corpus.tsv": _tsv(store),
            "corpus.jsonl": json_lines(map(_passage, store.read_kept(ArticleRow))),
        },
        questions=tuple(
            _kilt_record(question, articles[question.article]) for question in questions
        ),
    )


def _kilt_record(question: WrittenQuestion, article: ArticleBrief) -> Json:
    page = {"wikipedia_id": question.article, "title": article.title}
    answers = question.filled_answers or [""]
    return {
        "id": question.id,
        "input": question.question,
        "output": [{**({"answer": a} if a else {}), "provenance": [page]} for a in answers],
        "meta": {"date": article.date, "url": article.url},
    }


def _study_record(store: RowFile, question: WrittenQuestion, article: ArticleBrief) -> Json:
    """A question and its article in the study's form."""
    return {
        "id": question.id,
        "title": article.title,
        "url": article.url,
        "date": article.date,
        "article": question.article,
        "question": question.question,
        "answers": list(question.answers or ()),
        "content": store.read_first(question.article, ArticleRow).content,
    }


def _tsv(store: RowFile) -> Iterator[str]:
    """One line per article; tabs and line breaks inside fields become spaces."""
    yield "id\ttext\ttitle\n"
    for article in store.read_kept(ArticleRow):
        cells = (article.id, article.content, article.title)
        yield "\t".join(" ".join(str(cell).split()) for cell in cells) + "\n"


def _passage(article: ArticleRow) -> Json:
    """An article with its paragraphs, to be cut at blank lines."""
    text = {"title": article.title, "text": article.content}
    return {"id": article.id, **text, "page_id": article.id}


def _notes(store: RowFile, questions: Sequence[WrittenQuestion]) -> tuple[str, ...]:
    notes = source_notes(store)
    if not questions:
        notes.append("No question is left, so no dataset was written; the stages' files say why.")
    elif not any(question.filled_answers for question in questions):
        notes.append(
            "The questions have no answers: runs can score what they retrieve, and judges can score what they answer."
        )
    return tuple(notes)
