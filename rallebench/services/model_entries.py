"""What people do with the language models of a workspace besides loading them: add, change, delete, look.

Entries stand in the workspace's ``llms.json``; a key never does, only the name of its variable.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.entries import LLMEntry
from rallebench.core.errors import NotFoundError, RalleError, UsageError
from rallebench.core.files import write_json
from rallebench.core.memory import size
from rallebench.core.registry import unknown
from rallebench.engine.cost import prices_of
from rallebench.http.endpoint import OPENAI, check_variable, is_loopback, variable_of
from rallebench.http.model_list import Server, served_models
from rallebench.llms import LLMS
from rallebench.llms._memory import device_of, dtype_of, free_on, need_of
from rallebench.llms.presets import known_model, weight_bytes
from rallebench.services.jobs import JobManager
from rallebench.services.memory_usage import Footprint, footprint
from rallebench.services.models import Loads
from rallebench.workspace.entries import read_llm_entries
from rallebench.workspace.opening import close, open_llm
from rallebench.workspace.paths import READER, Workspace
from rallebench.workspace.ralle_settings import with_environment


@dataclass(frozen=True, slots=True)
class Needs:
    """What a model in this process takes at most: bytes (0: not known before it is there), and sentences.

    ``fits``: whether that is less than what is free now; True where nothing is known.
    """

    bytes: int
    fits: bool
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Key:
    """``variable``: the environment variable whose key a server would be shown, '' for none. ``local``: whether
    the server runs on this machine."""

    variable: str
    is_set: bool
    local: bool


class Models(Loads):
    """The verbs about models: those of the table of what is loaded, and of the workspace's entries."""

    def __init__(self, workspace: Workspace, jobs: JobManager) -> None:
        super().__init__(workspace, jobs)
        self._changed: set[str] = set()  # while they were loaded

    @property
    def file(self) -> Path:
        """Where the entries are."""
        return self._workspace.path / "llms.json"

    def own(self) -> dict[str, LLMEntry]:
        """Name → entry of the workspace's own file. Raises BadFileError if it is damaged."""
        return read_llm_entries(self.file) if self.file.exists() else {}

    def entry(self, name: str) -> LLMEntry:
        """One of the own entries. Raises NotFoundError."""
        if name not in self.own():
            raise NotFoundError(f"There is no language model {name!r} in {self.file}.")
        return self.own()[name]

    # add and change

    def add(self, name: str, entry: LLMEntry, *, replace: bool = False) -> list[str]:
        """Save an entry; returns sentences, the first saying that it was. Raises UsageError, then nothing is written.

        ``replace``: an entry of that name may be there already, and is changed. Reads no weights, asks no server.
        """
        name = self.check_name(name)
        before = self.own().get(name)
        if before is not None and not replace:
            raise UsageError(
                f"There is a language model {name!r} already; change that one, or choose another name."
            )
        check_entry(name, entry)
        if before is not None and not entry.about and before.backend == entry.backend:
            entry = entry.model_copy(update={"about": before.about})
        self._workspace.save_llm(name, entry)
        sentences = [f"{'Changed' if before else 'Saved'} {name} in {self.file}."]
        if self.is_loaded(name):
            self._changed.add(name)
            sentences.append(
                f"{name} is loaded with its earlier settings: unload it, then load it again."
            )
        key = key_of(entry.settings) if entry.backend == "openai_compatible" else None
        if key and key.variable and not key.is_set:
            sentences.append(
                f"{key.variable} is not set: if the server wants a key, set it and start rallebench anew."
            )
        return sentences

    def add_and_load(self, name: str, entry: LLMEntry, *, replace: bool = False) -> Iterator[str]:
        """Save an entry and load it, yielding what goes on; what is loaded as it stands there stays loaded.

        Raises UsageError where that would replace a model that is in use; then nothing is written.
        """
        name = self.check_name(name)
        before = self.own().get(name)
        if before is None or (before.backend, before.settings) != (entry.backend, entry.settings):
            if before is not None:
                self.refuse_used(name)
            yield self.add(name, entry, replace=replace)[0]
        if name in self._changed and self.is_loaded(name):
            yield self.unload(name)
        self._changed.discard(name)
        yield from self.load(name, "language model")

    def check_name(self, name: str) -> str:
        """A name for a model that nothing else has, without space around it. Raises UsageError."""
        name = (name or "").strip()
        if not name or len(name) > 100 or not name.isprintable():
            raise UsageError(
                "Give the model a name of 1 to 100 characters; chains call it by that name."
            )
        if name == READER:
            raise UsageError(
                f"{READER!r} is the reader that comes with rallebench; choose another name."
            )
        if name in self._workspace.retrievers():
            raise UsageError(f"{name!r} is a retriever of this workspace; choose another name.")
        return name

    # delete

    def users(self, name: str) -> list[str]:
        """Who names a model: ``the chain x``, ``the retriever y``. Files that cannot be read are passed over."""
        users = []
        for chain, path in self._workspace.chain_paths().items():
            with contextlib.suppress(RalleError):
                actions = self._workspace.chain(str(path)).actions
                if any(action.kind == "generate" and action.target == name for action in actions):
                    users.append(f"the chain {chain}")
        with contextlib.suppress(RalleError):
            combinations = self._workspace.combinations().items()
            users += [
                f"the retriever {other}"
                for other, entry in combinations
                if entry.settings.get("llm") == name
            ]
        return users

    def delete(self, name: str) -> str:
        """Forget an entry; returns a sentence. Raises UsageError while it is loaded. Downloaded weights stay."""
        entries = self.own()
        if name not in entries:
            raise NotFoundError(f"There is no language model {name!r} in {self.file}.")
        if self.is_loaded(name) or name in self.loading():
            raise UsageError(f"{name!r} is loaded; unload it in the Models tab, then delete it.")
        users = self.users(name)
        rest = {
            key: value.model_dump(exclude_defaults=True)
            for key, value in entries.items()
            if key != name
        }
        write_json(self.file, rest)
        names = ", ".join(users)
        broken = f" {names[:1].upper()}{names[1:]} can no longer run with it." if users else ""
        return f"Deleted {name} from {self.file}.{broken}"

    # look

    def memory(self, names: Iterable[str]) -> Footprint:
        """What loaded models and indexes took in memory, those included that they are made of."""
        return footprint(self._workspace, self.status(), names)

    def prices(self) -> dict[str, dict[str, float] | None]:
        """Loaded language model → US dollars per million ``prompt`` and ``completion`` tokens, None if unknown."""
        return prices_of(self.backends.llms)

    def served(self, settings: Mapping[str, Any]) -> tuple[str, ...]:
        """The models of the server that ``settings`` name (``base_url``, ``api_key_env``); see ``served_models``."""
        filled = with_environment(
            LLMEntry(backend="openai_compatible", settings=dict(settings))
        ).settings
        return served_models(
            str(filled.get("base_url") or OPENAI), filled.get("api_key_env") or None
        )

    def needs(self, settings: Mapping[str, Any]) -> Needs:
        """What a ``transformers`` entry takes, from the files where they are here, else from what a preset knows.

        Raises BadFileError for a folder that holds no whole model.
        """
        model = str(settings.get("model") or "").strip()
        if not model:
            return Needs(0, True, ("Choose a preset or name a model to see what it needs.",))
        chosen = {
            key: settings[key]
            for key in ("quantization", "dtype", "device_map", "revision")
            if settings.get(key)
        }
        here, device = need_of(model, model, **chosen), device_of(settings.get("device_map"))
        total, free = (
            (here.total if here else _from_preset(model, settings, device)),
            free_on(device),
        )
        sentences = (
            [] if here else ["It is downloaded from the Hugging Face hub when it is first loaded."]
        )
        if not total:
            return Needs(
                0,
                True,
                ("How much memory it takes is known once it has been downloaded.", *sentences),
            )
        kind = {"cpu": "RAM", "auto": "memory"}.get(device, "VRAM")
        known = "" if free is None else f"; {size(free)} are free"
        sentences.insert(
            0, f"It takes about {size(total)} of {kind}{'' if here else ' for its weights'}{known}."
        )
        if free is not None and total > free:
            sentences.append(
                "That does not fit: choose 8bit or 4bit, a smaller model, or a server."
            )
        return Needs(total, free is None or total <= free, tuple(sentences))


