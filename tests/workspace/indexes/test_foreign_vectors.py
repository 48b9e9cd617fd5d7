"""Other programs' files of vectors become indexes of any kind, or are refused in one sentence."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from building import built

from rallebench.core.errors import BadFileError, MismatchError, RalleError, UsageError
from rallebench.encoders.hashing import Hashing
from rallebench.retrievers import INDEX_KINDS
from rallebench.workspace.entries import read_manifest
from rallebench.workspace.indexes import vector_files
from rallebench.workspace.indexes.importing import recognise

COUNT, DIM = 150, Hashing.dim
IDS = [f"d{7 * number % COUNT}" for number in range(COUNT)]
TEXTS = [f"river{n} flows by hill{n % 97} and wood{n % 61}" for n in range(COUNT)]
VECTORS = Hashing().encode([f"Town {n}, {text}" for n, text in enumerate(TEXTS)], role="passage")
"""Unit vectors."""
ORDER = np.random.default_rng(5).permutation(COUNT)
Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "corpus.tsv"
    rows = enumerate(zip(IDS, TEXTS))
    path.write_text("".join(f"{doc_id}\t{text}\tTown {n}\n" for n, (doc_id, text) in rows))
    return path


def fvecs(path: Path, vectors: Array) -> None:
    """As ivecs_write of TEXMEX and Faiss's benchmarks do it."""
    heads = np.full((len(vectors), 1), vectors.shape[1], dtype="<i4")
    np.hstack([heads, vectors.astype("<f4").view("<i4")]).tofile(path)


def bvecs(path: Path, vectors: Array) -> None:
    head = struct.pack("<i", vectors.shape[1])
    path.write_bytes(b"".join(head + row.tobytes() for row in vectors.astype(np.uint8)))


def big_ann(path: Path, vectors: Array) -> None:
    """As xbin_write of big-ann-benchmarks does it."""
    with open(path, "wb") as file:
        np.array(vectors.shape, dtype="uint32").tofile(file)
        vectors.tofile(file)


def npmmap(path: Path, vectors: Array) -> None:
    vectors.astype(np.float32).tofile(path)


WRITERS: dict[str, Callable[[Path, Array], object]] = {
    "v.fvecs": fvecs,
    "v.fbin": big_ann,
    "v.npy": np.save,
    "columns.npy": lambda path, vectors: np.save(path, np.asfortranarray(vectors)),
    "big-endian.npy": lambda path, vectors: np.save(path, vectors.astype(">f4")),
    "double.npy": lambda path, vectors: np.save(path, vectors.astype(np.float64)),
    "half.npy": lambda path, vectors: np.save(path, vectors.astype(np.float16)),
    "v.f16bin": lambda path, vectors: big_ann(path, vectors.astype(np.float16)),
    "v.npz": lambda path, vectors: np.savez(path, vectors),
    "named.npz": lambda path, vectors: np.savez_compressed(
        path, embeddings=vectors, means=vectors[:2], count=np.array(3)
    ),
    f"full_{DIM}_{COUNT}.npmmap": npmmap,
}


def take(folder: Path, corpus: Path, source: Path, kind: str = "flat", **more: Any) -> Any:
    """The open index over the corpus."""
    built(folder / "indexes", "taken", corpus, kind, encoder=Hashing(), source=source, **more)
    place = folder / "indexes" / "taken"
    return INDEX_KINDS[kind].open("taken", place, read_manifest(place), Hashing())


def finds_its_own(index: Any) -> bool:
    """Each passage is the best hit of its own text, with the score of equal vectors."""
    queries = [f"Town {n}, {TEXTS[n]}" for n in (0, 77, COUNT - 1)]
    hits = [hits[0] for hits in index.search(queries, 3)]
    index.close()
    return [hit.passage.doc_id for hit in hits] == [IDS[0], IDS[77], IDS[-1]] and all(
        abs(hit.score - 1) < 2e-3 for hit in hits
    )


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("kind", ["flat", "numpy-flat"])
def test_vectors_of_every_form_become_an_index(
    name: str, kind: str, corpus: Path, tmp_path: Path
) -> None:
    WRITERS[name](tmp_path / name, VECTORS)
    foreign = recognise(tmp_path / name)
    assert (foreign.count, foreign.dim, foreign.kinds) == (COUNT, DIM, ())
    index = take(tmp_path, corpus, tmp_path / name, kind)
    assert finds_its_own(index)
    names = {path.name for path in (tmp_path / "indexes" / "taken").iterdir()}
    assert "unpacked.npy" not in names and len(names) == 5


