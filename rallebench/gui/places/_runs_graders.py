"""The card of a run's graders: reliability, risk against coverage, and which of two agrees with people."""

from __future__ import annotations

from markupsafe import Markup

from rallebench.core.audits import CONFIDENCE
from rallebench.core.errors import RalleError
from rallebench.gui import figures, form, html
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.patches import Patch
from rallebench.views import audits
from rallebench.views.graders import list_graders
from rallebench.views.run_views import OpenRun

LABELS = (audits.LABELS, "people's labels")


def graders_fold(run: OpenRun) -> Markup:
    """Draw the fold; its content is made once it is open."""
    lazy = Markup('<div id="run-graders"><span class="note" data-lazy{}>auditing …</span></div>')
    inside = lazy.format(html.attributes(do="runs.audit", run=run.name))
    return html.fold(
        "Graders", inside, gist="calibration, risk and coverage", id="run-graders-fold"
    )


def audit(page: Page, event: Event) -> Patch:
    """Audit the chosen grader by the chosen truth, and compare it with another if one is chosen."""
    run = OpenRun(page.workbench.runs.open(event.text("run")))
    return Patch({"run-graders": card(page, run, event)})


def card(page: Page, run: OpenRun, event: Event) -> Markup:
    """Draw the choosers and the audit."""
    names = list_graders(run.folder)
    if not names:
        return html.note(
            "No column of this run has a lowest and a highest value; score it by a judge."
        )
    grader, truth = event.text("grader") or names[0], event.text("truth")
    other = event.text("other")
    precision = event.number("precision", "Wished precision")
    percent = 100 * audits.PRECISION if precision is None else precision
    more = form.on_change("runs.audit", run=run.name)
    truths = [(name, name) for name in names if name != grader and name != CONFIDENCE]
    fields = form.fields(
        form.chooser("Grader", "grader", names, grader, more=more),
        form.chooser("Truth", "truth", [LABELS, *truths], truth, blank="usual metric", more=more),
        form.chooser(
            "Compare with",
            "other",
            [n for n in names if n != grader],
            other,
            blank="none",
            more=more,
        ),
    )
    body = Markup("<div data-form>{}</div>").format(fields)
    try:
        value = audits.audit_grader(
            page.workspace, run.folder, grader, truth, precision=percent / 100
        )
        body += html.bullets(value.sentences)
        body += figures.plots([audits.reliability_figure(value), audits.coverage_figure(value)])
        body += figures.table(audits.audit_table(value))
        if other:
            compared = audits.compare_graders(run.folder, grader, other)
            body += figures.table(audits.comparison_table(compared))
            body += html.bullets(compared.sentences)
    except RalleError as error:
        body += html.problem(error)
    return body
