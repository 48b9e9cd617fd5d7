"""What is loaded: one table of retrievers and language models, so that screen and memory cannot disagree.

Loading adds, unloading removes, nothing is replaced.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rallebench import memory
from rallebench.background import Followed
from rallebench.bench.perform import Backends
from rallebench.catalog import Combination, LLMEntry
from rallebench.combining import about, needs
from rallebench.errors import NotFoundError, UsageError
from rallebench.loading import Encoders, close, open_combination, open_retriever, opening_llm
from rallebench.types import Chain
from rallebench.workspace import Workspace

HEAVY_BACKENDS = frozenset({"transformers"})
"""Backends that may take gigabytes: the page loads them only when asked to."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A line of the status table. ``ram`` and ``vram`` in bytes, measured around the load."""

    name: str
    kind: str
    about: str
    ram: int
    vram: int
    seconds: float


class Loads:
    """The table. Safe for several sessions at once; loads come one by one."""

    def __init__(self, workspace: Workspace, in_use: Callable[[], bool]) -> None:
        """``in_use``: whether something runs now that an unload would pull a model from under."""
        self._workspace, self._in_use = workspace, in_use
        self._retrievers: dict[str, Any] = {}
        self._llms: dict[str, Any] = {}
        self._loaded: dict[str, Loaded] = {}
        self.encoders = Encoders()
        self._loading: dict[str, Followed] = {}
        self._needs: dict[str, list[tuple[str, str]]] = {}
        self._lock = threading.RLock()
        self._one_load = threading.Lock()

    def close(self) -> None:
        """Let go of everything."""
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
            return list(self._loaded.values())

    def loading(self) -> dict[str, str]:
        """Name → newest sentence of every load that goes on now."""
        with self._lock:
            return {name: str(loading.newest) for name, loading in self._loading.items()}

    def is_loaded(self, name: str) -> bool:
        """Whether ``name`` is loaded."""
        return name in self._loaded

    def load(self, name: str, kind: str) -> Iterator[str]:
        """Load a ``retriever`` or ``language model``, yielding progress; what is loaded stays loaded.

        Two sessions that ask for one name load it once. Raises RalleError; a failed load leaves nothing.
        What a combination of retrievers is made of is loaded first and stays in the table.
        """
        with self._lock:
            if self._is_loaded_as(name, kind):
                return
            loading = self._loading.get(name)
            if loading is None:
                entry: LLMEntry | Combination | None
                entry = self._workspace.llm(name) if kind == "language model" else self._workspace.retriever(name)
                # From here on nobody unloads what this load needs.
                self._needs[name] = needs(entry) if isinstance(entry, Combination) else []
                loading = self._loading[name] = Followed(f"{name} could not be loaded")
                loading.start(self._load, name, kind, entry, loading)
        yield from loading.follow()

    def _is_loaded_as(self, name: str, kind: str) -> bool:
        loaded = self._loaded.get(name)
        if loaded is not None and loaded.kind != kind:
            raise UsageError(
                f"{name!r} is loaded as a {loaded.kind}, so no {kind} of that name can be; rename one of the two."
            )
        return loaded is not None

    def _load(
        self, name: str, kind: str, entry: LLMEntry | Combination | None, loading: Followed
    ) -> None:
        """Load in a thread of its own: a page that goes away stops nothing, and loads come one by one."""
        try:
            for needed, its_kind in self._needs.get(name, []):
                for message in self.load(needed, its_kind):
                    loading.say(message)
            with self._one_load:
                started, before = time.perf_counter(), memory.Memory.now()
                backend, about = self._open(name, entry, loading)
                took, seconds = memory.Memory.now() - before, time.perf_counter() - started
                with self._lock:
                    (self._llms if kind == "language model" else self._retrievers)[name] = backend
                    self._loaded[name] = Loaded(name, kind, about, took.ram, took.vram, seconds)
                loading.say(f"loaded {name}: {took}, {seconds:.1f} s")
        except BaseException:
            with self._lock:
                self._needs.pop(name, None)
            memory.release()
            raise
        finally:
            with self._lock:
                del self._loading[name]

    def _open(
        self, name: str, entry: LLMEntry | Combination | None, loading: Followed
    ) -> tuple[Any, str]:
        if isinstance(entry, Combination):
            loading.say(f"opening {name}")
            with self._lock:
                parts = [self._retrievers[part] for part in entry.of]
                llm = self._llms.get(entry.settings.get("llm", ""))
            return open_combination(name, entry, parts, llm), about(entry)
        if entry is not None:
            loading.say(f"loading {name}")
            for piece in opening_llm(name, entry):
                if not isinstance(piece, str):
                    return piece, getattr(piece, "about", "") or entry.about
                loading.say(piece)
        for piece in open_retriever(self._workspace, name, self.encoders):
            if not isinstance(piece, str):
                return piece, self._workspace.retrievers().get(name, "")
            loading.say(piece)
        raise AssertionError("opening ends with what was opened")

    def unload(self, name: str) -> str:
        """Let go of ``name``; return a sentence saying how much memory came back."""
        with self._lock:
            if name not in self._loaded:
                raise NotFoundError(f"{name!r} is not loaded.")
            if self._in_use():
                raise UsageError(f"A benchmark is running; {name!r} can be unloaded when it has ended.")
            users = [user for user, wanted in self._needs.items() if name in [needed for needed, _ in wanted]]
            if users:
                raise UsageError(f"{name!r} is part of {users[0]!r}, which is loaded; unload {users[0]!r} first.")
            before = memory.Memory.now()
            backend = self._llms.pop(name, None) or self._retrievers.pop(name, None)
            del self._loaded[name]
            self._needs.pop(name, None)
            close(backend)
            del backend
            self.encoders.keep(
                {m.encoder_name for n, m in self._workspace.manifests().items() if n in self._retrievers}
            )
            memory.release()
            return f"Unloaded {name}: {before - memory.Memory.now()} given back."

    def load_for(self, chain: Chain, *, heavy: bool = True) -> Iterator[str | Backends]:
        """Load all that ``chain`` names, yielding progress, the Backends last.

        With ``heavy`` false a model that may take gigabytes must be loaded already. Models come first: a
        wrong setting is then found before a starter index is built.
        """
        for action in sorted(chain.actions, key=lambda action: action.kind != "generate"):
            kind = "language model" if action.kind == "generate" else "retriever"
            if not action.template or action.kind == "identity" or self._is_loaded_as(action.target, kind):
                continue
            if not heavy:
                self._refuse_heavy(action.target, kind)
            yield from self.load(action.target, kind)
        yield self.backends

    def _refuse_heavy(self, name: str, kind: str) -> None:
        """Raise NotFoundError for a heavy model that is not loaded, also where a retriever asks it."""
        if name in self._loaded:
            return
        if kind == "retriever":
            entry = self._workspace.retriever(name)
            for needed, its_kind in needs(entry) if entry else ():
                self._refuse_heavy(needed, its_kind)
        elif self._workspace.llm(name).backend in HEAVY_BACKENDS:
            raise NotFoundError(f"The language model {name!r} is not loaded. Load it in the Models tab.")
