"""A finished index finds its own passages, for every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from building import built
from in_memory import InMemory
from small_workspace import make_workspace

from rallebench.core.errors import BackendError, MismatchError
from rallebench.corpora.store import PassageStore
from rallebench.encoders.hashing import Hashing
from rallebench.retrievers import INDEX_KINDS
from rallebench.retrievers.composites import about_index
from rallebench.retrievers.dense import Dense
from rallebench.vector_indexes import copies
from rallebench.workspace.entries import read_manifest
from rallebench.workspace.indexes import checks


class Plain:
    """An index kind with the minimum of the protocol: its retrievers have no ``close``."""

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


def crowd(folder: Path, count: int = 300) -> Path:
    """A corpus of copies of one passage and a single other one."""
    lines = [f"c{n}\tThe ferry leaves at noon.\tFerry\n" for n in range(count)]
    lines.insert(count // 3, "other\tA glacier carves its valley slowly.\tGlacier\n")
    (folder / "crowd.tsv").write_text("".join(lines), encoding="utf-8")
    return folder / "crowd.tsv"


@pytest.mark.parametrize("kind", ["hnsw", "hnswlib", "flat"])
def test_the_passage_beside_hundreds_of_copies_is_found(kind: str, tmp_path: Path) -> None:
    manifest = built(tmp_path / "indexes", "x", crowd(tmp_path), kind, encoder=Hashing())
    index = INDEX_KINDS[kind].open("x", tmp_path / "indexes" / "x", manifest, Hashing())
    hits = index.search(["glacier valley"], 50)[0]
    assert hits[0].passage.doc_id == "other" and len({h.passage.doc_id for h in hits}) == 50
    assert manifest.warnings == []
    assert manifest.parameters.get("equal_vectors", 299) == 299
    index.close()


def test_a_graph_that_does_not_lead_to_a_passage_is_marked_by_its_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = crowd(tmp_path)
    with monkeypatch.context() as patched:  # copies in the graph, as another program builds it
        patched.setattr(copies, "_alike", lambda keys: iter(()))
        manifest = built(tmp_path / "indexes", "x", corpus, "hnsw", encoder=Hashing())
    assert (
        "did not find 1 of 2 passages by their own text (for example 'other')"
        in manifest.warnings[0]
    )
    assert manifest.warnings[0] in about_index(manifest)
    assert read_manifest(tmp_path / "indexes" / "x").warnings == manifest.warnings


class Rotated:
    """An index kind that gives neighbours of each passage in the corpus, never the passage itself."""

    exact = False

    def __init__(self, vectors: np.ndarray[Any, Any]) -> None:
        self._vectors = vectors

    def open(self, name: str, folder: Path, manifest: Any, encoder: Any) -> Dense:
        return Dense(name, PassageStore(folder), self, encoder, "x")

    def search(self, vectors: Any, k: int, **_: Any) -> Any:
        own = (vectors @ self._vectors.T).argmax(axis=1)
        rows = (own[:, None] + np.arange(1, k + 1)) % len(self._vectors)
        return np.einsum("qkd,qd->qk", self._vectors[rows], vectors), rows

    def close(self) -> None:
        pass


@pytest.mark.parametrize(("repeats", "found"), [(60, True), (1, False)])
def test_only_passages_as_near_as_the_searched_one_may_stand_in_its_place(
    repeats: int, found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"{'ferry ' * repeats}word{n}" for n in range(60)]
    lines = [f"p{n}\t{text}\tFerry\n" for n, text in enumerate(texts)]
    (tmp_path / "near.tsv").write_text("".join(lines), encoding="utf-8")
    manifest = built(tmp_path / "indexes", "x", tmp_path / "near.tsv", "flat", encoder=Hashing())
    vectors = Hashing().encode([f"Ferry, {text}" for text in texts])
    monkeypatch.setattr(checks, "INDEX_KINDS", {"flat": Rotated(vectors)})
    folder = tmp_path / "indexes" / "x"
    if found:
        assert checks.search_known(folder, manifest, Hashing()) == []
    else:
        with pytest.raises(BackendError, match="did not find 20 of 20 passages"):
            checks.search_known(folder, manifest, Hashing())


def test_vectors_of_another_encoder_are_refused(tmp_path: Path) -> None:
    lines = [f"p{n}\tword{n} and word{n + 1}\ttitle{n}\n" for n in range(40)]
    (tmp_path / "c.tsv").write_text("".join(lines), encoding="utf-8")
    wrong = np.random.default_rng(0).normal(size=(40, 256)).astype(np.float32)
    np.save(tmp_path / "wrong.npy", wrong / np.linalg.norm(wrong, axis=1, keepdims=True))
    with pytest.raises(MismatchError, match="made with another encoder"):
        built(
            tmp_path / "indexes",
            "x",
            tmp_path / "c.tsv",
            "flat",
            encoder=Hashing(),
            source=tmp_path / "wrong.npy",
        )
