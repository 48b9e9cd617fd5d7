"""Contract of every retriever and every vector index, whatever its kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from building import built
from in_memory import InMemory
from tiny_retrieval import save_colbert, save_splade

from rallebench.core.entries import Manifest
from rallebench.core.errors import BackendError, MismatchError, NotFoundError, UsageError
from rallebench.core.types import Passage
from rallebench.corpora.imported import import_corpus
from rallebench.encoders import ENCODERS
from rallebench.encoders.hashing import Hashing
from rallebench.retrievers import INDEX_KINDS, kinds
from rallebench.workspace.entries import read_manifest
from rallebench.workspace.indexes.build import build_index
from rallebench.workspace.indexes.recipes import index_recipe

TEXTS = [
    ("Titan", "Titan is the largest moon of Saturn and has a thick atmosphere."),
    ("Triton", "Triton is the largest moon of Neptune and orbits backwards."),
    ("Paris, Texas", "Paris is a city in Lamar County, Texas."),
    ("多瑙河", "多瑙河是欧洲第二长河。"),
    ("Quotes", 'She said "no" and left; naïve café.'),
    ("Empty", ""),
]
KNOWN_WORDS = " ".join(f"{title} {text}" for title, text in TEXTS)
PASSAGES = [Passage(f"d{i}", text, title, f"p{i}") for i, (title, text) in enumerate(TEXTS)]


@pytest.fixture(scope="session", autouse=True)
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Kind → folder of the model that it needs."""
    folder = tmp_path_factory.mktemp("models")
    MODELS["splade"] = str(save_splade(folder / "splade", text=KNOWN_WORDS))
    MODELS["late-interaction"] = str(save_colbert(folder / "colbert", text=KNOWN_WORDS))
    return MODELS


MODELS: dict[str, str] = {}


def agree(results: Any, others: Any) -> bool:
    """The same passages, with scores equal but for rounding: networks round differently in other batches."""

    def passages(lists: Any) -> Any:
        return [[hit.passage for hit in hits] for hits in lists]

    def scores(lists: Any) -> Any:
        return [hit.score for hits in lists for hit in hits]

    same = passages(results) == passages(others)
    return same and scores(results) == pytest.approx(scores(others), rel=1e-5)


def build(
    folder: Path, kind: str, passages: list[Passage] = PASSAGES, name: str = "x", **options: Any
) -> Any:
    corpus = folder / f"{name}.tsv"
    corpus.write_text(
        "".join(f"{p.doc_id}\t{p.text}\t{p.title}\n" for p in passages), encoding="utf-8"
    )
    pages = folder / f"{name}.json"
    pages.write_text(__import__("json").dumps({p.doc_id: p.page_id for p in passages}))
    if kind in MODELS:
        options["settings"] = {"model": MODELS[kind], "device": "cpu"}
    manifest = built(
        folder / "indexes", name, corpus, kind, encoder=Hashing(), page_map=pages, **options
    )
    return INDEX_KINDS[kind].open(name, folder / "indexes" / name, manifest, Hashing())


def marked(kinds: list[str]) -> list[Any]:
    """The kinds. The kind with a server of its own is tested only in the long run."""
    return [
        pytest.param(kind, marks=pytest.mark.slow) if kind == "milvus" else kind for kind in kinds
    ]


