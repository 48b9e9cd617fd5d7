"""The list of runs: scores, stages at which questions were lost, running work, and the bin."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from markupsafe import Markup

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.numbers import plural
from rallebench.core.run_results import RunSummary
from rallebench.gui import figures, form, html, jobs, panels
from rallebench.gui.addresses import ComparisonAddress, Query, RunAddress
from rallebench.gui.events import Event, Rows, RowWindow
from rallebench.gui.frame import Page
from rallebench.gui.html import attributes
from rallebench.gui.jobs import progress_words, stop_button
from rallebench.gui.patches import PageEvent, Patch
from rallebench.render import numbers
from rallebench.services.jobs import Job
from rallebench.views import run_list, run_questions, run_views

STATES = {
    "running": "running",
    "scoring": "being scored",
    "stopped": "stopped",
    "failed": "failed",
    "interrupted": "interrupted",
    "done": "",
}
HEADS = Markup(
    '<div class="runrow head"><span></span><span>Run</span><span>Dataset</span>'
    '<span class="n">Score</span><span></span>\n<span class="n">R-precision</span>'
    '<span>Where questions were lost</span><span class="n">A question</span>'
    '<span class="n">Price</span>\n<span></span></div>'
)
NEWEST = 30
"""Number of runs whose steps are read for the bar of lost questions."""

LEGEND = (
    ("lost", "not retrieved"),
    ("wrong", "not in the answer"),
    ("format", "wrong format"),
    ("right", "right"),
)


@dataclass(frozen=True)
class RunFilter(Query):
    """The filter of a window's list. ``mark``: changes when the runs change, so that the list is reloaded."""

    words: str = ""
    dataset: str = ""
    mark: str = ""


def register(page: Page) -> None:
    page.rows("runs", run_rows)
    page.actions("runs", refresh, losses, ask_title, rename, delete, open_bin, restore, empty_bin)
    page.actions("runs", stop, compare)


def reading(do: str, **data: str) -> Markup:
    """Draw the status next to the legend during the analysis of lost questions, which starts once it is visible."""
    return Markup(
        '<span class="note" data-lazy{}>reading where questions were lost …</span>'
    ).format(attributes(do=do, **data))


def view(page: Page, event: Event) -> Patch:
    """Draw the heading, running work and table."""
    datasets = {row.dataset for row in run_list.rows(page.workspace) if row.dataset}
    filters = window_filter(event)
    more = Markup(' class="short" aria-label="Dataset"{}').format(form.on_change("runs.refresh"))
    count = len(run_list.in_bin(page.workspace))
    bar = (
        form.filter_field("runs-words", filters.words, "runs.refresh"),
        form.select("dataset", sorted(datasets), filters.dataset, blank="All datasets", more=more),
        html.button(f"Bin ({count})", "runs.open_bin", kind="quiet") if count else Markup(),
        html.button("Import predictions", "runs.ask_predictions", kind="quiet"),
        html.button("MLflow", "runs.mlflow", kind="quiet", title="Open all runs in MLflow"),
        html.button("Compare", "runs.compare", title="Tick two or more runs"),
        html.button("New run", "runs.new", kind="primary"),
    )
    parts = (
        Markup('<div class="row"><h1>Runs</h1><span class="gap"></span>{}</div>').format(
            Markup().join(bar)
        ),
        Markup('<div id="runs-now" data-follow="*" data-do="runs.refresh">{}</div>').format(
            now(page)
        ),
        Markup('<div id="runs-rows">{}</div>').format(table(page, event)),
    )
    return panels.view(
        "runs/list", "Runs", *parts, kind="wide", more=Markup(" data-form data-problems")
    )


def window_filter(event: Event) -> RunFilter:
    """Return the filter of this window."""
    return event.session.state(RunFilter)


def now(page: Page) -> Markup:
    active = page.workbench.jobs.list("run", active=True)
    return Markup().join(
        running(page, job, html.link("Open", RunAddress(job.name).href)) for job in active
    )


def running(page: Page, job: Job, more: str = "") -> Markup:
    """Draw a run in progress: its share done, its score so far, its stop button."""
    row = next((r for r in run_list.rows(page.workspace) if r.name == job.name), None)
    title = run_list.titles(page.workspace, [(job.name, job.identity)]).get(job.name, job.name)
    trouble = page.workbench.models.trouble(row.chain.llms, job.work) if row and row.chain else ""
    words = html.join_facts(progress_words(job) or job.message, so_far(page, job), trouble)
    stop = stop_button(job, "runs.stop", job.name)
    return jobs.running(job, Markup("<b>{}</b>").format(title), words, more, name=title, stop=stop)


def so_far(page: Page, job: Job) -> str:
    """Return the share of right answers of a run in progress; "" before the first answer."""
    with suppress(RalleError):
        if folder := page.workbench.runs.job_folder(job):
            count = run_questions.counts(run_questions.questions(page.workspace, folder))
            right, wrong = count.get("right", 0), count["wrong"]
            return f"{100 * right / (right + wrong):.1f} % right so far" if right + wrong else ""
    return ""


