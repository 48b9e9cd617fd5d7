"""Groups of a run's questions that it gets wrong, in a fold below the bar of lost questions."""

from __future__ import annotations

from markupsafe import Markup

from rallebench.core.errors import RalleError
from rallebench.core.events import complete
from rallebench.core.failures import (
    MEANING,
    WORD,
    FailureReport,
    QuestionGroup,
    common,
    is_slice,
    points,
    stage_figure,
)
from rallebench.core.report import Estimate
from rallebench.core.run_results import MetricEstimate
from rallebench.core.waterfall import SHORT
from rallebench.gui import figures, html
from rallebench.gui.addresses import RunAddress
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.patches import Patch
from rallebench.services.question_groups import group_questions
from rallebench.views import run_questions
from rallebench.views.failures import explain_failures
from rallebench.views.run_questions import QuestionRow
from rallebench.views.run_views import OpenRun

TITLES = {MEANING: "By meaning", WORD: "By question word"}
ABOUT = "Groups are made from the questions alone. Intervals count articles and hold for all groups of a table together."


def why_fold(run: OpenRun, sliced: bool) -> Markup:
    """Draw the fold; its content is made once it is open. ``sliced``: the list shows one of its groups."""
    lazy = Markup(
        '<div id="run-why"><span class="note" data-lazy{}>grouping questions …</span></div>'
    )
    inside = lazy.format(html.attributes(do="runs.why", run=run.name))
    name = (
        "" if sliced else "run-why-fold"
    )  # a name keeps it open, above the list that was asked for
    return html.fold("Why it fails", inside, gist="questions by meaning", id=name)


def make_groups(page: Page, run: OpenRun) -> None:
    """Group the questions of a run by meaning, unless they are."""
    encoders = page.workbench.models.encoders
    complete(group_questions(page.workspace, encoders, run.folder), lambda event: None)


def why(page: Page, event: Event) -> Patch:
    """Show the groups of the run's questions."""
    run = OpenRun(page.workbench.runs.open(event.text("run")))
    try:
        make_groups(page, run)
        report = explain_failures(page.workspace, run.folder)
    except RalleError as error:
        return Patch({"run-why": html.problem(error)})
    return Patch({"run-why": groups_html(run, report)})


def groups_html(run: OpenRun, report: FailureReport) -> Markup:
    """Draw the verdict, a table of each kind of groups, and where the wrong questions of each were lost."""
    first, *notes = report.sentences
    body = Markup("<p>{}</p>").format(first)
    for kind, title in TITLES.items():
        groups = [group for group in report.groups if group.kind == kind]
        if groups:
            body += html.heading(title) + _table(run, groups)
            body += figures.plots([stage_figure(report, kind)])
    about = [ABOUT, *notes] if report.groups else notes
    return body + html.bullets(about)


def _table(run: OpenRun, groups: list[QuestionGroup]) -> Markup:
    heads = ("Group", ">Questions", ">Wrong", ">Against the rest", "Mostly lost", "Example", "")
    lines = []
    shares = [_estimate(group.share, group.n) for group in groups]
    ends = figures.needs_ends(shares, "fraction")
    for group, share in zip(groups, shares):
        address = RunAddress(run.name, only=group.key).href
        difference = group.difference
        gap = figures.gap(_estimate(difference, group.n)) if difference.low is not None else ""
        examples = Markup("<br>").join(group.examples[:2])
        save = html.button(
            "Save to a dataset",
            "edits.keep_form",
            kind="quiet",
            run=run.name,
            only=group.key,
            words="",
        )
        lines.append(
            [
                html.link(group.title, address, "nm")
                + Markup("<small>{}</small>").format(group.key),
                f"{group.n:,}",
                figures.percent(share, ends=ends),
                gap or points(difference),
                common(group.stages, SHORT),
                Markup('<div dir="auto">{}</div>').format(examples),
                save,
            ]
        )
    return Markup('<div class="wide">{}</div>').format(html.rows(heads, lines))


def _estimate(mean: MetricEstimate, n: int) -> Estimate:
    return Estimate(mean.value, mean.low, mean.high, n)


def slice_rows(page: Page, run: OpenRun, only: str, words: str) -> list[QuestionRow]:
    """Return the questions of a group that pass the words. Raises NotFoundError for an unknown group."""
    if only.startswith(MEANING):
        make_groups(page, run)
    return run_questions.filter_slice(page.workspace, run.folder, only, words)


def slice_chip(page: Page, run: OpenRun, only: str) -> Markup:
    """Draw the group in use as a filter, which leads back to all questions; "" for another filter."""
    if not is_slice(only):
        return Markup()
    count = len(slice_rows(page, run, only, ""))
    return html.chips([(only, only, count)], only, "runs.choose", run=run.name)
