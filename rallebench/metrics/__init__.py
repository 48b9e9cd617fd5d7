"""Episode × gold → number. One file per metric; the docstring and the traits are its card.

A plain metric is a function ``(episode, gold) -> float | None``: None means *not scored* (it is left out
of the mean and counted), never 0. Its docstring has the form that ``_card.py`` describes; what code decides
on are the traits given to ``METRICS.register``, ``register_at_k`` (a family with a cut-off) or ``register_batch`` (all answers at
once). ``metrics/columns.py`` computes any of them over a whole run; a language model as a judge is in ``metrics/judges``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.registry import Entry, Registry
from rallebench.core.types import Episode, Gold
from rallebench.metrics._card import Card, make_card

if TYPE_CHECKING:
    from rallebench.encoders import Encoder

Metric = Callable[[Episode, Gold], "float | None"]

Pairs = Sequence["tuple[Episode, Gold]"]
OpenEncoder = Callable[[str], "Encoder"]
"""From an encoder's name (encoders/references.py) to the encoder, loaded."""


class MetricAtK(Protocol):
    """A metric with a cut-off."""

    def __call__(self, episode: Episode, gold: Gold, k: int) -> float | None:
        """The value at ``k``, from 1 to MAX_K."""
        ...


class Batch(Protocol):
    """A metric that is given all answers at once; ``encoders`` opens (or shares) an encoder by its name."""

    def __call__(
        self, pairs: Pairs, option: str = "", encoders: OpenEncoder | None = None
    ) -> list[float | None]:
        """One value for each of ``pairs``."""
        ...


class Metrics(Registry[Callable[..., Any]]):
    """The metrics. One that says no more is a share of the questions, by accepted answers, and more is better."""

    def register(
        self, name: str, *, about: str = "", form: Any = None, **traits: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """As in every registry; ``DEFAULTS`` are the traits of a metric that does not give its own."""
        return super().register(name, about=about, form=form, **{**DEFAULTS, **traits})


DEFAULTS = {"needs": "answers", "higher_is_better": True, "unit": "fraction", "range": (0, 1)}
METRICS = Metrics(
    "metric",
    "rallebench.metrics",
    traits={
        "needs": 'what the gold must hold: "answers", "provenance", joined with "+", or ""',
        "higher_is_better": "bool; None where neither direction is good",
        "label": "the name as papers print it",
        "unit": '"fraction", "seconds", "tokens" …',
        "range": "(lowest, highest); None where there is no bound",
        "check": "(option) → None: the name may go on with :option",
        "over_all": "(pairs, option) → float or None: the figure over all answers at once",
        "over_all_counts": "(pairs, option) → the counts that over_all is made of",
        "batch": "all answers at once, see register_batch",
        "tool": '"encoder" or "model": what has to be loaded',
        "wants": 'for people, where needs says too little: "gold passages"',
        "k": "the cut-off of a member of a family",
    },
)

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
        traits = {**DEFAULTS, **self.traits, "label": f"{self.label}@{k}", "k": k}
        return Entry(name, functools.partial(self.function, k=k), self.about, traits)


_FAMILIES: dict[str, _Family] = {}


def register_at_k(
    family: str, *, label: str, listed: Sequence[int] = STANDARD_KS, **traits: Any
) -> Callable[[MetricAtK], MetricAtK]:
    """Decorator: file ``function(episode, gold, k)`` as ``family@K`` for every K from 1 to 1000."""

    def file(function: MetricAtK) -> MetricAtK:
        about = (function.__doc__ or "").strip().split("\n")[0]
        _FAMILIES[family] = _Family(function, about, label, traits)
        for k in listed:
            member = _FAMILIES[family].member(f"{family}@{k}", k)
            METRICS.register(member.name, about=member.about, **member.traits)(member.value)
        return function

    return file


def register_batch(name: str, **traits: Any) -> Callable[[Batch], Batch]:
    """Decorator: file a metric that takes all answers at once; called as a plain one, it takes one."""

    def file(batch: Batch) -> Batch:
        @functools.wraps(batch)
        def singly(episode: Episode, gold: Gold, option: str = "") -> float | None:
            return batch([(episode, gold)], option)[0]

        METRICS.register(name, batch=batch, **traits)(singly)
        return batch

    return file


def metric(name: str) -> Entry[Callable[..., Any]]:
    """The entry of a metric's name; also ``recall@7``, RaLLe's ``recall_at_5``, and ``bleu:char``.

    The entry's ``name`` is the canonical one. Raises NotFoundError for a name nobody knows (with the
    nearest ones) and UsageError for a cut-off outside 1 … 1000 or an option that the metric does not take.

    >>> metric("recall_at_5").name, metric("recall@7").traits["label"], metric("bleu:char").traits["label"]
    ('recall@5', 'Recall@7', 'BLEU (char)')
    """
    name = name.strip()
    return METRICS.entry(name) if name in METRICS else _derived(name)


@functools.lru_cache(maxsize=512)
def _derived(name: str) -> Entry[Callable[..., Any]]:
    base, colon, option = name.partition(":")
    if colon and base in METRICS:
        return _with_option(METRICS.entry(base), option.strip())
    match = _AT_K.fullmatch(name)
    family = _FAMILIES.get(match["family"]) if match else None
    if not match or not family:
        return METRICS.entry(name)
    k = int(match["k"])
    if not 1 <= k <= MAX_K:
        raise UsageError(
            f"The metric {name!r} asks for a cut-off of {k}; give one from 1 to {MAX_K}."
        )
    return family.member(f"{match['family']}@{k}", k)


def _with_option(entry: Entry[Callable[..., Any]], option: str) -> Entry[Callable[..., Any]]:
    check = entry.traits.get("check")
    if not check:
        raise NotFoundError(f"The metric {entry.name!r} takes no option; write {entry.name} alone.")
    if not option:
        raise UsageError(
            f"The metric '{entry.name}:' names no option; write {entry.name} alone for the default."
        )
    check(option)
    traits = {**entry.traits, "label": f"{entry.traits['label']} ({option})", "chosen": option}
    value = functools.partial(entry.value, option=option)
    return Entry(f"{entry.name}:{option}", value, entry.about, traits)


def read_card(name: str) -> Card:
    """The card of a metric, from its docstring and its traits. Raises as ``metric`` does.

    >>> read_card("em").direction, read_card("recall@5").needed
    ('higher is better', 'gold pages')
    """
    entry = metric(name)
    function = entry.value
    while isinstance(function, functools.partial):
        function = function.func
    return make_card(entry.name, entry.about, function.__doc__ or "", entry.traits)


def card(name: str) -> dict[str, Any]:
    """What the page shows beside a number: ``read_card`` as JSON.

    >>> card("em")["definition"]
    '1 if the answer equals an accepted answer after normalisation, else 0; the best over all of them.'
    """
    return read_card(name).as_json()
