"""An article of a source, and the progress of reading a source."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from rallebench.core.sources import Source


@dataclass(frozen=True, slots=True)
class SourceArticle:
    """An article. ``date``: as written, or ''. ``question``, ``answers``: supplied by the source. ``wikitext``: true if the
    text is MediaWiki markup, see ``plain_text``."""

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
    """A source being read. ``passed_over``: reason → number of skipped entries; ``notes``: messages for the user."""

    source: Source
    passed_over: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
