"""CRUD-RAG's retrievers, and the layout of documents in a prompt."""

from __future__ import annotations

from collections.abc import Sequence

from rallebench.core.errors import UsageError
from rallebench.core.starter import STARTER_INDEXES
from rallebench.core.types import Hit
from rallebench.retrievers.composites import INDEX
from rallebench.workspace.paths import WorkspaceFolder

RETRIEVERS = ("dense", "bm25", "hybrid", "hybrid-rerank")
"""The paper's retrievers; its code calls the first ``base``."""
ECHO_ENDS = "\nGiven the context information"
"""The original cuts a mock model's echo at this text, and so cuts any document that contains it."""


def variant(kind: str, dense: str, bm25: str, k: int, reranker: str = "") -> str:
    """The name of one of CRUD-RAG's four retrievers (``kind`` in RETRIEVERS), combined from two retrievers of the workspace.

    ``hybrid``: each list of k adds 0.5 / (60 + rank) to an item's score; items with the same text are merged.
    ``hybrid-rerank``: a cross-encoder re-ranks the 2·k best items of the fused lists. CRUD-RAG re-ranks the union of two lists
    of k. The results differ only if the lists overlap: here, the next items fill the free places.

    >>> variant("hybrid", "bge", "words", 8)
    'rrf:words,bge?weights=0.5,0.5&constant=60&depth=8&equal=text'

    Raises UsageError if a reranker is required but not named.
    """
    if kind in ("dense", "bm25"):
        return dense if kind == "dense" else bm25
    fused = f"rrf:{bm25},{dense}?weights=0.5,0.5&constant=60&depth={k}&equal=text"
    if kind == "hybrid":
        return fused
    if not reranker:
        raise UsageError(
            "hybrid-rerank needs a cross-encoder: name its folder or hub id, such as BAAI/bge-reranker-base."
        )
    return f"rerank:({fused})?model={reranker}&depth={2 * k}"


def separator(join: str, words: bool) -> str:
    """The separator between documents: ``line`` for a line break, ``blank`` for a blank line. With ``auto``, as in CRUD-RAG, a
    line break separates documents if ``words`` are searched.

    >>> separator("auto", True), separator("auto", False), separator("blank", True)
    ('\\n', '\\n\\n', '\\n\\n')
    """
    return "\n" if join == "line" or (join == "auto" and words) else "\n\n"


def searches_words(workspace: WorkspaceFolder, index: str) -> bool:
    """Return whether a retriever uses BM25 alone. Raises UsageError."""
    composite = workspace.retriever(index)
    if composite is not None and composite.kind != INDEX:
        return False
    (name,) = workspace.component_indexes(index)
    manifest = workspace.manifests().get(name)
    return (manifest.kind if manifest else STARTER_INDEXES.get(name)) == "bm25"


def join_documents(hits: Sequence[Hit], separator: str, original: bool) -> str:
    """The documents for a prompt, best first; '' without documents."""
    text = separator.join(hit.passage.text for hit in hits)
    return text.split(ECHO_ENDS)[0] if original else text