@pytest.fixture(params=[*marked(kinds()), "in-memory"])
def retriever(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return InMemory(PASSAGES) if request.param == "in-memory" else build(tmp_path, request.param)


def test_hits_come_best_first_and_at_most_k(retriever: Any) -> None:
    for k in (1, 2, 5):
        hits = retriever.search(["largest moon of Saturn"], k)[0]
        assert 1 <= len(hits) <= k
        assert [h.score for h in hits] == sorted((h.score for h in hits), reverse=True)
    assert hits[0].passage == PASSAGES[0]


def test_the_passage_comes_back_whole(retriever: Any) -> None:
    for passage in PASSAGES[:5]:
        hits = retriever.search([f"{passage.title} {passage.text}"], 1)[0]
        assert hits[0].passage == passage


def test_a_batch_equals_one_by_one_in_the_asked_order(retriever: Any) -> None:
    queries = ["Neptune moon", "", "Texas city", "多瑙河", "Saturn"]
    assert agree(retriever.search(queries, 3), [retriever.search([q], 3)[0] for q in queries])


@pytest.mark.parametrize("query", ["", "   ", "\n\t"])
def test_an_empty_query_has_no_hits(retriever: Any, query: str) -> None:
    assert retriever.search([query], 5) == [()]


def test_a_smaller_k_is_a_prefix_where_the_retriever_says_so(retriever: Any) -> None:
    if not retriever.prefix_stable:
        pytest.skip("this kind does not promise it")
    deep = retriever.search(["largest moon city"], 5)[0]
    for k in range(1, 5):
        assert retriever.search(["largest moon city"], k)[0] == deep[:k]


@pytest.mark.parametrize(
    "query", ["\x00", "((((", '"', "'; DROP TABLE", "a" * 20_000, "\ud7ff\U0001f600", "%s %d {0}"]
)
def test_odd_queries_are_only_text(retriever: Any, query: str) -> None:
    assert len(retriever.search([query], 3)) == 1


@pytest.mark.parametrize("kind", kinds())
def test_an_index_asked_for_more_than_it_holds_gives_all_it_has(kind: str, tmp_path: Path) -> None:
    hits = build(tmp_path, kind).search(["moon"], 1000)[0]
    assert len(hits) == len(PASSAGES)
    assert hits[0].passage.title in ("Titan", "Triton")


# ── encoders ─────────────────────────────────────────────────────────────────


BY_NAME = [name for name in ENCODERS.names() if not ENCODERS.entry(name).traits.get("needs_model")]


@pytest.mark.parametrize("name", BY_NAME)
def test_an_encoder_gives_unit_vectors_in_the_asked_order(name: str) -> None:
    encoder = ENCODERS[name]()
    texts = ["short", "a much longer text " * 30, "", "多瑙河", "\U0001f600 odd \x00 bytes"]
    vectors = encoder.encode(texts, role="passage")
    assert vectors.shape == (len(texts), encoder.dim)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    alone = np.stack([encoder.encode([text], role="passage")[0] for text in texts])
    np.testing.assert_allclose(vectors, alone, atol=1e-5)
    assert encoder.encode([], role="query").shape == (0, encoder.dim)


# ── an index's description of itself ─────────────────────────────────────────


def test_the_fingerprint_changes_with_corpus_kind_and_parameters_only(tmp_path: Path) -> None:
    def fingerprint(
        name: str, kind: str = "bm25", passages: list[Passage] = PASSAGES, **options: Any
    ) -> str:
        return str(build(tmp_path, kind, passages, name, **options).fingerprint)

    same = fingerprint("a")
    assert fingerprint("b") == same
    others = [fingerprint("c", passages=PASSAGES[:-1]), fingerprint("e", kind="flat")]
    others.append(fingerprint("d", settings={"k1": 1.2}))
    assert len({same, *others}) == 4


@pytest.mark.parametrize("kind", ["bm25", "flat"])
def test_a_corpus_that_repeats_one_paragraph_is_indexed(kind: str, tmp_path: Path) -> None:
    copies = [
        Passage(str(n), "the same old paragraph about moons", "Moons", str(n)) for n in range(200)
    ]
    build(tmp_path, kind, copies)
    assert (tmp_path / "indexes" / "x" / "manifest.json").is_file()


def test_a_format_that_nobody_knows_is_refused_for_an_imported_corpus_too(tmp_path: Path) -> None:
    source = tmp_path / "c.tsv"
    source.write_text("1\ta\tb\n")
    list(import_corpus(tmp_path / "corpora", "kept", source))
    with pytest.raises(NotFoundError, match="There is no corpus format 'tvs'"):
        corpus = tmp_path / "corpora" / "kept"
        built(tmp_path / "indexes", "x", corpus, "bm25", form="tvs")
    assert not (tmp_path / "indexes").exists()


def test_a_failed_build_leaves_nothing(tmp_path: Path) -> None:
    bad = tmp_path / "bad.tsv"
    bad.write_text("1\ta\tb\n1\ta\tb\n")
    with pytest.raises(UsageError, match="repeats the id"):
        built(tmp_path / "indexes", "x", bad, "bm25")
    assert list((tmp_path / "indexes").iterdir()) == []


def test_another_encoder_than_the_indexs_own_is_refused_naming_both(tmp_path: Path) -> None:
    build(tmp_path, "flat")
    manifest = read_manifest(tmp_path / "indexes" / "x")

    class Other(Hashing):
        fingerprint = "other/512"
        dim = 512

    with pytest.raises(
        MismatchError, match=r"'hashing/256/1' \(256 dimensions\), you chose 'other/512' \(512\)"
    ):
        INDEX_KINDS["flat"].open("x", tmp_path / "indexes" / "x", manifest, Other())


def test_other_tokens_than_the_indexs_own_are_refused_naming_both(tmp_path: Path) -> None:
    build(tmp_path, "bm25")
    manifest = read_manifest(tmp_path / "indexes" / "x")
    old = manifest.model_copy(update={"parameters": {**manifest.parameters, "tokens": "stemmed/0"}})
    with pytest.raises(MismatchError, match="'stemmed/0', this version knows 'words-folded"):
        INDEX_KINDS["bm25"].open("x", tmp_path / "indexes" / "x", old)


def test_a_file_that_was_changed_after_the_build_is_noticed(tmp_path: Path) -> None:
    from rallebench.workspace.indexes.checks import check_index

    build(tmp_path, "bm25")
    folder = tmp_path / "indexes" / "x"
    manifest = Manifest.model_validate_json((folder / "manifest.json").read_text())
    check_index(folder, manifest)
    (folder / "passages.jsonl").write_text("short")
    with pytest.raises(BackendError, match=r"passages\.jsonl is missing or was changed"):
        check_index(folder, manifest)


def test_a_wrong_corpus_shows_in_the_fingerprint_not_in_the_name(tmp_path: Path) -> None:
    assert InMemory(PASSAGES).fingerprint != InMemory(PASSAGES[:-1]).fingerprint


def test_an_equal_index_is_not_built_again_and_another_one_is_refused(tmp_path: Path) -> None:
    build(tmp_path, "flat").close()
    corpus, pages = tmp_path / "x.tsv", tmp_path / "x.json"
    recipe = index_recipe(corpus, "flat", encoder="hashing", page_map=pages)
    events = build_index(tmp_path / "indexes", "x", recipe, encoder=Hashing())
    assert {event.message for event in events} == {"reading the corpus"}
    with pytest.raises(UsageError, match=r"holds something else \(flat over x.tsv"):
        built(tmp_path / "indexes", "x", corpus, "bm25", page_map=pages)


def test_a_damaged_index_of_the_name_is_to_be_removed_first(tmp_path: Path) -> None:
    build(tmp_path, "flat").close()
    next((tmp_path / "indexes" / "x").glob("*.faiss")).write_bytes(b"")
    with pytest.raises(BackendError, match=r"Remove the folder .*x before"):
        build(tmp_path, "flat")
