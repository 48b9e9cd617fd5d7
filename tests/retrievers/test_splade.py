"""Learned sparse retrieval: the weights of a SPLADE model in an inverted index."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from building import built
from safetensors.torch import load_file, save_file
from tiny_bert import save_bert
from tiny_retrieval import save_splade

from rallebench.core.errors import BackendError, BadFileError, MismatchError, RalleError, UsageError
from rallebench.retrievers import INDEX_KINDS, splade
from rallebench.retrievers._sentence_models import PassageModelSettings
from rallebench.retrievers._sparse_encoder import sparse_encoder

TEXTS = (
    ("Titan", "titan is the largest moon of saturn"),
    ("Triton", "triton is the largest moon of neptune"),
    ("Texas", "paris is a city in texas"),
    ("Again", "paris is a city in texas"),
    ("Again", "paris is a city in texas"),
)
QUERIES = ["largest moon of saturn", "city in texas", "river"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_splade(tmp_path_factory.mktemp("models") / "splade")


def build(folder: Path, model: Path, **settings: Any) -> Any:
    corpus = folder / "c.tsv"
    corpus.write_text("".join(f"{n}\t{text}\t{title}\n" for n, (title, text) in enumerate(TEXTS)))
    settings = {"model": str(model), "device": "cpu", **settings}
    return built(folder / "indexes", "x", corpus, "splade", settings=settings)


def open_index(folder: Path, manifest: Any) -> Any:
    return INDEX_KINDS["splade"].open("x", folder / "indexes" / "x", manifest, None)


def library_scores(model: Path) -> Any:
    """Float (queries, passages), as the library multiplies its own sparse vectors."""
    from sentence_transformers import SparseEncoder

    library = SparseEncoder(str(model), device="cpu", local_files_only=True)
    passages = library.encode_document([f"{title}, {text}" for title, text in TEXTS])
    return library.similarity(library.encode_query(QUERIES), passages).to_dense().numpy()


def test_scores_are_the_librarys_inner_products_and_ties_go_to_the_earlier_passage(
    model: Path, tmp_path: Path
) -> None:
    opened = open_index(tmp_path, build(tmp_path, model))
    for hits, expected in zip(opened.search(QUERIES, 5), library_scores(model)):
        order = np.argsort(-expected.round(4), kind="stable")
        assert [int(hit.passage.doc_id) for hit in hits] == order.tolist()
        assert [hit.score for hit in hits] == pytest.approx(expected[order], rel=1e-5)
    assert opened.search(["city in texas"], 2)[0][0].passage.doc_id in "234"


def test_lists_by_term_equal_the_transposed_matrix_whatever_the_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import scipy.sparse

    matrix = scipy.sparse.random(40, 17, density=0.3, format="csr", random_state=1, dtype="f4")
    columns = matrix.tocsc()
    for entries in (1, 7, 10_000):
        monkeypatch.setattr(splade, "ENTRIES", entries)
        (tmp_path / "terms.part").write_bytes(matrix.indices.astype("<i4").tobytes())
        (tmp_path / "own.part").write_bytes(matrix.data.tobytes())
        counts = np.bincount(matrix.indices, minlength=17)
        splade.invert(tmp_path, np.diff(matrix.indptr).astype(np.int64), counts)
        assert np.load(tmp_path / "starts.npy").tolist() == columns.indptr.tolist()
        assert np.load(tmp_path / "rows.npy").tolist() == columns.indices.tolist()
        assert np.load(tmp_path / "weights.npy").tolist() == columns.data.tolist()
        assert not list(tmp_path.glob("*.part"))


def test_queries_and_passages_may_have_models_of_their_own(model: Path, tmp_path: Path) -> None:
    from sentence_transformers import SparseEncoder
    from sentence_transformers.base.modules import Router
    from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding

    passages = SparseEncoder(str(model), device="cpu", local_files_only=True)
    query = SparseStaticEmbedding(passages.tokenizer)
    router = Router.for_query_document(query_modules=[query], document_modules=[*passages])
    SparseEncoder(modules=[router], device="cpu").save_pretrained(str(tmp_path / "two"))
    opened = open_index(tmp_path, build(tmp_path, tmp_path / "two"))
    assert opened.search(["saturn"], 1)[0][0].passage.title == "Titan"


def test_a_loaded_model_is_shared_and_known_by_its_content(model: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(model, tmp_path / "copied")
    settings = PassageModelSettings(str(model), "cpu")
    first = sparse_encoder("x", settings)
    assert sparse_encoder("y", settings) is first
    others = [PassageModelSettings(str(copied), "cpu"), PassageModelSettings(str(model), "cpu", 9)]
    prints = [sparse_encoder("x", other).fingerprint for other in others]
    assert prints[0] == first.fingerprint != prints[1]


def without_head(model: Path, folder: Path) -> Path:
    """A copy whose weights lack the head."""
    shutil.copytree(model, folder)
    tensors = load_file(folder / "model.safetensors")
    others = {name: tensor for name, tensor in tensors.items() if not name.startswith("cls.")}
    assert others and len(others) < len(tensors)
    save_file(others, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def test_a_model_without_its_head_is_refused_and_nothing_is_left(
    model: Path, tmp_path: Path
) -> None:
    cases = (
        (without_head(model, tmp_path / "beheaded"), BadFileError, "lack the head"),
        (save_bert(tmp_path / "dense"), UsageError, "has no head for sparse vectors"),
        (save_bert(tmp_path / "bare", bare=True), UsageError, "has no head for sparse vectors"),
        (tmp_path / "nowhere", BadFileError, "does not exist"),
    )
    for folder, kind, sentence in cases:
        with pytest.raises(kind, match=sentence) as refused:
            build(tmp_path, folder)
        assert "\n" not in str(refused.value)
    assert list((tmp_path / "indexes").iterdir()) == []


def test_a_model_that_weighs_nothing_is_refused(model: Path, tmp_path: Path) -> None:
    silent = shutil.copytree(model, tmp_path / "silent")
    tensors = load_file(silent / "model.safetensors")
    tensors["cls.predictions.bias"] -= 1e6
    save_file(tensors, silent / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BackendError, match="gave no passage any weight"):
        build(tmp_path, silent)
    assert list((tmp_path / "indexes").iterdir()) == []


def test_another_model_than_the_indexs_own_is_refused_naming_both(
    model: Path, tmp_path: Path
) -> None:
    manifest = build(tmp_path, model)

    def open_with(folder: Path) -> None:
        parameters = {**manifest.parameters, "model": str(folder)}
        open_index(tmp_path, manifest.model_copy(update={"parameters": parameters}))

    with pytest.raises(
        MismatchError, match=r"was built with the model sha256:.* now holds sha256:"
    ):
        open_with(save_splade(tmp_path / "other", seed=4))
    more = save_splade(tmp_path / "more", text="entirely other words")
    with pytest.raises(MismatchError, match=r"vectors of 50 terms, the model .* gives 53"):
        open_with(more)


@pytest.mark.parametrize("file", ["starts.npy", "rows.npy", "weights.npy", "passages.npy"])
def test_a_damaged_file_is_one_sentence(file: str, model: Path, tmp_path: Path) -> None:
    manifest = build(tmp_path, model)
    path = tmp_path / "indexes" / "x" / "splade" / file
    np.save(path, np.load(path)[:-1])
    with pytest.raises(RalleError, match="splade") as refused:
        open_index(tmp_path, manifest)
    assert "\n" not in str(refused.value)
