"""Passages by the words of their titles: an index kind that needs no encoder."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rallebench.core.entries import Manifest
from rallebench.core.settings import Setting
from rallebench.core.text import tokenize
from rallebench.core.types import Hit
from rallebench.corpora.store import PassageStore
from rallebench.retrievers import INDEX_KINDS, Passages

FILE = "titles.json"
FORM = {"longest": Setting(int, 50, 1, 99, about="words of a title that count")}


class Titles:
    """An open index."""

    titled = True
    prefix_stable = True

    def __init__(self, name: str, folder: Path, fingerprint: str) -> None:
        self.name, self.fingerprint = name, fingerprint
        self._passages = PassageStore(folder)
        self._titles = [set(words) for words in json.loads((folder / FILE).read_text("utf-8"))]

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        return [self._search(set(tokenize(query)), k) for query in queries]

    def _search(self, query: set[str], k: int) -> tuple[Hit, ...]:
        scores = [len(query & title) for title in self._titles]
        rows = sorted(range(len(scores)), key=lambda row: -scores[row])[:k]
        return tuple(Hit(self._passages[row], float(scores[row])) for row in rows if scores[row])

    def page_ids(self) -> frozenset[str]:
        return frozenset(self._passages.page_ids())

    def close(self) -> None:
        self._passages.close()


class TitlesKind:
    """Words of titles."""

    def build(
        self, folder: Path, passages: Passages, vectors: Any, settings: Mapping[str, Any]
    ) -> Generator[tuple[int, int], None, dict[str, Any]]:
        titles = []
        for passage in passages:
            titles.append(tokenize(passage.title)[: settings["longest"]])
            yield len(titles), len(passages)
        (folder / FILE).write_text(json.dumps(titles), "utf-8")
        return dict(settings)

    def open(self, name: str, folder: Path, manifest: Manifest, encoder: Any) -> Titles:
        return Titles(name, folder, manifest.fingerprint)


INDEX_KINDS.register(
    "titles", form=FORM, needs_encoder=False, packages=("numpy",), memory_factors=(3.0, 2.0)
)(TitlesKind())
