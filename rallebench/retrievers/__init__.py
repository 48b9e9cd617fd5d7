"""Query → passages: retrievers over an index of any kind, and combinations of other retrievers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from rallebench.core.backends import Retriever
from rallebench.core.registry import Registry
from rallebench.core.settings import Setting
from rallebench.core.types import Json, Passage
from rallebench.vector_indexes import INDEX_TRAITS, VECTOR_INDEXES, Progress


class Passages(Protocol):
    """Passages by row, from 0: a list, or the store of a corpus, which does not support slices."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int, /) -> Passage: ...

    def __iter__(self) -> Iterator[Passage]: ...


class IndexKind(Protocol):
    """A way to index passages; one file each."""

    def build(
        self, folder: Path, passages: Passages, vectors: Any, settings: Json
    ) -> Generator[Progress, None, dict[str, Any]]:
        """Write the index into ``folder``; return the parameters for its manifest, including all ``settings``.

        ``vectors``: float32 (n, dim) of the passages, which may be memory-mapped; None for a kind that needs no encoder.
        ``settings``: all of the form, checked. Closing the generator stops the build. Raises BackendError.
        """
        ...

    def open(self, name: str, folder: Path, manifest: Any, encoder: Any) -> Retriever:
        """Open the index ``name`` in ``folder``, which also holds the passages (``corpora.store.PassageStore``).

        ``manifest``: a ``core.entries.Manifest``. Raises MismatchError if ``encoder`` is not the one the index was built
        with, BadFileError for damaged files. A kind with a ``search_form`` opens retrievers with a method
        ``with_knobs(name, settings)``, which returns the same open index with other search settings.
        """
        ...


INDEX_KINDS: Registry[IndexKind] = Registry(
    "index kind",
    "rallebench.retrievers",
    name="index_kinds",
    expects="an IndexKind: build(folder, passages, vectors, settings) and open(name, folder, manifest, encoder)",
    has=("build", "open"),
    includes=VECTOR_INDEXES,
    traits={
        "needs_encoder": "True if build and open receive vectors and an encoder",
        "needs_model": "True if the setting model is required: the kind loads a model of its own",
        **INDEX_TRAITS,
    },
)
"""Every vector index is registered here, too (``dense.py``)."""


def kinds() -> tuple[str, ...]:
    """Return the index kinds that can be built; the most convenient come first."""
    return tuple(
        sorted(
            INDEX_KINDS.names(),
            key=lambda name: (needs_model(name), needs_encoder(name), name != "flat", name),
        )
    )


def needs_encoder(kind: str) -> bool:
    """Return whether an index of that kind is built from vectors. Raises NotFoundError for an unknown kind."""
    return bool(INDEX_KINDS.listing(kind).traits.get("needs_encoder"))


def needs_model(kind: str) -> bool:
    """Return whether an index of that kind loads a model of its own. Raises NotFoundError for an unknown kind."""
    return bool(INDEX_KINDS.listing(kind).traits.get("needs_model"))


def search_form(kind: str) -> Mapping[str, Setting]:
    """Return the search settings of an index kind; none for an unknown kind."""
    return INDEX_KINDS.entry(kind).traits.get("search_form", {}) if kind in INDEX_KINDS else {}


COMBINATIONS: Registry[Callable[..., Any]] = Registry(
    "way of combining retrievers",
    "rallebench.retrievers",
    name="composites",
    expects="a function (name, parts, settings) → a Retriever",
    required={"parts": ()},
    traits={
        "parts": "(minimum, maximum) number of retrievers",
        "check": "(name, number of parts, settings) → None: refuses invalid combinations of settings, before anything is loaded",
        "llm": "True if it also receives a language model and a prompt",
        "prompts": "folder of its prompts, rerank by default",
        "questions": "True if it receives the examples of the set named by its setting questions",
    },
)
"""Combinations of retrievers: a factory ``(name, parts, settings) -> Retriever``, one file each.

``settings`` are checked by its form. The parts belong to the caller and are not closed with the combination.
"""
