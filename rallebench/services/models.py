"""What is loaded: one table of retrievers and language models, so that screen and memory cannot disagree.

Loading adds, unloading removes, nothing is replaced. A load is one for all who ask for it: they follow it
together, and whoever cancels it cancels it for all of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rallebench.core import memory
from rallebench.core.entries import Combination, LLMEntry
from rallebench.core.errors import (
    BackendMemoryError,
    NotFoundError,
    RalleError,
    StoppedError,
    UsageError,
)
from rallebench.core.events import Operation
from rallebench.core.runs import Backends
from rallebench.datasets.reading import read_questions
from rallebench.encoders.references import encoder_need, quantizations
from rallebench.llms import LLMS
from rallebench.llms._transformers.progress import reporting
from rallebench.retrievers.composites import about, needs
from rallebench.services.jobs import Job, JobManager
from rallebench.services.leases import Lease, Leases
from rallebench.services.load_queue import Going, Load, Turns
from rallebench.services.memory_fit import (
    Candidate,
    MemoryFit,
    candidate,
    in_every_form,
    memory_fit,
)
from rallebench.workspace.opening import (
    Encoders,
    close,
    open_combination,
    open_retriever,
    opening_llm,
)
from rallebench.workspace.paths import Workspace


def is_heavy(backend: str) -> bool:
    """Whether a model of this backend may take gigabytes: the page loads it only when asked to."""
    return backend in LLMS and "loading" in LLMS.entry(backend).traits


GRACE, PATIENCE = 2.0, 10.0
"""Seconds that a page, and the command line, wait for a cancelled load to end before they go on without it."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A line of the status table. ``ram`` and ``vram`` in bytes, measured around the load.

    ``expected``: bytes as they were estimated before, 0 if they were not.
    """

    name: str
    kind: str
    about: str
    ram: int
    vram: int
    seconds: float
    expected: int = 0


class Loads:
    """The table. Safe for several sessions at once; loads come one by one."""

    def __init__(self, workspace: Workspace, jobs: JobManager) -> None:
        self._workspace, self._jobs = workspace, jobs
        self.leases = Leases()
        self._retrievers: dict[str, Any] = {}
        self._llms: dict[str, Any] = {}
        self._loaded: dict[str, Loaded] = {}
        self.encoders = Encoders()
        self._loading: dict[str, Load] = {}
        self._turns = Turns()
        self._ended: dict[str, str | RalleError] = {}
        self._needs: dict[str, list[tuple[str, str]]] = {}
        self._lock = threading.RLock()

    def stop(self) -> None:
        """Cancel every load."""
        with self._lock:
            for load in self._loading.values():
                load.job.stop()

    def wait(self, seconds: float) -> None:
        """Wait until no load goes on, at most ``seconds`` for each."""
        with self._lock:
            going = list(self._loading.values())
        for load in going:
            load.job.wait(seconds)

    def close(self) -> None:
        """Let go of everything; a load that goes on is cancelled and has a moment to end."""
        self.stop()
        self.wait(GRACE)
        with self._lock:
            backends = [*self._llms.values(), *self._retrievers.values()]
            self._llms, self._retrievers, self._loaded, self._needs = {}, {}, {}, {}
        for backend in backends:
            close(backend)

    @property
    def backends(self) -> Backends:
        """What is loaded now; a snapshot, so that an unload never pulls a model from under a run."""
        with self._lock:
            return Backends(dict(self._retrievers), dict(self._llms))

    def status(self) -> list[Loaded]:
        """What is loaded, in the order of loading."""
        with self._lock:
            # A model behind a server says there what holds its requests back now.
            notes = {name: getattr(llm, "about", "") for name, llm in self._llms.items()}
            return [
                replace(row, about=notes.get(row.name) or row.about)
                for row in self._loaded.values()
            ]

    def loading(self) -> dict[str, Going]:
        """Every load that goes on or waits for its turn now, in the order of the requests."""
        with self._lock:
            return {name: load.going() for name, load in self._loading.items()}

    def ended(self) -> dict[str, str | RalleError]:
        """Name → how its last load or unload ended, the newest last: for a page that is opened later."""
        with self._lock:
            return dict(self._ended)

    def forget(self) -> None:
        """Tell no more how loads ended."""
        with self._lock:
            self._ended = {}

    def is_loaded(self, name: str) -> bool:
        """Whether ``name`` is loaded."""
        return name in self._loaded

    def lease(self, holder: str) -> Lease:
        """A lease that holds nothing yet; ``holder`` is what a refusal to unload names, as in "the sweep 'ks'"."""
        return Lease(self, holder)

    def refuse_used(self, name: str) -> None:
        """Raise UsageError, which names the holder, if ``name`` is in use."""
        with self._lock:
            holders = self.leases.holders(name, self._needs)
        if holders:
            raise UsageError(
                f"{name!r} is in use by {' and '.join(holders)}; stop that, or wait for its end."
            )

    def room(
        self, name: str, *, context: int | None = None, batch: int | None = None
    ) -> MemoryFit | None:
        """What a language model or an encoder needs beside what is free now; None if nothing here says so.

        Loads nothing and asks no network: of a hub id only what the local cache holds is known. ``context`` tokens
        and ``batch`` answers at once: by default what its settings say. Raises RalleError.
        """
        model = self._candidate(name, context, batch)
        return memory_fit(model, self.held()) if model else None

    def room_in_every_form(
        self, name: str, *, context: int | None = None, batch: int | None = None
    ) -> dict[str, MemoryFit]:
        """The same for every quantisation of the model; {} if nothing here says so."""
        model = self._candidate(name, context, batch)
        return in_every_form(model, self.held()) if model else {}

    def quantization_of(self, name: str) -> str:
        """The quantisation in which ``name`` is loaded; ``none`` where it has none."""
        model = self._candidate(name, None, None)
        return model.chosen if model else "none"

    def _candidate(self, name: str, context: int | None, batch: int | None) -> Candidate | None:
        """The language model, or else the encoder, that ``name`` names. Raises NotFoundError."""
        try:
            entry = self._workspace.llm(name)
        except NotFoundError:
            with suppress(NotFoundError):
                chosen, forms = quantizations(name)
                return Candidate(name, forms, chosen, partial(encoder_need, name))
            raise
        return candidate(name, entry, context=context, batch=batch)

    def held(self) -> dict[str, memory.Memory]:
        """Name → what it took, for all that is loaded."""
        return {loaded.name: memory.Memory(loaded.ram, loaded.vram) for loaded in self.status()}

    def load(self, name: str, kind: str) -> Iterator[str]:
        """Load a ``retriever`` or ``language model``, yielding progress; what is loaded stays loaded.

        Two sessions that ask for one name load it once. Raises RalleError; a failed load leaves nothing, nor does
        one that somebody cancelled (StoppedError). Ctrl-C cancels it; a page that goes away does not.
        What a combination of retrievers is made of is loaded first and stays in the table.
        """
        load = self.begin(name, kind)
        if load is not None:
            yield from self._followed(load)

    def begin(self, name: str, kind: str, *, requested: bool = True) -> Load | None:
        """Begin a load, or join the one that goes on, and wait for nothing; None if it is loaded already.

        ``requested``: by a user, not as a part of another load. Raises RalleError.
        """
        with self._lock:
            if self.is_loaded_as(name, kind):
                return None
            load = self._loading.get(name)
            if load is None or load.cancelled:
                entry: LLMEntry | Combination | None
                entry = (
                    self._workspace.llm(name)
                    if kind == "language model"
                    else self._workspace.retriever(name)
                )
                load = Load(
                    name, kind, entry, needs(entry) if isinstance(entry, Combination) else []
                )
                if not load.needs:  # a combination gets its place when its parts are there
                    self._turns.queue(load)
                try:
                    self._jobs.submit(
                        "load",
                        name,
                        kind,
                        partial(self._job, load),
                        failure=f"{name} could not be loaded",
                        anew=True,
                    )
                except BaseException:
                    self._turns.leave(load)
                    raise
                # From here on nobody unloads what this load needs; its thread waits for this lock.
                self._needs[name] = load.needs
                self._loading.pop(name, None)
                self._loading[name] = load
                self._ended.pop(name, None)
            load.requested = load.requested or requested
            return load

    def cancel(self, name: str = "") -> str:
        """Cancel a load that goes on or waits, for everybody who follows it; all of them without a name.

        Returns a sentence. It ends at the next safe point: between two tensors, pieces of a download, or stages.
        Raises NotFoundError if there is none.
        """
        with self._lock:
            chosen = [
                load
                for load in self._loading.values()
                if name in ("", load.name) and not load.cancelled
            ]
            if not chosen:
                raise NotFoundError(
                    f"{name!r} is not being loaded." if name else "Nothing is being loaded."
                )
            for load in chosen:
                load.cancel("cancelled; ending at the next safe point")
                for part in (self._loading.get(part) for part, _ in load.needs):
                    if part is not None and not part.requested:
                        part.cancel(f"cancelled together with {load.name}")
        return f"Cancelling {', '.join(load.name for load in chosen)} …"

    def _followed(self, load: Load) -> Iterator[str]:
        try:
            for message in load.job.follow():
                if load.cancelled and not load.job.wait(GRACE):
                    raise StoppedError(
                        f"Loading {load.name} was cancelled; a step of a library that cannot be interrupted is "
                        "still going on, and what it loads is thrown away when it ends."
                    )
                yield message
        except KeyboardInterrupt:
            with suppress(NotFoundError):
                self.cancel(load.name)
            ended = load.job.wait(PATIENCE)
            raise StoppedError(
                self._cancelled(load) if ended else f"Loading {load.name} was cancelled."
            ) from None

    def is_loaded_as(self, name: str, kind: str) -> bool:
        """Whether ``name`` is loaded; UsageError if it is loaded as something else than a ``kind``."""
        loaded = self._loaded.get(name)
        if loaded is not None and loaded.kind != kind:
            raise UsageError(
                f"{name!r} is loaded as a {loaded.kind}, so no {kind} of that name can be; rename one of the two."
            )
        return loaded is not None

    def _job(self, load: Load, job: Job) -> Operation[None]:
        load.job = job
        return self._load(load)

    def _load(self, load: Load) -> Operation[None]:
        """Load as a job: a page that goes away stops nothing, and loads come one by one."""
        yield from ()
        failed: BaseException | None = None
        try:
            for needed, its_kind in load.needs:
                part = self.begin(needed, its_kind, requested=False)
                for message in self._followed(part) if part else ():
                    load.tell(message)
            with self._turns.turn(load):
                failed = self._tried(load)
        except BaseException as error:
            failed = error
        if isinstance(failed, StoppedError) and load.cancelled:
            failed = StoppedError(self._cancelled(load))
        with self._lock:
            if self._loading.get(load.name) is load:
                del self._loading[load.name]
                if failed is not None:
                    self._needs.pop(load.name, None)
                if isinstance(failed, RalleError):
                    self._ended[load.name] = failed
                elif isinstance(failed, Exception):
                    self._ended[load.name] = load.job.unexpected(failed)
        if failed is not None:
            raise failed

    def _tried(self, load: Load) -> BaseException | None:
        """Open what the load is for; if that fails, give back what it had taken and return the error."""
        failed: BaseException | None = None
        try:
            with reporting(load.tell):
                self._enter(load)
        except BaseException as error:
            failed = error
            memory.forget_frames(error)
        if failed is not None:
            self._keep_encoders()
            memory.release()
        return failed

    def _enter(self, load: Load) -> None:
        """Open what the load is for and enter it in the table. Raises BackendMemoryError if it cannot fit."""
        room = (
            memory_fit(model, self.held())
            if isinstance(load.entry, LLMEntry)
            and (model := candidate(load.name, load.entry)) is not None
            else None
        )
        if room is not None and not room.fits:
            raise BackendMemoryError(room.sentence)
        started, load.before = time.perf_counter(), memory.Memory.now()
        backend, about = self._open(load.name, load.entry, load)
        took, seconds = memory.Memory.now() - load.before, time.perf_counter() - started
        if load.cancelled:
            close(backend)
        load.tell("")
        own = getattr(
            backend, "memory", None
        )  # measured without the libraries, which stay when it is unloaded
        took = own if isinstance(own, memory.Memory) else took
        expected = room.need.loaded if room else 0
        estimated = f" (estimated {memory.size(expected)})" if expected else ""
        message = f"loaded {load.name}: {took}{estimated}, {seconds:.1f} s"
        with self._lock:
            (self._llms if load.kind == "language model" else self._retrievers)[load.name] = backend
            self._loaded[load.name] = Loaded(
                load.name, load.kind, about, took.ram, took.vram, seconds, expected
            )
            self._ended[load.name] = message
        load.job.say(message)

    def _cancelled(self, load: Load) -> str:
        """How a cancelled load ended."""
        if not load.begun:
            return f"Loading {load.name} was cancelled before its turn came; nothing was loaded."
        return (
            f"Loading {load.name} was cancelled and its memory given back: this process holds "
            f"{memory.Memory.now()}, before the load {load.before}."
        )

    def _open(
        self, name: str, entry: LLMEntry | Combination | None, loading: Load
    ) -> tuple[Any, str]:
        if isinstance(entry, Combination):
            loading.tell(f"opening {name}")
            with self._lock:
                parts = [self._retrievers[part] for part in entry.of]
                llm = self._llms.get(entry.settings.get("llm", ""))
            named = entry.settings.get("questions")
            examples = read_questions(self._workspace.dataset(named)[1]) if named else ()
            return open_combination(name, entry, parts, llm, examples), about(entry)
        if entry is not None:
            loading.tell(f"loading {name}")
            for place, piece in enumerate(opening_llm(name, entry)):
                if not isinstance(piece, str):
                    return piece, getattr(piece, "about", "") or entry.about
                if place == 0:  # the libraries are imported by now, and stay
                    loading.before = memory.Memory.now()
                loading.tell(piece)
        for piece in open_retriever(self._workspace, name, self.encoders):
            if not isinstance(piece, str):
                return piece, self._workspace.retrievers().get(name, "")
            loading.tell(piece)
        raise AssertionError("opening ends with what was opened")

    def unload(self, name: str, *, record: bool = True) -> str:
        """Unload ``name``; return a sentence on the memory that came back. ``record``: a page that is opened later shows it.

        Raises UsageError while it is in use, or part of what is loaded.
        """
        with self._lock:
            if name not in self._loaded:
                raise NotFoundError(f"{name!r} is not loaded.")
            self.refuse_used(name)
            users = [
                user
                for user, parts in self._needs.items()
                if name in [needed for needed, _ in parts]
            ]
            if users:
                raise UsageError(
                    f"{name!r} is part of {users[0]!r}, which is loaded; unload {users[0]!r} first."
                )
            before = memory.Memory.now()
            backend = self._llms.pop(name, None) or self._retrievers.pop(name, None)
            del self._loaded[name]
            self._needs.pop(name, None)
            close(backend)
            del backend
            self._keep_encoders()
            memory.release()
            message = f"Unloaded {name}: {before - memory.Memory.now()} given back."
            self._ended.pop(name, None)
            if record:
                self._ended[name] = message
            return message

    def _keep_encoders(self) -> None:
        """Let go of encoders that no loaded index needs."""
        manifests = self._workspace.manifests()
        with self._lock:
            self.encoders.keep(
                {m.encoder_name for n, m in manifests.items() if n in self._retrievers}
            )

    def refuse_heavy(self, name: str, kind: str) -> None:
        """Raise NotFoundError for a heavy model that is not loaded, also where a retriever asks it."""
        if name in self._loaded:
            return
        if kind == "retriever":
            entry = self._workspace.retriever(name)
            for needed, its_kind in needs(entry) if entry else ():
                self.refuse_heavy(needed, its_kind)
        elif is_heavy(self._workspace.llm(name).backend):
            raise NotFoundError(
                f"The language model {name!r} is not loaded. Load it in the Models tab."
            )
