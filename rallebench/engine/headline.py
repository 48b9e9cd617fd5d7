"""The metric that decides between runs: a metric of the answer, or of the retrieval for a chain that only retrieves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rallebench.core.errors import RalleError
from rallebench.core.numbers import plural
from rallebench.core.report import Estimate, JudgeReport, RunReport
from rallebench.core.types import Chain, Example
from rallebench.metrics import read_card

OF_ANSWERS = ("em", "accuracy", "f1", "rougel")
"""Metrics of answers that can decide, in order of preference."""

_CUT_OFF = re.compile(r"(?P<family>[^@]+?)(?:@|_at_)(?P<k>\d+)")
LEAST_COVERED = 0.5
"""Mean share of the probability on the options below which a judge would mostly say something else."""
BY_KIND = ("em_answerable", "f1_answerable", "em_unanswerable")
"""Further default metrics of a dataset with unanswerable questions."""
RETRIEVAL_RUN = ("ndcg@10", "mrr", "map")
"""Further default metrics of a chain that only retrieves."""


def deciding_metric(names: Iterable[str], *, graded: bool = False) -> str:
    """The metric that decides, '' if none of ``names`` can: one of answers, then nDCG at the deepest cut-off if gold pages
    are ``graded``, then R-precision, then recall or nDCG at the deepest cut-off.

    >>> deciding_metric(["em", "Rprec"]), deciding_metric(["Rprec", "ndcg@5", "ndcg@10"], graded=True), deciding_metric(["recall@5"])
    ('em', 'ndcg@10', 'recall@5')
    """
    known = list(names)
    answers = [name for name in OF_ANSWERS if name in known]
    ndcg, recall = deepest(known, "ndcg"), deepest(known, "recall")
    pages = [ndcg] if graded else []
    pages += ["Rprec"] if "Rprec" in known else []
    return next(filter(None, [*answers, *pages, recall, ndcg]), "")


def deepest(names: Iterable[str], family: str) -> str:
    """The member of a family with the largest cut-off, '' without one."""
    members = [name for name in names if cut_off(name) and name.partition("@")[0] == family]
    return max(members, key=cut_off, default="")


def cut_off(name: str) -> int:
    """The k of ``FAMILY@k``, 0 for a metric without one."""
    match = _CUT_OFF.fullmatch(name)
    return int(match["k"]) if match else 0


def is_graded(examples: Iterable[Example]) -> bool:
    """Return whether the gold grades the relevance of pages."""
    return any(example.gold.grades for example in examples)


def within_depth(names: Sequence[str], depth: int) -> tuple[str, ...]:
    """The metrics, with every cut-off beyond ``depth`` reduced to it.

    >>> within_depth(["em", "recall@1", "recall@5", "recall@10"], 3)
    ('em', 'recall@1', 'recall@3')
    """
    cut = (f"{name.partition('@')[0]}@{depth}" if cut_off(name) > depth else name for name in names)
    return tuple(dict.fromkeys(cut))


def default_metrics(names: Sequence[str], chain: Chain | None) -> tuple[str, ...]:
    """The default metrics of a chain: ``names``, and nDCG, MRR and MAP if it only retrieves. No cut-off lies beyond its
    depth."""
    if chain is None or chain.produces_answer or not chain.depth:
        return tuple(names)
    at = names.index("Rprec") + 1 if "Rprec" in names else len(names)
    return within_depth((*names[:at], *RETRIEVAL_RUN, *names[at:]), chain.depth)


def beyond_depth(names: Iterable[str], chain: Chain | None) -> list[str]:
    """The metrics with a cut-off beyond the number of passages that a chain retrieves; none for any other flow."""
    depth = chain.depth if chain is not None else 0
    return [name for name in names if depth and cut_off(name) > depth]


def table_metrics(report: RunReport, chain: Chain | None) -> dict[str, Estimate]:
    """The metrics of a report with a row in a table. Unscored metrics and cut-offs beyond the retrieved depth are left
    out."""
    means = report.metrics
    left_out = {*report.not_scored, *beyond_depth(means, chain)}
    return {name: mean for name, mean in means.items() if name not in left_out}


def not_printed(report: RunReport, chain: Chain | None) -> list[str]:
    """The metrics of a report that are not printed, or not for every question: one sentence for each reason."""
    without = report.not_scored
    reasons: dict[str, list[str]] = {}
    for name, reason in without.items():
        reasons.setdefault(reason, []).append(name)
    sentences = [f"Not scored: {', '.join(names)} ({reason})." for reason, names in reasons.items()]
    deeper = beyond_depth((n for n in report.metrics if "@" in n and n not in without), chain)
    if chain is not None and deeper:
        passages = "1 passage is" if chain.depth == 1 else f"{chain.depth} passages are"
        sentences.append(f"Not printed: {', '.join(deeper)} (only {passages} retrieved).")
    compared = [name for name in report.metrics if name not in (*without, *BY_KIND)]
    leave_out = [name for name in compared if _leaves_out_unanswerable(name)]
    if report.unanswerable and leave_out:
        questions = plural(report.unanswerable, "unanswerable question")
        sentences.append(
            f"Without the {questions}, since they cannot count that declining is right: {', '.join(leave_out)}."
        )
    sentences += [
        f"Not scored: {name} ({why.rstrip('.')})." for name, why in report.failed_judges.items()
    ]
    return [*sentences, *filter(None, map(coverage_sentence, report.judges))]


def coverage_sentence(judge: JudgeReport) -> str:
    """Return one sentence if the options of a judge have little of its model's probability; '' otherwise."""
    covered = judge.choices.covered if judge.choices else None
    if covered is None or covered >= LEAST_COVERED:
        return ""
    return (
        f"The options of {judge.name!r} have {covered:.1%} of its model's probability on average, so it would rather say "
        "something else; check its prompt, or choose another model."
    )


def _leaves_out_unanswerable(name: str) -> bool:
    """Return whether a metric compares with accepted answers, and does not count declining."""
    try:
        card = read_card(name)
    except RalleError:  # of a plug-in that is not installed
        return False
    return "answers" in card.needs.split("+") and not card.declining
