"""Passages of records with the usual names, and as LangChain, LlamaIndex, Haystack, RAGFlow and MS MARCO write them.

- LangChain: ``page_content``; ``metadata.source`` is the page; also within ``{"lc": 1, "kwargs": {…}}``, and often without an id.
- LlamaIndex: ``id_``, ``text`` or ``text_resource``; the page is ``metadata.file_path``, or else the source node.
- Haystack: ``content``; the page is ``meta.file_path`` or ``meta.source_id``; in its flat form, these are fields of the record.
- RAGFlow: ``content_with_weight`` or ``content``; the page is ``doc_id`` or ``document_id``.
- MS MARCO v2: ``pid`` and ``passage``, ``docid`` and ``body``, or ``docid`` and ``segment``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rallebench.core.columns import first_value
from rallebench.core.json_lists import find_rows
from rallebench.core.json_values import JsonValue
from rallebench.core.sources import Source
from rallebench.core.types import Json
from rallebench.corpora import (
    ID_NAMES,
    PAGE_NAMES,
    TEXT_NAMES,
    URL_NAMES,
    CorpusRow,
    split_title,
)

DOCUMENT_NAMES = ("document_id", "ref_doc_id", "doc_id", "docid")
"""Fields that name the document of a chunk, unless they are its own id."""
SOURCE_NAMES = ("source", "file_path", "file_name", "filename", "source_id")
"""Fields of the metadata that name the document of a chunk; elsewhere, ``source`` often names a data set."""
TITLE_NAMES = ("title", "docnm_kwd", "document_keyword", "document_name")
METADATA = ("metadata", "meta")
MARKS = ("page_content", "pageContent", "id_", "relationships", "meta", "blob")
"""Fields that only the documents of frameworks have; their metadata is read."""
ENVELOPES = ("__data__", "_source", "node")
NAMES = frozenset(
    {*ID_NAMES, *TEXT_NAMES, *TITLE_NAMES, *PAGE_NAMES, *URL_NAMES, "text_resource"}
).union(DOCUMENT_NAMES, SOURCE_NAMES, METADATA, MARKS)
"""Names of the fields that a passage is made of."""
_UNUSUAL = frozenset({"lc", "text_resource", *ENVELOPES, *MARKS})
_OF_CHUNKS = frozenset(DOCUMENT_NAMES)
NO_TEXT = (list, dict, bool, bytes)
DEEPEST = 3
"""Levels of nested objects within which a list of chunks is looked for."""


def read_passage(
    source: Source, number: int, row: Json, *, row_id: str, needs_id: bool = False
) -> CorpusRow | None:
    """Return the passage of a record; None for a bad row, which is reported.

    ``row_id``: the id of a record without one. ``needs_id``: only documents of frameworks may lack one.
    """
    metadata: Json | None = None
    if not _UNUSUAL.isdisjoint(row):
        row, metadata = _open(row)
    needs_id = needs_id and metadata is None
    doc_id = first_value(row, ID_NAMES, None if needs_id else row_id)
    texts = [name for name in TEXT_NAMES if isinstance(row.get(name), str)]
    if doc_id is None or not texts:
        needed = "'id' and 'text'" if needs_id else "'text' as text"
        have = ", ".join(list(row)[:8]) or "nothing"
        source.bad(number, f" needs {needed}; it has {have}.")
        return None
    page: JsonValue = first_value(row, PAGE_NAMES)
    if page == "" and (metadata is not None or not _OF_CHUNKS.isdisjoint(row)):
        page = _document(row, metadata or {})
    if isinstance(doc_id, NO_TEXT) or isinstance(page, NO_TEXT):
        source.bad(number, ": an id must be text or a number.")
        return None
    own_title = first_value(row, TITLE_NAMES)
    if isinstance(own_title, NO_TEXT):
        source.bad(number, ": a title must be text.")
        return None
    name = texts[0]
    if len(texts) > 1:
        name = next((name for name in texts if row[name].strip()), name)
    title, text, page_id = str(own_title), row[name], str(page).strip()
    url = str(first_value(row, URL_NAMES)).strip()
    if metadata is not None:
        title = title.strip() or _first_text(metadata, (*TITLE_NAMES, "file_name"))
        url = url or _first_text(metadata, URL_NAMES)
        url = page_id if not url and page_id.startswith(("http://", "https://")) else url
    if name == "contents" and not title.strip():
        title, text = split_title(text)
    return CorpusRow(number, str(doc_id).strip(), text, title, page_id, url)


def _open(row: Json) -> tuple[Json, Json | None]:
    """Return a record without its envelope, and the metadata of a framework's document; None for any other record."""
    if "lc" in row and isinstance(inner := row.get("kwargs"), Mapping):
        row = inner
    for name in ENVELOPES:
        if isinstance(inner := row.get(name), Mapping):
            row = {**({"_id": row["_id"]} if "_id" in row else {}), **inner}
    resource = row.get("text_resource")
    if isinstance(resource, Mapping) and not row.get("text"):
        row = {**row, "text": resource.get("text")}
    if not any(mark in row for mark in MARKS):
        return row, None
    metadata: Json = next(
        (row[name] for name in METADATA if isinstance(row.get(name), Mapping)), {}
    )
    return row, {**row, **metadata} if "blob" in row else metadata


