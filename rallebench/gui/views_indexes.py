"""Indexes, and what is kept for building more of them, as HTML. Pure: everything is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from rallebench.core.entries import Manifest
from rallebench.core.errors import StoppedError
from rallebench.core.memory import size
from rallebench.gui.views import badge, duration, empty
from rallebench.gui.views_data import table
from rallebench.services.indexes import Verified
from rallebench.workspace.indexes.cache import PASSAGES, CacheEntry
from rallebench.workspace.indexes.vectors import CachedVectors

NO_VECTORS = "No vectors are kept yet: a build of any kind but BM25 keeps them here, and others over the same passages share them."
NOTHING_STORED = (
    "Nothing is kept yet: sweeps over chunk sizes and the grids of suites keep what they cut and hashed here, so that no corpus "
    "is cut twice and no text encoded twice."
)


@dataclass(frozen=True, slots=True)
class IndexRow:
    """A line of the table of indexes: a manifest, or something that is not built, combined or damaged."""

    name: str
    manifest: Manifest | None = None
    about: str = ""
    state: str = ""
    problem: str = ""


_STATES = {"loaded": "good", "being built": "page"}


def indexes(rows: Sequence[IndexRow], checks: Mapping[str, Any]) -> str:
    """All indexes and combinations; ``checks``: how checks of them ended."""
    heads = [
        ("Name", False),
        ("Kind", False),
        ("Encoder", False),
        ("Corpus", False),
        ("Passages", True),
    ]
    heads += [("Disk", True), ("Built in", True), ("State", False)]
    return table(heads, [_index(row, checks.get(row.name)) for row in rows])


def _index(row: IndexRow, check: Any) -> list[str]:
    name = f"<b>{escape(row.name)}</b>"
    if row.problem:
        return [
            name,
            "",
            "",
            f'<span class="definition">{escape(row.problem)}</span>',
            "",
            "",
            "",
            badge("damaged", "bad"),
        ]
    state = badge(row.state, _STATES.get(row.state, "")) if row.state else ""
    if isinstance(check, Verified):
        state += badge("checked", "good")
    elif isinstance(check, Exception) and not isinstance(check, StoppedError):
        state += badge("damaged", "bad")
    m = row.manifest
    if m is None:
        return [
            name,
            f'<span class="definition">{escape(row.about)}</span>',
            "",
            "",
            "",
            "",
            "",
            state,
        ]
    encoder = f"{escape(m.encoder_name)} <span class='definition'>{m.dim}</span>" if m.dim else ""
    kind = escape(m.kind) + _shown_parameters(m.parameters)
    return [
        name,
        kind,
        encoder,
        escape(m.corpus),
        f"{m.passages:,}",
        size(m.bytes),
        _seconds(m.seconds),
        state,
    ]


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else duration(seconds)


def _shown_parameters(parameters: Mapping[str, Any]) -> str:
    shown = ", ".join(
        f"{key} {value}"
        for key, value in parameters.items()
        if key in ("m", "ef_construction", "nlist", "k1", "b")
    )
    return f' <span class="definition">{escape(shown)}</span>' if shown else ""


def vectors(found: Sequence[CachedVectors]) -> str:
    """The cached vectors."""
    if not found:
        return empty(NO_VECTORS)
    rows = [
        [
            f"<code>{escape(k.key)}</code>",
            escape(k.encoder),
            f"{k.passages:,}",
            str(k.dim),
            escape(k.dtype),
            size(k.bytes),
            badge("complete", "good") if k.complete else badge(f"{k.done:,} encoded", "page"),
        ]
        for k in found
    ]
    heads = [
        ("Key", False),
        ("Encoder", False),
        ("Passages", True),
        ("Dimensions", True),
        ("Encoded in", False),
    ]
    return table([*heads, ("Disk", True), ("State", False)], rows)


def stored(found: Sequence[CacheEntry]) -> str:
    """Corpora that were cut, and tables of their texts."""
    if not found:
        return empty(NOTHING_STORED)
    rows = [
        [
            f"<code>{escape(short(one.key))}</code>",
            *map(escape, said_of(one)),
            f"{one.passages:,}",
            size(one.bytes),
        ]
        for one in found
    ]
    heads = [
        ("Key", False),
        ("What", False),
        ("Corpus", False),
        ("Cut into", False),
        ("Passages", True),
        ("Disk", True),
    ]
    return table(heads, rows)


def short(key: str) -> str:
    """A key with as much of its digits as tells two apart.

    >>> short("texts/3ed1eb4957ce37b9a5c7.npy")
    'texts/3ed1eb4957ce…'
    """
    folder, _, name = key.partition("/")
    return f"{folder}/{name[:12]}…"


def said_of(one: CacheEntry) -> list[str]:
    """What it is, of which corpus, cut how."""
    what = "passages" if one.kind == PASSAGES else "table of texts"
    if one.chunking is None:
        return [what, one.corpus or "–", "whole documents" if one.corpus else "–"]
    overlap = f", overlap {one.chunking.overlap}" if one.chunking.overlap else ""
    return [what, one.corpus or "–", f"{one.chunking.size} {one.chunking.unit}{overlap}"]
