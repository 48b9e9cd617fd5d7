"""What enters as JSON is checked here: saved chains, language-model entries, index manifests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rallebench.core.errors import BadFileError, UsageError
from rallebench.core.files import read_json, write_json
from rallebench.core.types import Action, Chain, digest

CHAIN_FORMAT: Literal["rallebench-chain/1"] = "rallebench-chain/1"
MAX_ACTIONS = 8


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


_Shape = TypeVar("_Shape", bound=_Strict)


class SavedAction(_Strict):
    """One action as it stands in a chain file."""

    kind: Literal["retrieve", "generate", "identity"]
    template: str
    dialect: Literal["fstring", "eval"] = "fstring"
    target: str = ""
    k: int = Field(default=5, ge=1, le=10_000)
    generation: dict[str, Any] = Field(default_factory=dict)


class SavedChain(_Strict):
    """Our own chain file."""

    format: Literal["rallebench-chain/1"] = CHAIN_FORMAT
    name: str = Field(min_length=1, max_length=200)
    about: str = ""
    actions: list[SavedAction] = Field(min_length=1, max_length=MAX_ACTIONS)


class LLMEntry(_Strict):
    """A language model that can be loaded: which backend, and its settings."""

    backend: str
    about: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)


class Combination(_Strict):
    """A retriever made of others: the way, the names of the others, and its settings."""

    kind: str
    of: list[str] = Field(min_length=1, max_length=64)
    about: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)


class Manifest(_Strict):
    """What an index folder says of itself. ``fingerprint`` changes whenever a search result may.

    ``retriever``: ``dense`` for a vector index, else the kind. ``passage_dtype``: the numeric type that passages were encoded in; ``encoding``: the figures it was chosen by.
    ``seal``: see ``sealed``; '' in a manifest of an earlier version, which is believed as it is.
    """

    format: Literal["rallebench-index/1"] = "rallebench-index/1"
    name: str
    retriever: str
    kind: str
    corpus: str = ""
    corpus_sha256: str
    chunking: dict[str, Any] | None = None
    passages: int
    passages_without_page: int = 0
    encoder: str = ""
    encoder_name: str = ""
    passage_dtype: str = ""
    encoding: dict[str, Any] = Field(default_factory=dict)
    dim: int = 0
    metric: str = "inner product"
    parameters: dict[str, Any] = Field(default_factory=dict)
    fingerprint: str
    files: dict[str, int] = Field(default_factory=dict)
    sha256: dict[str, str] = Field(default_factory=dict)
    seconds: float = 0.0
    bytes: int = 0
    versions: dict[str, str] = Field(default_factory=dict)
    seal: str = ""


def sealed(value: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON form of a manifest with the 12 hex digits that no longer fit once anything in it is edited."""
    rest = {key: item for key, item in value.items() if key != "seal"}
    return {**rest, "seal": digest(rest)[:12]}


def problem(error: ValidationError, what: str) -> str:
    """The first validation error as one sentence.

    >>> try: SavedAction.model_validate({"kind": "search", "template": ""})
    ... except ValidationError as e: problem(e, "chain.json")
    "chain.json: 'kind' is wrong (input should be 'retrieve', 'generate' or 'identity')."
    """
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"]) or "the file"
    message = "there is no such field" if first["type"] == "extra_forbidden" else first["msg"]
    return f"{what}: {where!r} is wrong ({message[:1].lower()}{message[1:]})."


def chain_from_json(value: Any, what: str = "the chain") -> Chain:
    """Our own form → Chain; BadFileError names what is wrong."""
    try:
        saved = SavedChain.model_validate(value)
    except ValidationError as error:
        raise BadFileError(problem(error, what)) from None
    actions = []
    for number, action in enumerate(saved.actions, 1):
        generation = checked_generation(action.generation, f"{what}, action {number}")
        actions.append(Action(**{**dict(action), "generation": generation}))
    return Chain(saved.name, tuple(actions), saved.about)


