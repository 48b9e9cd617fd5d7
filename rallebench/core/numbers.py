"""Numbers in words, for files, reports and MLflow as for people: means without an interval, dollars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rallebench.core.tables import ALL_EQUAL, FEWEST, TOO_FEW, Mean

ABSENT, UNKNOWN, NOT_COUNTED = "–", "unknown", "not counted"
"""Not measured; not known; a quantity that the backend does not count."""


def plural(number: int, noun: str) -> str:
    """A number of things.

    >>> plural(1, "retrieval"), plural(1200, "model call")
    ('1 retrieval', '1,200 model calls')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def mean_of(value: Any) -> Mapping[str, Any] | None:
    """A Mean, or a mapping in the form of one, as JSON has it; None for anything else."""
    if isinstance(value, Mean):
        return asdict(value)
    if isinstance(value, Mapping) and {"value", "low", "high", "n"} <= value.keys():
        return value
    return None


def no_interval(n: int, clusters: Mapping[str, Any] | None = None) -> str:
    """Why a mean over ``n`` questions has no interval. ``clusters``: as a report keeps them.

    >>> no_interval(4), no_interval(40, {"by": "question", "n": 40, "largest": 1})
    ('too few articles', 'all are equal: no interval')
    """
    return TOO_FEW if min(n, (clusters or {}).get("n", n)) < FEWEST else ALL_EQUAL


def independence(clusters: Mapping[str, Any] | None, questions: int) -> str:
    """The units that the intervals of a report count as independent; '' for a report that does not say.

    >>> independence({"by": "gold pages", "n": 3, "largest": 6}, 10)
    'Intervals count 3 articles (questions that share gold pages) as independent. One article holds 6 of the 10 questions.'
    """
    if not clusters:
        return ""
    words = {
        "gold pages": "articles (questions that share gold pages)",
        "group": "articles (questions of one group)",
        "question": "questions (the data set names no articles)",
    }[clusters["by"]]
    sentence = f"Intervals count {clusters['n']:,} {words} as independent."
    if 2 * clusters["largest"] > questions > 1:
        sentence += f" One article holds {clusters['largest']:,} of the {questions:,} questions."
    return sentence


def usd(value: float) -> str:
    """US dollars, small amounts to two significant digits.

    >>> usd(0.0), usd(0.0000123), usd(0.0421), usd(12.5)
    ('$0', '$0.000012', '$0.042', '$12.50')
    """
    if value == 0:
        return "$0"
    if value >= 0.1:
        return f"${value:,.2f}"
    digits = 2 - int(f"{value:e}".partition("e")[2])
    return f"${value:.{min(digits - 1, 12)}f}"


def price(total: Mapping[str, Any]) -> str:
    """The dollars of a total: the sum, or the known part and the models with unknown prices."""
    if total["usd"] is not None:
        return usd(total["usd"])
    models = ", ".join(f"{name} ({why})" for name, why in total["usd_unknown_for"].items())
    known = f"{usd(total['usd_known'])} + " if total["usd_known"] else ""
    return f"{known}unknown for {models}"
