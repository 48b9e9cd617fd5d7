"""A chain → the texts that the Config tab shows. Pure: no widgets, no workbench."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import yaml

from rallebench.chains.ralle import experiment_to_json
from rallebench.chains.saved import chain_to_json
from rallebench.chains.template import names_used
from rallebench.core.errors import RalleError, TemplateError
from rallebench.core.types import Chain
from rallebench.gui import views

RALLE_UNKNOWN = frozenset({"documents", "history"})
"""Variables that RaLLe's own templates do not have."""


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """YAML whose long templates read as text."""


def _represent_text(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


_Dumper.add_representer(str, _represent_text)


def as_json(chain: Chain) -> str:
    """Our own form as JSON."""
    return json.dumps(chain_to_json(chain), ensure_ascii=False, indent=2) + "\n"


def as_yaml(chain: Chain) -> str:
    """Our own form as YAML; templates of several lines stand as such where YAML can write them so."""
    text: str = yaml.dump(
        chain_to_json(chain), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=4096
    )
    return text


def as_ralle(chain: Chain, dataset: str) -> str:
    """RaLLe's experiment form, with the indent of RaLLe's own files."""
    return json.dumps(experiment_to_json(chain, dataset), ensure_ascii=False, indent=4) + "\n"


def ralle_note(chain: Chain) -> str:
    """What RaLLe itself cannot do with the chain, as HTML; '' if it can run it."""
    used: set[str] = set()
    for action in chain.actions:
        try:
            used |= names_used(action.template, action.dialect)
        except TemplateError:
            continue
    missing = sorted(used & RALLE_UNKNOWN)
    if not missing:
        return ""
    names = " and ".join(f"{{{name}}}" for name in missing)
    return views.note(
        f"RaLLe can load this file but not run it: its templates do not know {names}."
    )


def file_stem(name: str) -> str:
    """A chain's name as the name of a file.

    >>> file_stem("retrieve-read/06 nq"), file_stem("../..")
    ('retrieve-read-06-nq', 'chain')
    """
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "chain"


def commands(chain: str, dataset: str, workspace: Path, base_settings: Path | None = None) -> str:
    """The command lines that do what the page does with the saved chain ``chain``."""
    where = f"--workspace {shlex.quote(str(workspace))}"
    if base_settings is not None:
        where += f" --base-settings {shlex.quote(str(base_settings))}"
    named = f"--chain {shlex.quote(chain)}"
    return (
        "# benchmark the chain, as in Benchmark (add --limit 50 to try it, --json for programs)\n"
        f"python -m rallebench run {named} --dataset {shlex.quote(dataset)} {where}\n\n"
        "# ask it one question, as in Develop and Chat\n"
        f"python -m rallebench ask {named} --question 'Your question' {where}\n"
    )


def unknown_targets(chain: Chain, knows: Mapping[str, Callable[[str], object]]) -> list[str]:
    """What the chain names and this workspace does not know, as it reads in a sentence.

    ``knows``: ``retrieve`` and ``generate`` → what raises RalleError for a name that it does not know.
    """
    found = []
    for number, action in enumerate(chain.actions, 1):
        try:
            knows.get(action.kind, str)(action.target)
        except RalleError:
            found.append(f"action {number} names {action.target or 'nothing'}")
    return found


def saved(path: Path, before: Collection[str]) -> str:
    """Where a chain was saved, and whether it took another one's place; ``before``: the names that there were.

    >>> saved(Path("chains/mine.json"), ["starter"])
    'Saved as chains/mine.json.'
    """
    replaced = " It takes the place of the chain that had this name; runs keep the chain they were made with."
    return f"Saved as {path}.{replaced if path.stem in before else ''}"