@pytest.mark.parametrize("kind", ["hnsw", "hnswlib", "ivf-sq8", "faiss"])
def test_vectors_behind_heads_become_an_index_of_every_kind(
    kind: str, corpus: Path, tmp_path: Path
) -> None:
    fvecs(tmp_path / "v.fvecs", VECTORS)
    assert finds_its_own(take(tmp_path, corpus, tmp_path / "v.fvecs", kind))


@pytest.mark.parametrize("name", ["v.bvecs", "v.u8bin", "v.i8bin"])
def test_numbers_of_8_bits_are_vectors(name: str, corpus: Path, tmp_path: Path) -> None:
    codes = np.round(VECTORS * 100 + (0 if name == "v.i8bin" else 100))
    writer = bvecs if name == "v.bvecs" else big_ann
    writer(tmp_path / name, codes.astype(np.int8 if name == "v.i8bin" else np.uint8))
    foreign = recognise(tmp_path / name)
    assert foreign.vectors is not None
    np.testing.assert_array_equal(foreign.vectors.open(tmp_path)[3], codes[3])
    if name == "v.i8bin":  # only these are symmetric about 0, as the encoder's are
        index = take(tmp_path, corpus, tmp_path / name)
        (hits,) = index.search([f"Town 9, {TEXTS[9]}"], 1)
        assert hits[0].passage.doc_id == IDS[9] and hits[0].score > 90
        index.close()


def pyserini(folder: Path) -> Path:
    """An encoded corpus in another order, written as Pyserini's FaissRepresentationWriter does it."""
    import faiss

    folder.mkdir()
    index = faiss.IndexFlatIP(DIM)
    index.add(VECTORS[ORDER])
    (folder / "docid").write_text("".join(f"{IDS[row]}\n" for row in ORDER))
    faiss.write_index(index, str(folder / "index"))
    return folder


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf-sq8", "faiss"])
@pytest.mark.parametrize("form", ["text", "npy", "npz", "pyserini"])
def test_ids_put_vectors_into_the_order_of_the_corpus(
    form: str, kind: str, corpus: Path, tmp_path: Path
) -> None:
    ids = np.array(IDS)[ORDER]
    source, more = tmp_path / "v.fbin", {}
    if form == "pyserini":
        source = pyserini(tmp_path / "theirs")
    elif form == "npz":
        source = tmp_path / "v.npz"
        np.savez_compressed(source, vectors=VECTORS[ORDER], ids=ids)
    else:
        big_ann(source, VECTORS[ORDER])
        more = {"ids": tmp_path / ("ids.npy" if form == "npy" else "ids.txt")}
        if form == "npy":
            np.save(more["ids"], ids)
        else:
            more["ids"].write_text("\n".join(ids))
    assert finds_its_own(take(tmp_path, corpus, source, kind, **more))


def test_a_folder_of_pyserini_in_the_order_of_the_corpus_is_linked(
    corpus: Path, tmp_path: Path
) -> None:
    import faiss

    folder = pyserini(tmp_path / "theirs")
    index = faiss.IndexFlatIP(DIM)
    index.add(VECTORS)
    faiss.write_index(index, str(folder / "index"))
    (folder / "docid").write_text("\n".join(IDS))
    assert finds_its_own(take(tmp_path, corpus, folder))
    assert (tmp_path / "indexes" / "taken" / "flat.faiss").samefile(folder / "index")


# hostile files


def patched(writer: Callable[[Path, Array], object], at: int, value: bytes) -> Any:
    """A writer of a file in which some bytes are replaced."""

    def write(path: Path, vectors: Array) -> None:
        writer(path, vectors)
        whole = bytearray(path.read_bytes())
        whole[at : at + len(value) or None] = value
        path.write_bytes(bytes(whole))

    return write


def cut(writer: Callable[[Path, Array], object], size: int) -> Any:
    """A writer of a file without its last bytes."""

    def write(path: Path, vectors: Array) -> None:
        writer(path, vectors)
        path.write_bytes(path.read_bytes()[:-size])

    return write


