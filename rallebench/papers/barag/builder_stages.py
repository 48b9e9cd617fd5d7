"""The five stages of ``barag``. Each stage reads the rows kept by the previous one."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rallebench.core.experiments import RowId, RowsRequest
from rallebench.core.json_values import as_json
from rallebench.core.settings import fill
from rallebench.core.types import Episode, Flow, Outcome
from rallebench.engine.rowfile import RowFile, short
from rallebench.experiments.builders.articles import ArticleInput, articles_stage, read_date
from rallebench.experiments.builders.replies import clean_question, kept_rows
from rallebench.experiments.builders.rows import ArticleBrief, ArticleRow, RowState
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
from rallebench.papers.barag.builder_rows import (
    ArticleDigest,
    CheckedRow,
    CheckInput,
    Checks,
    DatedArticle,
    DateRow,
    ModelVerdict,
    RecencyRow,
    WrittenRow,
    read_questions,
)
from rallebench.papers.barag.builder_settings import LEAVE_OUT

# ── 1  articles ──────────────────────────────────────────────────────────────


def articles(plan: BaragPlan) -> RowsRequest[ArticleInput]:
    """Sufficiently long articles, without duplicates."""
    s = plan.settings
    at_random, api = s.pick == "random", s.api if plan.kind == "mediawiki" else ""
    return articles_stage(
        plan.request, plan.kind, plan.path, s.length, at_random=at_random, api=api
    )


# ── 2  dates ─────────────────────────────────────────────────────────────────


def dates(plan: BaragPlan, articles: RowFile) -> RowsRequest[DatedArticle]:
    """Articles dated after the setting ``after``."""
    s = plan.settings

    def inputs() -> Iterator[DatedArticle]:
        for article in articles.read_kept(ArticleBrief):
            date = plan.dates.get(article.id) or plan.dates.get(article.title) or article.date
            yield DatedArticle(article.id, article.title, date)

    return RowsRequest(
        "2-dates",
        "date filter",
        inputs,
        make=lambda article: [DateRow(article, RowState(_early(plan, article.date)))],
        depends_on=lambda article: [article.date, s.after, s.undated],
    )


def _early(plan: BaragPlan, date: str) -> str:
    """The reason to omit an article because of its date, or ''. As in the study, a date equal to ``after`` is too early."""
    if plan.after is None:
        return ""
    moment = read_date(date)
    if moment is None:
        reason = "date cannot be read" if date.strip() else "no date"
        return reason if plan.settings.undated == LEAVE_OUT else ""
    return "" if moment > plan.after else "not after the date"


# ── 3  recency ───────────────────────────────────────────────────────────────


def recency(plan: BaragPlan, store: RowFile, dated: RowFile) -> RowsRequest[ArticleDigest]:
    """Articles about events since the date, as judged by a model."""
    date = plan.after.date().isoformat() if plan.after else ""

    def flow(article: ArticleDigest) -> Flow:
        text = plan.text(store, article.id)
        verdict = yield from plan.ask(RECENT, {"DATE": date}, text)
        return Outcome(json.dumps(verdict.to_json()))

    def read(article: ArticleDigest, episode: Episode) -> list[RecencyRow]:
        verdict: ModelVerdict[bool] = _verdict(episode)
        if verdict.value is None:
            state = _unknown(plan, episode)
        else:
            state = RowState("" if verdict.value else "content not recent")
        return [RecencyRow(article.id, article.title, state, verdict)]

    more = [date, plan.judge, *plan.depends_on(RECENT.prompt), plan.settings.unknown]
    inputs = digests(store, dated)
    return RowsRequest(
        "3-recency",
        "recency filter",
        lambda: inputs,
        flow=flow,
        read=read,
        depends_on=lambda article: [article.sha, *more],
        llms=(plan.judge,),
    )


def _verdict(episode: Episode) -> ModelVerdict[Any]:
    """The verdict in a flow's answer; its value is None if the flow failed."""
    return ModelVerdict() if episode.error else fill(ModelVerdict, json.loads(episode.answer))


def _unknown(plan: BaragPlan, episode: Episode) -> RowState:
    """The state of a row with an unreadable verdict. The row is counted, and kept or omitted according to the setting
    ``unknown``."""
    left = "verdict cannot be read" if plan.settings.unknown == LEAVE_OUT else ""
    return RowState(left, unknown=True, error=episode.error or "")


def digests(store: RowFile, articles: RowFile) -> list[ArticleDigest]:
    """The kept articles."""
    ids = {row.id for row in articles.read_kept(RowId)}
    return [
        ArticleDigest(article.id, article.title, short([article.title, article.content]))
        for article in store.read(ArticleRow)
        if article.id in ids
    ]


# ── 4  questions ─────────────────────────────────────────────────────────────