def _document(row: Json, metadata: Json) -> JsonValue:
    """Return the document that a chunk names; '' if it names none."""
    if "segment" in row and isinstance(row.get("docid"), str):
        return str(row["docid"]).partition("#")[0]
    own = next((name for name in ID_NAMES if row.get(name) is not None), "")
    document = first_value(row, [name for name in DOCUMENT_NAMES if name != own])
    if document == "":
        document = _first_text(metadata, (*PAGE_NAMES, *DOCUMENT_NAMES, *SOURCE_NAMES))
    return document or _source_node(row.get("relationships"))


def _first_text(metadata: Json, names: Iterable[str]) -> str:
    """Return the first of these fields that is a text or a number; '' without one."""
    values = (metadata.get(name) for name in names)
    usable = (x for x in values if isinstance(x, (str, int)) and not isinstance(x, bool))
    return next((text for text in map(str.strip, map(str, usable)) if text), "")


def _source_node(relationships: object) -> str:
    """Return the id of the document that a node of LlamaIndex was cut from; '' if it names none."""
    related = relationships.get("1") if isinstance(relationships, Mapping) else None
    return _first_text(related, ("node_id",)) if isinstance(related, Mapping) else ""


def records_within(document: Json, source: Source, depth: int = 0) -> list[Json] | None:
    """Return the records in the one object of a file; None if there are none, or if it is a record itself.

    An object of passages by id, such as LlamaIndex's ``docstore.json``; the only list of passages, as in answers of RAGFlow
    and Elasticsearch; or any only list of objects.
    """
    nodes = document.get("docstore/data")
    if isinstance(nodes, Mapping) and all(isinstance(node, Mapping) for node in nodes.values()):
        return _stored_nodes(nodes, source)
    if _has_text(document):
        return None
    values = list(document.values())
    if values and all(map(_has_text, values)):
        return [{"id": key, **value} for key, value in document.items()]
    lists = [value for value in values if isinstance(value, list) and value]
    chunks = [value for value in lists if all(map(_has_text, value))]
    if len(chunks) == 1:
        return chunks[0]
    objects = [value for value in values if isinstance(value, Mapping)]
    if depth < DEEPEST and not lists:
        inner = [records_within(value, source, depth + 1) for value in objects]
        if len(within := [rows for rows in inner if rows]) == 1:
            return within[0]
    return find_rows(document)


def _has_text(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    row, _ = _open(value)
    return any(isinstance(row.get(name), str) for name in TEXT_NAMES)


def _stored_nodes(nodes: Json, source: Source) -> list[Json]:
    """Return the nodes of LlamaIndex's store, without the documents that other nodes were cut from."""
    rows = {key: {"id_": key, **_open(node)[0]} for key, node in nodes.items()}
    whole = {_source_node(row.get("relationships")) for row in rows.values()} & rows.keys()
    if whole:
        source.problems.warnings.append(
            f"{source.path.name} holds {len(whole):,} documents beside their nodes; only the nodes are passages."
        )
    return [row for key, row in rows.items() if key not in whole]
