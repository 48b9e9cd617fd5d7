"""Chunks as LangChain, LlamaIndex, Haystack, RAGFlow, Pyserini, FlashRAG, Search-R1 and MS MARCO keep them, read as passages.

The samples of the first three were written by langchain-core 1.8.3, llama-index-core 0.14.25 and haystack-ai 3.4.1, and cut.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rallebench.core.errors import BadFileError
from rallebench.core.events import complete
from rallebench.core.sources import Problems
from rallebench.core.types import Passage
from rallebench.corpora.imported import import_corpus
from rallebench.corpora.page_names import find_pages
from rallebench.corpora.reading import corpus_form, read_corpus

Write = Callable[[str, Any], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a value as ``NAME.json``, a list of rows as ``NAME.jsonl``."""

    def write(name: str, value: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".jsonl"):
            path.write_text("".join(json.dumps(row) + "\n" for row in value), encoding="utf-8")
        else:
            path.write_text(json.dumps(value, indent=1), encoding="utf-8")
        return path

    return write


# LangChain

MOONS = {"source": "moons.pdf", "page": 0, "title": "Moons"}
LANGCHAIN = [
    {"id": None, "metadata": MOONS, "page_content": "Titan is a moon.", "type": "Document"},
    {"id": "x-2", "metadata": {"source": "moons.pdf"}, "page_content": "Rhea.", "type": "Document"},
]
LC = {
    "lc": 1,
    "type": "constructor",
    "id": ["langchain", "schema", "document", "Document"],
    "kwargs": {"metadata": MOONS, "page_content": "Titan is a moon.", "type": "Document"},
}


@pytest.mark.parametrize("name", ["docs.jsonl", "docs.json"])
def test_documents_of_langchain_have_their_source_as_page(name: str, write: Write) -> None:
    assert list(read_corpus(write(name, LANGCHAIN))) == [
        Passage("1", "Titan is a moon.", "Moons", "moons.pdf"),
        Passage("x-2", "Rhea.", "", "moons.pdf"),
    ]


def test_serialised_documents_of_langchain_and_those_of_javascript_are_read(write: Write) -> None:
    titan = Passage("1", "Titan is a moon.", "Moons", "moons.pdf")
    assert list(read_corpus(write("lc.jsonl", [LC]))) == [titan]
    assert list(read_corpus(write("lc.json", LC))) == [titan]
    script = {"pageContent": "Titan is a moon.", "metadata": MOONS}
    assert list(read_corpus(write("js.json", [script]))) == [titan]


def test_a_folder_of_single_documents_without_ids_numbers_them_by_file(write: Write) -> None:
    folder = write("docs/a.json", LANGCHAIN[0]).parent
    write("docs/b.json", {**LANGCHAIN[0], "page_content": "Rhea."})
    assert corpus_form(folder) == "jsonl"
    assert [(p.doc_id, p.text) for p in read_corpus(folder)] == [
        ("a.json:1", "Titan is a moon."),
        ("b.json:1", "Rhea."),
    ]


def test_gold_that_names_the_source_of_a_chunk_finds_its_page(write: Write, tmp_path: Path) -> None:
    web = {"page_content": "Io.", "metadata": {"source": "https://e.org/io"}}
    complete(import_corpus(tmp_path / "corpora", "docs", write("docs.jsonl", [*LANGCHAIN, web])))
    names = ["moons.pdf", "http://www.e.org/io/"]
    assert find_pages(tmp_path / "corpora", names) == {
        "docs": {"moons.pdf": ["moons.pdf"], "http://www.e.org/io/": ["https://e.org/io"]}
    }


# LlamaIndex

FILE = {"file_name": "moons.md", "file_path": "/data/moons.md"}
NODE = {
    "id_": "n1",
    "embedding": None,
    "metadata": FILE,
    "relationships": {"1": {"node_id": "doc-1", "node_type": "4", "metadata": FILE}},
    "text": "Titan is a moon.",
    "mimetype": "text/plain",
    "class_name": "TextNode",
}
RHEA = {**NODE, "id_": "n2", "text": "Rhea.", "metadata": {}}
DOCUMENT = {
    "id_": "doc-1",
    "metadata": FILE,
    "relationships": {},
    "text_resource": {"embeddings": None, "text": "Titan is a moon. Rhea.", "path": None},
    "class_name": "Document",
}
READ = [
    Passage("n1", "Titan is a moon.", "moons.md", "/data/moons.md"),
    Passage("n2", "Rhea.", "", "doc-1"),
]


