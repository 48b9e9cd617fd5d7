"""Where passages come from: formats that stream a corpus, the ways to cut it, and the store it is kept in.

A format is a reader ``(source) -> Iterator[Row]``, one file each. It streams, hands every bad row to
``source.bad``, and knows nothing of page maps and equal ids, which ``reading`` adds for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from rallebench.core.registry import Registry
from rallebench.core.sources import Problem, Problems, Source

__all__ = [
    "CORPORA",
    "ID_NAMES",
    "PAGE_NAMES",
    "TEXT_NAMES",
    "Problem",
    "Problems",
    "Reader",
    "Row",
    "Source",
]

ID_NAMES = ("id", "doc_id", "docid", "_id", "pid", "passage_id")
TEXT_NAMES = ("text", "contents", "content")
PAGE_NAMES = ("page_id", "wikipedia_id")


class Row(NamedTuple):
    """A passage as its file has it; ``line`` is the line where it begins, or its number in a folder."""

    line: int
    doc_id: str
    text: str
    title: str = ""
    page_id: str = ""


Reader = Callable[[Source], Iterator[Row]]

CORPORA: Registry[Reader] = Registry(
    "corpus format",
    "rallebench.corpora",
    traits={
        "recognises": "(path) → whether it looks like this format; without it, the format must be named",
        "sample": "a small valid file, name → text; names with a common folder make a folder",
    },
)
