"""KILT's combined metrics: the answer counts only if the complete evidence was retrieved."""

from __future__ import annotations

from rallebench.core.types import Episode, Gold
from rallebench.metrics import METRICS, Metric
from rallebench.metrics._card import parse
from rallebench.metrics.accuracy import accuracy
from rallebench.metrics.exact_match import exact_match
from rallebench.metrics.has_answer import has_answer, has_answer_all
from rallebench.metrics.r_precision import r_precision
from rallebench.metrics.rouge_l import rouge_l
from rallebench.metrics.token_f1 import token_f1

_KILT = "KILT, Petroni et al. 2021, arXiv:2009.02252"
_RALLE = "RaLLe, Hoshi et al. 2023, arXiv:2308.10633"
_TRAPS = "Can only be as high as the share of questions whose R-precision (pages) is exactly 1."


def _combine(name: str, label: str, plain: Metric, source: str, traps: str = "") -> None:
    def combine(episode: Episode, gold: Gold) -> float | None:
        value = plain(episode, gold)
        if value is None or (gold.unanswerable and not gold.provenance):
            return None
        return value if r_precision(episode, gold) == 1 else 0.0

    words = parse(plain.__doc__ or "")
    combine.__doc__ = (
        f"The {label.removeprefix('KILT-')} of the answer if the R-precision of the retrieved pages is 1, else 0.\n\n"
        f"Normalisation: {words['normalisation']}\nNot scored: {words['not_scored']}\n"
        f"Source: {source}.\nTraps: {_TRAPS} {traps}"
    )
    combine.__name__ = combine.__qualname__ = "kilt_" + plain.__name__
    declining = name != "KILT-rougel"
    METRICS.register(
        name, needs="answers+provenance", reads="answer+pages", label=label, declining=declining
    )(combine)


_combine("KILT-accuracy", "KILT-Accuracy", accuracy, _KILT)
_combine("KILT-em", "KILT-EM", exact_match, _KILT)
_combine("KILT-f1", "KILT-F1", token_f1, _KILT)
_combine("KILT-rougel", "KILT-ROUGE-L", rouge_l, _KILT)
_combine(
    "KILT-has_answer",
    "KILT-has_answer",
    has_answer,
    _RALLE,
    "Empty answers are left out of the mean.",
)
_combine("KILT-has_answer_all", "KILT-has_answer (all)", has_answer_all, _RALLE)
