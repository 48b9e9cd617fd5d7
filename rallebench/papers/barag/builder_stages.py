"""The five stages of ``barag``; each reads the rows that the stage before it kept."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rallebench.core.experiments import Row, RowsRequest
from rallebench.core.types import Episode, Flow, Outcome
from rallebench.engine.rowfile import RowFile, short
from rallebench.experiments.builders.articles import articles_stage, read_date
from rallebench.experiments.builders.replies import cleaned, state_of, used
from rallebench.metrics.words import words
from rallebench.papers.barag.builder_asking import (
    ANSWERABLE,
    KNOWN,
    RECENT,
    RIGHT,
    BaragPlan,
    mentions_its_text,
    questions_form,
)
from rallebench.papers.barag.builder_settings import LEAVE_OUT

# ── 1  articles ──────────────────────────────────────────────────────────────


def articles(plan: BaragPlan) -> RowsRequest:
    """Long enough, and each only once."""
    s = plan.settings
    at_random, api = s.pick == "random", s.api if plan.kind == "mediawiki" else ""
    return articles_stage(
        plan.request, plan.kind, plan.path, s.length, at_random=at_random, api=api
    )


# ── 2  dates ─────────────────────────────────────────────────────────────────


def dates(plan: BaragPlan, articles: RowFile) -> RowsRequest:
    """Later than the date."""
    s = plan.settings

    def inputs() -> Iterator[Row]:
        for row in used(articles):
            title = row.get("title", "")
            date = plan.dates.get(row["id"]) or plan.dates.get(title) or row.get("date", "")
            yield {"id": row["id"], "title": title, "date": date}

    return RowsRequest(
        "2-dates",
        "date filter",
        inputs,
        make=lambda row: [{**row, **state_of(_early(plan, row["date"]))}],
        depends_on=lambda row: [row["date"], s.after, s.undated],
    )


def _early(plan: BaragPlan, date: str) -> str:
    """Why an article is left out for its date, '' if it is not. As in the study, the instant itself is not after it."""
    if plan.after is None:
        return ""
    moment = read_date(date)
    if moment is None:
        reason = "date cannot be read" if date.strip() else "no date"
        return reason if plan.settings.undated == LEAVE_OUT else ""
    return "" if moment > plan.after else "not after the date"


# ── 3  recency ───────────────────────────────────────────────────────────────


def recency(plan: BaragPlan, store: RowFile, dated: RowFile) -> RowsRequest:
    """Articles about events since the date, by a model's verdict."""
    date = plan.after.date().isoformat() if plan.after else ""

    def flow(row: Row) -> Flow:
        text = plan.text(store, row["id"])
        return Outcome(json.dumps((yield from plan.ask(RECENT, {"DATE": date}, text))))

    def read(row: Row, episode: Episode) -> list[Row]:
        verdict = _verdict(episode) or {"value": None}
        value = verdict["value"]
        if value is None:
            word, state = "unknown", _unknown(plan, episode)
        else:
            word = "recent" if value else "not recent"
            state = state_of("" if value else "content not recent")
        new = {"id": row["id"], "title": row["title"], "verdict": word}
        return [{**new, **state, "recent": verdict}]

    more = [date, plan.judge, *plan.depends_on(RECENT), plan.settings.unknown]
    inputs = brief(store, dated)
    return RowsRequest(
        "3-recency",
        "recency filter",
        lambda: inputs,
        flow=flow,
        read=read,
        depends_on=lambda row: [row["sha"], *more],
        llms=(plan.judge,),
    )


def _verdict(episode: Episode) -> Row:
    """The verdicts of a flow's answer; {} if it failed."""
    return {} if episode.error else json.loads(episode.answer)


def _unknown(plan: BaragPlan, episode: Episode) -> Row:
    """The state of a row whose verdict could not be read: it is counted, and kept or left out as ``unknown`` says."""
    left = "verdict cannot be read" if plan.settings.unknown == LEAVE_OUT else ""
    return {**state_of(left), "unknown": True, **_error(episode)}


def _error(episode: Episode) -> Row:
    return {"error": episode.error} if episode.error else {}


def brief(store: RowFile, articles: RowFile) -> list[Row]:
    """The articles that are kept: id, title, and a digest of all that a model may be shown."""
    names = {row["id"] for row in used(articles)}
    rows = []
    for row in store:
        if row["id"] in names:
            title, content = row.get("title", ""), row.get("content", "")
            rows.append({"id": row["id"], "title": title, "sha": short([title, content])})
    return rows


# ── 4  questions ─────────────────────────────────────────────────────────────


def questions(plan: BaragPlan, store: RowFile, articles: RowFile) -> RowsRequest:
    """Written by a model, or those that the articles bring."""
    s, inputs = plan.settings, brief(store, articles)
    number, answers = s.questions, s.answers
    if not number:
        return RowsRequest(
            "4-questions",
            "questions given",
            lambda: inputs,
            make=lambda row: _of_article(store, row),
            depends_on=lambda row: row["sha"],
        )
    form, llm = questions_form(number, answers), plan.request.llm
    count = "one question" if number == 1 else f"{number} different questions"

    def flow(row: Row) -> Flow:
        text, values = plan.text(store, row["id"]), {"NUMBER": count}
        verdict = yield from plan.ask(form, values, text, llm, s.temperature)
        return Outcome(json.dumps(verdict))

    def read(row: Row, episode: Episode) -> list[Row]:
        verdict = _verdict(episode)
        exchange: Row = {
            key: verdict[key] for key in ("prompt", "reply", "tries") if key in verdict
        }
        rows = [
            {**_question(row, f"-q{n}", question, own), **state_of("")}
            for n, (question, own) in enumerate(verdict.get("value") or (), 1)
        ]
        if not rows:
            reason = "the request failed" if episode.error else "no question in the reply"
            marks = _error(episode) or {"unknown": True}
            rows = [{**_question(row, "-q0", "", []), **state_of(reason), **marks}]
        return [{**rows[0], **exchange}, *rows[1:]]

    more = [number, answers, llm, s.temperature, *plan.depends_on(form)]
    return RowsRequest(
        "4-questions",
        "questions",
        lambda: inputs,
        flow=flow,
        read=read,
        depends_on=lambda row: [row["sha"], *more],
        llms=(llm,),
    )