def shown_rows(page: Page, filters: RunFilter) -> list[RunSummary]:
    """Return the runs that pass a filter."""
    listed = run_list.rows(page.workspace)
    return run_list.filter_rows(listed, filters.words, filters.dataset)


def table(page: Page, event: Event) -> Markup:
    """Draw the windowed list."""
    filters, rows = window_filter(event), shown_rows(page, window_filter(event))
    if not run_list.rows(page.workspace):
        if page.workbench.jobs.list("run", active=True):
            return Markup()
        return html.empty(
            "No run yet. A run asks a chain every question of a dataset and scores the answers.",
            html.button("New run", "runs.new"),
        )
    if not rows:
        return html.note("No run fits the filter.")
    legend = Markup().join(
        Markup('<span><i class="s-{}"></i>{}</span>').format(kind, words) for kind, words in LEGEND
    )
    if unread(page, rows):
        legend += reading("runs.losses")
    marks = "|".join(f"{row.name}{row.state}{row.done}{row.title}" for row in rows)
    key = replace(filters, mark=str(hash(marks)))
    window = html.window("runs", key, len(rows), "", row=58, label="Runs")
    return Markup(
        '{}<div class="runlist" style="--rows:{}">{}</div><div class="legend">{}</div>'
    ).format(HEADS, len(rows), window, legend)


def unread(page: Page, rows: Sequence[RunSummary]) -> list[str]:
    """Return the newest finished runs whose lost questions have not been analysed yet."""
    large = run_questions.LARGE
    ended = [row for row in rows[:NEWEST] if row.state == "done" and 0 < row.total <= large]
    runs = {row.name: page.workbench.runs.open(row.name) for row in ended if not row.problem}
    known = partial(run_questions.stages_known, page.workspace)
    return [name for name, run in runs.items() if not known(run)]


def losses(page: Page, event: Event) -> Iterator[Patch]:
    """Analyse the lost questions of the newest runs, one run after another."""
    for name in unread(page, shown_rows(page, window_filter(event))):
        run_questions.read_stages(page.workspace, page.workbench.runs.open(name))
        yield Patch(event=PageEvent("rb-rows", list="runs"))
    yield Patch({"runs-rows": table(page, event)})


def run_rows(page: Page, request: RowWindow) -> Rows:
    part = shown_rows(page, request.read(RunFilter))[request.part]
    return Rows([(row.name, run_row(page, row)) for row in part])


def run_row(page: Page, row: RunSummary) -> Markup:
    place = RunAddress(row.name).href
    if row.problem:
        gone = html.menu(delete_button(row), label=f"More for {row.title}")
        return Markup(
            '<div class="runrow broken"><span></span><span><b class="nm">{}</b>'
            '<small class="bad" title="{}">{}</small></span><span>{}</span></div>'
        ).format(row.name, row.problem, row.problem, gone)
    chain = row.chain
    depths = [f"k {a.k}" for a in chain.actions if a.kind == "retrieve"][-1:] if chain else []
    about = html.join_facts(
        *depths,
        *(chain.llms if chain else ()),
        numbers.moment(row.created),
        row.workflow if row.workflow != "chain" else "",
        STATES.get(row.state, row.state),
        f"{row.errors} failed" if row.errors else "",
    )
    price = ""
    if not run_list.is_imported(row):
        price, _ = run_views.price_text(page.workspace, row.usd, chain.llms if chain else ())
    tick = Markup('<input type="checkbox" value="{}" aria-label="Choose {} to compare">').format(
        row.name, row.title
    )
    more = run_menu(row, html.link("Open", place, ""))
    cells = (
        Markup('<span><a class="nm" href="{}" title="{}">{}</a><small>{}</small></span>').format(
            place, row.name, row.title, about
        ),
        Markup("<span>{}<small>{}</small></span>").format(row.dataset, question_count(row)),
        Markup('<span class="n" title="{}">{}<small>{}</small></span>').format(
            figures.doubt(row.mean),
            figures.percent(row.mean) if row.mean else "–",
            run_views.label(row.metric),
        ),
        Markup("<span>{}</span>").format(figures.interval_bar(row.mean)),
        Markup('<span class="n">{}</span>').format(figures.percent(row.precision)),
        Markup("<span>{}</span>").format(lost_bar(page, row.name)),
        Markup('<span class="n">{}</span>').format(figures.duration(row.seconds)),
        Markup('<span class="n">{}</span>').format(price),
        Markup("<span>{}</span>").format(more),
    )
    return Markup('<div class="runrow" data-href="{}">{}{}</div>').format(
        place, tick, Markup().join(cells)
    )


