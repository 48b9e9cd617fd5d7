"""Any sentence-transformers folder gives the same vectors as the library, with its prompts, and fails with one
sentence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_bert import save_bert

from rallebench.core.errors import BackendError, RalleError, UsageError
from rallebench.encoders import BulkEncoder
from rallebench.encoders.batches import cuts
from rallebench.encoders.half_precision import to_half_precision
from rallebench.encoders.references import open_encoder
from rallebench.services.workbench import Workbench

TEXTS = [
    "the largest moon of saturn",
    "",
    "paris , texas . " * 30,
    "a",
    "\ud800 odd",
    "多瑙河",
    "the river danube in 1 2 3",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    prompts = {"query": "query : ", "document": "passage : "}
    return save_bert(tmp_path_factory.mktemp("models") / "with prompts", prompts=prompts)


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Any:
    return open_encoder(f"sentence_transformers:{folder}")


def library(folder: Path) -> Any:
    import sentence_transformers

    return sentence_transformers.SentenceTransformer(
        str(folder), device="cpu", local_files_only=True
    )


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "model"))


# ── the vectors ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("role", "prompt"), [("query", "query : "), ("passage", "passage : ")])
def test_the_vectors_are_those_of_the_library_with_the_models_own_prompts(
    encoder: Any, folder: Path, role: str, prompt: str
) -> None:
    texts = [text.replace("\ud800", "?") for text in TEXTS]
    expected = library(folder).encode(texts, prompt=prompt, normalize_embeddings=True)
    np.testing.assert_allclose(encoder.encode(TEXTS, role=role), expected, atol=2e-6)


def test_given_prompts_stand_in_place_of_the_models_own(folder: Path) -> None:
    given = open_encoder(f"sentence_transformers:{folder}?query_prompt=moon : &passage_prompt=")
    model = library(folder)
    for role, text in (("query", "moon : titan"), ("passage", "titan")):
        expected = model.encode([text], normalize_embeddings=True)
        np.testing.assert_allclose(given.encode(["titan"], role=role), expected, atol=2e-6)


def test_vectors_are_unit_float32_in_the_asked_order_whatever_is_beside_them(encoder: Any) -> None:
    vectors = encoder.encode(TEXTS, role="passage")
    assert vectors.dtype == np.float32 and vectors.shape == (len(TEXTS), encoder.dim)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    alone = np.concatenate([encoder.encode([text], role="passage") for text in TEXTS])
    np.testing.assert_allclose(vectors, alone, atol=2e-6)
    assert encoder.encode([], role="query").shape == (0, encoder.dim)


def test_bfloat16_passages_come_close_to_float32_and_leave_the_model_alone(encoder: Any) -> None:
    assert isinstance(encoder, BulkEncoder)
    before = encoder.encode(TEXTS, role="passage")
    found = np.zeros_like(before)
    for rows, vectors in encoder.bulk("bfloat16")(TEXTS):
        found[rows] = vectors
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-6)
    cosines = (found * before).sum(axis=1)
    assert cosines.min() > 0.999
    assert cosines.max() < 1.0 or not np.array_equal(found, before)
    np.testing.assert_array_equal(encoder.encode(TEXTS, role="passage"), before)


def test_the_half_precision_twin_copies_matrices_only() -> None:
    import torch

    model = torch.nn.Sequential(
        torch.nn.Embedding(10, 4), torch.nn.Linear(4, 4), torch.nn.LayerNorm(4)
    )
    twin = to_half_precision(model)
    assert twin[0].weight is model[0].weight and twin[2].weight is model[2].weight
    assert twin[1].weight.dtype == torch.bfloat16 and model[1].weight.dtype == torch.float32
    assert twin(torch.tensor([[1, 2]])).dtype == torch.float32


def test_batches_hold_texts_of_like_length_and_never_more_tokens_than_the_budget() -> None:
    lengths = sorted(np.random.default_rng(1).integers(1, 300, size=500), reverse=True)
    covered = []
    for start, stop in cuts(lengths, 1024, 16):
        assert stop - start == 1 or (stop - start) * lengths[start] <= 1024
        assert 1 <= stop - start <= 16
        covered += range(start, stop)
    assert covered == list(range(500))


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_a_folder_without_pooling_takes_the_one_that_is_given(tmp_path: Path, pooling: str) -> None:
    bare, same = (
        save_bert(tmp_path / "bare", bare=True),
        save_bert(tmp_path / "same", pooling=pooling),
    )
    given = open_encoder(f"sentence_transformers:{bare}?pooling={pooling}")
    np.testing.assert_allclose(
        given.encode(TEXTS[:1], role="query"),
        library(same).encode(TEXTS[:1], normalize_embeddings=True),
        atol=2e-6,
    )


def test_longer_texts_are_cut_at_max_tokens(folder: Path) -> None:
    short = open_encoder(f"sentence_transformers:{folder}?max_tokens=8&passage_prompt=")
    full, cut = "titan moon of saturn and paris and texas", "titan moon of saturn and paris"
    np.testing.assert_allclose(
        short.encode([full], role="passage"), short.encode([cut], role="passage"), atol=2e-6
    )


def test_a_query_encoder_in_8_bit_encodes_no_passages(folder: Path, encoder: Any) -> None:
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed")
    small = open_encoder(f"sentence_transformers:{folder}?quantization=8bit")
    assert small.fingerprint == encoder.fingerprint
    cosine = (small.encode(TEXTS[:1], role="query") * encoder.encode(TEXTS[:1], role="query")).sum()
    assert 0.98 < cosine < 1.0
    with pytest.raises(UsageError, match="is loaded in 8bit, which is for queries"):
        small.bulk("float32")


def test_an_index_is_searched_with_its_query_encoder_in_8_bit(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed")
    corpus = tmp_path / "corpus.tsv"
    corpus.write_text(
        "1\tthe largest moon of saturn\tTitan\n2\tparis was a big city in texas\tParis\n",
        encoding="utf-8",
    )
    bench = Workbench(tmp_path)
    list(bench.data.build_index("mine", corpus, "flat", encoder=f"sentence_transformers:{folder}"))
    list(bench.models.load("mine?query_quantization=8bit", "retriever"))
    small, whole = (
        bench.models.backends.retrievers[name] for name in ("mine?query_quantization=8bit", "mine")
    )
    assert small.fingerprint != whole.fingerprint
    (ours,), (theirs,) = (
        retriever.search(["titan moon of saturn"], 1) for retriever in (small, whole)
    )
    assert (
        ours[0].score == pytest.approx(theirs[0].score, abs=0.05)
        and ours[0].score != theirs[0].score
    )
    bench.close()


# ── the fingerprint ──────────────────────────────────────────────────────────


def test_the_fingerprint_names_content_prompts_length_and_pooling_not_the_place_or_the_type(
    folder: Path, copied: Path, encoder: Any
) -> None:
    def fingerprint(where: Path, more: str = "") -> str:
        return open_encoder(f"sentence_transformers:{where}{more}").fingerprint

    assert (
        fingerprint(copied) == fingerprint(copied, "?dtype=bfloat16&batch=7") == encoder.fingerprint
    )
    others = [
        fingerprint(copied, f"?{more}")
        for more in ("query_prompt=x", "max_tokens=9", "pooling=cls")
    ]
    config = copied / "1_Pooling" / "config.json"
    config.write_text(config.read_text().replace("true", "1").replace("false", "0"))
    others.append(fingerprint(copied))
    assert len({encoder.fingerprint, *others}) == 5


def test_other_weights_have_another_fingerprint(tmp_path: Path, encoder: Any) -> None:
    other = save_bert(
        tmp_path / "other", seed=4, prompts={"query": "query : ", "document": "passage : "}
    )
    assert open_encoder(f"sentence_transformers:{other}").fingerprint != encoder.fingerprint


# ── faults of a model ────────────────────────────────────────────────────────


def without(*names: str) -> Callable[[Path], None]:
    return lambda folder: [(folder / name).unlink() for name in names]  # type: ignore[return-value]


def spoil_weights(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])


def become_a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("x")


def take_tensors(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    kept = {
        name: t
        for name, t in load_file(folder / "model.safetensors").items()
        if ".layer.1." not in name
    }
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})


def name_a_strange_model(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "hyperbert"}))


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (spoil_weights, "damaged, truncated, or only a git-lfs pointer; download the model again"),
        (without("model.safetensors"), "contains no weights .* download the model again"),
        (take_tensors, "lack .* tensors .* would be random; download the model again"),
        (without("config.json", "modules.json"), "has no config.json"),
        (
            without("tokenizer.json", "tokenizer_config.json"),
            r"contains no tokenizer; copy the model's tokenizer\.json",
        ),
        (become_a_file, "is a file; give the folder"),
        (name_a_strange_model, "does not know the architecture"),
        (lambda folder: shutil.rmtree(folder), "does not exist; give the folder"),
    ],
)
def test_a_folder_without_a_whole_model_is_refused(copied: Path, spoil: Any, sentence: str) -> None:
    spoil(copied)
    with pytest.raises(RalleError, match=sentence) as caught:
        open_encoder(f"sentence_transformers:{copied}")
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, UsageError)


def test_a_hub_model_without_a_network_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(
        BackendError,
        match=r"e5-base-v2 is neither a folder here nor in the local .* unset HF_HUB_OFFLINE",
    ):
        open_encoder("e5-base-v2")


def test_a_text_that_the_model_cannot_take_is_named_by_its_tokens(copied: Path) -> None:
    # A model that declares more tokens than it has positions.
    (copied / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 500}))
    tokenizer = json.loads((copied / "tokenizer_config.json").read_text())
    (copied / "tokenizer_config.json").write_text(
        json.dumps({**tokenizer, "model_max_length": 500})
    )
    config = json.loads((copied / "config.json").read_text())
    assert config["max_position_embeddings"] == 64
    encoder = open_encoder(f"sentence_transformers:{copied}")
    with pytest.raises(BackendError, match=r"failed on a text of 404 tokens .* set max_tokens"):
        encoder.encode(["moon " * 400], role="passage")
