"""The table of loaded models and retrievers. It opens, enters and measures each of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from rallebench.core import memory
from rallebench.core.backends import Backends, close
from rallebench.core.entries import Combination, LLMEntry
from rallebench.core.errors import (
    BackendMemoryError,
    NotFoundError,
    RalleError,
    StoppedError,
    UsageError,
)
from rallebench.datasets.reading import read_questions
from rallebench.encoders.references import encoder_need
from rallebench.llms.load_progress import reporting
from rallebench.retrievers.composites import about
from rallebench.services.load_queue import LoadJob
from rallebench.services.memory_fit import MemoryFit, candidate, memory_fit
from rallebench.services.model_entries import ELSEWHERE
from rallebench.workspace.opening import (
    Encoders,
    open_combination,
    open_retriever,
    opening_llm,
)
from rallebench.workspace.paths import WorkspaceFolder

Footprint = dict[str, "memory.Memory | None"]
"""Name → bytes of ``ram`` and ``vram``; None if unknown."""


@dataclass(frozen=True, slots=True)
class LoadedBackend:
    """A loaded retriever or language model. ``ram`` and ``vram``: bytes, measured during the load.

    ``expected``: the estimated bytes; 0 without an estimate.
    """

    name: str
    kind: str
    about: str
    ram: int
    vram: int
    seconds: float
    expected: int = 0


@dataclass
class LoadedTable:
    """Retrievers and language models by name, in the order of loading; ``lock`` guards every change.

    ``parts``: name → (part, kind) of its components, set when its load starts.
    """

    workspace: WorkspaceFolder
    lock: threading.RLock = field(default_factory=threading.RLock)
    encoders: Encoders = field(default_factory=Encoders)
    retrievers: dict[str, Any] = field(default_factory=dict)
    llms: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, LoadedBackend] = field(default_factory=dict)
    parts: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    @property
    def backends(self) -> Backends:
        """A snapshot of the loaded backends, so that unloading never takes a model from a run."""
        with self.lock:
            return Backends(dict(self.retrievers), dict(self.llms))

    def status(self) -> list[LoadedBackend]:
        """Return the loaded models, encoders and retrievers, in the order of loading."""
        with self.lock:
            # For a model behind a server, ``about`` explains why its requests are waiting.
            notes = {name: getattr(llm, "about", "") for name, llm in self.llms.items()}
            rows = self.rows.values()
            return [replace(row, about=notes.get(row.name) or row.about) for row in rows]

    def held_memory(self) -> dict[str, memory.Memory]:
        """Name → memory taken, for everything that is loaded."""
        return {row.name: memory.Memory(row.ram, row.vram) for row in self.status()}

    def footprint(self, names: Iterable[str]) -> Footprint:
        """Return the memory of the loaded items among ``names`` and of all their parts, to record with a run's cost.

        Memory is unknown if another program or server holds it, or if it was too small to measure. Shared parts, such
        as an encoder, count with the item that was loaded first.
        """
        with self.lock:
            rows, parts = dict(self.rows), dict(self.parts)
        footprint: Footprint = {}
        todo = [name for name in names if name in rows]
        while todo:
            name = todo.pop(0)
            if name not in footprint:
                inside = [part for part, _ in parts.get(name, ()) if part in rows]
                footprint[name] = self._measure(rows[name], combined=bool(inside))
                todo += inside
        return footprint

    def _measure(self, row: LoadedBackend, *, combined: bool) -> memory.Memory | None:
        if row.kind == "language model":
            with suppress(RalleError):
                if self.workspace.llm(row.name).backend == ELSEWHERE:
                    return None
        else:
            manifest = self.workspace.manifests().get(row.name)
            if manifest is not None and "uri" in manifest.parameters:
                return None
        ram, vram = max(row.ram, 0), max(row.vram, 0)
        return memory.Memory(ram, vram) if ram + vram or combined else None

    def has(self, name: str, kind: str) -> bool:
        """Return whether ``name`` is loaded. Raises UsageError if it is loaded, but not as a ``kind``."""
        row = self.rows.get(name)
        if row is not None and row.kind != kind:
            raise UsageError(
                f"{name!r} is loaded as a {row.kind}, so no {kind} of that name can be; rename one of the two."
            )
        return row is not None

    def enter(self, load: LoadJob) -> str | BaseException:
        """Open and enter the backend. Return a sentence, or the error after freeing everything."""
        try:
            with reporting(load.tell):
                return self._enter(load)
        except BaseException as raised:
            error = raised
            memory.forget_frames(error)
            self._close_unused_encoders()
            memory.release()
            return error
        finally:
            if load.beside is not None:
                load.beside.leave(load)

    def _enter(self, load: LoadJob) -> str:
        model = candidate(load.name, load.entry) if isinstance(load.entry, LLMEntry) else None
        fit = memory_fit(model, self.held_memory()) if model is not None else None
        if fit is not None and not fit.fits:
            raise BackendMemoryError(fit.sentence)
        started, used = time.perf_counter(), set(self.encoders.names)
        load.before = load.beside.enter(load) if load.beside else memory.Memory.now()
        backend, line = self._open(load)
        seconds = time.perf_counter() - started
        try:
            took = self._take(load, backend, fit, used)
            load.check()
        except StoppedError:
            close(backend)
            raise
        expected = fit.need.resident if fit else 0
        estimated = f" (estimated {memory.size(expected)})" if expected else ""
        table = self.llms if load.kind == "language model" else self.retrievers
        with self.lock:
            table[load.name] = backend
            self.rows[load.name] = LoadedBackend(
                load.name, load.kind, line, took.ram, took.vram, seconds, expected
            )
        return f"loaded {load.name}: {took}{estimated}, {seconds:.1f} s"

    def _take(
        self, load: LoadJob, backend: Any, fit: MemoryFit | None, used: set[str]
    ) -> memory.Memory:
        """Return the memory taken by a newly opened backend; ``used``: the encoders loaded before it."""
        took = memory.Memory.now() - load.before
        if load.beside is not None:
            need = fit.need.as_memory if fit else memory.Memory()
            is_llm = load.kind == "language model"
            weight = 0 if is_llm else self._weight(load.name, used)
            if (share := load.beside.share(load, need if is_llm else None, weight)) is not None:
                return share
        own = getattr(backend, "memory", None)
        return (
            own if isinstance(own, memory.Memory) else took
        )  # excludes the libraries, which stay loaded

    def _weight(self, name: str, used: set[str]) -> int:
        """Return the bytes of an index's files, and of its encoder unless that was already loaded."""
        manifest, folder = self.workspace.manifests().get(name), self.workspace.index_folder(name)
        files = folder.rglob("*") if folder else ()
        size = sum(file.stat().st_size for file in files if file.is_file())
        if manifest is None or not manifest.encoder_name or manifest.encoder_name in used:
            return size
        need = encoder_need(manifest.encoder_name)
        return size + (need.resident if need else 0)

    def _open(self, load: LoadJob) -> tuple[Any, str]:
        """Return (the opened backend of a load, one line about it)."""
        name, entry = load.name, load.entry
        if isinstance(entry, Combination):
            load.tell(f"opening {name}")
            with self.lock:
                members = [self.retrievers[member] for member in entry.of]
                llm = self.llms.get(entry.settings.get("llm", ""))
            questions = entry.settings.get("questions")
            examples = read_questions(self.workspace.dataset(questions)[1]) if questions else ()
            return open_combination(name, entry, members, llm, examples), about(entry)
        if entry is not None:
            load.tell(f"loading {name}")
            for place, piece in enumerate(opening_llm(name, entry, self.workspace.cache)):
                if not isinstance(piece, str):
                    return piece, getattr(piece, "about", "") or entry.about
                if place == 0:  # the libraries are imported by now and stay loaded
                    load.before = memory.Memory.now()
                load.tell(piece)
        for piece in open_retriever(self.workspace, name, self.encoders):
            if not isinstance(piece, str):
                return piece, self.workspace.retrievers().get(name, "")
            load.tell(piece)
        raise AssertionError("opening ends with the backend")

    def remove(self, name: str) -> str:
        """Close ``name``; return a sentence about the memory freed. Raises NotFoundError, and UsageError for a part
        of another loaded item.
        """
        with self.lock:
            if name not in self.rows:
                raise NotFoundError(f"{name!r} is not loaded.")
            for whole, parts in self.parts.items():
                if name in [part for part, _ in parts]:
                    raise UsageError(
                        f"{name!r} is part of {whole!r}, which is loaded; unload {whole!r} first."
                    )
            before = memory.Memory.now()
            backend = self.llms.pop(name, None) or self.retrievers.pop(name, None)
            del self.rows[name]
            self.parts.pop(name, None)
            close(backend)
            del backend
            self._close_unused_encoders()
            memory.release()
            return f"Unloaded {name}: {before - memory.Memory.now()} given back."

    def _close_unused_encoders(self) -> None:
        manifests = self.workspace.manifests()
        with self.lock:
            self.encoders.keep(
                {m.encoder_name for n, m in manifests.items() if n in self.retrievers}
            )

    def clear(self) -> None:
        with self.lock:
            backends = [*self.llms.values(), *self.retrievers.values()]
            for table in (self.llms, self.retrievers, self.rows, self.parts):
                table.clear()
        for backend in backends:
            close(backend)
