"""One text names an encoder, everywhere: a registered name, a preset, or a full reference with settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from building import built

from rallebench.core.errors import MismatchError, UsageError
from rallebench.core.registry import Entry
from rallebench.core.settings import Setting, check_values
from rallebench.encoders import ENCODERS
from rallebench.encoders.hashing import Hashing
from rallebench.encoders.references import (
    check_encoder,
    encoders,
    open_encoder,
    presets,
    with_settings,
)
from rallebench.encoders.sentence_transformers import SETTINGS
from rallebench.workspace.opening import Encoders, open_retriever
from rallebench.workspace.paths import WorkspaceFolder

# Published: the model cards of each family.
SIZES = ("small", "base", "large")
E5 = ("query: ", "passage: ")
BGE_EN = ("Represent this sentence for searching relevant passages: ", "")
BGE_ZH = ("为这个句子生成表示以用于检索相关文章：", "")
TASK = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
)
PROMPTS = {
    "multilingual-e5-large-instruct": (f"{TASK} ", ""),
    "qwen3-embedding-0.6b": (TASK, ""),
    **dict.fromkeys((f"e5-{size}-v2" for size in SIZES), E5),
    **dict.fromkeys((f"multilingual-e5-{size}" for size in SIZES), E5),
    **dict.fromkeys((f"bge-{size}-en-v1.5" for size in SIZES), BGE_EN),
    **dict.fromkeys((f"bge-{size}-zh-v1.5" for size in SIZES), BGE_ZH),
    **dict.fromkeys(("bge-base-zh-v1.5-plain", *(f"gte-{size}" for size in SIZES)), ("", "")),
    **dict.fromkeys(("gte-multilingual-base", "m3e-base", "stella-base-zh-v2"), ("", "")),
    "stella-base-zh-v3-1792d": ("", ""),
}


def test_every_preset_has_the_prompts_of_its_model_card() -> None:
    found = {
        name: (preset["query_prompt"], preset["passage_prompt"])
        for name, preset in presets().items()
    }
    assert found == PROMPTS


@pytest.mark.parametrize("name", presets())
def test_a_presets_settings_are_ones_that_the_encoder_takes(name: str) -> None:
    preset = presets()[name]
    settings = {
        key: value for key, value in preset.items() if key not in ("about", "dim", "remote_code")
    }
    assert check_values(name, SETTINGS, settings)["model"].count("/") == 1
    assert preset["dim"] > 0 and str(preset["dim"]) in preset["about"]
    if "remote_code" in preset:
        with pytest.raises(
            UsageError, match=rf"contains Python code.*{name}\?trust_remote_code=true"
        ):
            check_encoder(name)
    else:
        check_encoder(name)


def test_names_that_need_no_model_are_listed_and_open() -> None:
    assert {"hashing", "minilm", "e5-base-v2"} <= encoders().keys()
    assert not {"sentence_transformers", "openai_embeddings"} & encoders().keys()
    assert all(encoders().values())
    assert open_encoder("hashing").name == "hashing"


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        (
            "hash",
            r"There is no encoder 'hash'\. Did you mean 'hashing'\? .*sentence_transformers:MODEL",
        ),
        ("minilm:x", "There is no encoder 'minilm:x'"),
        ("", "There is no encoder ''"),
        (
            "sentence_transformers",
            "'sentence_transformers' needs a model: write sentence_transformers:MODEL",
        ),
        ("openai_embeddings:?base_url=http://127.0.0.1:1/v1", "needs the setting 'model'"),
        ("minilm?dtype", "The setting 'dtype' is not key=value"),
        ("minilm?dtype=int8", "dtype=int8: dtype must be one of auto, float32, bfloat16"),
        ("minilm?colour=red", "'minilm' has no setting 'colour'; it has dtype"),
        ("sentence_transformers:/x?colour=red", "has no setting 'colour'; it has model, revision"),
        ("sentence_transformers:/x?max_tokens=-1", "max_tokens must be a whole number from 0"),
    ],
)
def test_what_names_no_encoder_is_refused_in_one_sentence(reference: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        open_encoder(reference)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("nope", "There is no encoder 'nope'"), ("minilm?dtype=int8", "dtype must be one of")],
)
def test_a_wrong_name_or_setting_is_found_early(tmp_path: Path, name: str, sentence: str) -> None:
    indexes, missing = tmp_path / "indexes", tmp_path / "missing.tsv"
    with pytest.raises(UsageError, match=sentence):
        built(indexes, "x", missing, "flat", encoder=name)
    assert not indexes.exists()


def test_settings_that_are_changed_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    settings = {"prompt": Setting(str, ""), "batch": Setting(int, 1), "flag": Setting(bool, False)}

    def keep(**asked: Any) -> Any:
        given.update(asked)
        return Hashing()

    monkeypatch.setitem(ENCODERS._entries, "hashing", Entry("hashing", keep, form=settings))
    reference = with_settings("hashing?prompt=x", prompt="a & b = 50% : ", batch=7, flag=True)
    open_encoder(reference)
    assert given == {"prompt": "a & b = 50% : ", "batch": 7, "flag": True}


def test_an_index_opens_with_the_encoder_and_settings_it_was_built_with(tmp_path: Any) -> None:
    pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    from tiny_bert import save_bert

    reference = f"sentence_transformers:{save_bert(tmp_path / 'model')}?query_prompt=query : "
    corpus = tmp_path / "corpus.tsv"
    corpus.write_text(
        "1\ttitan is the largest moon\tsaturn\n2\tthe river danube\tdanube\n3\tparis in texas\tparis\n"
    )
    manifest = built(tmp_path / "indexes", "x", corpus, "flat", encoder=reference)
    assert manifest.encoder_name == reference
    loaded = Encoders()
    *_, retriever = open_retriever(WorkspaceFolder(tmp_path), "x", loaded)
    assert loaded(reference) is loaded(reference)
    assert retriever.search(["titan moon"], 1)[0][0].passage.doc_id == "1"
    assert np.isfinite(retriever.search(["danube"], 1)[0][0].score)
    other = open_encoder(reference.replace("query :", "question :"))
    with pytest.raises(
        MismatchError, match=r"was built with the encoder 'sentence-transformers/.* you chose"
    ):
        list(open_retriever(WorkspaceFolder(tmp_path), "x", lambda name: other))
