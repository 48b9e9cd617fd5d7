"""Information-retrieval measures over a ranked list with binary relevance of pages or passages.

They differ from KILT's (rank_list.py), which count complete evidence sets. The tests compare them with ir_measures,
which uses trec_eval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from rallebench.core.types import Episode, Gold
from rallebench.metrics import METRICS
from rallebench.metrics._reading import page_ids, passage_ids

Ranked = Callable[[Sequence[str], Collection[str], int], float]

ALL = 1_000_000_000
"""A cut-off beyond every rank."""


def success(ids: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return 1.0 if one of the first k is relevant, else 0.0."""
    return float(any(i in relevant for i in ids[:k]))


def reciprocal_rank(ids: Sequence[str], relevant: Collection[str], k: int = ALL) -> float:
    """Return 1 / the first relevant rank, 0.0 beyond k.

    >>> reciprocal_rank(["a", "b", "c"], {"c", "b"})
    0.5
    """
    return next((1 / rank for rank, i in enumerate(ids[:k], 1) if i in relevant), 0.0)


def precision(ids: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the number of relevant ids among the first k, divided by k."""
    return sum(i in relevant for i in ids[:k]) / k


def recall(ids: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the share of the relevant ids that are among the first k."""
    return sum(i in relevant for i in ids[:k]) / len(relevant)


def average_precision(ids: Sequence[str], relevant: Collection[str], k: int = ALL) -> float:
    """Return the sum of the precision at each relevant rank, divided by the number of relevant ids.

    >>> average_precision(["a", "x", "b"], {"a", "b"})
    0.8333333333333333
    """
    hits, total = 0, 0.0
    for rank, i in enumerate(ids[:k], 1):
        if i in relevant:
            hits += 1
            total += hits / rank
    return total / len(relevant)


def ndcg(ids: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the gains with discount 1 / log2(rank + 1), over those of the best possible list. A gain is the grade in a
    mapping, else 1.

    >>> ndcg(["x", "a"], {"a"}, 5) == 1 / math.log2(3), ndcg(["a", "b"], {"a": 1, "b": 2}, 1)
    (True, 0.5)
    """
    grades = relevant if isinstance(relevant, Mapping) else dict.fromkeys(relevant, 1.0)
    best = sorted(grades.values(), reverse=True)[:k]
    return _discount(grades.get(i, 0.0) for i in ids[:k]) / _discount(best)


def _discount(gains: Iterable[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def mean_reciprocal_rank(ids: Sequence[str], relevant: Collection[str], k: int = ALL) -> float:
    """Return the mean reciprocal rank of all relevant ids, 0 for one not found."""
    return sum(1 / rank for rank, i in enumerate(ids[:k], 1) if i in relevant) / len(relevant)


# ── pages and passages ───────────────────────────────────────────────────────

_TREC = "trec_eval, as ir_measures 0.4 computes it"
_CLEVERDON = "Cleverdon et al. 1966; " + _TREC

_VOORHEES = "Voorhees 1999, TREC-8 QA track; " + _TREC

_AT_K: tuple[tuple[str, str, Ranked, str], ...] = (
    ("success", "Success", success, _TREC),
    ("mrr", "MRR", reciprocal_rank, _VOORHEES),
    ("ndcg", "nDCG", ndcg, "Järvelin and Kekäläinen 2002; " + _TREC),
    ("map", "MAP", average_precision, "Harman 1992, TREC-1; " + _TREC),
    ("precision", "Precision", precision, _CLEVERDON),
    ("recall", "Recall", recall, _CLEVERDON),
)
"""(name, label, function, source)"""
_WHOLE: tuple[tuple[str, str, Ranked, str], ...] = (
    ("mrr", "MRR", reciprocal_rank, _VOORHEES),
    ("map", "MAP", average_precision, "Harman 1992, TREC-1; " + _TREC),
    (
        "mrr_each",
        "MRR of each",
        mean_reciprocal_rank,
        "CRUD-RAG, Lyu et al. 2024, arXiv:2401.17043",
    ),
)
_DEFINITIONS = {
    "success@k": "1 if {a} is among the first k distinct {unit}s, else 0.",
    "mrr@k": "1 divided by the rank of the first {gold} among the first k; 0 without one.",
    "mrr": "1 divided by the rank of the first {gold}; 0 if none was retrieved.",
    "mrr_each": "The mean over all {gold}s of 1 divided by the rank of each; 0 for one not retrieved.",
    "ndcg@k": "The discounted gain of the {gold}s among the first k, over that of the best possible list.",
    "map@k": "The precision at the rank of each {gold} among the first k, summed, over the number of {gold}s.",
    "map": "The precision at the rank of each {gold}, summed, divided by the number of {gold}s.",
    "precision@k": "The {gold}s among the first k distinct {unit}s, divided by k.",
    "recall@k": "The share of the {gold}s that are among the first k distinct {unit}s.",
}
_TRAPS = {
    "mrr": "MRR is the mean of it. ",
    "mrr_each": "Not MRR: with two {gold}s even the best list scores 0.75. ",
    "ndcg": "A {gold} has gain 1, a graded page (BEIR's judgements) its grade; the discount is log2(rank + 1). ",
    "map": "MAP is the mean of it. ",
    "precision": "The divisor is k even if fewer {unit}s were retrieved. ",
    "recall": "With k below the number of {gold}s it cannot reach 1. ",
}
"""Templates: {a} is "a gold page", {gold} "gold page" and {unit} "page"; or the same for passages."""

_UNITS = {
    "page": "Pages, not passages: five passages of one page are one page. A page of any evidence set is a gold "
    "page; which of them belong together does not matter. ",
    "passage": "Ids only mean something with the corpus for which the questions were made; another passage with "
    "the same content counts as a miss. ",
}


_IRRELEVANT = {
    "page": " A question whose judged pages are all irrelevant scores 0, as there.",
    "passage": "",
}


def _doc(unit: str, name: str, source: str, at_k: bool) -> str:
    words = {"unit": unit, "gold": f"gold {unit}", "a": f"a gold {unit}"}
    definition, trap = _DEFINITIONS[f"{name}@k" if at_k else name], _TRAPS.get(name, "")
    return (
        f"{definition.format(**words)}\n\nNormalisation: none, ids are compared.\n"
        f"Not scored: the gold names no {unit}, as in trec_eval.{_IRRELEVANT[unit]}\nSource: {source}.\n"
        f"Traps: {trap.format(**words)}{_UNITS[unit]}The results of several retrievals of a chain are joined in order."
    )


def _relevant(gold: Gold, unit: str) -> Collection[str]:
    if unit == "page":
        return gold.page_grades
    return frozenset().union(*gold.passages) if gold.passages else frozenset()


def _file(unit: str, name: str, label: str, doc: str, ranked: Ranked, at_k: bool) -> None:
    def score(episode: Episode, gold: Gold, k: int = ALL) -> float | None:
        relevant = _relevant(gold, unit)
        if not relevant:  # judged, but no page is relevant: trec_eval counts it as 0
            return 0.0 if unit == "page" and gold.grades else None
        return ranked(page_ids(episode) if unit == "page" else passage_ids(episode), relevant, k)

    score.__doc__ = doc
    score.__name__ = score.__qualname__ = name
    traits = {"needs": "provenance", "reads": "pages", "wants": f"gold {unit}s"}
    if at_k:
        listed = (1, 5, 10) if ranked in (success, recall) else (5, 10)
        METRICS.register_at_k(name, label=label, listed=listed, **traits)(score)
    else:
        METRICS.register(name, label=label, **traits)(score)


def _file_all() -> None:
    for unit in _UNITS:
        for at_k, rows in ((True, _AT_K), (False, _WHOLE)):
            for name, label, ranked, source in rows:
                # precision@k and recall@k without a prefix are KILT's
                plain = unit == "page" and name not in ("precision", "recall")
                full = name if plain else f"{unit}_{name}"
                title = (
                    label
                    if plain
                    else f"{unit.capitalize()} {label if label[1].isupper() else label.lower()}"
                )
                _file(unit, full, title, _doc(unit, name, source, at_k), ranked, at_k)


_file_all()
