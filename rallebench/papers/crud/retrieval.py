"""CRUD-RAG's retrievers, and the layout of their documents in a prompt."""

from __future__ import annotations

from collections.abc import Sequence

from rallebench.core.errors import UsageError
from rallebench.core.starter import STARTER_INDEXES
from rallebench.core.types import Hit
from rallebench.retrievers.composites import INDEX
from rallebench.workspace.paths import WorkspaceFolder

RETRIEVERS = ("dense", "bm25", "hybrid", "hybrid-rerank")
"""The paper's; its code calls the first ``base``."""
ECHO_ENDS = "\nGiven the context information"
"""The text at which the original cuts the echo of a mock model, and thus any document with this text."""


def variant(kind: str, dense: str, bm25: str, k: int, reranker: str = "") -> str:
    """CRUD-RAG's four ways to retrieve (``kind`` of RETRIEVERS), as a retriever's name over two of the workspace's.

    ``hybrid``: 0.5 / (60 + rank) in each list of k, items with the same text being one. ``hybrid-rerank``: the
    2·k best of the fused lists by a cross-encoder; CRUD-RAG judges the union of two lists of k, which is the same
    but where the lists share passages: their places are taken by the next ones here.

    >>> variant("hybrid", "bge", "words", 8)
    'rrf:words,bge?weights=0.5,0.5&constant=60&depth=8&equal=text'

    Raises UsageError where a reranker is needed and none named.
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
    """The separator of documents: a ``line`` end or a ``blank`` line; ``auto``: as in CRUD-RAG a line end where ``words`` are
    searched.

    >>> separator("auto", True), separator("auto", False), separator("blank", True)
    ('\\n', '\\n\\n', '\\n\\n')
    """
    return "\n" if join == "line" or (join == "auto" and words) else "\n\n"


def searches_words(workspace: WorkspaceFolder, index: str) -> bool:
    """Return whether a retriever is BM25 alone. Raises UsageError."""
    composite = workspace.retriever(index)
    if composite is not None and composite.kind != INDEX:
        return False
    (name,) = workspace.component_indexes(index)
    manifest = workspace.manifests().get(name)
    return (manifest.kind if manifest else STARTER_INDEXES.get(name)) == "bm25"


def join_documents(hits: Sequence[Hit], separator: str, original: bool) -> str:
    """The documents for a prompt, best first; '' for none."""
    text = separator.join(hit.passage.text for hit in hits)
    return text.split(ECHO_ENDS)[0] if original else text
