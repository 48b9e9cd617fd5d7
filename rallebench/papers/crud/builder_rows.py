"""Inputs and rows of the stages of CRUD-RAG's builder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rallebench.core.types import Json
from rallebench.experiments.builders.rows import RowState

UNREAD = "unread"
"""The reason for a row with an unreadable reply."""


@dataclass(frozen=True, slots=True)
class TaskInput:
    """The beginning of an article, or related articles with the beginning of each."""

    id: str
    title: str = ""
    text: str = ""
    articles: Sequence[str] = ()
    texts: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class GroupRow:
    """Related articles."""

    group: TaskInput

    @property
    def id(self) -> str:
        return self.group.id

    def to_json(self) -> Json:
        members = {"articles": list(self.group.articles), "texts": list(self.group.texts)}
        return {"id": self.id, **members, **RowState().to_json()}


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A record of a task, or the reason for its absence.

    ``record``: CRUD-RAG's fields; ``reply``: the beginning of a reply without a record; ``error``: the error of a failed
    request.
    """

    id: str
    articles: Sequence[str]
    record: Json = field(default_factory=dict)
    why: str = ""
    reply: str | None = None
    error: str = ""

    def to_json(self) -> Json:
        base = {"id": self.id, "articles": list(self.articles), **self.record}
        reply = {} if self.reply is None else {"said": self.reply}
        unread = {"unknown": True} if self.why == UNREAD else {}
        error = {"error": self.error} if self.error else {}
        return {**base, "keep": not self.why, "why": self.why, **reply, **unread, **error}


@dataclass(frozen=True, slots=True)
class RowMembers:
    """The articles behind a row."""

    id: str
    articles: Sequence[str]


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """The part of a question's row needed for its record in KILT's form."""

    id: str
    articles: Sequence[str]
    questions: str
    answers: str
