"""JSON lines or one JSON list: objects with ``id`` (or ``doc_id``, ``_id`` …), ``text``, and optionally ``title``, ``page_id`` and
``url``; also a folder of such files, like Pyserini's JsonCollection.

The text may be called ``contents`` or ``content``, as in Pyserini's and BARAG's files. A quoted first line of ``contents``
is the title, as in DPR's and FlashRAG's corpora.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rallebench.core.sources import Source, first_value, has_suffix
from rallebench.corpora import (
    CORPORA,
    ID_NAMES,
    PAGE_NAMES,
    TEXT_NAMES,
    URL_NAMES,
    CorpusRow,
    split_title,
)
from rallebench.corpora._collections import JSON_FILES, each_file, is_collection, single_object

SAMPLE = """{"id": "d1", "title": "Titan", "text": "Titan is a moon of Saturn."}
{"id": "d2", "contents": "The Danube flows into the Black Sea.", "page_id": "p2"}
"""


def _recognises(path: Path) -> bool:
    return is_collection(path) if path.is_dir() else has_suffix(*JSON_FILES)(path)


@CORPORA.register("jsonl", recognises=_recognises, sample={"corpus.jsonl": SAMPLE})
def read_jsonl(source: Source) -> Iterator[CorpusRow]:
    """JSON lines with id, text, and optionally title, page_id (or wikipedia_id) and url; also a JSON list or a folder of such files."""
    return each_file(source, _rows, *JSON_FILES)


def _rows(source: Source) -> Iterator[CorpusRow]:
    whole = single_object(source.path)
    for number, row in [(1, whole)] if whole else source.objects():
        doc_id = first_value(row, ID_NAMES, None)
        texts = [name for name in TEXT_NAMES if isinstance(row.get(name), str)]
        if doc_id is None or not texts:
            have = ", ".join(list(row)[:8]) or "nothing"
            source.bad(number, f" needs 'id' and 'text'; it has {have}.")
            continue
        page = first_value(row, PAGE_NAMES)
        if isinstance(doc_id, (list, dict, bool)) or isinstance(page, (list, dict, bool)):
            source.bad(number, ": an id must be text or a number.")
            continue
        if isinstance(row.get("title"), (list, dict, bool)):
            source.bad(number, ": a title must be text.")
            continue
        text_name = next((name for name in texts if row[name].strip()), texts[0])
        title, text = str(first_value(row, ("title",))), row[text_name]
        if text_name == "contents" and not title.strip():
            title, text = split_title(text)
        url = str(first_value(row, URL_NAMES)).strip()
        yield CorpusRow(number, str(doc_id).strip(), text, title, str(page).strip(), url)
