"""An article of a source, and the progress of reading a source."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from rallebench.core.sources import Source


@dataclass(frozen=True, slots=True)
class SourceArticle:
    """An article. ``date``: as written, or ''. ``question`` and ``answers``: supplied by the source. ``wikitext``: true
    if the text is MediaWiki markup, see ``plain_text``."""

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
    """State of reading a source. ``passed_over``: reason → number of entries that were not taken as articles;
    ``notes``: for the user."""

    source: Source
    passed_over: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
