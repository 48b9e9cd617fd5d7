"""The fields that say how documents are cut into chunks, and a text with its cuts marked."""

from __future__ import annotations

from rallebench.core.errors import UsageError
from rallebench.gui import form, html
from rallebench.gui.frame import Event
from rallebench.gui.html import e
from rallebench.render.numbers import plural
from rallebench.services import catalog
from rallebench.services.imports import PRESETS, Chunking, choose, spans

WHOLE, OWN = "whole", "own"
WAYS = (("blocks", "blocks"), ("recursive", "at blank lines"), ("sentences", "whole sentences"))
SHOWN_TEXT = 20_000


def chunk_fields(chunking: Chunking | None, more: str = "") -> str:
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
    units = ["words", "tokens", "characters"]
    fields = form.fields(
        form.chooser("Cutting", "cut", options, name, more=more),
        form.number("size", "Size", size, 1, more=more),
        form.number("overlap", "Overlap", overlap, 0, more=more),
        form.chooser("Way", "how", WAYS, how, more=more),
        form.chooser("Unit", "unit", units, unit, more=more),
    )
    return fields + html.note(
        "Size and overlap may be changed for every preset; way and unit belong to settings of your own."
    )


def chunking_of(event: Event) -> Chunking | None:
    """The fields as a Chunking, None for whole rows. Raises UsageError."""
    name = event.text("cut", WHOLE)
    if name == WHOLE:
        return None
    size = event.whole("size", "The size of a chunk")
    overlap = event.whole("overlap", "The overlap")
    if name != OWN:
        return choose(preset=name, size=size, overlap=overlap)
    if size is None:
        raise UsageError("The size of a chunk is empty; give a number.")
    how, unit = event.text("how", "blocks"), event.text("unit", "words")
    return choose(how=how, size=size, overlap=overlap or 0, unit="" if how != "blocks" else unit)


def marked(text: str, chunking: Chunking | None, document: str = "") -> str:
    """A text with its cuts: neighbours in two tints, what two chunks share in a third."""
    cuts = (spans(text, chunking, document) if chunking else []) or [(0, len(text))]
    lengths = [len(text[start:end].split()) for start, end in cuts]
    mean = sum(lengths) / len(cuts)
    facts = f"{plural(len(cuts), 'chunk')}, {min(lengths):,} to {max(lengths):,} words, mean {mean:,.0f}"
    seen = text[:SHOWN_TEXT]
    borders = sorted({0, len(seen), *(min(place, len(seen)) for cut in cuts for place in cut)})
    pieces, first = "", 0
    for start, end in zip(borders, borders[1:]):
        while first < len(cuts) and cuts[first][1] <= start:
            first += 1
        near = range(first, min(first + 4, len(cuts)))
        holding = [n for n in near if cuts[n][0] <= start < cuts[n][1]]
        kind = "both" if len(holding) > 1 else "ab"[holding[0] % 2] if holding else ""
        pieces += f'<span class="chunk {kind}">{e(seen[start:end])}</span>'
    cut = f" The first {SHOWN_TEXT:,} characters." if len(text) > SHOWN_TEXT else ""
    return f'{html.note(f"{facts}.{cut}")}<div class="cuts">{pieces}</div>'


def encoder_options() -> list[tuple[str, str]]:
    """The encoders that can be chosen, with a line about each."""
    return [(name, f"{name}: {about}") for name, about in catalog.encoders().items()]
