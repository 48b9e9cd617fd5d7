"""Splitting documents into passages by one of three methods, with their offsets in the document.

==========  ==================================================================================
blocks      ``size`` words, tokens or characters, ``overlap`` of them shared (KILT: 100 words)
recursive   at most ``size`` characters, split at a blank line, else a newline, else a space (BARAG)
sentences   whole sentences up to ``size`` tokens, the last ones repeated (CRUD-RAG)
==========  ==================================================================================

With every method, chunks are in order and cover every character except white space. ``default_chunking`` applies
unless the user chooses one: whole sentences up to an encoder's window.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from rallebench.core.chunking import UNIT_OF, Chunking
from rallebench.core.errors import Hint, UsageError
from rallebench.core.registry import Registry, unknown
from rallebench.core.types import Passage
from rallebench.corpora._blocks import Spans, blocks, recursive
from rallebench.corpora._sentences import encoder_sentences, original_sentences, sentences
from rallebench.encoders.windows import passage_window

TITLE = "{title}"

CHOOSE_SIZE = Hint("choose", "chunk-size")
PRESETS: Registry[Chunking] = Registry(
    "chunking preset",
    "rallebench.corpora.presets",
    expects="a Chunking: how documents are cut into passages",
    has=("how",),
    rooms=("chunking",),
)
"""The chunkings of published experiments, by name."""


def presets() -> dict[str, Chunking]:
    """Name → chunking of every preset."""
    return {name: PRESETS[name] for name in PRESETS.names()}


def choose(
    *,
    preset: str = "",
    how: str = "",
    size: int | None = None,
    overlap: int | None = None,
    unit: str = "",
) -> Chunking | None:
    """Return the chunking for these options; None without any. Explicit options override the preset's.

    >>> choose(how="sentences", size=256, overlap=25)
    Chunking(size=256, overlap=25, unit='tokens', how='sentences', prefix='', compat='', tokenizer='')

    Raises UsageError for an unknown preset, a method without a size, and invalid values.
    """
    if preset:
        if preset not in PRESETS:
            raise UsageError(unknown("chunking preset", preset, PRESETS.names()))
        base = PRESETS[preset]
        if how and how != base.how:
            raise UsageError(
                f"The chunking preset {preset!r} uses {base.how}, not {how}; leave one of the two out."
            )
        return replace(
            base,
            size=base.size if size is None else size,
            overlap=base.overlap if overlap is None else overlap,
            unit=unit or base.unit,  # type: ignore[arg-type]
        )
    if size is None:
        if overlap:
            raise UsageError("An overlap needs a chunk size.", hint=CHOOSE_SIZE)
        if how:
            raise UsageError(f"The chunking method {how!r} needs a chunk size.", hint=CHOOSE_SIZE)
        if unit:
            raise UsageError("A chunk unit needs a chunk size.", hint=CHOOSE_SIZE)
        return None
    method = how or "blocks"
    return Chunking(size, overlap or 0, unit or UNIT_OF.get(method, "words"), method)  # type: ignore[arg-type]


MOST_TOKENS = 512
"""Longest default chunk in tokens, even if an encoder reads more, because prompts hold several passages."""
OVERLAP = 5
"""Divisor of the chunk size that gives the default overlap: one fifth."""


def default_chunking(
    encoder: str = "", size: int | None = None, overlap: int | None = None
) -> Chunking:
    """Return whole sentences up to an encoder's window, with a fifth as overlap. Without an encoder, or if its window is
    unknown, the default encoder's window applies. ``size``, ``overlap``: other values, in the same tokens.

    >>> default_chunking()
    Chunking(size=254, overlap=50, unit='tokens', how='sentences', prefix='', compat='', tokenizer='minilm')
    """
    window = passage_window(encoder)
    size = min(window.tokens, MOST_TOKENS) if size is None else size
    overlap = size // OVERLAP if overlap is None else overlap
    return Chunking(size, overlap, "tokens", "sentences", tokenizer=window.encoder)


def spans(text: str, chunking: Chunking, document: str = "", title: str = "") -> Spans:
    """Return the offsets (start, end) of the chunks in ``text``.

    ``document``: its id, which ``compat`` "original" counts; ``title``: takes up room in an encoder's window.

    >>> spans("one two three four five", Chunking(3, 1))
    [(0, 13), (8, 23)]
    """
    if chunking.how == "recursive":
        return recursive(text, chunking.size, chunking.overlap)
    if chunking.tokenizer:
        starts = passage_window(chunking.tokenizer).starts
        room = chunking.size - (len(starts(f"{title}, ")) if title else 1)
        size = max(room, chunking.size // 2, 1)
        return encoder_sentences(text, size, min(chunking.overlap, size - 1), starts)
    if chunking.how == "sentences":
        if chunking.compat:
            return original_sentences(text, chunking.size, chunking.overlap, document)
        return sentences(text, chunking.size, chunking.overlap)
    return blocks(text, chunking.size, chunking.overlap, chunking.unit)


def chunk(
    documents: Iterable[Passage], chunking: Chunking | None
) -> Iterator[tuple[Passage, tuple[int, int] | None]]:
    """Yield passages with their spans (start, end) in the document; None for a whole document.

    The chunks of a document, or a single one with a prefix, have the ids ``doc#0``, ``doc#1`` …, and its title
    and page id. ``chunking`` None leaves the documents whole.
    """
    for document in documents:
        offsets = (
            spans(document.text, chunking, document.doc_id, document.title) if chunking else []
        )
        prefix = chunking.prefix.replace(TITLE, document.title) if chunking else ""
        if len(offsets) <= 1 and not prefix:
            yield document, None
            continue
        for n, (start, end) in enumerate(offsets or [(0, 0)]):
            doc_id, text = f"{document.doc_id}#{n}", prefix + document.text[start:end]
            yield Passage(doc_id, text, document.title, document.page_id), (start, end)