def _question(row: Row, end: str, question: str, answers: Any) -> Row:
    return {
        "id": f"{row['id']}{end}",
        "article": row["id"],
        "title": row["title"],
        "question": question,
        "answers": answers,
    }


def _of_article(store: RowFile, row: Row) -> list[Row]:
    article = store.row(row["id"])
    question = cleaned(str(article.get("question") or ""))
    new = _question(row, "", question, list(article.get("answers") or ()))
    return [{**new, **state_of("" if question else "brings no question")}]


def article_of(row: Row) -> str:
    """The article that a question is about."""
    return str(row.get("article") or row.get("from") or "")


# ── 5  checks ────────────────────────────────────────────────────────────────


def checks(plan: BaragPlan, store: RowFile, questions: RowFile) -> RowsRequest:
    """The questions with the reason why one is left out; a model is asked only where its words do not decide it."""
    s = plan.settings
    models = (plan.judge,) if s.answerable or s.closed_book else ()
    more = [s.answerable, s.closed_book, plan.judge, s.unknown]
    more += plan.depends_on(ANSWERABLE, KNOWN, RIGHT)
    inputs = _to_check(plan, store, questions)

    def flow(row: Row) -> Flow:
        if row["near"] or row["leak"]:  # left out without a verdict
            return Outcome("{}")
        text = plan.text(store, row["article"])
        return (yield from plan.check(row["question"], row["answers"], text))

    stage = RowsRequest(
        "5-checks",
        "quality checks",
        lambda: inputs,
        make=lambda row: [_checked(plan, row, None)],
        depends_on=lambda row: [{**row}, *more],
    )
    if not models:
        return stage
    return replace(
        stage,
        make=None,
        flow=flow,
        read=lambda row, episode: [_checked(plan, row, episode)],
        llms=models,
    )


def _to_check(plan: BaragPlan, store: RowFile, questions: RowFile) -> list[Row]:
    """The questions that are kept, with the checks that need no model."""
    s, shas = plan.settings, {row["id"]: row["sha"] for row in brief(store, store)}
    rows = [
        row
        for row in used(questions)
        if str(row.get("question", "")).strip() and article_of(row) in shas
    ]
    mentions = mentions_its_text if s.leaks else lambda question: ""
    leaks = {row["id"]: mentions(row["question"]) for row in rows}
    standing = [(row["id"], row["question"]) for row in rows if not leaks[row["id"]]]
    near = near_duplicates(standing, s.near) if s.near else {}
    return [
        {
            "id": row["id"],
            "article": article_of(row),
            "question": row["question"],
            "answers": list(row.get("answers") or ()),
            "near": near.get(row["id"], ""),
            "leak": leaks[row["id"]],
            "sha": shas[article_of(row)],
        }
        for row in rows
    ]


def near_duplicates(questions: Sequence[tuple[str, str]], least: float) -> Mapping[str, str]:
    """Id → id of the first earlier question whose words overlap by ``least`` (0..1, more than 0) or more; each kept one only.

    >>> near_duplicates([("a", "Who wrote Emma?"), ("b", "Who wrote Emma"), ("c", "Who wrote Persuasion?")], 0.8)
    {'b': 'a'}
    """
    bags = {name: frozenset(words(text.lower(), "char")) for name, text in questions}
    often = Counter(word for bag in bags.values() for word in bag)
    # Two bags that overlap by t share one of the rarest |a| - ceil(t |a|) + 1 words of each.
    by_word: dict[str, list[str]] = defaultdict(list)
    places = {name: place for place, (name, _) in enumerate(questions)}
    near: dict[str, str] = {}
    for name, _ in questions:
        bag = bags[name]
        rare = sorted(bag, key=lambda word: (often[word], word))[
            : len(bag) - math.ceil(least * len(bag)) + 1
        ]
        candidates = {other for word in rare for other in by_word[word]}
        alike = [o for o in candidates if len(bag & bags[o]) >= least * len(bag | bags[o])]
        if bag and alike:
            near[name] = min(alike, key=places.__getitem__)
            continue
        for word in rare:
            by_word[word].append(name)
    return near


def _checked(plan: BaragPlan, row: Row, episode: Episode | None) -> Row:
    verdicts = _verdict(episode) if episode is not None else {}
    values = {k: verdicts[k]["value"] for k in ("answerable", "without") if k in verdicts}
    reasons = (
        (row["near"], "nearly the same question"),
        (row["leak"], "mentions its text"),
        (values.get("answerable") is False, "not answered by its article"),
        (values.get("without") is True, "answered without its article"),
    )
    state = state_of(next((reason for holds, reason in reasons if holds), ""))
    if state["keep"] and episode is not None and (episode.error or None in values.values()):
        state = _unknown(plan, episode)
    marks = {key: row[key] for key in ("near", "leak") if row[key]}
    own = {key: row[key] for key in ("id", "article", "question")}
    return {**own, **state, **marks, **verdicts}
