"""One article of a source, and the state of reading a source."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from rallebench.core.sources import Source


@dataclass(frozen=True, slots=True)
class SourceArticle:
    """``date`` as it was written, '' if there is none. ``question`` and ``answers``: what the article brings with it.
    ``wikitext``: whether the text is MediaWiki's, see ``plain_text``."""

    id: str
    title: str
    text: str
    url: str = ""
    date: str = ""
    question: str = ""
    answers: tuple[str, ...] = ()
    wikitext: bool = False


@dataclass
class SourceReading:
    """A source while it is read. ``passed_over``: reason → number of entries that are no articles; ``notes``: for the user."""

    source: Source
    passed_over: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
