"""The table of loaded retrievers and language models, and the models of the workspace.

Loading adds an item, unloading removes it, and nothing is replaced. Everyone who requests the same load follows one
load together; a cancel ends it for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial

from rallebench.checkpoints.packages import are_importing
from rallebench.core.backends import Backends
from rallebench.core.entries import Combination, LLMEntry
from rallebench.core.errors import (
    Hint,
    NotFoundError,
    RalleError,
    ReadOnlyError,
    StoppedError,
    UsageError,
)
from rallebench.core.events import Operation, Progress
from rallebench.core.memory import size
from rallebench.core.parts import delete
from rallebench.core.stopping import Stop
from rallebench.core.versions import imported_module
from rallebench.encoders.references import encoder_need, quantizations
from rallebench.llms import LLMS
from rallebench.retrievers.composites import needs
from rallebench.services import libraries, model_entries
from rallebench.services.jobs import Job, JobManager
from rallebench.services.leases import Lease, Leases
from rallebench.services.load_queue import PAGE_CANCEL_SECONDS, LoadJob, LoadQueue
from rallebench.services.loaded import Footprint, LoadedBackend, LoadedTable
from rallebench.services.memory_fit import (
    Candidate,
    MemoryFit,
    candidate,
    in_every_form,
    memory_fit,
)
from rallebench.services.side_by_side import SideBySide
from rallebench.workspace.paths import WorkspaceFolder
from rallebench.workspace.prices import prices_of_use

PREPARATION = "preparation"
"""Kind of the jobs that import libraries in advance."""


class ModelManager:
    """Loads, unloads, adds and deletes models. Safe for concurrent sessions; loads run one at a time."""

    def __init__(self, workspace: WorkspaceFolder, jobs: JobManager) -> None:
        self._workspace = workspace
        self._table = LoadedTable(workspace)
        self.encoders = self._table.encoders
        self._jobs = jobs
        self.queue = LoadQueue(jobs, self._table.lock)
        self.leases = Leases()

    def close(self) -> None:
        """Unload everything; running loads are cancelled and get a moment to end."""
        self.queue.stop(PAGE_CANCEL_SECONDS)
        self._table.clear()

    # loaded models

    @property
    def backends(self) -> Backends:
        return self._table.backends

    def status(self) -> list[LoadedBackend]:
        return self._table.status()

    def trouble(self, names: Iterable[str], work: Stop) -> str:
        """Why a request of this work to one of these language models is being retried; "" if none is."""
        llms = self.backends.llms
        asking = (getattr(llms.get(name), "trouble", None) for name in names)
        return next(filter(None, (trouble(work) for trouble in asking if trouble)), "")

    def is_loaded(self, name: str) -> bool:
        return name in self._table.rows

    def is_loaded_as(self, name: str, kind: str) -> bool:
        """Return whether an item is loaded; ``kind`` is ``retriever`` or ``language model``."""
        return self._table.has(name, kind)

    def lease(self, holder: str) -> Lease:
        """Return an empty lease; ``holder`` appears in refusals to unload, as in "the sweep 'ks'"."""
        return Lease(self, holder)

    def refuse_heavy(self, name: str, kind: str) -> None:
        """Raise NotFoundError if a heavy model is not loaded, including models used by a retriever."""
        if self.is_loaded(name):
            return
        if kind == "retriever":
            entry = self._workspace.retriever(name)
            for needed, its_kind in needs(entry) if entry else ():
                self.refuse_heavy(needed, its_kind)
            return
        backend = self._workspace.llm(name).backend
        if backend in LLMS and "loading" in LLMS.entry(backend).traits:
            raise NotFoundError(
                f"The language model {name!r} is not loaded.", hint=Hint("load", name)
            )

    def asks_model(self, retriever: str) -> bool:
        """Return whether a search with this retriever asks a language model. Raises UsageError for an unknown one."""
        entry = self._workspace.retriever(retriever)
        parts = needs(entry) if entry else []
        return any(kind != "retriever" or self.asks_model(part) for part, kind in parts)

    def memory(self, names: Iterable[str]) -> Footprint:
        """Return the memory of loaded models and indexes; see ``LoadedTable.footprint``."""
        return self._table.footprint(names)

    def prices_of_use(self) -> dict[str, Mapping[str, float] | None]:
        """Language model of the workspace → its ``price_of_use``."""
        return prices_of_use(self._workspace)

    # memory needed by a load

    def room(self, name: str) -> MemoryFit | None:
        """Compare the need of a language model or encoder with the free memory; None if the need is unknown.

        Loads nothing and uses no network: for a hub id, only the local cache is read. Raises RalleError.
        """
        model = self._candidate(name)
        return memory_fit(model, self._table.held_memory()) if model else None

    def room_in_every_form(
        self, name: str, *, context: int | None = None, batch: int | None = None
    ) -> dict[str, MemoryFit]:
        """Compare every quantization of the model with the free memory; {} if nothing is known.

        ``context``: tokens; ``batch``: simultaneous answers. Both default to the model's settings.
        """
        model = self._candidate(name, context, batch)
        return in_every_form(model, self._table.held_memory()) if model else {}

    def loaded_quantization(self, name: str) -> str:
        """Return the quantization in which ``name`` is loaded; ``none`` if it has none."""
        model = self._candidate(name)
        return model.chosen if model else "none"

    def _candidate(
        self, name: str, context: int | None = None, batch: int | None = None
    ) -> Candidate | None:
        """Return the language model, or else the encoder, called ``name``. Raises NotFoundError."""
        try:
            entry = self._workspace.llm(name)
        except NotFoundError:
            with suppress(NotFoundError):
                chosen, forms = quantizations(name)
                return Candidate(name, forms, chosen, partial(encoder_need, name))
            raise
        return candidate(name, entry, context=context, batch=batch)

    # loading and unloading

    def load(self, name: str, kind: str) -> Iterator[str]:
        """Load a ``retriever`` or ``language model``, yielding progress; other items stay loaded.

        Two sessions that request the same name load it once. Raises RalleError. A failed or cancelled load
        (StoppedError) leaves nothing behind. Ctrl-C cancels the load; closing a page does not. The parts of a
        combination are loaded first and stay loaded.
        """
        load = self.begin(name, kind)
        if load is not None:
            yield from self.queue.follow(load)

    def begin_together(self, loads: Iterable[tuple[str, str]]) -> None:
        """Start the light loads among these (name, kind) pairs concurrently. Raises RalleError."""
        light = [load for load in loads if libraries.is_light(self._workspace, *load)]
        beside = SideBySide()
        for name, kind in light if len(light) > 1 else ():
            self.begin(name, kind, beside=beside)

    def begin(
        self, name: str, kind: str, *, requested: bool = True, beside: SideBySide | None = None
    ) -> LoadJob | None:
        """Start a load or join the running one, without waiting; None if the item is already loaded.

        ``requested``: by a user, not only as part of another load. ``beside``: shared by loads that may run at the
        same time. Raises RalleError.
        """
        with self._table.lock:
            if self.is_loaded_as(name, kind):
                return None
            load = self.queue.get(name)
            if load is None:
                is_llm = kind == "language model"
                if is_llm and self._workspace.read_only:
                    raise ReadOnlyError(
                        f"{name!r} is a language model, and this program is read-only: it asks no model."
                    )
                entry = self._workspace.llm(name) if is_llm else self._workspace.retriever(name)
                parts = needs(entry) if isinstance(entry, Combination) else []
                load = LoadJob(name, kind, entry, parts, beside)
                self.queue.begin(load, self._load)
                # From here on the parts cannot be unloaded; the job's thread waits for this lock.
                self._table.parts[name] = parts
            load.requested = load.requested or requested
            return load

    def cancel(self, name: str = "") -> str:
        """Cancel a load for all its followers, or all loads if no name is given. Return a sentence. Raises
        NotFoundError.
        """
        return self.queue.cancel(name)

    def loading(self) -> dict[str, LoadJob]:
        return self.queue.loads()

    def load_outcomes(self) -> dict[str, str | RalleError]:
        """Name → how its last load or unload ended, newest last, for pages opened later."""
        with self._table.lock:
            return dict(self.queue.outcomes)

    def _load(self, load: LoadJob) -> Operation[None]:
        """Load as a job, one load at a time, so that closing a page stops nothing."""
        yield from ()
        outcome: str | BaseException
        try:
            for part, kind in load.parts:
                loading = self.begin(part, kind, requested=False)
                for message in self.queue.follow(loading) if loading else ():
                    load.tell(message)
            self._import_libraries(load)
            with self.queue.wait_turn(load):
                outcome = self._table.enter(load)
                if isinstance(outcome, str):
                    self.queue.outcomes[load.name] = outcome
                    load.job.publish(outcome)
        except BaseException as raised:
            outcome = raised
        error = None if isinstance(outcome, str) else outcome
        if isinstance(error, StoppedError) and load.cancelled:
            error = StoppedError(load.cancellation())
        with self._table.lock:
            if self.queue.end(load, error) and error is not None:
                self._table.parts.pop(load.name, None)
        if error is not None:
            raise error

    def _import_libraries(self, load: LoadJob) -> None:
        """Import a load's libraries before its turn. They stay loaded and do not count as any model's memory."""
        work = libraries.importer(self._workspace, load.name, load.kind)
        if work is not None and not isinstance(load.entry, Combination):
            if are_importing() or not imported_module("transformers"):
                load.tell(f"loading {load.name}: {libraries.ABOUT}")
            work()
            load.tell("")

    def prepare(self, name: str, loads: Iterable[tuple[str, str]]) -> Job:
        """Start a job of that name that imports the libraries of expected loads, given as (name, kind) pairs."""
        importers = [libraries.importer(self._workspace, *load) for load in loads]

        def work(job: Job) -> Operation[None]:
            for importer in filter(None, importers):
                yield Progress("", message=libraries.ABOUT)
                importer()

        return self._jobs.submit(PREPARATION, name, "", work)

    def unload(self, name: str, *, record: bool = True) -> str:
        """Unload ``name``; return a sentence about the memory freed. ``record``: keep the outcome for pages opened
        later.

        Raises UsageError while it is in use or part of another loaded item; NotFoundError.
        """
        with self._table.lock:
            holders = self.leases.holders(name, self._table.parts)
            if holders and self.is_loaded(name):
                raise UsageError(
                    f"{name!r} is in use by {' and '.join(holders)}; stop that, or wait for its end."
                )
            message = self._table.remove(name)
            self.queue.outcomes.pop(name, None)
            if record:
                self.queue.outcomes[name] = message
            return message

    # entries of the workspace

    def own(self) -> dict[str, LLMEntry]:
        """Name → readable entry of the workspace's own file."""
        return model_entries.own(self._workspace)

    def entry(self, name: str) -> LLMEntry:
        """Return an entry of the workspace. Raises NotFoundError."""
        return model_entries.entry(self._workspace, name)

    def set_key(self, name: str, key: str) -> str:
        """Keep a typed key for a model of the workspace, or forget it if the key is ''; return a sentence.

        The model is unloaded so that the next request uses the new key. Raises UsageError while it is in use.
        """
        entry = self.entry(name)
        if entry.backend != model_entries.ELSEWHERE:
            raise UsageError(f"{name!r} runs in this program and needs no key.")
        if self.is_loaded(name):
            self.unload(name)
        if not key.strip():
            model_entries.forget_key(entry.settings)
            return f"The key of {name} is forgotten."
        settings = model_entries.with_key(entry.settings, key)
        if settings != entry.settings:
            self.add(name, entry.model_copy(update={"settings": settings}), replace=True)
        return f"The key is kept in memory until rallebench ends; {name} uses it from now on."

    def add(self, name: str, entry: LLMEntry, *, replace: bool = False) -> list[str]:
        """Save an entry; return sentences, of which the first confirms it. If UsageError is raised, nothing is
        written.

        ``replace``: overwrite an existing entry of that name. Reads no weights and contacts no server.
        """
        sentence, *notes = model_entries.save(self._workspace, name, entry, replace=replace)
        if self.is_loaded(name := name.strip()):
            earlier = f"{name} is loaded with its earlier settings: unload it, then load it again."
            notes.insert(0, earlier)
        return [sentence, *notes]

    def delete(self, name: str) -> str:
        """Delete an entry; return a sentence. Raises UsageError while it is loaded. Downloaded weights are kept."""
        self.entry(name)
        if self.is_loaded(name) or name in self.loading():
            raise UsageError(f"{name!r} is loaded.", hint=Hint("unload", name))
        return model_entries.delete(self._workspace, name)

    def converted_bytes(self, name: str) -> int:
        """Size in bytes of the converted copy of a model's GGUF file; 0 if there is none."""
        copy = model_entries.find_converted_copy(self._workspace, name, self._workspace.llm(name))
        return sum(file.stat().st_size for file in copy.iterdir()) if copy else 0

    def delete_converted(self, name: str) -> str:
        """Delete the converted copy of a model's GGUF file; return a sentence.

        Raises UsageError while a model from that file is loaded, NotFoundError if there is no copy.
        """
        entries = self._workspace.llms()
        copies = {
            key: model_entries.find_converted_copy(self._workspace, key, entry)
            for key, entry in entries.items()
        }
        if (copy := copies.get(name)) is None:
            raise NotFoundError(f"The model {name!r} has no converted copy.")
        for other in (key for key, folder in copies.items() if folder == copy):
            if self.is_loaded(other) or other in self.loading():
                raise UsageError(f"{other!r} is loaded.", hint=Hint("unload", other))
        freed = size(self.converted_bytes(name))
        delete(copy)
        return (
            f"Deleted the converted copy of {name}, {freed}. The next load converts the file again."
        )
