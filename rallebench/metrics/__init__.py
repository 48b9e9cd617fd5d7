"""Episode × gold → number. One file per metric; its card consists of the docstring and the traits.

A plain metric is a function ``(episode, gold) -> float | None``: None means *not scored* (left out of the mean, but
counted), never 0. Its docstring has the format described in ``_card.py``. Traits that the code relies on are passed to
``METRICS.register``, ``register_at_k`` (a family with a cut-off), ``register_batch`` (all answers at once) or
``register_judge`` (a flow that asks a language model; see ``metrics/judges``). ``metrics/scorers.py`` and
``judges.judge_named`` turn metrics into scorers (``core.scoring.Scorer``).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rallebench.core import plugins
from rallebench.core.cards import Card
from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.registry import Entry, Registry
from rallebench.core.scoring import ScoreColumn
from rallebench.core.types import Episode, Example, Flow, Gold, Json
from rallebench.metrics._card import make_card
from rallebench.metrics._options import names_language_model

Metric = Callable[[Episode, Gold], "float | None"]

Pairs = Sequence["tuple[Episode, Gold]"]


MetricAtK = Callable[..., "float | None"]
"""(episode, gold, k) → the value at the cut-off k, from 1 to MAX_K."""
Counted = tuple["Sequence[Sequence[int]]", Callable[["list[int]"], float]]
"""The counts of each answer, and a function from a sum of such counts to the score: over all answers, or over a resample.
"""
BatchMetric = Callable[..., "list[float | None]"]
"""(pairs, option) → a value for each pair."""


STANDARD_KS = (1, 5, 10, 20)
"""The listed cut-offs; any other from 1 to MAX_K is available by name."""
MAX_K = 1000

_AT_K = re.compile(r"(?P<family>.+?)(?:@|_at_)(?P<k>\d{1,9})", re.ASCII)
DEFAULTS = {
    "needs": "answers",
    "declining": False,
    "reads": "answer",
    "higher_is_better": True,
    "unit": "fraction",
    "range": (0, 1),
}


class Metrics(Registry[Callable[..., Any]]):
    """The metrics, including judges. By default a metric is a fraction, needs accepted answers, and higher is better."""

    def __init__(self, kind: str, package: str, **more: Any) -> None:
        super().__init__(kind, package, **more)
        self.families: dict[str, Callable[[int], Entry[Callable[..., Any]]]] = {}

    def register(
        self, name: str, *, about: str = "", form: Any = None, **traits: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register a metric as in any registry; ``DEFAULTS`` are the traits of a metric without its own."""
        return super().register(name, about=about, form=form, **{**DEFAULTS, **traits})

    def register_at_k(
        self, family: str, *, label: str, listed: Sequence[int] = STANDARD_KS, **traits: Any
    ) -> Callable[[MetricAtK], MetricAtK]:
        """Return a decorator that registers ``function(episode, gold, k)`` as ``family@K`` for every K from 1 to 1000."""

        def file(function: MetricAtK) -> MetricAtK:
            about = (function.__doc__ or "").strip().split("\n")[0]

            def member(k: int) -> Entry[Callable[..., Any]]:
                own = {**DEFAULTS, **traits, "label": f"{label}@{k}", "k": k}
                return Entry(f"{family}@{k}", functools.partial(function, k=k), about, own)

            self.families[family] = member
            plugins.undo_on_failure(lambda: self.families.pop(family, None))
            for k in listed:
                entry = member(k)
                self.register(entry.name, about=about, **entry.traits)(entry.value)
            return function

        return file

    def register_batch(self, name: str, **traits: Any) -> Callable[[BatchMetric], BatchMetric]:
        """Return a decorator that registers a metric over all answers at once; it can also be called with a single
        answer.
        """

        def file(batch: BatchMetric) -> BatchMetric:
            @functools.wraps(batch)
            def singly(episode: Episode, gold: Gold, option: str = "") -> float | None:
                return batch([(episode, gold)], option)[0]

            self.register(name, batch=batch, **traits)(singly)
            return batch

        return file

    def register_judge(
        self,
        name: str,
        *,
        columns: tuple[ScoreColumn, ...],
        scores: Callable[[Episode], Mapping[str, float]],
        prompts: Mapping[str, tuple[str, ...]] | None = None,
        prompt: Callable[..., Any] = str,
        folder: str = "judges",
        source: Callable[[Example], str] | None = None,
        **traits: Any,
    ) -> Callable[[Callable[..., Flow]], Callable[..., Flow]]:
        """Return a decorator that registers a judge ``(case, *, llm, prompt, **settings) -> Flow`` (see metrics/judges) as the metric ``NAME:MODEL``
        of any run.

        ``scores``: returns the values of the columns from the judge's episode. ``prompts``: file in ``folder`` (below prompts/) →
        its required fields in braces; ``prompt`` builds the judge's prompt from these texts. ``source``: returns the text of an
        example that the judge judges by, '' if there is none; None if it needs none.
        """
        judge = JudgeTraits(columns, scores, prompts or {}, prompt, folder, source)
        own = {
            "label": name,
            "needs": "",
            "tool": "judge",
            "wants": "a text to judge by" if source else "",
            "unit": "fraction" if columns[0].range == (0, 1) else "points",
            "range": columns[0].range,
        }
        return self.register(name, judge=judge, **{**own, **traits})

    def is_judge(self, name: str) -> bool:
        """Return whether a name is that of a judge, with or without a model, or of a support metric by a language model."""
        base, _, option = name.partition(":")
        tool = self.listing(base.strip()).traits.get("tool") if base.strip() in self else ""
        return tool == "judge" or (tool == "checker" and names_language_model(option))

    def find_judge(self, column: str) -> Entry[Callable[..., Any]] | None:
        """Return the judge of a column ``NAME:MODEL``; None for any other column."""
        base, colon, _ = column.partition(":")
        if colon and self.is_judge(column) and self.listing(base).traits.get("tool") == "checker":
            return self.entry(base)
        judges = (self.entry(name) for name in self.judge_names() if colon)
        return next(
            (j for j in judges if base in {c.name for c in j.traits["judge"].columns}), None
        )

    def plain_names(self) -> tuple[str, ...]:
        """Return the metrics that ask no model."""
        return tuple(name for name in self.names() if not self.is_judge(name))

    def judge_names(self) -> tuple[str, ...]:
        return tuple(name for name in self.names() if self.is_judge(name))

    def family(self, name: str) -> Callable[[int], Entry[Callable[..., Any]]] | None:
        """Return the function that makes a family's member from a cut-off; None if there is no such family."""
        for member in self.names():
            if member.startswith(f"{name}@"):
                self.entry(member)  # its module registers the family
                break
        return self.families.get(name)


