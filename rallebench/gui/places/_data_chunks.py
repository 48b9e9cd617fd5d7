"""The fields that say how documents are cut into chunks, and a text with its cuts marked."""

from __future__ import annotations

from rallebench.core.errors import UsageError
from rallebench.gui.form import labelled, select
from rallebench.gui.frame import Event
from rallebench.gui.html import e
from rallebench.services import catalog
from rallebench.services.imports import PRESETS, Chunking, choose, spans

WHOLE, OWN = "whole", "own"
WAYS = (("blocks", "blocks"), ("recursive", "at blank lines"), ("sentences", "whole sentences"))
SHOWN_TEXT = 20_000


def words_of(chunking: Chunking | None) -> str:
    """A cutting in a few words."""
    if chunking is None:
        return "rows stay whole"
    overlap = f", overlap {chunking.overlap}" if chunking.overlap else ""
    return f"{chunking.size} {chunking.unit}{overlap}"


def chunk_fields(chunking: Chunking | None, more: str = "", prefix: str = "") -> str:
    """The fields; ``more``: attributes of each, to follow changes."""
    own = WHOLE if chunking is None else OWN
    name = next((preset for preset, value in PRESETS.items() if value == chunking), own)
    options = [
        (WHOLE, "rows stay whole"),
        *((n, f"{n}: {c.size} {c.unit}, {c.how}") for n, c in PRESETS.items()),
        (OWN, "settings of my own"),
    ]
    size, overlap = (chunking.size, chunking.overlap) if chunking else ("", "")
    how, unit = (chunking.how, chunking.unit) if chunking else ("blocks", "words")
    number = '<input type="number" min="{low}" name="{name}" value="{value}" {more}>'
    return (
        '<div class="fields">'
        + labelled("Cutting", select(f"{prefix}cut", options, name, more=f" {more}"))
        + labelled("Size", number.format(low=1, name=f"{prefix}size", value=size, more=more))
        + labelled(
            "Overlap", number.format(low=0, name=f"{prefix}overlap", value=overlap, more=more)
        )
        + labelled("Way", select(f"{prefix}how", WAYS, how, more=f" {more}"))
        + labelled(
            "Unit",
            select(f"{prefix}unit", ["words", "tokens", "characters"], unit, more=f" {more}"),
        )
        + "</div><p class='note'>Size and overlap may be changed for every preset; way and unit belong to settings of your own.</p>"
    )


def chunking_of(event: Event, prefix: str = "") -> Chunking | None:
    """The fields as a Chunking, None for whole rows. Raises UsageError."""
    name = event.text(f"{prefix}cut", WHOLE)
    if name == WHOLE:
        return None
    size = event.whole(f"{prefix}size", "The size of a chunk")
    overlap = event.whole(f"{prefix}overlap", "The overlap")
    if name != OWN:
        return choose(preset=name, size=size, overlap=overlap)
    if size is None:
        raise UsageError("The size of a chunk is empty; give a number.")
    how, unit = event.text(f"{prefix}how", "blocks"), event.text(f"{prefix}unit", "words")
    return choose(how=how, size=size, overlap=overlap or 0, unit="" if how != "blocks" else unit)


def marked(text: str, chunking: Chunking | None, document: str = "") -> str:
    """A text with its cuts: neighbours in two tints, what two chunks share in a third."""
    cuts = (spans(text, chunking, document) if chunking else []) or [(0, len(text))]
    lengths = [len(text[start:end].split()) for start, end in cuts]
    count = f"{len(cuts):,} chunk{'s' * (len(cuts) != 1)}"
    mean = sum(lengths) / len(cuts)
    facts = f"{count}, {min(lengths):,} to {max(lengths):,} words, mean {mean:,.0f}"
    seen = text[:SHOWN_TEXT]
    borders = sorted({0, len(seen), *(min(place, len(seen)) for cut in cuts for place in cut)})
    pieces, first = [], 0
    for start, end in zip(borders, borders[1:]):
        while first < len(cuts) and cuts[first][1] <= start:
            first += 1
        holding = [
            n for n in range(first, min(first + 4, len(cuts))) if cuts[n][0] <= start < cuts[n][1]
        ]
        kind = "both" if len(holding) > 1 else "ab"[holding[0] % 2] if holding else ""
        pieces.append(f'<span class="chunk {kind}">{e(seen[start:end])}</span>')
    cut = f" The first {SHOWN_TEXT:,} characters." if len(text) > SHOWN_TEXT else ""
    return f'<p class="note">{facts}.{cut}</p><div class="cuts">{"".join(pieces)}</div>'


def encoder_options() -> list[tuple[str, str]]:
    """The encoders that can be chosen, with a line about each."""
    return [(name, f"{name}: {about}") for name, about in catalog.encoders().items()]
