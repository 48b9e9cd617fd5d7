"""The beginning of a corpus or a question set as it would be imported."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.sources import Problem, Problems, Source
from rallebench.corpora.page_maps import read_page_map
from rallebench.corpora.reading import form_of as form_of_corpus
from rallebench.corpora.reading import read_corpus
from rallebench.datasets.reading import form_of as form_of_questions
from rallebench.datasets.reading import read_examples

ROWS, MAX_ROWS = 8, 2000
"""Rows that a preview shows, and rows that it reads at most to find them and their problems."""


@dataclass(frozen=True, slots=True)
class Preview:
    """The beginning of a corpus or a question set as it would be imported, and the bad rows there.

    ``rows``: Passages or Examples. ``read`` rows were looked at; ``ended``: these are all.
    """

    form: str
    rows: tuple[Any, ...]
    problems: tuple[Problem, ...]
    bad: int
    read: int
    ended: bool


def existing(source: Path) -> Path:
    """``source``, if it exists. Raises NotFoundError."""
    if not source.exists():
        raise NotFoundError(f"{source} does not exist; check the path.")
    return source


def preview_corpus(source: Path, form: str, page_map: Path | None, rows: int) -> Preview:
    """The first passages of a corpus. Raises UsageError if it cannot be read at all."""
    form = form or form_of_corpus(existing(source))
    pages = read_page_map(page_map) if page_map else None
    read = Source(source, Problems(skip=True, refuse_empty=True))
    return _preview(form, read_corpus(source, pages, form=form, source=read), read, rows)


def preview_questions(source: Path, form: str, rows: int) -> Preview:
    """The first questions of a set. Raises UsageError if it cannot be read at all."""
    form = form or form_of_questions(existing(source))
    read = Source(source, Problems(skip=True))
    return _preview(form, read_examples(source, form=form, source=read), read, rows)


def _preview(form: str, passages: Iterator[Any], read: Source, rows: int) -> Preview:
    some = []
    with contextlib.suppress(UsageError):  # a file of bad rows alone: they are what is shown
        some = list(itertools.islice(passages, MAX_ROWS))
    return Preview(
        form,
        tuple(some[:rows]),
        tuple(read.problems.first),
        read.problems.count,
        len(some) + read.problems.count,
        len(some) < MAX_ROWS,
    )
