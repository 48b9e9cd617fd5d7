"""Names in a workspace and their files: datasets, chains, indexes, models."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from rallebench.chains.ralle import Experiment, experiment_from_json, load_chain_file
from rallebench.core.entries import Combination, LLMEntry, Manifest
from rallebench.core.errors import BadFileError, Hint, NotFoundError, RalleError, UsageError
from rallebench.core.files import read_json, sha256_file
from rallebench.core.own_folders import is_listed, list_files
from rallebench.core.prompts import prompts_folder
from rallebench.core.registry import unknown
from rallebench.core.runs import DatasetRef
from rallebench.core.settings import parse_settings
from rallebench.core.sources import files_in, stamps, table_files
from rallebench.core.starter import (
    DEFAULT_CHAIN,
    READER,
    STARTER,
    STARTER_INDEXES,
)
from rallebench.core.streams import plain_name, with_packed
from rallebench.core.types import Chain, Example, digest
from rallebench.corpora.cards import Corpus, corpus_cards, imported_corpora, is_imported
from rallebench.datasets.reading import DEFAULT, dataset_form, read_questions
from rallebench.llms import LLMS
from rallebench.llms.presets import preset_entry, presets
from rallebench.retrievers.composites import (
    STARTER_COMBINATIONS,
    Names,
    about,
    about_index,
    component_indexes,
    resolve,
)
from rallebench.workspace.entries import (
    changing,
    read_combinations,
    read_llm_entries,
    read_manifest,
    usable_combinations,
    usable_llm_entries,
)
from rallebench.workspace.mcp_servers import McpServers, read_mcp_servers
from rallebench.workspace.ralle_settings import BaseSettings, llm_entries, read_base_settings


class WorkspaceFolder:
    """A folder with ``corpora/``, ``datasets/``, ``indexes/``, ``runs/``, ``labels/``, ``conversations/``, ``cache/``, ``chains/``, ``llms.json``,
    ``retrievers.json``, ``mlflow.db``. Everything in ``cache`` can be rebuilt: ``vectors`` (encoded passages), ``memo`` (the reply
    cache), ``gguf`` (converted models), ``stages`` (views of runs)."""

    def __init__(
        self,
        path: Path,
        base_settings: Path | None = None,
        mcp_servers: Path | None = None,
        *,
        read_only: bool = False,
    ) -> None:
        """``base_settings``: RaLLe's folder of settings; ``mcp_servers``: the file of MCP servers; neither is of the folder.
        ``read_only``: change no file; views are kept in a temporary folder.
        """
        self.path = Path(path).resolve()
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"The workspace {self.path} is a file; give a folder.")
        self.indexes, self.runs = self.path / "indexes", self.path / "runs"
        self.run_bin = self.path / "bin" / "runs"
        self.corpora, self.cache = self.path / "corpora", self.path / "cache"
        self.vectors, self.reply_cache = self.cache / "vectors", self.cache / "memo.sqlite"
        self.base: BaseSettings | None = (
            read_base_settings(base_settings) if base_settings else None
        )
        self.read_only = read_only
        self.stages = self.cache / "stages"
        if read_only:
            self.stages = Path(tempfile.mkdtemp(prefix="rallebench-"))
            weakref.finalize(self, shutil.rmtree, self.stages, ignore_errors=True)
        self.mcp_servers = read_mcp_servers(mcp_servers) if mcp_servers else McpServers()

    @property
    def own_folders(self) -> tuple[Path, ...]:
        """Folders that only the workbench writes; no export may replace a file in them."""
        names = ("cache", "conversations", "corpora", "experiments", "indexes", "runs")
        return tuple(self.path / name for name in names)

    # datasets

    def dataset_paths(self) -> dict[str, Path]:
        """Return name → file of every known dataset."""
        paths = _files(STARTER / "questions", "*.jsonl")
        paths |= _files(self.path / "datasets", *reversed(with_packed("*.jsonl")))
        return paths | ({**self.base.develop, **self.base.test} if self.base else {})

    def own_datasets(self) -> list[str]:
        """The datasets in the workspace's own folder, which can be deleted."""
        folder = self.path / "datasets"
        return [name for name, path in self.dataset_paths().items() if path.parent == folder]

    def dataset(self, reference: str) -> tuple[str, Path]:
        """Return name and path of a dataset that is given as a name or a path."""
        if file := self._known_dataset(reference):
            return reference, file
        path = _path(reference, "dataset")
        if os.path.isfile(path):
            return re.sub(r"\.(json|csv|tsv).*", "", path.name), path.resolve()
        if os.path.isdir(path) and (dataset_form(path) != DEFAULT or table_files(path)):
            return path.resolve().name, path.resolve()
        if path.suffix or "/" in reference or os.path.isdir(path):
            known = ", ".join(self.dataset_paths())
            raise NotFoundError(f"{reference} is not a file of questions. Known datasets: {known}.")
        raise NotFoundError(unknown("dataset", reference, list(self.dataset_paths())))

    def _known_dataset(self, name: str) -> Path | None:
        """Return the file of ``dataset_paths`` of that name, without listing the others: a click needs it many times."""
        base = {**self.base.develop, **self.base.test} if self.base else {}
        if name in base:
            return base[name]
        if not name or name.startswith(".") or "\0" in name or os.path.basename(name) != name:
            return None
        own = (self.path / "datasets" / file for file in with_packed(f"{name}.jsonl"))
        files = (*own, STARTER / "questions" / f"{name}.jsonl")
        return next((file for file in files if is_listed(file)), None)

    def questions(self, reference: str) -> tuple[Example, ...]:
        """The examples of a dataset, read once per version of its file. Raises BadFileError."""
        _, path = self.dataset(reference)
        return _read(path, tuple(stamps(path)))

    def dataset_ref(self, reference: str) -> DatasetRef:
        """Return a dataset as recorded by a run. For a folder the records count, not its files."""
        name, path = self.dataset(reference)
        file = "" if self._known_dataset(reference) else str(path)
        return DatasetRef(name, file, sha256_file(path) if path.is_file() else "")

    def data(self, reference: str, what: str, setting: str = "data") -> Path:
        """Resolve a suite's ``setting``: a dataset by name, else a file or folder by path. ``what``: the expected kind of file.

        Raises UsageError for an empty reference, NotFoundError if it is neither.
        """
        known, reference = self.dataset_paths(), reference.strip()
        hint, kinds = Hint("set", f"{setting}=PATH"), f"{what}, or the name of a dataset"
        if not reference:
            raise UsageError(f"The setting {setting} is empty: it takes {kinds}.", setting, hint)
        path = known.get(reference, _path(reference))
        if not path.exists():
            raise NotFoundError(
                f"{reference} does not exist, neither as a path nor as a dataset; it should be {what}. "
                f"Datasets: {', '.join(known)}.",
                setting,
                hint,
            )
        return path

    # corpora

    def corpus_cards(self) -> dict[str, Corpus]:
        """Name → card of every imported corpus."""
        return imported_corpora(self.corpora)

    def damaged_corpora(self) -> dict[str, str]:
        """Name → sentence of every imported corpus whose card cannot be read."""
        return corpus_cards(self.corpora)[1]

    def corpus(self, reference: str) -> Path:
        """Return the folder of the imported corpus of that name, else ``reference`` as a path, which may not exist.

        Raises NotFoundError if ``reference`` can only be a name and is unknown.
        """
        folder, path = self.corpora / reference, _path(reference, "corpus")
        if reference.strip() and is_imported(folder):
            return folder
        if not (path.exists() or path.suffix or "/" in reference or os.sep in reference):
            known = ", ".join(imported_corpora(self.corpora)) or "none"
            raise NotFoundError(
                f"{reference} does not exist, neither as a file nor as an imported corpus. Imported: {known}."
            )
        return path

    # chains

    def chain_paths(self) -> dict[str, Path]:
        """Return name → file of every known chain; the workspace's override the shipped ones."""
        paths: dict[str, Path] = {}
        for folder in (prompts_folder(), self.path / "prompts", self.path):
            paths |= _files(folder / "chains", "*.json", "*.yaml", "*.yml")
        return dict(sorted(paths.items(), key=lambda item: (item[0] != DEFAULT_CHAIN, item[0])))

    def chain(self, reference: str) -> Chain:
        """Return a chain by name or file (our format or RaLLe's, JSON or YAML)."""
        known = self.chain_paths()
        path = known.get(reference) or _path(reference)
        if not os.path.isfile(path):
            if path.suffix or "/" in reference:
                raise NotFoundError(
                    f"{reference} does not exist. Known chains: {', '.join(known)}."
                )
            raise NotFoundError(unknown("chain", reference, list(known)))
        return load_chain_file(path)

    def experiment(self, reference: str) -> Experiment | None:
        """Return dataset, number of questions and batch size in RaLLe's experiment file; None for our format."""
        path = self.chain_paths().get(reference) or _path(reference)
        if not os.path.isfile(path) or path.suffix != ".json":
            return None
        value = read_json(path)
        if not isinstance(value, dict) or "chain_config" not in value:
            return None
        return experiment_from_json(value, str(path), path.stem)

    def chain_folder(self, reference: str) -> list[tuple[str, Path]] | None:
        """Return (name, file) of every chain in a folder, recursively, sorted; None if ``reference`` is not a folder."""
        folder = _path(reference)
        if reference in self.chain_paths() or not os.path.isdir(folder):
            return None
        files = [path for path in files_in(folder) if path.suffix in (".json", ".yaml", ".yml")]
        if not files:
            raise BadFileError(f"{folder} holds no chains (*.json, *.yaml).")
        return [("-".join(p.relative_to(folder).with_suffix("").parts)[:200], p) for p in files]

    # retrievers

    def retrievers(self) -> dict[str, str]:
        """Return name → description of built indexes, the starter's, indexes of RaLLe's settings, and combinations."""
        theirs = self.base.retrievers if self.base else {}
        return {
            **{
                name: f"starter corpus, {kind}, built on first use"
                for name, kind in STARTER_INDEXES.items()
            },
            **{name: about(entry) for name, entry in self.combinations().items()},
            **{name: f"RaLLe settings: {entry.type}" for name, entry in theirs.items()},
            **{name: about_index(manifest) for name, manifest in self.manifests().items()},
        }

    def combinations(self) -> dict[str, Combination]:
        """Return name → entry of every named combination of retrievers."""
        return {**STARTER_COMBINATIONS, **usable_combinations(self.path / "retrievers.json")[0]}

    def own_combinations(self) -> list[str]:
        """The readable combinations of the workspace's own file."""
        return list(usable_combinations(self.path / "retrievers.json")[0])

    def damaged_combinations(self) -> dict[str, str]:
        """Return name → error of the unreadable entries of ``retrievers.json``."""
        return usable_combinations(self.path / "retrievers.json")[1]

    def retriever(self, reference: str) -> Combination | None:
        """Return the combination, with all its settings, behind a name or an expression; None for a plain index.

        See :mod:`rallebench.retrievers.composites`. Raises UsageError, also for its parts.
        """
        damaged = self.damaged_combinations()
        if sentence := damaged.get(reference):
            raise BadFileError(sentence)
        try:
            return resolve(reference, self._names(self.combinations()))
        except UsageError:
            if sentence := damaged.get("retrievers.json"):  # the name may be in the damaged file
                raise BadFileError(sentence) from None
            raise

    def component_indexes(self, reference: str) -> tuple[str, ...]:
        """Return the indexes behind a retriever, in order, each once. Raises UsageError."""
        return component_indexes(reference, self._names(self.combinations()))

    def _names(self, combinations: Mapping[str, Combination]) -> Names:
        indexes = dict(STARTER_INDEXES)
        if self.base:
            indexes |= dict.fromkeys(self.base.retrievers, "")
        # Includes damaged indexes; opening one reports the fault.
        indexes |= {path.parent.name: "" for path in list_files(self.indexes, "*/manifest.json")}
        indexes |= {name: manifest.kind for name, manifest in self.manifests().items()}
        return Names(indexes, combinations, self.llm, self.dataset)

    def save_retriever(self, name: str, entry: Combination) -> None:
        """Add or replace a combination in ``retrievers.json``. Raises UsageError if it would be unusable."""
        if not name.strip() or not name.isprintable() or any(c in name for c in "/\\:?,()"):
            raise UsageError(
                f"The retriever name {name!r} cannot be used; use letters, digits, '-' and '_'."
            )
        with changing(self.path / "retrievers.json", read_combinations) as entries:
            entries[name] = entry
            names = self._names({**STARTER_COMBINATIONS, **entries})
            if name in names.indexes or name in self.llms():
                raise UsageError(
                    f"{name!r} is an index or a model of this workspace; choose another name."
                )
            resolve(name, names)

    def manifests(self) -> dict[str, Manifest]:
        """Return the built indexes; folders with a damaged manifest are left out."""
        return self.all_manifests()[0]

    def all_manifests(self) -> tuple[dict[str, Manifest], dict[str, str]]:
        """Return name → manifest, and name → error, of the index folders."""
        good, damaged = {}, {}
        for path in list_files(self.indexes, "*/manifest.json"):
            try:
                good[path.parent.name] = read_manifest(path.parent)
            except RalleError as error:
                damaged[path.parent.name] = (
                    f"{error} Remove the folder {path.parent}; build it again."
                )
        return good, damaged

    def index_folder(self, name: str) -> Path | None:
        """Return the folder of a built index, also of one in RaLLe's settings; None if it does not exist."""
        theirs = self.base.retrievers if self.base else {}
        folders = [self.indexes / name, *([theirs[name].index] if name in theirs else [])]
        return next((folder for folder in folders if (folder / "manifest.json").exists()), None)

    # language models

    def llms(self) -> dict[str, LLMEntry]:
        """Return name → entry of every language model that can be loaded here."""
        entries = {READER: LLMEntry(backend=READER, about=LLMS.listing(READER).about)}
        if self.base:
            entries |= llm_entries(self.base)
        return entries | usable_llm_entries(self.path / "llms.json")[0]

    def damaged_llms(self) -> dict[str, str]:
        """Return name → error of the unreadable entries of ``llms.json``."""
        return usable_llm_entries(self.path / "llms.json")[1]

    def llm(self, reference: str) -> LLMEntry:
        """Return an entry by name, or parse one: ``backend:model`` or a preset, with ``?key=value&…`` settings.

        ``transformers:/models/tiny?quantization=4bit`` or
        ``openai_compatible:llama3?base_url=http://127.0.0.1:8000/v1``; ``smollm2-135m`` or ``ollama?model=llama3.2``.
        """
        known = self.llms()
        if reference in known:
            return known[reference]
        if sentence := self.damaged_llms().get(reference):
            raise BadFileError(sentence)
        name, _, query = reference.partition("?")
        pairs = query.split("&") if query else []
        backend, colon, model = name.partition(":")
        if colon and backend in LLMS:
            named = {"model": model} if model else {}
            return LLMEntry(backend=backend, settings={**named, **parse_settings(pairs)})
        if name in presets():
            return preset_entry(name, parse_settings(pairs))
        if sentence := self.damaged_llms().get("llms.json"):
            raise BadFileError(sentence)
        raise NotFoundError(unknown("language model", reference, list(known)))

    def llm_mark(self, reference: str) -> str:
        """Return 12 hex digits over a model's settings. Raises NotFoundError."""
        return digest(self.llm(reference).model_dump(mode="json"))[:12]

    def save_llm(self, name: str, entry: LLMEntry) -> None:
        """Add or replace an entry of the workspace's ``llms.json``."""
        with changing(self.path / "llms.json", read_llm_entries) as entries:
            entries[name] = entry

    def users(self, name: str, kind: str) -> list[str]:
        """The users of a ``retriever`` or a ``language model``: ``the chain x``, ``the retriever y``. Unreadable files are
        skipped."""
        is_model, names = kind == "language model", []
        for chain, path in self.chain_paths().items():
            with contextlib.suppress(RalleError):
                actions = self.chain(str(path)).actions
                targets = [
                    a.target for a in actions if a.kind == ("generate" if is_model else "retrieve")
                ]
                if name in targets or (not is_model and any(name in _names_in(t) for t in targets)):
                    names.append(f"the chain {chain}")
        with contextlib.suppress(RalleError):
            for other, entry in self.combinations().items():
                if name in ([entry.settings.get("llm")] if is_model else entry.of):
                    names.append(f"the retriever {other}")
        return names


def _names_in(target: str) -> set[str]:
    """The names in a written-out combination, such as ``rrf:a,b?depth=50``."""
    return set(re.split(r"[:,()?]", target)) if set(target) & set(":?") else set()


@lru_cache(maxsize=8)
def _read(path: Path, version: tuple[tuple[str, int, int], ...]) -> tuple[Example, ...]:
    return read_questions(path)


def _files(folder: Path, *patterns: str) -> dict[str, Path]:
    """Return name → file that is not hidden; files of a later pattern override those of an earlier one."""
    paths = (path for pattern in patterns for path in list_files(folder, pattern))
    return {Path(plain_name(path.name)).stem: path for path in paths}


def _path(reference: str, kind: str = "") -> Path:
    """Return a reference as a path. Raises NotFoundError if it is the name of a ``kind`` of data on the hub."""
    if kind:
        from rallebench.core.hub_names import refuse_hub_name  # listing names needs none of it

        refuse_hub_name(reference, kind)
    return Path(os.path.expanduser(reference))
