"""Episode × gold → number. One file per metric; the docstring and the traits are its card.

A plain metric is a function ``(episode, gold) -> float | None``: None means *not scored* (it is
left out of the mean and counted), never 0. The first line of its docstring is the definition that
the page prints beside the number. Traits given to ``METRICS.register``:

``needs``             what the gold must hold: ``"answers"``, ``"provenance"``, joined with ``+``, or ``""``
``higher_is_better``  bool
``label``             the name as papers print it
``unit``              ``"fraction"``, ``"seconds"``, ``"tokens"`` …
``range``             (lowest, highest); None where there is no bound
``source``            where the definition comes from
``traps``             what a reader of the number should know
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from rallebench.errors import UsageError
from rallebench.registry import Entry, Registry
from rallebench.types import Episode, Gold

Metric = Callable[[Episode, Gold], "float | None"]


class MetricAtK(Protocol):
    """A metric with a cut-off."""

    def __call__(self, episode: Episode, gold: Gold, k: int) -> float | None:
        """The value at ``k``, from 1 to MAX_K."""
        ...


METRICS: Registry[Callable[..., Any]] = Registry("metric", "rallebench.metrics")

STANDARD_KS = (1, 5, 10, 20)
"""The cut-offs that are listed; any other from 1 to MAX_K may be asked for by name."""
MAX_K = 1000

_AT_K = re.compile(r"(?P<family>.+?)(?:@|_at_)(?P<k>\d{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Family:
    """A metric with a cut-off: the function of (episode, gold, k) and the traits of its members."""

    function: MetricAtK
    about: str
    label: str
    traits: dict[str, Any]

    def member(self, name: str, k: int) -> Entry[Callable[..., Any]]:
        traits = {**self.traits, "label": f"{self.label}@{k}", "k": k}
        return Entry(name, functools.partial(self.function, k=k), self.about, traits)


_FAMILIES: dict[str, _Family] = {}


def register_at_k(family: str, *, label: str, **traits: Any) -> Callable[[MetricAtK], MetricAtK]:
    """Decorator: file ``function(episode, gold, k)`` as ``family@K`` for every K from 1 to 1000."""

    def file(function: MetricAtK) -> MetricAtK:
        about = (function.__doc__ or "").strip().split("\n")[0]
        _FAMILIES[family] = _Family(function, about, label, traits)
        for k in STANDARD_KS:
            member = _FAMILIES[family].member(f"{family}@{k}", k)
            METRICS.register(member.name, about=member.about, **member.traits)(member.value)
        return function

    return file


def metric(name: str) -> Entry[Callable[..., Any]]:
    """The entry of a metric's name; also ``recall@7``, and RaLLe's spelling ``recall_at_5``.

    The entry's ``name`` is the canonical one. Raises NotFoundError for a name nobody knows (with the
    nearest ones) and UsageError for a cut-off outside 1 … 1000.

    >>> metric("recall_at_5").name, metric("recall@7").traits["label"]
    ('recall@5', 'Recall@7')
    """
    wanted = name.strip()
    if wanted in METRICS:
        return METRICS.entry(wanted)
    found = _AT_K.fullmatch(wanted)
    family = _FAMILIES.get(found["family"]) if found else None
    if not found or not family:
        return METRICS.entry(wanted)
    k = int(found["k"])
    if not 1 <= k <= MAX_K:
        raise UsageError(f"The metric {name!r} asks for a cut-off of {k}; give one from 1 to {MAX_K}.")
    return family.member(f"{found['family']}@{k}", k)


def satisfied(needs: str, gold: Gold) -> bool:
    """Whether ``gold`` holds what ``needs`` names, e.g. ``"answers+provenance"``.

    >>> satisfied("answers+provenance", Gold(answers=("Rome",)))
    False
    """
    return all(bool(getattr(gold, part)) for part in needs.split("+") if part)


def card(name: str) -> dict[str, Any]:
    """What the page shows beside a number: name, definition, details and every trait.

    >>> card("em")["definition"]
    '1 if the answer equals an accepted answer after normalisation, else 0; the best over all of them.'
    """
    entry = metric(name)
    function = getattr(entry.value, "func", entry.value)
    _, _, details = (inspect.getdoc(function) or "").partition("\n")
    return {"name": entry.name, "definition": entry.about, "details": details.strip(), **entry.traits}
