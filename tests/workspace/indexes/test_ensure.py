"""Indexes by their recipe: found under any name, built once, and no text encoded twice by one encoder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from building import built
from small_workspace import make_workspace

from rallebench.core.chunking import Chunking
from rallebench.core.entries import Manifest
from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.events import complete
from rallebench.core.experiments import IndexRecipe, IndexResult
from rallebench.encoders.hashing import Hashing
from rallebench.workspace.entries import read_manifest
from rallebench.workspace.indexes.cache import cache_entries, delete_stored
from rallebench.workspace.indexes.ensure import Costs, ensure_index, expected_name, index_costs
from rallebench.workspace.indexes.recipes import index_recipe
from rallebench.workspace.paths import WorkspaceFolder


class Counting(Hashing):
    """The hashing encoder; it remembers which passages it encoded."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str], *, role: Any = "passage") -> Any:
        if role == "passage":
            self.texts += texts
        return super().encode(texts, role=role)


@pytest.fixture
def workspace(tmp_path: Path) -> WorkspaceFolder:
    return WorkspaceFolder(make_workspace(tmp_path / "workspace"))


@pytest.fixture
def encoder() -> Counting:
    return Counting()


def of(
    workspace: WorkspaceFolder, size: int | None, kind: str = "numpy-flat", **settings: Any
) -> IndexRecipe:
    chunking = Chunking(size) if size else None
    corpus = workspace.path / "corpus.tsv"
    return index_recipe(corpus, kind, encoder="hashing", chunking=chunking, settings=settings)


def prepared(workspace: WorkspaceFolder, wanted: IndexRecipe, encoder: Counting) -> IndexResult:
    return complete(ensure_index(workspace, wanted, lambda _: encoder))


def manifest(workspace: WorkspaceFolder, index: IndexResult) -> Manifest:
    return read_manifest(workspace.indexes / index.name)


def costs(workspace: WorkspaceFolder, *wanted: IndexRecipe) -> Costs:
    return complete(index_costs(workspace, wanted))


def test_a_plan_names_an_index_before_it_is_built(
    workspace: WorkspaceFolder, encoder: Counting
) -> None:
    first, second = of(workspace, 5), of(workspace, 5, "bm25")
    assert expected_name(workspace, first) == ("", False), "nobody knows its passages yet"
    index = prepared(workspace, first, encoder)
    assert expected_name(workspace, first) == (index.name, True)
    name, exists = expected_name(workspace, second)
    assert re.fullmatch(r"[\w-]+-bm25-[0-9a-f]{8}", name) and not exists
    assert prepared(workspace, second, encoder).name == name
    assert expected_name(workspace, second) == (name, True)


def test_an_index_is_built_once_and_found_again(
    workspace: WorkspaceFolder, encoder: Counting
) -> None:
    first = prepared(workspace, of(workspace, 5), encoder)
    again = prepared(workspace, of(workspace, 5), encoder)
    assert (first.built, again.built, again.name) == (True, False, first.name)
    assert manifest(workspace, first).chunking == {"size": 5, "overlap": 0, "unit": "words"}
    assert first.encoded == len(encoder.texts)
    assert first.name.startswith("corpus-5w-numpy-flat-")


def test_an_index_of_another_name_is_taken(workspace: WorkspaceFolder, encoder: Counting) -> None:
    corpus = workspace.path / "corpus.tsv"
    more: dict[str, Any] = {"encoder": Hashing(), "chunking": Chunking(5)}
    built(workspace.indexes, "mine", corpus, "numpy-flat", **more)
    assert prepared(workspace, of(workspace, 5), encoder).name == "mine" and not encoder.texts
    assert costs(workspace, of(workspace, 5)) == Costs(("mine",), 0, 0, {})


def test_a_text_is_encoded_once_wherever_it_is(
    workspace: WorkspaceFolder, encoder: Counting
) -> None:
    for size in (50, None, 7, 4):
        prepared(workspace, of(workspace, size), encoder)
    prepared(workspace, of(workspace, 7, "flat"), encoder)
    assert len(encoder.texts) == len(set(encoder.texts)), (
        "chunks of 50 words are the whole passages here"
    )


def test_remembered_vectors_are_those_encoded(
    workspace: WorkspaceFolder, encoder: Counting
) -> None:
    prepared(workspace, of(workspace, 7), encoder)
    before = len(encoder.texts)
    found = prepared(workspace, of(workspace, 8), encoder)
    assert 0 < len(encoder.texts) - before < manifest(workspace, found).passages, (
        "some chunks are the same, some are not"
    )
    elsewhere = workspace.path / "elsewhere" / "indexes"
    more: dict[str, Any] = {"encoder": Hashing(), "chunking": Chunking(8)}
    alone = built(elsewhere, "alone", workspace.path / "corpus.tsv", "numpy-flat", **more)
    assert alone.fingerprint == manifest(workspace, found).fingerprint
    folders = (workspace.indexes / found.name, elsewhere / "alone")
    mine, theirs = (np.load(folder / "vectors.npy") for folder in folders)
    assert np.array_equal(mine, theirs)


def test_the_plan_says_what_is_then_done(workspace: WorkspaceFolder, encoder: Counting) -> None:
    wanted = [
        of(workspace, 7),
        of(workspace, 8),
        of(workspace, 7, "flat"),
        index_recipe(workspace.path / "corpus.tsv", "bm25"),
    ]
    told = costs(workspace, *wanted)
    made = [prepared(workspace, one, encoder) for one in wanted]
    assert told.builds == sum(index.built for index in made)
    assert told.passages == sum(manifest(workspace, index).passages for index in made)
    assert told.encodings == {"hashing": (len(encoder.texts), len(encoder.texts))}
    again = costs(workspace, *wanted, of(workspace, 9))
    assert again.builds == 1 and again.encodings["hashing"][0] < again.encodings["hashing"][1]
    assert "1 index to build" in again.sentence and "4 there already" in again.sentence