def with_row(row: Array | float, name: str = "fvecs") -> Any:
    def write(path: Path, vectors: Array) -> None:
        vectors = vectors.copy()
        vectors[70] = row
        {"fvecs": fvecs, "fbin": big_ann}[name](path, vectors)

    return write


def archive(**members: bytes) -> Any:
    def write(path: Path, vectors: Array) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
            for name, content in members.items():
                out.writestr(f"{name}.npy", content)

    return write


def header(text: str) -> bytes:
    """An array's header as numpy writes it, with any text in it."""
    text = text.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def saved(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


HUGE = header("{'descr': '<f4', 'fortran_order': False, 'shape': (999999999999, 256), }")
CODE = header("__import__('os').system('true')")
ROW = 4 + 4 * DIM
HOSTILE: list[tuple[str, Any, str]] = [
    ("empty.fvecs", lambda path, _: path.write_bytes(b""), "begins with a vector of 0 dimensions"),
    ("short.fvecs", lambda path, _: path.write_bytes(b"\1\0"), "and its 2 bytes are not a whole"),
    ("cut.fvecs", cut(fvecs, 5), "are not a whole number of such vectors; it was cut short"),
    ("negative.fvecs", patched(fvecs, 0, b"\xff" * 4), "begins with a vector of -1 dimensions"),
    ("huge.fvecs", patched(fvecs, 0, b"\xff\xff\xff\x7f"), "of 2147483647 dimensions, and its"),
    ("heads.fvecs", patched(fvecs, 30 * ROW, b"\7\0\0\0"), "row 31 of 150 has 7 dimensions and the"),
    ("short.fbin", lambda path, _: path.write_bytes(b"\1\0\0\0"), "holds no vectors; it begins"),
    ("none.fbin", patched(big_ann, 0, bytes(4)), "holds no vectors; it begins with their number"),
    ("cut.fbin", cut(big_ann, 4), "says 150 vectors of 256 dimensions, which take 153608 bytes, and"),
    ("huge.fbin", patched(big_ann, 0, b"\xff" * 8), "says 4294967295 vectors of 4294967295 dim"),
    ("other.u8bin", big_ann, "which take 38408 bytes, and holds 153608; it was cut short or"),
    ("nan.fvecs", with_row(np.nan), "row 71 of 150 holds a value that is not a finite number"),
    ("inf.fbin", with_row(np.inf, "fbin"), "row 71 of 150 holds a value that is not a finite"),
    ("zeros.fvecs", with_row(0.0), "a vector of zeros for row 71 of 150, so a search"),
    ("same.fbin", lambda p, v: big_ann(p, np.repeat(v[:1], COUNT, axis=0)), "the same vector for row 1"),
    ("not.npz", lambda path, _: path.write_bytes(b"PK\3\4 no zip"), "is a damaged archive of arrays"),
    ("cut.npz", cut(WRITERS["v.npz"], 400), "is a damaged archive of arrays"),
    ("flipped.npz", patched(WRITERS["v.npz"], 5000, b"abc"), "is a damaged archive of arrays (Bad CRC"),
    ("empty.npz", archive(), "holds no arrays; one of them must be rows"),
    ("text.npz", archive(notes=b"hello, no array"), "is a damaged archive of arrays"),
    ("code.npz", archive(vectors=CODE), "is a damaged archive of arrays"),
    ("flat.npz", archive(vectors=saved(np.ones(9))), "holds vectors (float64 of shape (9,)); one of"),
    ("two.npz", archive(a=saved(VECTORS), b=saved(VECTORS)), "holds a (float32 of shape (150, 256)), b"),
    ("objects.npz", archive(v=saved(np.array([{1}] * COUNT, object))), "holds v (object of shape (150,))"),
    (
        "pickled.npz",
        archive(v=saved(VECTORS), ids=saved(np.array(IDS, dtype=object))),
        "holds the array 'ids' as object, which is not read since it may run code; save the ids as text",
    ),
    ("huge.npz", archive(vectors=HUGE), "says float32 of shape (999999999999, 256) and has 128 bytes"),
    ("columns.npz", archive(v=saved(np.asfortranarray(VECTORS))), "'v.npy' is stored by columns"),
    ("pickled.npy", lambda p, v: np.save(p, np.array([{1}]), allow_pickle=True), "not a complete array"),
    ("whole.npy", lambda p, v: np.save(p, np.ones((COUNT, DIM), np.int64)), "holds int64 of shape"),
    ("lists.ivecs", fvecs, "is neither vectors (.npmmap, .npy, .npz, .fvecs"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "write", "sentence"), HOSTILE, ids=[row[0] for row in HOSTILE])
def test_a_file_that_cannot_be_believed_is_one_sentence_and_leaves_nothing(
    name: str, write: Any, sentence: str, corpus: Path, tmp_path: Path
) -> None:
    write(tmp_path / name, VECTORS)
    with pytest.raises(RalleError) as refusal:
        take(tmp_path, corpus, tmp_path / name)
    message = str(refusal.value)
    assert sentence in message and str(tmp_path / name) in message
    assert len(message.splitlines()) == 1 and refusal.value.exit_code == 2
    assert not list(tmp_path.glob("indexes/*"))


def test_an_archive_that_unpacks_to_far_more_than_vectors_do_is_refused_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_files, "MAX_UNPACKED", 2**20)
    np.savez_compressed(tmp_path / "bomb.npz", np.zeros((9000, 64), dtype=np.float32))
    with pytest.raises(BadFileError, match="unpacks to more than 200 times its size"):
        recognise(tmp_path / "bomb.npz")


