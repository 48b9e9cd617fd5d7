"""Faiss files of other programs are searched as they are, whatever their type, metric and ids; hostile ones end in a sentence."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from building import built

from rallebench.core.errors import BadFileError, MismatchError, RalleError
from rallebench.encoders.hashing import Hashing
from rallebench.retrievers import INDEX_KINDS
from rallebench.vector_indexes import faiss_files
from rallebench.vector_indexes.faiss_files import read_faiss_file
from rallebench.workspace.entries import read_manifest

faiss: Any = pytest.importorskip("faiss")

COUNT, DIM = 400, Hashing.dim
IDS = [f"d{7 * n % COUNT}" for n in range(COUNT)]
TEXTS = [f"river{n} flows by hill{n % 97} and wood{n % 61}" for n in range(COUNT)]
VECTORS = Hashing().encode([f"Town {n}, {text}" for n, text in enumerate(TEXTS)], role="passage")
"""Unit vectors."""
IP, L2 = 0, 1


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "corpus.tsv"
    rows = enumerate(zip(IDS, TEXTS))
    path.write_text("".join(f"{doc_id}\t{text}\tTown {n}\n" for n, (doc_id, text) in rows))
    return path


def made(factory: str, metric: int, vectors: Any = VECTORS, ids: Any = None) -> Any:
    index = faiss.index_factory(vectors.shape[1], factory, metric)
    index.train(vectors)
    if ids is None:
        index.add(vectors)
    else:
        index.add_with_ids(vectors, np.asarray(ids, dtype=np.int64))
    return index


def file_of(folder: Path, index: Any) -> Path:
    faiss.write_index(index, str(folder / "their.index"))
    return folder / "their.index"


def take(folder: Path, corpus: Path, source: Path, kind: str = "faiss", **more: Any) -> Any:
    built(folder / "indexes", "taken", corpus, kind, encoder=Hashing(), source=source, **more)
    place = folder / "indexes" / "taken"
    return INDEX_KINDS[kind].open("taken", place, read_manifest(place), Hashing())


def searched(index: Any, *numbers: int) -> list[tuple[str, float]]:
    """(best passage, its score) for the text of each of these passages."""
    results = index.search([f"Town {n}, {TEXTS[n]}" for n in numbers], 5)
    for hits in results:
        assert [h.score for h in hits] == sorted((h.score for h in hits), reverse=True)
    return [(hits[0].passage.doc_id, hits[0].score) for hits in results]


OTHER_TYPES = ["SQ8", "PCA128,Flat", "RR64,IVF8,PQ32x4", "IVF8,Flat,RFlat", "IDMap,IVF8,SQ8", "NSG16", "L2norm,Flat"]  # fmt: skip
TYPES = [
    *(("Flat", IP), ("Flat", L2), ("HNSW16", L2), ("IVF8,Flat", L2)),
    *(
        pytest.param(factory, metric, marks=pytest.mark.slow)
        for factory in ["HNSW16", "IVF8,Flat", *OTHER_TYPES]
        for metric in ([IP, L2] if factory in OTHER_TYPES else [IP])
    ),
]


@pytest.mark.parametrize(("factory", "metric"), TYPES)
def test_an_index_of_any_type_ranks_best_first_with_higher_scores_for_nearer_passages(
    factory: str, metric: int, corpus: Path, tmp_path: Path
) -> None:
    ids = range(COUNT) if "IDMap" in factory else None
    source = file_of(tmp_path, made(factory, metric, ids=ids))
    index = take(tmp_path, corpus, source)
    near = 0.8 if "PQ" in factory or "PCA" in factory else 2e-2
    for number, (doc_id, score) in zip((3, 250, 399), searched(index, 3, 250, 399)):
        assert doc_id == IDS[number] and score == pytest.approx(1.0, abs=near)
    index.close()
    manifest = read_manifest(tmp_path / "indexes" / "taken")
    assert manifest.parameters["ranks_by"] == ("distance" if metric else "inner product")
    assert (tmp_path / "indexes" / "taken" / "faiss.index").samefile(source)


@pytest.mark.parametrize(
    ("factory", "kind"),
    [("Flat", "hnsw"), ("IDMap,Flat", "flat"), ("IDMap2,Flat", "ivf-sq8"), ("HNSW16", "flat")],
)
def test_whole_vectors_in_a_file_become_an_index_of_any_kind(
    factory: str, kind: str, corpus: Path, tmp_path: Path
) -> None:
    order = np.random.default_rng(3).permutation(COUNT) if "IDMap" in factory else None
    vectors = VECTORS if order is None else VECTORS[order]
    source = file_of(tmp_path, made(factory, L2, vectors, ids=order))
    index = take(tmp_path, corpus, source, kind)
    assert [doc_id for doc_id, _ in searched(index, 0, 77)] == [IDS[0], IDS[77]]
    index.close()


@pytest.mark.parametrize("kind", ["faiss", "flat"])
@pytest.mark.parametrize("ids", ["rows", "ids of the corpus", "lines", "map"])
def test_the_ids_in_a_file_lead_to_the_passages(
    ids: str, kind: str, corpus: Path, tmp_path: Path
) -> None:
    order = np.random.default_rng(4).permutation(COUNT)
    labels, more = order, {}
    if ids == "ids of the corpus":
        labels = np.array([1000 + 3 * row for row in order])
        corpus = tmp_path / "numbers.tsv"
        rows = enumerate(TEXTS)
        corpus.write_text("".join(f"{1000 + 3 * n}\t{text}\tTown {n}\n" for n, text in rows))
    elif ids == "lines":  # Pyserini's: the line with the number
        labels = np.random.default_rng(8).permutation(COUNT)
        lines = dict(zip(labels.tolist(), order.tolist()))
        more = {"ids": tmp_path / "ids.txt"}
        more["ids"].write_text("".join(f"{IDS[lines[n]]}\n" for n in range(COUNT)))
    elif ids == "map":
        labels = order * 10**12 + 7
        more = {"ids": tmp_path / "ids.tsv"}
        pairs = zip(labels.tolist(), order.tolist())
        more["ids"].write_text("".join(f"{label}\t{IDS[row]}\n" for label, row in pairs))
    source = file_of(tmp_path, made("IDMap,Flat", IP, VECTORS[order], labels))
    index = take(tmp_path, corpus, source, kind, **more)
    hits = index.search([f"Town {n}, {TEXTS[n]}" for n in (0, 123)], 2)
    assert [best[0].passage.title for best in hits] == ["Town 0", "Town 123"]
    index.close()


def test_an_index_by_distance_whose_vectors_differ_in_length_keeps_its_own_ranking(
    corpus: Path, tmp_path: Path
) -> None:
    lengths = np.linspace(0.9, 1.1, COUNT, dtype=np.float32)[:, None]
    source = file_of(tmp_path, made("Flat", L2, VECTORS * lengths))
    with pytest.raises(MismatchError, match="differ in length, so it does not rank by inner"):
        take(tmp_path, corpus, source, "flat")
    index = take(tmp_path, corpus, source)
    query = f"Town 9, {TEXTS[9]}"
    hits = index.search([query], 5)[0]
    index.close()
    distances = ((VECTORS * lengths - VECTORS[9]) ** 2).sum(axis=1)
    best = np.argsort(distances)[:5]
    assert [hit.passage.doc_id for hit in hits] == [IDS[row] for row in best]
    assert [hit.score for hit in hits] == pytest.approx(
        (1 - distances[best] / 2).tolist(), abs=1e-5
    )


def test_search_settings_go_to_the_index_inside(corpus: Path, tmp_path: Path) -> None:
    index = take(tmp_path, corpus, file_of(tmp_path, made("IDMap,IVF8,Flat", IP, ids=range(COUNT))))
    few = len(index.search(["wood"], COUNT)[0])
    all_of_them = len(index.with_knobs("wide", {"nprobe": 8}).search(["wood"], COUNT)[0])
    again = len(index.search(["wood"], COUNT)[0])
    index.close()
    assert few == again < all_of_them == COUNT


REFUSED: list[tuple[str, Callable[[], Any], str]] = [
    ("metric", lambda: made("Flat", faiss.METRIC_L1), "ranks by a metric other than inner product"),
    ("metric in a graph", lambda: faiss.IndexHNSWFlat(DIM, 8, faiss.METRIC_Linf), "holds no vectors"),
    ("empty", lambda: faiss.IndexFlatIP(DIM), "it says 0 vectors of 256 dimensions"),
    ("untrained", lambda: faiss.index_factory(DIM, "IVF8,Flat"), "holds no vectors; import the"),
    ("ids twice", lambda: made("IDMap,Flat", IP, ids=[5] * COUNT), "gives two vectors one id, or a"),
    ("negative ids", lambda: made("IDMap,Flat", IP, ids=range(-1, COUNT - 1)), "gives two vectors one"),
    ("ids twice inside", lambda: made("IVF8,Flat", IP, ids=[5] * COUNT), "gives two vectors one id"),
    ("odd ids", lambda: made("IDMap,Flat", IP, ids=range(9, COUNT + 9)), "by ids such as 9, which are"),
    ("narrow", lambda: made("Flat", IP, VECTORS[:, :100].copy()), "of 100 dimensions, the encoder"),
    ("fewer", lambda: made("HNSW8", IP, VECTORS[:-1]), "holds 399 vectors and the corpus 400"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "make", "sentence"), REFUSED, ids=[row[0] for row in REFUSED])
def test_an_index_that_cannot_be_used_is_one_sentence(
    name: str, make: Callable[[], Any], sentence: str, corpus: Path, tmp_path: Path
) -> None:
    source = file_of(tmp_path, make())
    with pytest.raises(RalleError) as refusal:
        take(tmp_path, corpus, source)
    message = str(refusal.value)
    assert sentence in message and "their.index" in message and len(message.splitlines()) == 1
    assert not list(tmp_path.glob("indexes/*"))


def graph_bytes(change: Callable[[bytearray, int], object]) -> Callable[[Path], object]:
    """A file with a graph, changed at the first neighbour of its first vector."""

    def write(path: Path) -> None:
        index = made("HNSW8", IP)
        faiss.write_index(index, str(path))
        links = faiss.vector_to_array(index.hnsw.neighbors)
        whole = bytearray(path.read_bytes())
        change(whole, whole.index(links[:8].tobytes()))
        path.write_bytes(bytes(whole))

    return write


def flat_bytes(at: int, form: str, value: int) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        faiss.write_index(made("Flat", IP), str(path))
        whole = bytearray(path.read_bytes())
        struct.pack_into(form, whole, at, value)
        path.write_bytes(bytes(whole))

    return write


def binary(path: Path) -> None:
    index = faiss.IndexBinaryFlat(64)
    index.add(np.zeros((9, 8), dtype=np.uint8))
    faiss.write_index_binary(index, str(path))


def huge(path: Path) -> None:
    """A graph that says it has 2^38 neighbours, for which Faiss asks a terabyte."""
    index = made("HNSW8", IP)
    faiss.write_index(index, str(path))
    links = faiss.vector_to_array(index.hnsw.neighbors)
    whole = bytearray(path.read_bytes())
    struct.pack_into("<Q", whole, whole.index(links[:8].tobytes()) - 8, 2**38)
    path.write_bytes(bytes(whole))


HOSTILE: list[tuple[str, Callable[[Path], object], str]] = [
    ("header only", lambda path: path.write_bytes(b"IxFI"), "truncated or damaged (too short)"),
    ("unknown letters", lambda path: path.write_bytes(b"Ixyz" + bytes(90)), "is missing, truncated or"),
    ("binary", binary, "is a binary Faiss index; only indexes of numbers can be searched"),
    ("more vectors", flat_bytes(8, "<q", COUNT + 1), "it says 401 vectors of 256 dimensions, which take"),
    ("vectors beyond all bounds", flat_bytes(8, "<q", 2**62), "which take 4722366482869645213741 bytes"),
    ("negative vectors", flat_bytes(8, "<q", -3), "it says -3 vectors of 256 dimensions"),
    ("no dimensions", flat_bytes(4, "<i", 0), "it says 400 vectors of 0 dimensions"),
    ("negative dimensions", flat_bytes(4, "<i", -256), "it says 400 vectors of -256 dimensions"),
    ("links astray", graph_bytes(lambda b, at: struct.pack_into("<i", b, at, 2**30)), "has a graph with links to"),
    ("links below", graph_bytes(lambda b, at: struct.pack_into("<i", b, at, -7)), "has a graph with links to"),
    ("cut graph", graph_bytes(lambda b, at: b.__delitem__(slice(at + 50, None))), "is missing, truncated or damaged"),
    ("asks a terabyte", huge, "is missing, truncated or damaged"),
    ("lists in another file", lambda path: on_disk(path), "keeps its lists in another file; write it as one"),
]  # fmt: skip


def on_disk(path: Path) -> None:
    index = faiss.index_factory(DIM, "IVF8,Flat", IP)
    index.train(VECTORS)
    lists = faiss.OnDiskInvertedLists(index.nlist, index.code_size, str(path) + ".lists")
    index.replace_invlists(lists, False)
    index.add(VECTORS)
    faiss.write_index(index, str(path))


@pytest.mark.parametrize(("name", "write", "sentence"), HOSTILE, ids=[row[0] for row in HOSTILE])
def test_a_hostile_file_is_one_sentence(
    name: str, write: Callable[[Path], object], sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "their.index"
    write(path)
    with pytest.raises(BadFileError) as refusal:
        read_faiss_file(path)
    message = str(refusal.value)
    assert sentence.replace("4722366482869645213741", "") in message.replace(
        str(45 + 4 * 256 * 2**62), ""
    )
    assert message.startswith(str(path)) and len(message.splitlines()) == 1


def test_a_file_with_which_faiss_never_ends_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faiss_files, "SECONDS", 0.01)
    with pytest.raises(BadFileError, match="Faiss does not come to an end with it"):
        read_faiss_file(file_of(tmp_path, made("HNSW8", IP)))
