"""The metrics of a run: the defaults, or the user's choice, as far as the gold allows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rallebench.core.cards import NEEDS
from rallebench.core.declining import UNANSWERABLE
from rallebench.core.errors import UsageError
from rallebench.core.types import Chain, Example
from rallebench.engine.headline import BY_KIND, default_metrics
from rallebench.engine.store import RunFolder
from rallebench.metrics import METRICS, metric, read_card
from rallebench.metrics.scorers import metric_scorers

DEFAULT_METRICS = (
    "accuracy",
    "em",
    "f1",
    "rougel",
    "has_answer",
    "has_answer_all",
    "KILT-accuracy",
    "KILT-em",
    "KILT-f1",
    "KILT-rougel",
    "KILT-has_answer",
    "KILT-has_answer_all",
    "Rprec",
    "recall@1",
    "recall@5",
    "recall@10",
    "success_rate@1",
    "success_rate@5",
    "precision@1",
    "precision@5",
    "answer_in_context@5",
    "seconds",
    "prompt_tokens",
    "completion_tokens",
)


OF_REQUIRED = ("str_em", "str_hit", "list_f1")
"""Further default metrics of a dataset with required answers."""
GOLD = ("answers", "provenance", "required", UNANSWERABLE, "claims")
"""Parts of the gold that metrics need."""


def has_gold(examples: Iterable[Example]) -> dict[str, int]:
    """Return the number of examples with ``answers``, ``provenance`` ``required`` answers and ``claims``, and of ``unanswerable`` ones."""
    count = Counter[str]()
    for example in examples:
        count["answers"] += bool(example.gold.answers)
        count["provenance"] += any(example.gold.provenance)
        count["required"] += bool(example.gold.required)
        count[UNANSWERABLE] += example.gold.unanswerable
        count["claims"] += bool(example.gold.claims)
    return {part: count[part] for part in GOLD}


def choose_metrics(
    names: Sequence[str] | None,
    examples: Sequence[Example],
    dataset: str,
    chain: Chain | None = None,
) -> tuple[str, ...]:
    """Return the metrics to compute: ``names``, or the ``chain``'s defaults that the gold allows.

    Raises UsageError for a metric if its gold is absent from the whole dataset.
    """
    have = has_gold(examples)
    if not names:
        of_kinds = BY_KIND if any(example.gold.unanswerable for example in examples) else ()
        of_lists = OF_REQUIRED if any(example.gold.required for example in examples) else ()
        usual = default_metrics((*DEFAULT_METRICS, *of_kinds, *of_lists), chain)
        return tuple(name for name in usual if not _missing_gold(name, have))
    for name in names:
        for need in _missing_gold(name, have):
            needed = need if need in GOLD[:2] else NEEDS[need]
            raise UsageError(
                f"{name} needs {needed}; {dataset} has none. Drop that metric or choose another dataset."
            )
    return tuple(dict.fromkeys(metric(name).name for name in names))


def _missing_gold(name: str, have: Mapping[str, int]) -> list[str]:
    """Return the gold that a metric needs and no example has. If it counts declining, unanswerable questions are enough."""
    (scorer,) = metric_scorers((name,))
    counts_declining = have[UNANSWERABLE] and read_card(name).declining
    missing = sorted(need for need in scorer.needs if not have[need])
    return [need for need in missing if not (need == "answers" and counts_declining)]


def stored_metrics(folder: RunFolder) -> tuple[str, ...]:
    """Return the metrics of a run without those of judges, whose scores are only in ``scores.jsonl``."""
    return tuple(name for name in folder.description().metrics if not METRICS.is_judge(name))
