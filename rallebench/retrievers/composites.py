"""Resolving of a retriever's name to an index, an index with search settings, or a combination of retrievers.

Combinations have names in ``<workspace>/retrievers.json``, or are spelled out instead of a name::

    rrf:starter-bm25,starter-minilm?weights=0.7,0.3
    rerank:(rrf:mine,other)?model=/models/reranker&depth=30
    my-index?ef_search=200            an index with search settings
    my-index?query_quantization=8bit  queries encoded by the model in 8-bit (sentence-transformers)
    starter-hybrid?depth=50           a named combination with other settings
    gold:mine?questions=my-qa         a reference without search (see retrievers/references.py)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rallebench.core.entries import Combination, Manifest
from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.numbers import plural
from rallebench.core.registry import unknown
from rallebench.core.settings import Setting, check_values, parse_settings
from rallebench.core.text import split_outside, strip_brackets
from rallebench.retrievers import COMBINATIONS, search_form
from rallebench.vector_indexes import VECTOR_INDEXES

INDEX = "index"
"""Kind of a combination that is a single index with search settings."""

QUERY_QUANTIZATION = "query_quantization"
_QUANTIZED = Setting(
    str,
    "none",
    choices=("none", "8bit"),
    about="8bit: the query encoder needs less memory",
)

STARTER_COMBINATIONS: Mapping[str, Combination] = {
    "starter-hybrid": Combination(
        kind="rrf",
        of=["starter-bm25", "starter-minilm"],
        about="starter corpus, both indexes fused by rank",
    )
}
"""Combinations in every workspace."""


@dataclass(frozen=True, slots=True)
class Names:
    """Known names: index name → kind ('' if it is not built), the combinations, and checks for the names of language models and
    datasets.
    """

    indexes: Mapping[str, str]
    combinations: Mapping[str, Combination]
    llm: Callable[[str], object]
    questions: Callable[[str], object]


def resolve(reference: str, names: Names, within: tuple[str, ...] = ()) -> Combination | None:
    """Return the combination that a reference stands for, with all its settings; None for a plain index.

    An index takes precedence over a combination of the same name. Raises UsageError for an unknown name, an invalid
    setting, or a combination that contains itself; parts are checked as well.
    """
    if reference in within:
        raise UsageError(
            f"The retriever {reference!r} contains itself ({' → '.join((*within, reference))}); "
            "name another retriever in retrievers.json."
        )
    if reference in names.indexes:
        return None
    head, entry = reference, names.combinations.get(reference)
    if entry is None:
        head, entry = written_out(reference)
        if entry is not None and head in names.combinations and head not in names.indexes:
            named = names.combinations[head]
            entry = named.model_copy(update={"settings": {**named.settings, **entry.settings}})
    if entry is None or (entry.kind == INDEX and entry.of[0] not in names.indexes):
        of = f"The retriever {within[-1]!r} contains {head!r}: " if within else ""
        known = [*names.indexes, *names.combinations]
        raise NotFoundError(of + unknown("index", head if entry is None else entry.of[0], known))
    if entry.kind == INDEX:
        return entry.model_copy(update={"settings": _knobs(reference, entry, names)})
    entry = entry.model_copy(update={"settings": check_settings(reference, entry)})
    for part in entry.of:
        resolve(part, names, (*within, reference))
    if COMBINATIONS.entry(entry.kind).traits.get("llm"):
        names.llm(entry.settings["llm"])
    if COMBINATIONS.entry(entry.kind).traits.get("questions"):
        names.questions(entry.settings["questions"])
    return entry


def component_indexes(reference: str, names: Names) -> tuple[str, ...]:
    """Return the indexes behind a reference, in order, without duplicates. Raises what ``resolve`` raises."""
    entry = resolve(reference, names)
    if entry is None:
        return (reference,)
    if entry.kind == INDEX:
        return (entry.of[0],)
    return tuple(
        dict.fromkeys(index for part in entry.of for index in component_indexes(part, names))
    )


def needs(entry: Combination) -> list[tuple[str, str]]:
    """Return (name, ``retriever`` or ``language model``) of everything to load before a combination."""
    names = [(name, "retriever") for name in entry.of]
    if entry.settings.get("llm"):
        names.append((entry.settings["llm"], "language model"))
    return list(dict.fromkeys(names))


def written_out(reference: str) -> tuple[str, Combination | None]:
    """Return the part of a reference before ``?``, and the combination; None if it is only a name.

    A name with settings has the kind ``index``.

    >>> written_out("rrf:a,(rrf:b,c?constant=1)?weights=1,2")[1].of
    ['a', 'rrf:b,c?constant=1']
    """
    head, *queries = split_outside(reference, "?")  # the first one outside brackets
    query = "?".join(queries)
    settings = parse_settings(query.split("&")) if query else {}
    kind, colon, members = head.partition(":")
    if colon and (kind == INDEX or kind in COMBINATIONS):
        parts = [strip_brackets(part) for part in split_outside(members)]
        if not all(parts):
            raise UsageError(
                f"{reference!r} lacks a retriever's name after {kind!r}; write {kind}:name,name."
            )
        return head, Combination(kind=kind, of=parts[:64], settings=dict(settings))
    if settings:
        return head, Combination(kind=INDEX, of=[head], settings=dict(settings))
    return reference, None


def write_reference(entry: Combination, parts: Sequence[str]) -> str:
    """Spell out a combination of ``parts`` instead of its own; settings with their default value are left out.

    >>> entry = Combination(kind="rrf", of=["a", "b"], settings={"constant": 1, "weights": "1,2"})
    >>> write_reference(entry, ["c", "rrf:d,e"])
    'rrf:c,(rrf:d,e)?constant=1&weights=1,2'
    """
    form = COMBINATIONS.entry(entry.kind).form if entry.kind in COMBINATIONS else {}
    changed = {
        key: value
        for key, value in entry.settings.items()
        if value is not None and (key not in form or value != form[key].default)
    }
    query = "&".join(f"{key}={_write_value(value)}" for key, value in changed.items())
    wrapped = [f"({part})" if set(part) & set(",?:") else part for part in parts]
    head = wrapped[0] if entry.kind == INDEX else f"{entry.kind}:{','.join(wrapped)}"
    return f"{head}?{query}" if query else head


def _write_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def check_settings(name: str, entry: Combination) -> dict[str, Any]:
    """Return all settings of a combination. Raises UsageError for an invalid kind, number of parts or setting."""
    if entry.kind not in COMBINATIONS:
        raise UsageError(
            f"The retriever {name!r}: "
            + unknown("way of combining retrievers", entry.kind, COMBINATIONS.names())
        )
    combination = COMBINATIONS.entry(entry.kind)
    traits = combination.traits
    fewest, most = traits["parts"]
    if not fewest <= len(entry.of) <= most:
        range_ = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        raise UsageError(
            f"The retriever {name!r} has {plural(len(entry.of), 'part')}; {entry.kind} takes {range_}."
        )
    settings, weights = dict(entry.settings), entry.settings.get("weights")
    if isinstance(weights, (list, int, float)):  # checked again once the parts are known
        numbers = weights if isinstance(weights, list) else [weights]
        settings["weights"] = ",".join(map(str, numbers))
    settings = {**check_values(f"retriever {name!r} ({entry.kind})", combination.form, settings)}
    if "check" in traits:
        traits["check"](name, len(entry.of), settings)
    return settings


def _knobs(reference: str, entry: Combination, names: Names) -> dict[str, Any]:
    """Return an entry's search settings for an index. Raises UsageError for an unknown setting."""
    name, kind = entry.of[0], names.indexes[entry.of[0]]
    if len(entry.of) > 1 or not kind:
        raise UsageError(f"The retriever {reference!r} must name one built index.")
    known = dict(search_form(kind))
    if kind in VECTOR_INDEXES:
        known[QUERY_QUANTIZATION] = _QUANTIZED
    values = check_values(f"index {name!r} ({kind})", known, entry.settings, noun="search setting")
    return {key: value for key, value in values.items() if key in entry.settings}


def about_index(manifest: Manifest) -> str:
    """Return one line about a built index."""
    line = f"{manifest.kind}, {manifest.passages} passages of {manifest.corpus}"
    notes = " ".join(filter(None, [manifest.words_note, *manifest.warnings]))
    return f"{line} ({notes})" if notes else line


def about(entry: Combination) -> str:
    """Return one line about a combination."""
    known = COMBINATIONS.listing(entry.kind).about if entry.kind in COMBINATIONS else ""
    settings = ", ".join(f"{key}={value}" for key, value in entry.settings.items())
    return entry.about or known or f"{entry.of[0]} with {settings}"
