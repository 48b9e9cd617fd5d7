"""Opening objects by name: an index becomes a retriever, an entry becomes a language model."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rallebench.core.entries import Combination, LLMEntry
from rallebench.core.errors import NotFoundError, RalleError, ReadOnlyError, UsageError
from rallebench.core.prompts import prompts_folder, read_prompt
from rallebench.core.registry import unknown
from rallebench.core.starter import STARTER_INDEXES
from rallebench.core.types import Example, Json
from rallebench.encoders.references import open_encoder, with_settings
from rallebench.llms import LLMS
from rallebench.retrievers import COMBINATIONS, INDEX_KINDS, needs_encoder
from rallebench.retrievers.composites import INDEX, QUERY_QUANTIZATION
from rallebench.workspace.entries import read_manifest
from rallebench.workspace.indexes.build import build_index
from rallebench.workspace.indexes.checks import check_index
from rallebench.workspace.indexes.recipes import starter_recipe
from rallebench.workspace.paths import WorkspaceFolder
from rallebench.workspace.ralle_settings import why_not, with_environment


class Encoders:
    """Encoders in use, each loaded once and shared."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}
        self._one_load = threading.Lock()

    def __call__(self, name: str) -> Any:
        with self._one_load:
            if name not in self._loaded:
                self._loaded[name] = open_encoder(name)
            return self._loaded[name]

    @property
    def names(self) -> list[str]:
        return list(self._loaded)

    def keep(self, names: set[str]) -> None:
        """Release all but ``names``."""
        for name in set(self._loaded) - names:
            del self._loaded[name]


def open_retriever(
    workspace: WorkspaceFolder, name: str, encoders: Callable[[str], Any]
) -> Iterator[str | Any]:
    """Yield progress sentences, and last the Retriever. A missing starter index is built."""
    if name in STARTER_INDEXES and workspace.index_folder(name) is None:
        if workspace.read_only:
            raise ReadOnlyError(f"The index {name!r} is not built, and this program is read-only.")
        yield from build_starter(workspace.indexes, name, encoders)
    folder = workspace.index_folder(name)
    if folder is None and workspace.base and name in workspace.base.retrievers:
        raise UsageError(why_not(workspace.base.retrievers[name]))
    if folder is None:
        raise NotFoundError(unknown("index", name, list(workspace.retrievers())))
    try:
        manifest = read_manifest(folder)
        check_index(folder, manifest)
    except RalleError as error:
        starter = name in STARTER_INDEXES
        again = "it is built anew when next asked for" if starter else "build it again"
        wrong, times = re.subn(r" build (the index|'[^']*') again\.$", " remove", str(error))
        wrong = wrong if times else f"{error} Remove"  # the advice is given only once
        raise error.saying(f"{wrong} the folder {folder}; {again}.") from None
    encoder = None
    if needs_encoder(manifest.kind):
        yield f"loading the encoder {manifest.encoder_name}"
        encoder = encoders(manifest.encoder_name)
    yield f"opening {name}"
    yield INDEX_KINDS[manifest.kind].open(name, folder, manifest, encoder)


def open_combination(
    name: str,
    entry: Combination,
    parts: Sequence[Any],
    llm: Any = None,
    examples: Sequence[Example] = (),
) -> Any:
    """Return the Retriever over the open ``parts``; ``llm``, ``examples``: the ones named in its settings.

    ``entry`` is resolved: its settings are checked and complete (see ``WorkspaceFolder.retriever``).
    """
    if entry.kind == INDEX:
        return _with_knobs(name, parts[0], entry.settings)
    way = COMBINATIONS.entry(entry.kind)
    if way.traits.get("questions"):
        return way.value(name, parts, entry.settings, examples)
    if not way.traits.get("llm"):
        return way.value(name, parts, entry.settings)
    own = entry.settings["prompt"]
    below = str(way.traits.get("prompts", "rerank"))
    return way.value(
        name, parts, entry.settings, llm, lambda kind: _prompt(below, own or f"{kind}.txt")
    )


def _with_knobs(name: str, index: Any, settings: Json) -> Any:
    knobs = dict(settings)
    quantization = knobs.pop(QUERY_QUANTIZATION, "none")
    if quantization != "none":
        encoder = open_encoder(with_settings(index.encoder_name, quantization=quantization))
        index = index.with_query_encoder(encoder, quantization)
    return index.with_knobs(name, knobs)


def _prompt(below: str, file: str) -> str:
    """Return the user's prompt at a path, or a shipped prompt by its name in the folder ``below``."""
    shipped = prompts_folder() / below / file
    path = shipped if shipped.is_file() else Path(file).expanduser()
    return read_prompt(path, "give a text file in UTF-8")


def build_starter(indexes: Path, name: str, encoders: Callable[[str], Any]) -> Iterator[str]:
    """Build one of the starter's indexes, yielding progress sentences."""
    recipe, encoder = starter_recipe(name), None
    if recipe.encoder:
        yield f"loading the encoder {recipe.encoder}"
        encoder = encoders(recipe.encoder)
    for progress in build_index(indexes, name, recipe, encoder=encoder):
        far = f" {progress.done}/{progress.total}" if progress.total else ""
        yield f"building {name}: {progress.message}{far}"


def opening_llm(name: str, entry: LLMEntry, cache: Path | None = None) -> Iterator[str | Any]:
    """Yield progress sentences, and last the language model of an entry; loads its weights if the backend has any.

    ``cache``: folder for files that a backend makes once, such as a converted model.
    """
    if entry.backend not in LLMS:
        raise NotFoundError(
            f"The model {name!r}: " + unknown("language model backend", entry.backend, LLMS.names())
        )
    backend = LLMS.entry(entry.backend)
    stages = backend.traits.get("loading")
    settings = with_environment(entry).settings
    try:
        if stages is None:
            yield backend.value(name, **settings)
        else:
            yield from stages(name, cache, **settings)
    except TypeError as error:
        raise UsageError(
            f"The model {name!r} has a setting that {entry.backend} does not take: {error}."
        ) from None


def open_llm(name: str, entry: LLMEntry, cache: Path | None = None) -> Any:
    """Open the language model of an entry."""
    return list(opening_llm(name, entry, cache))[-1]
