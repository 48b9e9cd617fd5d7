"""ALCE's scores of answers that must hold several things: ASQA's short answers, QAMPARI's list."""

from __future__ import annotations

from rallebench.core.answers import normalize_answer
from rallebench.core.types import Episode, Gold
from rallebench.metrics import METRICS
from rallebench.metrics._reading import final_answer


@METRICS.register("str_em", needs="required", label="STR-EM")
def str_em(episode: Episode, gold: Gold) -> float | None:
    """The share of the required answers of which a name stands in the answer, both normalised.

    Normalisation: lower-case, ASCII punctuation deleted, a/an/the dropped, single spaces.
    Not scored: the gold requires no answers.
    Source: ALCE, Gao et al. 2023, arXiv:2305.14627; ASQA, Stelmakh et al. 2022, arXiv:2204.06092.
    Traps: Characters, not words: 'art' is in 'party'. Citations such as [1] are part of the answer here; ALCE removes them.
    """
    if not gold.required:
        return None
    answer = normalize_answer(final_answer(episode))
    present = [any(normalize_answer(name) in answer for name in group) for group in gold.required]
    return sum(present) / len(present)


@METRICS.register("str_hit", needs="required", label="STR-EM (hit)")
def str_hit(episode: Episode, gold: Gold) -> float | None:
    """1 if a name of every required answer stands in the answer, both normalised, else 0.

    Normalisation: lower-case, ASCII punctuation deleted, a/an/the dropped, single spaces.
    Not scored: the gold requires no answers.
    Source: ALCE, Gao et al. 2023, arXiv:2305.14627.
    Traps: As of str_em.
    """
    share = str_em(episode, gold)
    return None if share is None else float(share == 1)


@METRICS.register("list_f1", needs="required", label="List F1")
def list_f1(episode: Episode, gold: Gold) -> float | None:
    """F1 of the answer as a list: its parts between commas that are a required answer, and required answers that are a part.

    Normalisation: lower-case, ASCII punctuation deleted, a/an/the dropped, single spaces; empty parts do not count.
    Not scored: the gold requires no answers.
    Source: ALCE, Gao et al. 2023, arXiv:2305.14627, of QAMPARI, Amouyal et al. 2022, arXiv:2205.12665.
    Traps: A name with a comma is two parts. An answer in sentences scores 0; str_em counts it.
    """
    if not gold.required:
        return None
    parts = [normalize_answer(part) for part in final_answer(episode).rstrip(".,").split(",")]
    parts = [part for part in parts if part]
    groups = [{normalize_answer(name) for name in group} for group in gold.required]
    if not parts:
        return 0.0
    precision = sum(any(part in group for group in groups) for part in parts) / len(parts)
    recall = sum(not group.isdisjoint(parts) for group in groups) / len(groups)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
