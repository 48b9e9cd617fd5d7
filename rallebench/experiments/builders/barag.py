"""BARAG's questions on recent articles (section III of its paper): which a model cannot know, and an article answers.

Five stages: articles, date filter, recency filter, questions, checks. The study wrote its questions before its recency
filter, kept six articles twice, and checked no question.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Report, Row
from rallebench.core.prompts import check_own
from rallebench.engine.rowfile import RowFile
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.builders._barag import checking, stages
from rallebench.experiments.builders._barag.definitions import SETTINGS
from rallebench.experiments.builders._barag.stages import BaragPlan
from rallebench.experiments.builders._prompts import read_prompt
from rallebench.experiments.builders.articles import kind_of, read_date, read_dates, stamp_of
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
    "build-barag", place="builders", needs_llm=False, form=SETTINGS, articles=True
)
def barag(request: ExperimentRequest) -> Experiment:
    """Questions on recent articles that a model cannot answer without them."""
    plan = planned(request)
    store: RowFile = yield stages.articles(plan)
    dated: RowFile = yield stages.dates(plan, store)
    if request.settings["recency"] and plan.after is not None:
        dated = yield stages.recency(plan, store, dated)
    written: RowFile = yield stages.questions(plan, store, dated)
    checked: RowFile = yield checking.checks(plan, store, written)
    return _report(plan, store, written, checked)


def planned(request: ExperimentRequest) -> BaragPlan:
    """Everything that can be wrong is found here. Raises UsageError."""
    s = request.settings
    if s["source"] == "mediawiki":
        kind, path = "mediawiki", Path()
    else:
        guess, path = kind_of(request.settings["articles"], request.workspace)
        kind = guess if s["source"] == "auto" else s["source"]
    after = read_date(s["after"]) if s["after"].strip() else None
    if after is None and s["after"].strip():
        raise UsageError(
            f"after={s['after']} is no date; write it as 2021-10-01, or leave it empty for any."
        )
    _check_models(request, after is not None)
    dates = read_dates(s["dates"]) if s["dates"] else {}
    check_own(s["prompts"], [f"{name}.txt" for name in PROMPTS])
    prompts = {
        name: read_prompt("barag", f"{name}.txt", s["prompts"], fields)
        for name, fields in PROMPTS.items()
    }
    if s["answers"]:
        prompts["questions"] = prompts["questions-with-answers"]
    stamp = "" if kind == "mediawiki" else stamp_of(path)
    return BaragPlan(request, kind, path, stamp, after, dates, prompts)


def _check_models(request: ExperimentRequest, dated: bool) -> None:
    """UsageError if a model is needed and none is named, there is none of that name, or it can only copy."""
    s = request.settings
    verdicts = [
        name
        for name in ("recency", "answerable", "closed_book")
        if s[name] and (name != "recency" or dated)
    ]
    needed = ([request.llm] if s["questions"] else []) + (
        [s["judge"] or request.llm] if verdicts else []
    )
    if "" in needed:
        without = " ".join(f"--set {name}=false" for name in verdicts)
        raise UsageError(
            "A language model writes the questions and gives the verdicts; name one with --llm"
            + (
                f", or do without: --set questions=0 {without}."
                if request.settings["questions"]
                else f", or do without: {without}."
            )
        )
    for name in needed:
        if request.workspace.llm(name).backend == READER:
            raise UsageError(
                f"The built-in reader ({name}) only copies from passages: it cannot write questions or give verdicts. Name a model "
                "that writes with --llm; rallebench list presets shows small ones."
            )


# ── what comes out ───────────────────────────────────────────────────────────


def _report(plan: BaragPlan, store: RowFile, written: RowFile, checked: RowFile) -> Report:
    """KILT's form with provenance, the study's own form, and the corpus of all articles that are kept."""
    good = {row["id"] for row in checked if row["keep"]}
    rows = [row for row in written if row["id"] in good]
    briefs = {
        row["id"]: {key: row.get(key, "") for key in ("title", "url", "date")}
        for row in store
        if row["keep"]
    }
    questions = tuple(_kilt(row, briefs[stages.article_of(row)]) for row in rows)
    files = {
        "barag.jsonl": lambda: _barag(store, rows, briefs),
        "corpus.tsv": lambda: _tsv(store),
        "corpus.jsonl": lambda: _jsonl(store),
    }
    counts = {
        "articles_kept": len(briefs),
        "articles_asked_about": len({stages.article_of(row) for row in rows}),
    }
    return Report(
        counts,
        _notes(store, questions),
        {name: _Later(make) for name, make in files.items()},
        questions=questions,
    )


class _Later:
    """Pieces of text that are made when they are written."""

    def __init__(self, make: Any) -> None:
        self._make = make

    def __iter__(self) -> Iterator[str]:
        return iter(self._make())


def _kilt(row: Row, article: Mapping[str, str]) -> Mapping[str, Any]:
    page = {"wikipedia_id": stages.article_of(row), "title": article["title"]}
    answers = [str(answer).strip() for answer in row.get("answers") or () if str(answer).strip()]
    output: list[dict[str, Any]] = [
        {"answer": answer, "provenance": [page]} for answer in answers
    ] or [{"provenance": [page]}]
    return {
        "id": row["id"],
        "input": row["question"],
        "output": output,
        "meta": {"date": article["date"], "url": article["url"]},
    }


def _barag(
    store: RowFile, rows: list[Row], briefs: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    for row in rows:
        page = stages.article_of(row)
        question = {"question": row["question"], "answers": list(row.get("answers") or ())}
        value = {
            "id": row["id"],
            **briefs[page],
            "article": page,
            **question,
            "content": store.row(page).get("content", ""),
        }
        yield json.dumps(value, ensure_ascii=False) + "\n"


def _tsv(store: RowFile) -> Iterator[str]:
    """A line an article; what would end a line or a field is a space."""
    yield "id\ttext\ttitle\n"
    for row in store:
        if row["keep"]:
            yield (
                "\t".join(
                    " ".join(str(row.get(key, "")).split()) for key in ("id", "content", "title")
                )
                + "\n"
            )


def _jsonl(store: RowFile) -> Iterator[str]:
    """The same with its paragraphs, for cutting at blank lines."""
    for row in store:
        if row["keep"]:
            value = {
                "id": row["id"],
                "title": row.get("title", ""),
                "text": row.get("content", ""),
                "page_id": row["id"],
            }
            yield json.dumps(value, ensure_ascii=False) + "\n"


def _notes(store: RowFile, questions: tuple[Mapping[str, Any], ...]) -> tuple[str, ...]:
    notes = [*store.summary.get("notes", ()), *store.summary.get("problems", ())]
    if not questions:
        notes.append(
            "No question is left, so no question set was written; the stages' files say why."
        )
    elif not any("answer" in answer for row in questions for answer in row["output"]):
        notes.append(
            "The questions have no answers: runs can score what they retrieve, and judges can score what they answer."
        )
    return tuple(notes)