def docstore(*nodes: dict[str, Any]) -> dict[str, Any]:
    """``docstore.json`` as SimpleDocumentStore persists it."""
    return {
        "docstore/metadata": {node["id_"]: {"doc_hash": "f0"} for node in nodes},
        "docstore/data": {node["id_"]: {"__data__": node, "__type__": "1"} for node in nodes},
        "docstore/ref_doc_info": {"doc-1": {"node_ids": ["n1", "n2"], "metadata": FILE}},
    }


def test_nodes_of_llamaindex_have_their_file_or_document_as_page(write: Write) -> None:
    assert list(read_corpus(write("nodes.jsonl", [NODE, RHEA]))) == READ
    assert list(read_corpus(write("docstore.json", docstore(NODE, RHEA)))) == READ
    scored = {"node": NODE, "score": 0.5, "class_name": "NodeWithScore"}
    assert list(read_corpus(write("scored.json", [scored]))) == READ[:1]
    assert list(read_corpus(write("docs.json", [DOCUMENT]))) == [
        Passage("doc-1", "Titan is a moon. Rhea.", "moons.md", "/data/moons.md")
    ]


def test_documents_that_are_stored_beside_their_nodes_are_left_out_and_counted(
    write: Write,
) -> None:
    problems = Problems()
    path = write("docstore.json", docstore(DOCUMENT, NODE, RHEA))
    assert list(read_corpus(path, problems=problems)) == READ
    assert problems.warnings == [
        "docstore.json holds 1 documents beside their nodes; only the nodes are passages."
    ]


# Haystack


def test_documents_of_haystack_are_read_nested_and_flat(write: Write) -> None:
    nested = {"id": "404d", "content": "Titan", "blob": None, "meta": {"file_path": "moons.md"}}
    flat = {"source_id": "abc", "page_number": 1, "id": "ba03", "content": "Titan", "blob": None}
    assert list(read_corpus(write("docs.jsonl", [nested, flat]))) == [
        Passage("404d", "Titan", "", "moons.md"),
        Passage("ba03", "Titan", "", "abc"),
    ]


# RAGFlow

CHUNK = {
    "id": "c1",
    "content_with_weight": "Titan is a moon.",
    "content_ltks": "titan is a moon",
    "doc_id": "d7",
    "docnm_kwd": "moons.pdf",
    "kb_id": "k",
    "important_kwd": ["Titan"],
    "position_int": [[1, 0, 1, 0, 1]],
}
LISTED = {"id": "c1", "content": "Titan is a moon.", "document_id": "d7", "docnm_kwd": "moons.pdf"}
RETRIEVED = {**LISTED, "docnm_kwd": None, "document_keyword": "moons.pdf", "similarity": 0.9}
ANSWERS: dict[str, Any] = {
    "a list": [CHUNK],
    "chunks of a document": {
        "code": 0,
        "data": {"chunks": [LISTED], "doc": {"id": "d7", "name": "moons.pdf"}, "total": 1},
    },
    "retrieved chunks": {
        "code": 0,
        "data": {"chunks": [RETRIEVED], "doc_aggs": [{"doc_name": "moons.pdf", "count": 1}]},
    },
    "hits of Elasticsearch": {
        "took": 3,
        "hits": {"total": {"value": 1}, "hits": [{"_id": "c1", "_score": 1.0, "_source": CHUNK}]},
    },
}


@pytest.mark.parametrize("case", ANSWERS)
def test_chunks_of_ragflow_have_their_document_as_page_and_its_name_as_title(
    case: str, write: Write
) -> None:
    assert list(read_corpus(write("chunks.json", ANSWERS[case]))) == [
        Passage("c1", "Titan is a moon.", "moons.pdf", "d7")
    ]


# Pyserini, FlashRAG, Search-R1, MS MARCO