@dataclass(frozen=True, slots=True)
class JudgeTraits:
    """The registered properties of a judge; see ``register_judge``."""

    columns: tuple[ScoreColumn, ...]
    scores: Callable[[Episode], Mapping[str, float]]
    prompts: Mapping[str, tuple[str, ...]]
    prompt: Callable[..., Any]
    folder: str
    source: Callable[[Example], str] | None


METRICS = Metrics(
    "metric",
    "rallebench.metrics",
    expects="a function (episode, gold) → a number, or None where it does not apply",
    required={"label": ()},
    rooms=("judge",),
    traits={
        "needs": 'required gold: "answers", "provenance", "required", "unanswerable", joined with "+", or ""',
        "declining": "True if a question without a right answer scores 1 for an answer that declines, else 0",
        "reads": 'required parts of an episode: "answer", "pages", "passages", "cost", joined with "+", or ""',
        "higher_is_better": "bool; None if neither direction is better",
        "label": "the name as printed in papers",
        "unit": '"fraction", "seconds", "tokens" …',
        "range": "(lowest, highest); None without a bound",
        "check": "(option) → None: the name may be followed by :option",
        "over_all": "(pairs, option) → (counts of each answer, sum of counts → score over all answers)",
        "batch": "all answers at once, see register_batch",
        "judge": "JudgeTraits, see register_judge",
        "tool": 'required model: "encoder", "model", "judge" or "checker"',
        "support": "SupportTraits, see support/measures.register_support",
        "wants": 'description of the required gold if needs says too little: "gold passages"',
        "k": "the cut-off, for a member of a family",
    },
)


def metric(name: str) -> Entry[Callable[..., Any]]:
    """Return the entry of a metric by its name; also ``recall@7``, RaLLe's ``recall_at_5``, and ``bleu:char``.

    The entry's ``name`` is the canonical one. Raises NotFoundError for an unknown name (with the nearest ones) and for a
    judge, whose values come from a model, and UsageError for a cut-off outside 1 … 1000 or an option that the metric does
    not take.

    >>> metric("recall_at_5").name, metric("recall@7").traits["label"], metric("bleu:char").traits["label"]
    ('recall@5', 'Recall@7', 'BLEU (char)')
    """
    if METRICS.is_judge(name):
        raise NotFoundError(
            f"{name.strip()!r} is a judge, and the run has no scores of it; score the run with it first."
        )
    return _entry(name.strip())


def _entry(name: str) -> Entry[Callable[..., Any]]:
    return METRICS.entry(name) if name in METRICS else _derive(name)


@functools.lru_cache(maxsize=512)
def _derive(name: str) -> Entry[Callable[..., Any]]:
    base, colon, option = name.partition(":")
    if colon and base in METRICS:
        return _with_option(METRICS.entry(base), option.strip())
    match = _AT_K.fullmatch(name)
    family = METRICS.family(match["family"]) if match else None
    if not match or not family:
        return METRICS.entry(name)
    k = int(match["k"])
    if not 1 <= k <= MAX_K:
        raise UsageError(
            f"The metric {name!r} asks for a cut-off of {k}; give one from 1 to {MAX_K}."
        )
    return family(k)


def _with_option(entry: Entry[Callable[..., Any]], option: str) -> Entry[Callable[..., Any]]:
    check = entry.traits.get("check", _any_model if "judge" in entry.traits else None)
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


def _any_model(option: str) -> None:
    """Accept a judge's option, the name of a model, which only a workspace can check."""


def read_card(name: str) -> Card:
    """Return the card of a metric or a judge, from its docstring and its traits. Raises as ``metric`` does for other
    names.

    >>> read_card("em").direction, read_card("recall@5").requirements
    ('higher is better', 'gold pages')
    """
    entry = _entry(name.strip())
    function = entry.value
    while isinstance(function, functools.partial):
        function = function.func
    card = make_card(entry.name, entry.about, function.__doc__ or "", entry.traits)
    judge: JudgeTraits | None = entry.traits.get("judge")
    if judge is None:
        return card
    columns = "\n".join(f"{column.name}: {column.definition}" for column in judge.columns)
    return replace(
        card, details=f"{columns}\n{card.details}", option="the language model that judges."
    )


def card(name: str) -> Json:
    """Return ``read_card`` as JSON, for the page.

    >>> card("em")["definition"]
    '1 if the answer equals an accepted answer after normalisation, else 0; the best over all of them.'
    """
    return read_card(name).to_json()
