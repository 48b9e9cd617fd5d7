"""Query → passages: retrievers over an index of some kind, and retrievers made of others."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from rallebench.core.registry import Registry
from rallebench.core.settings import Setting
from rallebench.core.types import Hit, Passage
from rallebench.vector_indexes import INDEX_TRAITS, Progress


class Retriever(Protocol):
    """``fingerprint``: corpus, tokens or encoder, index and parameters: all that changes a result.

    ``titled``: whether the model reads passages as ``"{title}, {text}"`` (RaLLe's BM25) or as the
    bare text (RaLLe's dense indexes). ``prefix_stable``: whether the hits for a smaller k are
    always the first of those for a larger k. One that has an encoder also has ``embedding_tokens(queries)``: after
    a search, per query, the tokens that encoders read of it, or None where one counts no tokens.
    """

    name: str
    fingerprint: str
    titled: bool
    prefix_stable: bool

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """Per query, in the asked order, at most ``k`` hits, best first; a blank query has none."""
        ...


class Passages(Protocol):
    """Passages by row, from 0: a list, or the store of a corpus, which has no slices."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int, /) -> Passage: ...

    def __iter__(self) -> Iterator[Passage]: ...


class IndexKind(Protocol):
    """A way to index passages: one file each."""

    def build(
        self, folder: Path, passages: Passages, vectors: Any, settings: Mapping[str, Any]
    ) -> Generator[Progress, None, dict[str, Any]]:
        """Write the index into ``folder``; return the parameters for its manifest, all ``settings`` among them.

        ``vectors``: float32 (n, dim) of the passages, which may be memory-mapped; None for a kind that needs no encoder.
        ``settings``: all of the form, checked. Closing the generator stops the build. Raises BackendError.
        """
        ...

    def open(self, name: str, folder: Path, manifest: Any, encoder: Any) -> Retriever:
        """The index ``name`` in ``folder``, which holds the passages too (``corpora.store.PassageStore``).

        ``manifest``: a ``core.entries.Manifest``. Raises MismatchError for another encoder than the index was built
        with, BadFileError for damaged files. A kind with a ``search_form`` opens retrievers with a method
        ``with_knobs(name, settings)``: the same open index, searched with other settings.
        """
        ...


INDEX_KINDS: Registry[IndexKind] = Registry(
    "index kind",
    "rallebench.retrievers",
    name="index_kinds",
    traits={
        "needs_encoder": "whether build and open are given vectors and an encoder",
        **INDEX_TRAITS,
    },
)
"""Every vector index is one of them (``dense.py``)."""


def needs_encoder(kind: str) -> bool:
    """Return whether an index of that kind is built of vectors. Raises NotFoundError for an unknown kind."""
    return bool(INDEX_KINDS.entry(kind).traits.get("needs_encoder"))


def search_form(kind: str) -> Mapping[str, Setting]:
    """What a search in an index of that kind takes; nothing for a kind that is unknown."""
    return INDEX_KINDS.entry(kind).traits.get("search_form", {}) if kind in INDEX_KINDS else {}


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
