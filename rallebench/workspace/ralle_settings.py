"""RaLLe's six base settings files, read unchanged and converted as far as possible.

Language models and dataset files are taken over. A Faiss file or a DiskANN folder becomes an index of
ours together with its corpus and its encoder; Lucene needs Java, so a BM25 index is rebuilt. For each
retriever :func:`why_not` gives the command line.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.chains.ralle import as_object, quote_value
from rallebench.core.entries import LLMEntry
from rallebench.core.errors import BadFileError, UsageError
from rallebench.core.files import read_json
from rallebench.core.types import Json
from rallebench.encoders.references import presets

FILES = ("system", "llms", "query_encoders", "corpora", "retrievers", "datasets")

Section = Json


@dataclass(frozen=True, slots=True)
class CorpusEntry:
    """A corpus file. ``columns``: column numbers of id, text and title, from 0. ``page_map``: passage → page."""

    name: str
    path: Path
    page_map: Path | None = None
    delimiter: str = "\t"
    columns: tuple[int, int, int] = (0, 1, 2)


@dataclass(frozen=True, slots=True)
class RetrieverEntry:
    """One of RaLLe's retrievers. ``type``: bm25, faiss or diskann. ``index``: its file or folder.

    ``corpus``: None if ``corpora.json`` lacks ``corpus_name``; ``encoder``: the model of the vectors, '' if
    unknown or none; ``prefix``: of DiskANN's file names.
    """

    name: str
    type: str
    index: Path
    corpus_name: str = ""
    corpus: CorpusEntry | None = None
    encoder: str = ""
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class BaseSettings:
    """Contents of the six files. Relative paths are resolved by :func:`resolve`.

    ``raw``: file name without suffix → its JSON, including unknown keys; {} for a missing file.
    ``develop`` and ``test``: dataset name → file; unlike in RaLLe, a name may have only one.
    """

    folder: Path
    raw: Mapping[str, Section]
    corpora: Mapping[str, CorpusEntry]
    retrievers: Mapping[str, RetrieverEntry]
    develop: Mapping[str, Path]
    test: Mapping[str, Path]


def read_base_settings(folder: Path) -> BaseSettings:
    """Read the six files, as far as they are in the folder.

    Raises BadFileError, with file and entry, for malformed content, and if none of the six exists.
    """
    folder = Path(folder)
    if not any((folder / f"{name}.json").exists() for name in FILES):
        names = ", ".join(f"{name}.json" for name in FILES)
        raise BadFileError(f"{folder} holds none of RaLLe's base settings files ({names}).")
    raw = {name: _section(folder / f"{name}.json") for name in FILES}
    corpora = {name: _corpus(folder, name, entry) for name, entry in raw["corpora"].items()}
    retrievers = {name: _retriever(folder, raw, corpora, name) for name in raw["retrievers"]}
    develop, test = (_question_files(folder, raw, split) for split in ("develop", "test"))
    return BaseSettings(folder, raw, corpora, retrievers, develop, test)


def resolve(written: str, folder: Path) -> Path:
    """Resolve a path in the files: absolute, or in the current folder, or in ``folder`` or one above it.

    The first existing place counts, so that settings work wherever the program was started. If there is none, the path is
    left as written, relative to the current folder.
    """
    above = folder.resolve()
    # An absolute path is itself in all of these places.
    paths = (place / written for place in (Path(), above, *above.parents))
    return next(filter(os.path.exists, paths), Path(written))


def _section(path: Path) -> Section:
    if not path.exists():
        return {}
    section = as_object(read_json(path), str(path))
    if path.stem != "system":
        for key, entry in section.items():
            as_object(entry, f"{path}, {key!r}")
    return section


def _question_files(folder: Path, raw: Mapping[str, Section], split: str) -> dict[str, Path]:
    where = f"{folder / 'datasets.json'}, {split!r}"
    files = raw["datasets"].get(split, {})
    return {name: resolve(_text(files, name, where), folder) for name in files}


def _corpus(folder: Path, name: str, entry: Section) -> CorpusEntry:
    where = f"{folder / 'corpora.json'}, {name!r}"
    columns = [entry.get(key, default) for key, default in _COLUMNS]
    if not all(isinstance(column, int) and column >= 0 for column in columns):
        raise BadFileError(
            f"{where}: col_doc_id, col_text and col_title must be column numbers from 0."
        )
    page_map = entry.get("doc_id_to_wikipedia_id_mapping_path")
    return CorpusEntry(
        name,
        resolve(_text(entry, "corpus_path", where), folder),
        resolve(str(page_map), folder) if page_map else None,
        str(entry.get("delimiter") or "\t"),
        (columns[0], columns[1], columns[2]),
    )


def _retriever(
    folder: Path, raw: Mapping[str, Section], corpora: Mapping[str, CorpusEntry], name: str
) -> RetrieverEntry:
    where = f"{folder / 'retrievers.json'}, {name!r}"
    entry = raw["retrievers"][name]
    kind = entry.get("type")
    if not isinstance(kind, str) or kind not in _INDEX_KEYS:
        raise BadFileError(
            f"{where}: 'type' is {kind!r}; it must be one of {', '.join(_INDEX_KEYS)}."
        )
    index = resolve(_text(entry, _INDEX_KEYS[kind], where), folder)
    corpus_name = _text(entry, "corpus_name", where)
    encoder = raw["query_encoders"].get(str(entry.get("query_encoder_name")), {}).get("model_type")
    prefix = str(entry.get("index_prefix") or "")
    return RetrieverEntry(
        name, kind, index, corpus_name, corpora.get(corpus_name), str(encoder or ""), prefix
    )


_COLUMNS = (("col_doc_id", 0), ("col_text", 1), ("col_title", 2))
_INDEX_KEYS = {"bm25": "index_path", "faiss": "index_path", "diskann": "index_directory"}


# ── language models ──────────────────────────────────────────────────────────

OPENAI_ENGINE = "gpt-35-turbo"
"""Deployment that RaLLe requests, whatever the entry's name."""

