"""The whole page around a passage, with the passage and the cited span at their places."""

from __future__ import annotations

from pathlib import Path

import pytest
from building import built
from small_workspace import write_lines

from rallebench.core.chunking import Chunking
from rallebench.core.errors import NotFoundError
from rallebench.corpora.store import PassageStore
from rallebench.services.workbench import Workbench
from rallebench.views.pages import SourcePage, source_page

WORDS = " ".join(f"word{number}" for number in range(40))
DOCUMENTS = (
    {"id": "a1", "page_id": "a", "title": "Alpha", "text": f"Alpha begins. {WORDS} Alpha ends."},
    {"id": "a2", "page_id": "a", "title": "Alpha", "text": "The second part of Alpha names Beta."},
    {"id": "b1", "page_id": "b", "title": "Beta", "text": "Beta is another page."},
    {"id": "a3", "page_id": "a", "title": "Alpha", "text": "The last part of Alpha."},
)


@pytest.fixture
def alphabet(bench: Workbench) -> Workbench:
    """A workspace with the corpus ``alphabet`` and an index of its chunks."""
    space = bench.workspace
    source = write_lines(space.path / "alphabet.jsonl", DOCUMENTS)
    list(bench.data.import_corpus("alphabet", source))
    chunking = Chunking(8, 2, "words", prefix="Alpha: ")
    built(space.indexes, "chunks", space.corpora / "alphabet", "bm25", chunking=chunking)
    return bench


def passage_and_span(page: SourcePage) -> tuple[str, str]:
    """The texts of the passage and of the span."""
    passage, span = (
        page.text[slice(*place)] if place else "" for place in (page.passage, page.span)
    )
    return passage, span


def test_a_page_joins_its_passages_and_marks_the_cited_span(alphabet: Workbench) -> None:
    page = source_page(alphabet.workspace, "a2", corpus="alphabet", span=(4, 10))
    assert (page.title, page.page_id, page.corpus) == ("Alpha", "a", "alphabet")
    assert page.text == "\n\n".join(str(x["text"]) for x in DOCUMENTS if x["page_id"] == "a")
    assert passage_and_span(page) == ("The second part of Alpha names Beta.", "second")


def test_a_chunk_is_marked_in_the_whole_documents_of_its_corpus(alphabet: Workbench) -> None:
    folder = alphabet.workspace.index_folder("chunks")
    assert folder is not None
    store = PassageStore(folder)
    chunk = store[2]
    assert chunk.text.startswith("Alpha: ") and chunk.doc_id == "a1#2"
    at = chunk.text.index("word")
    page = source_page(alphabet.workspace, "a1#2", index="chunks", span=(at, at + 6))
    assert "Alpha begins." in page.text and "The last part" in page.text
    passage, span = passage_and_span(page)
    assert passage == chunk.text.removeprefix("Alpha: ") and span == chunk.text[at : at + 6]
    store.close()


def test_without_its_corpus_the_page_is_joined_from_the_index(alphabet: Workbench) -> None:
    alphabet.data.delete_corpus("alphabet")
    page = source_page(alphabet.workspace, "a1#0", index="chunks")
    assert page.corpus == "" and "Alpha begins." in page.text and "Alpha ends." in page.text
    assert page.text.count("word7 ") == 1, "overlapping chunks are joined"


def test_a_passage_of_the_starter_opens_before_its_index_is_built(bench: Workbench) -> None:
    page = source_page(bench.workspace, "304", index="starter-bm25")
    assert page.title == "Johann Sebastian Bach" and page.corpus == "starter"
    assert page.passage == (0, page.text.index("\n\n"))


def test_a_passage_that_is_not_here_is_said_with_its_mend(bench: Workbench, tmp_path: Path) -> None:
    with pytest.raises(
        NotFoundError, match=r"'x' is not in the index tiny here.*build the index again"
    ):
        source_page(bench.workspace, "x", index="tiny")
    with pytest.raises(NotFoundError, match="corpus gone"):
        source_page(bench.workspace, "x", corpus="gone")
