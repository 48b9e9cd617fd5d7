"""The five stages of ``barag``, each from what the one before kept."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError
from rallebench.core.experiments import ExperimentRequest, Row, RowsRequest
from rallebench.core.types import Episode, digest
from rallebench.engine.rowfile import RowFile, short
from rallebench.experiments.builders._barag import asking
from rallebench.experiments.builders._barag import definitions as why
from rallebench.experiments.builders._barag.asking import Asks, Text
from rallebench.experiments.builders._mediawiki import random_articles
from rallebench.experiments.builders._replies import cleaned
from rallebench.experiments.builders.articles import (
    SourceArticle,
    drawn,
    read_articles,
    read_date,
    text_of,
)

DRAWN = 100
"""Articles that are drawn online where no limit is given."""


@dataclass(frozen=True, slots=True)
class BaragPlan:
    """All that the stages need, checked. ``after`` None: any date."""

    request: ExperimentRequest
    kind: str
    path: Path
    stamp: str
    after: datetime | None
    dates: Mapping[str, str]
    prompts: Mapping[str, str]

    def setting(self, name: str) -> Any:
        """A setting of the maker."""
        return self.request.settings[name]

    @property
    def judge(self) -> str:
        """Who gives verdicts."""
        return str(self.setting("judge") or self.request.llm)

    def asks(self, llm: str, temperature: float) -> Asks:
        """How a model is asked."""
        s = self.setting
        return Asks(
            llm,
            temperature,
            s("seed"),
            s("max_tokens"),
            s("forced"),
            s("tries"),
            self.prompts["again"],
        )

    def text(self, row: Row) -> Text:
        """What is shown of an article: title and content, its beginning."""
        return Text(row["id"], f"{row['title']}\n{row['content']}"[: self.setting("characters")])


# ── 1  articles ──────────────────────────────────────────────────────────────


def articles(plan: BaragPlan) -> RowsRequest:
    """Long enough, and each only once."""
    titles: dict[str, str] = {}
    texts: dict[str, str] = {}
    summary: dict[str, Any] = {}

    def make(entry: Row) -> list[Row]:
        article: SourceArticle = entry["article"]
        text = text_of(article)
        row = {
            "id": article.id,
            "title": article.title,
            "url": article.url,
            "date": article.date,
            "characters": len(text),
        }
        if article.question:
            row |= {"question": article.question, "answers": list(article.answers)}
        return [
            {
                **row,
                **entry["same"],
                **kept_or(_too_short(plan, text) or entry["same"].get("why", "")),
                "content": text,
            }
        ]

    def inputs() -> Iterator[Row]:
        for article in _sourced(plan, summary):
            same = (
                _same(article, titles, texts) if len(article.text) > plan.setting("length") else {}
            )
            yield {"id": article.id, "article": article, "same": same}

    def of(entry: Row) -> Any:
        return [asdict(entry["article"]), entry["same"], plan.setting("length")]

    online = [plan.setting("api")] if plan.kind == "mediawiki" else []
    draw = [
        plan.request.limit,
        plan.setting("pick"),
        plan.setting("seed") if plan.setting("pick") == "random" else 0,
    ]
    once = digest([plan.kind, plan.stamp, *online, *draw, plan.setting("length")])
    return RowsRequest(
        "1-articles", "articles", inputs, make, depends_on=of, source=once, summary=lambda: summary
    )


def _sourced(plan: BaragPlan, summary: dict[str, Any]) -> Iterator[SourceArticle]:
    if plan.kind == "mediawiki":
        yield from _online(plan)
        return
    reading, articles = read_articles(plan.kind, plan.path)
    none = True
    for article in drawn(
        articles, plan.request.limit, plan.setting("pick") == "random", plan.setting("seed")
    ):
        none = False
        yield article
    bad = reading.source.problems
    if none:
        first = (
            f", only {bad.count} entries that cannot be read; the first: {bad.first[0].message}"
            if bad.count
            else "."
        )
        raise BadFileError(f"{plan.path} holds no article{first}")
    summary["left_out"] = {
        **({"cannot be read": bad.count} if bad.count else {}),
        **reading.passed_over,
    }
    summary["problems"] = [problem.message for problem in bad.first]
    summary["notes"] = reading.notes


def _online(plan: BaragPlan) -> Iterator[SourceArticle]:
    """Those that an earlier session drew, then new ones."""
    drawn_rows = RowFile(plan.request.folder / "1-articles.jsonl")
    drawn_rows.settle_all()
    number = plan.request.limit or DRAWN
    known = set()
    for row in drawn_rows:
        known.add(row["id"])
        yield SourceArticle(
            row["id"], row["title"], row["content"], row.get("url", ""), row.get("date", "")
        )
    if number > len(known):
        yield from random_articles(plan.setting("api"), number - len(known), known)


def _same(article: SourceArticle, titles: dict[str, str], texts: dict[str, str]) -> Row:
    """Why and of which earlier article this one is a duplicate; {} if it is none."""
    title, text = " ".join(article.title.casefold().split()), digest(article.text)[:16]
    for reason, seen, key in ((why.SAME_TITLE, titles, title), (why.SAME_TEXT, texts, text)):
        if key and key in seen:
            return {"why": reason, "same_as": seen[key]}
    titles[title] = texts[text] = article.id
    return {}


def _too_short(plan: BaragPlan, text: str) -> str:
    return "" if len(text) > plan.setting("length") else why.SHORT


def kept_or(reason: str) -> Row:
    """What a row says of being kept: left out with a reason, or kept without one."""
    return {"keep": not reason, "why": reason}


# ── 2  dates ─────────────────────────────────────────────────────────────────


def dates(plan: BaragPlan, articles: RowFile) -> RowsRequest:
    """Later than the date."""

    def make(row: Row) -> list[Row]:
        return [
            {
                "id": row["id"],
                "title": row["title"],
                "date": row["date"],
                **kept_or(_early(plan, row["date"])),
            }
        ]

    def inputs() -> Iterator[Row]:
        for row in articles:
            if row["keep"]:
                date = (
                    plan.dates.get(row["id"])
                    or plan.dates.get(row.get("title", ""))
                    or row.get("date", "")
                )
                yield {"id": row["id"], "title": row.get("title", ""), "date": date}

    def of(row: Row) -> Any:
        return [row["date"], plan.setting("after"), plan.setting("undated")]

    return RowsRequest("2-dates", "date filter", inputs, make, depends_on=of)


def _early(plan: BaragPlan, date: str) -> str:
    """Why an article is left out for its date, '' if it is not. As in the study, the instant itself is not after it."""
    if plan.after is None:
        return ""
    moment = read_date(date)
    if moment is None:
        reason = why.BAD_DATE if date.strip() else why.NO_DATE
        return reason if plan.setting("undated") == why.LEAVE_OUT else ""
    return "" if moment > plan.after else why.EARLY


# ── 3  recency ───────────────────────────────────────────────────────────────


def recency(plan: BaragPlan, store: RowFile, dated: RowFile) -> RowsRequest:
    """About what happened since the date, by a model's verdict."""
    asks = plan.asks(plan.judge, 0.0)
    date = plan.after.date().isoformat() if plan.after else ""

    def flow(row: Row) -> Any:
        return asking.recency(
            asks, plan.prompts["recency"], plan.text(whole(store, row["id"])), date
        )

    def read(row: Row, episode: Episode) -> list[Row]:
        verdict = json.loads(episode.answer) if not episode.error else {"value": None}
        reason = "" if verdict["value"] else why.OLD
        word = (
            "unknown"
            if verdict["value"] is None
            else "recent"
            if verdict["value"]
            else "not recent"
        )
        new = {"id": row["id"], "title": row["title"], "verdict": word}
        return [{**new, **unknown_or(plan, verdict["value"], reason, episode), "recent": verdict}]

    def of(row: Row) -> Any:
        return [
            row["sha"],
            date,
            plan.prompts["recency"],
            asdict(asks),
            plan.setting("characters"),
            plan.setting("unknown"),
        ]

    inputs = brief(store, dated)
    return RowsRequest(
        "3-recency",
        "recency filter",
        lambda: inputs,
        flow=flow,
        read=read,
        depends_on=of,
        llms=(plan.judge,),
    )


