"""Coverage of the gold pages of questions by an index, computed from page ids before anything is loaded."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import closing
from functools import lru_cache
from pathlib import Path

from rallebench.core.errors import RalleError
from rallebench.core.files import read_object
from rallebench.core.starter import STARTER_INDEXES, STARTER_PAGES
from rallebench.core.types import Example
from rallebench.corpora.store import PassageStore
from rallebench.workspace.entries import read_manifest
from rallebench.workspace.paths import WorkspaceFolder

MOST_PASSAGES = 1_000_000
"""Maximum number of passages whose page ids are read before a run; more take too long."""


def corpus_pages(
    workspace: WorkspaceFolder, retrievers: Collection[str], *, at_most: int | None = None
) -> frozenset[str] | None:
    """Return all page ids of the indexes behind the retrievers.

    Return None if one of these cannot be read here, or if there are more than ``at_most`` passages.
    """
    try:
        indexes = {index for name in retrievers for index in workspace.component_indexes(name)}
        folders = {name: path for name in indexes if (path := workspace.index_folder(name))}
        built = {name: read_manifest(path) for name, path in folders.items()}
        if not indexes or not indexes <= {*built, *STARTER_INDEXES}:
            return None
        if at_most is not None and sum(manifest.passages for manifest in built.values()) > at_most:
            return None
        pages = [stored_pages(path, built[name].fingerprint) for name, path in folders.items()]
    except RalleError:
        return None
    return frozenset[str]().union(*pages, starter_pages() if len(built) < len(indexes) else ())


def missing_pages(name: str, pages: Collection[str], examples: Iterable[Example]) -> str:
    """Return one sentence on the gold pages that are missing from an index; '' if none are missing or no gold pages are named."""
    gold = set[str]().union(*(example.gold.pages for example in examples))
    held = sum(page in pages for page in gold)
    if held == len(gold):
        return ""
    return (
        f"{held} of {len(gold)} gold pages are in this index ({name}); "
        "the others cannot be retrieved: choose an index of the corpus that these questions are about."
    )


def coverage(
    workspace: WorkspaceFolder,
    retrievers: Iterable[str],
    examples: Collection[Example],
    *,
    at_most: int | None = None,
) -> dict[str, str]:
    """Return retriever → ``missing_pages``, without retrievers whose pages cannot be read here."""
    if not any(example.gold.pages for example in examples):
        return {}
    sentences = {}
    for name in dict.fromkeys(retrievers):
        pages = corpus_pages(workspace, (name,), at_most=at_most)
        if pages is not None:
            sentences[name] = missing_pages(name, pages, examples)
    return sentences


@lru_cache(maxsize=16)
def stored_pages(folder: Path, fingerprint: str) -> frozenset[str]:
    """Return the page ids of an index or a corpus; ``fingerprint`` distinguishes it from a later one of the same name."""
    with closing(PassageStore(folder)) as store:
        return store.page_ids()


@lru_cache(maxsize=1)
def starter_pages() -> frozenset[str]:
    """Return the page ids of the starter corpus; its indexes are built at the first load."""
    return frozenset(map(str, read_object(STARTER_PAGES).values()))
