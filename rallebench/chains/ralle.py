"""Reading and writing of RaLLe's experiment files and of our own chain files.

RaLLe's format has no field for a chain's name and for generation settings. The file name serves as name; generation
settings, if any, are written under an additional key ``generation`` of the action. RaLLe ignores unknown keys, so it
loads such a file unchanged.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.chains.saved import MAX_K, chain_from_json, checked_generation
from rallebench.core.entries import MAX_ACTIONS
from rallebench.core.errors import BadFileError, MissingPackageError
from rallebench.core.files import read_json
from rallebench.core.sources import Source
from rallebench.core.types import Action, ActionKind, Chain, Dialect

_ACTION_KINDS: Mapping[str, ActionKind] = {
    "LLM": "generate",
    "Retriever": "retrieve",
    "Identity": "identity",
}
_DIALECTS: Mapping[str, Dialect] = {"f-strings": "fstring", "eval": "eval"}
_FUNCTIONS = {kind: function for function, kind in _ACTION_KINDS.items()}
_FORMATS = {dialect: name for name, dialect in _DIALECTS.items()}
_TARGETS: Mapping[ActionKind, str] = {"generate": "llm_name", "retrieve": "retriever_name"}


@dataclass(frozen=True, slots=True)
class Experiment:
    """A chain and its dataset. ``num_evaluate``: None means all questions. RaLLe's ``resume`` is ignored: a run itself records
    its progress.
    """

    chain: Chain
    dataset_name: str = ""
    num_evaluate: int | None = None
    batch_size: int = 1


# ── RaLLe's format ───────────────────────────────────────────────────────────


def experiment_from_json(value: Any, place: str = "the file", name: str = "") -> Experiment:
    """Read RaLLe's experiment JSON. ``place`` starts the error messages, ``name`` names the chain.

    As in RaLLe's own files: actions beyond ``len_chain`` are ignored, numbers may be text, an Identity has no target,
    ``f-strings`` is the default, ``num_evaluate`` ≤ 0 means all. A missing model or retriever name becomes '' and a
    missing ``npassage`` 5. Raises BadFileError for any other deviation.
    """
    config = as_object(as_object(value, place).get("chain_config"), f"{place}: 'chain_config'")
    listed = config.get("chain")
    if not isinstance(listed, list) or not listed:
        raise BadFileError(
            f"{place}: 'chain' is {quote_value(listed)}; it should be a list of at least one action."
        )
    length = _whole(config.get("len_chain"), f"{place}: 'len_chain'", len(listed))
    if not 1 <= length <= len(listed):
        raise BadFileError(
            f"{place}: 'len_chain' is {length}; it must be 1 to {len(listed)}, the actions listed."
        )
    if length > MAX_ACTIONS:
        raise BadFileError(f"{place} has {length} actions; a chain has at most {MAX_ACTIONS}.")
    actions = tuple(
        _action(saved, f"{place}, action {n}") for n, saved in enumerate(listed[:length], 1)
    )
    return _with_dataset(Chain(name or "ralle-chain", actions), config.get("dataset"), place)


def _with_dataset(chain: Chain, value: Any, place: str) -> Experiment:
    dataset = as_object({} if value is None else value, f"{place}: 'dataset'")
    dataset_name = _text(dataset.get("dataset_name"), f"{place}: 'dataset_name'")
    number = _whole(dataset.get("num_evaluate"), f"{place}: 'num_evaluate'", -1)
    batch_size = _whole(dataset.get("batch_size"), f"{place}: 'batch_size'", 1)
    if batch_size < 1:
        raise BadFileError(f"{place}: 'batch_size' is {batch_size}; it must be at least 1.")
    return Experiment(chain, dataset_name, number if number > 0 else None, batch_size)


def _action(value: Any, place: str) -> Action:
    saved = as_object(value, place)
    kind = _choice(_ACTION_KINDS, saved.get("function"), f"{place}: 'function'")
    written = saved.get("f-strings_or_eval")
    dialect = _choice(
        _DIALECTS, "f-strings" if written is None else written, f"{place}: 'f-strings_or_eval'"
    )
    template = saved.get("prompt_template")
    if not isinstance(template, str):
        raise BadFileError(
            f"{place}: 'prompt_template' is {quote_value(template)}; it should be text."
        )
    target = (
        _text(saved.get(_TARGETS[kind]), f"{place}: {_TARGETS[kind]!r}") if kind in _TARGETS else ""
    )
    k = _whole(saved.get("npassage"), f"{place}: 'npassage'", 5) if kind == "retrieve" else 5
    if not 1 <= k <= MAX_K:
        raise BadFileError(f"{place}: 'npassage' is {k}; it must be 1 to {MAX_K:,}.")
    generation = (
        as_object(saved.get("generation", {}), f"{place}: 'generation'")
        if kind == "generate"
        else {}
    )
    return Action(kind, template, dialect, target, k, checked_generation(generation, place))


def experiment_to_json(
    chain: Chain, dataset_name: str = "", num_evaluate: int | None = None, batch_size: int = 1
) -> dict[str, Any]:
    """Return the chain in RaLLe's format; ``num_evaluate`` None is written as -1.

    RaLLe's templates know neither ``documents`` nor ``history``: RaLLe loads a chain with them, but cannot run it. The
    chain's name and ``about`` are not written.
    """
    dataset = {
        "dataset_name": dataset_name,
        "num_evaluate": num_evaluate or -1,
        "batch_size": batch_size,
    }
    actions = [_action_json(action) for action in chain.actions]
    return {"chain_config": {"dataset": dataset, "len_chain": len(actions), "chain": actions}}


def _action_json(action: Action) -> dict[str, Any]:
    saved: dict[str, Any] = {
        "prompt_template": action.template,
        "function": _FUNCTIONS[action.kind],
    }
    if action.kind in _TARGETS:
        saved[_TARGETS[action.kind]] = action.target
    if action.kind == "retrieve":
        saved["npassage"] = action.k
    saved["f-strings_or_eval"] = _FORMATS[action.dialect]
    if action.kind == "generate" and action.generation:
        saved["generation"] = dict(action.generation)
    return saved


# ── files ────────────────────────────────────────────────────────────────────


def load_chain_file(path: Path) -> Chain:
    """Load a chain from a file in our own format or in RaLLe's, as JSON or (by its suffix) YAML.

    A chain in RaLLe's format is named after the file. Raises BadFileError.
    """
    path = Path(path)
    value = _read_yaml(path) if path.suffix.lower() in (".yaml", ".yml") else read_json(path)
    if isinstance(value, dict) and "chain_config" in value:
        return experiment_from_json(value, str(path), path.stem).chain
    if isinstance(value, dict) and ("format" in value or "actions" in value):
        return chain_from_json(value, str(path))
    raise BadFileError(
        f"{path} is not a chain: it should hold 'format', 'name' and 'actions', or RaLLe's 'chain_config'."
    )


def _read_yaml(path: Path) -> Any:
    try:
        import yaml
    except ImportError:
        raise MissingPackageError("pyyaml", f"but needed to read {path}") from None
    text = "".join(f"{line}\n" for _, line in Source(path).lines())
    try:
        return yaml.safe_load(text)
    except Exception as error:  # PyYAML's constructors raise more than YAMLError for a malformed number, date or tag
        mark = getattr(error, "problem_mark", None)
        lines = text.count("\n")  # an unclosed bracket is reported after the last line
        place = f"line {min(mark.line + 1, lines)}: " if mark else ""
        reason = getattr(error, "problem", None) or str(error) or type(error).__name__
        raise BadFileError(f"{path} is not valid YAML ({place}{reason}).") from None


# ── values ───────────────────────────────────────────────────────────────────


def as_object(value: Any, place: str) -> dict[str, Any]:
    """Return ``value`` if it is a JSON object. Raises BadFileError about ``place``."""
    if not isinstance(value, dict):
        raise BadFileError(f"{place} is {quote_value(value)}; it should be a JSON object.")
    return value


def _text(value: Any, place: str) -> str:
    if value is not None and not isinstance(value, str):
        raise BadFileError(f"{place} is {quote_value(value)}; it should be text.")
    return value or ""


def _whole(value: Any, place: str, default: int) -> int:
    """Read a whole number, also from text: RaLLe's page saves numbers as text."""
    if value is None:
        return default
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d{1,9}\s*", value, re.ASCII):
        return int(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value == value // 1:
        return int(value)
    raise BadFileError(f"{place} is {quote_value(value)}; it should be a whole number.")


def _choice(known: Mapping[str, Any], value: Any, place: str) -> Any:
    if not isinstance(value, str) or value not in known:
        raise BadFileError(
            f"{place} is {quote_value(value)}; it must be one of {', '.join(known)}."
        )
    return known[value]


def quote_value(value: Any) -> str:
    """Quote a value of the file for a sentence."""
    return "missing" if value is None else reprlib.repr(value)
