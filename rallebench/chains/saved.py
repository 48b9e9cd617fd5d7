"""Reading, checking and writing of chains in our own JSON format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from rallebench.core.entries import MAX_ACTIONS, Strict, parse_entry
from rallebench.core.errors import UsageError
from rallebench.core.files import read_json, write_json
from rallebench.core.formats import read_format
from rallebench.core.json_values import JsonValue
from rallebench.core.settings import Setting
from rallebench.core.types import Action, Chain, Json, digest

CHAIN_FORMAT: Literal["rallebench-chain/1"] = "rallebench-chain/1"
MAX_K = 10_000


class SavedAction(Strict):
    """One action of a chain file."""

    kind: Literal["retrieve", "generate", "identity"]
    template: str
    dialect: Literal["fstring", "eval"] = "fstring"
    target: str = ""
    k: int = Field(default=5, ge=1, le=MAX_K)
    generation: dict[str, Any] = Field(default_factory=dict)


class SavedChain(Strict):
    """A chain file in our own format."""

    format: Literal["rallebench-chain/1"] = CHAIN_FORMAT
    name: str = Field(min_length=1, max_length=200)
    about: str = ""
    actions: list[SavedAction] = Field(min_length=1, max_length=MAX_ACTIONS)


def chain_from_json(value: Any, place: str = "the chain") -> Chain:
    """Read a chain in our own format. Raises BadFileError, which names the error."""
    saved = parse_entry(SavedChain, value, place)
    actions = []
    for number, action in enumerate(saved.actions, 1):
        generation = checked_generation(action.generation, f"{place}, action {number}")
        actions.append(Action(**{**dict(action), "generation": generation}))
    return Chain(saved.name, tuple(actions), saved.about)


def chain_to_json(chain: Chain) -> dict[str, Any]:
    """Return a chain in our own format; settings that do not apply to an action are left out."""
    value: dict[str, Any] = {"format": CHAIN_FORMAT, "name": chain.name}
    if chain.about:
        value["about"] = chain.about
    return {**value, "actions": [action_to_json(action) for action in chain.actions]}


def action_to_json(action: Action) -> dict[str, JsonValue]:
    """Return the entry of an action in a chain file."""
    saved: dict[str, JsonValue] = {
        "kind": action.kind,
        "template": action.template,
        "dialect": action.dialect,
    }
    if action.kind != "identity":
        saved["target"] = action.target
    if action.kind == "retrieve":
        saved["k"] = action.k
    if action.kind == "generate" and action.generation:
        saved["generation"] = dict(action.generation)
    return saved


def save_chain(chain: Chain, path: Path) -> None:
    """Write our own format atomically."""
    write_json(path, chain_to_json(chain))


_NUMBERS = {
    "max_tokens": Setting(int, 1, 1, 100_000),
    "seed": Setting(int, 0, 0, 2**63 - 1),
    "temperature": Setting(float, 0.0, 0.0, 5.0),
}


def checked_generation(settings: Json, place: str) -> dict[str, Any]:
    """Check the generation settings that all backends share; others pass through to the backend."""
    checked = dict(settings)
    for name, setting in _NUMBERS.items():
        value = checked.get(name)
        if value is None:
            checked.pop(name, None)
            continue
        try:
            checked[name] = setting.reads([] if isinstance(value, str) else value)
        except ValueError as must_be:
            raise UsageError(f"{place}: {name} is {value!r}; it must be {must_be}.") from None
    stop = checked.get("stop")
    if isinstance(stop, str):
        checked["stop"] = [stop]
    elif stop is not None and (
        not isinstance(stop, list) or not all(isinstance(s, str) for s in stop)
    ):
        raise UsageError(f"{place}: stop must be a list of texts.")
    if not isinstance(checked.get("system", ""), str):
        raise UsageError(f"{place}: system must be a text.")
    read_format(place, checked.get("response_format"))
    return checked


VERSIONS, MOST_VERSIONS = ".versions", 50
"""Folder of earlier versions beside saved chains, and their maximum number; the oldest is deleted beyond it."""


def save_version(chain: Chain, path: Path) -> None:
    """Save a chain; the replaced file is kept as a version."""
    old = path.read_bytes() if path.is_file() else None
    since = path.stat().st_mtime_ns if old is not None else 0
    save_chain(chain, path)
    if old is None or old == path.read_bytes():
        return
    folder = path.parent / VERSIONS / path.stem
    folder.mkdir(parents=True, exist_ok=True)
    save_chain(chain_from_json(_read(old, path)), folder / f"{since}.json")
    for file in sorted(folder.glob("*.json"))[:-MOST_VERSIONS]:
        file.unlink()


def read_version_names(chains: Path, chain: str) -> dict[str, str]:
    """Return the names that a person gave to versions of a chain: digest of the actions → name."""
    file = _names_file(chains, chain)
    names = read_json(file) if file.is_file() else {}
    return {key: str(name) for key, name in names.items()} if isinstance(names, dict) else {}


def name_version(chains: Path, chain: Chain, name: str) -> None:
    """Give a version of a chain a name; '' removes it."""
    names = read_version_names(chains, chain.name) | {version_key(chain): name}
    file = _names_file(chains, chain.name)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_json(file, {key: value for key, value in names.items() if value})


def version_key(chain: Chain) -> str:
    """Return a digest of a chain's actions, by which its version has a name."""
    return digest([action_to_json(action) for action in chain.actions])[:24]


def _names_file(chains: Path, chain: str) -> Path:
    return chains / VERSIONS / f"{chain}.names.json"


def _read(raw: bytes, path: Path) -> object:
    try:
        return json.loads(raw)
    except ValueError:
        return {"damaged": str(path)}