def run_menu(row: RunSummary, first: str = "") -> Markup:
    """Draw the actions on a run; ``first``: entries to put before them."""
    return html.menu(
        first,
        html.button("Rename", "runs.ask_title", id=row.name),
        html.button("Export", "runs.ask_form", run=row.name),
        html.button("Open in MLflow", "runs.mlflow", run=row.name)
        if row.state == "done"
        else Markup(),
        delete_button(row),
        label=f"More for {row.title}",
    )


def question_count(row: RunSummary) -> str:
    return f"{row.done:,} of {row.total:,}" if row.done != row.total else f"{row.total:,} questions"


def delete_button(row: RunSummary) -> Markup:
    ask = f"Move the run {row.title} into the bin? It can be brought back."
    return html.button(
        "Delete", "runs.delete", kind="danger", id=row.name, confirm=ask, confirm_verb="Delete"
    )


def lost_stages(
    page: Page, name: str, qids: Collection[str] | None = None
) -> list[tuple[str, str, int]]:
    """Return the stages at which questions of a run, or of ``qids``, were lost; empty if the answers cannot be read."""
    with suppress(RalleError):
        run = page.workbench.runs.open(name)
        listed = run_questions.questions(page.workspace, run)
        return run_questions.lost_parts([x for x in listed if qids is None or x.qid in qids])
    return []


def lost_bar(page: Page, name: str, *, tall: bool = False) -> Markup:
    """Draw the stages at which questions were lost as a bar; each part opens its questions."""
    target = f"{RunAddress(name).href}&only={{verdict}}"
    return figures.waterfall_bar(lost_stages(page, name), tall=tall, address=target)


# actions


def refresh(page: Page, event: Event) -> Patch:
    """Redraw the list after a change of the filter or the runs."""
    filters = window_filter(event)
    words, dataset = event.text("words", filters.words), event.text("dataset", filters.dataset)
    event.session.put(RunFilter(words, dataset))
    return Patch({"runs-now": now(page), "runs-rows": table(page, event)})


def ask_title(page: Page, event: Event) -> Patch:
    row = run_list.run_row(page.workspace, event.text("id"))
    more = form.on_enter("runs.rename", id=row.name)
    note = f"Its folder stays {row.name}: experiments and MLflow know it by that name. Leave it empty to return to the automatic name."
    body = form.text("as", "Name", row.title, more=more) + html.note(note)
    return panels.ask("Rename the run", body, "Rename", "runs.rename", id=row.name)


def rename(page: Page, event: Event) -> Patch:
    page.workbench.runs.rename(event.text("id"), event.text("as"))
    return Patch({"runs-rows": table(page, event)}, dialog="")


def delete(page: Page, event: Event) -> Patch:
    page.workbench.runs.delete(event.text("id"))
    gone = PageEvent("rb-gone", run=event.text("id"))
    undo = html.button("Bring back", "runs.restore", id=event.text("id"))
    patch = Patch(say="The run is in the bin.", undo=undo, go="#/runs/list", event=gone)
    return view(page, event) | patch


def open_bin(page: Page, event: Event) -> Patch:
    binned, lines = run_list.in_bin(page.workspace), []
    for row in binned:
        about = html.join_facts(row.dataset, numbers.moment(row.created))
        name = Markup('<b class="nm" title="{}">{}</b><small>{}</small>').format(
            row.name, row.title, about
        )
        lines.append([name, html.button("Bring back", "runs.restore", id=row.name)])
    count = plural(len(binned), "run")
    gone = html.button(
        f"Empty the bin ({len(binned)})",
        "runs.empty_bin",
        kind="danger",
        confirm=f"Delete {count} in the bin for good? Nothing brings them back.",
        confirm_verb=f"Delete {count} for good",
    )
    listed = html.rows(["Run", ">"], lines)
    return panels.form_drawer("Bin", listed, gone)


def restore(page: Page, event: Event) -> Patch:
    """Restore a run; the bin stays open while it contains others."""
    page.workbench.runs.restore(event.text("id"))
    more = open_bin(page, event) if run_list.in_bin(page.workspace) else Patch(drawer="")
    return view(page, event) | more


def empty_bin(page: Page, event: Event) -> Patch:
    say = f"Deleted {plural(page.workbench.runs.empty_bin(), 'run')}."
    return view(page, event) | Patch(drawer="", say=say)


def stop(page: Page, event: Event) -> Patch:
    """Stop a run; the answers so far are scored."""
    page.workbench.runs.stop(event.text("id"))
    return Patch(
        {"runs-now": now(page)}, say="Stopping after this batch; its answers so far are scored."
    )


def compare(page: Page, event: Event) -> Patch:
    ticked = set(filter(None, event.text("pick").split("/")))
    names = [row.name for row in run_list.rows(page.workspace) if row.name in ticked]
    if len(names) < 2:
        raise UsageError("Tick two or more runs of the list, then press Compare.")
    names.reverse()  # the oldest is the baseline
    compared = (
        ComparisonAddress(names[0], names[1])
        if len(names) == 2
        else ComparisonAddress(r=tuple(names))
    )
    return Patch(go=compared.href)