def _from_preset(model: str, settings: Mapping[str, Any], device: str) -> int:
    """Bytes of the weights of a hub id that a preset knows; 0 if none does."""
    known = known_model(model)
    if known is None:
        return 0
    requested = settings.get("dtype") or "auto"
    dtype = dtype_of(requested, known.stored, device) if known.stored else requested
    return weight_bytes(known, {**settings, "dtype": dtype})


def key_of(settings: Mapping[str, Any]) -> Key:
    """Which variable's key a server would be shown, and whether it is set now. Raises UsageError for no variable."""
    variable = settings.get("api_key_env") or None
    if variable is not None:
        check_variable("openai_compatible", variable)
    address = settings.get("base_url") or OPENAI
    with contextlib.suppress(
        RalleError
    ):  # an address in a variable that is not set: it is somebody's server
        entry = with_environment(
            LLMEntry(backend="openai_compatible", settings={"base_url": address})
        )
        address = entry.settings["base_url"]
    name = variable_of(Server(str(address), variable))
    return Key(name, bool(name and os.environ.get(name, "").strip()), is_loopback(str(address)))


def check_entry(name: str, entry: LLMEntry) -> None:
    """Raise what loading would raise for the settings; reads no weights and needs no key."""
    if entry.backend not in LLMS:
        raise NotFoundError(unknown("language model backend", entry.backend, LLMS.names()))
    settings = with_environment(entry).settings
    if entry.backend == "openai_compatible" and not settings.get("model"):
        raise UsageError(
            f"{name!r} needs the setting 'model', the name by which the server knows it: press Find models, or "
            "see rallebench models find."
        )
    check = LLMS.entry(entry.backend).traits.get("settings")
    if check is not None:
        check(name, **settings)
    else:
        close(open_llm(name, entry))