def test_another_encoder_or_setting_is_another_one(
    workspace: WorkspaceFolder, encoder: Counting
) -> None:
    kinds = [("numpy-flat", {}), ("flat", {}), ("bm25", {"k1": 0.9}), ("bm25", {"k1": 1.2})]
    recipes = [of(workspace, 7, kind, **settings) for kind, settings in kinds]
    assert len({prepared(workspace, recipe, encoder).name for recipe in recipes}) == 4


def test_an_encoding_that_was_interrupted_goes_on_and_serves_others(
    workspace: WorkspaceFolder, encoder: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rallebench.workspace.indexes.vectors.SHARD", 2)
    going = ensure_index(workspace, of(workspace, 7), lambda _: encoder)
    for piece in going:
        if piece.message == "encoding passages" and len(encoder.texts) >= 6:
            break
    going.close()
    assert not list(workspace.indexes.glob("corpus-*")), "half an index is none"
    prepared(workspace, of(workspace, 7, "flat"), encoder)
    prepared(workspace, of(workspace, 8), encoder)
    twice = len(encoder.texts) - len(set(encoder.texts))
    assert twice <= 2, "at most the shard that was being encoded"


def test_a_text_that_comes_again_far_behind_is_not_encoded_again(
    workspace: WorkspaceFolder, encoder: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rallebench.workspace.indexes.vectors.SHARD", 2)
    rows = [
        f"{n}\tThe {('first', 'second', 'third', 'first', 'second', 'first')[n]} text.\t\n"
        for n in range(6)
    ]
    (workspace.path / "corpus.tsv").write_text("id\ttext\ttitle\n" + "".join(rows))
    found = prepared(workspace, of(workspace, None), encoder)
    assert (
        len(encoder.texts) == len(set(encoder.texts)) == found.encoded == 3
        and manifest(workspace, found).passages == 6
    )


def test_damaged_vectors_are_encoded_afresh(workspace: WorkspaceFolder, encoder: Counting) -> None:
    prepared(workspace, of(workspace, 7), encoder)
    (vectors,) = workspace.vectors.glob("*/vectors.npy")
    kept = bytearray(vectors.read_bytes())
    kept[200] ^= 255
    vectors.unlink()
    vectors.write_bytes(kept)
    before = len(encoder.texts)
    found = prepared(workspace, of(workspace, 8), encoder)
    assert len(encoder.texts) - before == manifest(workspace, found).passages


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"kind": "nope"}, "no index kind 'nope'"),
        ({"corpus": Path("no.tsv")}, "does not exist"),
        ({"encoder": "nobody"}, "nobody"),
        ({"settings": {"nope": 1}}, "nope"),
    ],
)
def test_what_cannot_be_an_index_is_refused_before_anything_is_read(
    workspace: WorkspaceFolder, asked: dict[str, Any], sentence: str
) -> None:
    full = {"corpus": workspace.path / "corpus.tsv", "kind": "flat", "encoder": "hashing", **asked}
    with pytest.raises(UsageError, match=sentence):
        index_recipe(full.pop("corpus"), full.pop("kind"), **full)
    assert not (workspace.path / "cache").exists()


# stored results of builds


def test_what_is_kept_is_listed_and_can_be_deleted(
    workspace: WorkspaceFolder, encoder: Counting
) -> None:
    assert cache_entries(workspace) == []
    made = prepared(workspace, of(workspace, 5), encoder)
    texts, passages = sorted(cache_entries(workspace), key=lambda one: one.kind, reverse=True)
    assert (passages.kind, texts.kind, passages.chunking) == ("passages", "texts", Chunking(5))
    for row in (passages, texts):
        assert (row.corpus, row.passages) == ("corpus.tsv", manifest(workspace, made).passages)
    assert passages.bytes > 0 and texts.bytes > 0
    for one in (passages, texts):
        assert f"Deleted {one.key}" in delete_stored(workspace, one.key)
    assert (
        cache_entries(workspace) == []
        and prepared(workspace, of(workspace, 5), encoder).name == made.name
    )


def test_nothing_is_deleted_while_one_is_prepared(
    workspace: WorkspaceFolder, encoder: Counting
) -> None:
    prepared(workspace, of(workspace, 5), encoder)
    (first, *_) = cache_entries(workspace)
    going = ensure_index(workspace, of(workspace, 7), lambda _: encoder)
    next(going)
    with pytest.raises(UsageError, match="in use: an index is being prepared"):
        delete_stored(workspace, first.key)
    going.close()
    assert "Deleted" in delete_stored(workspace, first.key)
    assert not list((workspace.path / "cache").glob(".prepared.*.use")), "no marks are left"


def test_the_mark_of_a_process_that_died_is_taken_away(
    workspace: WorkspaceFolder, encoder: Counting
) -> None:
    prepared(workspace, of(workspace, 5), encoder)
    (first, *_) = cache_entries(workspace)
    mark = workspace.path / "cache" / ".prepared.99999-1.use"
    mark.touch()  # a mark without a holder
    assert "Deleted" in delete_stored(workspace, first.key)
    assert not mark.exists()


@pytest.mark.parametrize("key", ["", "passages/none", "../llms.json", "vectors"])
def test_only_what_is_kept_there_can_be_deleted(workspace: WorkspaceFolder, key: str) -> None:
    with pytest.raises(NotFoundError, match="There is nothing"):
        delete_stored(workspace, key)