def chain_to_json(chain: Chain) -> dict[str, Any]:
    """Chain → our own form; settings that do not apply to an action are left out."""
    actions = []
    for action in chain.actions:
        saved: dict[str, Any] = {
            name: getattr(action, name) for name in ("kind", "template", "dialect")
        }
        if action.kind != "identity":
            saved["target"] = action.target
        if action.kind == "retrieve":
            saved["k"] = action.k
        if action.kind == "generate" and action.generation:
            saved["generation"] = dict(action.generation)
        actions.append(saved)
    value: dict[str, Any] = {"format": CHAIN_FORMAT, "name": chain.name}
    if chain.about:
        value["about"] = chain.about
    return {**value, "actions": actions}


def save_chain(chain: Chain, path: Path) -> None:
    """Write our own form, whole or not at all."""
    write_json(path, chain_to_json(chain))


_NUMBERS: Mapping[str, tuple[type, float, float]] = {
    "max_tokens": (int, 1, 100_000),
    "seed": (int, 0, 2**63 - 1),
    "temperature": (float, 0.0, 5.0),
}


def checked_generation(settings: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Check the generation settings that every backend shares; others pass through to the backend."""
    checked = dict(settings)
    for name, (kind, low, high) in _NUMBERS.items():
        value = checked.get(name)
        if value is None:
            checked.pop(name, None)
            continue
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not low <= value <= high or (kind is int and value != int(value)):
            shape = "a whole number" if kind is int else "a number"
            raise UsageError(
                f"{what}: {name} is {value!r}; it must be {shape} from {low:g} to {high:g}."
            )
        checked[name] = kind(value)
    stop = checked.get("stop")
    if isinstance(stop, str):
        checked["stop"] = [stop]
    elif stop is not None and (
        not isinstance(stop, list) or not all(isinstance(s, str) for s in stop)
    ):
        raise UsageError(f"{what}: stop must be a list of texts.")
    if not isinstance(checked.get("system", ""), str):
        raise UsageError(f"{what}: system must be a text.")
    return checked


def read_manifest(folder: Path) -> Manifest:
    """The manifest of an index folder; BadFileError if the folder holds no whole index."""
    path = Path(folder) / "manifest.json"
    if not path.exists():
        raise BadFileError(
            f"{folder} holds no index (manifest.json is missing); build it with 'rallebench index'."
        )
    value = read_json(path)
    try:
        manifest = Manifest.model_validate(value)
    except ValidationError as error:
        raise BadFileError(problem(error, str(path))) from None
    if manifest.seal and manifest.seal != sealed(value)["seal"]:
        raise BadFileError(
            f"{path} was edited after the index was built; undo that, or build the index again."
        )
    return manifest


def read_llm_entries(path: Path) -> dict[str, LLMEntry]:
    """Read a workspace's ``llms.json``: name → {backend, settings}; {} if it has none."""
    return _entries(path, LLMEntry, "model")


def read_combinations(path: Path) -> dict[str, Combination]:
    """Read a workspace's ``retrievers.json``: name → {kind, of, settings}; {} if it has none."""
    return _entries(path, Combination, "retriever")


def write_entries(path: Path, entries: Mapping[str, BaseModel]) -> None:
    """Write ``llms.json`` or ``retrievers.json``, whole or not at all."""
    write_json(
        path, {name: entry.model_dump(exclude_defaults=True) for name, entry in entries.items()}
    )


def _entries(path: Path, shape: type[_Shape], noun: str) -> dict[str, _Shape]:
    value = read_json(path) if path.exists() else {}
    if not isinstance(value, dict):
        raise BadFileError(f"{path} should hold a JSON object: {noun} name → entry.")
    entries = {}
    for name, entry in value.items():
        try:
            entries[name] = shape.model_validate(entry)
        except ValidationError as error:
            fields = ", ".join(shape.model_fields)
            raise BadFileError(
                f"{problem(error, f'{path}, {noun} {name!r}')} An entry has {fields}."
            ) from None
    return entries
