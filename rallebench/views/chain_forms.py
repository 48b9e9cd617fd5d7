"""Export and import chains in several formats, and find the variables of their templates."""

from __future__ import annotations

import base64
import json
import re
import shlex
import tempfile
import zlib
from pathlib import Path
from typing import Any

import yaml

from rallebench.chains.ralle import experiment_to_json, load_chain_file
from rallebench.chains.saved import chain_from_json, chain_to_json, checked_generation
from rallebench.chains.template import names_used
from rallebench.core.errors import BadFileError, RalleError, TemplateError, UsageError
from rallebench.core.types import Chain, Json
from rallebench.views.chain_versions import is_saved
from rallebench.views.program import script
from rallebench.workspace.paths import WorkspaceFolder

FORMS = {
    "json": ("JSON", ".json"),
    "yaml": ("YAML", ".yaml"),
    "ralle": ("RaLLe", "-ralle.json"),
    "python": ("Python", ".py"),
    "command": ("Command line", ""),
}
"""Format → (its name, its file suffix; "" for a format without files)."""

PACKED = "~"
"""Before a chain that stands in an address whole; no name begins so."""
LONGEST_PACKED, MOST_UNPACKED = 4000, 2**20
"""Characters of a packed chain in an address, and bytes that one may unpack to."""

NOT_IN_RALLE = frozenset({"documents", "history"})
"""Variables that RaLLe's own templates do not support."""


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """A YAML dumper that writes long templates as block text."""


def _represent(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


_Dumper.add_representer(str, _represent)


def code(workspace: WorkspaceFolder, chain: Chain, dataset: str, form: str) -> str:
    """Return the chain in one of FORMS."""
    if form == "json":
        return json.dumps(chain_to_json(chain), ensure_ascii=False, indent=2) + "\n"
    if form == "yaml":
        value = chain_to_json(chain)
        return str(
            yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=4096)
        )
    if form == "ralle":
        return json.dumps(experiment_to_json(chain, dataset), ensure_ascii=False, indent=4) + "\n"
    if form == "python":
        return script(chain, workspace.path.resolve(), f"{file_stem(chain.name)}.py")
    return commands(workspace, chain.name, dataset)


def draft(chain: Chain) -> Json:
    """Return the chain as in its file."""
    return chain_to_json(chain)


def read_draft(value: Json) -> Chain:
    """Parse a draft as a chain. Raises BadFileError."""
    return chain_from_json(value)


def to_address(workspace: WorkspaceFolder, chain: Chain) -> str:
    """Return a chain as an address names it: by its name if it is saved, else packed; "" if it is too long for that."""
    if is_saved(workspace, chain):
        return chain.name
    text = json.dumps(draft(chain), ensure_ascii=False, separators=(",", ":"))
    packed = base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")
    return PACKED + packed if len(packed) <= LONGEST_PACKED else ""


def from_address(workspace: WorkspaceFolder, text: str) -> Chain:
    """Return the chain that an address names or holds. Raises RalleError."""
    if not text.startswith(PACKED):
        return workspace.chain(text)
    packed = text.removeprefix(PACKED)
    try:
        content = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        whole = zlib.decompressobj()
        return read_draft(json.loads(whole.decompress(content, MOST_UNPACKED)))
    except (ValueError, zlib.error, RecursionError, BadFileError):
        raise UsageError(
            "The address holds a variant that cannot be read; copy the whole link again."
        ) from None


def read_generation(settings: Json, place: str) -> Json:
    """Check the generation settings of an action and return them as JSON. Raises BadFileError that names ``place``."""
    return checked_generation(settings, place)


def commands(workspace: WorkspaceFolder, chain: str, dataset: str) -> str:
    """Return the commands that run a saved chain and ask it a question."""
    space = workspace
    where = f"--workspace {shlex.quote(str(space.path))}"
    if space.base is not None:
        where += f" --base-settings {shlex.quote(str(space.base.folder.resolve()))}"
    name = f"--chain {shlex.quote(chain)}"
    return (
        f"python -m rallebench run {name} --dataset {shlex.quote(dataset)} {where}\n"
        f"python -m rallebench ask {name} --question 'Your question' {where}\n"
    )


def file_stem(name: str) -> str:
    """Turn a chain's name into a file name.

    >>> file_stem("retrieve-read/06 nq"), file_stem("../..")
    ('retrieve-read-06-nq', 'chain')
    """
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "chain"


def caveat(workspace: WorkspaceFolder, chain: Chain, form: str) -> str:
    """Return a warning about a format; "" if there is none."""
    if form == "command" and not is_saved(workspace, chain):
        return "The chain has unsaved changes. Save it first, then the command finds it."
    missing = sorted(variables(chain) & NOT_IN_RALLE) if form == "ralle" else []
    names = " and ".join(f"{{{name}}}" for name in missing)
    return (
        f"RaLLe can load this file but not run it: its templates do not know {names}."
        if names
        else ""
    )


def variables(chain: Chain) -> set[str]:
    """Return the variables in a chain's templates; malformed templates have none."""
    used: set[str] = set()
    for action in chain.actions:
        try:
            used |= names_used(action.template, action.dialect)
        except TemplateError:
            continue
    return used


def history_place(chain: Chain) -> int | None:
    """Return the index of the last model action whose template can get the earlier turns; None without one."""
    places = (
        index
        for index, action in reversed(list(enumerate(chain.actions)))
        if action.kind == "generate" and action.dialect == "fstring"
    )
    return next(places, None)


def with_history(chain: Chain) -> Chain:
    """Return the chain with the earlier turns before its last prompt. Raises UsageError."""
    index = history_place(chain)
    if index is None:
        raise UsageError("The chain has no prompt in f-string form; add {history} to it in Build.")
    return chain.replace_action(index, template="{history}\n\n" + chain.actions[index].template)


def read_file(path: Path, name: str) -> Chain:
    """Read a chain from a file, called ``name`` in messages. Raises UsageError."""
    try:
        return load_chain_file(path)
    except RalleError as error:
        raise UsageError(str(error).replace(str(path), name), hint=error.hint) from None


def read_text(text: str) -> Chain:
    """Parse a chain from text: JSON if it starts like JSON, otherwise YAML. Raises UsageError."""
    text = text.strip()
    if not text:
        raise UsageError("There is no text to read; paste a chain, or choose a file.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("pasted.json" if text.startswith(("{", "[")) else "pasted.yaml")
        path.write_text(text, encoding="utf-8", errors="replace")
        return read_file(path, "The pasted text")


def unknown_targets(workspace: WorkspaceFolder, chain: Chain) -> list[str]:
    """Return the chain's models and indexes that this workspace does not have."""
    space, missing = workspace, []
    for number, action in enumerate(chain.actions, 1):
        try:
            {"retrieve": space.retriever, "generate": space.llm}.get(action.kind, str)(
                action.target
            )
        except RalleError:
            missing.append(f"action {number} names {action.target or 'nothing'}")
    return missing
