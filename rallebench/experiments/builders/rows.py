"""Rows of a builder's stages: articles, and row states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rallebench.core.types import Json


@dataclass(frozen=True, slots=True)
class RowState:
    """State of a row: kept, or left out for the reason ``why``. ``unknown``: a verdict could not be read; ``error``: a
    request failed."""

    why: str = ""
    unknown: bool = False
    error: str = ""

    @property
    def keep(self) -> bool:
        return not self.why

    def to_json(self) -> Json:
        unknown: Json = {"unknown": True} if self.unknown else {}
        error = {"error": self.error} if self.error else {}
        return {"keep": self.keep, "why": self.why, **unknown, **error}


@dataclass(frozen=True, slots=True)
class ArticleRow:
    """A row of the article stage. ``question``, ``answers``: supplied by the source."""

    id: str
    title: str = ""
    url: str = ""
    date: str = ""
    content: str = ""
    question: str = ""
    answers: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ArticleBrief:
    """An article without its text."""

    id: str
    title: str = ""
    url: str = ""
    date: str = ""
