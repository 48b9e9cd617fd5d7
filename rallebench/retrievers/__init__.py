"""Query → passages. A retriever kind is an opener ``(folder, manifest, encoder) -> Retriever``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from rallebench.core.registry import Registry
from rallebench.core.types import Hit


class Retriever(Protocol):
    """``fingerprint``: corpus, tokens or encoder, index and parameters: all that changes a result.

    ``titled``: whether the model reads passages as ``"{title}, {text}"`` (RaLLe's BM25) or as the
    bare text (RaLLe's dense indexes). ``prefix_stable``: whether the hits for a smaller k are
    always the first of those for a larger k.
    """

    name: str
    fingerprint: str
    titled: bool
    prefix_stable: bool

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """Per query, in the asked order, at most ``k`` hits, best first; a blank query has none."""
        ...


def embedding_tokens(retriever: Any, queries: Sequence[str]) -> Sequence[int | None]:
    """Per query the tokens that encoders read of it; 0 if none did, None where one counts no tokens.

    A retriever that has an encoder says it by a method ``embedding_tokens(queries)``, after the search.
    """
    counted = getattr(retriever, "embedding_tokens", None)
    found: Sequence[int | None] = counted(queries) if counted else [0] * len(queries)
    return found


RETRIEVERS: Registry[Callable[..., Any]] = Registry("retriever kind", "rallebench.retrievers")

COMBINATIONS: Registry[Callable[..., Any]] = Registry(
    "way of combining retrievers",
    "rallebench.retrievers",
    name="composites",
    traits={
        "parts": "(fewest, most) retrievers that it takes",
        "check": "(name, number of parts, settings) → None: refuses what no single setting shows, before anything is loaded",
        "llm": "whether it is called with a language model and a prompt too",
        "questions": "whether it is called with the examples of the set that its setting questions names",
    },
)
"""Retrievers made of others: a factory ``(name, parts, settings) -> Retriever``, one file each.

``settings`` are checked by its form. The parts belong to the caller and are not closed with the combination.
"""
