"""Indexes of RaLLe, Faiss and DiskANN become indexes of ours, or are refused in a sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from building import built

from rallebench.core.entries import Manifest
from rallebench.core.errors import BadFileError, MismatchError, RalleError, UsageError
from rallebench.corpora.store import PassageStore
from rallebench.encoders.hashing import Hashing
from rallebench.retrievers import INDEX_KINDS

COUNT = 1200
TITLES = [f"Town {number}" for number in range(COUNT)]
TEXTS = [
    f"river{number} flows by hill{number % 97} and wood{number % 61}" for number in range(COUNT)
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "corpus.tsv"
    path.write_text(
        "".join(f"{i}\t{text}\t{title}\n" for i, (text, title) in enumerate(zip(TEXTS, TITLES), 1))
    )
    return path


@pytest.fixture(scope="module")
def vectors() -> Any:
    return Hashing().encode(
        [f"{title}, {text}" for text, title in zip(TEXTS, TITLES)], role="passage"
    )


def take(folder: Path, corpus: Path, kind: str, source: Path, encoder: Any = None) -> Manifest:
    return built(folder, "taken", corpus, kind, encoder=encoder or Hashing(), source=source)


def first(folder: Path, manifest: Manifest, query: str) -> str:
    retriever = INDEX_KINDS[manifest.kind].open("taken", folder / "taken", manifest, Hashing())
    hits = retriever.search([query], 3)[0]
    retriever.close()
    assert hits[0].score == pytest.approx(1.0, abs=1e-4)
    return str(hits[0].passage.title)


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf-sq8"])
def test_vectors_of_ralle_become_an_index_of_any_kind(
    kind: str, corpus: Path, vectors: Any, tmp_path: Path
) -> None:
    source = tmp_path / f"full_{Hashing.dim}_{COUNT}.npmmap"
    vectors.tofile(source)
    manifest = take(tmp_path / "indexes", corpus, kind, source)
    assert (manifest.kind, manifest.passages, manifest.dim) == (kind, COUNT, Hashing.dim)
    assert manifest.parameters["imported"] == source.name
    assert set(manifest.sha256) == set(manifest.files)
    assert first(tmp_path / "indexes", manifest, f"{TITLES[7]}, {TEXTS[7]}") == TITLES[7]


def faiss_file(path: Path, index: Any, vectors: Any) -> Path:
    import faiss

    index.add(vectors)
    faiss.write_index(index, str(path))
    return path


def test_faiss_files_are_taken_as_they_are(corpus: Path, vectors: Any, tmp_path: Path) -> None:
    import faiss

    flat = faiss_file(tmp_path / "flat.index", faiss.IndexFlatIP(Hashing.dim), vectors)
    graph = faiss.IndexHNSWFlat(Hashing.dim, 16, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = 40
    graph = faiss_file(tmp_path / "subset_m16_efc40.index", graph, vectors)
    for kind, path, settings in (
        ("flat", flat, {}),
        ("hnsw", graph, {"m": 16, "ef_construction": 40}),
    ):
        folder = tmp_path / kind
        manifest = take(folder, corpus, kind, path)
        assert manifest.parameters == {**settings, "imported": path.name}
        assert first(folder, manifest, f"{TITLES[9]}, {TEXTS[9]}") == TITLES[9]
        copied = next(p for p in (folder / "taken").iterdir() if p.suffix == ".faiss")
        assert copied.samefile(path), "a large file is linked, not copied"


DISKANN = """
import sys, numpy, diskannpy
folder, metric, scale = sys.argv[1], sys.argv[2], float(sys.argv[3])
vectors = numpy.load(folder + "/v.npy") * numpy.float32(scale)
diskannpy.build_disk_index(vectors, metric, folder, 64, 32, 1e-3, 2.0, 1, index_prefix="town")
"""


def diskann_folder(folder: Path, vectors: Any, metric: str, scale: float = 1.0) -> Path:
    pytest.importorskip("diskannpy", reason="diskannpy has no wheel here")
    folder.mkdir()
    np.save(folder / "v.npy", vectors)
    subprocess.run(
        [sys.executable, "-c", DISKANN, str(folder), metric, str(scale)],
        check=True,
        capture_output=True,
        timeout=120,
    )
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["mips", "l2"])
@pytest.mark.parametrize("noted", [True, False], ids=["by diskannpy", "by DiskANN's own programs"])
def test_a_diskann_folder_is_taken_and_its_scores_are_inner_products(
    metric: str, noted: bool, corpus: Path, vectors: Any, tmp_path: Path
) -> None:
    source = diskann_folder(tmp_path / "theirs", vectors, metric)
    if not noted:
        (source / "town_metadata.bin").unlink()
    manifest = take(tmp_path / "indexes", corpus, "diskann", source / "town" if noted else source)
    assert first(tmp_path / "indexes", manifest, f"{TITLES[11]}, {TEXTS[11]}") == TITLES[11]


def test_what_does_not_fit_leaves_nothing(corpus: Path, vectors: Any, tmp_path: Path) -> None:
    import faiss

    indexes = tmp_path / "indexes"

    def refused(kind: str, path: Path, error: type[RalleError], sentence: str) -> None:
        with pytest.raises(error, match=sentence):
            take(indexes, corpus, kind, path)
        assert not indexes.exists() or list(indexes.iterdir()) == []

    name = f"subset_{Hashing.dim}_{COUNT}.npmmap"
    cut = tmp_path / name
    vectors[:-1].tofile(cut)
    refused("flat", cut, BadFileError, "it was cut short or renamed")
    fewer = tmp_path / f"subset_{Hashing.dim}_1199.npmmap"
    vectors[:-1].tofile(fewer)
    refused("flat", fewer, MismatchError, "holds 1199 vectors and the corpus 1200 passages")
    narrow = tmp_path / f"subset_128_{COUNT * 2}.npmmap"
    vectors.tofile(narrow)
    refused("flat", narrow, MismatchError, r"holds 2400 vectors and the corpus 1200")
    np.save(tmp_path / "narrow.npy", vectors[:, :100])
    narrow = "100 dimensions, the encoder 'hashing' makes 256"
    refused("flat", tmp_path / "narrow.npy", MismatchError, narrow)
    unnamed = tmp_path / "all.npmmap"
    vectors.tofile(unnamed)
    refused("flat", unnamed, BadFileError, "does not say how many vectors it holds")
    np.save(tmp_path / "other.npy", vectors[::-1])
    other = "made with another encoder than 'hashing' or of another"
    refused("flat", tmp_path / "other.npy", MismatchError, other)
    flat = faiss_file(tmp_path / "flat.index", faiss.IndexFlatIP(Hashing.dim), vectors)
    refused("bm25", flat, UsageError, "built from the corpus alone")
    codes = faiss.index_factory(Hashing.dim, "SQ8", faiss.METRIC_INNER_PRODUCT)
    codes.train(vectors)
    codes = faiss_file(tmp_path / "sq8.index", codes, vectors)
    refused("flat", codes, UsageError, "is an index of the kind 'faiss'; choose the kind faiss")
    half = tmp_path / "half.index"
    half.write_bytes(flat.read_bytes()[:5000])
    refused("flat", half, BadFileError, "truncated or damaged")
    text = tmp_path / "notes.txt"
    text.write_text("no index")
    refused("flat", text, BadFileError, "neither vectors")
    refused("diskann", tmp_path, BadFileError, "this one holds none")
    refused("diskann", tmp_path / "nowhere", BadFileError, "does not exist")


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e39], ids=["nan", "infinite", "beyond float32"])
@pytest.mark.parametrize("form", ["npy", "npmmap", "flat", "hnsw"])
def test_a_value_that_is_no_number_is_refused_with_its_file_and_row(
    form: str, value: float, corpus: Path, vectors: Any, tmp_path: Path
) -> None:
    import faiss

    if value == 1e39 and form != "npy":
        pytest.skip("a file of float32 cannot hold it")
    broken = vectors.astype(np.float64 if form == "npy" else np.float32)
    broken[700, 5] = value
    source = tmp_path / (f"s_{Hashing.dim}_{COUNT}.npmmap" if form == "npmmap" else f"bad.{form}")
    if form == "npy":
        np.save(source, broken)
    elif form == "npmmap":
        broken.tofile(source)
    else:
        index = (
            faiss.IndexFlatIP(Hashing.dim)
            if form == "flat"
            else faiss.IndexHNSWFlat(Hashing.dim, 4, faiss.METRIC_INNER_PRODUCT)
        )
        faiss_file(source, index, broken)
    sentence = f"{source.name}, row 701 of 1200 holds a value that is not a finite number"
    with pytest.raises(BadFileError, match=sentence) as refusal:
        take(tmp_path / "indexes", corpus, form if form == "hnsw" else "flat", source)
    assert refusal.value.exit_code == 2 and ".part" not in str(refusal.value)
    assert not list(tmp_path.glob("indexes/*"))


@pytest.mark.slow
def test_a_wrong_diskann_folder_is_refused(corpus: Path, vectors: Any, tmp_path: Path) -> None:
    lengths = np.linspace(0.5, 2, COUNT, dtype=np.float32)[:, None]
    source = diskann_folder(tmp_path / "theirs", vectors * lengths, "l2")
    with pytest.raises(MismatchError, match="does not rank by inner product"):
        take(tmp_path / "indexes", corpus, "diskann", source)
    graph = source / "town_disk.index"
    graph.write_bytes(graph.read_bytes()[:-4096])
    with pytest.raises(BadFileError, match="truncated, or was written with a sector size other"):
        take(tmp_path / "indexes", corpus, "diskann", source)


def test_the_source_stays_as_it_was(corpus: Path, vectors: Any, tmp_path: Path) -> None:
    source = tmp_path / f"full_{Hashing.dim}_{COUNT}.npmmap"
    vectors.tofile(source)
    before = source.read_bytes()
    take(tmp_path / "indexes", corpus, "ivf-sq8", source)
    assert source.read_bytes() == before
    assert len(PassageStore(tmp_path / "indexes" / "taken")) == COUNT
