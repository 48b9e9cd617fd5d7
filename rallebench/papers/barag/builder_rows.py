"""Inputs and rows of the stages of BARAG's builder, and the verdicts in the rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from rallebench.core.experiments import Row
from rallebench.core.settings import fill
from rallebench.core.types import Json
from rallebench.engine.rowfile import FROM
from rallebench.experiments.builders.rows import RowState

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class ModelVerdict(Generic[V]):
    """The result of a model request.

    ``value``: None for an unreadable reply; ``reason``: None if not requested; ``prompt``: with the article's id in place of
    its text; ``reply``: unchanged; ``tries``: 0 without a request.
    """

    value: V | None = None
    reason: str | None = None
    prompt: str = ""
    reply: str = ""
    tries: int = 0

    def to_json(self) -> Json:
        reason = {} if self.reason is None else {"reason": self.reason}
        if not self.tries:
            return {"value": self.value, **reason}
        exchange = {"prompt": self.prompt, "reply": self.reply}
        return {**exchange, "value": self.value, **reason, "tries": self.tries}


@dataclass(frozen=True, slots=True)
class Checks:
    """The verdicts on a question. ``answerable``: its article contains the answer; ``closed_book``: the answer given without
    the article; ``without``: the closed-book answer is right."""

    answerable: ModelVerdict[bool] | None = None
    closed_book: ModelVerdict[str] | None = None
    without: ModelVerdict[bool] | None = None

    @property
    def is_unread(self) -> bool:
        """True if a verdict is unreadable."""
        return any(check and check.value is None for check in (self.answerable, self.without))

    def to_json(self) -> Json:
        parts = {
            "answerable": self.answerable,
            "closed_book": self.closed_book,
            "without": self.without,
        }
        return {name: verdict.to_json() for name, verdict in parts.items() if verdict}

    @classmethod
    def from_text(cls, text: str) -> Checks:
        """The verdicts in a flow's answer."""
        return cls(
            **{name: fill(ModelVerdict, verdict) for name, verdict in json.loads(text).items()}
        )


@dataclass(frozen=True, slots=True)
class DatedArticle:
    """An article with its unparsed date."""

    id: str
    title: str
    date: str


@dataclass(frozen=True, slots=True)
class DateRow:
    """A row of the date filter."""

    article: DatedArticle
    state: RowState

    @property
    def id(self) -> str:
        return self.article.id

    def to_json(self) -> Json:
        article = self.article
        dated = {"id": article.id, "title": article.title, "date": article.date}
        return {**dated, **self.state.to_json()}


@dataclass(frozen=True, slots=True)
class ArticleDigest:
    """An article's id and title. ``sha``: a digest of all article text shown to a model."""

    id: str
    title: str
    sha: str


@dataclass(frozen=True, slots=True)
class RecencyRow:
    """A row of the recency filter."""

    id: str
    title: str
    state: RowState
    verdict: ModelVerdict[bool]

    def to_json(self) -> Json:
        words = {None: "unknown", True: "recent", False: "not recent"}
        article = {"id": self.id, "title": self.title, "verdict": words[self.verdict.value]}
        return {**article, **self.state.to_json(), "recent": self.verdict.to_json()}


@dataclass(frozen=True, slots=True)
class WrittenRow:
    """A question as stored in the stage's file. ``verdict``: the request that produced it, stored with the first question
    only."""

    id: str
    article: str
    title: str
    question: str = ""
    answers: Sequence[str] = ()
    state: RowState = field(default_factory=RowState)
    verdict: ModelVerdict[Any] | None = None

    def to_json(self) -> Json:
        article = {"id": self.id, "article": self.article, "title": self.title}
        question = {"question": self.question, "answers": list(self.answers)}
        exchange: Json = {}
        if self.verdict and self.verdict.tries:
            verdict = self.verdict
            exchange = {"prompt": verdict.prompt, "reply": verdict.reply, "tries": verdict.tries}
        return {**article, **question, **self.state.to_json(), **exchange}


@dataclass(frozen=True, slots=True)
class WrittenQuestion:
    """A question as read from the stage's file. ``article``: the id of its article."""

    id: str
    question: str = ""
    answers: Sequence[str] | None = ()
    article: str = ""

    @property
    def filled_answers(self) -> list[str]:
        """The non-blank answers."""
        return [text for answer in self.answers or () if (text := str(answer).strip())]


def read_questions(rows: Iterable[Row]) -> Iterator[WrittenQuestion]:
    """The questions in these rows. A question added by a person names its article; any other takes the article of its
    input."""
    for row in rows:
        question = fill(WrittenQuestion, row)
        yield question if question.article else replace(question, article=str(row.get(FROM) or ""))


@dataclass(frozen=True, slots=True)
class CheckInput:
    """A question to check. ``near``: the id of a near-duplicate earlier question; ``leak``: words that refer to the source
    text; ``sha``: the digest of its article."""

    id: str
    article: str
    question: str
    answers: list[str]
    near: str
    leak: str
    sha: str


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """A row of the checks."""

    question: CheckInput
    state: RowState
    checks: Checks

    @property
    def id(self) -> str:
        return self.question.id

    def to_json(self) -> Json:
        question = self.question
        own = {"id": question.id, "article": question.article, "question": question.question}
        near = {"near": question.near} if question.near else {}
        leak = {"leak": question.leak} if question.leak else {}
        return {**own, **self.state.to_json(), **near, **leak, **self.checks.to_json()}
