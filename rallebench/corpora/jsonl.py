"""JSON lines: objects with ``id`` (or ``doc_id``, ``_id`` …), ``text``, and optionally ``title`` and ``page_id``.

The text may be called ``contents`` or ``content``, as in Pyserini's and BARAG's files.
"""

from __future__ import annotations

from collections.abc import Iterator

from rallebench.core.sources import Source, named, value_of
from rallebench.corpora import CORPORA, ID_NAMES, PAGE_NAMES, TEXT_NAMES, CorpusRow

SAMPLE = """{"id": "d1", "title": "Titan", "text": "Titan is a moon of Saturn."}
{"id": "d2", "contents": "The Danube flows into the Black Sea.", "page_id": "p2"}
"""


@CORPORA.register("jsonl", recognises=named(".jsonl", ".ndjson"), sample={"corpus.jsonl": SAMPLE})
def read_jsonl(source: Source) -> Iterator[CorpusRow]:
    """JSON lines with id, text, and optionally title and page_id (or wikipedia_id)."""
    for number, row in source.objects():
        doc_id = value_of(row, ID_NAMES, None)
        text = next((row[name] for name in TEXT_NAMES if isinstance(row.get(name), str)), None)
        if doc_id is None or text is None:
            have = ", ".join(list(row)[:8]) or "nothing"
            source.bad(number, f" needs 'id' and 'text'; it has {have}.")
            continue
        page = value_of(row, PAGE_NAMES)
        if isinstance(doc_id, (list, dict)) or isinstance(page, (list, dict)):
            source.bad(number, ": an id must be text or a number.")
            continue
        yield CorpusRow(
            number, str(doc_id).strip(), text, str(row.get("title") or ""), str(page).strip()
        )
