"""The language models of a workspace as entries: create, read, save and delete them; their memory, prices and keys.

Entries are stored in the workspace's ``llms.json``. Keys are not; an entry holds only the name of the key's variable.
A key typed by the user stays in memory until the program ends and is never written to a file or log.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from rallebench.checkpoints.files import resolve_dtype
from rallebench.checkpoints.gguf import converted_copy, gguf_file, gguf_model
from rallebench.checkpoints.memory import free_on, mapped_device, memory_need
from rallebench.core.backends import close
from rallebench.core.entries import LLMEntry
from rallebench.core.errors import Hint, NotFoundError, RalleError, UsageError
from rallebench.core.memory import size
from rallebench.core.registry import unknown
from rallebench.core.starter import READER
from rallebench.core.types import Json
from rallebench.http.endpoint import (
    OPENAI,
    check_variable,
    hold_key,
    is_loopback,
    is_typed,
    key_in,
    key_variable,
)
from rallebench.http.model_list import served_models
from rallebench.llms import LLMS, presets
from rallebench.llms.presets import known_model, weight_bytes
from rallebench.workspace.entries import changing, read_llm_entries, usable_llm_entries
from rallebench.workspace.opening import open_llm
from rallebench.workspace.paths import WorkspaceFolder
from rallebench.workspace.ralle_settings import with_environment

ELSEWHERE = "openai_compatible"
"""The backend for models behind a network API; only these have keys and prices."""


@dataclass(frozen=True, slots=True)
class ModelNeeds:
    """A model's maximum memory in this process: bytes (0 if unknown before the download), and sentences.

    ``fits``: True if it fits into the memory free now, or if its need is unknown.
    """

    bytes: int
    fits: bool
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ServerKey:
    """``variable``: the environment variable with the key to send to a server; '' for none. ``local``: True if the
    server runs on this machine.
    """

    variable: str
    is_set: bool
    local: bool


def entries_file(workspace: WorkspaceFolder) -> Path:
    return workspace.path / "llms.json"


def own(workspace: WorkspaceFolder) -> dict[str, LLMEntry]:
    """Name → readable entry of the workspace's own file."""
    return usable_llm_entries(entries_file(workspace))[0]


def entry(workspace: WorkspaceFolder, name: str) -> LLMEntry:
    """Return an entry of the workspace. Raises NotFoundError."""
    entries = own(workspace)
    if name not in entries:
        raise NotFoundError(f"There is no language model {name!r} in {entries_file(workspace)}.")
    return entries[name]


def save(
    workspace: WorkspaceFolder, name: str, entry: LLMEntry, *, replace: bool = False
) -> list[str]:
    """Save an entry; return sentences, of which the first confirms it. If UsageError is raised, nothing is written.

    ``replace``: overwrite an existing entry of that name. Reads no weights and contacts no server.
    """
    name = check_name(workspace, name)
    before = own(workspace).get(name)
    if before is not None and not replace:
        raise UsageError(
            f"There is a language model {name!r} already; change that one, or choose another name."
        )
    check_entry(name, entry)
    if before is not None and not entry.about and before.backend == entry.backend:
        entry = entry.model_copy(update={"about": before.about})
    workspace.save_llm(name, entry)
    sentences = [f"{'Changed' if before else 'Saved'} {name} in {entries_file(workspace)}."]
    key = server_key(entry.settings) if entry.backend == ELSEWHERE else None
    if key and key.variable and not key.is_set:
        sentences.append(
            f"{key.variable} is not set: if the server wants a key, set it before the start, or type the key on the page."
        )
    return sentences


def free_name(workspace: WorkspaceFolder, wish: str) -> str:
    """Derive from a model's name or path a name that no other model or retriever has."""
    stem = Path(wish.rstrip("/")).name or wish
    taken = {*workspace.llms(), *workspace.retrievers()}
    names = (stem, *(f"{stem}-{number}" for number in range(2, 10_000)))
    return next(name for name in names if name not in taken)


