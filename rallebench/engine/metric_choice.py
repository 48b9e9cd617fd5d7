"""The metrics of a run: the defaults, or the user's choice, as far as the gold allows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rallebench.core.errors import UsageError
from rallebench.core.types import Chain, Example
from rallebench.engine.headline import default_metrics
from rallebench.engine.store import RunFolder
from rallebench.metrics import METRICS, metric
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


def has_gold(examples: Iterable[Example]) -> dict[str, int]:
    """Return the number of examples with ``answers`` and with ``provenance``."""
    count = Counter[str]()
    for example in examples:
        count["answers"] += bool(example.gold.answers)
        count["provenance"] += any(example.gold.provenance)
    return {"answers": count["answers"], "provenance": count["provenance"]}


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
        usual = default_metrics(DEFAULT_METRICS, chain)
        return tuple(name for name in usual if all(have[need] for need in _needs(name)))
    for name in names:
        for need in _needs(name):
            if not have[need]:
                raise UsageError(
                    f"{name} needs {need}; {dataset} has none. Drop that metric or choose another dataset."
                )
    return tuple(dict.fromkeys(metric(name).name for name in names))


def _needs(name: str) -> list[str]:
    (scorer,) = metric_scorers((name,))
    return sorted(scorer.needs)


def stored_metrics(folder: RunFolder) -> tuple[str, ...]:
    """Return the metrics of a run without those of judges, whose scores are only in ``scores.jsonl``."""
    return tuple(name for name in folder.description().metrics if not METRICS.is_judge(name))
