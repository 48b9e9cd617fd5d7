"""A disk without room: one sentence that names what was asked for, and what is needed and free; nothing is left."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from building import built
from full_disk import no_file_grows_beyond

from rallebench.core.errors import BackendError, Hint
from rallebench.core.files import disk_error, is_full, room, write_json
from rallebench.corpora.imported import import_corpus
from rallebench.encoders.hashing import Hashing

COUNT = 400


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.tsv"
    path.write_text("".join(f"{i}\tbrook{i} runs by mill{i}\tVillage {i}\n" for i in range(COUNT)))
    return path


VECTORS = 128 + 4 * Hashing.dim * COUNT
"""Bytes of the cached vectors: with a little more room than these, what an index adds to them does not fit."""


@pytest.mark.parametrize(
    ("kind", "limit"), [("bm25", 3000), ("hnsw", VECTORS + 500), ("hnswlib", VECTORS + 500)]
)
def test_an_index_that_does_not_fit_is_named_and_nothing_is_left(
    kind: str, limit: int, corpus: Path, tmp_path: Path
) -> None:
    with pytest.raises(BackendError) as refusal, no_file_grows_beyond(limit):
        built(tmp_path / "indexes", "mine", corpus, kind, encoder=Hashing())
    said = str(refusal.value)
    assert said.startswith(
        f"Could not write the index {tmp_path / 'indexes' / 'mine'}: the disk is full. It takes "
    )
    assert refusal.value.hint == Hint("free-space") and ".part" not in said and "again" not in said
    assert list((tmp_path / "indexes").iterdir()) == []


def test_a_small_file_that_does_not_fit_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(BackendError) as refusal, no_file_grows_beyond(3):
        write_json(tmp_path / "llms.json", {"echo": {}})
    assert str(refusal.value).startswith(f"Could not write {tmp_path / 'llms.json'}: ")
    assert list(tmp_path.iterdir()) == []


def test_vectors_that_do_not_fit_are_said_to_be_kept_and_the_index_is_not_blamed(
    corpus: Path, tmp_path: Path
) -> None:
    with pytest.raises(BackendError) as refusal, no_file_grows_beyond(VECTORS - 5000):
        built(tmp_path / "indexes", "mine", corpus, "flat", encoder=Hashing())
    assert "Could not write the vectors in" in str(
        refusal.value
    ) and "what is encoded is kept. It takes" in str(refusal.value)


def test_a_corpus_that_does_not_fit_is_named_and_nothing_is_left(
    corpus: Path, tmp_path: Path
) -> None:
    with pytest.raises(BackendError) as refusal, no_file_grows_beyond(5000):
        list(import_corpus(tmp_path / "corpora", "mine", corpus))
    said = str(refusal.value)
    assert (
        f"Could not write the corpus {tmp_path / 'corpora' / 'mine'}: the disk is full." in said
        and ".part" not in said
    )
    assert list((tmp_path / "corpora").iterdir()) == []


def test_what_is_needed_stands_beside_what_is_free(tmp_path: Path) -> None:
    assert room(tmp_path, 10**18).startswith("It takes at least 1000000000.0 GB, and ")
    assert room(tmp_path / "not" / "there").startswith("It takes more than the ")


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        OSError("84516 requested and 29664 written"),
        RuntimeError("Error in write: 30959 != 82496 (No space left on device)"),
        BackendError("Could not write x.bin (10 of 20 bytes are there)"),
    ],
    ids=["system", "quota", "numpy", "faiss", "hnswlib"],
)
def test_a_full_disk_is_recognised_whoever_says_it(error: Exception, tmp_path: Path) -> None:
    assert is_full(error)
    assert "the disk is full" in str(disk_error(tmp_path, error, "the index"))


def test_any_other_reason_is_told_as_it_is_without_the_hidden_folder(tmp_path: Path) -> None:
    error = OSError(errno.EROFS, "Read-only file system")
    said = str(disk_error(tmp_path / "mine", error, "the index"))
    assert said == (
        f"Could not write the index {tmp_path / 'mine'}: Read-only file system. "
        "Nothing was left half-written."
    )
    assert "/w/indexes/mine/x" in str(
        disk_error(tmp_path, ValueError("odd: /w/indexes/.mine.0f4b66d01c2e.part/x"), "it")
    )
