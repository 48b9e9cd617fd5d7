"""A full disk gives one sentence that names the file, the needed and the free space; nothing is left behind."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from building import built
from full_disk import no_file_grows_beyond

from rallebench.core import files
from rallebench.core.errors import BackendError, Hint
from rallebench.core.files import disk_error, is_full, no_room, write_json
from rallebench.core.memory import size
from rallebench.corpora.imported import import_corpus
from rallebench.encoders.hashing import Hashing

COUNT = 400


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.tsv"
    path.write_text("".join(f"{i}\tbrook{i} runs by mill{i}\tVillage {i}\n" for i in range(COUNT)))
    return path


VECTORS = 128 + 4 * Hashing.dim * COUNT
"""Bytes of the cached vectors. An index does not fit into only a little more room than this."""


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
        f"Could not write the index {tmp_path / 'indexes' / 'mine'}: no file may grow beyond {limit:,} bytes in this session "
        "(ulimit -f); raise that limit. Nothing was left"
    )
    assert refusal.value.hint is None and ".part" not in said and "again" not in said
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
    said = str(refusal.value)
    assert "Could not write the vectors in" in said and "no file may grow beyond" in said
    assert said.endswith("encoded vectors are kept.")


def test_a_full_disk_is_told_what_the_passages_of_an_index_take_at_least(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus.write_text("".join(f"{i}\t{'A brook runs by. ' * 40}\tVillage\n" for i in range(COUNT)))
    written = built(tmp_path / "indexes", "whole", corpus, "bm25").files
    passages = sum(size for name, size in written.items() if not name.startswith("bm25"))

    def full(*_: object) -> None:
        raise FULL

    monkeypatch.setattr("rallebench.workspace.indexes.build.search_known", full)
    monkeypatch.setattr(files, "free_bytes", lambda place: 0)
    with pytest.raises(BackendError, match=f"takes at least {size(passages)}, and 0 MB are free"):
        built(tmp_path / "indexes", "mine", corpus, "bm25")


def test_a_corpus_that_does_not_fit_leaves_nothing_there(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(BackendError) as refusal, no_file_grows_beyond(5000):
        list(import_corpus(tmp_path / "corpora", "mine", corpus))
    said = str(refusal.value)
    assert (
        f"Could not write the corpus {tmp_path / 'corpora' / 'mine'}: no file may grow" in said
        and ".part" not in said
    )
    assert list((tmp_path / "corpora").iterdir()) == []


FULL = OSError(errno.ENOSPC, "No space left on device")


def test_what_is_needed_stands_beside_what_is_free(tmp_path: Path) -> None:
    at_least = "the disk is full. It takes at least 1000000000.0 GB, and "
    assert no_room(tmp_path, FULL, 10**18).startswith(at_least)
    more_than = "the disk is full. It takes more than the "
    assert no_room(tmp_path / "not" / "there", FULL).startswith(more_than)
    assert disk_error(tmp_path, FULL).hint == Hint("free-space")


TOO_LARGE = OSError(errno.EFBIG, "File too large")
CAUSES: dict[str, tuple[Exception, str]] = {
    "a quota": (OSError(errno.EDQUOT, "Disk quota exceeded"), "your quota on this disk is used up"),
    "a quota, in a library's words": (
        RuntimeError("I/O error: Disk quota exceeded (os error 122)"),
        "your quota on this disk is used up",
    ),
    "a large file": (TOO_LARGE, "no file may grow beyond a size that its file system sets; use a"),
    "a large file, in a library's words": (
        RuntimeError("I/O error: File too large (os error 27)"),
        "no file may grow beyond a size that its file system sets; use a",
    ),
    "less was written": (
        OSError("84516 requested and 29664 written"),
        "the disk is full. It takes",
    ),
}
"""The failed write, and the beginning of its reason."""


@pytest.mark.parametrize("what", CAUSES)
def test_a_quota_and_the_limit_of_a_file_are_no_full_disk(what: str, tmp_path: Path) -> None:
    error, words = CAUSES[what]
    assert is_full(error) and no_room(tmp_path, error).startswith(words)
    failed = disk_error(tmp_path, error, "the run")
    assert str(failed).startswith(f"Could not write the run {tmp_path}: {words}")
    assert (failed.hint is None) == words.startswith("no file")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            TOO_LARGE,
            "no file may grow beyond 4,000 bytes in this session (ulimit -f); raise that limit",
        ),
        (CAUSES["less was written"][0], "no file may grow beyond 4,000 bytes in this session"),
        (CAUSES["a quota"][0], "your quota"),
        (FULL, "the disk is full"),
    ],
)
def test_the_sessions_limit_is_a_likely_cause(error: Exception, words: str, tmp_path: Path) -> None:
    with no_file_grows_beyond(4000):
        assert no_room(tmp_path, error).startswith(words)


def test_a_disk_may_lack_room_for_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = SimpleNamespace(
        f_files=1000, f_favail=0, f_frsize=4096, f_bavail=9, f_bfree=9, f_blocks=9
    )
    monkeypatch.setattr(os, "statvfs", lambda place: counted)
    assert "as many files as it can" in no_room(tmp_path, FULL)
    counted.f_files = 0  # a file system that does not count files
    assert no_room(tmp_path, FULL).startswith("the disk is full")


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
def test_a_full_disk_is_recognised_whoever_says_it(error: Exception) -> None:
    assert is_full(error)


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