def questions(plan: BaragPlan, store: RowFile, articles: RowFile) -> RowsRequest[ArticleDigest]:
    """Questions written by a model or included with the articles."""
    s, inputs = plan.settings, digests(store, articles)
    if not s.questions:
        return RowsRequest(
            "4-questions",
            "questions given",
            lambda: inputs,
            make=lambda article: [_given_question(store.read_first(article.id, ArticleRow))],
            depends_on=lambda article: article.sha,
        )
    form, llm = questions_form(s.questions, s.answers), plan.request.llm
    count = "one question" if s.questions == 1 else f"{s.questions} different questions"

    def flow(article: ArticleDigest) -> Flow:
        text, values = plan.text(store, article.id), {"NUMBER": count}
        verdict = yield from plan.ask(form, values, text, llm, s.temperature)
        return Outcome(json.dumps(verdict.to_json()))

    more = [s.questions, s.answers, llm, s.temperature, *plan.depends_on(form.prompt)]
    return RowsRequest(
        "4-questions",
        "questions",
        lambda: inputs,
        flow=flow,
        read=_written_questions,
        depends_on=lambda article: [article.sha, *more],
        llms=(llm,),
    )


def _written_questions(article: ArticleDigest, episode: Episode) -> list[WrittenRow]:
    """The questions in a model's reply, or one row with the reason for their absence."""
    verdict = _verdict(episode)
    rows = [
        WrittenRow(f"{article.id}-q{n}", article.id, article.title, question, answers)
        for n, (question, answers) in enumerate(verdict.value or (), 1)
    ]
    if not rows:
        state = (
            RowState("the request failed", error=episode.error)
            if episode.error
            else RowState("no question in the reply", unknown=True)
        )
        rows = [WrittenRow(f"{article.id}-q0", article.id, article.title, state=state)]
    return [replace(rows[0], verdict=verdict), *rows[1:]]


def _given_question(article: ArticleRow) -> WrittenRow:
    question = clean_question(article.question or "")
    state = RowState("" if question else "brings no question")
    answers = article.answers or ()
    return WrittenRow(article.id, article.id, article.title, question, answers, state)


# ── 5  checks ────────────────────────────────────────────────────────────────


def checks(plan: BaragPlan, store: RowFile, questions: RowFile) -> RowsRequest[CheckInput]:
    """The questions, each with the reason for any omission. A model is asked only about questions that pass the word
    checks."""
    s = plan.settings
    models = (plan.judge,) if s.answerable or s.closed_book else ()
    more = [s.answerable, s.closed_book, plan.judge, s.unknown]
    more += plan.depends_on(ANSWERABLE.prompt, KNOWN.prompt, RIGHT.prompt)
    inputs = _to_check(plan, store, questions)

    def flow(question: CheckInput) -> Flow:
        if question.near or question.leak:  # omitted without a verdict
            return Outcome("{}")
        text = plan.text(store, question.article)
        return (yield from plan.check(question.question, question.answers, text))

    stage = RowsRequest(
        "5-checks",
        "quality checks",
        lambda: inputs,
        make=lambda question: [_check_row(plan, question, None)],
        depends_on=lambda question: [as_json(question), *more],
    )
    if not models:
        return stage
    return replace(
        stage,
        make=None,
        flow=flow,
        read=lambda question, episode: [_check_row(plan, question, episode)],
        llms=models,
    )


def _to_check(plan: BaragPlan, store: RowFile, questions: RowFile) -> list[CheckInput]:
    """The kept questions, with the checks that need no model."""
    s, shas = plan.settings, {article.id: article.sha for article in digests(store, store)}
    candidates = [
        question
        for question in read_questions(kept_rows(questions))
        if question.question.strip() and question.article in shas
    ]
    mentions = mentions_its_text if s.leaks else lambda question: ""
    leaks = {question.id: mentions(question.question) for question in candidates}
    clean = [(question.id, question.question) for question in candidates if not leaks[question.id]]
    near = near_duplicates(clean, s.near) if s.near else {}
    return [
        CheckInput(
            question.id,
            question.article,
            question.question,
            list(question.answers or ()),
            near.get(question.id, ""),
            leaks[question.id],
            shas[question.article],
        )
        for question in candidates
    ]


def near_duplicates(questions: Sequence[tuple[str, str]], least: float) -> Mapping[str, str]:
    """Id → id of the first earlier question with a word overlap of at least ``least`` (0 < ``least`` <= 1). Omitted questions
    are ignored.

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


def _check_row(plan: BaragPlan, question: CheckInput, episode: Episode | None) -> CheckedRow:
    """The row of a question. ``episode``: the flow's request for verdicts; None if no model was asked."""
    answered = episode is not None and not episode.error
    checks = Checks.from_text(episode.answer) if episode and answered else Checks()
    reasons = (
        (question.near, "nearly the same question"),
        (question.leak, "mentions its text"),
        (checks.answerable and checks.answerable.value is False, "not answered by its article"),
        (checks.without and checks.without.value is True, "answered without its article"),
    )
    state = RowState(next((reason for holds, reason in reasons if holds), ""))
    if state.keep and episode is not None and (episode.error or checks.is_unread):
        state = _unknown(plan, episode)
    return CheckedRow(question, state, checks)
