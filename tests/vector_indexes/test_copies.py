"""Equal vectors enter a graph once: copies hide nothing, and all of their rows are found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rallebench.core.errors import BadFileError, MissingPackageError
from rallebench.core.events import complete
from rallebench.vector_indexes import VECTOR_INDEXES, copies
from rallebench.vector_indexes.copies import COPIES, ROWS, first_rows
from rallebench.vector_indexes.numpy_flat import NumpyFlat

GRAPHS = [
    pytest.param(kind, marks=pytest.mark.slow) if kind == "milvus" else kind
    for kind in ("hnsw", "hnswlib", "diskann", "diskann-memory", "milvus")
]
DIM = 24


def unit(count: int, seed: int = 0) -> np.ndarray[Any, Any]:
    vectors = np.random.default_rng(seed).normal(size=(count, DIM))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def make(folder: Path, kind: str, vectors: Any, **settings: Any) -> tuple[Any, dict[str, Any]]:
    folder.mkdir()
    try:
        used = complete(VECTOR_INDEXES[kind].build(folder, vectors, **settings))
    except MissingPackageError as absent:
        pytest.skip(str(absent))
    return VECTOR_INDEXES[kind].load(folder), used


@pytest.mark.parametrize("kind", GRAPHS)
def test_copies_hide_no_other_vector_and_are_all_found(kind: str, tmp_path: Path) -> None:
    one, others = unit(1), unit(3, seed=1)
    vectors = np.concatenate([np.repeat(one, 1400, axis=0), others])
    vectors[:700:2] += np.float32(1e-7)  # as one text in another batch
    index, used = make(tmp_path / "x", kind, vectors)
    assert used[COPIES] == 1399
    assert index.search(others, 1)[1][:, 0].tolist() == [1400, 1401, 1402]
    scores, rows = index.search(one, len(vectors) + 2)
    assert sorted(rows[0].tolist()) == [-1, -1, *range(len(vectors))]
    np.testing.assert_allclose(scores[0, :1400], 1.0, atol=1e-5)
    assert index.search(one, 5)[1][0].tolist() == [0, 1, 2, 3, 4]
    index.close()


def test_equal_rows_are_those_of_the_exact_comparison() -> None:
    vectors = np.repeat(unit(40), 3, axis=0)[np.random.default_rng(2).permutation(120)]
    vectors[5] = 0.0
    vectors[9] = -0.0
    expected = [next(i for i in range(120) if (vectors[i] == row).all()) for row in vectors]
    assert complete(first_rows(vectors)).tolist() == expected
    longer = vectors * np.float32(50.0)
    assert complete(first_rows(longer)).tolist() == expected
    both = complete(first_rows(np.concatenate([vectors, longer])))  # one direction, two lengths
    assert both[120:][vectors.any(axis=1)].min() >= 120


def test_vectors_that_only_share_a_key_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "STEP", 1e9)
    vectors = np.concatenate([unit(10), unit(10)])
    assert complete(first_rows(vectors)).tolist() == [*range(10), *range(10)]


def test_an_index_without_copies_has_the_files_of_its_kind_alone(tmp_path: Path) -> None:
    _, used = make(tmp_path / "x", "hnsw", unit(50))
    assert COPIES not in used and [path.name for path in (tmp_path / "x").iterdir()] == [
        "hnsw.faiss"
    ]


def test_rows_that_were_damaged_are_refused_in_a_sentence(tmp_path: Path) -> None:
    index, _ = make(tmp_path / "x", "hnsw", np.repeat(unit(3), 2, axis=0))
    index.close()
    (tmp_path / "x" / ROWS).write_bytes(b"\x93NUMPY")
    with pytest.raises(BadFileError, match=r"rows\.npy is missing, truncated or damaged"):
        VECTOR_INDEXES["hnsw"].load(tmp_path / "x")


def test_vectors_in_a_file_are_compared_piece_by_piece(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.repeat(unit(30), 2, axis=0))
    mapped = np.load(tmp_path / "v.npy", mmap_mode="r")
    index, used = make(tmp_path / "x", "hnsw", mapped)
    assert used[COPIES] == 30
    (tmp_path / "flat").mkdir()
    complete(NumpyFlat.build(tmp_path / "flat", mapped))
    exact = NumpyFlat.load(tmp_path / "flat").search(unit(5, seed=3), 6)[1]
    assert index.search(unit(5, seed=3), 6)[1].tolist() == exact.tolist()
