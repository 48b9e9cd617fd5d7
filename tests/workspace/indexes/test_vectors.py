"""Passages are encoded once, shard by shard, with the same vectors after any interruption."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from building import built
from project import PROJECT
from small_workspace import environment

from rallebench.core import locks
from rallebench.core.entries import Manifest
from rallebench.core.errors import BackendError, StoppedError, UsageError
from rallebench.core.events import Progress, complete
from rallebench.core.types import Passage
from rallebench.corpora.store import PassageStore
from rallebench.encoders.hashing import Hashing
from rallebench.encoders.minilm import MiniLM
from rallebench.encoders.numeric_types import choose_type, measured_choice, top_overlap
from rallebench.workspace.indexes import rates
from rallebench.workspace.indexes import vectors as cached
from rallebench.workspace.indexes.build import build_index
from rallebench.workspace.indexes.encoding import EncodedPassages, encode_passages
from rallebench.workspace.indexes.rates import stored_rate
from rallebench.workspace.indexes.recipes import starter_recipe
from rallebench.workspace.indexes.vectors import delete_vectors, kept_vectors

COUNT, SHARD = 22, 4
PASSAGES = [
    Passage(f"d{row}", f"moon {row} " + "of a giant planet " * (row % 5), f"Title {row % 3}")
    for row in range(COUNT)
]
SHA = "0" * 64


class Counting(Hashing):
    """Records every text to encode; ``stop_at``: the number of the call that fails."""

    def __init__(self, stop_at: int = 0) -> None:
        self.seen: list[str] = []
        self.calls, self.stop_at = 0, stop_at

    def encode(self, texts: Sequence[str], *, role: Any = "passage") -> Any:
        self.calls += 1
        if self.calls == self.stop_at:
            raise StoppedError("stopped here")
        self.seen += texts
        return super().encode(texts, role=role)


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached, "SHARD", SHARD)
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.02)


def encode(
    cache: Path, encoder: Any = None, passages: Sequence[Passage] = PASSAGES
) -> tuple[list[Progress], EncodedPassages]:
    """Run to the end."""
    events: list[Progress] = []
    work = encode_passages(cache, passages, SHA, encoder or Hashing())
    return events, complete(work, events.append)


@pytest.fixture
def expected() -> Any:
    return Hashing().encode([f"{p.title}, {p.text}" for p in PASSAGES])


def folder_of(cache: Path) -> Path:
    (folder,) = (path.parent for path in cache.glob("*/progress.jsonl"))
    return folder


def lines(cache: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in (folder_of(cache) / "progress.jsonl").read_text().splitlines()
    ]


# ── the vectors ──────────────────────────────────────────────────────────────


def test_the_vectors_are_those_of_title_and_text_in_order(tmp_path: Path, expected: Any) -> None:
    _, stored = encode(tmp_path)
    assert stored.vectors.dtype == np.float32 and not stored.vectors.flags.writeable
    assert isinstance(stored.vectors, np.memmap)
    np.testing.assert_array_equal(stored.vectors, expected)
    again = Counting()
    _, stored = encode(tmp_path, again)
    assert again.seen == []
    np.testing.assert_array_equal(stored.vectors, expected)
    assert encode(tmp_path, passages=[])[1].vectors.shape == (0, 256)


def test_a_build_keeps_the_speed_of_its_encoder_where_enough_passages_tell_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode(tmp_path)
    assert stored_rate(tmp_path, "hashing") is None
    monkeypatch.setattr(rates, "LEAST_PASSAGES", COUNT)
    encode(tmp_path / "again")
    assert (stored_rate(tmp_path / "again", "hashing") or 0) > 0
    (tmp_path / "again" / "rates.json").write_text('{"hashing": "fast"}', "utf-8")
    assert stored_rate(tmp_path / "again", "hashing") is None


def test_progress_counts_every_passage_and_knows_the_rate_and_the_time_left(tmp_path: Path) -> None:
    told, _ = encode(tmp_path)
    encoding = [piece for piece in told if piece.message == "encoding passages"]
    assert [piece.done for piece in encoding][-1] == COUNT
    assert all(piece.total == COUNT for piece in encoding)
    assert all(piece.rate > 0 and piece.seconds_left is not None for piece in encoding[:-1])
    assert Progress("", 20, 100, rate=40.0).seconds_left == 2.0
    assert Progress("", 20, 100).seconds_left is None


def test_indexes_of_all_kinds_share_the_vectors_of_one_corpus(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.tsv"
    corpus.write_text("".join(f"{p.doc_id}\t{p.text}\t{p.title}\n" for p in PASSAGES))
    encoder = Counting()
    for kind in ("flat", "numpy-flat"):
        made = built(tmp_path / "indexes", kind, corpus, kind, encoder=encoder)
        assert made.passage_dtype == "float32"
    passages = [text for text in encoder.seen if text.startswith("Title")]
    assert len(kept_vectors(tmp_path / "cache" / "vectors")) == 1
    assert len(passages) == COUNT


def test_a_text_that_repeats_is_encoded_once_and_has_one_vector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached, "SHARD", 100)
    encoder = Counting()
    events, encoded = encode(tmp_path, encoder, PASSAGES[:4] * 3)
    assert sorted(encoder.seen) == sorted(f"{p.title}, {p.text}" for p in PASSAGES[:4])
    assert (np.reshape(encoded.vectors, (3, 4, -1)) == encoded.vectors[:4]).all()
    assert max(event.done for event in events) == 12


# ── interruptions ────────────────────────────────────────────────────────────


@pytest.mark.parametrize("stop_at", range(1, -(-COUNT // SHARD) + 1))
def test_an_interrupted_encoding_goes_on(tmp_path: Path, stop_at: int, expected: Any) -> None:
    first, second = Counting(stop_at), Counting()
    with pytest.raises(StoppedError):
        encode(tmp_path, first)
    _, stored = encode(tmp_path, second)
    assert len(first.seen) == (stop_at - 1) * SHARD
    assert len(first.seen) + len(second.seen) <= COUNT + SHARD
    np.testing.assert_array_equal(stored.vectors, expected)


KILLED = """
import os, signal, sys
from pathlib import Path
from rallebench.workspace.indexes import encoding, vectors
sys.path[:0] = sys.argv[2:]
from test_vectors import PASSAGES, SHA, SHARD, Counting
vectors.SHARD = SHARD

