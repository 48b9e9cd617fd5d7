"""A finished index finds its own passages, whatever its kind holds open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from building import built
from in_memory import InMemory
from small_workspace import make_workspace

from rallebench.corpora.store import PassageStore
from rallebench.workspace.entries import read_manifest
from rallebench.workspace.indexes import checks


class Plain:
    """An index kind as its protocol asks for it: its retrievers have no ``close``."""

    def open(self, name: str, folder: Path, manifest: Any, encoder: Any) -> InMemory:
        return InMemory(tuple(PassageStore(folder)), name)


def test_a_retriever_without_anything_to_close_is_searched_for_known_passages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = make_workspace(tmp_path / "workspace")
    built(workspace / "indexes", "words", workspace / "corpus.tsv", "bm25")
    folder = workspace / "indexes" / "words"
    monkeypatch.setattr(checks, "INDEX_KINDS", {"bm25": Plain()})
    checks.search_known(folder, read_manifest(folder), None)
