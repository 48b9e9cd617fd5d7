"""Training paragraphs that share text with an evaluation corpus.

A paragraph is recognised by the hashes of its sentences, without case, punctuation and spacing, so
that another edition's spacing or paragraph breaks do not hide it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from rallebench.core.errors import NotFoundError
from rallebench.corpora.reading import read_corpus
from rallebench.reader.text import sentences
from tools.reader.sources import Context

LEAST_CHARACTERS = 40
"""Letters and digits of a sentence that tells anything; shorter ones occur everywhere."""


def marks(text: str) -> set[str]:
    """The hashes of a text's telling sentences, and of the whole text.

    >>> marks("It rises in the Swiss Alps , and flows into the North Sea .") == marks(
    ...     "It rises in the Swiss Alps, and flows into the North Sea.")
    True
    """
    texts = {_bare(text)} | {_bare(text[a:b]) for a, b in sentences(text)}
    return {
        hashlib.sha256(bare.encode()).hexdigest()[:16]
        for bare in texts
        if len(bare) >= LEAST_CHARACTERS
    }


def excluded_marks(corpora: Iterable[Path], trained: frozenset[str] = frozenset()) -> set[str]:
    """The marks of all passages of corpora in TSV form (id, text, title), but for articles named in ``trained``."""
    hashes: set[str] = set()
    for path in corpora:
        if not path.is_file():
            raise NotFoundError(f"The corpus to keep out of training, {path}, does not exist.")
        for passage in read_corpus(path):
            if (passage.title or "").replace("_", " ") not in trained:
                hashes |= marks(passage.text)
    return hashes


def without(
    contexts: Sequence[Context], excluded: set[str], titles: frozenset[str]
) -> list[Context]:
    """The contexts that share no sentence with the excluded corpora and no title with ``titles``."""
    return [
        c
        for c in contexts
        if c.title.replace("_", " ") not in titles and not (marks(c.text) & excluded)
    ]


def _bare(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())


def titles_of(corpus: Path) -> frozenset[str]:
    """The titles of a corpus, with spaces for underscores."""
    return frozenset(p.title.replace("_", " ") for p in read_corpus(corpus) if p.title)
