"""BARAG's questions on recent articles (section III of its paper): which a model cannot know, and an article answers.

Five stages: articles, date filter, recency filter, questions, checks. The study wrote its questions before its recency
filter, kept six articles twice, and checked no question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rallebench.core.errors import Hint, UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Report, Row
from rallebench.core.files import json_lines
from rallebench.core.settings import dataclass_form
from rallebench.engine.rowfile import RowFile
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.builders.articles import (
    notes_of,
    read_date,
    read_dates,
    source_of,
)
from rallebench.experiments.builders.replies import read_prompts, used
from rallebench.papers.barag import builder_stages as stages
from rallebench.papers.barag.builder_asking import BaragPlan
from rallebench.papers.barag.builder_settings import BuilderSettings
from rallebench.workspace.paths import READER

PROMPTS: Mapping[str, tuple[str, ...]] = {
    "recency": ("ARTICLE", "DATE"),
    "questions": ("ARTICLE", "NUMBER"),
    "questions-with-answers": ("ARTICLE", "NUMBER"),
    "answerable": ("ARTICLE", "QUESTION"),
    "closed-book": ("QUESTION",),
    "right": ("ARTICLE", "QUESTION", "ANSWER"),
    "again": (),
}
"""File below ``prompts/making/barag`` → what must stand in it in braces."""


@EXPERIMENTS.register(
    "build-barag", place="builders", needs_llm=False, form=dataclass_form(BuilderSettings)
)
def barag(request: ExperimentRequest) -> Experiment:
    """Questions on recent articles that a model cannot answer without them."""
    plan = planned(request)
    store: RowFile = yield stages.articles(plan)
    dated: RowFile = yield stages.dates(plan, store)
    if plan.settings.recency and plan.after is not None:
        dated = yield stages.recency(plan, store, dated)
    written: RowFile = yield stages.questions(plan, store, dated)
    checked: RowFile = yield stages.checks(plan, store, written)
    return _report(plan, store, written, checked)


def planned(request: ExperimentRequest) -> BaragPlan:
    """The plan; every fault of the request shows here. Raises UsageError."""
    settings = request.read(BuilderSettings)
    kind, path = ("mediawiki", Path()) if settings.source == "mediawiki" else source_of(request)
    after = read_date(settings.after) if settings.after.strip() else None
    if after is None and settings.after.strip():
        raise UsageError(
            f"after={settings.after} is no date; write it as 2021-10-01, or leave it empty for any."
        )
    _check_models(request, settings, after is not None)
    dates = read_dates(settings.dates) if settings.dates else {}
    prompts = read_prompts("barag", settings.prompts, PROMPTS)
    if settings.answers:
        prompts["questions"] = prompts["questions-with-answers"]
    return BaragPlan(request, settings, kind, path, after, dates, prompts)


def _check_models(request: ExperimentRequest, settings: BuilderSettings, dated: bool) -> None:
    """Raise UsageError for a needed model that is not named, is unknown, or can only copy."""
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
    """KILT's form with provenance, the study's own form, and the corpus of all articles that are kept."""
    good = {row["id"] for row in used(checked)}
    rows = [row for row in written if row["id"] in good]
    briefs = {
        row["id"]: {key: row.get(key, "") for key in ("title", "url", "date")}
        for row in used(store)
    }
    questions = tuple(_kilt(row, briefs[stages.article_of(row)]) for row in rows)
    return Report(
        {
            "articles_kept": len(briefs),
            "articles_asked_about": len({stages.article_of(row) for row in rows}),
        },
        _notes(store, questions),
        {
            "barag.jsonl": json_lines(_barag(store, row, briefs) for row in rows),
            "corpus.tsv": _tsv(store),
            "corpus.jsonl": json_lines(map(_passage, used(store))),
        },
        questions=questions,
    )


def _kilt(row: Row, article: Mapping[str, str]) -> Mapping[str, Any]:
    page = {"wikipedia_id": stages.article_of(row), "title": article["title"]}
    answers = [str(answer).strip() for answer in row.get("answers") or () if str(answer).strip()]
    return {
        "id": row["id"],
        "input": row["question"],
        "output": [{**({"answer": a} if a else {}), "provenance": [page]} for a in answers or [""]],
        "meta": {"date": article["date"], "url": article["url"]},
    }


def _barag(store: RowFile, row: Row, briefs: Mapping[str, Mapping[str, str]]) -> Row:
    """A question in the study's form, with its article."""
    page = stages.article_of(row)
    question = {"question": row["question"], "answers": list(row.get("answers") or ())}
    content = store.row(page).get("content", "")
    return {"id": row["id"], **briefs[page], "article": page, **question, "content": content}


def _tsv(store: RowFile) -> Iterator[str]:
    """One article as a line; tabs and line ends inside become spaces."""
    yield "id\ttext\ttitle\n"
    for row in used(store):
        cells = (" ".join(str(row.get(key, "")).split()) for key in ("id", "content", "title"))
        yield "\t".join(cells) + "\n"


def _passage(row: Row) -> Row:
    """An article with its paragraphs, for cutting at blank lines."""
    text = {"title": row.get("title", ""), "text": row.get("content", "")}
    return {"id": row["id"], **text, "page_id": row["id"]}


def _notes(store: RowFile, questions: tuple[Mapping[str, Any], ...]) -> tuple[str, ...]:
    notes = notes_of(store)
    if not questions:
        notes.append("No question is left, so no dataset was written; the stages' files say why.")
    elif not any("answer" in answer for row in questions for answer in row["output"]):
        notes.append(
            "The questions have no answers: runs can score what they retrieve, and judges can score what they answer."
        )
    return tuple(notes)
