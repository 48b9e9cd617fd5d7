"""What RGB's numbers are: share of which answers, of how many."""

from __future__ import annotations

from collections.abc import Mapping

DEFINITIONS: Mapping[str, str] = {
    "all_rate": "RGB's accuracy: every required answer stands in the reply, by one of its aliases, in any case; at noise 1 "
    "a rejection counts, too. Over the questions that did not fail.",
    "rejection_rate": "Rej: the reply holds 'insufficient information' or 信息不足. Over the questions that did not fail.",
    "lucky_rate": "Every required answer stands in the reply though no document holds it. Over the questions that did not fail.",
    "fact_check_rate": "ED: the reply holds 'factual errors' or 事实性错误. Over the questions that did not fail.",
    "correct_rate": "CR: every required answer stands in the reply as well. Over the replies that ED counts "
    "(compat=original: a rejection passes, too).",
    "rejection_rate_judge": "Rej*: the judge says that the question is not addressed. Over the verdicts that could be read.",
    "fact_check_rate_judge": "ED*: the judge says that the errors were identified. Over the verdicts that could be read.",
    "correct_rate_judge": "CR*: every required answer stands in the reply as well. Over the replies that ED* counts, as in "
    "RGB's paper.",
}


def named(*metrics: str) -> dict[str, str]:
    """These metrics with their definitions, in this order."""
    return {metric: DEFINITIONS[metric] for metric in metrics}