class Killed(Counting):
    def encode(self, texts, *, role="passage"):
        if len(self.seen) >= len(PASSAGES) // 2:
            print(len(self.seen), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode(texts, role=role)

for _ in encoding.encode_passages(Path(sys.argv[1]), PASSAGES, SHA, Killed()):
    pass
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no SIGKILL on this system")
def test_a_process_that_is_killed_loses_at_most_one_shard(tmp_path: Path, expected: Any) -> None:
    victim = subprocess.run(
        [
            sys.executable,
            "-c",
            KILLED,
            str(tmp_path),
            str(Path(__file__).parent),
            str(PROJECT / "tests" / "support"),
        ],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert victim.returncode == -9, victim.stderr
    encoded_before, again = int(victim.stdout), Counting()
    told, stored = encode(tmp_path, again)
    assert COUNT // 2 <= encoded_before < COUNT
    assert encoded_before + len(again.seen) <= COUNT + SHARD
    assert not any(piece.message.startswith("waiting") for piece in told)
    np.testing.assert_array_equal(stored.vectors, expected)


def test_an_index_whose_build_was_interrupted_goes_on_when_built_again(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.tsv"
    corpus.write_text("".join(f"{p.doc_id}\t{p.text}\t{p.title}\n" for p in PASSAGES))
    with pytest.raises(StoppedError):
        built(tmp_path / "indexes", "x", corpus, "flat", encoder=Counting(stop_at=4))
    assert list((tmp_path / "indexes").iterdir()) == []
    again = Counting()
    built(tmp_path / "indexes", "x", corpus, "flat", encoder=again)
    assert len(again.seen) == COUNT - 3 * SHARD


# ── damage ───────────────────────────────────────────────────────────────────


def flip(path: Path, offset: int) -> None:
    with open(path, "r+b") as handle:
        handle.seek(offset, os.SEEK_END if offset < 0 else os.SEEK_SET)
        byte = handle.read(1)
        handle.seek(-1, os.SEEK_CUR)
        handle.write(bytes([byte[0] ^ 1]))


def cut(path: Path, size: int) -> None:
    os.truncate(path, path.stat().st_size - size)


@pytest.mark.parametrize(
    ("damage", "shards"),
    [
        (lambda folder: flip(folder / "vectors.npy", -1), 1),
        (lambda folder: flip(folder / "vectors.npy", 10), 0),
        (lambda folder: cut(folder / "vectors.npy", 256 * 4 * 5), 2),
        (lambda folder: cut(folder / "progress.jsonl", 7), 1),
        (lambda folder: (folder / "progress.jsonl").write_text("nonsense\n"), 6),
        (lambda folder: (folder / "progress.jsonl").write_text(""), 6),
        (lambda folder: (folder / "vectors.npy").unlink(), 6),
    ],
    ids=[
        "a bit in the last vector",
        "the head of the file",
        "five vectors cut off",
        "a torn line",
        "no progress file of ours",
        "an empty one",
        "no file",
    ],
)
def test_a_torn_or_altered_shard_is_noticed_and_encoded_again(
    tmp_path: Path, damage: Any, shards: int, expected: Any
) -> None:
    encode(tmp_path)
    damage(folder_of(tmp_path))
    again = Counting()
    _, stored = encode(tmp_path, again)
    assert -(-len(again.seen) // SHARD) == shards
    np.testing.assert_array_equal(stored.vectors, expected)
    third = Counting()
    encode(tmp_path, third)
    assert third.seen == []


def test_mending_a_shard_does_not_touch_the_file_that_an_index_shares(tmp_path: Path) -> None:
    encode(tmp_path)
    held = tmp_path / "index.npy"
    os.link(folder_of(tmp_path) / "vectors.npy", held)
    flip(held, -1)
    before = held.read_bytes()
    encode(tmp_path)
    assert held.read_bytes() == before
    assert (folder_of(tmp_path) / "vectors.npy").read_bytes() != before


class Broken(Hashing):
    """Gives NaN for some texts."""

    def __init__(self, value: float, bad: str) -> None:
        self.value, self.bad = value, bad

    def encode(self, texts: Sequence[str], *, role: Any = "passage") -> Any:
        vectors = super().encode(texts, role=role)
        for row, text in enumerate(texts):
            if self.bad in text:
                vectors[row, 3] = self.value
        return vectors


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_model_that_gives_no_numbers_names_a_passage(tmp_path: Path, value: float) -> None:
    with pytest.raises(
        BackendError,
        match=r"'hashing' gave a vector .* not numbers for the passage 'd5': .*float32",
    ):
        encode(tmp_path, Broken(value, "moon 5 "))
    assert [line["first"] for line in lines(tmp_path)[1:]] == [0]


def test_no_room_for_the_vectors_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    encoder = Counting()
    with pytest.raises(
        BackendError, match=r"the disk is full.*; free space, or use another workspace"
    ):
        encode(tmp_path, encoder)
    assert encoder.seen == []
    assert not list(tmp_path.glob("*/*"))


# ── two at once ──────────────────────────────────────────────────────────────


def test_whoever_asks_meanwhile_gets_the_same_vectors(tmp_path: Path, expected: Any) -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Counting):
        def encode(self, texts: Sequence[str], *, role: Any = "passage") -> Any:
            if self.calls == 2:
                begun.set()
                go_on.wait(20)
            return super().encode(texts, role=role)

    slow, other = Slow(), Counting()
    thread = threading.Thread(target=encode, args=(tmp_path, slow))
    thread.start()
    assert begun.wait(20)
    with pytest.raises(UsageError, match="are being written; stop that build first"):
        delete_vectors(tmp_path, folder_of(tmp_path).name)
    work = encode_passages(tmp_path, PASSAGES, SHA, other)
    waiting = next(work)
    assert waiting.message == "waiting for another build that encodes the same passages"
    assert (waiting.done, waiting.total) == (2 * SHARD, COUNT)
    go_on.set()
    thread.join(20)
    for _ in work:
        pass
    assert other.seen == [] and len(slow.seen) == COUNT
    np.testing.assert_array_equal(encode(tmp_path)[1].vectors, expected)


# ── the cache ────────────────────────────────────────────────────────────────


def test_kept_vectors_are_listed_with_their_size_and_deleted_by_their_key(tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        encode(tmp_path, Counting(stop_at=3))
    (kept,) = kept_vectors(tmp_path)
    assert (kept.encoder, kept.passages, kept.passages_done, kept.complete) == (
        "hashing",
        COUNT,
        2 * SHARD,
        False,
    )
    encode(tmp_path)
    (kept,) = kept_vectors(tmp_path)
    assert (kept.passages_done, kept.complete, kept.dim, kept.dtype) == (
        COUNT,
        True,
        256,
        "float32",
    )
    assert kept.bytes > COUNT * 256 * 4
    assert delete_vectors(tmp_path, kept.key) == kept.bytes
    assert kept_vectors(tmp_path) == []
    for wrong in (kept.key, "", "..", "../x"):
        with pytest.raises(UsageError, match="There are no vectors"):
            delete_vectors(tmp_path, wrong)


def test_each_corpus_and_encoder_has_its_own_and_damage_is_listed_with_its_mend(
    tmp_path: Path,
) -> None:
    class Other(Hashing):
        fingerprint = "other"

    encode(tmp_path)
    shutil.copytree(folder_of(tmp_path), tmp_path / "copy")
    (tmp_path / "copy" / "progress.jsonl").write_text("nonsense\n")
    encode(tmp_path, Other())
    list(encode_passages(tmp_path, PASSAGES, "1" * 64, Hashing()))
    good = [cached for cached in kept_vectors(tmp_path) if not cached.problem]
    (broken,) = [cached for cached in kept_vectors(tmp_path) if cached.problem]
    assert len(good) == 3 and broken.key == "copy" and not broken.complete
    assert "delete these vectors" in broken.problem


@pytest.mark.parametrize("change", [{"dim": None}, {"measured": None}, {"passages": "6"}])
def test_a_damaged_header_of_vectors_is_encoded_anew(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    encode(tmp_path)
    path = folder_of(tmp_path) / "progress.jsonl"
    header, *rest = path.read_text().splitlines()
    whole = json.dumps(
        {key: value for key, value in json.loads(header).items() if key not in change}
    )
    for damaged_header in (whole, json.dumps({**json.loads(header), **change}), "[" * 9999):
        path.write_text("\n".join([damaged_header, *rest]) + "\n")
        assert encode(tmp_path) is not None
        assert json.loads(path.read_text().splitlines()[0]) == json.loads(header)


# ── numeric types ────────────────────────────────────────────────────────────


class Typed(Hashing):
    """An encoder with a faster (fewer seconds per text) and noisier "bfloat16", as the test sets it."""

    fast_dtypes = ("bfloat16",)

    def __init__(self, noise: float, seconds: dict[str, float], dtype: str = "auto") -> None:
        self.noise, self.seconds, self.dtype = noise, seconds, dtype
        self.used: list[str] = []

    def bulk(self, dtype: str) -> Any:
        import time

        def batches(texts: Sequence[str]) -> Iterator[Any]:
            self.used.append(dtype)
            vectors = self.encode(texts)
            if dtype != "float32":
                vectors = vectors + self.noise * np.random.default_rng(0).normal(size=vectors.shape)
                vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(
                    np.float32
                )
            time.sleep(self.seconds[dtype] * len(texts))
            yield np.arange(len(texts)), vectors

        return batches


FASTER, SLOWER = {"float32": 2e-3, "bfloat16": 2e-4}, {"float32": 2e-4, "bfloat16": 2e-3}
TEXTS = [f"{row} moon {row % 7} planet {row % 11} river {row * row % 13}" for row in range(64)]


@pytest.mark.parametrize(
    ("noise", "seconds", "chosen"),
    [(0.0, FASTER, "bfloat16"), (0.2, FASTER, "float32"), (0.0, SLOWER, "float32")],
    ids=["faster and the same ranking", "faster, another ranking", "slower"],
)
def test_a_smaller_type_is_used_only_if_it_is_faster_and_leaves_the_ranking(
    noise: float, seconds: dict[str, float], chosen: str
) -> None:
    choice = measured_choice(Typed(noise, seconds), TEXTS)
    assert choice.dtype == chosen
    assert choice.measured["sample"] == len(TEXTS)
    assert choice.measured["bfloat16"].keys() == {"passages_per_second", "overlap_at_10"}
    assert (choice.measured["bfloat16"]["overlap_at_10"] == 1.0) == (noise == 0.0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_type_that_the_user_chose_is_not_measured(dtype: str) -> None:
    encoder = Typed(0.5, SLOWER, dtype)
    assert choose_type(encoder, 10**6, str).dtype == dtype
    assert encoder.used == []


def test_few_passages_are_encoded_in_float32_without_measuring() -> None:
    encoder = Typed(0.0, FASTER)
    assert choose_type(encoder, 2047, str).dtype == "float32"
    assert encoder.used == []
    assert choose_type(encoder, 2048, lambda row: TEXTS[row % 64]).dtype == "bfloat16"


def test_the_overlap_counts_the_neighbours_both_find_and_copies_share_a_place() -> None:
    exact = np.eye(4, dtype=np.float32)
    queries = np.array([[1.0, 0.9, 0.0, 0.0]], dtype=np.float32)
    assert top_overlap(queries, exact, exact, 2) == 1.0
    assert top_overlap(queries, exact, exact[[0, 2, 1, 3]], 2) == 0.5
    copies = exact[[0, 1, 1, 2]]
    other_copy_first = copies * np.array([[1.0], [0.99], [1.0], [1.0]], dtype=np.float32)
    assert top_overlap(queries, copies, other_copy_first, 2) == 1.0


def test_a_continued_encoding_keeps_its_type_and_the_manifest_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rallebench.encoders.numeric_types.WORTH_MEASURING", 1)
    first = Typed(0.0, FASTER)
    work = encode_passages(tmp_path, PASSAGES, SHA, first)
    while next(work).done < SHARD:
        pass
    work.close()
    again = Typed(0.0, SLOWER)
    _, stored = encode(tmp_path, again)
    assert set(again.used) == {"bfloat16"}
    assert stored.dtype == "bfloat16" and stored.encoding["bfloat16"]["overlap_at_10"] == 1.0
    (kept,) = kept_vectors(tmp_path)
    assert kept.dtype == "bfloat16"


def test_the_type_is_part_of_what_an_index_is_and_the_measured_speed_is_not(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.tsv"
    corpus.write_text("".join(f"{p.doc_id}\t{p.text}\t{p.title}\n" for p in PASSAGES))

    def made(name: str, dtype: str) -> Manifest:
        return built(tmp_path / "indexes", name, corpus, "flat", encoder=Typed(0.0, FASTER, dtype))

    exact, halved = made("a", "float32"), made("b", "bfloat16")
    assert (exact.passage_dtype, halved.passage_dtype) == ("float32", "bfloat16")
    assert exact.fingerprint != halved.fingerprint
    assert made("c", "float32").fingerprint == exact.fingerprint


# ── vectors that come with the package ───────────────────────────────────────


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    encode(tmp_path / "made")
    return folder_of(tmp_path / "made")


def encoded_with(shipped: Path, cache: Path, sha: str, encoder: Counting) -> Any:
    return complete(encode_passages(cache, PASSAGES, sha, encoder, shipped=shipped)).vectors


def test_shipped_vectors_spare_the_encoding(shipped: Path, tmp_path: Path, expected: Any) -> None:
    encoder = Counting()
    np.testing.assert_array_equal(encoded_with(shipped, tmp_path, SHA, encoder), expected)
    assert encoder.calls == 0


@pytest.mark.parametrize("difference", ["passages", "encoder", "numeric type", "bytes"])
def test_shipped_vectors_of_anything_else_are_not_taken(
    shipped: Path, tmp_path: Path, expected: Any, difference: str
) -> None:
    encoder, sha = Counting(), SHA
    if difference == "passages":
        sha = "1" * 64
    elif difference == "encoder":
        encoder.fingerprint = "another/1"
    elif difference == "numeric type":
        header, *lines = (shipped / "progress.jsonl").read_text().splitlines()
        header = header.replace('"float32"', '"bfloat16"')
        (shipped / "progress.jsonl").write_text("\n".join([header, *lines]) + "\n")
    else:
        with open(shipped / "vectors.npy", "r+b") as file:
            for place in range(200, os.path.getsize(shipped / "vectors.npy"), 1024):
                file.seek(place)
                file.write(b"\x07")
    np.testing.assert_array_equal(encoded_with(shipped, tmp_path, sha, encoder), expected)
    assert len(encoder.seen) == COUNT


def test_the_starter_comes_with_the_vectors_that_its_encoder_gives(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cached, "SHARD", 1024)
    minilm = MiniLM()
    monkeypatch.setattr(minilm, "bulk", lambda dtype: pytest.fail("a passage is encoded"))
    build = build_index(tmp_path / "indexes", "s", starter_recipe("starter-minilm"), encoder=minilm)
    assert complete(build).passages == 371
    header, finished = cached.read_progress(cached.STARTER_VECTORS)
    assert header is not None
    vectors = np.load(cached.STARTER_VECTORS / "vectors.npy")
    assert finished == {0: hashlib.sha256(vectors.tobytes()).hexdigest()}
    assert (vectors.dtype, header.dtype, len(vectors)) == (np.float32, "float32", 371)
    store = PassageStore(tmp_path / "indexes" / "s")
    rows = range(0, 371, 40)
    sample = [cached.passage_text(store[row]) for row in rows]
    np.testing.assert_allclose(minilm.encode(sample), vectors[list(rows)], atol=1e-5)