ROWS: dict[str, tuple[dict[str, Any], Passage]] = {
    "Pyserini": ({"id": "7", "contents": "Titan."}, Passage("7", "Titan.", "", "7")),
    "FlashRAG and Search-R1": (
        {"id": "0", "contents": '"Titan (moon)"\nTitan is a moon.'},
        Passage("0", "Titan is a moon.", "Titan (moon)", "0"),
    ),
    "passages of MS MARCO 2": (
        {"pid": "mp_0", "passage": "Titan.", "spans": "(0,6)", "docid": "md_0"},
        Passage("mp_0", "Titan.", "", "md_0"),
    ),
    "documents of MS MARCO 2": (
        {"url": "u", "title": "T", "headings": "H", "body": "Titan.", "docid": "md_0"},
        Passage("md_0", "Titan.", "T", "md_0"),
    ),
    "segments of MS MARCO 2.1": (
        {"docid": "md_0#3_12", "url": "u", "title": "T", "headings": "H", "segment": "Titan."},
        Passage("md_0#3_12", "Titan.", "T", "md_0"),
    ),
    "documents of ir_datasets": (
        {"doc_id": "md_0", "url": "u", "title": "T", "headings": "H", "body": "Titan."},
        Passage("md_0", "Titan.", "T", "md_0"),
    ),
    "BEIR, whose pages are its ids": (
        {"_id": "1", "title": "T", "text": "Titan.", "metadata": {"source": "wiki", "doc_id": "9"}},
        Passage("1", "Titan.", "T", "1"),
    ),
    "a data set beside the text": (
        {"id": "1", "text": "Titan.", "source": "wikipedia"},
        Passage("1", "Titan.", "", "1"),
    ),
}


@pytest.mark.parametrize("case", ROWS)
def test_a_row_is_read_as_its_program_means_it(case: str, write: Write) -> None:
    row, expected = ROWS[case]
    assert list(read_corpus(write("rows.jsonl", [row]))) == [expected]
    assert list(read_corpus(write("row.json", row))) == [expected]


def test_passages_by_id_in_one_object_are_rows(write: Write) -> None:
    value = {"d1": {"text": "Titan.", "title": "T"}, "d2": {"text": "Rhea.", "title": "R"}}
    assert list(read_corpus(write("corpus.json", value))) == [
        Passage("d1", "Titan.", "T", "d1"),
        Passage("d2", "Rhea.", "R", "d2"),
    ]


# records that do not fit

DEEP: Any = 1
for _ in range(200):
    DEEP = {"data": DEEP}
BAD: dict[str, tuple[Any, str]] = {
    "no text": ([{"page_content": None, "metadata": {}}], "record 1 needs 'text' as text"),
    "a list as text": ([{"id_": "1", "text": ["a"]}], "record 1 needs 'text' as text"),
    "an object as id": ([{"id": {"a": 1}, "page_content": "a"}], "an id must be text or a number"),
    "a list as title": ([{"id": "1", "content": "a", "docnm_kwd": ["x"]}], "a title must be text"),
    "a list as page": ([{"id": "1", "content": "a", "doc_id": ["x"]}], "an id must be text or a"),
    "an empty store": ({"docstore/data": {}, "docstore/metadata": {}}, "needs 'id' and 'text'"),
    "a store of no nodes": ({"docstore/data": {"a": 1}}, "needs 'id' and 'text'"),
    "a store of broken nodes": ({"docstore/data": {"a": {"__data__": 3}}}, "needs 'text' as text"),
    "an answer without chunks": ({"code": 102, "message": "no"}, "needs 'id' and 'text'; it has code"),
    "deep": (DEEP, "needs 'id' and 'text'; it has data"),
    "the same node twice": ([NODE, NODE], "repeats the id 'n1'"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_record_that_does_not_fit_is_one_sentence(case: str, write: Write) -> None:
    value, sentence = BAD[case]
    with pytest.raises(BadFileError, match=sentence):
        list(read_corpus(write("docs.json", value)))


@pytest.mark.parametrize(
    "metadata",
    [None, "source", ["source"], {"source": ["a"]}, {"source": {"a": 1}}, {"source": True}, {}],
)
def test_metadata_of_another_kind_are_no_page(metadata: Any, write: Write) -> None:
    row = {"id": "1", "page_content": "Titan.", "metadata": metadata, "relationships": {"1": 3}}
    assert list(read_corpus(write("docs.jsonl", [row]))) == [Passage("1", "Titan.", "", "1")]


def test_a_store_that_is_cut_off_is_one_sentence(write: Write) -> None:
    path = write("docstore.json", docstore(NODE, RHEA))
    path.write_text(path.read_text()[:-40])
    with pytest.raises(BadFileError, match="is not valid JSON"):
        list(read_corpus(path))
