"""JSON lines or one JSON list, also inside an object: objects with ``id`` (or ``_id``, ``doc_id`` …), ``text``, and optionally
``title``, ``page_id`` and ``url``; also a folder of such files, like Pyserini's JsonCollection.

The text may be called ``contents`` or ``content``, as in Pyserini's and BARAG's files. A quoted first line of ``contents``
is the title, as in DPR's, FlashRAG's and Search-R1's corpora. ``_records`` reads the documents of frameworks.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rallebench.core.sources import Source, has_suffix
from rallebench.corpora import CORPORA, CorpusRow
from rallebench.corpora._collections import JSON_FILES, each_file, is_collection, row_id
from rallebench.corpora._records import read_passage, records_within

SAMPLE = """{"id": "d1", "title": "Titan", "text": "Titan is a moon of Saturn."}
{"id": "d2", "contents": "The Danube flows into the Black Sea.", "page_id": "p2"}
"""


def _recognises(path: Path) -> bool:
    return is_collection(path) if path.is_dir() else has_suffix(*JSON_FILES)(path)


@CORPORA.register("jsonl", recognises=_recognises, columns=True, sample={"corpus.jsonl": SAMPLE})
def read_jsonl(source: Source) -> Iterator[CorpusRow]:
    """JSON lines with id, text, and optionally title, page_id (or wikipedia_id) and url, or documents of LangChain, LlamaIndex, Haystack or RAGFlow; also a JSON list or a folder of such files."""
    return each_file(source, partial(_rows, root=source.path), *JSON_FILES)


def _rows(source: Source, root: Path) -> Iterator[CorpusRow]:
    whole = source.document()
    rows = records_within(whole, source) if whole else None
    if whole:
        source.unit, source.done = "record", source.total
    inside = enumerate(map(source.map_row, rows or [whole]), 1) if whole else source.objects()
    for number, row in inside:
        own_id = row_id(root, source.path, number)
        if passage := read_passage(source, number, row, row_id=own_id, needs_id=True):
            yield passage