def check_name(workspace: WorkspaceFolder, name: str) -> str:
    """Strip a name for a model and check that it is free. Raises UsageError."""
    name = (name or "").strip()
    if not name or len(name) > 100 or not name.isprintable():
        raise UsageError(
            "Give the model a name of 1 to 100 characters; chains call it by that name."
        )
    if name == READER:
        raise UsageError(
            f"{READER!r} is the reader that comes with rallebench; choose another name."
        )
    if name in workspace.retrievers():
        raise UsageError(f"{name!r} is a retriever of this workspace; choose another name.")
    return name


def delete(workspace: WorkspaceFolder, name: str) -> str:
    """Delete a model from the workspace's own file; return a sentence that names its users."""
    with changing(entries_file(workspace), read_llm_entries) as entries:
        entries.pop(name, None)
    names = ", ".join(workspace.users(name, "language model"))
    broken = f" {names[:1].upper()}{names[1:]} can no longer run with it." if names else ""
    return f"Deleted {name} from {entries_file(workspace)}.{broken}"


def server_models(settings: Json) -> tuple[str, ...]:
    """List the models of the server given in ``settings`` (``base_url``, ``api_key_env``); see ``served_models``."""
    filled = with_environment(LLMEntry(backend=ELSEWHERE, settings=dict(settings))).settings
    return served_models(str(filled.get("base_url") or OPENAI), filled.get("api_key_env") or None)


