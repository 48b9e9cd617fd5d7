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
from rallebench.core.settings import Setting
from rallebench.engine.rowfile import RowFile
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.builders.articles import (
    SOURCES,
    notes_of,
    read_date,
    read_dates,
    source_of,
)
from rallebench.experiments.builders.replies import read_prompts, used
from rallebench.experiments.common import string
from rallebench.papers.barag import builder_stages as stages
from rallebench.papers.barag.builder_asking import BaragPlan
from rallebench.papers.barag.builder_stages import KEEP, LEAVE_OUT
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
SETTINGS = {
    "source": string("what the articles are; mediawiki draws random ones online", *SOURCES),
    "api": Setting(str, "https://en.wikipedia.org/w/api.php", about="of source=mediawiki"),
    "pick": string("which articles, where not all are taken", "first", "random"),
    "length": Setting(int, 1000, 0, 10_000_000, about="an article has more characters than this"),
    "after": Setting(str, "2021-10-01", about="an article's date is later than this; empty = any"),
    "dates": string("file: article id or title → date (JSON, or two columns)", names="file"),
    "undated": string("articles without a date", LEAVE_OUT, KEEP),
    "recency": Setting(bool, True, about="ask whether the content is later than the date, too"),
    "questions": Setting(int, 1, 0, 20, about="per article; 0 = those that the list brings"),
    "answers": Setting(bool, True, about="ask for a short answer, too, for KILT's metrics"),
    "answerable": Setting(bool, True, about="check: answered by the article alone"),
    "closed_book": Setting(bool, True, about="check: not answered right without it"),
    "near": Setting(float, 0.8, 0, 1, about="check: shared words of two questions; 0 = no check"),
    "leaks": Setting(bool, True, about="check: does not mention “the text”"),
    "unknown": string("where a verdict cannot be read", KEEP, LEAVE_OUT),
    "judge": string("another model for the verdicts; empty = the same", names="llm"),
    "characters": Setting(int, 15_000, 100, 10_000_000, about="of an article are shown to a model"),
    "temperature": Setting(float, 1.0, 0, 2, about="of the questions; verdicts have 0"),
    "seed": Setting(int, 0, 0, 2**31 - 1, about="of questions and of pick=random"),
    "max_tokens": Setting(int, 512, 1, 100_000, about="of a reply"),
    "forced": Setting(bool, True, about="demand the form of replies as a JSON schema"),
    "tries": Setting(int, 2, 1, 5, about="asks again where a reply cannot be read"),
    "prompts": string("folder with prompts of your own", names="folder"),
}


@EXPERIMENTS.register("build-barag", place="builders", needs_llm=False, form=SETTINGS)
def barag(request: ExperimentRequest) -> Experiment:
    """Questions on recent articles that a model cannot answer without them."""
    plan = planned(request)
    store: RowFile = yield stages.articles(plan)
    dated: RowFile = yield stages.dates(plan, store)
    if request.settings["recency"] and plan.after is not None:
        dated = yield stages.recency(plan, store, dated)
    written: RowFile = yield stages.questions(plan, store, dated)
    checked: RowFile = yield stages.checks(plan, store, written)
    return _report(plan, store, written, checked)


def planned(request: ExperimentRequest) -> BaragPlan:
    """The plan; every fault of the request shows here. Raises UsageError."""
    s = request.settings
    kind, path = ("mediawiki", Path()) if s["source"] == "mediawiki" else source_of(request)
    after = read_date(s["after"]) if s["after"].strip() else None
    if after is None and s["after"].strip():
        raise UsageError(
            f"after={s['after']} is no date; write it as 2021-10-01, or leave it empty for any."
        )
    _check_models(request, after is not None)
    dates = read_dates(s["dates"]) if s["dates"] else {}
    prompts = read_prompts("barag", s["prompts"], PROMPTS)
    if s["answers"]:
        prompts["questions"] = prompts["questions-with-answers"]
    return BaragPlan(request, kind, path, after, dates, prompts)


def _check_models(request: ExperimentRequest, dated: bool) -> None:
    """UsageError if a model is needed and none is named, there is none of that name, or it can only copy."""
    s = request.settings
    verdicts = [name for name in ("recency", "answerable", "closed_book") if s[name]]
    if not dated and s["recency"]:
        verdicts.remove("recency")
    needed = [request.llm] * bool(s["questions"]) + [s["judge"] or request.llm] * bool(verdicts)
    if "" in needed:
        without = ["questions=0"] * bool(s["questions"]) + [f"{name}=false" for name in verdicts]
        raise UsageError(
            "A language model writes the questions and gives the verdicts.",
            hint=Hint("choose", "llm", " ".join(without)),
        )
    for name in needed:
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
