"""What can be loaded, what is loaded and what it holds, as HTML. Pure: everything is escaped."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from rallebench.catalog import LLMEntry
from rallebench.gui.views import badge, empty, note, progress_bar, response
from rallebench.loads import Loaded
from rallebench.memory import Memory, size
from rallebench.types import Gold, Step
from rallebench.workspace import READER

EXTRACTIVE = "extractive"
"""What the line of the embedded reader must say: it copies answers out of passages, it writes nothing."""

_STATES = {"loaded": "good", "loading": "page"}


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the status table: something that is loaded, being loaded, or could be."""

    name: str
    kind: str
    state: str
    about: str
    loaded: Loaded | None = None
    extractive: bool = False


def rows(
    retrievers: Mapping[str, str],
    llms: Mapping[str, LLMEntry],
    status: Sequence[Loaded],
    loading: Collection[str],
) -> list[Row]:
    """What is loaded or being loaded, then the rest; in each retrievers before language models.

    What is loaded without being listed (an index that was moved away, say) is there, too.
    """
    now = {loaded.name: loaded for loaded in status}
    found = [_row(name, "retriever", about, now, loading) for name, about in retrievers.items()]
    for name, entry in llms.items():
        is_reader = entry.backend == READER
        found.append(_row(name, "language model", entry_line(entry), now, loading, is_reader))
    listed = {row.name for row in found}
    found += [
        Row(x.name, x.kind, "loaded", x.about or "no longer in this workspace", x)
        for x in status
        if x.name not in listed
    ]
    return sorted(found, key=lambda row: row.state == "not loaded")


def _row(
    name: str,
    kind: str,
    about: str,
    now: Mapping[str, Loaded],
    loading: Collection[str],
    extractive: bool = False,
) -> Row:
    loaded = now.get(name)
    state = "loaded" if loaded else "loading" if name in loading else "not loaded"
    return Row(name, kind, state, (loaded.about if loaded else "") or about, loaded, extractive)


def entry_line(entry: LLMEntry) -> str:
    """One line about an entry: its own, or what it stands for.

    >>> entry_line(LLMEntry(backend="openai_compatible", settings={"model": "m", "base_url": "http://a/v1"}))
    'openai_compatible, m, http://a/v1'
    """
    said = (entry.settings.get(key) for key in ("model", "base_url", "quantization"))
    return entry.about or ", ".join([entry.backend, *(str(part) for part in said if part and part != "none")])


def table(found: Sequence[Row]) -> str:
    """The status table."""
    if not found:
        return empty("Nothing can be loaded yet: add a model below, or build an index in Data.")
    heads = "<th>Name</th><th>Kind</th><th>State</th>"
    heads += '<th class="num">Memory</th><th class="num">Seconds</th><th>About</th>'
    body = "".join(_line(row) for row in found)
    return f'<table class="rb-table"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def _line(row: Row) -> str:
    taken = str(Memory(row.loaded.ram, row.loaded.vram)) if row.loaded else ""
    seconds = f"{row.loaded.seconds:.1f}" if row.loaded else ""
    silent = row.extractive and EXTRACTIVE not in row.about.lower()
    about = (badge(EXTRACTIVE, "page") + " " if silent else "") + escape(row.about)
    return (
        f'<tr><td class="name" title="{escape(row.name, quote=True)}"><b>{escape(row.name)}</b></td>'
        f'<td class="name">{escape(row.kind)}</td>'
        f"<td>{badge(row.state, _STATES.get(row.state, ''))}</td>"
        f'<td class="num">{taken}</td><td class="num">{seconds}</td><td class="definition">{about}</td></tr>'
    )


def memory_line(held: Memory, free: int) -> str:
    """What this process holds and what is left; ``free`` in bytes."""
    vram = badge(f"this process holds {size(held.vram)} VRAM") if held.vram > 0 else ""
    return (
        f'<div class="rb-label"><span>Memory</span>{badge(f"this process holds {size(held.ram)} RAM")}'
        f"{badge(f'{size(free)} RAM free')}{vram}</div>"
    )


def loading(ended: Sequence[str], now: str, done: int, total: int) -> str:
    """How far a load of several is: HTML of those that ended, what is said of the next one."""
    share = progress_bar(round(100 * (done + part(now))), 100 * total)
    return share + "".join(ended) + (note(f"{capital(now)} …") if now else "")


def part(said: str) -> float:
    """The part of one load that is done, from 0 to 1, if the sentence says so.

    >>> part("building starter-minilm: encoding passages 64/256"), part("opening starter-minilm")
    (0.25, 0.0)
    """
    count = re.search(r" (\d+)/(\d+)$", said)
    return min(1.0, int(count[1]) / max(1, int(count[2]))) if count else 0.0


def capital(said: str) -> str:
    """A sentence as it begins."""
    return said[:1].upper() + said[1:]


def answer(name: str, step: Step) -> str:
    """What a model answered when it was tried."""
    return f'<div class="rb-label"><b>{escape(name)}</b></div>' + response(step, Gold(), mark=False)