_AZURE = (
    "Azure OpenAI, as in RaLLe: needs the environment variables AZURE_OPENAI_API_TYPE, "
    "AZURE_OPENAI_API_BASE, AZURE_OPENAI_API_VERSION and AZURE_OPENAI_API_KEY; here the address is read "
    "from the second and the key from the last"
)
_OPENAI = {
    "model": OPENAI_ENGINE,
    "base_url": "${AZURE_OPENAI_API_BASE}/openai/v1",
    "api_key_env": "AZURE_OPENAI_API_KEY",
    "max_tokens": 1000,
    "temperature": None,
}
_MODEL_ARGS = ("device_map", "revision")
_SAME = ("temperature", "top_k", "top_p", "repetition_penalty")
_PIPELINE = {"max_new_tokens": "max_tokens", **dict(zip(_SAME, _SAME))}
_OWN_DEFAULTS = {"llm_int8_threshold": 6.0}
_OWN_DEFAULTS |= dict.fromkeys(("has_fp16_weights", "load_in_8bit", "load_in_4bit"), False)
"""Quantisation settings that merely state the default."""


def llm_entries(settings: BaseSettings) -> dict[str, LLMEntry]:
    """Convert ``llms.json`` to entries of ours, by name; ``about`` lists the settings that could not be carried over.

    A Hugging Face model becomes backend ``transformers`` with ``model``, ``quantization`` (8bit, 4bit,
    none), ``dtype`` (always float16, as in RaLLe), ``chat_template`` (always off, because RaLLe sends the
    prompt unchanged), ``device_map``, ``revision`` and its generation defaults. ``openai`` becomes
    ``openai_compatible`` with the names of Azure's variables, never their values.
    """
    where = settings.folder / "llms.json"
    entries = settings.raw["llms"].items()
    return {name: _llm(entry, f"{where}, model {name!r}") for name, entry in entries}


def _llm(entry: Section, where: str) -> LLMEntry:
    args = as_object(entry.get("model_args"), f"{where}: 'model_args'")
    pipeline = as_object(entry.get("pipeline_args") or {}, f"{where}: 'pipeline_args'")
    model = args.get("model_type")
    if not isinstance(model, str) or not model.strip():
        raise BadFileError(
            f"{where} needs 'model_type', the name of a Hugging Face model or openai."
        )
    if model == "openai":
        lost = [*(key for key in args if key != "model_type"), *pipeline]
        return LLMEntry(backend="openai_compatible", about=_about(_AZURE, lost), settings=_OPENAI)
    quantization, lost = _quantization(args.get("quantization_config"), where)
    carried = {"model": model, "quantization": quantization, "dtype": "float16"}
    carried["chat_template"] = "off"
    carried |= {key: args[key] for key in _MODEL_ARGS if args.get(key) is not None}
    named = {ours: pipeline.get(theirs) for theirs, ours in _PIPELINE.items()}
    carried |= {name: value for name, value in named.items() if value is not None}
    lost += [key for key in args if key not in ("model_type", "quantization_config", *_MODEL_ARGS)]
    lost += [key for key in pipeline if key not in _PIPELINE]
    about = _about("From RaLLe's llms.json", lost)
    return LLMEntry(backend="transformers", about=about, settings=carried)


