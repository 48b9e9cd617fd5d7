"""Numbers in words, for files, reports, MLflow and people: means without an interval, dollars."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Union

from rallebench.core.costs import CostTotal
from rallebench.core.deciding import UNBOUNDED
from rallebench.core.report import ClusterCounts, Estimate
from rallebench.core.tables import ALL_EQUAL, FEWEST, TOO_FEW

ABSENT, UNKNOWN, NOT_COUNTED = "–", "unknown", "not counted"
"""Not measured; not known; a quantity without a count by the backend."""

LEVEL = 0.05
"""The p below which a difference counts as shown."""
NOISE = 1e-9
"""Two scores that differ by less, absolutely or relatively, are equal up to rounding."""


def plural(number: int, noun: str) -> str:
    """A number of things.

    >>> plural(1, "retrieval"), plural(1200, "model call"), plural(2, "missing index"), plural(0, "query")
    ('1 retrieval', '1,200 model calls', '2 missing indexes', '0 queries')
    """
    return f"{number:,} {noun if number == 1 else plural_noun(noun)}"


def plural_noun(noun: str) -> str:
    """The plural of a noun, whose last word changes.

    >>> [plural_noun(noun) for noun in ("reply", "search", "day", "variant")]
    ['replies', 'searches', 'days', 'variants']
    """
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def as_estimate(value: object) -> Estimate | None:
    """Return an Estimate, also of a mapping in its JSON form; None for anything else."""
    if isinstance(value, Mapping) and {"value", "low", "high", "n"} <= value.keys():
        return Estimate(*(value[key] for key in ("value", "low", "high", "n")))
    return value if isinstance(value, Estimate) else None


TOO_FEW_BATCHES = "too few batches"
"""Why a time has no interval: the questions of a batch share one measured time."""


def no_interval(n: int, clusters: ClusterCounts | None = None, *, timed: bool = False) -> str:
    """The reason why a mean over ``n`` questions has no interval. ``clusters``: as in a report; ``timed``: a mean of
    times.

    >>> no_interval(4), no_interval(40, ClusterCounts("question", 40, 1))
    ('too few articles', 'all are equal: no interval')
    """
    if timed and n >= FEWEST:
        return TOO_FEW_BATCHES
    if clusters and clusters.watched and n >= FEWEST:
        return UNBOUNDED
    return TOO_FEW if min(n, clusters.n if clusters else n) < FEWEST else ALL_EQUAL


Limits = tuple[Union[float, None], Union[float, None]]
"""The lowest and the highest value of a mean; None without a bound."""


def is_lopsided(mean: Estimate, bounds: Limits = (None, None)) -> bool:
    """True if ± would mislead: the sides of the interval differ by more than a fifth, or ± would leave the ``bounds``.

    >>> is_lopsided(Estimate(51.8, 45.5, 58.1)), is_lopsided(Estimate(0, 0, 2.2)), is_lopsided(Estimate(1))
    (False, True, False)
    """
    value, low, high = mean.value, mean.low, mean.high
    if value is None or low is None or high is None:
        return False
    half = (high - low) / 2
    below, above = value - low, high - value
    even = max(below, above) <= 1.2 * min(below, above) + 1e-9 * half
    least, most = bounds
    outside = (least is not None and value - half < least) or (
        most is not None and value + half > most
    )
    return not even or outside


def spread(
    mean: Estimate,
    write: Callable[[float], str],
    bounds: Limits = (None, None),
    *,
    ends: bool = False,
) -> str:
    """The interval beside a mean; '' without an interval. The form is ± half-width, or both ends if ± would mislead, see
    ``is_lopsided``, or if ``ends``, because it would mislead at another mean of the same card or column. ``write``: a
    number in the unit of the mean.

    >>> tenths = "{:.1f}".format
    >>> spread(Estimate(51.8, 45.5, 58.1), tenths), spread(Estimate(0, 0, 2.2), tenths)
    ('± 6.3', '(0.0–2.2)')
    >>> spread(Estimate(1.0, 0.4, 1.6), tenths, (0.5, None)), spread(Estimate(1), tenths)
    ('(0.4–1.6)', '')
    >>> spread(Estimate(51.8, 45.5, 58.1), tenths, ends=True)
    '(45.5–58.1)'
    """
    value, low, high = mean.value, mean.low, mean.high
    if value is None or low is None or high is None:
        return ""
    if not ends and not is_lopsided(mean, bounds):
        return f"± {write((high - low) / 2)}"
    words = [write(end).replace("-", "−") for end in (low, high)]
    return f"({' to '.join(words)})" if low < 0 else f"({'–'.join(words)})"


def smallness(clusters: ClusterCounts | None, questions: int) -> str:
    """A sentence on wide or absent intervals of few questions; '' if there are enough questions.

    >>> smallness(ClusterCounts("gold pages", 3, 6), 10)
    'Below 5 articles there is no interval: these 10 questions are about 3.'
    >>> smallness(ClusterCounts("question", 14, 1), 14)
    '14 questions are few, so the intervals are wide.'
    """
    units = min(questions, clusters.n if clusters else questions)
    if not questions or (units >= FEWEST and questions >= FEW):
        return ""
    if units >= FEWEST:
        return f"{questions} questions are few, so the intervals are wide."
    if clusters is None or clusters.by == "question":
        are = "question is" if questions == 1 else "questions are"
        return f"Below {FEWEST} questions there is no interval: {questions} {are} too few."
    if clusters.by == "batch":
        return f"Below {FEWEST} batches there is no interval: these {questions} questions were asked in {units}."
    about = "this question is" if questions == 1 else f"these {questions} questions are"
    return f"Below {FEWEST} articles there is no interval: {about} about {units}."


FEW = 30
"""Questions below which a difference is hardly ever shown, and intervals are wide."""


def independence(clusters: ClusterCounts | None, questions: int) -> str:
    """The units that the intervals of a report count as independent; '' for a report without this information.

    >>> independence(ClusterCounts("gold pages", 3, 6), 10)
    'Intervals count 3 articles (questions that share gold pages) as independent. One article holds 6 of the 10 questions. Below 5 articles there is no interval: these 10 questions are about 3.'
    """
    if not clusters:
        return ""
    words = {
        "gold pages": "articles (questions that share gold pages)",
        "group": "articles (questions of one group)",
        "question": "questions (the data set names no articles)",
        "batch": "batches (the questions of a batch share one measured time)",
    }[clusters.by]
    sentence = f"Intervals count {clusters.n:,} {words} as independent."
    if 2 * clusters.largest > questions > 1:
        sentence += f" One article holds {clusters.largest:,} of the {questions:,} questions."
    return f"{sentence} {smallness(clusters, questions)}".rstrip()


def usd(value: float) -> str:
    """US dollars; small amounts have two significant digits.

    >>> usd(0.0), usd(0.0000123), usd(0.0421), usd(12.5)
    ('$0', '$0.000012', '$0.042', '$12.50')
    """
    if value == 0:
        return "$0"
    if value >= 0.1:
        return f"${value:,.2f}"
    digits = 2 - int(f"{value:e}".partition("e")[2])
    return f"${value:.{min(digits - 1, 12)}f}"


def price(total: CostTotal) -> str:
    """The dollars of a total: the sum, or the known part and the models without a known price."""
    if total.usd is not None:
        return usd(total.usd)
    models = ", ".join(f"{name} ({why})" for name, why in total.usd_unknown_for.items())
    known = f"{usd(total.usd_known)} + " if total.usd_known else ""
    return f"{known}unknown for {models}"
