"""Contract of every kind of vector index, against the exact reference."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from full_disk import no_file_grows_beyond

from rallebench.core.errors import (
    BackendError,
    BadFileError,
    MissingPackageError,
    RalleError,
    UsageError,
)
from rallebench.core.events import complete
from rallebench.core.settings import check_values
from rallebench.vector_indexes import VECTOR_INDEXES

COUNT, DIM, QUERIES, K = 1500, 32, 40, 10
DETERMINISTIC = {"hnsw": {"threads": 1}, "hnswlib": {"threads": 1}, "ivf-sq8": {"threads": 1}}
SMALLEST = {"m": 2, "ef_construction": 1, "graph_degree": 4, "build_complexity": 4}
SMALLEST |= {"pq_bytes": 1, "nlist": 1}


def clustered(count: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Unit vectors around 30 centres."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(size=(30, DIM))
    vectors = centres[rng.integers(0, 30, count)] + 0.5 * rng.normal(size=(count, DIM))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


VECTORS, ASKED = clustered(COUNT), clustered(QUERIES, seed=1)


def make(folder: Path, kind: str, vectors: Any, **settings: Any) -> Any:
    folder.mkdir(parents=True)
    maker = VECTOR_INDEXES[kind]
    try:
        complete(maker.build(folder, vectors, **settings))
    except MissingPackageError as absent:
        pytest.skip(str(absent))
    return maker.load(folder)


def reference(
    vectors: np.ndarray[Any, Any], asked: np.ndarray[Any, Any], k: int
) -> np.ndarray[Any, Any]:
    products = asked.astype(np.float64) @ vectors.astype(np.float64).T
    return np.argsort(-products, axis=1, kind="stable")[:, :k]


def recall(rows: np.ndarray[Any, Any], true: np.ndarray[Any, Any]) -> float:
    return float(
        np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(rows.tolist(), true.tolist())])
    )


def products(
    vectors: np.ndarray[Any, Any], asked: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]
) -> Any:
    return np.einsum("qkd,qd->qk", vectors[rows].astype(np.float64), asked)


def marked(kinds: list[str]) -> list[Any]:
    """The kinds. The kind with a server of its own is tested only in the long run."""
    return [
        pytest.param(kind, marks=pytest.mark.slow) if kind == "milvus" else kind for kind in kinds
    ]


@pytest.fixture(scope="module", params=marked(VECTOR_INDEXES.names()))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp(kind) / "index"


@pytest.fixture(scope="module")
def index(kind: str, folder: Path) -> Iterator[Any]:
    index = make(folder, kind, VECTORS)
    yield index
    index.close()


def test_it_finds_what_the_exact_reference_finds(index: Any) -> None:
    rows = index.search(ASKED, K)[1]
    assert recall(rows, reference(VECTORS, ASKED, K)) >= (1.0 if index.exact else 0.95)


def test_scores_are_inner_products_best_first(index: Any) -> None:
    scores, rows = index.search(ASKED, K)
    assert (scores.shape, scores.dtype) == ((QUERIES, K), np.float32)
    assert (rows.shape, rows.dtype) == ((QUERIES, K), np.int64)
    np.testing.assert_allclose(scores, products(VECTORS, ASKED, rows), atol=1e-5)
    assert np.all(np.diff(scores, axis=1) <= 1e-6)
    assert all(len(set(row)) == K for row in rows.tolist())


def test_a_batch_equals_one_by_one(index: Any) -> None:
    scores, rows = index.search(ASKED, K)
    for number in range(QUERIES):
        alone = index.search(ASKED[number : number + 1], K)
        assert alone[1][0].tolist() == rows[number].tolist()
        np.testing.assert_allclose(alone[0][0], scores[number], atol=2e-5)


def test_a_smaller_k_is_a_prefix_where_the_index_is_exact(index: Any) -> None:
    if not index.exact:
        pytest.skip("this kind does not promise it")
    rows = index.search(ASKED, K)[1]
    assert all(index.search(ASKED, k)[1].tolist() == rows[:, :k].tolist() for k in range(1, K))


def test_no_query_has_no_answer(index: Any) -> None:
    scores, rows = index.search(np.empty((0, DIM), dtype=np.float32), K)
    assert scores.shape == rows.shape == (0, K)


def test_an_index_opened_again_answers_the_same(index: Any, kind: str, folder: Path) -> None:
    if kind == "milvus":
        pytest.skip("its embedded engine opens a file once")
    again = VECTOR_INDEXES[kind].load(folder)
    for one, other in zip(index.search(ASKED, K), again.search(ASKED, K)):
        np.testing.assert_array_equal(one, other)
    again.close()


def test_every_knob_is_taken_and_its_default_goes_without_saying(index: Any, kind: str) -> None:
    knobs = check_values(
        f"index kind {kind!r}", VECTOR_INDEXES.entry(kind).traits["search_form"], {}
    )
    for one, other in zip(index.search(ASKED, K), index.search(ASKED, K, **knobs)):
        np.testing.assert_array_equal(one, other)


def test_a_knob_or_setting_that_the_kind_lacks_is_refused_naming_those_it_has(kind: str) -> None:
    entry = VECTOR_INDEXES.entry(kind)
    for known in (entry.form, entry.traits["search_form"]):
        with pytest.raises(UsageError, match="has no setting 'speed'") as refused:
            check_values(f"index kind {kind!r}", known, {"speed": 9})
        assert all(name in str(refused.value) for name in known)
        assert all(setting.about for setting in known.values())


@pytest.mark.parametrize("count", [1, 2, 5, 40])
def test_a_tiny_corpus_is_found_whole_for_any_number(kind: str, count: int, tmp_path: Path) -> None:
    vectors = VECTORS[:count]
    index = make(tmp_path / "x", kind, vectors)
    scores, rows = index.search(ASKED, count + 7)
    assert rows[:, :count].tolist() == reference(vectors, ASKED, count).tolist()
    assert (rows[:, count:] == -1).all() and np.isneginf(scores[:, count:]).all()
    index.close()


def test_copies_of_one_vector_do_not_break_a_search(kind: str, tmp_path: Path) -> None:
    vectors = np.concatenate([np.repeat(VECTORS[:1], 60, axis=0), VECTORS[1:100]])
    index = make(tmp_path / "x", kind, vectors)
    scores, rows = index.search(VECTORS[:5], 20)
    there = rows >= 0
    np.testing.assert_allclose(
        scores[there], products(vectors, VECTORS[:5], np.maximum(rows, 0))[there], atol=1e-5
    )
    assert all(len(set(row)) == len(row) for row in (r[r >= 0].tolist() for r in rows))
    assert set(rows[0][there[0]]) <= set(range(60)) and there[0].sum() >= 10
    if index.exact and kind != "milvus":  # its server breaks ties in any order
        assert rows[0].tolist() == list(range(20))
    index.close()


def test_inner_products_are_ranked_for_vectors_of_any_length(kind: str, tmp_path: Path) -> None:
    longer = np.random.default_rng(3).uniform(0.5, 1.5, size=(COUNT, 1)).astype(np.float32)
    vectors, asked = VECTORS * longer, ASKED * np.float32(3)
    index = make(tmp_path / "x", kind, vectors)
    scores, rows = index.search(asked, K)
    assert recall(rows, reference(vectors, asked, K)) >= (1.0 if index.exact else 0.9)
    np.testing.assert_allclose(scores, products(vectors, asked, rows), rtol=1e-5, atol=1e-5)
    index.close()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_vector_without_a_number_is_named_so(kind: str, wrong: float, tmp_path: Path) -> None:
    vectors = VECTORS[:1200].copy()
    vectors[1100, 3] = wrong
    sentence = r"Vector 1101 of 1200 contains a value that is not a number"
    with pytest.raises(RalleError, match=sentence) as refused:
        make(tmp_path / "x", kind, vectors)
    assert isinstance(refused.value, BackendError)


def test_vectors_may_lie_in_a_file(kind: str, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", VECTORS)
    index = make(tmp_path / "x", kind, np.load(tmp_path / "v.npy", mmap_mode="r"))
    assert recall(index.search(ASKED, K)[1], reference(VECTORS, ASKED, K)) >= 0.95
    index.close()
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), VECTORS)


def test_a_file_that_was_cut_short_is_refused_in_a_sentence(
    kind: str, folder: Path, index: Any, tmp_path: Path
) -> None:
    if kind == "milvus":
        pytest.skip("its embedded engine checks its own file")
    for number, path in enumerate(sorted(folder.iterdir())):
        copy = tmp_path / str(number)
        copy.mkdir()
        for other in folder.iterdir():
            (copy / other.name).write_bytes(other.read_bytes())
        (copy / path.name).write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        with pytest.raises(BadFileError, match=path.name.replace(".", r"\.")):
            VECTOR_INDEXES[kind].load(copy)


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_one_thread_builds_the_same_index_twice(name: str, tmp_path: Path) -> None:
    files = []
    for number in range(2):
        make(tmp_path / str(number), name, VECTORS[:600], **DETERMINISTIC[name]).close()
        files.append({p.name: p.read_bytes() for p in (tmp_path / str(number)).iterdir()})
    assert files[0] == files[1]


def test_a_build_tells_how_far_it_is_and_can_be_stopped(kind: str, tmp_path: Path) -> None:
    if kind == "milvus":
        pytest.skip("tests/retrievers/test_milvus.py stops it")
    try:
        steps = VECTOR_INDEXES[kind].build(tmp_path, VECTORS)
        first = next(steps)
    except MissingPackageError as absent:
        pytest.skip(str(absent))
    assert first == (0, COUNT)
    steps.close()
    (tmp_path / "again").mkdir()
    told = list(VECTOR_INDEXES[kind].build(tmp_path / "again", VECTORS))
    assert told[-1] == (COUNT, COUNT)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_the_names_of_the_packages_that_a_kind_needs_are_told_where_they_are_absent(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = {"faiss-cpu": "faiss", "hnswlib": "hnswlib", "diskannpy": "diskannpy"}
    missing = [p for p in VECTOR_INDEXES.entry(kind).traits["packages"] if p in needed]
    if not missing:
        pytest.skip("this kind needs none")
    monkeypatch.setitem(sys.modules, needed[missing[0]], None)
    with pytest.raises(MissingPackageError, match=f"{missing[0]} is not installed"):
        complete(VECTOR_INDEXES[kind].build(tmp_path, VECTORS[:5]))


@pytest.mark.parametrize("kind", ["flat", "hnsw", "hnswlib", "ivf-sq8"])
@pytest.mark.parametrize("size", [8_000, 100_000])
def test_a_disk_that_fills_up_then_ends_the_build(kind: str, size: int, tmp_path: Path) -> None:
    with pytest.raises((BackendError, RuntimeError, OSError)), no_file_grows_beyond(size):
        make(tmp_path / "index", kind, VECTORS, **DETERMINISTIC.get(kind, {}))