def _quantization(config: Any, where: str) -> tuple[str, list[str]]:
    """Return '8bit', '4bit' or 'none', and the names of settings that this does not express."""
    if config is None:
        return "none", []
    outside = as_object(config, f"{where}: 'quantization_config'")
    inside = outside.get("quantization_config_config") or {}
    inside = as_object(inside, f"{where}: 'quantization_config_config'")
    kind = next((bits for bits in ("4bit", "8bit") if inside.get(f"load_in_{bits}")), "none")
    carried = () if kind == "none" else ("load_in_4bit", "load_in_8bit")
    others = {key: value for key, value in inside.items() if key not in carried}
    lost = [key for key, value in others.items() if _OWN_DEFAULTS.get(key) != value]
    if kind == "none" and config.get("quantization_type"):
        lost.append(str(config["quantization_type"]))
    return kind, lost


def _about(text: str, lost: list[str]) -> str:
    return f"{text}. Not carried over: {', '.join(lost)}." if lost else f"{text}."


def with_environment(entry: LLMEntry) -> LLMEntry:
    """Fill in every ``${NAME}`` of an entry's ``base_url`` from the environment.

    Called when the model is loaded; the result is never stored. Raises UsageError for a variable that is
    not set.
    """
    address = entry.settings.get("base_url")
    if not isinstance(address, str) or "${" not in address:
        return entry

    def variable_value(match: re.Match[str]) -> str:
        value = os.environ.get(match[1], "").strip().rstrip("/")
        if not value:
            raise UsageError(
                f"The address of this model is in {match[1]}; set that environment variable."
            )
        return value

    filled = re.sub(r"\$\{(\w+)\}", variable_value, address)
    return entry.model_copy(update={"settings": {**entry.settings, "base_url": filled}})


# ── retrievers ───────────────────────────────────────────────────────────────


_INDEX_KIND_OF_TYPE = {"bm25": "bm25", "faiss": "flat", "diskann": "diskann"}
_NAMES = {"faiss": "Faiss file", "diskann": "DiskANN index"}


def why_not(entry: RetrieverEntry) -> str:
    """Return the steps before this retriever can be used, with the command line; '' if there are none.

    An index path that is a folder with a ``manifest.json`` is one of our indexes and needs no step.
    """
    if (entry.index / "manifest.json").is_file():
        return ""
    theirs = _theirs(entry)
    if entry.type == "bm25":
        reason, how = "is a Lucene index, which cannot be read without Java", "build it"
    elif theirs:
        reason, how = f"is a {_NAMES[entry.type]} of RaLLe's", "take it over"
    else:
        reason, how = f"has no {_NAMES[entry.type]} at {_place(entry)}", "put it there, or build it"
    reason = f"{entry.name!r} {reason}"
    corpus = entry.corpus
    if corpus is None:
        return (
            f"{reason}, and its corpus {entry.corpus_name!r} is not in corpora.json; add it there."
        )
    steps = _preparations(corpus)
    return (
        f"{reason}; {''.join(f'{step}, then ' for step in steps)}{how} with: {build_command(entry)}"
    )


def _place(entry: RetrieverEntry) -> Path:
    return entry.index / entry.prefix if entry.prefix else entry.index


def _theirs(entry: RetrieverEntry) -> str:
    """Return the kind of RaLLe's own index, if it exists."""
    from rallebench.workspace.indexes.importing import foreign_kind  # opens indexes of all kinds

    return "" if entry.type == "bm25" else foreign_kind(_place(entry))


def _encoder(model: str) -> str:
    """Return our reference to a hub model: its preset, which knows its prompts, or the model itself."""
    known = {str(preset["model"]): name for name, preset in presets().items()}
    return known.get(model, f"sentence_transformers:{model}")


def _preparations(corpus: CorpusEntry) -> list[str]:
    steps = []
    if not corpus.path.is_file():
        steps.append(f"put its corpus at {corpus.path}")
    if corpus.delimiter != "\t" or corpus.columns != (0, 1, 2):
        steps.append("rewrite its corpus with the columns id, text, title and tabs between them")
    return steps


def build_command(entry: RetrieverEntry) -> str:
    """Return the command line (POSIX quoting) that turns this retriever into one of our indexes, under its own name."""
    kind = _theirs(entry) or _INDEX_KIND_OF_TYPE[entry.type]
    words = ["rallebench", "index", "--kind", kind, "--name", entry.name]
    if _theirs(entry):
        words += ["--from", str(_place(entry))]
    if entry.encoder:
        words += ["--encoder", _encoder(entry.encoder)]
    if entry.corpus:
        words += ["--corpus", str(entry.corpus.path)]
        if entry.corpus.page_map:
            words += ["--page-map", str(entry.corpus.page_map)]
    return shlex.join(words)


def _text(entry: Section, key: str, where: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value.strip():
        raise BadFileError(f"{where}: {key!r} is {quote_value(value)}; it should be text.")
    return value