IDS_REFUSED: list[tuple[str, Any, type[RalleError], str]] = [
    ("few.txt", IDS[:-1], MismatchError, "holds 150 vectors, and there are 149 ids for them"),
    ("many.txt", [*IDS, "d0"], MismatchError, "there are 151 ids for them; give an id for each"),
    ("none.txt", [], MismatchError, "there are 0 ids for them"),
    ("twice.txt", ["d0", "d0", *IDS[2:]], MismatchError, "has 2 vectors for the passage in row 1"),
    ("other.txt", ["x9", *IDS[1:]], MismatchError, "has a vector for 'x9' (number 1 of 150), which"),
    ("blank.txt", ["", *IDS[1:]], BadFileError, "line 1 is neither the id of a passage nor a"),
    ("tabs.txt", ["a\tb", *IDS[1:]], BadFileError, "line 1 is neither the id of a passage nor a"),
    ("gaps.txt", [f"{2 * n}\t{i}" for n, i in enumerate(IDS)], MismatchError, "with the number 1, for which"),
    ("binary.txt", ["\0", *IDS[1:]], BadFileError, "line 1 holds binary data"),
    ("floats.npy", np.ones(COUNT), BadFileError, "holds float64 of shape (150,); a list of texts"),
    ("pickled.npy", np.array([{1}] * COUNT), BadFileError, "is not a complete array of numbers"),
    ("order.txt", IDS[::-1], MismatchError, "did not find"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "ids", "error", "sentence"), IDS_REFUSED, ids=[row[0] for row in IDS_REFUSED]
)
def test_ids_that_do_not_fit_are_refused(
    name: str, ids: Any, error: type[RalleError], sentence: str, corpus: Path, tmp_path: Path
) -> None:
    big_ann(tmp_path / "v.fbin", VECTORS)
    if name.endswith(".npy"):
        np.save(tmp_path / name, ids, allow_pickle=True)
    else:
        (tmp_path / name).write_text("".join(f"{doc_id}\n" for doc_id in ids))
    with pytest.raises(error) as refusal:
        take(tmp_path, corpus, tmp_path / "v.fbin", ids=tmp_path / name)
    message = str(refusal.value)
    assert sentence in message and len(message.splitlines()) == 1
    assert not list(tmp_path.glob("indexes/*"))


def test_ids_without_vectors_and_a_missing_file_of_ids_are_refused(
    corpus: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="names the passages of foreign vectors; give these, too"):
        built(tmp_path, "x", corpus, "flat", encoder=Hashing(), ids=tmp_path / "ids.txt")
    big_ann(tmp_path / "v.fbin", VECTORS)
    with pytest.raises(BadFileError, match="There is no file"):
        take(tmp_path, corpus, tmp_path / "v.fbin", ids=tmp_path / "nowhere.txt")
