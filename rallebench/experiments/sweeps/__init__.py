"""Sweeps: variants of a chain with some fields changed. Each variant is a run, and the runs are compared."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rallebench.chains.overrides import override, with_overrides
from rallebench.core.errors import UsageError
from rallebench.core.registry import unknown
from rallebench.core.text import split_names
from rallebench.core.types import Chain

MOST_VARIANTS = 64
STRATEGIES = ("one-factor", "grid")
INDEX = "index."
"""Prefix of the fields of the searched index."""
OF_AN_ACTION = ("k", "template", "dialect", "target")
_GENERATION = """
max_tokens temperature seed stop system top_p top_k min_p repetition_penalty frequency_penalty
presence_penalty logit_bias response_format logprobs top_logprobs chat_template_kwargs
"""
GENERATION = tuple(_GENERATION.split())
"""Known generation settings of language models; other names would have no effect."""
_FILE = re.compile(r"[^\s{}]*\.[a-z]{1,5}", re.IGNORECASE)
"""The form of a path; templates never look like this."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A chain field and its values: ``k``, ``retriever``, ``llm``, a generation setting, ``N.field`` for action N (counted
    from 1), or ``index.field`` of the searched index. ``labels``: the names of the values in run names and plots."""

    field: str
    values: tuple[Any, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant and its chain. ``changes``: field → label of its value; {} for the unchanged chain.

    ``index``: changes to the searched index, see ``sweeps.indexing``; {} for none.
    """

    changes: Mapping[str, str]
    chain: Chain
    index: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return ", ".join(f"{name}={label}" for name, label in self.changes.items()) or "base"


def factor(text: str, read: Any) -> Factor:
    """Parse ``field=value,value,…`` into a Factor. ``read`` turns ``["field=value"]`` into a mapping, as for ``--set``.

    A comma inside brackets belongs to its value: ``retriever=mine,(rrf:mine,other)``. A template value that is a file path
    stands for the file's text. Raises UsageError.
    """
    name, equals, rest = text.partition("=")
    name = name.strip()
    parts = split_names(rest)
    if not equals or not name or not parts:
        raise UsageError(f"{text!r} names no field with values; write it as in k=2,4,6.")
    values, labels = [], []
    for part in parts:
        file = Path(part).expanduser()
        if name.endswith("template") and file.is_file():
            try:
                values.append(file.read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError) as error:
                raise UsageError(f"The template {file} cannot be read ({error}).") from None
            labels.append(file.stem)
        elif name.endswith("template") and _FILE.fullmatch(part):
            raise UsageError(
                f"There is no template file {part!r} (looked for in {Path.cwd()}); give its whole path."
            )
        else:
            values.append(read([f"{name}={part}"])[name])
            labels.append(part)
    if len(set(parts)) == len(parts) > len(set(labels)):
        labels = parts  # two folders hold a file of the same name
    if len(set(labels)) < len(labels):
        raise UsageError(f"{name} takes a value twice: {', '.join(labels)}; give each once.")
    return Factor(name, tuple(values), tuple(labels))


def expand(chain: Chain, factors: Sequence[Factor], strategy: str = "one-factor") -> list[Variant]:
    """The distinct variants. ``one-factor`` changes one factor at a time; ``grid`` uses all combinations.

    Variants with a larger k come first, so that smaller ones can reuse their passages. Raises UsageError for a field that no
    action has, and for more than MOST_VARIANTS variants.
    """
    if strategy not in STRATEGIES:
        raise UsageError(f"A sweep is {' or '.join(STRATEGIES)}, not {strategy!r}.")
    if not factors:
        raise UsageError("Nothing is varied; name at least one field with its values.")
    if len({factor.field for factor in factors}) < len(factors):
        raise UsageError("A field is varied twice; put all its values into one list.")
    columns = [
        [(factor.field, *pair) for pair in zip(factor.values, factor.labels)] for factor in factors
    ]
    singly = ((choice,) for column in columns for choice in column)
    variants: list[Variant] = []
    for choices in itertools.product(*columns) if strategy == "grid" else singly:
        changes, changed, index = {}, chain, {}
        for name, value, label in choices:
            changes[name] = label
            if name.startswith(INDEX):
                index[name.removeprefix(INDEX)] = value
            else:
                changed = changed_by(changed, name, value)
        if any((variant.chain, variant.index) == (changed, index) for variant in variants):
            continue
        variants.append(Variant(changes, changed, index))
        if len(variants) > MOST_VARIANTS:
            raise UsageError(
                f"That is more than {MOST_VARIANTS} variants; vary fewer fields or values."
            )

    def depth(variant: Variant) -> int:
        return max((a.k for a in variant.chain.actions if a.kind == "retrieve"), default=0)

    return sorted(variants, key=depth, reverse=True)


def changed_by(chain: Chain, field: str, value: Any) -> Chain:
    """The chain with a field changed in every action, or in one. Raises UsageError."""
    if field == "retriever":
        return override(chain, retriever=str(value))
    if field == "llm":
        return override(chain, llm=str(value))
    name = field.rpartition(".")[2]
    own = {setting for action in chain.actions for setting in action.generation}
    if name not in (*OF_AN_ACTION, *GENERATION, *own):
        known = ["retriever", "llm", *OF_AN_ACTION, *GENERATION, f"{INDEX}chunk_size"]
        raise UsageError(
            f"{field}: {unknown('field to vary', name, known)} A setting that only your server knows can be varied once "
            "the chain sets it."
        )
    try:
        return with_overrides(chain, {field: value})
    except UsageError as error:
        raise UsageError(str(error), hint=error.hint) from None


def remarks(variants: Sequence[Variant]) -> list[str]:
    """Remarks on easily confused fields, such as ``top_k`` and the number of passages."""
    names = {name for variant in variants for name in variant.changes}
    varied = sorted(name for name in names if name.rpartition(".")[2] == "top_k")
    actions = [action for variant in variants for action in variant.chain.actions]
    cold = any(a.kind == "generate" and not a.generation.get("temperature") for a in actions)
    if not varied or not (cold or any(action.kind == "retrieve" for action in actions)):
        return []
    meaning = f"{' and '.join(varied)}: a sampling setting, of how many of the likeliest tokens a model draws; the number of passages is k."
    idle = " Where a model does not sample (temperature 0, or the built-in reader), it changes nothing."
    return [meaning + idle * cold]
