"""Titles that tell runs and variants apart, on the page as in MLflow."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rallebench.core.types import Action, Chain

_AUTOMATIC = re.compile(r"^(?P<base>.+)-\d{8}-\d{6}(-\d+)?$")
"""Pattern of a generated name, which ends with a time."""

_VARIANT = re.compile(r"^sweep-\d{8}-\d{6} (?P<label>.+)$")
"""Pattern of the name of a run in an unnamed sweep."""

_KINDS = {"retrieve": "retrieve", "generate": "generate", "identity": "pass on"}
_TEMPLATES = {"retrieve": "query", "generate": "prompt", "identity": "text"}
"""Kind of action → its label, and the label of its template."""


def run_title(
    name: str, dataset: str, chain: Chain | None, first: Chain | None, own: str = ""
) -> str:
    """Return the user's ``own`` title, or the run's own name. For a generated name, return the chain's name with the
    differences from the chain of the ``first`` run of that name.

    >>> a = Chain("rag", (Action("retrieve", "{question}", target="x", k=5),))
    >>> run_title("rag-nq-20260101-120000", "nq", a.replace_action(0, k=2), a), run_title("night", "nq", a, a)
    ('rag · k 2', 'night')
    """
    if own:
        return own
    if chain is not None and (variant := _VARIANT.match(name)):
        return f"{chain.name} · {plain_label(variant['label'])}"
    automatic = _AUTOMATIC.match(name)
    if automatic is None:
        return name
    if chain is None:
        return automatic["base"].removesuffix(f"-{dataset}")
    different = difference_label(first or chain, chain)
    return chain.name if different == "the same" else f"{chain.name} · {different}"


def is_generated(name: str) -> bool:
    """Return whether a run's title depends on the first run of its chain."""
    return _AUTOMATIC.match(name) is not None


def first_chains(runs: Iterable[tuple[str, str, Chain | None]]) -> dict[str, Chain]:
    """Return the first chain of each name. ``runs``: (time of creation, name, chain)."""
    first: dict[str, Chain] = {}
    for _, _, chain in sorted(runs, key=lambda run: run[:2]):
        if chain is not None:
            first.setdefault(chain.name, chain)
    return first


def difference_label(base: Chain, other: Chain) -> str:
    """Describe the difference between two chains briefly, as the label of a variant.

    >>> a = Chain("a", (Action("retrieve", "{question}", target="x", k=5),))
    >>> difference_label(a, a.replace_action(0, k=10)), difference_label(a, a)
    ('k 10', 'the same')
    """
    words: list[str] = []
    for index in range(max(len(base.actions), len(other.actions))):
        if index >= len(base.actions):
            words.append(f"+ {_KINDS[other.actions[index].kind]}")
        elif index >= len(other.actions):
            words.append(f"without action {index + 1}")
        else:
            words += _action(base.actions[index], other.actions[index])
    return " · ".join(dict.fromkeys(words)) or "the same"


def _action(a: Action, b: Action) -> list[str]:
    if a.kind != b.kind:
        return [f"{_KINDS[b.kind]} instead of {_KINDS[a.kind]}"]
    words = [b.target] if a.target != b.target else []
    if a.k != b.k:
        words.append(f"k {b.k}")
    if (a.template, a.dialect) != (b.template, b.dialect):
        words.append(f"{_TEMPLATES[b.kind]} changed")
    for name in sorted({*a.generation, *b.generation}):
        if a.generation.get(name) != (value := b.generation.get(name)):
            short = "default" if value is None else value if len(str(value)) < 20 else "changed"
            words.append(f"{name.replace('_', ' ')} {short}")
    return words


def field_label(name: str) -> str:
    """Return a field of a chain as one word, such as "prompt" for ``2.template``."""
    number, dot, rest = name.partition(".")
    name = rest if dot else number
    names = {"template": "prompt", "retriever": "index", "llm": "model", "target": "model or index"}
    return names.get(name, name.replace("_", " "))


def plain_label(label: str) -> str:
    """Return a variant's label in plain words: "k 5, prompt short".

    >>> plain_label("k=5, 2.template=short")
    'k 5, prompt short'
    """
    parts = []
    for part in label.split(", "):
        name, equals, value = part.partition("=")
        parts.append(f"{field_label(name)} {value}" if equals else part)
    return ", ".join(parts)
