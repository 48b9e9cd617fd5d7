"""The verdict on two compared runs and its recommendation, in words."""

from __future__ import annotations

from markupsafe import Markup

from rallebench.core.numbers import NOISE
from rallebench.core.run_results import RunSummary
from rallebench.gui.figures import gap_words
from rallebench.views import run_views
from rallebench.views.recommending import Recommendation


def sentence(
    compared: run_views.RunPair,
    advice: Recommendation | None,
    first: RunSummary,
    second: RunSummary,
) -> Markup:
    """State the verdict and the recommendation: the better run, or the cheaper one if no difference is shown
    and it does not look worse."""
    size = gap_words(abs(compared.pair.difference or 0.0), compared.unit).removeprefix("+")
    if advice is None:
        return Markup("<b>{}</b> is {} by {}.").format(second.title, compared.verdict, size)
    titles = {first.name: first.title, second.name: second.title}
    verb = "Keep" if advice.run == first.name else "Take"
    if advice.better:
        against = [saving for saving in advice.savings if saving.run != advice.run]
        but = Markup()
        if against:
            words = " and ".join(saving.predicate for saving in against)
            but = Markup(" But <b>{}</b> {}.").format(titles[against[0].run], words)
        return Markup("{} <b>{}</b>: it is better by {}.{}").format(
            verb, titles[advice.run], size, but
        )
    head = open_head(compared, advice, first, second)
    if advice.run:
        words = " and ".join(saving.words for saving in advice.savings)
        return Markup("{} {} <b>{}</b>: {}.").format(head, verb, titles[advice.run], words)
    for saving in advice.savings:
        head += Markup(" <b>{}</b> {}.").format(titles[saving.run], saving.predicate)
    return head


def open_head(
    compared: run_views.RunPair,
    advice: Recommendation,
    first: RunSummary,
    second: RunSummary,
) -> Markup:
    """State that no difference is shown, and which run may be worse nevertheless."""
    gap, upward = compared.pair.difference or 0.0, compared.runs.measure.higher_is_better
    if advice.doubted:
        words = Markup("No difference shown, but <b>{}</b> may be worse by up to {}").format(
            (first if advice.doubted == first.name else second).title,
            gap_words(advice.loss, compared.unit).removeprefix("+"),
        )
        if advice.doubted == first.name:
            return words + "."
        return words + Markup("; keep <b>{}</b> until more questions decide.").format(first.title)
    has_interval = compared.pair.low is not None and compared.pair.high is not None
    if has_interval or abs(gap) <= NOISE:
        return Markup("No difference shown.")
    looks = ("higher" if gap > 0 else "lower") if upward is None else ""
    looks = looks or ("better" if (gap > 0) is upward else "worse")
    return Markup(
        "Undecided: <b>{}</b> looks {} by {}, but the difference has no interval."
    ).format(second.title, looks, gap_words(abs(gap), compared.unit).removeprefix("+"))
