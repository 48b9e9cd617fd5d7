"""The share of a dataset's gold pages in each corpus, to be checked before a run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rallebench.core.entries import Manifest
from rallebench.core.errors import RalleError
from rallebench.core.runs import RunRequest
from rallebench.core.sources import Problems, Source, stamps
from rallebench.core.starter import STARTER_CORPUS, STARTER_INDEXES
from rallebench.corpora.cards import read_card
from rallebench.datasets.reading import read_examples
from rallebench.workspace.coverage import MOST_PASSAGES, corpus_pages, starter_pages, stored_pages
from rallebench.workspace.coverage import coverage as missing_in
from rallebench.workspace.paths import WorkspaceFolder

STARTER_NAME = "starter"
"""The name of the shipped corpus."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """``held`` of ``total`` gold pages are present; if ``total`` is 0, the questions name no gold pages."""

    held: int
    total: int

    @property
    def share(self) -> float | None:
        """Share from 0 to 1; None if no gold pages are named."""
        return self.held / self.total if self.total else None


def corpus_of_index(name: str, manifests: Mapping[str, Manifest]) -> str:
    """Return the corpus of an index, following indexes that were built from another index."""
    seen = {name}
    while name not in STARTER_INDEXES:
        name = manifests[name].corpus
        if name not in manifests or name in seen:
            return STARTER_NAME if name in STARTER_INDEXES else name
        seen.add(name)
    return STARTER_NAME


def indexed_corpora(workspace: WorkspaceFolder) -> dict[str, tuple[str, ...]]:
    """Corpus → its indexes, for all imported or indexed corpora, the starter first."""
    names: dict[str, list[str]] = {STARTER_NAME: list(STARTER_INDEXES)}
    names |= {name: [] for name in workspace.corpus_cards()}
    manifests = workspace.manifests()
    for name in manifests:
        if name not in STARTER_INDEXES:
            names.setdefault(corpus_of_index(name, manifests) or name, []).append(name)
    return {corpus: tuple(indexes) for corpus, indexes in names.items()}


def gold_pages(workspace: WorkspaceFolder, dataset: str) -> frozenset[str]:
    """Return all gold pages of a dataset, read once per version of its file. Raises RalleError."""
    _, path = workspace.dataset(dataset)
    return _gold(path, tuple(stamps(path)))


@lru_cache(maxsize=64)
def _gold(path: Path, version: tuple[tuple[str, int, int], ...]) -> frozenset[str]:
    pages: set[str] = set()
    for example in read_examples(path, source=Source(path, Problems(skip=True))):
        pages |= example.gold.pages
    return frozenset(pages)


def indexed_pages(workspace: WorkspaceFolder, corpus: str) -> frozenset[str] | None:
    """Return the page ids of a corpus of ``indexed_corpora``; None if they cannot be read, or not quickly."""
    folder = workspace.corpora / corpus
    if corpus == STARTER_NAME:
        return starter_pages()
    with suppress(RalleError, OSError):
        if (folder / "corpus.json").exists():
            card = read_card(folder)
            return stored_pages(folder, card.sha256) if card.passages <= MOST_PASSAGES else None
        for index in indexed_corpora(workspace).get(corpus, ())[:1]:
            manifest = workspace.manifests()[index]
            if manifest.passages <= MOST_PASSAGES:
                return stored_pages(workspace.indexes / index, manifest.fingerprint)
    return None


def coverage(workspace: WorkspaceFolder, dataset: str, corpus: str) -> Coverage | None:
    """Count the gold pages of a dataset in a corpus; None if unknown."""
    pages = indexed_pages(workspace, corpus)
    if pages is None:
        return None
    try:
        gold = gold_pages(workspace, dataset)
    except (RalleError, OSError):
        return None
    return Coverage(len(gold & pages), len(gold))


def index_coverage(workspace: WorkspaceFolder, dataset: str) -> dict[str, Coverage | None]:
    """Retriever → coverage of the dataset's gold pages; None if unknown before it is loaded."""
    try:
        gold = gold_pages(workspace, dataset)
        retrievers = list(workspace.retrievers())
    except (RalleError, OSError):
        return {}
    shares: dict[str, Coverage | None] = {}
    for name in retrievers:
        pages = corpus_pages(workspace, (name,), at_most=MOST_PASSAGES)
        shares[name] = None if pages is None else Coverage(len(gold & pages), len(gold))
    return shares


def run_note(workspace: WorkspaceFolder, request: RunRequest) -> str:
    """Say in one sentence that all gold pages of a run are covered, or that the questions name none. Return '' if a
    warning reports missing pages, if the index cannot be read, or if the run does not search.
    """
    if not request.flow.retrievers:
        return ""
    if not any(example.gold.pages for example in request.examples):
        return "The questions name no gold pages, so their retrieval cannot be scored."
    workspace, retrievers = workspace, request.flow.retrievers
    missing = missing_in(workspace, retrievers, request.examples, at_most=MOST_PASSAGES)
    whole = len(missing) == len(set(retrievers)) and not any(missing.values())
    return "All gold pages are in the index." if whole else ""


def best_corpus(shares: dict[str, Coverage | None]) -> str:
    """Return the corpus with the highest share; '' if all are 0."""
    known = {name: c.share for name, c in shares.items() if c is not None and c.share}
    return max(known, key=lambda name: known[name] or 0, default="")


def usual_index(workspace: WorkspaceFolder, dataset: str) -> str:
    """Return the index to search for gold pages, BM25 before others: of the corpus with most gold pages of the dataset, else of
    the corpus with its name, else any retriever; '' for none.
    """
    corpora = indexed_corpora(workspace)
    best = best_corpus({name: coverage(workspace, dataset, name) for name in corpora})
    kinds = {**STARTER_INDEXES, **{name: own.kind for name, own in workspace.manifests().items()}}
    for names in (corpora.get(best, ()), corpora.get(dataset, ()), tuple(workspace.retrievers())):
        if names:
            return next((name for name in names if kinds.get(name) == "bm25"), names[0])
    return ""


def corpus_source(workspace: WorkspaceFolder, corpus: str) -> str:
    """Return the corpus as a build accepts it: a name or a path."""
    imported = workspace.corpora / corpus
    if corpus == STARTER_NAME and not imported.exists():
        return os.fspath(STARTER_CORPUS)
    return corpus