def needs(settings: Json) -> ModelNeeds:
    """Estimate the memory of a ``transformers`` entry from its files, or from its preset if it is not downloaded.

    Raises BadFileError if a folder or file holds no complete model, MissingPackageError if a package is missing.
    """
    model = str(settings.get("model") or "").strip()
    if not model:
        return ModelNeeds(0, True, ("Choose a preset or name a model to see what it needs.",))
    chosen = {
        key: settings[key]
        for key in ("quantization", "dtype", "device_map", "revision", "gguf_file")
        if settings.get(key)
    }
    here, device = memory_need(model, model, **chosen), mapped_device(settings.get("device_map"))
    total, free = (
        (here.total if here else _from_preset(model, settings, device)),
        free_on(device),
    )
    sentences = (
        [] if here else ["It is downloaded from the Hugging Face hub when it is first loaded."]
    )
    if file := gguf_file(model, model, str(chosen.get("gguf_file", ""))):
        disk = size(gguf_model(file).bytes)
        sentences.append(
            f"It is converted when it is first loaded; that takes {disk} of disk in the workspace's cache."
        )
    if not total:
        return ModelNeeds(
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
        sentences.append("That does not fit: choose 8bit or 4bit, a smaller model, or a server.")
    return ModelNeeds(total, free is None or total <= free, tuple(sentences))


def _from_preset(model: str, settings: Json, device: str) -> int:
    """Size in bytes of the weights of a hub id known to a preset; otherwise 0."""
    known = known_model(model)
    if known is None:
        return 0
    requested = settings.get("dtype") or "auto"
    dtype = resolve_dtype(requested, known.stored, device) if known.stored else requested
    return weight_bytes(known, {**settings, "dtype": dtype})


def server_key(settings: Json) -> ServerKey:
    """Return the variable with the key for a server, and whether it is set. Raises UsageError if there is no
    variable.
    """
    variable = settings.get("api_key_env") or None
    if variable is not None:
        check_variable(ELSEWHERE, variable)
    address = settings.get("base_url") or OPENAI
    with contextlib.suppress(
        RalleError
    ):  # the address is in an unset variable, so the server may be anywhere
        entry = with_environment(LLMEntry(backend=ELSEWHERE, settings={"base_url": address}))
        address = entry.settings["base_url"]
    name = key_variable(str(address), variable)
    return ServerKey(name, bool(name and key_in(name)), is_loopback(str(address)))


def check_entry(name: str, entry: LLMEntry) -> None:
    """Raise the errors that loading would raise for the settings and their files; reads no weights and needs no key."""
    if entry.backend not in LLMS:
        raise NotFoundError(unknown("language model backend", entry.backend, LLMS.names()))
    settings = with_environment(entry).settings
    if entry.backend == ELSEWHERE and not settings.get("model"):
        raise UsageError(
            f"{name!r} needs the setting 'model', the name by which the server knows it.",
            hint=Hint("find-models"),
        )
    traits = LLMS.entry(entry.backend).traits
    if "settings" not in traits:
        close(open_llm(name, entry))
        return
    traits["settings"](name, **settings)
    if (
        "need" in traits
    ):  # reads the headers of the model's files; this may need an optional package
        traits["need"](name, **settings)


def find_converted_copy(workspace: WorkspaceFolder, name: str, entry: LLMEntry) -> Path | None:
    """Return the converted copy of the entry's GGUF file; None for other models or if there is no copy."""
    model, inside = (str(entry.settings.get(key) or "") for key in ("model", "gguf_file"))
    if entry.backend != "transformers" or not model:
        return None
    with contextlib.suppress(RalleError):
        if file := gguf_file(name, model, inside):
            return converted_copy(workspace.cache, file)
    return None


# creation from a preset, a backend or an entry


def build_entry(
    workspace: WorkspaceFolder,
    settings: Json,
    *,
    preset: str = "",
    backend: str = "",
    changes: str = "",
) -> LLMEntry:
    """Build an entry from a preset or a backend with ``settings``, or apply ``settings`` to the stored entry
    ``changes``.

    Raises NotFoundError.
    """
    if preset:
        return presets.preset_entry(preset, dict(settings))
    if backend:
        return LLMEntry(backend=backend, settings=dict(settings))
    before = entry(workspace, changes)
    return LLMEntry(backend=before.backend, settings={**before.settings, **settings})


def server_settings(
    workspace: WorkspaceFolder, settings: Json, *, preset: str = "", model: str = ""
) -> Json:
    """Return the settings for reaching a server: from a preset or model, overridden by ``settings``."""
    base: Json = {}
    if preset:
        base = presets.preset_entry(preset).settings
    elif model:
        base = workspace.llm(model).settings
    return {**base, **settings}


def with_prices(entry: LLMEntry, prompt: float | None, completion: float | None) -> LLMEntry:
    """Return the entry with these prices, or without any. Raises UsageError if only one is given."""
    settings = {k: v for k, v in entry.settings.items() if k != "prices"}
    if (prompt is None) != (completion is None):
        raise UsageError("A price has two parts; fill in both, for tokens in and out, or none.")
    if prompt is not None:
        settings["prices"] = {"prompt": prompt, "completion": completion}
    return entry.model_copy(update={"settings": settings})


# typed keys


def with_key(settings: Json, key: str) -> Json:
    """Return the settings of a server that receives the typed ``key``; '' leaves them unchanged.

    The entry always names a variable: the server's own, or one derived from its address. So the same entry later
    finds its key in the environment, and no other server receives it. Raises UsageError if the key is invalid.
    """
    if not key.strip():
        return settings
    held = server_key(settings)
    variable = held.variable
    if not variable or (held.local and not settings.get("api_key_env")):
        variable = variable_for(str(settings.get("base_url") or OPENAI))
        settings = {**settings, "api_key_env": variable}
    hold_key(variable, key)
    return settings


def variable_for(base_url: str) -> str:
    """Derive a variable name for the key of a server; on this machine, each port counts as a separate server.

    >>> variable_for("https://api.example.com:8443/v1"), variable_for("http://10.0.0.7/v1")
    ('API_EXAMPLE_COM_KEY', 'SERVER_10_0_0_7_KEY')
    >>> variable_for("http://localhost:8000/v1")
    'LOCALHOST_8000_KEY'
    """
    parts = urlsplit(base_url)
    name = (is_loopback(base_url) and parts.netloc) or parts.hostname or "server"
    host = re.sub(r"[^A-Z0-9]+", "_", name.upper()).strip("_")
    return f"{'SERVER_' if host[:1].isdigit() else ''}{host}_KEY"


def forget_key(settings: Json) -> None:
    """Forget a server's typed key."""
    variable = server_key(settings).variable
    if variable:
        hold_key(variable, "")


def is_key_typed(settings: Json) -> bool:
    """Return whether the user typed a server's key in this process."""
    variable = server_key(settings).variable
    return bool(variable) and is_typed(variable)
