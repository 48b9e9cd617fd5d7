"""Names of metrics and judges as scorers: judges, and support metrics by a language model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rallebench.core.errors import UsageError
from rallebench.core.scoring import Pair, Scorer
from rallebench.core.text import strip_brackets
from rallebench.core.types import Episode, Example, Outcome
from rallebench.metrics import METRICS
from rallebench.metrics.judges import JudgeScorer, MarkOf, judge_named


def split_judges(
    names: Sequence[str], mark_of: MarkOf
) -> tuple[tuple[str, ...], tuple[Scorer, ...]]:
    """Split names into metrics and judges; the support metrics of one language model are one judge. Raises UsageError for a
    judge without a known model."""
    judges: dict[str, Scorer] = {}
    support: dict[str, list[str]] = {}
    for name in filter(METRICS.is_judge, names):
        base, _, llm = (part.strip() for part in name.partition(":"))
        if "support" in METRICS.entry(base).traits:
            support.setdefault(strip_brackets(llm), []).append(base)
        else:
            judge = judge_named(name, mark_of)
            judges[judge.name] = judge
    if support:
        from rallebench.metrics.support.scorer import support_judge  # not needed by other judges
    for llm, bases in support.items():
        judge_of_support = support_judge(bases, llm, mark_of(llm))
        judges[judge_of_support.name] = judge_of_support
    return tuple(name for name in names if not METRICS.is_judge(name)), tuple(judges.values())


def check_sources(judges: Sequence[Scorer], examples: Iterable[Example], dataset: str) -> None:
    """Raise UsageError for a judge that has nothing to judge by in any example."""
    pairs = [
        Pair(example, Episode(example.question.qid, "", (), Outcome(""))) for example in examples
    ]
    for judge in judges:
        if isinstance(judge, JudgeScorer) and all(judge.flow(pair) is None for pair in pairs):
            wants = METRICS.entry(judge.name.partition(":")[0]).traits["wants"]
            raise UsageError(
                f"{judge.name} judges by {wants}; {dataset} has none. Remove that judge or choose another dataset."
            )
