"""What can be loaded, what is loaded and what it holds, as HTML. Pure: everything is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from rallebench.core.entries import LLMEntry
from rallebench.core.errors import RalleError, StoppedError
from rallebench.core.memory import Memory, size
from rallebench.core.types import Gold, Step
from rallebench.gui.views import badge, empty, error, note, progress_bar, response
from rallebench.services.load_queue import Going
from rallebench.services.memory_fit import MemoryFit
from rallebench.services.models import Loaded
from rallebench.workspace.paths import READER

EXTRACTIVE = "extractive"
"""What the line of the embedded reader must say: it copies answers out of passages, it writes nothing."""

NOTHING = "Nothing is being loaded. Tick what you need and press Load; what is loaded stays loaded."

_STATES = {"loaded": "good", "loading": "page", "waiting": "page", "cancelled": "bad"}


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
    loading: Mapping[str, Going],
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
    loading: Mapping[str, Going],
    extractive: bool = False,
) -> Row:
    loaded = now.get(name)
    state = "loaded" if loaded else state_of(loading[name]) if name in loading else "not loaded"
    return Row(name, kind, state, (loaded.about if loaded else "") or about, loaded, extractive)


def state_of(going: Going) -> str:
    """One word about a load that goes on."""
    return "cancelled" if going.cancelled else "waiting" if going.waiting else "loading"


def entry_line(entry: LLMEntry) -> str:
    """One line about an entry: its own, or what it stands for.

    >>> entry_line(LLMEntry(backend="openai_compatible", settings={"model": "m", "base_url": "http://a/v1"}))
    'openai_compatible, m, http://a/v1'
    """
    said = (entry.settings.get(key) for key in ("model", "base_url", "quantization"))
    return entry.about or ", ".join(
        [entry.backend, *(str(part) for part in said if part and part != "none")]
    )


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
    if row.loaded and row.loaded.expected:
        taken += f'<div class="definition">estimated {size(row.loaded.expected)}</div>'
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


def panel(going: Mapping[str, Going], ended: Mapping[str, str | RalleError]) -> str:
    """The loads that go on, each with its bar, and how the last ones ended; the same in every window."""
    if not going and not ended:
        return empty(NOTHING)
    return "".join(
        [*(_going(name, load) for name, load in going.items()), *map(outcome, ended.values())]
    )


def _going(name: str, load: Going) -> str:
    said = load.message
    bar = (
        progress_bar(round(1000 * part(said)), 1000)
        if not load.waiting and not load.cancelled
        else ""
    )
    state = state_of(load)
    head = f'<div class="rb-label"><b>{escape(name)}</b>{badge(state, _STATES[state])}</div>'  # waiting says no more
    return head + bar + (note(f"{capital(said)} …") if said else "")


def outcome(ended: str | RalleError) -> str:
    """How a load or an unload ended."""
    if isinstance(ended, StoppedError):
        return note(str(ended))
    return (
        error(str(ended))
        if isinstance(ended, RalleError)
        else note(f"{capital(ended).rstrip('.')}.", "good")
    )


def rooms(found: Iterable[MemoryFit | RalleError | str]) -> str:
    """One line for each ticked model: what it needs and what is free; several are also added up.

    A name stands for a model of which nothing here says what it needs.
    """
    lines, known = [], []
    for room in found:
        if isinstance(room, str):
            lines.append(
                note(f"How much memory {room} needs is known once it has been downloaded.")
            )
            continue
        if isinstance(room, RalleError):
            lines.append(error(str(room)))
            continue
        known.append(room)
        shown = error if not room.fits else note
        lines.append(
            shown(room.sentence) if room.tight or not room.fits else note(room.sentence, "good")
        )
    for device in sorted({room.need.device for room in known}):
        here = [room for room in known if room.need.device == device]
        total, free = sum(room.need.total for room in here), here[0].free
        if len(here) > 1 and all(room.fits for room in here) and free is not None and total > free:
            lines.append(
                error(
                    f"Each fits, but not all {len(here)}: together they need about {size(total)} "
                    f"{here[0].need.kind} and {size(free)} are free; load fewer, or choose a smaller quantization."
                )
            )
    return "".join(lines)


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
