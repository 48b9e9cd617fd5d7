"""Late interaction: a ColBERT model over a whole corpus, and as a re-ranker over any retriever."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from building import built
from listed import Listed, combined, ids, passage
from tiny_bert import save_bert
from tiny_retrieval import save_colbert, save_splade

from rallebench.core.errors import BackendMemoryError, BadFileError, MismatchError, UsageError
from rallebench.retrievers import INDEX_KINDS, late_interaction

TEXTS = (
    ("Titan", "titan is the largest moon of saturn"),
    ("", ""),
    ("Triton", "triton is the largest moon of neptune. " * 3),
    ("Texas", "paris is a city in texas"),
    ("Again", "paris is a city in texas"),
)
QUERIES = ["largest moon of saturn", "a city in texas", "river"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_colbert(tmp_path_factory.mktemp("models") / "colbert", prompts=True)


def build(folder: Path, model: Path, name: str = "x", **settings: Any) -> Any:
    corpus = folder / "c.tsv"
    corpus.write_text("".join(f"{n}\t{text}\t{title}\n" for n, (title, text) in enumerate(TEXTS)))
    settings = {"model": str(model), "device": "cpu", **settings}
    return built(folder / "indexes", name, corpus, "late-interaction", settings=settings)


def open_index(folder: Path, manifest: Any) -> Any:
    kind = INDEX_KINDS["late-interaction"]
    return kind.open(manifest.name, folder / "indexes" / manifest.name, manifest, None)


def library_scores(model: Path, texts: list[str]) -> Any:
    """Float (queries, texts): the library's own MaxSim."""
    from sentence_transformers import MultiVectorEncoder

    library = MultiVectorEncoder(str(model), device="cpu", local_files_only=True)
    return library.similarity(library.encode_query(QUERIES), library.encode_document(texts)).numpy()


def test_scores_are_the_librarys_whatever_the_block(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_index(tmp_path, build(tmp_path, model))
    expected = library_scores(model, [f"{title}, {text}" for title, text in TEXTS])
    for block in (1, 20, 8192):
        monkeypatch.setattr(late_interaction, "BLOCK", block)
        for hits, scores in zip(opened.search(QUERIES, 5), expected):
            order = np.argsort(-scores, kind="stable")
            assert [int(hit.passage.doc_id) for hit in hits] == order.tolist()
            assert [hit.score for hit in hits] == pytest.approx(scores[order], abs=1e-4)


def test_half_precision_takes_half_the_bytes_and_keeps_the_order(
    model: Path, tmp_path: Path
) -> None:
    whole, half = build(tmp_path, model), build(tmp_path, model, "half", vectors="float16")
    vectors = "late/tokens.npy"
    assert 2 * (half.files[vectors] - 128) == whole.files[vectors] - 128
    for hits, others in zip(
        open_index(tmp_path, whole).search(QUERIES, 5),
        open_index(tmp_path, half).search(QUERIES, 5),
    ):
        assert ids(hits) == ids(others)
        assert [h.score for h in hits] == pytest.approx([h.score for h in others], abs=0.02)


def test_a_corpus_that_does_not_fit_is_refused_before_and_while_it_is_encoded(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_interaction, "size", lambda count: f"{count} B")
    sentence = r"token vectors of 5 passages take about \d+ B, and {}, .*late-rerank"
    rooms: list[int] = []
    monkeypatch.setattr(late_interaction, "free_ram_bytes", lambda: rooms.pop(0))
    for free, limit in (([500], "500 B are free"), ([10**9, 400], "400 B are free")):
        rooms[:] = free
        with pytest.raises(BackendMemoryError, match=sentence.format(limit)):
            build(tmp_path, model)
        assert not rooms and list((tmp_path / "indexes").iterdir()) == []
    with pytest.raises(BackendMemoryError, match=r"at most 2000 B are allowed \(most_gb\)"):
        late_interaction.check_room(2001, 5, 2e-6, free=10**9)
    late_interaction.check_room(2000, 5, 2e-6, free=10**9)


def test_a_model_that_is_not_made_for_it_is_refused_and_nothing_is_left(
    model: Path, tmp_path: Path
) -> None:
    unprojected = shutil.copytree(model, tmp_path / "unprojected")
    (unprojected / "1_Dense" / "model.safetensors").unlink()
    cases = (
        (save_bert(tmp_path / "dense"), UsageError, "is not a model for late interaction"),
        (
            save_bert(tmp_path / "bare", bare=True),
            UsageError,
            "is not a model for late interaction",
        ),
        (save_splade(tmp_path / "splade"), UsageError, "is not a model for late interaction"),
        (unprojected, Exception, "could not be loaded|lacks the weights"),
    )
    for folder, kind, sentence in cases:
        with pytest.raises(kind, match=sentence) as refused:
            build(tmp_path, folder)
        assert "\n" not in str(refused.value)
    assert list((tmp_path / "indexes").iterdir()) == []


def test_another_dimension_than_the_indexs_is_refused_naming_both(
    model: Path, tmp_path: Path
) -> None:
    manifest = build(tmp_path, model)

    def open_with(folder: Path) -> None:
        parameters = {**manifest.parameters, "model": str(folder)}
        open_index(tmp_path, manifest.model_copy(update={"parameters": parameters}))

    with pytest.raises(MismatchError, match=r"vectors of 32 dimensions, the model .* gives 16"):
        open_with(save_colbert(tmp_path / "narrow", dim=16))
    with pytest.raises(
        MismatchError, match=r"was built with the model sha256:.* now holds sha256:"
    ):
        open_with(save_colbert(tmp_path / "other", seed=5, prompts=True))


def test_a_damaged_file_is_one_sentence(model: Path, tmp_path: Path) -> None:
    manifest = build(tmp_path, model)
    path = tmp_path / "indexes" / "x" / "late" / "tokens.npy"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(BadFileError, match=r"tokens\.npy"):
        open_index(tmp_path, manifest)


def test_a_re_ranker_orders_the_hits_of_any_retriever_by_maxsim(model: Path) -> None:
    listed = Listed(
        *((passage(str(n), text), 9.0 - n) for n, (_, text) in enumerate(TEXTS) if text)
    )
    expected = library_scores(model, [f"title {n}, {text}" for n, (_, text) in enumerate(TEXTS)])
    reranked = combined("late-rerank", listed, model=str(model), device="cpu", depth=4)
    for hits, scores in zip(reranked.search(QUERIES, 4), expected):
        filled = [n for n in np.argsort(-scores, kind="stable").tolist() if TEXTS[n][1]]
        assert ids(hits) == [str(n) for n in filled]
        assert [hit.score for hit in hits] == pytest.approx(scores[filled], abs=1e-4)
    assert (
        reranked.fingerprint
        != combined("late-rerank", listed, model=str(model), depth=3).fingerprint
    )
