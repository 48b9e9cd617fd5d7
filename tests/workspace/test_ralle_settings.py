"""RaLLe's six base settings files are read unchanged, and unusable parts are named."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from rallebench.core.entries import LLMEntry
from rallebench.core.errors import BadFileError, UsageError
from rallebench.llms import LLMS
from rallebench.retrievers import kinds
from rallebench.workspace.ralle_settings import (
    BaseSettings,
    build_command,
    llm_entries,
    read_base_settings,
    why_not,
    with_environment,
)

EIGHT_BIT = {
    "quantization_type": "transformers.BitsAndBytesConfig",
    "quantization_config_config": {
        "load_in_8bit": True,
        "llm_int8_threshold": 6.0,
        "has_fp16_weights": False,
    },
}
PIPELINE = {
    "max_new_tokens": 512,
    "top_k": 50,
    "temperature": 0.0,
    "repetition_penalty": 1.204819277108434,
}
CORPUS = "data/text/kilt_subset.tsv"
PAGE_MAP = "data/text/doc_id_to_wikipedia_id_mapping.p"
ON_GPU = {"device_map": {"": 0}, "quantization_config": EIGHT_BIT}
SUBSET = "kilt_subset_499992"


def saved_model(model: str) -> dict[str, Any]:
    return {"model_args": {"model_type": model, **ON_GPU}, "pipeline_args": PIPELINE}


def saved_retriever(kind: str, path: str, **more: str) -> dict[str, str]:
    where = "index_directory" if kind == "diskann" else "index_path"
    encoder = {} if kind == "bm25" else {"query_encoder_name": "e5-8b"}
    return {"type": kind, **encoder, where: f"data/{path}", **more, "corpus_name": SUBSET}


def saved_questions(split: str) -> dict[str, str]:
    return {
        name: f"KILT/data/{file}-{split}-kilt.jsonl"
        for name, file in (("NQ", "nq"), ("T-REx", "trex"))
    }


FILES: dict[str, Any] = {
    "system": {"max_len_chain": 4, "num_show_question": 100},
    "llms": {
        "oasst-sft-1-pythia-12b": saved_model("OpenAssistant/oasst-sft-1-pythia-12b"),
        "llama-2-13b-chat": saved_model("meta-llama/Llama-2-13b-chat-hf"),
        "gpt-35-turbo": {"model_args": {"model_type": "openai"}},
    },
    "query_encoders": {
        "m-e5-8b": {"model_type": "intfloat/multilingual-e5-large", **ON_GPU},
        "e5-8b": {"model_type": "intfloat/e5-large-v2", **ON_GPU},
        "e5-32b": {"model_type": "intfloat/e5-large-v2", "device_map": {"": 0}},
    },
    "corpora": {
        SUBSET: {
            "corpus_path": CORPUS,
            "delimiter": "\t",
            "col_doc_id": 0,
            "col_text": 1,
            "col_title": 2,
            "doc_id_to_wikipedia_id_mapping_path": PAGE_MAP,
        }
    },
    "retrievers": {
        "bm25_subset_499992": saved_retriever("bm25", "bm25/kilt"),
        "flat_subset_499992": saved_retriever("faiss", "dense/subset_1024_499992.index"),
        "hnsw_subset_499992": saved_retriever("faiss", "dense/subset_m16_efc40_1024_499992.index"),
        "diskann_subset_499992": saved_retriever(
            "diskann", "dense/diskann/subset_499992", index_prefix="index"
        ),
    },
    "datasets": {"develop": saved_questions("train"), "test": saved_questions("dev")},
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A RaLLe checkout with its settings where RaLLe has them; the current folder is another one."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    root = tmp_path / "RaLLe"
    for name, value in FILES.items():
        put(root / "scripts/configs/base_settings" / f"{name}.json", json.dumps(value))
    return root


def put(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def read(project: Path, **sections: Any) -> BaseSettings:
    """The settings of the checkout after some of its files were replaced."""
    folder = project / "scripts/configs/base_settings"
    for name, value in sections.items():
        put(folder / f"{name}.json", json.dumps(value))
    return read_base_settings(folder)


# ── reading ──────────────────────────────────────────────────────────────────


def test_all_six_files_are_kept_as_they_are_unknown_keys_too(project: Path):
    assert read(project).raw == FILES
    corpora = {"c": {"corpus_path": "c.tsv", "comment": "mine"}}
    settings = read(project, system={"max_len_chain": 6, "theme": "dark"}, corpora=corpora)
    assert settings.raw["system"] == {"max_len_chain": 6, "theme": "dark"}
    assert settings.raw["corpora"] == corpora


@pytest.mark.parametrize("missing", FILES)
def test_each_file_may_be_missing(project: Path, missing: str):
    (project / f"scripts/configs/base_settings/{missing}.json").unlink()
    settings = read(project)
    assert settings.raw == {**FILES, missing: {}}
    assert len(llm_entries(settings)) == (0 if missing == "llms" else 3)
    assert len(settings.retrievers) == (0 if missing == "retrievers" else 4)
    assert all(why_not(entry) for entry in settings.retrievers.values())


def test_a_folder_without_any_of_them_or_with_other_json_is_refused(project: Path, tmp_path: Path):
    with pytest.raises(BadFileError, match=r"holds none of .*files \(system\.json, llms\.json"):
        read_base_settings(tmp_path)
    with pytest.raises(BadFileError, match=r"llms\.json is \[\]; it should be a JSON object"):
        read(project, llms=[])
    with pytest.raises(BadFileError, match=r"llms\.json, 'mine' is .*; it should be a JSON object"):
        read(project, llms={"mine": "gpt2"})


# ── language models ──────────────────────────────────────────────────────────


def test_a_hugging_face_model_keeps_its_settings(project: Path):
    assert llm_entries(read(project))["llama-2-13b-chat"] == LLMEntry(
        backend="transformers",
        about="From RaLLe's llms.json.",
        settings={
            "model": "meta-llama/Llama-2-13b-chat-hf",
            "quantization": "8bit",
            "dtype": "float16",
            "chat_template": "off",
            "device_map": {"": 0},
            "max_tokens": 512,
            "temperature": 0.0,
            "top_k": 50,
            "repetition_penalty": 1.204819277108434,
        },
    )


@pytest.mark.parametrize(
    ("config", "quantization"),
    [
        ({"load_in_8bit": True}, "8bit"),
        ({"load_in_4bit": True}, "4bit"),
        ({"load_in_8bit": False}, "none"),
        (None, "none"),
    ],
)
def test_the_quantization_is_8bit_4bit_or_none(project: Path, config: Any, quantization: str):
    outside = {"quantization_config": {"quantization_config_config": config}} if config else {}
    args = {"model_type": "m", **outside}
    entry = llm_entries(read(project, llms={"m": {"model_args": args}}))["m"]
    plain = {"model": "m", "dtype": "float16", "chat_template": "off"}
    assert entry.settings == {**plain, "quantization": quantization}


def test_every_entry_has_settings_its_backend_has(project: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AZURE_OPENAI_API_BASE", "https://example.com")
    args = {"model_type": "m", "revision": "main", "device_map": "auto"}
    extra = {"m": {"model_args": args, "pipeline_args": {"top_p": 0.9}}}
    entries = llm_entries(read(project, llms={**FILES["llms"], **extra}))
    for name, entry in entries.items():
        LLMS.entry(entry.backend).traits["settings"](name, **with_environment(entry).settings)
    assert entries["m"].settings["top_p"] == 0.9
    assert entries["m"].settings["revision"] == "main"


def test_what_could_not_be_carried_over_is_said(project: Path):
    gptq = {"quantization_type": "transformers.GPTQConfig"}
    gptq |= {"quantization_config_config": {"bits": 3}}
    args = {"model_type": "m", "trust_remote_code": True, "quantization_config": gptq}
    models = {"m": {"model_args": args, "pipeline_args": {"do_sample": True}}}
    entry = llm_entries(read(project, llms=models))["m"]
    lost = "bits, transformers.GPTQConfig, trust_remote_code, do_sample"
    assert entry.about == f"From RaLLe's llms.json. Not carried over: {lost}."
    assert entry.settings["quantization"] == "none"


def test_an_azure_model_names_variables_alone(project: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.setenv("AZURE_OPENAI_API_BASE", "https://secret-place.example")

    entry = llm_entries(read(project))["gpt-35-turbo"]

    assert entry.backend == "openai_compatible"
    assert entry.settings == {
        "model": "gpt-35-turbo",
        "base_url": "${AZURE_OPENAI_API_BASE}/openai/v1",
        "api_key_env": "AZURE_OPENAI_API_KEY",
        "max_tokens": 1000,
        "temperature": None,
    }
    assert all(
        f"AZURE_OPENAI_API_{name}" in entry.about for name in ("TYPE", "BASE", "VERSION", "KEY")
    )
    assert "secret" not in entry.model_dump_json()


def test_the_address_is_filled_in_at_the_load(project: Path, monkeypatch: pytest.MonkeyPatch):
    azure = llm_entries(read(project))["gpt-35-turbo"]
    monkeypatch.setenv("AZURE_OPENAI_API_BASE", "https://mine.openai.azure.example/")
    address = with_environment(azure).settings["base_url"]
    assert address == "https://mine.openai.azure.example/openai/v1"
    monkeypatch.delenv("AZURE_OPENAI_API_BASE")
    with pytest.raises(UsageError, match="AZURE_OPENAI_API_BASE; set that environment variable"):
        with_environment(azure)
    plain = LLMEntry(backend="openai_compatible", settings={"base_url": "http://127.0.0.1:1/v1"})
    assert with_environment(plain) is plain


@pytest.mark.parametrize("entry", [{}, {"model_args": {}}, {"model_args": {"model_type": ""}}])
def test_a_model_without_a_name_is_refused(project: Path, entry: dict[str, Any]):
    with pytest.raises(BadFileError, match=r"llms\.json, model 'mine'.*'model_(args|type)'"):
        llm_entries(read(project, llms={"mine": entry}))


# ── paths ────────────────────────────────────────────────────────────────────


def test_a_path_is_the_current_folders_or_the_settings_or_stays_so(project: Path, tmp_path: Path):
    assert read(project).corpora[SUBSET].path == Path(CORPUS)
    above = put(project / CORPUS)
    assert read(project).corpora[SUBSET].path == above
    put(Path.cwd() / CORPUS)
    assert read(project).corpora[SUBSET].path == Path(CORPUS)
    absolute = tmp_path / "nowhere.tsv"
    corpora = {"c": {"corpus_path": str(absolute)}}
    assert read(project, corpora=corpora).corpora["c"].path == absolute


# ── retrievers ───────────────────────────────────────────────────────────────


def test_a_retriever_knows_its_index_its_corpus_and_its_encoder(project: Path):
    entries = read(project).retrievers
    assert list(entries) == list(FILES["retrievers"])
    hnsw, diskann = entries["hnsw_subset_499992"], entries["diskann_subset_499992"]
    assert (hnsw.type, hnsw.encoder) == ("faiss", "intfloat/e5-large-v2")
    assert hnsw.index == Path("data/dense/subset_m16_efc40_1024_499992.index")
    assert hnsw.corpus == read(project).corpora[SUBSET]
    assert (diskann.type, diskann.prefix) == ("diskann", "index")
    assert diskann.index == Path("data/dense/diskann/subset_499992")
    assert entries["bm25_subset_499992"].encoder == ""


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("bm25", "bm25", "is a Lucene index, which cannot be read without Java; build it"),
        ("flat", "flat", "has no Faiss file at {index}; put it there, or build it"),
        ("hnsw", "flat", "has no Faiss file at {index}; put it there, or build it"),
        ("diskann", "diskann", "has no DiskANN index at {index}/index; put it there, or build it"),
    ],
)
def test_a_retriever_says_its_command_line(project: Path, name: str, kind: str, reason: str):
    name += "_subset_499992"
    corpus, pages = put(project / CORPUS), put(project / PAGE_MAP)
    entry = read(project).retrievers[name]

    told = why_not(entry)

    with_encoder = "" if kind == "bm25" else "--encoder e5-large-v2 "
    command = f"rallebench index --kind {kind} --name {name} {with_encoder}--corpus {corpus} --page-map {pages}"
    assert told.startswith(f"{name!r} {reason.format(index=entry.index)} with: ")
    assert told.endswith(f" with: {command}")
    assert build_command(entry) == command


@pytest.mark.parametrize(
    ("name", "first", "kind"),
    [
        ("flat_subset_499992", "IxFI", "flat"),
        ("hnsw_subset_499992", "IHNf", "hnsw"),
        ("diskann_subset_499992", "", "diskann"),
    ],
)
def test_an_index_of_ralles_there_is_taken(project: Path, name: str, first: str, kind: str):
    put(project / CORPUS)
    index = read(project).retrievers[name].index
    there = (
        put(project / index / "index_disk.index").with_name("index")
        if kind == "diskann"
        else put(project / index, first)
    )
    entry = read(project).retrievers[name]
    told = why_not(entry)
    what = "DiskANN index" if kind == "diskann" else "Faiss file"
    assert told.startswith(f"{name!r} is a {what} of RaLLe's; ")
    assert "take it over with: rallebench index" in told
    words = shlex.split(build_command(entry))
    assert words[words.index("--kind") + 1] == kind
    assert Path(words[words.index("--from") + 1]) == there
    assert words[words.index("--encoder") + 1] == "e5-large-v2"


def test_the_kinds_of_the_command_lines_can_be_built(project: Path):
    commands = [shlex.split(build_command(entry)) for entry in read(project).retrievers.values()]
    assert {words[words.index("--kind") + 1] for words in commands} <= set(kinds())


def test_a_folder_with_our_manifest_is_used_as_it_is(project: Path):
    put(project / "data/bm25/kilt/manifest.json", "{}")
    entry = read(project).retrievers["bm25_subset_499992"]
    assert (entry.index, why_not(entry)) == (project / "data/bm25/kilt", "")


def test_what_must_be_done_with_a_corpus_first_is_said(project: Path):
    def said(**sections: Any) -> str:
        return why_not(read(project, **sections).retrievers["bm25_subset_499992"])

    assert f"; put its corpus at {CORPUS}, then " in said()
    path = str(put(project / "c.tsv"))
    other = {"corpus_path": path, "delimiter": ",", "col_title": 1, "col_text": 2}
    columns = (
        "rewrite its corpus with the columns id, text, title and tabs between them, then build"
    )
    sentence = said(corpora={SUBSET: other})
    assert columns in sentence and sentence.endswith(f"--corpus {path}")
    unknown = f"its corpus {SUBSET!r} is not in corpora.json; add it there."
    assert said(corpora={}).endswith(unknown)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"type": "elastic"}, "'type' is 'elastic'; it must be one of bm25, faiss, diskann"),
        ({"type": "bm25", "corpus_name": "c"}, "'index_path' is missing; it should be text"),
        ({"type": "faiss", "index_path": "x"}, "'corpus_name' is missing; it should be text"),
        ({"type": "diskann", "index_path": "x"}, "'index_directory' is missing; it should be text"),
    ],
)
def test_an_entry_of_no_retriever_is_refused(project: Path, entry: dict[str, Any], message: str):
    with pytest.raises(BadFileError) as refused:
        read(project, retrievers={"mine": entry})
    assert f"'mine': {message}" in str(refused.value)


# ── datasets ─────────────────────────────────────────────────────────────────


def test_a_dataset_has_a_file_to_develop_with_and_one_to_test_on_or_one_of_them(project: Path):
    test = put(project / "KILT/data/nq-dev-kilt.jsonl")
    settings = read(project)
    train = {"NQ": "KILT/data/nq-train-kilt.jsonl", "T-REx": "KILT/data/trex-train-kilt.jsonl"}
    assert settings.develop == {name: Path(path) for name, path in train.items()}
    assert settings.test == {"NQ": test, "T-REx": Path("KILT/data/trex-dev-kilt.jsonl")}
    settings = read(project, datasets={"develop": {"A": "a.jsonl"}, "test": {"B": "b.jsonl"}})
    assert (settings.develop, settings.test) == ({"A": Path("a.jsonl")}, {"B": Path("b.jsonl")})


def test_a_dataset_path_that_is_no_text_is_refused(project: Path):
    with pytest.raises(BadFileError, match=r"datasets\.json, 'test': 'NQ' is 3; it should be text"):
        read(project, datasets={"test": {"NQ": 3}})
