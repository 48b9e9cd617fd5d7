"""The store: passages by row and by id from mapped files, their position in their document, and constant memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from project import PROJECT

from rallebench.core.chunking import Chunking
from rallebench.core.errors import BackendError, BadFileError
from rallebench.core.events import complete
from rallebench.core.types import Passage
from rallebench.corpora import columns
from rallebench.corpora.chunking import chunk
from rallebench.corpora.store import Origin, PassageStore, link_store, write_store, writing_store


def passages(count: int) -> Iterator[Passage]:
    return (Passage(f"d{n}", f"text {n} 😀", f"title {n}", f"p{n}") for n in range(count))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[PassageStore]:
    write_store(tmp_path, passages(500))
    opened = PassageStore(tmp_path)
    yield opened
    opened.close()


def test_a_passage_is_found_by_its_row_and_by_its_id(store: PassageStore) -> None:
    assert list(store) == list(passages(500)) and store[17].doc_id == "d17"
    assert [store.find_row(f"d{n}") for n in range(500)] == list(range(500))
    assert store.find_row("d500") is store.find_row("") is None


def test_ids_that_share_a_hash_and_parts_that_are_sorted_apart_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed = np.array([5, 2**64 - 1, 5, 0, 2**63, 7, 2**64 - 1], dtype=np.uint64)
    np.save(tmp_path / "hashes.npy", hashed)
    for at_once in (100, 3, 1):
        monkeypatch.setattr(columns, "SORTED_AT_ONCE", at_once)
        columns.write_lookup(tmp_path / "hashes.npy", tmp_path / "ids.npy")
        lookup = np.load(tmp_path / "ids.npy")
        assert lookup[0].tolist() == sorted(hashed.tolist())
        assert lookup[1].tolist() == [3, 0, 2, 5, 4, 1, 6]


def test_a_chunk_knows_its_document_and_its_place_without_the_title(tmp_path: Path) -> None:
    cases = (
        (Chunking(2), [Passage("a#1", "one two three"), Passage("b", "four")]),
        (Chunking(2, prefix="Title: {title}\n"), [Passage("a", " one two"), Passage("b", "")]),
    )
    results = []
    for number, (chunking, documents) in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        complete(writing_store(folder, chunk(documents, chunking)))
        with closing(PassageStore(folder)) as store:
            rows = [(p.doc_id, p.text, store.origin(row)) for row, p in enumerate(store)]
        results.append(rows)
    assert results[0] == [
        ("a#1#0", "one two", Origin("a#1", 0, 7)),
        ("a#1#1", "three", Origin("a#1", 8, 13)),
        ("b", "four", Origin("b", 0, 4)),
    ]
    assert results[1] == [
        ("a#0", "Title: \none two", Origin("a", 1, 8)),
        ("b#0", "Title: \n", Origin("b", 0, 0)),
    ]


def test_the_fingerprint_follows_from_the_passages_alone(tmp_path: Path) -> None:
    whole = list(passages(5))
    _, sha = write_store(tmp_path, whole)
    for name in ("spans", "other"):
        (tmp_path / name).mkdir()
    assert complete(writing_store(tmp_path / "spans", ((p, (0, 3)) for p in whole))) == (5, sha)
    assert write_store(tmp_path / "other", [*whole[:-1], Passage("d4", "changed")])[1] != sha


@pytest.mark.parametrize("links", [True, False], ids=["linked", "copied where links are refused"])
def test_a_linked_store_is_the_same_and_outlives_the_first(
    links: bool, store: PassageStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    other = tmp_path / "other"
    other.mkdir()
    link_store(tmp_path, other)
    assert (other / "passages.jsonl").samefile(tmp_path / "passages.jsonl") == links
    (tmp_path / "passages.jsonl").unlink()
    with closing(PassageStore(other)) as linked:
        assert list(linked) == list(passages(500))


@pytest.mark.parametrize("name", ["passages.jsonl", "offsets.npy", "ids.npy"])
def test_a_store_whose_file_is_cut_short_is_refused(name: str, tmp_path: Path) -> None:
    write_store(tmp_path, passages(50))
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(BadFileError, match="again"):
        PassageStore(tmp_path)


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "passages.jsonl").symlink_to("/dev/full")
    with pytest.raises(BackendError, match="the disk is full"):
        write_store(tmp_path, passages(50_000))


GROWTH = """
import sys
from pathlib import Path
from rallebench.corpora.store import PassageStore, write_store
from rallebench.core.types import Passage

def anonymous():
    line = next(line for line in open("/proc/self/status") if line.startswith("RssAnon"))
    return int(line.split()[1]) * 1024

folder = Path(sys.argv[1])
write_store(folder, (Passage(str(n), "x") for n in range(1000)))
before = anonymous()
write_store(folder, (Passage(str(n), "some text of a passage " * 10, "title") for n in range(100_000)))
store = PassageStore(folder)
for n in range(0, 100_000, 7):
    assert store[store.find_row(str(n))].doc_id == str(n)
print(anonymous() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="needs /proc to see anonymous memory"
)
def test_writing_and_reading_a_hundred_thousand_passages_takes_no_memory(tmp_path: Path) -> None:
    command = [sys.executable, "-c", GROWTH, str(tmp_path)]
    ran = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    assert (tmp_path / "passages.jsonl").stat().st_size > 25 * 2**20
    assert int(ran.stdout) < 12 * 2**20


@pytest.mark.parametrize(
    "text", ['"\\/\b\f\n\r\t\x00\x1f\x7f', "\u2028\u2029 😀 שלום", "\ud83d half a pair", ""]
)
def test_a_line_of_the_store_is_what_json_makes_of_it(text: str, tmp_path: Path) -> None:
    write_store(tmp_path, [Passage("a" + text, text, text, text)])
    line = (
        json.dumps(
            {"id": "a" + text, "page": text, "title": text, "text": text}, ensure_ascii=False
        )
        + "\n"
    )
    assert (tmp_path / "passages.jsonl").read_bytes() == line.encode("utf-8", "surrogatepass")
    store = PassageStore(tmp_path)
    assert store[0] == Passage("a" + text, text, text, text)
    store.close()