def unknown_or(plan: BaragPlan, value: bool | None, reason: str, episode: Episode) -> Row:
    """``keep`` and ``why`` of a verdict; one that could not be read is counted and goes the way that was chosen."""
    if value is not None:
        return kept_or(reason)
    left = why.UNKNOWN if plan.setting("unknown") == why.LEAVE_OUT else ""
    return {**kept_or(left), "unknown": True, **_error(episode)}


def _error(episode: Episode) -> Row:
    return {"error": episode.error} if episode.error else {}


def brief(store: RowFile, articles: RowFile) -> list[Row]:
    """What a stage must know of the articles that are kept: id, title and digits over all that a model may be shown."""
    names = {row["id"] for row in articles if row["keep"]}
    return [
        {
            "id": row["id"],
            "title": row.get("title", ""),
            "sha": short([row.get("title", ""), row.get("content", "")]),
        }
        for row in store
        if row["id"] in names
    ]


def whole(store: RowFile, name: str) -> Row:
    """An article as it was fetched, with the title and content that it may lack."""
    row = store.row(name)
    return {**row, "title": row.get("title", ""), "content": row.get("content", "")}


# ── 4  questions ─────────────────────────────────────────────────────────────


def questions(plan: BaragPlan, store: RowFile, articles: RowFile) -> RowsRequest:
    """Written by a model, or those that the articles bring."""
    inputs, number, answers = (
        brief(store, articles),
        plan.setting("questions"),
        plan.setting("answers"),
    )
    if not number:
        return RowsRequest(
            "4-questions",
            "questions given",
            lambda: inputs,
            make=lambda row: _of_article(store, row),
            depends_on=lambda row: row["sha"],
        )
    asks = plan.asks(plan.request.llm, plan.setting("temperature"))
    prompt = plan.prompts["questions"]

    def flow(row: Row) -> Any:
        return asking.questions(asks, prompt, plan.text(whole(store, row["id"])), number, answers)

    def read(row: Row, episode: Episode) -> list[Row]:
        verdict = json.loads(episode.answer) if not episode.error else {}
        exchange = {key: verdict[key] for key in ("prompt", "reply", "tries") if key in verdict}
        rows = [
            {
                "id": f"{row['id']}-q{n}",
                "article": row["id"],
                "title": row["title"],
                "question": question,
                "answers": own_answers,
                "keep": True,
                "why": "",
            }
            for n, (question, own_answers) in enumerate(verdict.get("value") or (), 1)
        ]
        if not rows:
            reason = why.FAILED if episode.error else why.NO_QUESTION
            base = {
                "id": f"{row['id']}-q0",
                "article": row["id"],
                "title": row["title"],
                "question": "",
                "answers": [],
            }
            rows = [
                {
                    **base,
                    **kept_or(reason),
                    **({} if episode.error else {"unknown": True}),
                    **_error(episode),
                }
            ]
        return [{**rows[0], **exchange}, *rows[1:]]

    def of(row: Row) -> Any:
        return [row["sha"], number, answers, prompt, asdict(asks), plan.setting("characters")]

    return RowsRequest(
        "4-questions",
        "questions",
        lambda: inputs,
        flow=flow,
        read=read,
        depends_on=of,
        llms=(plan.request.llm,),
    )


def _of_article(store: RowFile, row: Row) -> list[Row]:
    article = store.row(row["id"])
    question = cleaned(str(article.get("question") or ""))
    new = {
        "id": row["id"],
        "article": row["id"],
        "title": row["title"],
        "question": question,
        "answers": list(article.get("answers") or ()),
    }
    return [{**new, **kept_or("" if question else why.NONE_GIVEN)}]


def article_of(row: Row) -> str:
    """The article that a question is about."""
    return str(row.get("article") or row.get("from") or "")
