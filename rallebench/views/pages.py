"""The whole page around a passage of an index or a corpus, with the span that an answer cites."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from rallebench.core.errors import NotFoundError
from rallebench.core.starter import STARTER_INDEXES
from rallebench.core.types import Passage
from rallebench.corpora.store import PassageStore
from rallebench.views.gold_coverage import STARTER_NAME, corpus_of_index
from rallebench.views.library import starter_passages
from rallebench.views.passages import open_passages
from rallebench.workspace.paths import WorkspaceFolder

Rows = Sequence[Passage] | PassageStore
Span = tuple[int, int]
SEARCHED_PASSAGES = 20_000
"""A store of at most as many passages is searched for all passages of a page; in a larger one, they are neighbours."""
MAX_PASSAGES = 2_000
"""Maximum passages of a page; the rest of a longer page is not read."""


@dataclass(frozen=True, slots=True)
class SourcePage:
    """A page as one text. ``passage``, ``span``: positions of the passage and of the cited span in it; None if they
    are not in the text. ``corpus``: '' if the corpus of the index is no longer here.
    """

    title: str
    page_id: str
    doc_id: str
    corpus: str
    text: str
    passage: Span | None
    span: Span | None


@dataclass(frozen=True, slots=True)
class _Place:
    """A passage in a store, and its part of a document: characters from ``start``, after a ``prefix`` of its own.
    ``is_page``: True if the passage is a whole page, joined when it was retrieved.
    """

    passage: Passage
    document: str
    start: int = 0
    prefix: int = 0
    is_page: bool = False


def source_page(
    workspace: WorkspaceFolder,
    doc_id: str,
    *,
    index: str = "",
    corpus: str = "",
    span: Span | None = None,
) -> SourcePage:
    """Return the page of a passage found by a retriever (``index``) or of a corpus.

    ``span``: characters of the passage. Raises NotFoundError.
    """
    for name in workspace.component_indexes(index) if index else ("",):
        of_corpus = corpus or _indexed_corpus(workspace, name)
        with _rows(workspace, name, corpus) as rows:
            place = None if rows is None else _find(rows, doc_id)
            if rows is None or place is None:
                continue
            with _documents(workspace, of_corpus) as documents:
                if documents is None:
                    return _join(rows, place, place.passage.doc_id, "", span)
                if place.is_page or _find_row(documents, place.document) is None:
                    return _join(rows, place, place.passage.doc_id, of_corpus, span)
                return _join(documents, place, place.document, of_corpus, span)
    where = f"index {index}" if index else f"corpus {corpus}"
    raise NotFoundError(
        f"The passage {doc_id!r} is not in the {where} here, so its page cannot be opened; build the index again, or import the corpus."
    )


def _indexed_corpus(workspace: WorkspaceFolder, index: str) -> str:
    with suppress(KeyError):
        return corpus_of_index(index, workspace.manifests())
    return ""


@contextmanager
def _rows(workspace: WorkspaceFolder, index: str, corpus: str) -> Iterator[Rows | None]:
    """Open the passages of an index, or of a corpus without one; None if they are not here."""
    folder = workspace.index_folder(index) if index else None
    if folder is not None:
        store = PassageStore(folder)
        try:
            yield store
        finally:
            store.close()
    elif index in STARTER_INDEXES:
        yield starter_passages()
    else:
        with _documents(workspace, corpus) as documents:
            yield documents


@contextmanager
def _documents(workspace: WorkspaceFolder, corpus: str) -> Iterator[Rows | None]:
    """Open the passages of a corpus; None if it is not here."""
    known = corpus == STARTER_NAME or corpus in workspace.corpus_cards()
    if not known:
        yield None
        return
    with open_passages(workspace, corpus) as documents:
        yield documents


def _find_row(rows: Rows, doc_id: str) -> int | None:
    if isinstance(rows, PassageStore):
        return rows.find_row(doc_id)
    return next((n for n, passage in enumerate(rows) if passage.doc_id == doc_id), None)


def _find(rows: Rows, doc_id: str) -> _Place | None:
    """Find a passage by its id; a whole page, which has the page's id, by its first passage."""
    row = _find_row(rows, doc_id)
    if row is None:
        if len(rows) > SEARCHED_PASSAGES:
            return None
        first = next((passage for passage in rows if passage.page_id == doc_id), None)
        return None if first is None else _Place(first, doc_id, is_page=True)
    passage = rows[row]
    if not isinstance(rows, PassageStore):
        return _Place(passage, doc_id)
    origin = rows.origin(row)
    length = origin.end - origin.start
    prefix = len(passage.text) - length if 0 < length < len(passage.text) else 0
    return _Place(passage, origin.document, origin.start, prefix)


def _page_rows(rows: Rows, passage: Passage) -> list[int]:
    """Return the rows of a passage's page in order; a passage without a page stands alone."""
    at, page = _find_row(rows, passage.doc_id), passage.page_id
    if at is None or not page:
        return [] if at is None else [at]
    if len(rows) <= SEARCHED_PASSAGES:
        return [row for row, other in enumerate(rows) if other.page_id == page][:MAX_PASSAGES]
    first = end = at
    while first > 0 and at - first < MAX_PASSAGES // 2 and rows[first - 1].page_id == page:
        first -= 1
    while end + 1 < len(rows) and end - at < MAX_PASSAGES // 2 and rows[end + 1].page_id == page:
        end += 1
    return list(range(first, end + 1))


def _join(rows: Rows, place: _Place, document: str, corpus: str, span: Span | None) -> SourcePage:
    """Join the passages of the page, and find the passage and the span in it. ``document``: id of its row."""
    passage, home = place.passage, _find_row(rows, document)
    numbers = [] if home is None else _page_rows(rows, rows[home])
    text = _text(rows, numbers) or passage.text
    if place.is_page:
        return SourcePage(passage.title, passage.page_id, document, corpus, text, None, span)
    before = _text(rows, numbers[: numbers.index(home)]) if home in numbers else ""
    hint = len(before) + (place.start if document == place.document else 0)
    body = passage.text[place.prefix :]
    at = text.find(body, hint)
    at = text.find(body) if at < 0 else at
    if at < 0:
        return SourcePage(passage.title, passage.page_id, passage.doc_id, corpus, text, None, None)
    cited = None
    if span is not None and span[1] > place.prefix:
        cited = at + max(0, span[0] - place.prefix), at + min(len(body), span[1] - place.prefix)
    whole = at, at + len(body)
    return SourcePage(passage.title, passage.page_id, passage.doc_id, corpus, text, whole, cited)


def _text(rows: Rows, numbers: Sequence[int]) -> str:
    if isinstance(rows, PassageStore):
        return rows.join(numbers)
    return "\n\n".join(rows[number].text for number in numbers)
